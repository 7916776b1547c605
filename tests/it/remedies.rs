//! Whoever follows a remedy comes to another place: the thing is done, or there is another next step. Nobody
//! is sent in a circle.

use crate::support::repo::{lines_with, path_text};
use crate::support::{Answer, Contract, Lab, Repo, Task};
use serde_json::{Value, json};
use std::fs::File;

/// What stands in the way of one delivery.
struct Hindrance {
    reason: &'static str,
    contract: fn(Contract) -> Contract,
    work: fn(&Task),
    meddle: fn(&Repo<'_>) -> Option<File>,
}

fn as_it_is(contract: Contract) -> Contract {
    contract
}

fn change_a(task: &Task) {
    task.write("docs/a.md", lines_with(5, "five"));
}

fn make_new(task: &Task) {
    task.write("docs/new.md", "new\n");
}

/// Every reason that can be brought about by hand. An owner that cannot be kept needs a second user, and a
/// change of a submodule is refused before.
const HINDRANCES: &[Hindrance] = &[
    Hindrance {
        reason: "edited",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.write("docs/a.md", lines_with(1, "one"));
            None
        },
    },
    Hindrance {
        reason: "missing",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.rm("docs/a.md");
            None
        },
    },
    Hindrance {
        reason: "appeared",
        contract: as_it_is,
        work: make_new,
        meddle: |repo| {
            repo.write("docs/new.md", "mine\n");
            None
        },
    },
    Hindrance {
        reason: "type_changed",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.rm("docs/a.md");
            repo.link("docs/a.md", "b.md");
            None
        },
    },
    Hindrance {
        reason: "mode_changed",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.chmod("docs/a.md", 0o755);
            None
        },
    },
    Hindrance {
        reason: "parent_is_link",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            std::fs::rename(repo.join("docs"), repo.join("elsewhere")).expect("moves");
            repo.link("docs", "elsewhere");
            None
        },
    },
    Hindrance {
        reason: "parent_is_file",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.rm("docs");
            repo.write("docs", "a file\n");
            None
        },
    },
    Hindrance {
        reason: "collision",
        contract: as_it_is,
        work: |task| task.write("readme.md", "small\n"),
        meddle: |_| None,
    },
    Hindrance {
        reason: "index_changed",
        contract: |contract| contract.set("delivery", json!("staged")),
        work: change_a,
        meddle: |repo| {
            let lies = repo.read("docs/a.md");
            repo.write("docs/a.md", lines_with(1, "one"));
            repo.git(&["add", "docs/a.md"]);
            repo.write("docs/a.md", lies);
            None
        },
    },
    Hindrance {
        reason: "unmerged",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            let id = repo.git(&["rev-parse", "HEAD:docs/a.md"]);
            let other = repo.git(&["rev-parse", "HEAD:docs/b.md"]);
            repo.git(&["rm", "-q", "--cached", "docs/a.md"]);
            let stages =
                format!("100644 {id} 1\tdocs/a.md\n100644 {other} 2\tdocs/a.md\n100644 {id} 3\tdocs/a.md\n");
            let mut command = repo.lab.command("git", &repo.path);
            command.args(["update-index", "--index-info"]);
            crate::support::lab::run(command, Some(stages.as_bytes())).ok();
            None
        },
    },
    Hindrance {
        reason: "intent_to_add",
        contract: |contract| contract.set("delivery", json!("staged")),
        work: make_new,
        meddle: |repo| {
            repo.write("docs/new.md", "mine\n");
            repo.git(&["add", "-N", "docs/new.md"]);
            repo.rm("docs/new.md");
            None
        },
    },
    Hindrance {
        reason: "outside_sparse",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.git(&["sparse-checkout", "set", "src"]);
            None
        },
    },
    Hindrance {
        reason: "nested_repository",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            repo.git(&["init", "-q", "docs"]);
            None
        },
    },
    Hindrance {
        reason: "open_for_writing",
        contract: as_it_is,
        work: change_a,
        meddle: |repo| {
            let file = File::options().append(true).open(repo.join("docs/a.md"));
            Some(file.expect("opens"))
        },
    },
];

/// Code and message of a failure, and the command that it advises.
fn what_next(answer: &Answer) -> Option<(String, String, Vec<String>)> {
    let error = answer.json.get("error")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let command = error["remedy"]["command"].as_array().into_iter().flatten().map(text).collect();
    Some((text(&error["code"]), text(&error["message"]), command))
}

/// Types the command of a remedy; `None` where it succeeds, else what comes next.
fn follow(repo: &Repo<'_>, command: &[String]) -> Option<(String, String, Vec<String>)> {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["git", "tender", "-h"] | ["git", "tender", _, "--help"] | ["git", "tender", "diff" | "log", ..] => {
            repo.tender(&words[2..]).ok();
            None
        }
        ["git", "tender", rest @ ..] => what_next(&repo.json(rest)),
        ["git", rest @ ..] => {
            let out = repo.git_out(rest);
            (out.code != 0).then(|| ("git".to_owned(), out.errors(), Vec::new()))
        }
        other => panic!("nobody can type {other:?}"),
    }
}

#[test]
fn no_conflict_sends_anybody_in_a_circle() {
    for Hindrance { reason, contract, work, meddle } in HINDRANCES {
        let lab = Lab::new();
        let repo = lab.repo("app");
        repo.submitted(&contract(Contract::new("t1")), work);
        let held = meddle(&repo);
        let answer = repo.json(&["deliver", "t1"]);
        assert!(answer.conflicts().iter().any(|(_, found)| found == reason), "{reason}: {:#}", answer.json);
        let (code, message, command) = what_next(&answer).expect("it fails");
        let hard = answer.fails("delivery.conflict")["details"]["conflicts"][0]["mergeable"] == false;
        drop(held);
        let next = follow(&repo, &command);
        if let Some((next_code, next_message, next_command)) = &next {
            let elsewhere = (next_code, next_message) != (&code, &message) && *next_command != command;
            assert!(elsewhere, "{reason}: {command:?} leads back: {next:?}");
        }
        let no_rebase = [
            "type_changed",
            "parent_is_link",
            "parent_is_file",
            "collision",
            "unmerged",
            "outside_sparse",
            "nested_repository",
            "open_for_writing",
        ];
        if no_rebase.contains(reason) {
            assert!(hard && !command.contains(&"rebase".to_owned()), "{reason}: {command:?}");
        }
    }
}

#[test]
fn what_a_remedy_can_solve_by_itself_it_solves() {
    for reason in ["mode_changed", "outside_sparse", "open_for_writing", "edited"] {
        let lab = Lab::new();
        let repo = lab.repo("app");
        let Hindrance { contract, work, meddle, .. } =
            HINDRANCES.iter().find(|one| one.reason == reason).expect("is in the table");
        repo.submitted(&contract(Contract::new("t1")), work);
        let held = meddle(&repo);
        let (.., command) = what_next(&repo.json(&["deliver", "t1"])).expect("it fails");
        drop(held);
        assert_eq!(follow(&repo, &command), None, "{reason}");
        let again = repo.json(&["deliver", "t1"]).ok();
        assert_eq!(again.json["state"], "completed", "{reason}");
    }
}

#[test]
fn a_collision_names_what_it_collides_with() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.submitted(&Contract::new("t1"), |task| task.write("readme.md", "small\n"));
    let answer = repo.json(&["deliver", "t1"]);
    assert_eq!(answer.conflicts(), [("readme.md".to_owned(), "collision".to_owned())]);
    assert_eq!(answer.fails("delivery.conflict")["details"]["conflicts"][0]["partner"], "README.md");
    let text = repo.tender(&["deliver", "t1"]).all();
    assert!(text.contains("collision readme.md: README.md is there"), "{text}");
}

/// A code, the arguments that lead to it, and what they read.
type Way<'a> = (&'a str, Vec<&'a str>, Option<&'a [u8]>);

/// One way to each of these codes; what it advises is typed, and leads on.
#[test]
fn no_failure_sends_anybody_in_a_circle() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let unit = crate::support::Verifier::new("unit").script("exit 1");
    unit.commit(&repo);
    repo.submitted(&Contract::new("t1").allowed(&["unit"]), change_a);
    let broken = crate::support::contract::raw(&lab, b"{}");
    let other = Contract::new("t1").scope(&["src/"]).file(&lab);
    repo.open(&Contract::new("narrow").scope(&["src/"]));
    let stray: &[u8] = b"--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1 +1 @@\n-no such line\n+x\n";
    let elsewhere: &[u8] = b"--- a/docs/none\n+++ b/docs/none\n@@ -1 +1 @@\n-x\n+y\n";
    let ways: &[Way<'_>] = &[
        ("arguments.invalid", vec!["deliver", "t1", "--no-such-option"], None),
        ("contract.invalid", vec!["open", path_text(&broken)], None),
        ("not_found", vec!["deliver", "nobody"], None),
        ("state.invalid", vec!["undo", "t1"], None),
        ("state.invalid", vec!["open", path_text(&other)], None),
        ("patch.invalid", vec!["submit", "t1", "--patch", "-"], Some(stray)),
        ("version.conflict", vec!["submit", "t1", "--patch", "-"], Some(elsewhere)),
        ("evidence.missing", vec!["deliver", "t1"], None),
        ("scope.violation", vec!["submit", "narrow", "--patch", "-"], Some(stray)),
    ];
    for (expected, args, input) in ways {
        let answer = repo.json_in("", &[], *input, args);
        answer.fails(expected);
        let (code, message, command) = what_next(&answer).expect("it fails");
        let next = follow(&repo, &command);
        if let Some((next_code, next_message, _)) = &next {
            assert_ne!((next_code, next_message), (&code, &message), "{args:?}: {command:?} leads back");
        }
    }
}
