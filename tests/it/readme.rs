//! The README is held to the program: its session is run.
//!
//! `UPDATE_README=1 cargo test readme` writes the session anew.

use crate::support::lab::{TENDER, run};
use crate::support::{Lab, Repo};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- session -->\n```console\n";
const END: &str = "```\n<!-- /session -->";

/// What a reader could type, line by line, in a repository with one document and one verifier.
const LINES: &[&str] = &[
    "cat .tender/verifiers/greeting/verifier.toml",
    "git tender start 'Greet the world' --scope docs/ --verify greeting whitespace",
    "echo 'Hello, world!' > ../app.tender/t1/docs/greeting.md   # whatever makes the change works there",
    "echo 'remember the milk' > notes.txt                       # you go on working here",
    "git tender ship",
    "git status --short",
    "git tender start 'Greet everybody' --scope docs/ --verify greeting whitespace",
    "echo 'Hello, everybody!' > ../app.tender/t2/docs/greeting.md",
    "echo 'Hello, cat!' > docs/greeting.md                      # this time you edit the same file",
    "git tender ship; echo \"exit code $?\"",
    "cat docs/greeting.md",
];

#[test]
fn the_session_in_the_readme_is_what_happens() {
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    repo.write("docs/greeting.md", "Hello.\n");
    repo.write(
        ".tender/verifiers/greeting/verifier.toml",
        "protocol = 1\nid = \"greeting\"\ntitle = \"It greets\"\ncommand = [\"grep\", \"Hello\", \"docs/greeting.md\"]\ninputs = [\"docs/**\"]\n",
    );
    repo.commit("first");
    let mut session = String::new();
    for line in LINES {
        session.push_str(&format!("$ {line}\n{}", shell(&repo, line)));
    }
    let session = normalised(&lab, &session);
    let file = readme_file();
    let readme = std::fs::read_to_string(&file).expect("README.md");
    let (before, rest) = readme.split_once(BEGIN).expect("the session begins");
    let (shown, after) = rest.split_once(END).expect("the session ends");
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&file, format!("{before}{BEGIN}{session}{END}{after}")).expect("writes README.md");
        return;
    }
    assert_eq!(shown, session, "README.md is not what happens; UPDATE_README=1 writes it anew");
}

/// Read when the test runs: to compile the tests it need not be there.
fn readme_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")
}

/// Runs one line as a shell does, `git tender` on its PATH; both streams, in their order.
fn shell(repo: &Repo<'_>, line: &str) -> String {
    let mut command = repo.lab.command("setsid", &repo.path);
    let mut path = vec![Path::new(TENDER).parent().expect("a folder").to_path_buf()];
    path.extend(
        std::env::split_paths(&std::env::var_os("PATH").expect("PATH is set")).collect::<Vec<PathBuf>>(),
    );
    command.env("PATH", std::env::join_paths(path).expect("joins"));
    command.args(["--wait", "sh", "-c", &format!("exec 2>&1\n{line}")]);
    run(command, None).ok().text()
}

/// Lines of output that are wider than this are broken, so that the page stays readable everywhere.
const COLUMNS: usize = 118;

/// Ids and digests differ from run to run, folders from machine to machine: each becomes one name.
fn normalised(lab: &Lab, session: &str) -> String {
    let session = session.replace(lab.path("").to_str().expect("UTF-8").trim_end_matches('/'), "/home/me");
    let mut names: HashMap<String, String> = HashMap::new();
    let mut out = String::new();
    for part in session.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let id = word.len() >= 12
            && word.chars().all(|c| c.is_ascii_hexdigit())
            && word.contains(|c: char| c.is_ascii_digit());
        if id {
            let number = names.len() + 1;
            out.push_str(names.entry(word.to_owned()).or_insert_with(|| format!("<id {number}>")));
            out.push_str(&part[word.len()..]);
        } else {
            out.push_str(part);
        }
    }
    out.split_inclusive('\n').map(broken).collect()
}

/// A line in pieces of at most [`COLUMNS`], broken at spaces and indented like its beginning.
fn broken(line: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut out = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > indent.len() && column + width > COLUMNS {
            out.truncate(out.trim_end().len());
            out.push_str(&format!("\n{indent}  "));
            column = indent.len() + 2;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}
