//! `cancel` while a command is at work, and runs that are interrupted or killed: nothing that they started
//! lives on.

use crate::support::repo::with_format;
use crate::support::{Answer, Contract, Lab, Out, Repo, Verifier};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Starts the program and does not wait. It hears every signal, whatever whoever runs the tests has closed
/// its ears to.
pub fn background(repo: &Repo<'_>, args: &[&str]) -> Child {
    let program = repo.lab.tender_command(&repo.path);
    let mut command = repo.lab.command("env", &repo.path);
    command.arg("--default-signal").arg(program.get_program()).args(program.get_args());
    command.args(with_format(args)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("starts")
}

pub fn wait_for(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "{} does not come", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn answer(child: Child, shown: &str) -> Answer {
    Answer::of(Out::new(shown.to_owned(), child.wait_with_output().expect("waits")))
}

/// Daemons of every kind (double forks, new sessions, deaf to signals) that write their ids to `pids`, and
/// then a sleep.
fn stubborn(lab: &Lab) -> Verifier {
    let (pids, ready) = (lab.path("pids"), lab.path("ready"));
    let (pids, ready) = (pids.display(), ready.display());
    Verifier::new("unit").counts(crate::support::verifier::Counts::Nothing).script(&format!(
        "trap '' TERM HUP INT\nfor i in 1 2 3; do\n  (setsid sh -c 'echo $$ >> {pids}; (setsid sh -c \"echo \\$\\$ >> {pids}; exec sleep 300\" &) ; exec sleep 300' &)\ndone\n\
         echo $$ >> {pids}\nwhile [ \"$(wc -l < {pids})\" -lt 7 ]; do sleep 0.01; done\necho > {ready}\nsleep 300\nfinish"
    ))
}

fn running(lab: &Lab) -> Vec<String> {
    let pids = std::fs::read_to_string(lab.path("pids")).expect("they were started");
    let alive = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    };
    pids.lines().filter(alive).map(str::to_owned).collect()
}

/// Ends come a moment after the process that was killed.
fn assert_all_gone(lab: &Lab) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !running(lab).is_empty() {
        assert!(Instant::now() < deadline, "still alive: {:?}", running(lab));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn at_work<'l>(lab: &'l Lab, args: &[&str]) -> (Repo<'l>, Child) {
    let repo = lab.repo("app");
    stubborn(lab).commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let child = background(&repo, args);
    wait_for(&lab.path("ready"));
    assert_eq!(running(lab).len(), 7);
    (repo, child)
}

fn log(repo: &Repo<'_>) -> Vec<Value> {
    let text = repo.tender(&["log", "--format", "json"]).ok().text();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn cancel_ends_a_running_verify_and_all_that_it_started() {
    for command in ["verify", "ship"] {
        let lab = Lab::new();
        let (repo, child) = at_work(&lab, &[command, "t1"]);
        let before = Instant::now();
        let cancelled = repo.json(&["cancel", "t1"]).ok().json;
        assert!(before.elapsed() < Duration::from_secs(25), "it waited for the lock");
        assert_eq!((&cancelled["state"], &cancelled["effects"]), (&json!("cancelled"), &json!([])));
        assert_eq!(running(&lab), [] as [String; 0], "nothing is left once cancel has answered");
        let answer = answer(child, command);
        answer.fails("cancelled");
        let rows = log(&repo);
        let run = rows.iter().rfind(|row| row["tool"] == "verifier").expect("the run");
        assert_eq!(run["state"], "failed_without_effect");
        assert_eq!(run["result"]["failure"]["code"], "cancelled");
        let last = rows.last().expect("a row");
        assert_eq!((&last["tool"], &last["state"]), (&json!("cancel"), &json!("succeeded")));
        repo.json(&["verify", "t1"]).fails("cancelled");
        assert!(repo.json(&["report", "t1"]).ok().json["budget"]["wallSeconds"]["used"].as_u64() >= Some(1));
    }
}

#[test]
fn a_request_that_was_left_over_stops_no_later_run() {
    let lab = Lab::new();
    let (repo, child) = at_work(&lab, &["verify", "t1"]);
    let holder = std::fs::read(repo.store().join("locks/t1.lock")).expect("the holder's name");
    assert!(!holder.is_empty());
    // The canceller asks and is killed before the holder has gone.
    std::fs::write(repo.store().join("locks/t1.stop"), &holder).expect("asks");
    answer(child, "verify").fails("cancelled");
    assert_all_gone(&lab);
    std::fs::remove_file(lab.path("pids")).expect("removes");
    std::fs::remove_file(lab.path("ready")).expect("removes");
    let child = background(&repo, &["verify", "t1"]);
    wait_for(&lab.path("ready"));
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(running(&lab).len(), 7, "it goes on");
    repo.json(&["cancel", "t1"]).ok();
    answer(child, "verify").fails("cancelled");
    assert_all_gone(&lab);
}

#[test]
fn a_verify_that_is_killed_or_interrupted_leaves_no_process_and_can_be_repeated() {
    use std::os::unix::process::ExitStatusExt;
    for (signal, number) in [("KILL", 9), ("INT", 2), ("TERM", 15)] {
        let lab = Lab::new();
        let (repo, mut child) = at_work(&lab, &["verify", "t1"]);
        let pid = child.id().to_string();
        let sent = lab.command("sh", &repo.path).args(["-c", &format!("kill -{signal} {pid}")]).status();
        assert!(sent.expect("runs").success());
        let status = child.wait().expect("waits");
        assert_eq!(status.signal(), Some(number), "{signal}: exit code 128+{number} of a shell: {status:?}");
        assert_all_gone(&lab);
        let recovered = repo.json(&["recover"]).ok().json;
        assert_eq!(recovered["actions"][0]["outcome"], "safe_to_retry", "{recovered:#}");
        assert_eq!(repo.json(&["report", "t1"]).ok().json["state"], "candidate");
        repo.json(&["cancel", "t1"]).ok();
    }
}

#[test]
fn cancel_without_anybody_at_work_is_as_before() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    for _ in 0..2 {
        let cancelled = repo.json(&["cancel", "t1"]).ok().json;
        assert_eq!((&cancelled["effects"], &cancelled["parts"]), (&json!([]), &json!([])));
    }
    repo.json(&["cancel", "nobody"]).fails("not_found");
}
