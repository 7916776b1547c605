//! "Never the live tree": a run that would load code from the live tree, another worktree or another slot is an
//! error that says what leads where, and how to mend it. What leads there is made by the real tools.

use crate::support::lab::run;
use crate::support::repo::path_text;
use crate::support::verifier::Counts;
use crate::support::{Answer, Contract, Lab, Repo, Verifier};
use std::cell::Cell;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const LIVE: &str = "it would judge the live tree: ";

/// A repository whose candidates break `src/m.py`, and the variables that its tasks are verified with.
struct World<'l> {
    lab: &'l Lab,
    repo: Repo<'l>,
    tasks: Cell<usize>,
}

impl<'l> World<'l> {
    fn new(lab: &'l Lab) -> Self {
        let repo = lab.repo("app");
        repo.write("src/m.py", "def f(): return 1\n");
        repo.write(
            "tests/test_m.py",
            "import unittest, m\nclass T(unittest.TestCase):\n  def test_f(self): self.assertEqual(m.f(), 1)\n",
        );
        repo.write(".gitignore", ".venv/\nnode_modules/\ntarget/\nbuild/\n");
        repo.commit("a module");
        Self { lab, repo, tasks: Cell::new(0) }
    }

    /// What a verifier says of a candidate in which `f` gives 2.
    #[track_caller]
    fn judged(&self, verifier: &Verifier, env: &[(&str, &str)]) -> Answer {
        let number = self.tasks.get() + 1;
        self.tasks.set(number);
        verifier.write(&self.repo);
        // Every task has a base of its own, so that no evidence of an earlier one counts.
        self.repo.write("docs/number", format!("{number}\n"));
        self.repo.commit(&format!("before task {number}"));
        let id = format!("t{number}");
        let contract = Contract::new(&id).allowed(&["unit"]);
        self.repo.submitted(&contract, |task| {
            task.write("src/m.py", format!("def f(): return 2 # {number}\n"));
        });
        self.repo.json_in("", env, None, &["verify", &id])
    }

    /// The run would judge `place`, which `words` lead to; and so nothing is delivered.
    #[track_caller]
    fn refused(&self, verifier: &Verifier, env: &[(&str, &str)], words: &[&str]) {
        let answer = self.judged(verifier, env);
        assert_eq!((answer.verdict("unit"), answer.code), ("error", 1), "{:#}", answer.json);
        let reason = answer.reason("unit");
        assert!(reason.starts_with(LIVE), "{reason}");
        assert!(words.iter().all(|word| reason.contains(word)), "{reason} has not all of {words:?}");
        let id = format!("t{}", self.tasks.get());
        self.repo
            .json_in("", env, None, &["deliver", &id])
            .fails_one_of(&["verification.failed", "verifier.protocol"]);
        assert!(self.repo.text("src/m.py").contains("return 1"));
    }

    #[track_caller]
    fn verdict_is(&self, verdict: &str, verifier: &Verifier, env: &[(&str, &str)]) {
        let answer = self.judged(verifier, env);
        assert_eq!(answer.verdict("unit"), verdict, "{:#}", answer.json);
        assert!(!answer.row("unit")["reason"].to_string().contains(LIVE), "{:#}", answer.json);
    }

    /// A path in the live tree, as text.
    fn live(&self, below: &str) -> String {
        path_text(&self.repo.join(below)).trim_end_matches('/').to_owned()
    }
}

fn command(words: &[&str]) -> Verifier {
    Verifier::new("unit").counts(Counts::Nothing).inputs(&["**"]).key(&format!("command = {words:?}"))
}

fn true_with(key: &str) -> Verifier {
    command(&["true"]).key(key)
}

const UNITTEST: &[&str] = &["python3", "-B", "-m", "unittest", "discover", "-s", "tests"];

fn tool(lab: &Lab, cwd: &Path, words: &[&str]) -> i32 {
    let mut command = lab.command(words[0], cwd);
    command.args(&words[1..]);
    run(command, None).code
}

/// A virtual environment, the `PATH` on which it comes first, and its folder of packages.
struct Environment {
    path: String,
    bin: PathBuf,
    site: PathBuf,
}

fn environment(lab: &Lab, folder: &Path) -> Environment {
    assert_eq!(
        tool(lab, lab.path("").as_path(), &["python3", "-m", "venv", "--without-pip", path_text(folder)]),
        0
    );
    let lib = std::fs::read_dir(folder.join("lib")).expect("a library");
    let site = lib.flatten().map(|python| python.path().join("site-packages")).find(|site| site.is_dir());
    let path = format!("{}/bin:{}", folder.display(), std::env::var("PATH").expect("a PATH"));
    Environment { path, bin: folder.join("bin"), site: site.expect("a folder of packages") }
}

#[test]
fn an_editable_install_is_found_and_its_cures_work() {
    let lab = Lab::new();
    if !lab.has_tool("python3", "--version") {
        return;
    }
    let world = World::new(&lab);
    let venv = environment(&lab, &lab.path("venv"));
    let path = [("PATH", venv.path.as_str())];
    let pth = venv.site.join("dev.pth");
    std::fs::write(&pth, world.live("src")).expect("written");
    world.refused(
        &command(UNITTEST),
        &path,
        &["dev.pth", &world.live("src/m.py"), "PYTHONPATH=src", "pip install ."],
    );
    // Whatever starts it: the answer of the first time is kept, and holds for the next.
    world.refused(
        &command(&["env", "A=1", "timeout", "60", "python3", "-B", "-m", "unittest"]),
        &path,
        &["dev.pth"],
    );
    world.refused(&command(&["sh", "-c", "cd tests && python3 -m unittest test_m"]), &path, &["dev.pth"]);
    let script = venv.bin.join("check-it");
    std::fs::write(&script, format!("#!{}/python3\n", venv.bin.display())).expect("written");
    assert_eq!(tool(&lab, &venv.bin, &["chmod", "+x", "check-it"]), 0);
    world.refused(&command(&["check-it"]), &path, &["dev.pth"]);
    // A program that has nothing to do with it is judged.
    world.verdict_is("passed", &command(&["sh", "-c", "grep -q f src/m.py"]), &path);
    // The cures: the slot's own copy comes first, no packages at all, and no such install.
    let first = [&["env", "PYTHONPATH=src"], UNITTEST].concat();
    world.verdict_is("failed", &command(&first), &path);
    world.verdict_is("failed", &command(&[&["python3", "-S"], &UNITTEST[1..]].concat()), &path);
    std::fs::remove_file(&pth).expect("removed");
    world.verdict_is("failed", &command(UNITTEST), &path);
}

#[test]
fn import_hooks_links_and_start_up_modules_are_found() {
    let lab = Lab::new();
    if !lab.has_tool("python3", "--version") {
        return;
    }
    let world = World::new(&lab);
    let venv = environment(&lab, &lab.path("venv"));
    let path = [("PATH", venv.path.as_str())];
    let put = |name: &str, text: &str| std::fs::write(venv.site.join(name), text).expect("written");
    let remove = |name: &str| std::fs::remove_file(venv.site.join(name)).expect("removed");
    let (live, src) = (world.live("src/m.py"), world.live("src"));

    // As setuptools leaves it: a hook that is asked after the search path.
    put(
        "__editable___m_finder.py",
        &format!(
            "import sys\nfrom importlib.util import spec_from_file_location as spec\nMAPPING = {{'m': '{src}/m'}}\n\
             class Finder:\n  @classmethod\n  def find_spec(cls, name, path=None, target=None):\n    \
             if name in MAPPING: return spec(name, MAPPING[name] + '.py')\n\
             def install(): sys.meta_path.append(Finder)\n"
        ),
    );
    put("__editable__.m.pth", "import __editable___m_finder; __editable___m_finder.install()");
    world.refused(&command(UNITTEST), &path, &["import hook", &live]);
    let first = command(&[&["env", "PYTHONPATH=src"], UNITTEST].concat());
    world.verdict_is("failed", &first, &path);
    // One that is asked before it cannot be hidden.
    put("__editable__.m.pth", "import sys, __editable___m_finder as m; sys.meta_path.insert(0, m.Finder)");
    world.refused(&first, &path, &["import hook", &live]);
    remove("__editable__.m.pth");
    remove("__editable___m_finder.py");

    put("sitecustomize.py", &format!("import sys; sys.path.append({src:?})"));
    world.refused(&command(UNITTEST), &path, &["the search path of", &live]);
    remove("sitecustomize.py");

    symlink(&live, venv.site.join("m.py")).expect("linked");
    world.refused(&command(UNITTEST), &path, &["site-packages/m.py", &live]);
    remove("m.py");

    // A note of an editable install that nothing known carries out.
    std::fs::create_dir(venv.site.join("m-1.dist-info")).expect("made");
    let note = format!("{{\"dir_info\": {{\"editable\": true}}, \"url\": \"file://{}\"}}", world.live(""));
    put("m-1.dist-info/direct_url.json", &note);
    world.refused(&command(UNITTEST), &path, &["m-1.dist-info"]);
}

#[test]
fn what_pip_installs_editably_is_found() {
    let lab = Lab::new();
    let world = World::new(&lab);
    let venv = lab.path("venv");
    let pip = venv.join("bin/pip");
    world.repo.write(
        "setup.py",
        "from setuptools import setup\nsetup(name='m', version='1', package_dir={'': 'src'}, py_modules=['m'])\n",
    );
    let made = tool(&lab, lab.path("").as_path(), &["python3", "-m", "venv", path_text(&venv)]) == 0
        && tool(
            &lab,
            &world.repo.path,
            &[path_text(&pip), "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "-e", "."],
        ) == 0;
    if !made {
        eprintln!("left out: pip cannot install without a network here");
        return;
    }
    world.repo.git(&["clean", "-qfd", "--", "src"]);
    let path = format!("{}/bin:{}", venv.display(), std::env::var("PATH").expect("a PATH"));
    world.refused(&command(UNITTEST), &[("PATH", &path)], &["leads to", &world.live("src")]);
}

#[test]
fn an_environment_in_the_live_tree_is_environment_and_what_it_leads_to_is_not() {
    let lab = Lab::new();
    if !lab.has_tool("python3", "--version") {
        return;
    }
    let world = World::new(&lab);
    let venv = environment(&lab, &world.repo.join(".venv"));
    let path = [("PATH", venv.path.as_str())];
    world.verdict_is("failed", &command(&[&["env", "PYTHONPATH=src"], UNITTEST].concat()), &path);
    std::fs::write(venv.site.join("dev.pth"), world.live("src")).expect("written");
    world.refused(&command(UNITTEST), &path, &["dev.pth"]);
    std::fs::remove_file(venv.site.join("dev.pth")).expect("removed");
    // The same where git does not ignore it: then it is work of the user's.
    let open = environment(&lab, &world.repo.join("env"));
    world.repo.write(".gitignore", "");
    world.refused(&command(UNITTEST), &[("PATH", &open.path)], &["PATH", &world.live("env/bin")]);
}

#[test]
fn what_npm_links_is_found_before_a_run_and_after_it() {
    let lab = Lab::new();
    let world = World::new(&lab);
    if !lab.has_tool("npm", "--version") {
        return;
    }
    world
        .repo
        .write("lib/package.json", "{\"name\": \"lib\", \"version\": \"1.0.0\", \"main\": \"index.js\"}");
    world.repo.write("lib/index.js", "module.exports = 1\n");
    world.repo.write("package.json", "{\"name\": \"app\", \"version\": \"1.0.0\"}");
    world.repo.write("t.js", "require('assert').equal(require('lib'), 1)\n");
    world.repo.commit("a package");
    let prefix = path_text(&lab.path("global")).to_owned();
    let mut link = lab.command("npm", &world.repo.join("lib"));
    link.args(["link", "--offline"]).env("npm_config_prefix", &prefix);
    assert_eq!(run(link, None).code, 0);
    let global = lab.path("global/lib/node_modules");
    assert!(global.join("lib").is_symlink());
    let (live, env) = (world.live("lib"), [("npm_config_prefix", prefix.as_str())]);
    let node = || command(&["node", "t.js"]);
    let keys = "env = [\"npm_config_prefix\"]\nscratch = [\"node_modules/\", \"package-lock.json\"]";
    let setup =
        "setup = { command = [\"npm\", \"link\", \"lib\", \"--offline\"], inputs = [\"package.json\"] }";
    world.refused(&node().key(keys).key(setup), &env, &["node_modules/lib", &live, "npm unlink"]);
    let itself = command(&["sh", "-c", "npm link lib --offline && node t.js"]).key(keys);
    world.refused(&itself, &env, &["node_modules/lib", &live]);
    let named = [("NODE_PATH", path_text(&global))];
    world.refused(&node().key("env = [\"NODE_PATH\"]"), &named, &[path_text(&global.join("lib")), &live]);
    // A workspace's own link, in the environment that the live tree has.
    std::fs::create_dir(world.repo.join("node_modules")).expect("made");
    symlink("../lib", world.repo.join("node_modules/lib")).expect("linked");
    let modules = world.live("node_modules");
    world.refused(
        &node().key("env = [\"NODE_PATH\"]").key(&format!("read = [{modules:?}]")),
        &[("NODE_PATH", &modules)],
        &["node_modules/lib", &live],
    );
    world.verdict_is("failed", &node(), &[]);
    std::fs::create_dir(lab.path("node_modules")).expect("made");
    symlink(&live, lab.path("node_modules/lib")).expect("linked");
    // Above the place where slots would lie: they lie elsewhere then.
    world.verdict_is("failed", &node(), &[]);
}

#[test]
fn what_cargo_takes_from_elsewhere_is_found() {
    let lab = Lab::new();
    let world = World::new(&lab);
    let Some(rustup) = lab.rustup_home() else { return };
    let package =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    world.repo.write("own/Cargo.toml", package("own"));
    world.repo.write("own/src/lib.rs", "");
    world.repo.write("src/lib.rs", "");
    let manifest = |more: &str| world.repo.write("Cargo.toml", format!("{}{more}\n", package("app")));
    let words = ["cargo", "tree", "--offline"];
    let keys = "env = [\"RUSTUP_HOME\", \"CARGO_TARGET_DIR\"]\nscratch = [\"Cargo.lock\", \"target/\"]";
    let tree = command(&words).key(keys);
    let own = world.live("own");
    let env = [("RUSTUP_HOME", rustup.as_str())];
    manifest("[dependencies]\nown = { path = \"own\" }");
    world.verdict_is("passed", &tree, &env);
    manifest(&format!("[dependencies]\nown = {{ path = {own:?} }}"));
    world.refused(&tree, &env, &["Cargo.toml", &own]);
    manifest("[dependencies]\nown = \"0.1\"\n[patch.crates-io]\nown = { path = \"../../../../app/own\" }");
    world.refused(&tree, &env, &["Cargo.toml", &own]);
    // By way of a package that is nobody's.
    std::fs::create_dir_all(lab.path("between/src")).expect("made");
    std::fs::write(lab.path("between/src/lib.rs"), "").expect("written");
    let through = format!("{}[dependencies]\nown = {{ path = {own:?} }}\n", package("between"));
    std::fs::write(lab.path("between/Cargo.toml"), through).expect("written");
    manifest(&format!("[dependencies]\nbetween = {{ path = {:?} }}", lab.path("between")));
    world.refused(&tree, &env, &["between/Cargo.toml", &own]);
    manifest("");
    std::fs::create_dir(world.repo.join("target")).expect("made");
    world.refused(&tree, &[env[0], ("CARGO_TARGET_DIR", &world.live("target"))], &["CARGO_TARGET_DIR"]);
    std::fs::create_dir(lab.path(".cargo")).expect("made");
    std::fs::write(lab.path(".cargo/config.toml"), "paths = [\"app/own\"]\n").expect("written");
    // Above the place where slots would lie: they lie elsewhere then.
    world.verdict_is("passed", &tree, &env);
}

#[test]
fn workspaces_of_go_and_build_folders_of_cmake_are_found() {
    let lab = Lab::new();
    let world = World::new(&lab);
    // Both are read and not started, so it needs neither; where one is there, it writes the file itself.
    world.repo.write("go.mod", "module example.org/app\n\ngo 1.21\n");
    if lab.has_tool("go", "version") {
        assert_eq!(tool(&lab, lab.path("").as_path(), &["go", "work", "init", "./app"]), 0);
    } else {
        std::fs::write(lab.path("go.work"), "go 1.21\n\nuse ./app\n").expect("written");
    }
    // Above the place where slots would lie: they lie elsewhere then.
    world.verdict_is("passed", &command(&["true"]), &[]);
    let named = path_text(&lab.path("go.work")).to_owned();
    world.refused(&true_with("env = [\"GOWORK\"]"), &[("GOWORK", &named)], &["go.work", &world.live("")]);
    world.verdict_is("passed", &true_with("env = [\"GOWORK\"]"), &[("GOWORK", "off")]);
    std::fs::remove_file(lab.path("go.work")).expect("removed");
    world.repo.write("go.mod", format!("module x\n\nreplace (\n\ty => {}\n)\n", world.live("src")));
    world.refused(&command(&["true"]), &[], &["go.mod", &world.live("src")]);
    world.repo.rm("go.mod");

    let build = lab.path("build-folder");
    std::fs::create_dir(&build).expect("made");
    world.repo.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.5)\nproject(app NONE)\n");
    if lab.has_tool("cmake", "--version") {
        assert_eq!(tool(&lab, &build, &["cmake", path_text(&world.repo.path)]), 0);
    } else {
        let text = format!("CMAKE_HOME_DIRECTORY:INTERNAL={}\n", world.repo.path.display());
        std::fs::write(build.join("CMakeCache.txt"), text).expect("written");
    }
    let shell = format!("true --build {}", build.display());
    world.verdict_is("passed", &command(&["sh", "-c", &shell]), &[]);
    world.refused(
        &command(&["true", "--build", path_text(&build)]),
        &[],
        &["CMakeCache.txt", &world.live("")],
    );
    let copied = format!("cp -r {} build", build.display());
    world.refused(
        &command(&["sh", "-c", &copied]).key("scratch = [\"build/\"]"),
        &[],
        &["build/CMakeCache.txt"],
    );
}

#[test]
fn variables_arguments_and_links_that_lead_to_another_tree_are_found() {
    let lab = Lab::new();
    let world = World::new(&lab);
    let (src, file) = (world.live("src"), world.live("src/m.py"));
    for name in ["PYTHONPATH", "NODE_PATH", "GOPATH", "CMAKE_PREFIX_PATH", "LIBRARY_PATH", "OWN"] {
        let value = format!("/nowhere:{src}");
        world.refused(&true_with(&format!("env = [{name:?}]")), &[(name, &value)], &[name, &src]);
        world.verdict_is("passed", &true_with(&format!("env = [{name:?}]")), &[(name, "/nowhere:/usr/bin")]);
    }
    // Built from the live tree, though git ignores it; `read` can say that it is environment.
    world.repo.write("build/CMakeCache.txt", "");
    world.repo.write("build/lib/x.so", "");
    let lib = world.live("build/lib");
    let library = || true_with("env = [\"LIBRARY_PATH\"]");
    let env = [("LIBRARY_PATH", lib.as_str())];
    world.refused(&library(), &env, &["LIBRARY_PATH", &lib]);
    world.verdict_is("passed", &library().key(&format!("read = [{:?}]", world.live("build"))), &env);

    world.repo.write("tools/check", "#!/bin/sh\n");
    let path = format!("{}:{}", world.live("tools"), std::env::var("PATH").expect("a PATH"));
    world.refused(&command(&["true"]), &[("PATH", &path)], &["PATH", &world.live("tools")]);

    world.refused(&command(&["true", &file]), &[], &["the argument", &file]);
    world.refused(&command(&["sh", "-c", &format!("cat '{file}'")]), &[], &[&file]);
    world.refused(&command(&["true", &format!("-I{src}")]), &[], &[&src]);
    world.refused(&command(&["true", "../../../../app/src/m.py"]), &[], &[&file]);
    world.refused(&command(&["true", &world.live("not-yet")]), &[], &["the argument"]);
    let scratch = true_with("scratch = [\"out/\"]");
    world.refused(
        &scratch.key(&format!(
            "setup = {{ command = [\"ln\", \"-s\", {src:?}, \"out\"], inputs = [\"docs/**\"] }}"
        )),
        &[],
        &[&src],
    );

    world.repo.git(&["worktree", "add", "-q", "-b", "other", path_text(&lab.path("other"))]);
    let other = lab.path("other/src/m.py");
    world.refused(&command(&["true", path_text(&other)]), &[], &["the worktree", path_text(&other)]);
    let task = lab.path("app.tender/t1/src/m.py");
    assert!(task.is_file());
    world.refused(&command(&["true", path_text(&task)]), &[], &["the worktree of the task t1"]);
    let slot = lab.path("app.tender/.slots/other-0/tree");
    std::fs::create_dir_all(&slot).expect("made");
    world.refused(&command(&["true", path_text(&slot)]), &[], &["another slot, other-0"]);
    world.verdict_is("passed", &command(&["true", "src/m.py", "/usr/bin/true"]), &[]);

    symlink(&src, world.repo.join("shortcut")).expect("linked");
    world.refused(&command(&["true"]), &[], &["the link shortcut", &src]);
    world.repo.rm("shortcut");
    symlink("src/m.py", world.repo.join("shortcut")).expect("linked");
    world.verdict_is("passed", &command(&["true"]), &[]);
    assert!(world.lab.path("app").is_dir());
}
