//! The mode `push` where every answer arrives: what is sent, what is refused, and in whose words.

use super::branch::{publication_shape, ready, untouched};
use crate::support::remote::{Bare, Daemon};
use crate::support::{Contract, Lab, Repo, shape, skip};
use serde_json::{Value, json};

/// A repository with its first commit on a remote named `origin`.
pub fn with_remote<'l>(lab: &'l Lab) -> (Repo<'l>, Bare<'l>) {
    let (repo, bare) = (lab.repo("app"), Bare::new(lab));
    repo.git(&["remote", "add", "origin", &bare.url()]);
    repo.git(&["push", "-q", "origin", "main"]);
    std::fs::remove_file(bare.path.join("pushes")).expect("our own push is not counted");
    (repo, bare)
}

fn topic() -> Value {
    json!({"mode": "push", "branch": "topic"})
}

/// Refused as a conflict with the remote; nothing changed there or here.
#[track_caller]
fn conflict(repo: &Repo<'_>, bare: &Bare<'_>, args: &[&str], expected: &Value, actual: &str) {
    let (before, there) = (repo.snapshot(), bare.git(&["for-each-ref"]));
    let answer = repo.json(args);
    let error = answer.fails("push.conflict");
    assert_eq!(answer.code, 3);
    assert_eq!((&error["details"]["expected"], &error["details"]["actual"]), (expected, &json!(actual)));
    assert_eq!(error["details"]["remote"], "origin");
    before.same(&repo.snapshot());
    assert_eq!(there, bare.git(&["for-each-ref"]));
}

#[test]
fn a_commit_arrives_once_with_all_that_it_says() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    repo.write("README.md", "work in progress\n");
    ready(&repo, "t1", json!("push"));
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]).ok();
    shape::check(&answer.json, &publication_shape("push"));
    assert_eq!((&answer.json["remote"], &answer.json["branch"]), (&json!("origin"), &json!("tender/t1")));
    assert_eq!(answer.json["state"], "completed");
    untouched(&before, &repo.snapshot());
    assert_eq!(before.refs, repo.snapshot().refs, "no branch and no tracking ref of this repository");
    let commit = bare.at("tender/t1").expect("arrived");
    assert_eq!(answer.json["commit"], commit.as_str());
    let message = bare.git(&["show", "-s", "--format=%an|%B", &commit]);
    assert!(
        message.starts_with("Test Person|a change for a test\n\nTender-Task: t1\nTender-Contract: "),
        "{message}"
    );
    assert_eq!(bare.git(&["rev-parse", "tender/t1^"]), bare.at("main").expect("there"));
    let again = repo.json(&["deliver", "t1"]).ok();
    assert!(again.outcomes().iter().all(|outcome| outcome.1 == "already"));
    assert_eq!(bare.pushes().len(), 1, "{:?}", bare.pushes());
    let report = repo.json(&["report", "t1"]).ok();
    assert_eq!(report.json["delivery"]["commit"], commit.as_str());
    assert_eq!(report.json["delivery"]["remote"], "origin");
    assert!(repo.tender(&["deliver", "t1"]).ok().text().contains("tender/t1 of origin"));
    repo.fsck_gc();
    bare.git(&["fsck", "--strict"]);
}

#[test]
fn everything_is_in_the_ledger_before_it_is_sent() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    let tender = crate::support::lab::TENDER;
    // The server asks us, in the middle of it, what we have written down.
    let environment = "unset $(git rev-parse --local-env-vars)";
    let log = format!(
        "cat > /dev/null; {environment}; '{tender}' -C '{}' --format json log t1 > log 2>&1\n",
        repo.path.display()
    );
    bare.hook("pre-receive", &log);
    let answer = repo.json(&["deliver", "t1"]).ok();
    let text = std::fs::read_to_string(bare.path.join("log")).expect("written");
    let last: Value =
        serde_json::from_str(text.lines().last().expect("rows")).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!((&last["tool"], &last["state"]), (&json!("deliver"), &json!("dispatched")), "{last:#}");
    let plan = &last["result"];
    assert_eq!(plan["publication"]["remote"]["url"], bare.url().as_str());
    assert_eq!(plan["publication"]["branch"], "topic");
    assert_eq!(plan["publication"]["new"], answer.json["commit"]);
    assert_eq!(plan["publication"]["old"], Value::Null);
}

#[test]
fn a_human_commit_is_a_conflict_also_where_it_was_fetched() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    for id in ["t1", "t2", "t3"] {
        ready(&repo, id, topic());
    }
    let first = repo.json(&["deliver", "t1"]).ok().json["commit"].clone();
    let second = repo.json(&["deliver", "t2"]).ok().json["commit"].clone();
    assert_ne!(first, second);
    assert_eq!(bare.at("topic").expect("there"), second.as_str().expect("text"), "ours is replaced by ours");
    let human = bare.human_commit("topic");
    conflict(&repo, &bare, &["deliver", "t3"], &second, &human);
    // A fetch makes git's own lease take it for seen.
    repo.git(&["fetch", "-q", "origin"]);
    assert_eq!(repo.git(&["rev-parse", "origin/topic"]), human);
    conflict(&repo, &bare, &["deliver", "t3"], &second, &human);
    conflict(&repo, &bare, &["deliver", "t3", "--dry-run"], &second, &human);
    conflict(&repo, &bare, &["undo", "t2"], &second, &human);
    assert_eq!(repo.json(&["report", "t3"]).ok().json["state"], "verified");
    // Merged and deleted there: nobody's work is lost by making it anew.
    bare.git(&["update-ref", "-d", "refs/heads/topic"]);
    let answer = repo.json(&["deliver", "t3"]).ok();
    assert!(answer.json["notes"].to_string().contains("deleted"), "{:#}", answer.json);
}

#[test]
fn a_branch_that_was_never_ours_is_a_conflict() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    bare.git(&["branch", "topic", "main"]);
    ready(&repo, "t1", topic());
    let main = bare.at("main").expect("there");
    conflict(&repo, &bare, &["deliver", "t1"], &Value::Null, &main);
    conflict(&repo, &bare, &["deliver", "t1", "--dry-run"], &Value::Null, &main);
    assert!(bare.pushes().is_empty());
}

#[test]
fn the_servers_hook_refuses_in_its_own_words() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    for hook in ["pre-receive", "update"] {
        bare.hook(hook, "echo 'GL-HOOK: topics want a ticket' >&2\nexit 1\n");
        let before = repo.snapshot();
        let answer = repo.json(&["deliver", "t1"]);
        let error = answer.fails("permission.denied");
        assert_eq!(answer.code, 4);
        assert!(
            error["message"].as_str().expect("text").contains("GL-HOOK: topics want a ticket"),
            "{error:#}"
        );
        assert!(error["details"]["server"].as_str().expect("text").contains("GL-HOOK"), "{error:#}");
        before.same(&repo.snapshot());
        assert_eq!(bare.at("topic"), None);
        bare.no_hook(hook);
    }
    let report = repo.json(&["report", "t1"]).ok();
    assert_eq!(report.json["state"], "verified");
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(bare.pushes().len(), 1);
}

#[test]
fn push_options_arrive_or_are_not_supported() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let options = json!({"mode": "push", "branch": "topic", "pushOptions": ["ci.skip", "title=ä b"]});
    ready(&repo, "t1", options);
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]);
    let error = answer.fails("not_supported");
    assert_eq!(answer.code, 2);
    assert!(error["details"]["server"].as_str().expect("text").contains("push options"), "{error:#}");
    before.same(&repo.snapshot());
    assert_eq!(bare.at("topic"), None);
    bare.git(&["config", "receive.advertisePushOptions", "true"]);
    bare.hook("pre-receive", "env | grep ^GIT_PUSH_OPTION | sort > options\n");
    // What the user's own configuration adds to every push is not in the contract.
    repo.git(&["config", "push.pushOption", "mine"]);
    repo.git(&["config", "push.followTags", "true"]);
    repo.git(&["config", "push.gpgSign", "true"]);
    repo.git(&["config", "remote.origin.mirror", "true"]);
    repo.git(&["tag", "-a", "-m", "t", "v1"]);
    repo.write(".git/hooks/pre-push", "#!/bin/sh\nexit 1\n");
    repo.chmod(".git/hooks/pre-push", 0o755);
    repo.json(&["deliver", "t1"]).ok();
    let seen = std::fs::read_to_string(bare.path.join("options")).expect("written");
    assert_eq!(seen, "GIT_PUSH_OPTION_0=ci.skip\nGIT_PUSH_OPTION_1=title=ä b\nGIT_PUSH_OPTION_COUNT=2\n");
    assert_eq!(bare.git(&["tag"]), "");
    ready(&repo, "t2", topic());
    repo.json(&["deliver", "t2"]).ok();
    let seen = std::fs::read_to_string(bare.path.join("options")).expect("written");
    assert!(!seen.contains("mine"), "{seen}");
}

#[test]
fn undo_takes_back_what_was_pushed_with_a_lease_on_it() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    ready(&repo, "t2", topic());
    let first = repo.json(&["deliver", "t1"]).ok().json["commit"].clone();
    repo.json(&["deliver", "t2"]).ok();
    let back = repo.json(&["undo", "t2"]).ok();
    shape::check(&back.json, &publication_shape("push"));
    assert_eq!(back.json["state"], "undone");
    assert!(back.outcomes().iter().all(|outcome| outcome.1 == "reverted"));
    assert_eq!(bare.at("topic").expect("there"), first.as_str().expect("text"), "back to what was there");
    bare.hook("pre-receive", "echo no >&2; exit 1\n");
    repo.json(&["undo", "t1"]).fails("permission.denied");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "completed");
    bare.no_hook("pre-receive");
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(bare.at("topic"), None);
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "undone");
    // The place is nobody's again.
    ready(&repo, "t3", topic());
    repo.json(&["deliver", "t3"]).ok();
    assert_eq!(bare.pushes().len(), 5, "{:?}", bare.pushes());
}

#[test]
fn a_dry_run_asks_and_sends_nothing() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1", "--dry-run"]).ok();
    assert!(answer.outcomes().iter().all(|outcome| outcome.1 == "would_apply"));
    assert_eq!((&answer.json["mode"], &answer.json["remote"]), (&json!("push"), &json!("origin")));
    before.same(&repo.snapshot());
    assert_eq!((bare.at("topic"), bare.pushes().len()), (None, 0));
    std::fs::rename(&bare.path, lab.path("away")).expect("moves");
    let answer = repo.json(&["deliver", "t1", "--dry-run"]);
    answer.fails("io");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "verified");
}

#[test]
fn the_remote_is_named_or_the_only_one_and_looked_for_at_open() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let open = |id: &str, delivery: Value| repo.open_fails(&Contract::new(id).committed(delivery));
    repo.git(&["remote", "rename", "origin", "up"]);
    assert_eq!(
        open("t0", json!({"mode": "push", "remote": "origin"})).fails("not_found")["subject"],
        "delivery.remote"
    );
    for remote in ["-x", "--upload-pack=touch x", "ext::sh -c x"] {
        let delivery = json!({"mode": "push", "remote": remote});
        assert_eq!(open("t0", delivery).fails("contract.invalid")["subject"], "delivery.remote");
    }
    open("t0", json!({"mode": "push", "remote": "/tmp"})).fails("not_found");
    ready(&repo, "t1", topic());
    assert_eq!(repo.json(&["deliver", "t1"]).ok().json["remote"], "up");
    repo.git(&["remote", "add", "other", "/nowhere"]);
    assert!(
        open("t2", json!("push")).fails("not_found")["message"].as_str().expect("text").contains("origin")
    );
    // One push has one outcome.
    repo.git(&["remote", "set-url", "--add", "up", "/elsewhere"]);
    open("t2", json!({"mode": "push", "remote": "up"})).fails("not_supported");
    // Pushed to and asked at the same address, whatever is fetched from.
    repo.git(&["remote", "set-url", "other", "/nowhere"]);
    repo.git(&["remote", "set-url", "--push", "other", &bare.url()]);
    ready(&repo, "t3", json!({"mode": "push", "remote": "other", "branch": "third"}));
    repo.json(&["deliver", "t3"]).ok();
    repo.json(&["deliver", "t3", "--dry-run"]).ok();
    assert!(bare.at("third").is_some());
    // A relative address starts at the top of the working tree, wherever the call comes from.
    repo.git(&["remote", "set-url", "other", "../served/app.git"]);
    repo.git(&["config", "--unset", "remote.other.pushurl"]);
    ready(&repo, "t4", json!({"mode": "push", "remote": "other", "branch": "fourth"}));
    repo.json_in("docs", &[], None, &["deliver", "t4"]).ok();
    assert!(bare.at("fourth").is_some());
}

#[test]
fn an_address_is_rewritten_once_for_the_push_and_for_the_question() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let other = lab.path("elsewhere").join("app.git");
    bare.git(&["clone", "-q", "--bare", ".", other.to_str().expect("text")]);
    let served = bare.url().trim_end_matches("app.git").to_owned();
    let elsewhere = bare.url().replace("/served/", "/elsewhere/").trim_end_matches("app.git").to_owned();
    repo.git(&["config", &format!("url.{served}.insteadOf"), "up:"]);
    repo.git(&["config", &format!("url.{elsewhere}.insteadOf"), &served]);
    repo.git(&["config", "--add", &format!("url.{elsewhere}.pushInsteadOf"), &served]);
    repo.git(&["remote", "set-url", "origin", "up:app.git"]);
    ready(&repo, "t1", topic());
    ready(&repo, "t2", topic());
    repo.json(&["deliver", "t1"]).ok();
    repo.json(&["deliver", "t2", "--dry-run"]).ok();
    let there = bare.at("topic").expect("where git's own push would go");
    assert_eq!(repo.json(&["report", "t1"]).ok().json["delivery"]["commit"], there.as_str());
    // By git's own words.
    assert!(repo.git(&["ls-remote", "origin", "topic"]).starts_with(&there));
}

#[test]
fn a_remote_with_another_address_is_another_place() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    ready(&repo, "t2", topic());
    repo.json(&["deliver", "t1"]).ok();
    let other = lab.path("elsewhere").join("app.git");
    bare.git(&["clone", "-q", "--bare", ".", other.to_str().expect("text")]);
    repo.git(&["remote", "set-url", "origin", other.to_str().expect("text")]);
    // What lies there is nobody's of ours.
    repo.json(&["deliver", "t2"]).fails("push.conflict");
    std::fs::rename(&bare.path, lab.path("away")).expect("moves");
    lab.command("git", &other).args(["update-ref", "-d", "refs/heads/topic"]).status().expect("runs");
    let answer = repo.json(&["deliver", "t2"]).ok();
    assert!(answer.json["notes"].as_array().is_none_or(Vec::is_empty), "{:#}", answer.json);
}

#[test]
fn over_git_daemon_too() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let Some(daemon) = Daemon::start(&lab) else { return skip("this git has no daemon") };
    repo.git(&["remote", "set-url", "origin", &daemon.url()]);
    for id in ["t1", "t2", "t3"] {
        ready(&repo, id, topic());
    }
    repo.json(&["deliver", "t1"]).ok();
    let second = repo.json(&["deliver", "t2"]).ok().json["commit"].clone();
    let human = bare.human_commit("topic");
    conflict(&repo, &bare, &["deliver", "t3"], &second, &human);
    bare.hook("update", "echo no >&2; exit 1\n");
    bare.git(&["update-ref", "refs/heads/topic", second.as_str().expect("text")]);
    let answer = repo.json(&["deliver", "t3"]);
    answer.fails("permission.denied");
    bare.no_hook("update");
    repo.json(&["deliver", "t3"]).ok();
    repo.json(&["undo", "t3"]).ok();
    assert_eq!(bare.at("topic").expect("there"), second.as_str().expect("text"));
}
