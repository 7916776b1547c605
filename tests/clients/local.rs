//! Managers of git's hooks: each has `git-tender check` as one of its hooks, and the hooks of pre-commit's
//! configuration are run by `git-tender check`.

use crate::support::lab::TENDER;
use crate::support::{Lab, Out, Repo, skip};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Where `tests/clients/install` puts a manager; says so where it has not.
fn manager(name: &str) -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("clients").join("bin").join(name);
    let there = place.exists();
    if !there {
        skip(&format!("{name} is not installed; tests/clients/install does it"));
    }
    there.then_some(place)
}

/// A command with the managers and `git-tender` on its path.
fn with_tools(repo: &Repo<'_>, program: &Path, args: &[&str], env: &[(&str, &str)]) -> Out {
    let mut command = repo.lab.command(program, &repo.path);
    let clients = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("clients/bin");
    let ours = Path::new(TENDER).parent().expect("a folder").to_path_buf();
    let path = std::env::var_os("PATH").expect("PATH is set");
    let path = [clients, ours].into_iter().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(path).expect("joins"));
    command.args(args).envs(env.iter().copied());
    crate::support::lab::run(command, None)
}

const MANIFEST: &str = "protocol = 1\nid = \"good\"\ncommand = [\"sh\", \".tender/verifiers/good/run.sh\"]\n\
                        closure = [\".tender/verifiers/good/run.sh\"]\ninputs = [\"src/**\"]\n";

/// One committed verifier: every file of `src/` holds the word `good`.
fn repo_with_verifier<'l>(lab: &'l Lab) -> Repo<'l> {
    let repo = lab.repo("app");
    repo.write("src/a.txt", "good\n");
    repo.write("src/b.txt", "good\n");
    repo.write(".tender/verifiers/good/verifier.toml", MANIFEST);
    let script =
        "for f in src/*; do grep -q good \"$f\" || { echo \"$f:1:1: error: not good\"; exit 1; }; done\n";
    repo.write(".tender/verifiers/good/run.sh", script);
    repo.commit("files");
    repo
}

/// What is staged decides, whatever else lies in the files; and what else is staged does not, where one file
/// is committed.
fn commits_as_it_should(repo: &Repo<'_>) {
    let commit = |args: &[&str]| {
        let args = [&["commit", "-q", "-m", "message"], args].concat();
        with_tools(repo, Path::new("git"), &args, &[])
    };
    repo.write("src/a.txt", "staged and not so\n");
    repo.git(&["add", "-A"]);
    let refused = commit(&[]);
    assert!(refused.code != 0 && refused.all().contains("src/a.txt"), "{}", refused.all());
    repo.write("src/a.txt", "good and staged\n");
    repo.git(&["add", "-A"]);
    commit(&[]).ok();
    repo.write("src/a.txt", "good by itself\n");
    repo.write("src/b.txt", "staged and not so\n");
    repo.git(&["add", "src/b.txt"]);
    commit(&["src/a.txt"]).ok();
    assert_eq!(repo.git(&["diff", "--cached", "--name-only"]), "src/b.txt");
    assert_eq!(repo.text("src/b.txt"), "staged and not so\n");
}

#[test]
fn pre_commit_and_prek_have_it_among_their_hooks() {
    for name in ["pre-commit", "prek"] {
        let Some(program) = manager(name) else { continue };
        let lab = Lab::new();
        let repo = repo_with_verifier(&lab);
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(".pre-commit-hooks.yaml");
        let manifest = manifest.to_str().expect("UTF-8");
        with_tools(&repo, &program, &["validate-manifest", manifest], &[]).ok();
        // What stands in the documentation.
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/local.md");
        let page = std::fs::read_to_string(page).expect("the page");
        let (_, after) = page.split_once("```yaml\n").expect("an example");
        repo.write(".pre-commit-config.yaml", after.split("```").next().expect("its end"));
        repo.commit("configuration");
        with_tools(&repo, &program, &["install"], &[]).ok();
        commits_as_it_should(&repo);
    }
}

#[test]
fn lefthook_and_husky_call_it() {
    if let Some(program) = manager("lefthook") {
        let lab = Lab::new();
        let repo = repo_with_verifier(&lab);
        let config = "pre-commit: {jobs: [{name: tender, run: git-tender check --staged}]}\n";
        repo.write("lefthook.yml", config);
        repo.commit("configuration");
        with_tools(&repo, &program, &["install"], &[]).ok();
        commits_as_it_should(&repo);
    }
    if let Some(program) = manager("husky") {
        let lab = Lab::new();
        let repo = repo_with_verifier(&lab);
        repo.write(".husky/pre-commit", "git-tender check --staged\n");
        repo.commit("configuration");
        let program = program.canonicalize().expect("a program");
        with_tools(&repo, Path::new("node"), &[program.to_str().expect("UTF-8")], &[]).ok();
        assert!(repo.git(&["config", "core.hooksPath"]).starts_with(".husky"));
        commits_as_it_should(&repo);
    }
}

const HOOKS: &str = "\
repos:
- repo: local
  hooks:
  - id: no-bad
    name: no bad words
    entry: sh -c '! grep -Hn bad \"$@\"' --
    language: system
    files: ^src/
  - id: mends
    name: takes blanks away
    entry: sh -c 'for f; do sed \"s/ *$//\" \"$f\" > \"$f.new\"; cmp -s \"$f\" \"$f.new\" || cp \"$f.new\" \"$f\"; rm \"$f.new\"; done' --
    language: system
";

/// No file of ours is there: the hooks are found, each has a row, and only what is staged counts.
#[test]
fn the_hooks_of_pre_commits_configuration_are_run() {
    for name in ["pre-commit", "prek"] {
        let Some(program) = manager(name) else { continue };
        let lab = Lab::new();
        let repo = lab.repo("app");
        repo.write(".pre-commit-config.yaml", HOOKS);
        repo.write("src/old.txt", "bad since ever\n");
        repo.commit("hooks");
        // Only one of the two tools is on the path.
        let folder = lab.path("tools");
        std::fs::create_dir(&folder).expect("made");
        let started = format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display());
        std::fs::write(folder.join(name), started).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(name), mode).expect("set");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        let check = |env: &[(&str, &str)], args: &[&str]| {
            let env = [&[("PATH", path.as_str())], env].concat();
            repo.json_in("", &env, None, &[&["check"], args].concat())
        };
        repo.write("src/a.txt", "fine\n");
        repo.git(&["add", "-A"]);
        repo.write("src/a.txt", "bad, but not staged \n");
        let answer = check(&[], &[]).ok();
        assert_eq!((answer.verdict("hook.no-bad"), answer.verdict("hook.mends")), ("passed", "passed"));
        let note = answer.json["checked"]["notes"][0].as_str().expect("a note").to_owned();
        assert!(note.contains("2 hooks") && note.ends_with(&format!("run by {name}")), "{note}");
        assert_eq!(check(&[], &[]).ok().row("hook.no-bad")["reused"], true);
        assert_eq!(check(&[], &["--all"]).result(1).verdict("hook.no-bad"), "failed", "the old file too");
        let before = repo.snapshot();
        repo.write("src/a.txt", "bad and with blanks  \n");
        repo.git(&["add", "-A"]);
        assert_ne!(before, repo.snapshot());
        let before = repo.snapshot();
        let answer = check(&[], &[]).result(1);
        assert_eq!((answer.verdict("hook.no-bad"), answer.verdict("hook.mends")), ("failed", "failed"));
        before.same(&repo.snapshot());
        let answer = check(&[("SKIP", "no-bad,mends")], &[]).ok();
        assert_eq!(answer.reason("hook.no-bad"), "SKIP names it");
        // Inside of such a hook it is one of them.
        let inside = check(&[("PRE_COMMIT", "1")], &[]).ok();
        assert_eq!(inside.json["requirements"].as_array().expect("rows").len(), 0);
    }
}

const STAGES: &str = "\
repos:
- repo: local
  hooks:
  - id: message
    name: reads the message
    entry: sh -c 'grep -q ticket \"$1\"' --
    language: system
    stages: [commit-msg]
  - id: push
    name: reads what is pushed
    entry: sh -c 'exit 1'
    language: system
    always_run: true
    stages:
    - pre-push
  - id: mends
    name: takes blanks away
    entry: sh -c 'for f; do if grep -q \" $\" \"$f\"; then sed \"s/ *$//\" \"$f\" > \"$f.new\" && cat \"$f.new\" > \"$f\"; rm \"$f.new\"; fi; done' --
    language: system
    files: ^src/
";

/// A hook's fix goes to index and files; hooks for other times are told; and neither needs a home.
#[test]
fn what_a_hook_mends_is_taken_and_hooks_of_other_times_are_told() {
    for name in ["pre-commit", "prek"] {
        let Some(program) = manager(name) else { continue };
        let lab = Lab::new();
        let repo = lab.repo("app");
        repo.write(".pre-commit-config.yaml", STAGES);
        repo.write("src/a.txt", "one\ntwo\nthree\nfour\n");
        repo.commit("hooks");
        let folder = lab.path("tools");
        std::fs::create_dir(&folder).expect("made");
        let started = format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display());
        std::fs::write(folder.join(name), started).expect("written");
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755)).expect("set");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        for home in [lab.path("home").to_str().expect("UTF-8"), ""] {
            let check = |args: &[&str]| {
                repo.json_in(
                    "",
                    &[("PATH", path.as_str()), ("HOME", home)],
                    None,
                    &[&["check"], args].concat(),
                )
            };
            repo.write("src/a.txt", format!("one, with blanks {home}  \ntwo\nthree\nfour\n"));
            repo.git(&["add", "-A"]);
            repo.write("src/a.txt", format!("one, with blanks {home}  \ntwo\nthree\nfour, not staged  \n"));
            let before = repo.snapshot();
            let answer = check(&[]).result(1);
            assert_eq!(answer.verdict("hook.mends"), "failed", "HOME={home:?}");
            assert_eq!((answer.verdict("hook.message"), answer.verdict("hook.push")), ("not_run", "not_run"));
            assert!(answer.reason("hook.message").contains("commit-msg"), "{:#}", answer.json);
            before.same(&repo.snapshot());
            let answer = check(&["--fix"]).ok();
            assert_eq!(answer.verdict("hook.mends"), "passed");
            let fixed = format!("one, with blanks {home}").trim_end().to_owned();
            assert_eq!(repo.text("src/a.txt"), format!("{fixed}\ntwo\nthree\nfour, not staged  \n"));
            assert_eq!(repo.git(&["show", ":src/a.txt"]), format!("{fixed}\ntwo\nthree\nfour"));
            repo.git(&["reset", "-q", "--hard"]);
        }
    }
}

/// Who keeps pre-commit's own hooks for the message and the push has both: each is called by git with what git
/// gives it.
#[test]
fn hooks_of_other_times_stay_with_their_tool() {
    for name in ["pre-commit", "prek"] {
        let Some(program) = manager(name) else { continue };
        let lab = Lab::new();
        let repo = lab.repo("app");
        repo.write(".pre-commit-config.yaml", STAGES);
        repo.commit("hooks");
        with_tools(
            &repo,
            &program,
            &["install", "--hook-type", "commit-msg", "--hook-type", "pre-push"],
            &[],
        )
        .ok();
        repo.json(&["init", "--hook"]).ok();
        repo.write("src/a.txt", "blanks \n");
        repo.git(&["add", "-A"]);
        let commit =
            |message: &str| with_tools(&repo, Path::new("git"), &["commit", "-q", "-m", message], &[]);
        let refused = commit("with a ticket");
        assert!(refused.code != 0 && refused.all().contains("hook.mends"), "{}", refused.all());
        with_tools(&repo, Path::new("git-tender"), &["check", "--fix"], &[]).ok();
        let refused = commit("without");
        assert!(refused.code != 0 && refused.all().contains("reads the message"), "{}", refused.all());
        commit("with a ticket").ok();
        let elsewhere = lab.repo_with("elsewhere", &["--bare"]);
        let there = elsewhere.path.to_str().expect("UTF-8").to_owned();
        let pushed = with_tools(&repo, Path::new("git"), &["push", "-q", &there, "main"], &[]);
        assert!(pushed.code != 0 && pushed.all().contains("reads what is pushed"), "{}", pushed.all());
    }
}
