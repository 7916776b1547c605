//! Tripwires: what a worker alters around its task is seen and said, refuses nothing, and is never run by us.

use crate::support::repo::LINES;
use crate::support::{Contract, Lab, Repo, Verifier};
use std::os::unix::fs::PermissionsExt;

fn risks(repo: &Repo<'_>, task: &str) -> Vec<(String, String)> {
    let report = repo.json(&["report", task]).ok().json;
    let risks = report["risks"].as_array().expect("risks").clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    risks
        .iter()
        .map(|risk| (text(&risk["text"]), text(&risk["ref"])))
        .filter(|(text, _)| text.starts_with("while the task was open"))
        .collect()
}

#[test]
fn each_change_around_a_task_is_a_risk_and_no_refusal() {
    type Act = fn(&Repo<'_>);
    let cases: &[(&str, &[&str], Act)] = &[
        ("config", &["core.sshcommand", "nothing -> "], |r| {
            drop(r.git(&["config", "core.sshCommand", "evil"]))
        }),
        ("hookspath", &["core.hookspath"], |r| drop(r.git(&["config", "core.hooksPath", "../hooks"]))),
        ("hook", &["hook pre-commit", "nothing -> 100644"], |r| {
            r.write(".git/hooks/pre-commit", "#!/bin/sh\n")
        }),
        ("mode", &["hook pre-push", "100644", "-> 100755"], |r| r.chmod(".git/hooks/pre-push", 0o755)),
        ("info", &["info/exclude"], |r| r.write(".git/info/exclude", "*.c\n")),
        ("attributes", &["info/attributes", "nothing -> "], |r| r.write(".git/info/attributes", "* text\n")),
        ("branch", &["refs/heads/topic", "nothing -> "], |r| drop(r.git(&["branch", "topic"]))),
        ("moved", &["refs/heads/side", " -> "], |r| drop(r.git(&["branch", "-f", "side", "HEAD^"]))),
        ("gone", &["refs/heads/side", "-> nothing"], |r| drop(r.git(&["branch", "-D", "side"]))),
        ("stash", &["refs/stash", "nothing -> "], |r| {
            r.write("docs/b.md", "work in progress\n");
            r.git(&["stash", "push", "-q"]);
        }),
        ("head", &["HEAD of the live tree", "refs/heads/main -> refs/heads/side"], |r| {
            drop(r.git(&["switch", "-q", "side"]))
        }),
        ("index", &["index entry README.md"], |r| {
            r.write("README.md", "staged\n");
            r.git(&["add", "README.md"]);
        }),
    ];
    let lab = Lab::new();
    for (name, words, act) in cases {
        let repo = lab.repo(name);
        repo.write("src/c.txt", "second\n");
        repo.commit("second");
        repo.git(&["branch", "side"]);
        repo.write(".git/hooks/pre-push", "#!/bin/sh\n");
        repo.chmod(".git/hooks/pre-push", 0o644);
        let task = repo.open(&Contract::new("t1"));
        task.write("docs/a.md", "x\n");
        repo.json(&["submit", "t1"]).ok();
        assert_eq!(risks(&repo, "t1"), [], "{name}: nothing has changed yet");
        act(&repo);
        repo.json(&["verify", "t1"]).ok();
        let found = risks(&repo, "t1");
        assert!(!found.is_empty() && found.len() <= 3, "{name}: {found:?}");
        let all = |text: &String| words.iter().all(|word| text.contains(word));
        let (_, reference) =
            found.iter().find(|(text, _)| all(text)).unwrap_or_else(|| panic!("{name}: {found:?}"));
        let shown = repo.json(&["show", reference]).ok().json;
        assert_eq!(shown["entries"][0]["tool"], "tripwire");
        // It is told once, and delivery is not refused for it.
        repo.json(&["submit", "t1"]).ok();
        assert_eq!(risks(&repo, "t1"), found, "{name}");
        if *name != "head" {
            repo.json(&["deliver", "t1"]).ok();
            assert_eq!(repo.text("docs/a.md"), "x\n");
        }
    }
}

#[test]
fn our_own_doings_are_no_alarm() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").commit(&repo);
    let contract = |id: &str| Contract::new(id).allowed(&["unit"]);
    let watched = repo.submitted(&contract("t1"), |task| task.write("src/a.txt", "1\n"));
    repo.submitted(&contract("t2"), |task| task.write("src/b.txt", "2\n"));
    repo.json(&["ship", "t2"]).ok();
    repo.json(&["undo", "t2"]).ok();
    repo.changing("t3", &[("docs/a.md", Some("3\n"))]);
    repo.json(&["cancel", "t3"]).ok();
    repo.json(&["gc"]).ok();
    repo.git_out(&["status"]).ok();
    watched.write("src/a.txt", "more\n");
    repo.json(&["ship", "t1"]).ok();
    assert_eq!(risks(&repo, "t1"), []);
}

#[test]
fn a_worker_with_its_worktree_only_is_seen_too() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let task = repo.open(&Contract::new("t1"));
    task.write("docs/a.md", "x\n");
    let inside = Repo::at(&lab, task.worktree.clone());
    inside.git(&["config", "alias.st", "!touch /tmp/never"]);
    inside.git(&["branch", "sneaky"]);
    repo.json(&["ship", "t1"]).ok();
    let found = risks(&repo, "t1");
    assert!(found.iter().any(|(text, _)| text.contains("alias.st")), "{found:?}");
    assert!(found.iter().any(|(text, _)| text.contains("refs/heads/sneaky")), "{found:?}");
    assert!(!found.iter().any(|(text, _)| text.contains("touch")), "values may be secrets: {found:?}");
}

/// Every setting, hook and attribute that could make git run a program, set to this one.
fn plant(repo: &Repo<'_>, trap: &str) {
    for key in [
        "core.fsmonitor",
        "diff.external",
        "core.sshCommand",
        "core.askPass",
        "core.editor",
        "core.pager",
        "pager.status",
        "sequence.editor",
        "gpg.program",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "alias.status",
        "credential.helper",
        "hook.evil.command",
        "interactive.diffFilter",
        "diff.evil.textconv",
        "diff.evil.command",
        "merge.evil.driver",
    ] {
        repo.git(&["config", key, trap]);
    }
    for event in ["pre-commit", "reference-transaction", "post-index-change", "post-checkout"] {
        repo.git(&["config", "--add", "hook.evil.event", event]);
    }
    repo.write(".git/info/attributes", "* diff=evil merge=evil\n");
    for hook in [
        "pre-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-push",
        "fsmonitor-watchman",
        "query-watchman",
        "update",
        "pre-auto-gc",
        "post-applypatch",
    ] {
        repo.write(format!(".git/hooks/{hook}"), format!("#!/bin/sh\nexec '{trap}' {hook}\n"));
        repo.chmod(format!(".git/hooks/{hook}"), 0o755);
    }
}

#[test]
fn nothing_that_was_planted_is_run_by_our_own_git() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").commit(&repo);
    let task = repo.open(&Contract::new("t1").allowed(&["unit", "whitespace"]));
    task.write("src/a.txt", "x\n");
    let (trap, sprung) = (lab.path("trap.sh"), lab.path("sprung"));
    std::fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", sprung.display())).expect("writes");
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let trap = trap.to_str().expect("UTF-8").to_owned();
    plant(&repo, &trap);
    // Setting it up may have sprung some of it.
    let _ = std::fs::remove_file(&sprung);
    repo.json(&["ship", "t1"]).ok();
    repo.json(&["undo", "t1"]).ok();
    repo.changing("t2", &[("docs/a.md", Some("y\n"))]);
    repo.json(&["diff", "t2"]).ok();
    repo.json(&["cancel", "t2"]).ok();
    let live = Contract::new("t3").set("base", serde_json::json!("live"));
    repo.submitted(&live, |task| task.write("docs/b.md", "z\n"));
    repo.json(&["deliver", "t3"]).ok();
    for view in [&["status"][..], &["report", "t1"], &["doctor"], &["recover"], &["gc"]] {
        repo.json(view).ok();
    }
    let ran = std::fs::read_to_string(&sprung).unwrap_or_default();
    assert_eq!(ran, "", "planted programs ran");
    assert_eq!(repo.text("docs/a.md"), LINES);
    assert!(risks(&repo, "t1").iter().any(|(text, _)| text.contains("core.fsmonitor")));
}

#[test]
fn a_password_in_a_key_is_neither_kept_nor_said() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.git(&["config", "url.http://bob:s3cretword@host/.insteadOf", "up:"]);
    repo.open(&Contract::new("t1")).write("docs/a.md", "x\n");
    repo.git(&["config", "http.http://carl:s3cretword@host/.proxy", "x"]);
    repo.json(&["submit", "t1"]).ok();
    let said = risks(&repo, "t1");
    assert!(said.iter().any(|risk| risk.0.contains("carl:<hidden>@host")), "{said:?}");
    let found = std::process::Command::new("grep").args(["-rlF", "s3cretword"]).arg(repo.store()).output();
    let found = found.expect("runs").stdout;
    assert!(found.is_empty(), "{}", String::from_utf8_lossy(&found));
}
