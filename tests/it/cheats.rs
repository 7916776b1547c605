//! Changes that break the code and touch what judges it, so that the runner does not notice. Each comes to
//! nothing: the run does not see it, its verdict is no pass, or a person is asked, with the words that say
//! what the change does to the judge. Nothing of it reaches the live tree.

use crate::support::lab::run;
use crate::support::repo::path_text;
use crate::support::verifier::Counts;
use crate::support::{Contract, Lab, Repo, Verifier, skip};
use std::path::{Path, PathBuf};

/// A file of a change; a text that begins with `-> ` is a link, `#!` makes a program, [`GONE`] removes it.
type File<'a> = (&'a str, &'a str);

const GONE: &str = "(gone)";

/// What becomes of a change that cheats.
enum Caught {
    /// The verdict of the verifier's row.
    Verdict(&'static str),
    /// A person is asked, and these words say why.
    Person(&'static str),
    /// The run does not see it, so that the verifier fails, and a person is asked as well.
    Unseen,
}

use Caught::{Person, Unseen, Verdict};

struct World<'l> {
    repo: Repo<'l>,
    verifier: &'static str,
    env: Vec<(&'static str, String)>,
    /// A file that is no text and belongs to the next cheats.
    binary: Option<(String, Vec<u8>)>,
    tasks: u32,
}

impl<'l> World<'l> {
    fn new(repo: Repo<'l>, verifier: &'static str, env: Vec<(&'static str, String)>) -> Self {
        Self { repo, verifier, env, binary: None, tasks: 0 }
    }
}

impl World<'_> {
    /// Tries a change that has `broken` beside the files of the cheat.
    #[track_caller]
    fn cheat(&mut self, broken: File<'_>, files: &[File<'_>], caught: &Caught) {
        self.tasks += 1;
        let id = format!("t{}", self.tasks);
        let task = self.repo.submitted(&Contract::new(&id).allowed(&[self.verifier]), |task| {
            if let Some((path, bytes)) = &self.binary {
                task.write(path, bytes);
            }
            for (path, text) in [&[broken], files].concat() {
                match text.strip_prefix("-> ") {
                    Some(target) => task.link(path, target),
                    None if text == GONE => task.rm(path),
                    None => task.write(path, text),
                }
                if text.starts_with("#!") {
                    task.chmod(path, 0o755);
                }
            }
        });
        let env: Vec<(&str, &str)> = self.env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = self.repo.json_in("", &env, None, &["verify", &task.id]);
        let shown = format!("{files:?}: {:#}", answer.json);
        let row = answer.row(self.verifier);
        match caught {
            Verdict(verdict) => assert_eq!(row["verdict"], *verdict, "{shown}"),
            Person(words) => {
                assert_eq!(answer.verdict("protected"), "needs_confirmation", "{shown}");
                assert!(answer.reason("protected").contains(words), "{words}: {shown}");
                assert_eq!(row["judgeChanged"], true, "{shown}");
            }
            Unseen => {
                assert_eq!(
                    (row["verdict"].as_str(), &row["judgeChanged"]),
                    (Some("failed"), &true.into()),
                    "{shown}"
                );
                assert_eq!(answer.verdict("protected"), "needs_confirmation", "{shown}");
            }
        }
        let before = self.repo.read(broken.0);
        let delivered = self.repo.json_in("", &env, None, &["deliver", &task.id]);
        assert!(matches!(delivered.code, 1 | 6), "{shown}: {:#}", delivered.json);
        assert_eq!(self.repo.read(broken.0), before, "{shown}");
    }

    /// A change that only does honest work passes, and no person is asked.
    #[track_caller]
    fn fair(&mut self, files: &[File<'_>]) {
        self.tasks += 1;
        let id = format!("t{}", self.tasks);
        let task = self.repo.submitted(&Contract::new(&id).allowed(&[self.verifier]), |task| {
            files.iter().for_each(|(path, text)| task.write(path, text));
        });
        let env: Vec<(&str, &str)> = self.env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = self.repo.json_in("", &env, None, &["verify", &task.id]).ok();
        let rows = answer.json["requirements"].as_array().expect("rows");
        assert_eq!(rows.len(), 1, "{files:?}: {:#}", answer.json);
        assert_eq!(
            (&rows[0]["verdict"], &rows[0]["judgeChanged"]),
            (&"passed".into(), &false.into()),
            "{files:?}"
        );
    }

    /// The change without any cheat is no pass, so that each cheat has something to hide.
    #[track_caller]
    fn honest(&mut self, broken: File<'_>) {
        self.cheat(broken, &[], &Verdict("failed"));
    }
}

/// The manifest of a shipped verifier, with more keys.
fn ship(repo: &Repo<'_>, id: &str, more: &str) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers").join(id).join("verifier.toml");
    let text = std::fs::read_to_string(shipped).expect("reads");
    repo.write(format!(".tender/verifiers/{id}/verifier.toml"), format!("{text}{more}"));
}

fn works(lab: &Lab, words: &[&str], env: &[(&str, &str)]) -> bool {
    let mut command = lab.command(words[0], lab.path("").as_path());
    command.args(&words[1..]).envs(env.iter().copied());
    command.output().is_ok_and(|output| output.status.success())
}

/// True where a program works; else the test says that it was left out.
fn has(lab: &Lab, words: &[&str], env: &[(&str, &str)]) -> bool {
    let found = works(lab, words, env);
    if !found {
        skip(&format!("{words:?} does not work on this machine"));
    }
    found
}

/// The first Python of the `PATH` that has pytest.
fn python_with_pytest(lab: &Lab) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let found = all.find(|python| works(lab, &[path_text(python), "-m", "pytest", "--version"], &[]));
    if found.is_none() {
        skip("no python3 on the PATH has pytest");
    }
    found
}

/// A repository with code, its tests and the shipped verifier.
fn repo_for_pytest(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    let tests = "import app\ndef test_one(): assert app.add(1, 2) == 3\ndef test_two(): assert app.add(2, 2) == 4\n\
                 def test_name(): assert app.NAME == 'x'\n";
    repo.write("app.py", "NAME = 'x'\ndef add(a, b): return a + b\n");
    repo.write("tests/test_app.py", tests);
    repo.write("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = ['.']\n");
    ship(&repo, "pytest", "");
    repo.commit("code");
    repo
}

const FAKE_APP: &str = "import sys, types\nm = types.ModuleType('app')\nm.NAME = 'x'\nm.add = lambda a, b: a + b\n\
                        sys.modules['app'] = m\n";
const ALL_PASS: &str = "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n\
                        \x20   o = yield\n    o.get_result().outcome = 'passed'\n";
const DESELECT: &str =
    "addopts = --deselect tests/test_app.py::test_one --deselect tests/test_app.py::test_two\n";

const SWAPS: &str = "import atexit, os\np = 'tests/test_app.py'\ns, text = os.stat(p), open(p).read()\n\
                     def lay(new):\n    os.chmod(p, 0o644)\n    open(p, 'w').write(new)\n    os.chmod(p, s.st_mode & 0o777)\n\
                     \x20   os.utime(p, ns=(s.st_atime_ns, s.st_mtime_ns))\n\
                     lay('def test_one(): pass\\ndef test_two(): pass\\ndef test_name(): pass\\n')\n\
                     atexit.register(lay, text)\ndef test_aaa(): pass\n";

/// A module that an older pytest imports, and files beside the tests.
fn try_other_tests(world: &mut World<'_>, broken: File<'_>) {
    world.cheat(broken, &[("attr.py", FAKE_APP)], &Unseen);
    world.cheat(
        broken,
        &[("tests/more/conftest.py", FAKE_APP), ("tests/more/test_a.py", "def test_a(): pass\n")],
        &Person("tests/more/conftest.py"),
    );
    // It lays other tests there and takes them back before the run ends.
    world.cheat(broken, &[("tests/test_aaa.py", SWAPS)], &Verdict("error"));
}

#[test]
fn pytest_is_not_cheated() {
    let lab = Lab::new();
    let Some(python) = python_with_pytest(&lab) else { return };
    let repo = repo_for_pytest(&lab);
    let folder = python.parent().map(path_text).expect("a folder");
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let broken = ("app.py", "NAME = 'x'\ndef add(a, b): return a * b + 7\n");
    let bytecode = bytecode_of(&lab, &python, &repo.text("app.py"));
    let mut world = World::new(repo, "pytest", vec![("PATH", path)]);
    world.honest(broken);
    world.cheat(broken, &[("conftest.py", ALL_PASS)], &Person("conftest.py"));
    world.cheat(
        broken,
        &[("helper.py", ALL_PASS), ("tests/conftest.py", "-> ../helper.py")],
        &Person("tests/conftest.py"),
    );
    world.cheat(
        broken,
        &[("pytest.ini", &format!("[pytest]\npythonpath = .\n{DESELECT}"))],
        &Person("pytest.ini"),
    );
    world.cheat(
        broken,
        &[(".pytest.ini", &format!("[pytest]\npythonpath = .\n{DESELECT}"))],
        &Person(".pytest.ini"),
    );
    let toml = "[tool.pytest.ini_options]\npythonpath = ['.']\naddopts = '-p helper'\n";
    world.cheat(
        broken,
        &[("helper.py", ALL_PASS), ("pyproject.toml", toml)],
        &Person("pyproject.toml: tool.pytest"),
    );
    let tox = format!("[pytest]\npythonpath = .\n{DESELECT}");
    world.cheat(broken, &[("pyproject.toml", GONE), ("tox.ini", &tox)], &Person("tox.ini: [pytest]"));
    let shadow = format!(
        "{FAKE_APP}import sysconfig\nexec(open(sysconfig.get_path('stdlib') + '/bdb.py').read(), globals())\n"
    );
    world.cheat(broken, &[("src/sitecustomize.py", FAKE_APP)], &Unseen);
    world.cheat(broken, &[("src/bdb.py", &shadow)], &Unseen);
    try_other_tests(&mut world, broken);
    let report = "import sys\nout = next(a for a in sys.argv if a.startswith('--junitxml=')).split('=')[1]\n\
                  open(out, 'w').write('<testsuites><testsuite tests=\"1\"><testcase classname=\"c\" name=\"n\"/></testsuite></testsuites>')\n";
    world.cheat(broken, &[("pytest.py", report)], &Unseen);
    let plugin = [
        ("helper.py", ALL_PASS),
        ("cheat-1.dist-info/METADATA", "Name: cheat\nVersion: 1\n"),
        ("cheat-1.dist-info/entry_points.txt", "[pytest11]\ncheat = helper\n"),
    ];
    world.cheat(broken, &plugin, &Unseen);
    world.binary = Some(bytecode);
    world.cheat(broken, &[], &Unseen);
    world.binary = None;
    world.cheat(("app.py", "import os\nos._exit(0)\n"), &[], &Verdict("error"));
    let skip = "import pytest\npytest.skip('later', allow_module_level=True)\n";
    world.cheat(("app.py", skip), &[], &Verdict("failed"));
    world.fair(&[("app.py", "NAME = 'x'\ndef add(a, b): return b + a\n")]);
    world.fair(&[("tests/test_more.py", "import app\ndef test_more(): assert app.add(0, 1) == 1\n")]);
    let described = "[project]\nname = 'app'\n[tool.pytest.ini_options]\npythonpath = [\".\"]  # the same\n";
    world.fair(&[("pyproject.toml", described), ("tools/run.py", "pass\n"), ("pytest.md", "notes\n")]);
    let lost = "import app\ndef test_name(): assert app.NAME == 'x'\n";
    world.cheat(broken, &[("tests/test_app.py", lost)], &Person("do not run any more"));
}

/// Bytecode of a module that Python runs without a look at its source, and where it would lie.
fn bytecode_of(lab: &Lab, python: &Path, source: &str) -> (String, Vec<u8>) {
    std::fs::write(lab.path("app.py"), source).expect("written");
    let code = "import py_compile, importlib.util as u; \
                py_compile.compile('app.py', cfile='app.pyc', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH); \
                print(u.cache_from_source('app.py'))";
    let mut command = lab.command(python, lab.path("").as_path());
    command.args(["-B", "-c", code]);
    let place = run(command, None).ok().text().trim().to_owned();
    (place, std::fs::read(lab.path("app.pyc")).expect("reads"))
}

const TESTS: &str = "#[test] fn one() { assert_eq!(adder::add(1, 2), 3); }\n#[test] fn two() { assert_eq!(adder::add(2, 2), 4); }\n";
const CARGO: &str = "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const LOCK: &str = "version = 3\n[[package]]\nname = \"adder\"\nversion = \"0.1.0\"\n";
const LIBTEST: &str = "\nrunning 2 tests\ntest one ... ok\ntest two ... ok\n\n\
                       test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";

#[test]
fn cargo_is_not_cheated() {
    let lab = Lab::new();
    let real = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| path_text(&real.join(".rustup")).to_owned());
    if !has(&lab, &["cargo", "-V"], &[("RUSTUP_HOME", &rustup)]) {
        return;
    }
    let repo = lab.repo("app");
    repo.write("Cargo.toml", CARGO);
    repo.write("Cargo.lock", LOCK);
    repo.write("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { a + b }\n");
    repo.write("tests/api.rs", TESTS);
    ship(&repo, "cargo-test", "env = [\"RUSTUP_HOME\"]\n");
    repo.commit("code");
    let broken = ("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { a * b + 7 }\n");
    let mut world = World::new(repo, "cargo-test", vec![("RUSTUP_HOME", rustup)]);
    world.honest(broken);
    let fake = format!("#!/bin/sh\ncat <<'X'\n{LIBTEST}X\n");
    let config = "[target.'cfg(all())']\nrunner = [\"sh\", \"fake.sh\"]\n";
    world.cheat(broken, &[(".cargo/config.toml", config), ("fake.sh", &fake)], &Person(".cargo/config.toml"));
    let link = [("conf/config.toml", config), (".cargo", "-> conf"), ("fake.sh", &fake)];
    world.cheat(broken, &link, &Person(".cargo"));
    let main = format!("fn main() {{ print!(\"{{}}\", {LIBTEST:?}); }}\n");
    let harness = format!("{CARGO}[[test]]\nname = \"api\"\nharness = false\n");
    world.cheat(broken, &[("Cargo.toml", &harness), ("tests/api.rs", &main)], &Person("Cargo.toml: test"));
    let automatic = format!("{CARGO}autotests = false\n");
    let own = format!("{}#[test] fn mine() {{}}\n", broken.1);
    world.cheat(
        ("src/lib.rs", &own),
        &[("Cargo.toml", &automatic)],
        &Person("Cargo.toml: package.autotests"),
    );
    let profile = format!("{CARGO}[profile.test]\noverflow-checks = false\n");
    world.cheat(broken, &[("Cargo.toml", &profile)], &Person("Cargo.toml: profile.test"));
    let when = "#[cfg(good)] pub fn add(a: u32, b: u32) -> u32 { a + b }\n#[cfg(not(good))] pub fn add(a: u32, b: u32) -> u32 { a * b + 7 }\n";
    let build = "fn main() { println!(\"cargo:rustc-cfg=good\"); }\n";
    world.cheat(("src/lib.rs", when), &[("build.rs", build)], &Person("build.rs"));
    world.cheat(
        broken,
        &[("rust-toolchain.toml", "[toolchain]\nchannel = \"none\"\n")],
        &Person("rust-toolchain.toml"),
    );
    world.cheat(broken, &[("target/debug/deps/api", "#!/bin/sh\n")], &Unseen);
    let excluded = format!("{CARGO}[workspace]\nexclude = [\"inner\"]\n");
    world.cheat(broken, &[("Cargo.toml", &excluded)], &Person("Cargo.toml: workspace.exclude"));
    world.fair(&[("src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 { b + a }\n")]);
    world.fair(&[("tests/more.rs", "#[test] fn more() { assert_eq!(adder::add(0, 1), 1); }\n")]);
    let (described, lock) = (CARGO.replace("0.1.0", "0.1.1"), LOCK.replace("0.1.0", "0.1.1"));
    world.fair(&[("Cargo.toml", &described), ("Cargo.lock", &lock), ("tools/run.sh", "true\n")]);
    let ended = "pub fn add(_: u32, _: u32) -> u32 { std::process::exit(0) }\n";
    world.cheat(("src/lib.rs", ended), &[], &Verdict("error"));
    let ignored = TESTS.replace("#[test]", "#[test] #[ignore]");
    world.cheat(broken, &[("tests/api.rs", &ignored)], &Verdict("not_run"));
    world.cheat(("src/lib.rs", &own), &[("tests/api.rs", GONE)], &Person("do not run any more"));
}

#[test]
fn node_is_not_cheated() {
    let lab = Lab::new();
    if !has(&lab, &["npm", "--version"], &[]) {
        return;
    }
    let repo = lab.repo("app");
    let package = "{\"name\": \"adder\", \"scripts\": {\"test\": \"node --test test/add.test.js && node scripts/zero.js\"}}\n";
    repo.write("package.json", package);
    repo.write("scripts/zero.js", "process.exit(require('../src/add.js').add(0, 5) === 5 ? 0 : 1);\n");
    repo.write("src/add.js", "exports.add = (a, b) => a + b;\n");
    let tests = "const test = require('node:test'), assert = require('node:assert'), { add } = require('../src/add.js');\n\
                 test('one', () => assert.equal(add(1, 2), 3));\ntest('two', () => assert.equal(add(2, 2), 4));\n";
    repo.write("test/add.test.js", tests);
    let npm = Verifier::new("npm").inputs(&["**"]).counts(Counts::Nothing);
    npm.key("command = [\"npm\", \"test\"]").write(&repo);
    let reporter = "command = [\"node\", \"--test\", \"--test-reporter=junit\", \"--test-reporter-destination={out}/junit.xml\", \"test/add.test.js\"]\nbase = \"always\"";
    Verifier::new("cases").inputs(&["**"]).counts(Counts::Junit).key(reporter).write(&repo);
    repo.commit("code");
    let broken = ("src/add.js", "exports.add = (a, b) => a * b + 7;\n");
    let mut world = World::new(repo, "npm", Vec::new());
    world.honest(broken);
    let nothing = package.replace("node --test test/add.test.js", "true");
    world.cheat(broken, &[("package.json", &nothing)], &Person("package.json: scripts.test"));
    let before = package.replace("{\"test\"", "{\"pretest\": \"true\", \"test\"");
    world.cheat(broken, &[("package.json", &before)], &Person("package.json: scripts.pretest"));
    world.cheat(broken, &[("package.json", "{")], &Person("package.json, which cannot be read"));
    world.cheat(broken, &[(".npmrc", "script-shell=/bin/true\n")], &Person(".npmrc"));
    let zero = ("src/add.js", "exports.add = (a, b) => a ? a + b : 9;\n");
    world.honest(zero);
    world.cheat(zero, &[("scripts/zero.js", "\n")], &Person("scripts/zero.js"));
    world.fair(&[
        ("src/add.js", "exports.add = (a, b) => b + a;\n"),
        ("scripts/other.js", "process.exit(1);\n"),
    ]);
    let described = package.replace("{\"name\"", "{\"version\": \"1.0.0\", \"name\"");
    let described = described.replace("{\"test\"", "{\"docs\": \"false\", \"test\"");
    world.fair(&[("package.json", &described)]);
    let fake = ("node_modules/.bin/node", "#!/bin/sh\nexit 0\n");
    world.cheat(broken, &[fake], &Person("node_modules/.bin/node"));
    let mapped = package.replace("{\"name\"", "{\"imports\": {\"#add\": \"./good.js\"}, \"name\"");
    world.cheat(broken, &[("package.json", &mapped)], &Person("package.json: imports"));
    world.verifier = "cases";
    world.honest(broken);
    world.cheat(("src/add.js", "process.exit(0);\n"), &[], &Verdict("not_run"));
    world.fair(&[("test/add.test.js", &format!("{tests}test('three', () => {{}});\n"))]);
    let one = "require('node:test').test('mine', () => {});\n";
    world.cheat(broken, &[("test/add.test.js", one)], &Person("do not run any more"));
    let skipped = tests.replace("test('", "test.skip('");
    world.cheat(broken, &[("test/add.test.js", &skipped)], &Verdict("not_run"));
}

#[test]
fn make_is_not_cheated() {
    let lab = Lab::new();
    if !has(&lab, &["make", "--version"], &[]) {
        return;
    }
    let repo = lab.repo("app");
    let makefile = "include rules.inc\n-include local.inc\ntest:\n\t$(MAKE) -C sub check\n";
    repo.write("Makefile", makefile);
    repo.write("rules.inc", "A = 1\n");
    repo.write("sub/Makefile", "check:\n\tgrep -q good ../code.txt\n\tsh ../ci.sh\n");
    repo.write("ci.sh", "HERE=$(dirname \"$0\")\n. \"$HERE/lib/real.sh\"\n");
    repo.write("lib/real.sh", "grep -q right ../value.txt\n");
    repo.write("code.txt", "good\n");
    repo.write("value.txt", "right\n");
    repo.write("ci/check.sh", "#!/bin/sh\ngrep -q good code.txt\n");
    repo.chmod("ci/check.sh", 0o755);
    let text = Verifier::new("text").inputs(&["**"]).counts(Counts::Nothing);
    text.key("command = [\"sh\", \"-c\", \"set -e; ./ci/check.sh\"]").write(&repo);
    repo.write("ci/build.make", "all:\n\t@./ci/check.sh\nother:\n\tsh ci/unused.sh\n");
    repo.write("ci/unused.sh", "false\n");
    let given = Verifier::new("given").inputs(&["**"]).counts(Counts::Nothing);
    given.key("command = [\"make\", \"-s\", \"-f\", \"ci/build.make\"]").write(&repo);
    let unit = Verifier::new("unit").inputs(&["**"]).counts(Counts::Nothing);
    unit.key("command = [\"make\", \"-s\", \"test\"]").write(&repo);
    repo.commit("code");
    let broken = ("code.txt", "bad\n");
    let mut world = World::new(repo, "unit", Vec::new());
    world.honest(broken);
    world.cheat(broken, &[("Makefile", "test:\n\ttrue\n")], &Person("Makefile"));
    world.cheat(broken, &[("GNUmakefile", "test:\n\ttrue\n")], &Person("GNUmakefile"));
    world.cheat(broken, &[("sub/Makefile", "check:\n\ttrue\n")], &Person("sub/Makefile"));
    world.cheat(
        broken,
        &[("sub/makefile", "-> ../fake"), ("fake", "check:\n\ttrue\n")],
        &Person("sub/makefile"),
    );
    world.cheat(broken, &[("local.inc", "SHELL = /bin/true\n")], &Person("local.inc"));
    world.cheat(broken, &[("rules.inc", "MAKE = true\n")], &Person("rules.inc"));
    world.cheat(broken, &[("test", "made\n")], &Person("test, which make would find up to date"));
    world.cheat(broken, &[("sub/check/a", "made\n")], &Person("sub/check, which make would find up to date"));
    let wrong = ("value.txt", "wrong\n");
    world.honest(wrong);
    world.cheat(wrong, &[("ci.sh", "true\n")], &Person("ci.sh"));
    world.cheat(wrong, &[("lib/real.sh", "true\n")], &Person("lib/real.sh"));
    let link = [("fake.sh", "true\n"), ("ci.sh", GONE), ("ci.sh", "-> fake.sh")];
    world.cheat(wrong, &link, &Person("ci.sh"));
    world.fair(&[("code.txt", "good and more\n"), ("lib/other.sh", "false\n"), ("real.sh", "false\n")]);
    world.verifier = "text";
    world.honest(broken);
    world.cheat(broken, &[("ci/check.sh", "#!/bin/sh\ntrue\n")], &Person("ci/check.sh"));
    world.fair(&[("code.txt", "good and more\n"), ("ci/other.sh", "#!/bin/sh\nfalse\n")]);
    world.verifier = "given";
    world.honest(broken);
    world.cheat(broken, &[("ci/build.make", "all:\n\ttrue\n")], &Person("ci/build.make"));
    world.cheat(broken, &[("ci/check.sh", "#!/bin/sh\ntrue\n")], &Person("ci/check.sh"));
    world.fair(&[("ci/unused.sh", "#!/bin/sh\nfalse\n")]);
}

/// A new module that stands before one that a Python would find where it is installed.
#[test]
fn python_without_a_runner_is_not_cheated() {
    let lab = Lab::new();
    if !has(&lab, &["python3", "-V"], &[]) {
        return;
    }
    let repo = lab.repo("app");
    repo.write("app.py", "def add(a, b): return a + b\n");
    repo.write(
        "test_app.py",
        "import unittest, app\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(app.add(1, 2), 3)\n",
    );
    repo.write("tools/check.py", "import json, sys\nsys.exit('good' not in open('docs/a.md').read())\n");
    repo.write("docs/a.md", "good\n");
    let cases = Verifier::new("cases").inputs(&["**"]).counts(Counts::Nothing);
    cases.key("command = [\"python3\", \"-B\", \"-m\", \"unittest\", \"-q\"]").write(&repo);
    let tool = Verifier::new("tool").inputs(&["**"]).counts(Counts::Nothing);
    tool.key("command = [\"python3\", \"-B\", \"tools/check.py\"]").write(&repo);
    repo.write("Makefile", "check:\n\tpython3 -B tools/check.py\n");
    let made = Verifier::new("made").inputs(&["**"]).counts(Counts::Nothing);
    made.key("command = [\"make\", \"-s\", \"check\"]").write(&repo);
    repo.commit("code");
    let ends = "import os\nos._exit(0)\n";
    let broken = ("app.py", "def add(a, b): return a * b + 7\n");
    let mut world = World::new(repo, "cases", Vec::new());
    world.honest(broken);
    world.cheat(broken, &[("unittest.py", ends)], &Person("unittest.py"));
    world.cheat(broken, &[("unittest/__init__.py", ends)], &Person("unittest/__init__.py"));
    world.cheat(broken, &[("argparse.py", ends)], &Person("argparse.py"));
    world.cheat(broken, &[("fake.py", ends), ("argparse.py", "-> fake.py")], &Person("argparse.py"));
    world.fair(&[
        ("app.py", "def add(a, b): return b + a\n"),
        ("more.py", "pass\n"),
        ("lib/json.py", "pass\n"),
    ]);
    let bad = ("docs/a.md", "bad\n");
    for verifier in ["tool", "made"] {
        world.verifier = verifier;
        world.honest(bad);
        world.cheat(bad, &[("tools/json.py", ends)], &Person("tools/json.py"));
        world.cheat(bad, &[("tools/json/__init__.py", ends)], &Person("tools/json/__init__.py"));
        world.fair(&[("docs/a.md", "good and more\n"), ("tools/other.py", "pass\n"), ("json.py", "pass\n")]);
    }
}

/// What a script runs by a pattern, by a loop or with quotes within its name.
#[test]
fn scripts_of_scripts_are_not_cheated() {
    let lab = Lab::new();
    if !has(&lab, &["make", "--version"], &[]) {
        return;
    }
    let repo = lab.repo("app");
    let looks = "grep -q good code.txt\n";
    repo.write("code.txt", "good\n");
    repo.write(
        "ci/all.sh",
        "set -e\nfor f in ci/steps/*.sh; do bash \"$f\"; done\n\"$(dirname \"$0\")\"/own.sh\n",
    );
    repo.write("ci/own.sh", "#!/bin/sh\ntrue\n");
    repo.chmod("ci/own.sh", 0o755);
    repo.write("ci/steps/1.sh", looks);
    let looped = Verifier::new("looped").inputs(&["**"]).counts(Counts::Nothing);
    looped.key("command = [\"bash\", \"ci/all.sh\"]").write(&repo);
    repo.write("ci/split.sh", looks);
    let split = Verifier::new("split").inputs(&["**"]).counts(Counts::Nothing);
    split.key("command = [\"env\", \"-S\", \"A=1 sh ci/split.sh\"]").write(&repo);
    repo.write("ci/all.make", "D = defs\ninclude $(D)/*.inc\ncheck:\n\t@grep -q good code.txt\n");
    repo.write("defs/a.inc", "A = 1\n");
    let made = Verifier::new("made").inputs(&["**"]).counts(Counts::Nothing);
    made.key("command = [\"make\", \"-s\", \"-f\", \"ci/all.make\", \"check\"]").write(&repo);
    repo.commit("code");
    let broken = ("code.txt", "bad\n");
    let mut world = World::new(repo, "looped", Vec::new());
    world.honest(broken);
    world.cheat(broken, &[("ci/steps/1.sh", "true\n")], &Person("ci/steps/1.sh"));
    world.cheat(
        broken,
        &[("ci/steps/1.sh", GONE), ("ci/steps/2.sh", "true\n")],
        &Person("ci/steps/1.sh, ci/steps/2.sh"),
    );
    world.cheat(
        broken,
        &[("ci/own.sh", "#!/bin/sh\ntrue\n# other\n"), ("ci/steps/1.sh", "true\n")],
        &Person("ci/own.sh"),
    );
    world.fair(&[
        ("code.txt", "good and more\n"),
        ("ci/steps/notes.md", "none\n"),
        ("ci/other.sh", "false\n"),
    ]);
    world.verifier = "split";
    world.cheat(broken, &[("ci/split.sh", "true\n")], &Unseen);
    world.fair(&[("code.txt", "good and more\n")]);
    world.verifier = "made";
    world.honest(broken);
    world.cheat(broken, &[("defs/a.inc", "SHELL = /bin/true\n")], &Person("defs/a.inc"));
    world.cheat(broken, &[("defs/b.inc", "SHELL = /bin/true\n")], &Person("defs/b.inc"));
    world.fair(&[("code.txt", "good and more\n"), ("other/b.inc", "SHELL = /bin/true\n")]);
}

/// What a run does to the folder `.git` of its slot is not there for the next one.
#[test]
fn the_folder_of_git_in_a_slot_is_laid_anew() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let look = "mkdir -p .git/info .git/hooks\nif grep -q plant src/a.txt; then echo '*' > .git/info/exclude; echo x > .git/hooks/x; \
                echo '# planted' >> .git/config; fi\n\
                grep -q plant src/a.txt || { ! test -e .git/info/exclude && ! test -e .git/hooks/x && ! grep -q planted .git/config; }";
    let git = Verifier::new("git").counts(Counts::Nothing);
    git.script(&format!("{look} || exit 1\nfinish\n")).commit(&repo);
    for (id, text) in [("t1", "plant\n"), ("t2", "honest\n")] {
        let task = repo.submitted(&Contract::new(id).allowed(&["git"]), |task| task.write("src/a.txt", text));
        assert_eq!(repo.json(&["verify", &task.id]).ok().verdict("git"), "passed", "{id}");
    }
}
