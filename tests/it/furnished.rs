//! A worktree that works: ignored files that are copied or linked into it, a set-up, submodules; none of it is
//! ever captured.

use crate::support::repo::path_text;
use crate::support::verifier::Counts;
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const IGNORED: &str = ".env*\nnode_modules/\n.venv/\nconfig/\n";

/// A repository whose base has this configuration, and ignored files of all kinds.
fn repo_with<'l>(lab: &'l Lab, config: &str) -> Repo<'l> {
    let repo = lab.repo("app");
    repo.write(".gitignore", IGNORED);
    repo.write(".tender/config.toml", config);
    repo.commit("configuration");
    repo.write(".env", "API_KEY=s3cr3t-value-1\nMODE=development\n");
    repo.chmod(".env", 0o600);
    repo.write("node_modules/a/index.js", "a\n");
    repo.write("node_modules/.bin/tool", "#!/bin/sh\n");
    repo.chmod("node_modules/.bin/tool", 0o755);
    repo.link("node_modules/b", "a");
    repo.write(".venv/bin/python", "python\n");
    repo.write("config/local.env", "x\n");
    repo.write("config/deep/other", "y\n");
    repo
}

fn brought(task: &Task) -> &Value {
    &task.opened["brought"]
}

#[test]
fn ignored_files_are_copied_and_linked_and_none_is_ever_captured() {
    let lab = Lab::new();
    let repo = repo_with(
        &lab,
        "[worktree]\ncopy = [\".env\", \"node_modules/\", \"**/*.env\"]\nlink = [\".venv\"]\n",
    );
    let before = repo.snapshot();
    let task = repo.open(&Contract::new("t1").scope(&["**"]));
    before.same(&repo.snapshot());
    assert_eq!(task.read(".env"), repo.read(".env"));
    assert_eq!(std::fs::read_link(task.worktree.join("node_modules/b")).expect("a link").to_str(), Some("a"));
    assert_eq!(std::fs::read_link(task.worktree.join(".venv")).expect("a link"), repo.join(".venv"));
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        task.worktree.join(path).metadata().expect("there").permissions().mode() & 0o777
    };
    assert_eq!((mode(".env"), mode("node_modules/.bin/tool") & 0o100), (0o600, 0o100));
    assert!(task.exists("config/local.env") && !task.exists("config/deep"));
    assert_eq!((&brought(&task)["copied"], &brought(&task)["linked"]), (&json!(5), &json!(1)));
    assert_eq!(brought(&task)["setup"], Value::Null);
    assert_eq!(brought(&task)["bytes"], Value::Null, "only where it was asked for");
    assert_eq!(task.opened["lacks"]["ignored"], json!(["config"]), "{:#}", task.opened);
    // Whatever the worker makes of the rules.
    task.write(".gitignore", "nothing\n");
    task.write("src/a.txt", "work\n");
    task.write("config/new", "work, since nobody ignores it any more\n");
    let candidate = repo.json(&["submit", "t1"]).ok();
    let paths: Vec<String> = candidate.changes().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, [".gitignore", "config/new", "src/a.txt"]);
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.text(".env"), "API_KEY=s3cr3t-value-1\nMODE=development\n");
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], json!(["t1"]));
    assert!(
        !task.worktree.exists() && repo.exists(".venv/bin/python") && repo.exists("node_modules/a/index.js")
    );
}

#[test]
fn a_worktreeinclude_file_of_the_base_is_read_as_git_reads_it() {
    let lab = Lab::new();
    let repo = repo_with(&lab, "");
    repo.write(".worktreeinclude", "# what agents need\n.env*\n!.env.example\n/config/**/other\nsrc/\n");
    repo.commit("include");
    repo.write(".env.local", "1\n");
    repo.write(".env.example", "2\n");
    // What the live tree says counts for nothing.
    repo.write(".worktreeinclude", "node_modules\n");
    repo.write(".tender/config.toml", "[worktree]\ncopy = [\"node_modules/\"]\n");
    let file = Contract::new("t1").file(&lab);
    let shown = repo.tender(&["open", path_text(&file), "--size"]).ok().text();
    assert!(shown.contains("brought   3 ignored files copied") && shown.contains("bytes written"), "{shown}");
    let task = Task::of(&repo.json(&["open", path_text(&file), "--size"]).ok().json);
    assert!(task.exists(".env.local") && task.exists(".env") && task.exists("config/deep/other"));
    assert!(!task.exists(".env.example") && !task.exists("node_modules") && !task.exists("config/local.env"));
    let cost = |key: &str| brought(&task)[key].as_u64().expect("a number");
    assert_eq!(cost("bytes") + cost("shared"), 47 - 3, "{:#}", task.opened);
}

#[test]
fn what_the_base_has_or_does_not_ignore_is_left_and_no_link_is_followed() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("build/kept.txt", "tracked\n");
    repo.link("out", "docs");
    repo.git(&["add", "-f", "build/kept.txt"]);
    repo.commit("base");
    repo.write(".tender/config.toml", "[worktree]\ncopy = [\"build/\", \"local.txt\", \"out/\", \"up\", \"tracked.txt\"]\nlink = [\"docs\", \"gone\"]\n");
    repo.write(".gitignore", "build/\nup\n");
    repo.commit("configuration");
    repo.write("build/kept.txt", "tracked, and edited by the user\n");
    repo.write("build/made.o", "ignored\n");
    repo.link("up", "../../secret");
    repo.git(&["rm", "-q", "--cached", "out"]);
    repo.rm("out");
    repo.write(".gitignore", "build/\nup\nlocal.txt\nout/\n");
    repo.write("local.txt", "ignored by the user alone\n");
    repo.write("out/x", "would be written through a link\n");
    let task = repo.open(&Contract::new("t1").scope(&["**"]));
    assert_eq!(task.read("build/kept.txt"), b"tracked\n");
    assert_eq!(task.read("build/made.o"), b"ignored\n");
    assert!(!task.exists("local.txt") && !task.exists("up") && !task.exists("docs/x"));
    let left: Vec<(String, String)> = brought(&task)["left"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|left| ["path", "why"].map(|key| left[key].as_str().expect("text").to_owned()).into())
        .collect();
    let why = |path: &str| left.iter().find(|(left, _)| left == path).map(|(_, why)| why.as_str());
    assert_eq!(why("docs"), Some("git does not ignore it"));
    assert_eq!(why("gone"), Some("it is not there"));
    assert_eq!(why("local.txt"), Some("the base does not ignore it"));
    assert_eq!(why("up"), Some("it is a link out of the repository"));
    assert_eq!(why("out"), Some("the base has something else in its place"), "{left:?}");
    let candidate = repo.json(&["submit", "t1"]).ok();
    assert_eq!(candidate.changes(), [], "nothing of it is work");
}

/// A configuration with a set-up that counts its runs in a file.
fn with_setup(lab: &Lab, script: &str, more: &str) -> String {
    let runs = lab.path("runs");
    let script = format!("echo run >> '{}'; {script}", runs.display());
    format!(
        "[worktree]\nsetup = {{ command = [\"sh\", \"-c\", {}], inputs = [\"lock\"]{more} }}\n",
        json!(script)
    )
}

fn runs(lab: &Lab) -> usize {
    crate::support::verifier::runs(&lab.path("runs"))
}

#[test]
fn a_setup_runs_once_for_the_same_inputs() {
    let lab = Lab::new();
    let repo = repo_with(&lab, &with_setup(&lab, "mkdir -p node_modules/dep; cp lock node_modules/dep/", ""));
    repo.write("lock", "1\n");
    repo.commit("lock");
    let first = repo.open(&Contract::new("t1").scope(&["**"]));
    assert_eq!((brought(&first)["setup"].as_str(), runs(&lab)), (Some("ran"), 1), "{:#}", first.opened);
    let second = repo.open(&Contract::new("t2").scope(&["**"]));
    assert_eq!((brought(&second)["setup"].as_str(), runs(&lab)), (Some("cached"), 1), "{:#}", second.opened);
    assert_eq!(second.read("node_modules/dep/lock"), b"1\n");
    repo.write("src/b.txt", "another commit\n");
    repo.commit("another file");
    repo.open(&Contract::new("t3").scope(&["**"]));
    assert_eq!(runs(&lab), 1, "no input of it has changed");
    repo.write("lock", "2\n");
    repo.commit("bump");
    let bumped = repo.open(&Contract::new("t4").scope(&["**"]));
    assert_eq!((bumped.read("node_modules/dep/lock"), runs(&lab)), (b"2\n".to_vec(), 2));
    bumped.write(".gitignore", "\n");
    bumped.write("src/a.txt", "work\n");
    assert_eq!(repo.json(&["submit", "t4"]).ok().changes().len(), 2, "what it made is no work");
    // Open tasks use both; afterwards nobody does, and they are old.
    for task in ["t1", "t2", "t3", "t4"] {
        repo.json(&["cancel", task]).ok();
    }
    assert_eq!(repo.json(&["gc"]).ok().json["setups"], json!(0), "they were just used");
    for entry in std::fs::read_dir(repo.store().join("setups")).expect("the results") {
        let list = entry.expect("an entry").path().join("places.json");
        let file = std::fs::File::options().append(true).open(&list).expect("opens");
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(40 * 86_400)).expect("set");
    }
    assert_eq!(repo.json(&["gc"]).ok().json["setups"], json!(2));
}

#[test]
fn a_setup_that_fails_leaves_a_task_and_says_what_it_said() {
    let lab = Lab::new();
    let repo =
        repo_with(&lab, &with_setup(&lab, "mkdir node_modules; echo no such package s3cr3t >&2; exit 3", ""));
    repo.write("lock", "1\n");
    repo.commit("lock");
    let task = repo.open(&Contract::new("t1"));
    assert_eq!(brought(&task)["setup"], "failed");
    let notes = task.opened["notes"].to_string();
    assert!(notes.contains("exit code 3") && notes.contains("no such package"), "{notes}");
    let again = repo.open(&Contract::new("t2"));
    assert_eq!((brought(&again)["setup"].as_str(), runs(&lab)), (Some("failed"), 2), "a failure is not kept");
}

#[test]
fn a_setup_has_the_network_only_where_the_policy_leaves_it_open() {
    let lab = Lab::new();
    let setup = with_setup(&lab, "echo \"$HTTPS_PROXY\" > node_modules", ", network = true");
    let repo = repo_with(&lab, &format!("[policy]\nnetwork = \"disabled\"\n{setup}"));
    repo.write(".gitignore", "node_modules\n");
    repo.write(".tender/verifiers/unit/verifier.toml", "protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\nsetup = { command = [\"true\"], inputs = [\"lock\"], network = true }\n");
    repo.commit("rules");
    let refused = repo.open_fails(&Contract::new("t1"));
    assert_eq!(refused.fails("permission.denied")["subject"], "worktree.setup.network");
    let refused = repo.open_fails(&Contract::new("t1").allowed(&["unit"]));
    assert_eq!(refused.fails("permission.denied")["subject"], "setup.network");
    assert_eq!(runs(&lab), 0);
    repo.write(".tender/config.toml", setup);
    repo.commit("open");
    let file = Contract::new("t1").file(&lab);
    let env = [("HTTPS_PROXY", "http://proxy.example:3128")];
    let task = Task::of(&repo.json_in("", &env, None, &["open", path_text(&file)]).ok().json);
    assert_eq!(task.read("node_modules"), b"http://proxy.example:3128\n");
}

#[test]
fn an_open_that_is_killed_in_its_setup_leaves_nothing_that_counts_as_whole() {
    let lab = Lab::new();
    let gate = lab.path("gate");
    let script = format!(
        "mkdir -p node_modules; echo half > node_modules/x; [ -e '{}' ] || sleep 60; echo whole > node_modules/x",
        gate.display()
    );
    let repo = repo_with(&lab, &with_setup(&lab, &script, ""));
    repo.rm("node_modules");
    repo.write("lock", "1\n");
    repo.commit("lock");
    let file = Contract::new("t1").file(&lab);
    let mut command = lab.tender_command(&repo.path);
    command.args(["open", path_text(&file)]).stdout(std::process::Stdio::null());
    let mut child = command.spawn().expect("starts");
    let half = lab.path("app.tender/t1/node_modules/x");
    let until = Instant::now() + Duration::from_secs(60);
    while !half.exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    std::fs::write(&gate, "").expect("written");
    let task = repo.open(&Contract::new("t1"));
    assert_eq!((brought(&task)["setup"].as_str(), runs(&lab)), (Some("ran"), 2));
    assert_eq!(task.read("node_modules/x"), b"whole\n");
    let second = repo.open(&Contract::new("t2"));
    assert_eq!(
        (brought(&second)["setup"].as_str(), second.read("node_modules/x")),
        (Some("cached"), b"whole\n".to_vec())
    );
}

#[test]
fn submodules_come_from_the_repository_itself() {
    let lab = Lab::new();
    let library = lab.repo("library");
    let repo = lab.repo("app");
    repo.git(&["submodule", "add", "-q", path_text(&library.path), "deps/vendored"]);
    repo.commit("submodule");
    std::fs::remove_dir_all(&library.path).expect("the network is gone");
    let config = repo.read(".git/config");
    let task = repo.open(&Contract::new("t1").scope(&["**"]));
    assert!(task.exists("deps/vendored/docs/a.md"), "{:#}", task.opened);
    assert_eq!(task.opened["brought"]["submodules"], json!(["deps/vendored"]));
    assert_eq!(task.opened["lacks"]["submodules"], json!([]));
    assert_eq!(repo.read(".git/config"), config, "the user's configuration is as it was");
    let inside = Repo::at(&lab, task.worktree.join("deps/vendored"));
    assert_eq!(inside.git(&["config", "remote.origin.url"]), path_text(&library.path));
    task.write("src/a.txt", "work\n");
    assert_eq!(repo.json(&["submit", "t1"]).ok().changes().len(), 1);
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], json!(["t1"]));
    repo.fsck_gc();
}

#[test]
fn values_of_copied_settings_are_in_no_log() {
    let lab = Lab::new();
    let repo = repo_with(&lab, "[worktree]\ncopy = [\".env\"]\n");
    let env = repo.join(".env");
    Verifier::new("unit")
        .counts(Counts::Nothing)
        .script(&format!("cat '{}'; exit 1\n", env.display()))
        .commit(&repo);
    let task = repo.open(&Contract::new("t1").allowed(&["unit"]));
    task.write("src/a.txt", "work\n");
    let answer = repo.json(&["ship", "t1"]);
    let evidence =
        repo.json(&["report", "t1"]).ok().row("unit")["evidence"].as_str().expect("a run").to_owned();
    let shown = repo.tender(&["show", &evidence]).ok().text();
    assert!(shown.contains("API_KEY=[redacted]") && shown.contains("MODE=development"), "{shown}");
    assert!(!answer.json.to_string().contains("s3cr3t-value-1"), "{:#}", answer.json);
}

#[test]
fn a_copied_file_that_somebody_changed_keeps_its_worktree() {
    let lab = Lab::new();
    let repo = repo_with(&lab, "[worktree]\ncopy = [\".env\", \"config/local.env\"]\n");
    let task = repo.open(&Contract::new("t1"));
    task.write("config/local.env", "changed here\n");
    repo.json(&["cancel", "t1"]).ok();
    let kept = repo.json(&["gc"]).ok();
    assert!(kept.json["kept"].to_string().contains("config/local.env"), "{:#}", kept.json);
    std::fs::write(task.worktree.join("config/local.env"), "x\n").expect("written");
    assert_eq!(repo.json(&["gc"]).ok().json["removed"], json!(["t1"]));
}
