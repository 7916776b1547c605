//! The mode `push` where the answer does not arrive: lost, dropped, too late, or the asker was killed. It is
//! asked about, never assumed, and nothing is sent twice while nobody knows.

use super::branch::ready;
use super::push::with_remote;
use crate::support::http::{Http, Mode};
use crate::support::lab::TENDER;
use crate::support::remote::{Bare, Daemon, wait_for};
use crate::support::{Answer, Lab, Repo, skip};
use serde_json::{Value, json};
use std::process::Stdio;

fn topic() -> Value {
    json!({"mode": "push", "branch": "topic"})
}

/// As [`with_remote`], with the HTTP server in front; `t1` is ready. `None` where this git cannot serve or
/// speak HTTP.
fn over_http(lab: &Lab) -> Option<(Repo<'_>, Bare<'_>, Http)> {
    let (repo, bare) = with_remote(lab);
    let Some(http) = Http::start(lab) else {
        skip("this git has no http-backend, or no client for HTTP");
        return None;
    };
    repo.git(&["remote", "set-url", "origin", &http.url()]);
    ready(&repo, "t1", topic());
    Some((repo, bare, http))
}

fn state(repo: &Repo<'_>) -> Value {
    repo.json(&["report", "t1"]).ok().json["state"].clone()
}

/// It is not known: exit 7, whatever would write, and every view says so.
#[track_caller]
fn unknown(repo: &Repo<'_>, args: &[&str]) {
    let answer = repo.json(args);
    let error = answer.fails("outcome.unknown");
    assert_eq!((answer.code, error["retry"].as_str()), (7, Some("query_state")));
    assert_eq!(error["details"]["remote"], "origin");
    assert!(error["details"]["commit"].is_string() && error["ref"].is_string(), "{error:#}");
}

/// The rows of the ledger by action and state, of the command `deliver`.
fn states(repo: &Repo<'_>) -> Vec<String> {
    let log = repo.tender(&["--format", "json", "log", "t1"]).ok().text();
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let rows = rows.filter(|row| row["tool"] == "deliver");
    rows.map(|row| row["state"].as_str().expect("text").to_owned()).collect()
}

#[track_caller]
fn completed(answer: Answer, outcome: &str) -> Answer {
    let answer = answer.ok();
    assert_eq!(answer.json["state"], "completed");
    assert!(answer.outcomes().iter().all(|one| one.1 == outcome), "{:?}", answer.outcomes());
    answer
}

#[test]
fn over_http_everything_arrives_once() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    completed(repo.json(&["deliver", "t1"]), "applied");
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
    ready(&repo, "t2", topic());
    bare.hook("pre-receive", "echo 'not today' >&2; exit 1\n");
    let answer = repo.json(&["deliver", "t2"]);
    assert!(answer.fails("permission.denied")["message"].as_str().expect("text").contains("not today"));
    bare.no_hook("pre-receive");
    let human = bare.human_commit("topic");
    let answer = repo.json(&["deliver", "t2"]);
    assert_eq!(answer.fails("push.conflict")["details"]["actual"], human.as_str());
    ready(&repo, "t3", json!({"mode": "push", "branch": "third", "pushOptions": ["x"]}));
    repo.json(&["deliver", "t3"]).fails("not_supported");
    assert_eq!(bare.at("third"), None);
}

#[test]
fn whoever_is_turned_away_at_the_door_has_sent_nothing() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::Forbidden);
    let answer = repo.json(&["deliver", "t1"]);
    assert!(answer.fails("permission.denied")["message"].as_str().expect("text").contains("403"));
    assert_eq!(state(&repo), "verified");
    http.mode(Mode::Normal);
    completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
}

#[test]
fn an_answer_that_is_lost_after_the_server_accepted_is_asked_for() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropAnswer);
    let answer = completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!(answer.json["commit"], bare.at("topic").expect("arrived").as_str());
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
    // The reversal has the same care.
    let undone = repo.json(&["undo", "t1"]).ok();
    assert_eq!((undone.json["state"].as_str(), bare.at("topic")), (Some("undone"), None));
}

#[test]
fn what_a_hook_says_is_no_word_of_git() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::WordsOnly("note: this server does not support locking"));
    let answer = completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!(answer.json["commit"], bare.at("topic").expect("arrived").as_str());
}

#[test]
fn a_connection_that_is_dropped_before_anything_arrived_may_be_repeated() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropBefore);
    let before = repo.snapshot();
    let answer = repo.json(&["deliver", "t1"]);
    let error = answer.fails("io");
    assert_eq!((answer.code, error["retry"].as_str()), (10, Some("wait")));
    before.same(&repo.snapshot());
    let first = error["details"]["commit"].clone();
    assert!(
        states(&repo).ends_with(&["outcome_unknown".into(), "reconcile".into(), "safe_to_retry".into()]),
        "{:?}",
        states(&repo)
    );
    assert_eq!(state(&repo), "verified");
    let late = |repo: &Repo<'_>| repo.json(&["report", "t1"]).ok().has_risk("may still arrive");
    assert!(late(&repo), "whether the server is still at it nobody knows");
    http.mode(Mode::Normal);
    let answer = completed(repo.json(&["deliver", "t1"]), "applied");
    assert!(!late(&repo));
    assert_eq!(answer.json["commit"], first, "the very same commit");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
}

#[test]
fn while_nobody_can_be_asked_it_is_unknown_and_nothing_is_sent_again() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropAnswerThenDown);
    unknown(&repo, &["deliver", "t1"]);
    assert_eq!(state(&repo), "outcome_unknown");
    let rows = states(&repo).len();
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("not known whether"), "{:#}", report.json["risks"]);
    let status = repo.json(&["status", "--all"]).ok();
    assert_eq!(status.json["tasks"][0]["state"], "outcome_unknown");
    assert_eq!(status.json["unfinished"][0]["tool"], "deliver");
    assert_eq!(states(&repo).len(), rows, "a view writes nothing");
    for args in [
        &["deliver", "t1"][..],
        &["deliver", "t1", "--dry-run"],
        &["submit", "t1"],
        &["verify", "t1"],
        &["undo", "t1"],
    ] {
        unknown(&repo, args);
    }
    let recovery = repo.json(&["recover"]).result(7);
    let action = &recovery.json["actions"][0];
    assert_eq!((action["outcome"].as_str(), action["task"].as_str()), (Some("unknown"), Some("t1")));
    let notes = action["notes"].to_string();
    assert!(notes.contains("yes: ") && notes.contains("no: "), "{notes}");
    assert!(repo.tender(&["recover"]).exits(7).text().contains("unknown"));
    assert_eq!(states(&repo).len(), rows, "asking in vain adds nothing");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
    // Another task's delivery to the same place would blur both.
    ready(&repo, "t2", topic());
    let answer = repo.json(&["deliver", "t2"]);
    assert_eq!(answer.fails("outcome.unknown")["details"]["task"], "t1");
    // Everything else goes on.
    repo.changing("t3", &[("docs/b.md", Some("third\n"))]);
    repo.json(&["deliver", "t3"]).ok();
    http.mode(Mode::Normal);
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1), "it had arrived, and was not sent again");
    assert_eq!(state(&repo), "completed");
    assert!(repo.json(&["status", "--all"]).ok().json.get("unfinished").is_none());
    // What recovery found out is what the next delivery there starts from.
    completed(repo.json(&["deliver", "t2"]), "applied");
    assert_eq!(
        bare.git(&["log", "-1", "--format=%(trailers:key=Tender-Task,valueonly)", "topic"]).trim(),
        "t2"
    );
}

#[test]
fn recover_asks_and_completes_what_arrived() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropAnswerThenDown);
    unknown(&repo, &["deliver", "t1"]);
    http.mode(Mode::Normal);
    let recovery = repo.json(&["recover"]).ok();
    assert_eq!(recovery.json["actions"][0]["outcome"], "completed", "{:#}", recovery.json);
    assert_eq!(state(&repo), "completed");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
}

#[test]
fn down_from_the_start_is_unknown_until_it_can_be_asked_and_then_repeated() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::Down);
    unknown(&repo, &["deliver", "t1"]);
    unknown(&repo, &["deliver", "t1"]);
    assert_eq!(http.pushes(), 0);
    http.mode(Mode::Normal);
    completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
}

#[test]
fn what_others_did_meanwhile_is_told_apart() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropAnswerThenDown);
    unknown(&repo, &["deliver", "t1"]);
    // Somebody built on it: ours is there.
    let human = bare.human_commit("topic");
    http.mode(Mode::Normal);
    let refs = repo.git(&["for-each-ref"]);
    let answer = completed(repo.json(&["deliver", "t1"]), "already");
    assert!(answer.json["notes"].to_string().contains(&human), "{:#}", answer.json);
    assert_eq!(refs, repo.git(&["for-each-ref"]), "looking at it makes no ref");
    assert!(!repo.exists(".git/FETCH_HEAD"));
    assert_eq!(bare.at("topic").expect("there"), human);
    // Somebody replaced it: ours is not.
    ready(&repo, "t2", json!({"mode": "push", "branch": "second"}));
    http.mode(Mode::DropAnswerThenDown);
    let commit = repo.json(&["deliver", "t2"]).fails("outcome.unknown")["details"]["commit"].clone();
    assert_eq!(bare.at("second").expect("there"), commit.as_str().expect("text"));
    bare.git(&["update-ref", "refs/heads/second", &human]);
    http.mode(Mode::Normal);
    let answer = repo.json(&["deliver", "t2"]);
    assert_eq!(answer.fails("push.conflict")["details"]["actual"], human.as_str());
    assert_eq!(bare.at("second").expect("there"), human, "never overwritten");
}

#[test]
fn a_task_can_be_cancelled_while_it_is_unknown_and_says_what_is_open() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    http.mode(Mode::DropAnswerThenDown);
    unknown(&repo, &["deliver", "t1"]);
    let answer = repo.json(&["cancel", "t1"]).ok();
    let effects = answer.json["effects"].to_string();
    assert!(effects.contains("topic") && effects.contains("origin"), "{effects}");
    assert_eq!(state(&repo), "cancelled");
    let report = repo.json(&["report", "t1"]).ok();
    assert!(report.has_risk("not known whether"), "{:#}", report.json["risks"]);
    http.mode(Mode::Normal);
    assert_eq!(repo.json(&["recover"]).ok().json["actions"][0]["outcome"], "completed");
    assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
}

#[test]
fn a_reversal_whose_answer_is_lost_is_unknown_too() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    repo.json(&["deliver", "t1"]).ok();
    http.mode(Mode::DropAnswerThenDown);
    let answer = repo.json(&["undo", "t1"]);
    answer.fails("outcome.unknown");
    assert_eq!(state(&repo), "outcome_unknown");
    repo.json(&["deliver", "t1"]).fails("outcome.unknown");
    assert!(repo.json(&["gc"]).ok().json["removed"].as_array().expect("list").is_empty());
    http.mode(Mode::Normal);
    repo.json(&["undo", "t1"]).fails("state.invalid");
    assert_eq!((state(&repo), bare.at("topic")), (json!("undone"), None));
    assert_eq!(http.pushes(), 2);
}

#[test]
fn where_nobody_can_be_asked_a_person_decides() {
    for (word, after) in [("yes", "completed"), ("no", "verified")] {
        let lab = Lab::new();
        let Some((repo, bare, http)) = over_http(&lab) else { return };
        http.mode(if after == "completed" { Mode::DropAnswerThenDown } else { Mode::Down });
        unknown(&repo, &["deliver", "t1"]);
        repo.json(&["answer", "t1", word]).fails("permission.denied");
        repo.approve_without_terminal();
        repo.json(&["answer", "t1", word]).ok();
        assert_eq!(state(&repo), after);
        let rows = states(&repo);
        let end = if after == "completed" { "succeeded" } else { "safe_to_retry" };
        assert!(rows.ends_with(&["reconcile".into(), "needs_human_decision".into(), end.into()]), "{rows:?}");
        repo.json(&["answer", "t1", word]).fails("state.invalid");
        http.mode(Mode::Normal);
        completed(repo.json(&["deliver", "t1"]), if after == "completed" { "already" } else { "applied" });
        assert_eq!((http.pushes(), bare.pushes().len()), (1, 1));
        // What a person says of a place counts for the next delivery there.
        ready(&repo, "t2", topic());
        repo.json(&["deliver", "t2"]).ok();
    }
}

#[test]
fn a_push_that_takes_too_long_is_ended_and_asked_about() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    repo.git(&["config", "tender.pushTimeout", "soon"]);
    assert_eq!(repo.json(&["deliver", "t1"]).fails("config.invalid")["subject"], "tender.pushTimeout");
    repo.git(&["config", "tender.pushTimeout", "4"]);
    // Before the update: nothing arrives, and what the server was doing here has ended.
    bare.blocking("pre-receive");
    let answer = repo.json(&["deliver", "t1"]);
    let error = answer.fails("io");
    let message = error["message"].as_str().expect("text");
    assert!(message.contains("4 seconds") && message.contains("has not arrived"), "{error:#}");
    assert!(error["details"]["effects"].to_string().contains("may still arrive"), "{error:#}");
    assert_eq!((bare.at("topic"), bare.started()), (None, 1));
    bare.no_hook("pre-receive");
    // After the update: it is there, whatever the hook does.
    bare.hook("post-receive", "cat >> pushes\nwhile [ ! -e go ] && [ -e HEAD ]; do sleep 0.05; done\n");
    let answer = completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!(answer.json["commit"], error["details"]["commit"], "the very same commit");
    assert_eq!(bare.pushes().len(), 1);
    bare.go();
}

/// Starts a delivery, waits until the server's hook runs, and kills the harness there.
fn killed_in_the_middle(repo: &Repo<'_>, bare: &Bare<'_>) {
    bare.blocking("pre-receive");
    let mut command = repo.lab.command(TENDER, &repo.path);
    command.args(["deliver", "t1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("starts");
    wait_for("the server's hook runs", || bare.started() == 1);
    child.kill().expect("kills");
    child.wait().expect("waits");
    assert_eq!(bare.at("topic"), None, "it was not let through yet");
    assert_eq!(repo.json(&["status", "--all"]).ok().json["unfinished"][0]["tool"], "deliver");
}

#[test]
fn killed_between_dispatch_and_result_exactly_one_commit_arrives() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    ready(&repo, "t1", topic());
    killed_in_the_middle(&repo, &bare);
    bare.go();
    completed(repo.json(&["deliver", "t1"]), "applied");
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!(bare.pushes().len(), 1, "{:?}", bare.pushes());
    assert_eq!(bare.git(&["rev-list", "--count", "main..topic"]), "1");
}

#[test]
fn killed_while_a_server_elsewhere_goes_on_and_it_arrives_before_the_retry() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let Some(daemon) = Daemon::start(&lab) else { return skip("this git has no daemon") };
    repo.git(&["remote", "set-url", "origin", &daemon.url()]);
    ready(&repo, "t1", topic());
    killed_in_the_middle(&repo, &bare);
    bare.go();
    // The server cannot report any more, so its last hook may not run; the ref is what counts.
    wait_for("the server goes on without us", || bare.at("topic").is_some());
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!(bare.started(), 1, "it was found there, and not sent again");
}

#[test]
fn killed_while_a_server_elsewhere_goes_on_and_the_retry_overtakes_it() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let Some(daemon) = Daemon::start(&lab) else { return skip("this git has no daemon") };
    repo.git(&["remote", "set-url", "origin", &daemon.url()]);
    ready(&repo, "t1", topic());
    killed_in_the_middle(&repo, &bare);
    std::thread::scope(|scope| {
        let retry = scope.spawn(|| repo.json(&["deliver", "t1"]));
        wait_for("the second one waits in the hook too", || bare.started() == 2);
        bare.go();
        let answer = retry.join().expect("runs").ok();
        assert_eq!(answer.json["commit"], bare.at("topic").expect("arrived").as_str());
    });
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!(bare.git(&["rev-list", "--count", "main..topic"]), "1");
    assert_eq!(bare.git(&["reflog", "show", "--format=%H", "topic"]).lines().count(), 1, "one update");
}

#[test]
fn a_push_that_is_cancelled_says_so_and_what_may_still_arrive() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let Some(daemon) = Daemon::start(&lab) else { return skip("this git has no daemon") };
    repo.git(&["remote", "set-url", "origin", &daemon.url()]);
    ready(&repo, "t1", topic());
    bare.blocking("pre-receive");
    std::thread::scope(|scope| {
        let push = scope.spawn(|| repo.json(&["deliver", "t1"]));
        wait_for("the server's hook runs", || bare.started() == 1);
        repo.json(&["cancel", "t1"]).ok();
        let answer = push.join().expect("runs");
        let error = answer.fails("cancelled");
        assert_eq!(answer.code, 8);
        assert!(error["details"]["effects"].to_string().contains("may still arrive"), "{error:#}");
    });
    assert!(repo.json(&["report", "t1"]).ok().has_risk("may still arrive"));
    bare.go();
    wait_for("the server goes on without us", || bare.at("topic").is_some());
}

#[test]
fn what_arrives_late_is_ours_and_no_conflict() {
    let lab = Lab::new();
    let (repo, bare) = with_remote(&lab);
    let Some(daemon) = Daemon::start(&lab) else { return skip("this git has no daemon") };
    repo.git(&["remote", "set-url", "origin", &daemon.url()]);
    repo.git(&["config", "tender.pushTimeout", "4"]);
    let task = repo.open(&crate::support::Contract::new("t1").committed(topic()));
    task.write("docs/a.md", "first\n");
    repo.json(&["submit", "t1"]).ok();
    bare.blocking("pre-receive");
    let first = repo.json(&["deliver", "t1"]).fails("io")["details"]["commit"].clone();
    task.write("docs/a.md", "second\n");
    repo.json(&["submit", "t1"]).ok();
    bare.go();
    wait_for("the server goes on without us", || bare.at("topic").is_some());
    assert_eq!(bare.at("topic").expect("there"), first.as_str().expect("text"));
    let answer = completed(repo.json(&["deliver", "t1"]), "applied");
    assert_eq!(bare.at("topic").expect("there"), answer.json["commit"].as_str().expect("text"));
    assert_eq!(bare.git(&["show", "topic:docs/a.md"]), "second");
    assert_eq!(bare.git(&["rev-list", "--count", "main..topic"]), "1");
}

#[test]
fn a_password_in_the_address_is_seen_nowhere() {
    let lab = Lab::new();
    let Some((repo, bare, http)) = over_http(&lab) else { return };
    let secret = "s3cr3t-t0ken";
    repo.git(&["remote", "set-url", "origin", &http.url_with(&format!("bot:{secret}"))]);
    http.mode(Mode::DropAnswerThenDown);
    let answer = repo.json(&["deliver", "t1"]);
    answer.fails("outcome.unknown");
    assert!(!answer.json.to_string().contains(secret), "{:#}", answer.json);
    let said =
        repo.tender(&["recover"]).exits(7).all() + &repo.tender(&["--format", "json", "log"]).ok().all();
    assert!(!said.contains(secret), "{said}");
    http.mode(Mode::Normal);
    completed(repo.json(&["deliver", "t1"]), "already");
    assert_eq!(bare.pushes().len(), 1);
    let found =
        std::process::Command::new("grep").args(["-rlF", secret]).arg(repo.store()).output().expect("runs");
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
}
