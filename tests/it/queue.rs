//! `ship --all`, and several tasks at once: what is verified is delivered in turn, and nobody waits for
//! another's verifiers.

use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::json;
use std::process::{Command, Output, Stdio};

const FILE: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";

fn with_unit(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("src/shared.txt", FILE);
    repo.commit("shared");
    repo.with(&Verifier::new("unit").script("grep -q BAD src/shared.txt && case_bad a\ncase_ok b\nfinish"))
}

fn verified(repo: &Repo<'_>, id: &str, text: &str) -> Task {
    let task = repo.open(&Contract::new(id).allowed(&["unit"]));
    task.write("src/shared.txt", text);
    repo.json(&["submit", id]).ok();
    repo.json(&["verify", id]).ok();
    task
}

#[test]
fn what_is_verified_goes_in_turn_and_a_conflict_is_skipped() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    verified(&repo, "a", &FILE.replace("1\n2\n", "one\n2\n"));
    // Another line: it is carried over to what the first has left.
    verified(&repo, "b", &FILE.replace("12\n", "twelve\n"));
    // The same line as the first.
    verified(&repo, "c", &FILE.replace("1\n2\n", "ONE\n2\n"));
    verified(&repo, "d", &FILE.replace("\n6\n", "\nsix\n"));
    let open = repo.open(&Contract::new("e").allowed(&["unit"]));
    open.write("src/a.txt", "not submitted\n");
    let before = repo.snapshot();
    let preview = repo.json(&["ship", "--all", "--dry-run"]).ok();
    assert_eq!(preview.json["tasks"][0]["outcome"], "would_deliver");
    before.same(&repo.snapshot());
    let answer = repo.json(&["ship", "--all"]).result(3);
    assert_eq!(answer.json["schema"], "git-tender/queue/v1");
    let outcomes: Vec<_> = answer.json["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|row| (row["taskId"].as_str().expect("an id"), row["outcome"].as_str().expect("a word")))
        .collect();
    let wanted = [("a", "delivered"), ("b", "delivered"), ("c", "conflict"), ("d", "delivered")];
    assert_eq!(outcomes, wanted, "{:#}", answer.json);
    assert_eq!(answer.json["waiting"], json!(["e"]));
    assert_eq!(answer.json["tasks"][2]["error"]["code"], "delivery.conflict");
    assert_eq!(answer.json["tasks"][1]["delivery"]["paths"][0]["outcome"], "applied");
    assert_eq!(
        repo.text("src/shared.txt"),
        FILE.replace("1\n2\n", "one\n2\n").replace("12\n", "twelve\n").replace("\n6\n", "\nsix\n")
    );
    // What was carried over was shown again.
    assert_eq!(repo.json(&["report", "b"]).ok().json["candidate"], json!(2));
    // The same command by its other name: what was skipped is tried again, and the rest is done.
    let text = repo.tender(&["queue"]).exits(3).text();
    assert!(
        text.contains("c: skipped") && text.contains("1 skipped") && text.contains("not verified: e"),
        "{text}"
    );
    repo.json(&["cancel", "c"]).ok();
    let empty = repo.json(&["queue"]).ok();
    assert_eq!((&empty.json["tasks"], &empty.json["waiting"]), (&json!([]), &json!(["e"])));
    assert_eq!(repo.tender(&["ship", "t1", "--all"]).code, 2);
}

/// A change that its own verifier refuses after it was carried over stays where it is.
#[test]
fn what_fails_on_the_ground_of_the_one_before_is_not_delivered() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("src/shared.txt", FILE);
    repo.commit("shared");
    let both =
        "grep -q one src/shared.txt && grep -q twelve src/shared.txt && case_bad both\ncase_ok b\nfinish";
    let repo = repo.with(&Verifier::new("unit").script(both));
    verified(&repo, "a", &FILE.replace("1\n2\n", "one\n2\n"));
    verified(&repo, "b", &FILE.replace("12\n", "twelve\n"));
    let answer = repo.json(&["ship", "--all"]).result(1);
    assert_eq!(answer.json["tasks"][1]["outcome"], "skipped", "{:#}", answer.json);
    assert_eq!(answer.json["tasks"][1]["error"]["code"], "verification.failed");
    assert_eq!(repo.text("src/shared.txt"), FILE.replace("1\n2\n", "one\n2\n"));
}

fn spawn(repo: &Repo<'_>, args: &[&str]) -> std::process::Child {
    let mut command: Command = repo.lab.tender_command(&repo.path);
    command.args(args).args(["--format", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("starts")
}

fn all_of(children: Vec<std::process::Child>) -> Vec<Output> {
    children.into_iter().map(|child| child.wait_with_output().expect("ends")).collect()
}

/// Twelve real processes open, and then ship. The verifier of each ends only once all twelve run: whoever held
/// a lock that another needs for that would keep them all from it.
#[test]
fn twelve_at_once_wait_for_no_verifier_of_another_and_lose_nothing() {
    const TASKS: usize = 12;
    let lab = Lab::new();
    let repo = lab.repo("app");
    for n in 0..TASKS {
        repo.write(format!("src/{n}.txt"), "before\n");
    }
    repo.commit("files");
    let here = lab.path("running");
    std::fs::create_dir(&here).expect("made");
    let script = format!(
        ": > '{0}'/$$\nfor i in $(seq 600); do [ $(ls '{0}' | wc -l) -ge {TASKS} ] && break; sleep 0.2; done\n\
         [ $(ls '{0}' | wc -l) -ge {TASKS} ] || case_bad alone\ncase_ok together\nfinish",
        here.display()
    );
    let repo = repo.with(&Verifier::new("unit").script(&script));
    let scopes: Vec<String> = (0..TASKS).map(|n| format!("src/{n}.txt")).collect();
    let starts =
        scopes.iter().map(|scope| spawn(&repo, &["start", "one of twelve", "--scope", scope])).collect();
    let mut tasks = Vec::new();
    for output in all_of(starts) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        tasks.push(Task::of(&serde_json::from_str(&text).expect("JSON")));
    }
    let mut ids: Vec<String> = tasks.iter().map(|task| task.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), TASKS, "each has a name of its own");
    for (task, file) in tasks.iter().zip(&scopes) {
        task.write(file, format!("by {}\n", task.id));
    }
    let ships = ids.iter().map(|id| spawn(&repo, &["ship", id])).collect();
    for (id, output) in ids.iter().zip(all_of(ships)) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["state"], "completed", "{id}: {answer:#}");
    }
    let written: std::collections::BTreeSet<String> = scopes.iter().map(|file| repo.text(file)).collect();
    assert_eq!(written.len(), TASKS, "each file has the text of its own task: {written:?}");
    let faults = crate::independent::faults(&crate::independent::rows(&repo.store()).expect("reads"));
    assert!(faults.is_empty(), "{faults:?}");
    repo.fsck_gc();
}
