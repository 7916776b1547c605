//! The mode `branch`: a commit without a checkout, and a branch that only moves from where we left it.

use crate::support::repo::lines_with;
use crate::support::snapshot::same_tree;
use crate::support::{Contract, Lab, Repo, Snapshot, Verifier, shape};
use serde_json::{Value, json};

pub fn publication_shape(mode: &str) -> Value {
    json!({
        "schema": "git-tender/delivery/v1", "taskId": "$text", "state": "$word", "mode": mode, "branch": "$text",
        "commit": "$oid", "paths": [{"path": "$any", "outcome": "$word"}]
    })
}

/// A task that is ready to be delivered by a commit; its candidate changes line 5 of `docs/a.md` and adds a
/// file of its name.
pub fn ready(repo: &Repo<'_>, id: &str, delivery: Value) {
    repo.submitted(&Contract::new(id).committed(delivery), |task| {
        task.write("docs/a.md", lines_with(5, &format!("five of {id}")));
        task.write(format!("new/{id}.txt"), "new\n");
    });
}

/// Files, index, stash and HEAD are what they were; refs are not compared.
#[track_caller]
pub fn untouched(before: &Snapshot, after: &Snapshot) {
    assert_eq!(before.index, after.index);
    assert_eq!(before.flags, after.flags);
    assert_eq!(before.stash, after.stash);
    assert_eq!(before.head, after.head);
    same_tree(&before.files, &after.files);
}

fn at(repo: &Repo<'_>, branch: &str) -> Option<String> {
    let out = repo.git_out(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]);
    (out.code == 0).then(|| out.text().trim_end().to_owned())
}

fn branch(repo: &Repo<'_>, name: &str) -> String {
    at(repo, name).unwrap_or_else(|| panic!("no branch {name}"))
}

/// Delivering is refused with this reason, and nothing at all changes.
#[track_caller]
fn refused(repo: &Repo<'_>, args: &[&str], reason: &str) -> Value {
    let before = repo.snapshot();
    let answer = repo.json(args);
    let error = answer.fails("delivery.conflict").clone();
    assert_eq!(answer.code, 3);
    assert_eq!(error["details"]["reason"], reason, "{error:#}");
    assert!(error["details"].get("expected").is_some() && error["details"].get("actual").is_some());
    before.same(&repo.snapshot());
    error
}

#[test]
fn a_commit_is_made_on_a_branch_and_nothing_is_checked_out() {
    let lab = Lab::new();
    let repo = lab.repo("app").with(&Verifier::new("unit").inputs(&["**"]));
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write("README.md", "work in progress\n");
    repo.write("src/a.txt", "staged\n");
    repo.git(&["add", "src/a.txt"]);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]).committed(json!("branch")), |task| {
        task.write("docs/a.md", lines_with(5, "five"));
        task.rm("docs/b.md");
    });
    repo.json(&["deliver", "t1"]).fails("evidence.missing");
    assert_eq!(at(&repo, "tender/t1"), None);
    let verified = repo.json(&["verify", "t1"]).ok();
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]).ok();
    shape::check(&answer.json, &publication_shape("branch"));
    assert_eq!(answer.json["state"], "completed");
    assert!(answer.json.get("remote").is_none());
    let outcome = |path: &str| (path.to_owned(), "applied".to_owned());
    assert_eq!(answer.outcomes(), [outcome("docs/a.md"), outcome("docs/b.md")]);
    untouched(&before, &repo.snapshot());

    let commit = branch(&repo, "tender/t1");
    assert_eq!(answer.json["commit"], commit.as_str());
    assert_eq!(answer.json["branch"], "tender/t1");
    assert_eq!(repo.git(&["rev-parse", "tender/t1^"]), base);
    assert_eq!(repo.git(&["diff", "--name-status", "main", "tender/t1"]), "M\tdocs/a.md\nD\tdocs/b.md");
    let people = repo.git(&["show", "-s", "--format=%an <%ae> %cn <%ce>", "tender/t1"]);
    assert_eq!(people, "Test Person <person@example.org> Test Person <person@example.org>");
    let message = repo.git(&["show", "-s", "--format=%B", "tender/t1"]);
    let sha256 =
        repo.json(&["report", "t1"]).ok().json["contract"]["sha256"].as_str().expect("text").to_owned();
    let evidence = verified.row("unit")["evidence"].as_str().expect("text");
    let log = repo.tender(&["log", "t1", "--format", "json"]).ok().text();
    let rows: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    let planned = rows.iter().rposition(|row| row["result"]["record"] == "publishing").expect("a plan");
    let head = &rows[planned - 1];
    let head = format!("{}:{}", head["seq"], head["hash"].as_str().expect("text"));
    assert_eq!(
        message.trim_end(),
        format!(
            "a change for a test\n\nTender-Task: t1\nTender-Contract: {sha256}\nTender-Evidence: {evidence}\nTender-Ledger: {head}"
        )
    );
    let report = repo.json(&["report", "t1"]).ok();
    shape::check(&report.json["delivery"], &publication_shape("branch"));
    assert_eq!(report.json["delivery"]["commit"], commit.as_str());

    // Again: nothing is done.
    let again = repo.json(&["deliver", "t1"]).ok();
    assert!(again.outcomes().iter().all(|outcome| outcome.1 == "already"));
    assert_eq!(branch(&repo, "tender/t1"), commit);
    assert!(repo.tender(&["report", "t1"]).ok().text().contains("tender/t1"));
    repo.fsck_gc();
    repo.json(&["gc"]).ok();
    assert_eq!(repo.git(&["for-each-ref", "refs/tender"]), "");
    repo.fsck_gc();
    assert_eq!(branch(&repo, "tender/t1"), commit);
}

#[test]
fn branch_and_message_of_the_contract_are_used() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let message = "docs: say five\n\nAs was asked for.\n\nReviewed-by: A <a@example.org>\n";
    ready(&repo, "t1", json!({"mode": "branch", "branch": "topic/ümlaut", "message": message}));
    // A configuration that would sign, run programs and add trailers of its own.
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.git(&["config", "gpg.program", "false"]);
    repo.git(&["config", "trailer.sign.command", "echo somebody"]);
    repo.git(&["config", "trailer.separators", "#"]);
    repo.write(".git/hooks/reference-transaction", "#!/bin/sh\nexit 1\n");
    repo.chmod(".git/hooks/reference-transaction", 0o755);
    let answer = repo.json(&["deliver", "t1"]).ok();
    assert_eq!(answer.json["branch"], "topic/ümlaut");
    repo.rm(".git/hooks/reference-transaction");
    let text = repo.git(&["show", "-s", "--format=%B", "topic/ümlaut"]);
    assert!(
        text.starts_with(
            "docs: say five\n\nAs was asked for.\n\nReviewed-by: A <a@example.org>\nTender-Task: t1\n"
        ),
        "{text}"
    );
    assert!(!text.contains("somebody"), "{text}");
}

#[test]
fn a_branch_of_somebody_elses_is_not_moved() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let head = repo.git(&["rev-parse", "HEAD"]);
    ready(&repo, "t1", json!({"mode": "branch", "branch": "topic"}));
    repo.git(&["branch", "topic"]);
    let error = refused(&repo, &["deliver", "t1"], "moved");
    assert_eq!(error["details"]["expected"], Value::Null);
    assert_eq!(error["details"]["actual"], head.as_str());
    refused(&repo, &["deliver", "t1", "--dry-run"], "moved");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "verified", "it can still be delivered");
    repo.git(&["branch", "-D", "topic"]);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn a_branch_that_somebody_works_on_is_not_moved() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    ready(&repo, "t1", json!({"mode": "branch", "branch": "topic"}));
    let first = repo.json(&["deliver", "t1"]).ok().json["commit"].clone();
    ready(&repo, "t2", json!({"mode": "branch", "branch": "topic"}));
    let other = lab.path("other");
    repo.git(&["worktree", "add", "-q", other.to_str().expect("UTF-8"), "topic"]);
    let error = refused(&repo, &["deliver", "t2"], "checked_out");
    assert!(error["message"].as_str().expect("text").contains("other"), "{error:#}");
    refused(&repo, &["undo", "t1"], "checked_out");
    // HEAD is detached while a rebase runs, and comes back to the branch.
    let there = Repo::at(&lab, other);
    there.write("x.txt", "x\n");
    there.git(&["add", "-A"]);
    there.git(&["stash"]);
    let rebase =
        there.git_out(&["-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-i", "HEAD~1"]).ok();
    assert!(there.git_out(&["symbolic-ref", "-q", "HEAD"]).code != 0, "{}", rebase.all());
    refused(&repo, &["deliver", "t2"], "checked_out");
    there.git(&["rebase", "--abort"]);
    there.git(&["switch", "-q", "--detach"]);
    assert_eq!(branch(&repo, "topic"), first.as_str().expect("text"));
    repo.json(&["deliver", "t2"]).ok();
    // An unborn branch is somebody's too: the commit would appear under their feet.
    ready(&repo, "t3", json!({"mode": "branch", "branch": "unborn"}));
    there.git(&["switch", "-q", "--orphan", "unborn"]);
    refused(&repo, &["deliver", "t3"], "checked_out");
    // A name that stands for another branch.
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/topic"]);
    ready(&repo, "t4", json!({"mode": "branch", "branch": "alias"}));
    let error = repo.json(&["deliver", "t4"]);
    error.fails("delivery.conflict");
}

#[test]
fn the_name_of_another_branch_can_be_in_the_way() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.git(&["branch", "tender"]);
    ready(&repo, "t1", json!("branch"));
    refused(&repo, &["deliver", "t1"], "in_the_way");
    repo.git(&["branch", "-m", "tender", "tenders"]);
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn the_branch_moves_from_what_was_delivered_there_last_and_from_nothing_else() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let topic = || json!({"mode": "branch", "branch": "topic"});
    for id in ["t1", "t2", "t3", "t4"] {
        ready(&repo, id, topic());
    }
    let first = repo.json(&["deliver", "t1"]).ok().json["commit"].clone();
    let second = repo.json(&["deliver", "t2"]).ok().json["commit"].clone();
    assert_ne!(first, second);
    assert_eq!(branch(&repo, "topic"), second.as_str().expect("text"));
    // Somebody goes on there.
    repo.git(&["branch", "-f", "topic", "main"]);
    let error = refused(&repo, &["deliver", "t3"], "moved");
    assert_eq!(error["details"]["expected"], second);
    // It is gone: nobody's work is lost by making it anew, and the note says so.
    repo.git(&["branch", "-D", "topic"]);
    let answer = repo.json(&["deliver", "t3"]).ok();
    assert!(answer.json["notes"].to_string().contains("deleted"), "{:#}", answer.json);
    // Undone: back to nothing; the next one starts from nothing again.
    repo.json(&["undo", "t3"]).ok();
    assert_eq!(at(&repo, "topic"), None);
    repo.json(&["deliver", "t4"]).ok();
}

#[test]
fn undo_takes_the_branch_away_if_it_is_still_exactly_ours() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    ready(&repo, "t1", json!("branch"));
    ready(&repo, "t2", json!({"mode": "branch", "branch": "tender/t1"}));
    let before = repo.snapshot();
    let commit = repo.json(&["deliver", "t1"]).ok().json["commit"].clone();
    // A commit of somebody's on top.
    let commit_text = commit.as_str().expect("text");
    let tree = repo.git(&["rev-parse", &format!("{commit_text}^{{tree}}")]);
    let mine = repo.git(&["commit-tree", &tree, "-p", commit_text, "-m", "mine"]);
    repo.git(&["update-ref", "refs/heads/tender/t1", &mine]);
    let error = refused(&repo, &["undo", "t1"], "moved");
    assert_eq!((&error["details"]["expected"], &error["details"]["actual"]), (&commit, &json!(mine)));
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    repo.git(&["update-ref", "refs/heads/tender/t1", commit_text]);
    // A later delivery to the same place goes back to this one.
    repo.json(&["deliver", "t2"]).ok();
    let back = repo.json(&["undo", "t2"]).ok();
    shape::check(&back.json, &publication_shape("branch"));
    assert_eq!(branch(&repo, "tender/t1"), commit_text);
    let answer = repo.json(&["undo", "t1"]).ok();
    assert_eq!(answer.json["state"], "undone");
    assert_eq!(answer.json["commit"], commit);
    assert!(answer.outcomes().iter().all(|outcome| outcome.1 == "reverted"), "{:?}", answer.outcomes());
    before.same(&repo.snapshot());
    repo.json(&["undo", "t1"]).fails("state.invalid");
    repo.json(&["deliver", "t1"]).fails("state.invalid");
    repo.fsck_gc();
}

/// A `git` that kills whoever called it, before or after it moves a branch; the folder to put in front of
/// PATH.
fn deadly_git(lab: &Lab, when: &str) -> String {
    let folder = lab.path(format!("bin-{when}"));
    let path = std::env::var("PATH").expect("set");
    let (before, after) =
        if when == "before" { ("kill -9 $PPID; exit 1", ":") } else { (":", "kill -9 $PPID") };
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\ncase \" $* \" in *' --no-deref '*) {before}; git \"$@\"; code=$?; {after}; exit $code;; esac\nexec git \"$@\"\n"
    );
    std::fs::create_dir(&folder).expect("creates");
    let git = folder.join("git");
    std::fs::write(&git, script).expect("writes");
    std::fs::set_permissions(&git, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("sets");
    format!("{}:{path}", folder.display())
}

#[test]
fn killed_before_or_after_the_branch_moved_it_ends_as_what_it_was() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (id, when) in [("t1", "before"), ("t2", "after")] {
        ready(&repo, id, json!("branch"));
        let path = deadly_git(&lab, when);
        let killed = repo.tender_in("", &[("PATH", &path)], None, &["deliver", id]);
        assert_eq!(killed.code, 128 + 9, "{}", killed.all());
        let name = format!("tender/{id}");
        assert_eq!(at(&repo, &name).is_some(), when == "after");
        assert_eq!(repo.json(&["report", id]).ok().json["state"], "delivering");
        let undone = repo.tender_in("", &[("PATH", &path)], None, &["recover"]).ok();
        let word = if when == "after" { "completed" } else { "safe to retry" };
        assert!(undone.text().contains(word), "{}", undone.text());
        let answer = repo.json(&["deliver", id]).ok();
        let outcome = if when == "after" { "already" } else { "applied" };
        assert!(answer.outcomes().iter().all(|one| one.1 == outcome), "{:?}", answer.outcomes());
        assert_eq!(repo.git(&["rev-list", "--count", &format!("main..{name}")]), "1");
        // The reversal likewise.
        let killed = repo.tender_in("", &[("PATH", &path)], None, &["undo", id]);
        assert_eq!(killed.code, 128 + 9, "{}", killed.all());
        if when == "before" {
            repo.json(&["undo", id]).ok();
        }
        repo.json(&["recover"]).ok();
        assert_eq!(
            (at(&repo, &name), repo.json(&["report", id]).ok().json["state"].as_str()),
            (None, Some("undone"))
        );
    }
    repo.fsck_gc();
}

#[test]
fn a_dry_run_writes_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    ready(&repo, "t1", json!("branch"));
    let before = repo.snapshot();
    let refs = repo.git(&["for-each-ref"]);
    let objects = repo.git(&["count-objects", "-v"]);
    let answer = repo.json(&["deliver", "t1", "--dry-run"]).ok();
    assert!(answer.outcomes().iter().all(|outcome| outcome.1 == "would_apply"), "{:?}", answer.outcomes());
    assert_eq!((&answer.json["mode"], &answer.json["branch"]), (&json!("branch"), &json!("tender/t1")));
    assert_eq!(answer.json["state"], "verified");
    before.same(&repo.snapshot());
    assert_eq!(refs, repo.git(&["for-each-ref"]));
    assert_eq!(objects, repo.git(&["count-objects", "-v"]));
    repo.json(&["deliver", "t1"]).ok();
}

#[test]
fn what_cannot_be_committed_is_refused_at_open() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let branch = || Contract::new("t1").committed(json!("branch"));
    let answer = repo.open_fails(&branch().set("base", json!("live")));
    assert_eq!(answer.fails("contract.invalid")["subject"], "base");
    let answer = repo.open_fails(&branch().set("commitAllowed", json!(false)));
    assert_eq!(answer.fails("contract.invalid")["subject"], "commitAllowed");
    for name in ["-x", "a..b", "a b", "refs/heads/x", "x.lock"] {
        let answer = repo.open_fails(&branch().set("delivery", json!({"mode": "branch", "branch": name})));
        assert_eq!(answer.fails("contract.invalid")["subject"], "delivery.branch", "{name}");
    }
    lab.git(&lab.path(""), &["config", "--global", "--unset", "user.name"]).ok();
    let answer = repo.open_fails(&branch());
    let error = answer.fails("not_found");
    assert_eq!(error["remedy"]["command"][2], "user.name", "{error:#}");
    assert!(repo.json(&["status"]).ok().json["tasks"].as_array().expect("list").is_empty());
    let env = [("GIT_AUTHOR_NAME", "Bot"), ("GIT_AUTHOR_EMAIL", "bot@example.org")];
    let file = branch().file(&lab);
    repo.json_in("", &env, None, &["open", file.to_str().expect("UTF-8")]).ok();
    lab.git_config("user.name", "Test Person");
    repo.write(".tender/config.toml", "[policy]\ncommit = false\n");
    repo.commit("policy");
    let answer = repo.open_fails(&Contract::new("t2").committed(json!("branch")));
    assert_eq!(answer.fails("permission.denied")["subject"], "delivery");
}

#[test]
fn without_a_change_there_is_nothing_to_commit() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1").committed(json!("branch")), |_| {});
    let before = repo.snapshot();
    repo.json(&["deliver", "t1"]).fails("verification.failed");
    before.same(&repo.snapshot());
}

#[test]
fn a_task_whose_id_is_no_ref_name_gets_a_branch() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for id in ["a..b", "x.lock"] {
        ready(&repo, id, json!("branch"));
        let answer = repo.json(&["deliver", id]).ok();
        branch(&repo, answer.json["branch"].as_str().expect("text"));
    }
}

#[test]
fn a_branch_of_a_sha256_repository_and_of_a_linked_worktree() {
    let lab = Lab::new();
    let repo = lab.repo_with("new", &["--object-format=sha256"]);
    repo.write("docs/a.md", "a\n");
    repo.commit("first");
    ready(&repo, "t1", json!("branch"));
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(branch(&repo, "tender/t1").len(), 64);
    let linked = lab.path("linked");
    repo.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().expect("UTF-8")]);
    let linked = Repo::at(&lab, linked);
    ready(&linked, "t2", json!("branch"));
    linked.json(&["deliver", "t2"]).ok();
    branch(&repo, "tender/t2");
}
