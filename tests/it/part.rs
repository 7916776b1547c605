//! `submit --only` and `--patch-mode`: a part of what the worktree changes, and the rest stays for the next.

use crate::support::lab::run;
use crate::support::{Contract, Lab, Repo, Task, Verifier};
use serde_json::json;

fn open(repo: &Repo<'_>) -> Task {
    repo.open(&Contract::new("t1").allowed(&["unit"]).scope(&["src/", "docs/"]))
}

fn with_unit(lab: &Lab) -> Repo<'_> {
    lab.repo("app")
        .with(&Verifier::new("unit").script("grep -q BAD src/a.txt && case_bad a\ncase_ok b\nfinish"))
}

#[test]
fn a_named_part_is_a_candidate_of_its_own_and_the_rest_is_for_the_next() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let task = open(&repo);
    task.write("src/a.txt", "BAD\n");
    task.write("docs/a.md", "words\n");
    task.write("docs/sub/new.md", "new\n");
    task.rm("docs/b.md");
    let part = repo.json(&["submit", "t1", "--only", "docs/a.md", "docs/sub"]).ok();
    let wanted = [("docs/a.md", "modified"), ("docs/sub/new.md", "added")];
    assert_eq!(part.changes(), wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(part.json["left"], json!(["docs/b.md", "src/a.txt"]));
    assert_eq!(repo.json(&["verify", "t1"]).ok().verdict("unit"), "passed", "the bad file is not in it");
    // The next part: its evidence is its own.
    let next = repo.json(&["submit", "t1", "--only", "src/"]).ok();
    assert_eq!((&next.json["candidate"], &next.json["left"][0]), (&json!(2), &json!("docs/a.md")));
    assert_eq!(repo.json(&["verify", "t1"]).result(1).verdict("unit"), "failed");
    // The first again is the first, and is delivered alone; the worktree has all of it still.
    assert_eq!(
        repo.json(&["submit", "t1", "--only", "docs/a.md", "docs/sub"]).ok().json["candidate"],
        json!(1)
    );
    let delivered = repo.json(&["deliver", "t1"]).ok();
    assert_eq!(delivered.outcomes().len(), 2);
    assert_eq!((repo.text("src/a.txt").as_str(), repo.exists("docs/b.md")), ("alpha\n", true));
    assert_eq!(task.read("src/a.txt"), b"BAD\n");
    assert!(repo.json(&["report", "t1"]).ok().has_risk("worktree"), "what is left is told");
}

#[test]
fn names_are_those_of_the_current_folder_and_dead_ones_are_told() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let task = open(&repo);
    task.write("src/a.txt", "one\n");
    task.write("docs/a.md", "two\n");
    let paths = |answer: &crate::support::Answer| {
        answer.changes().into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    // From the live tree, and from the worktree itself.
    assert_eq!(
        paths(&repo.json_in("docs", &[], None, &["submit", "t1", "--only", "a.md"]).ok()),
        ["docs/a.md"]
    );
    assert_eq!(
        paths(&repo.json_in("docs", &[], None, &["submit", "t1", "--only", "../src"]).ok()),
        ["src/a.txt"]
    );
    let inside = Repo::at(&lab, task.worktree.clone());
    assert_eq!(paths(&inside.json_in("docs", &[], None, &["submit", "--only", "."]).ok()), ["docs/a.md"]);
    assert_eq!(paths(&inside.json(&["submit", "--only", "*/a.*"]).ok()), ["docs/a.md", "src/a.txt"]);
    let refused = repo.json(&["submit", "t1", "--only", "src/a.txt", "src/b.txt", "nowhere/"]);
    let error = refused.fails("arguments.invalid");
    assert_eq!(error["details"]["unmatched"], json!(["src/b.txt", "nowhere/"]));
    repo.json(&["submit", "t1", "--only", "/etc/passwd"]).fails("arguments.invalid");
    assert_eq!(repo.tender(&["submit", "t1", "--only", "src", "--patch", "x"]).code, 2);
    // What is not taken is held to nothing; what is taken, to the scope.
    task.write("README.md", "outside\n");
    assert_eq!(
        repo.json(&["submit", "t1", "--only", "src"]).ok().json["left"],
        json!(["README.md", "docs/a.md"])
    );
    repo.json(&["submit", "t1", "--only", "README.md"]).fails("scope.violation");
}

#[test]
fn renames_modes_and_folders_come_as_they_are_named() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    let task = open(&repo);
    task.rm("docs/b.md");
    task.write("docs/moved.md", "second\n");
    task.chmod("src/b.txt", 0o755);
    let both = repo.json(&["submit", "t1", "--only", "docs"]).ok();
    assert_eq!(both.changes().len(), 2);
    assert_eq!(both.json["left"], json!(["src/b.txt"]));
    let one = repo.json(&["submit", "t1", "--only", "docs/moved.md"]).ok();
    assert_eq!(one.json["left"], json!(["docs/b.md", "src/b.txt"]), "the other end is told");
    let mode = repo.json(&["submit", "t1", "--only", "src/b.txt"]).ok();
    assert_eq!(mode.json["changes"][0]["new"]["mode"], "100755");
    // A file where a folder was: neither comes without the other.
    task.rm("docs");
    task.write("docs", "a file\n");
    let wide = repo.json(&["submit", "t1", "--only", "docs"]);
    // The scope names the folder, so that the file is outside of it.
    wide.fails("scope.violation");
    task.rm("docs");
    task.write("src/deep", "a file\n");
    repo.json(&["submit", "t1", "--only", "src/deep"]).ok();
    let text = repo.tender(&["submit", "t1", "--only", "src/deep"]).ok().text();
    assert!(text.contains("left in the worktree: ") && text.contains("docs/a.md"), "{text}");
}

/// What is typed at a terminal of its own; gives what was shown there.
fn typed(repo: &Repo<'_>, args: &str, keys: &str) -> (i32, String) {
    let tender = crate::support::lab::TENDER;
    let mut command = repo.lab.command("script", &repo.path);
    command.args(["-qec", &format!("'{tender}' {args}"), "/dev/null"]).env("TERM", "dumb");
    let out = run(command, Some(keys.as_bytes()));
    (out.code, out.text())
}

#[test]
fn hunks_are_taken_at_a_terminal() {
    let lab = Lab::new();
    let repo = with_unit(&lab);
    repo.write("src/long.txt", (1..=30).map(|n| format!("{n}\n")).collect::<String>());
    repo.commit("long");
    let task = open(&repo);
    // Without a terminal there is nobody to ask.
    let long: String = (1..=30).map(|n| format!("{n}\n")).collect();
    let edited = long.replace("\n2\n", "\ntwo\n").replace("\n15\n", "\nfifteen\n").replace("\n29\n", "\n");
    task.write("src/long.txt", &edited);
    task.write("src/new.txt", "new\u{1b}[2J\n");
    task.chmod("src/b.txt", 0o755);
    let refused = repo.json(&["submit", "t1", "--patch-mode"]);
    assert_eq!(refused.fails("not_supported")["subject"], "--patch-mode");
    if !lab.has_tool("script", "--version") {
        return;
    }
    // The mode of b, then the hunks of long, then the new file.
    let (code, shown) = typed(&repo, "submit t1 --patch-mode", "n\n?\ny\nn\ny\nn\n");
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("(2 of 3)") && shown.contains("+fifteen") && shown.contains("y - take this"),
        "{shown}"
    );
    assert!(!shown.contains("\u{1b}[2J"), "what a worker wrote moves no cursor");
    let patch = repo.tender(&["diff", "t1"]).ok().text();
    assert!(patch.contains("+two") && !patch.contains("fifteen") && patch.contains("-29"), "{patch}");
    assert!(!patch.contains("new.txt") && !patch.contains("b.txt"), "{patch}");
    let (code, shown) = typed(&repo, "submit t1 --patch-mode", "q\n");
    assert!(code == 8 && shown.contains("nothing was taken"), "{code} {shown}");
    let (code, shown) = typed(&repo, "submit t1 --patch-mode", "y\na\nd\n");
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("left in the worktree: src/new.txt"), "{shown}");
    assert_eq!(
        String::from_utf8(task.read("src/long.txt")).expect("text"),
        edited,
        "the worktree is as it was"
    );
}
