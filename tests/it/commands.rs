//! Commands that stand beside the pipeline: demo, init, start, doctor, help; and what all commands share.

use super::open::task_shape;
use crate::support::repo::{lines_with, path_text};
use crate::support::{Answer, Contract, Lab, Repo, Task, Verifier, shape};
use serde_json::json;
use std::process::Stdio;

#[test]
fn demo_walks_the_whole_pipeline_and_says_where_it_lies() {
    let lab = Lab::new();
    let nowhere = Repo::at(&lab, lab.path("tmp"));
    let out = nowhere.tender(&["demo"]).ok();
    let text = out.text();
    for word in ["submit", "verify", "deliver"] {
        assert!(text.contains(word), "{word} is not shown: {text}");
    }
    assert!(
        text.contains("conflict") || text.to_lowercase().contains("refused"),
        "a refusal is included: {text}"
    );
    let place = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| "`'\",.:;()".contains(c)))
        .find(|word| word.starts_with('/') && std::path::Path::new(word).join(".git").exists());
    assert!(place.is_some(), "it says where the repository lies: {text}");
    let json = nowhere.json(&["demo"]).ok();
    assert!(json.json.to_string().contains('/'), "{:#}", json.json);
}

#[test]
fn demo_does_not_touch_the_repository_it_is_called_in() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let before = repo.snapshot();
    repo.tender(&["demo"]).ok();
    before.same(&repo.snapshot());
    assert!(!repo.store().exists());
}

fn cargo_project(lab: &Lab) -> Repo<'_> {
    let repo = lab.repo("app");
    repo.write("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    repo.write("src/lib.rs", "#[test]\nfn works() {}\n");
    repo.write("Cargo.lock", "version = 4\n\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\n");
    repo.commit("cargo project");
    repo
}

#[test]
fn init_writes_what_fits_and_never_overwrites() {
    let lab = Lab::new();
    let repo = cargo_project(&lab);
    let answer = repo.json(&["init"]).ok();
    assert!(repo.exists(".tender/config.toml"), "{:#}", answer.json);
    let manifests = || {
        let found = std::fs::read_dir(repo.join(".tender/verifiers"))
            .expect("verifiers")
            .map(|e| e.expect("entry").path());
        let mut found: Vec<_> = found.filter(|path| path.join("verifier.toml").exists()).collect();
        found.sort();
        found
    };
    assert!(
        manifests().iter().any(|path| path_text(path).contains("cargo") || path_text(path).contains("test"))
    );
    assert!(!manifests().iter().any(|path| path_text(path).contains("pytest")), "nothing of Python is here");
    assert!(answer.json.to_string().contains(".tender/"), "it says what it wrote: {:#}", answer.json);
    repo.write(".tender/config.toml", "# mine\n[policy]\nwrite = [\"src/\"]\n");
    let before = repo.snapshot();
    repo.json(&["init"]).ok();
    before.same(&repo.snapshot());
    // What it wrote is accepted.
    repo.commit("tender");
    repo.open(&Contract::new("t1").scope(&["src/"]));
}

#[test]
fn init_private_keeps_it_out_of_the_repository() {
    let lab = Lab::new();
    let repo = cargo_project(&lab);
    let before = repo.snapshot();
    repo.json(&["init", "--private"]).ok();
    before.same(&repo.snapshot());
    assert!(repo.store().join("local/config.toml").exists());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.json(&["init", "--private"]).ok();
}

#[test]
fn start_makes_the_contract_from_flags_with_the_first_free_id() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").commit(&repo);
    let answer = repo.json(&["start", "correct the documents", "--scope", "docs/", "--verify", "unit"]).ok();
    shape::check(&answer.json, &task_shape());
    assert_eq!(answer.json["taskId"], "t1");
    let second = repo.json(&["start", "another", "--scope", "src/", "--scope", "docs/a.md"]).ok();
    assert_eq!(second.json["taskId"], "t2");
    let task = Task::of(&answer.json);
    task.write("src/a.txt", "outside\n");
    repo.json(&["submit", "t1"]).fails("scope.violation");
    task.write("src/a.txt", "alpha\n");
    task.write("docs/a.md", "inside\n");
    repo.json(&["submit", "t1"]).ok();
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed");
    let task = Task::of(&second.json);
    task.write("docs/a.md", "x\n");
    repo.json(&["submit", "t2"]).ok();
    repo.open(&Contract::new("t3"));
    assert_eq!(repo.json(&["start", "more", "--scope", "docs/"]).ok().json["taskId"], "t4");
}

#[test]
fn start_takes_a_live_base_and_several_values() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.write("docs/a.md", "in progress\n");
    let answer = repo.json(&["start", "go on", "--scope", "docs/", "--scope", "src/", "--base", "live"]).ok();
    assert_eq!(Task::of(&answer.json).read("docs/a.md"), b"in progress\n");
}

#[test]
fn start_refuses_a_command_and_what_does_not_fit() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.json(&["start", "goal", "--scope", "docs/", "--", "touch", "x"]).fails("not_supported");
    repo.json(&["start"]).fails("arguments.invalid");
    repo.json(&["start", "goal"]).fails_one_of(&["arguments.invalid", "contract.invalid"]);
    repo.json(&["start", "goal", "--scope", "../x/"])
        .fails_one_of(&["arguments.invalid", "contract.invalid"]);
    assert_eq!(repo.json(&["status"]).ok().json["tasks"], json!([]));
    assert!(!repo.exists("x"));
}

#[test]
fn doctor_says_what_is_there_and_what_is_missing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = repo.json(&["doctor"]);
    assert!(
        answer.json["schema"].as_str().is_some_and(|s| s.starts_with("git-tender/doctor/")),
        "{:#}",
        answer.json
    );
    let git = repo.git(&["--version"]);
    let version = git.split_whitespace().nth(2).expect("a version");
    assert!(answer.json.to_string().contains(version), "{:#}", answer.json);
    let text = repo.tender(&["doctor"]).all();
    assert!(text.contains("git") && text.contains(version), "{text}");
    // Outside of any repository it still speaks of the machine.
    let nowhere = Repo::at(&lab, lab.path("home"));
    assert!(nowhere.tender(&["doctor"]).all().contains(version));
    assert!(!repo.store().exists(), "doctor makes nothing");
}

#[test]
fn doctor_lists_every_verifier_with_what_it_needs() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let absent = "read = [\"~/nowhere\"]\ntools = [{ name = \"sh\", probe = [\"sh\", \"-c\", \"echo no >&2; exit 1\"] }]";
    Verifier::new("lacking").inputs(&["src/**", "scr/**"]).key(absent).commit(&repo);
    Verifier::new("ready").commit(&repo);
    Verifier::new("blind").inputs(&["scr/**"]).commit(&repo);
    Verifier::new("odd").key("command = [\"no-such-program-here\"]").commit(&repo);
    Verifier::new("live").write(&repo);
    let place = ".git/tender/local/verifiers";
    repo.write(format!("{place}/own/verifier.toml"), "protocol = 1\nid = \"own\"\ncommand = [\"true\"]\n");
    repo.write(format!("{place}/bad/verifier.toml"), "comand = 1\n");
    let before = repo.snapshot();
    let doctor = repo.json(&["doctor"]).ok();
    let of = |id: &str| {
        let mut all = doctor.json["verifiers"].as_array().expect("a list").iter();
        all.find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}: {:#}", doctor.json)).clone()
    };
    let sh = |problem: serde_json::Value| json!([{"name": "sh", "problem": problem}]);
    let ready = json!({"id": "ready", "title": null, "problem": null, "committed": true, "private": false,
        "tools": sh(json!(null)), "absentReads": [], "deadInputs": []});
    assert_eq!(of("ready"), ready);
    let lacking = of("lacking");
    assert_eq!(lacking["tools"], sh(json!("`sh -c echo no >&2; exit 1` did not tell its version: no")));
    assert_eq!(
        (&lacking["absentReads"], &lacking["deadInputs"]),
        (&json!(["~/nowhere"]), &json!(["scr/**"]))
    );
    assert_eq!(of("blind")["problem"], "its inputs name no file");
    assert_eq!(of("odd")["tools"][0]["problem"], "no-such-program-here was not found on PATH");
    let live = of("live");
    assert_eq!((&live["committed"], &live["private"]), (&json!(false), &json!(false)));
    assert!(live["problem"].as_str().is_some_and(|why| why.contains("commit it")), "{live:#}");
    for (id, fits) in [("own", true), ("bad", false)] {
        let row = of(id);
        let seen = (&row["committed"], &row["private"], row["problem"].is_null());
        assert_eq!(seen, (&json!(false), &json!(true), fits), "{row:#}");
    }
    let text = repo.tender(&["doctor"]).all();
    for line in [
        "missing  verifier lacking\n          `sh -c echo no",
        "its inputs name nothing with scr/**",
        "~/nowhere, which it may read, is not here",
        "unfit    verifier blind: its inputs",
        "ok       verifier own (private)",
        "unfit    verifier live (not committed)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    before.same(&repo.snapshot());
}

#[test]
fn a_command_of_a_later_version_does_not_exist() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.open(&Contract::new("t1"));
    for args in [
        &["bundle", "create", "t1", "-o", "x"][..],
        &["run", "t1", "--", "true"],
        &["export", "t1", "--as", "junit"],
        &["no-such-command"],
        &["deliver", "t1", "--no-such-option"],
        &["status", "--format", "yaml"],
    ] {
        let out = repo.tender(args).exits(2);
        assert!(out.text().is_empty() && !out.errors().is_empty(), "{args:?}: {}", out.all());
        if !args.contains(&"--format") {
            repo.json(args).fails_one_of(&["arguments.invalid", "not_supported"]);
        }
    }
    repo.json(&["no-such-command"]).fails("arguments.invalid");
    repo.json(&["bundle"]).fails("arguments.invalid");
}

#[test]
fn help_is_there_for_every_command_and_names_no_command_of_a_later_version() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let top = repo.tender(&["--help"]).ok().text();
    let commands = [
        "demo", "init", "start", "open", "submit", "verify", "attest", "deliver", "ship", "rebase", "undo",
        "status", "answer", "report", "diff", "log", "show", "cancel", "gc", "doctor", "recover", "mcp",
        "agent", "check", "redo", "path", "amend", "schema",
    ];
    for command in commands {
        assert!(top.contains(command), "{command} is not in --help: {top}");
        let help = repo.tender(&[command, "--help"]).ok().text();
        assert!(help.lines().count() >= 3 && help.contains("Usage"), "{command}: {help}");
    }
    for command in ["bundle", "run"] {
        assert!(
            !top.lines().any(|line| line.trim_start().starts_with(command)),
            "{command} does not exist yet"
        );
    }
    let version = repo.tender(&["--version"]).ok().text();
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn no_color_and_a_pipe_have_no_escapes() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    for env in [&[][..], &[("NO_COLOR", "1")], &[("NO_COLOR", "1"), ("TERM", "xterm-256color")]] {
        for args in [
            &["status"][..],
            &["report", "t1"],
            &["diff", "t1"],
            &["log"],
            &["doctor"],
            &["report", "nope"],
            &["--help"],
        ] {
            let out = repo.tender_in("", env, None, args);
            assert!(!out.stdout.contains(&0x1b) && !out.stderr.contains(&0x1b), "{args:?}: {}", out.all());
        }
    }
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some("x\n"))]);
    for args in [
        &["log"][..],
        &["diff", "t1"],
        &["report", "t1"],
        &["status", "--format", "json"],
        &["--help"],
        &["no-such"],
    ] {
        let mut command = lab.tender_command(&repo.path);
        let mut child =
            command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("waits");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!errors.contains("panicked"), "{args:?}: {errors}");
        assert!(!matches!(output.status.code(), Some(70 | 101)), "{args:?}: {:?}", output.status);
    }
    // Both closed.
    let script = "exec \"$0\" log >&- 2>&-";
    let mut command = lab.command("sh", &repo.path);
    command.args(["-c", script, crate::support::lab::TENDER]);
    let out = crate::support::lab::run(command, None);
    assert!(![70, 101, 134].contains(&out.code), "{}", out.code);
}

#[test]
fn the_format_can_stand_in_front_too() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let answer = Answer::of(repo.tender(&["--format", "json", "status"])).ok();
    assert_eq!(answer.json["tasks"], json!([]));
    Answer::of(repo.tender(&["status", "--format=json"])).ok();
}

#[test]
fn in_text_the_message_and_the_remedy_go_to_stderr() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five")))]);
    repo.write("docs/a.md", lines_with(2, "mine"));
    let out = repo.tender(&["deliver", "t1"]).exits(3);
    assert!(out.text().is_empty(), "{}", out.text());
    assert!(out.errors().contains("docs/a.md") && out.errors().contains("git tender"), "{}", out.errors());
}

#[test]
fn progress_is_not_written_to_a_pipe() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("sleep 1.5\ncase_ok a\nfinish").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]).ok();
    assert!(answer.stderr.is_empty(), "{}", answer.stderr);
}

#[test]
fn every_refusal_of_a_beginner_names_a_next_step() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for (args, stdin, code) in [
        (&["open", "nowhere.json"][..], "", "not_found"),
        (&["open", "docs"], "", "io"),
        (&["open", "-"], "{", "contract.invalid"),
        (&["open", "-"], "[]", "contract.invalid"),
        (&["open", "-"], "{\"gaol\": 1}", "contract.invalid"),
        (&["start", "", "--scope", "docs/"], "", "contract.invalid"),
        (&["-C", "/nowhere", "status"], "", "arguments.invalid"),
        (&["start", "goal"], "", "arguments.invalid"),
        (&["report"], "", "not_found"),
    ] {
        // The shape of the answer is looked at in `fails`: a remedy with a command that exists.
        repo.json_in("", &[], Some(stdin.as_bytes()), args).fails(code);
    }
    let refused = repo.json(&["start", "goal", "--scope", "/etc/"]);
    assert_eq!(
        refused.fails("contract.invalid")["remedy"]["command"],
        json!(["git", "tender", "start", "--help"])
    );
    assert_eq!(repo.tender(&[]).ok().text(), repo.tender(&["status"]).ok().text());
    let text = repo.tender(&["sho"]).exits(2).errors();
    assert!(text.contains("show"), "a name that is near is told: {text}");
    let error = repo.json(&["start", "goal"]);
    assert_eq!(error.error()["remedy"]["command"], json!(["git", "tender", "start", "--help"]));
    let (task, _) = (repo.open(&Contract::new("t1").scope(&["docs/"])), repo.open(&Contract::new("t2")));
    task.write("src/a.txt", "outside\n");
    let error = repo.json(&["submit", "t1"]);
    assert_eq!(
        error.fails("scope.violation")["remedy"]["command"],
        json!(["git", "tender", "report", "--brief", "t1"])
    );
}

#[test]
fn outside_a_repository_and_in_a_bare_one_the_message_is_a_plain_sentence() {
    let lab = Lab::new();
    let nowhere = Repo::at(&lab, lab.path("home"));
    let error = nowhere.json(&["status"]);
    assert!(
        error.fails("not_found")["message"]
            .as_str()
            .expect("text")
            .ends_with("is not inside a git repository")
    );
    let bare = lab.repo_with("bare.git", &["--bare"]);
    for args in [&["status"][..], &["init"], &["start", "goal", "--scope", "docs/"]] {
        let error = bare.json(args);
        let message = error.fails("git.unsupported")["message"].as_str().expect("text").to_owned();
        assert!(message.contains("is a bare repository") && !message.contains("safe."), "{message}");
    }
}

#[test]
fn a_verifier_that_is_not_committed_is_told_at_once_and_the_remedy_is_not_to_try_again() {
    let lab = Lab::new();
    let repo = cargo_project(&lab);
    repo.json(&["init"]).ok();
    let text = repo.tender(&["start", "goal", "--scope", "src/", "--verify", "clippy"]).ok().text();
    assert!(text.contains("not committed") && text.contains("git tender ship t1"), "{text}");
    std::fs::write(lab.path("app.tender/t1/src/a.txt"), "changed\n").expect("writes");
    repo.json(&["submit"]).ok();
    let error = repo.json(&["deliver"]);
    assert_eq!(error.fails("evidence.missing")["remedy"]["command"], json!(["git", "add", ".tender"]));
}

#[test]
fn what_a_failed_verifier_wrote_is_one_command_away() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    Verifier::new("unit").script("echo the bolt is loose >&2\nexit 3").commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), |task| task.write("src/a.txt", "x\n"));
    let answer = repo.json(&["verify", "t1"]).result(1);
    let evidence = answer.row("unit")["evidence"].as_str().expect("text").to_owned();
    let text = repo.tender(&["report", "t1"]).ok().text();
    assert!(text.contains(&format!("git tender show {evidence}")), "{text}");
    let shown = repo.tender(&["show", &evidence]).ok().text();
    assert!(shown.contains("the bolt is loose") && shown.contains("exit code 3"), "{shown}");
    let error = repo.json(&["deliver", "t1"]);
    assert_eq!(
        error.fails("verification.failed")["remedy"]["command"],
        json!(["git", "tender", "show", evidence])
    );
    // A program still gets the record as it was stored.
    assert!(
        repo.json(&["show", &evidence]).ok().json["text"].as_str().is_some_and(|text| text.starts_with('{'))
    );
}
