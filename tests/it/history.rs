//! Histories of public projects, brought in at test time: two releases of a crate make one step. The step is
//! replayed as a patch and delivered into a tree with other uncommitted edits; the result is the newer
//! release.

use crate::support::repo::path_text;
use crate::support::snapshot::{Entry, tree};
use crate::support::{Contract, Lab, Repo, Verifier, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Fetches one release with cargo itself, from whatever registry this machine is set up for.
fn release(lab: &Lab, name: &str, version: &str) -> Option<PathBuf> {
    let place = lab.path(format!("tmp/{name}-{version}"));
    std::fs::create_dir_all(place.join("src")).expect("creates");
    std::fs::write(place.join("src/lib.rs"), "").expect("writes");
    let manifest = format!(
        "[package]\nname = \"throwaway\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[dependencies]\n{name} = {{ version = \"={version}\", default-features = false }}\n\n[workspace]\n"
    );
    std::fs::write(place.join("Cargo.toml"), manifest).expect("writes");
    // The user's own cargo home on purpose: it knows the registry and its mirror.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["vendor", "--quiet", "vendor"])
        .current_dir(&place)
        .stdin(Stdio::null())
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("cargo starts");
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let source = place.join("vendor").join(name);
    std::fs::remove_file(source.join(".cargo-checksum.json")).expect("the checksum file of cargo vendor");
    Some(source)
}

fn replace_content(repo: &Repo<'_>, source: &Path) {
    for entry in std::fs::read_dir(&repo.path).expect("lists").map(|entry| entry.expect("entry")) {
        if entry.file_name() != ".git" {
            repo.rm(entry.file_name());
        }
    }
    let mut command = repo.lab.command("cp", &repo.path);
    command.arg("-a").arg(format!("{}/.", source.display())).arg(".");
    crate::support::lab::run(command, None).ok();
}

/// A repository whose two commits are two releases, standing on the older one; and the step as a patch.
fn two_releases<'l>(lab: &'l Lab, name: &str, old: &str, new: &str) -> Option<(Repo<'l>, Vec<u8>)> {
    let (old_source, new_source) = (release(lab, name, old)?, release(lab, name, new)?);
    let repo = lab.empty_repo(name);
    repo.git(&["config", "core.autocrlf", "false"]);
    replace_content(&repo, &old_source);
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-q", "-m", old]);
    repo.git(&["tag", "old"]);
    replace_content(&repo, &new_source);
    repo.git(&["add", "-A", "-f"]);
    repo.git(&["commit", "-q", "-m", new]);
    repo.git(&["tag", "new"]);
    let patch = repo.git_out(&["diff", "--binary", "--full-index", "old", "new"]).ok().stdout;
    repo.git(&["reset", "-q", "--hard", "old"]);
    Some((repo, patch))
}

fn replay(name: &str, old: &str, new: &str) {
    let lab = Lab::new();
    let Some((repo, patch)) = two_releases(&lab, name, old, new) else {
        skip(&format!("{name} {old} and {new} cannot be fetched: no registry can be reached"));
        return;
    };
    let touched = repo.git(&["diff", "--name-only", "old", "new"]);
    assert!(touched.lines().count() >= 3, "the step is a real one: {touched}");
    let untouched = repo.git(&["ls-files"]);
    let untouched: Vec<&str> =
        untouched.lines().filter(|path| !touched.lines().any(|t| t == *path)).collect();
    // Work in progress of the user's: an edit in a file that the step leaves alone, and a new file.
    if let Some(path) = untouched.first() {
        let mut bytes = repo.read(path);
        bytes.extend_from_slice(b"\nwork in progress\n");
        repo.write(path, bytes);
    }
    repo.write("notes/mine.txt", "untracked\n");
    let before = repo.snapshot();
    repo.open(&Contract::new("t1"));
    let candidate = repo.submit_patch("t1", &patch).ok();
    assert_eq!(candidate.json["tree"], repo.git(&["rev-parse", "new^{tree}"]).as_str());
    repo.json(&["verify", "t1"]);
    let answer = repo.json(&["deliver", "t1"]);
    if answer.code == 6 {
        // The release touches `.github/` or the like: a person confirms.
        repo.approve_without_terminal();
        repo.json(&["attest", "t1", "protected", "--pass", "-m", "the release"]).ok();
        repo.json(&["deliver", "t1"]).ok();
    } else {
        answer.ok();
    }
    let out = lab.path("tmp/newer");
    repo.git(&["worktree", "add", "-q", "--detach", path_text(&out), "new"]);
    let expected = tree(&out);
    let actual = repo.snapshot().files;
    for (path, entry) in &expected {
        let mine = untouched.first() == Some(&path.as_str());
        assert!(mine || actual.get(path) == Some(entry), "{path} is not as in the newer release");
    }
    let stays = |path: &str| before.files.get(path) == actual.get(path);
    assert!(stays("notes/mine.txt") && untouched.first().is_none_or(|path| stays(path)));
    let gone = before.files.iter().filter(|(path, entry)| {
        matches!(entry, Entry::File { .. }) && !expected.contains_key(*path) && *path != "notes/mine.txt"
    });
    for (path, _) in gone {
        assert!(!actual.contains_key(path), "{path} is gone in the newer release");
    }
    repo.git(&["worktree", "remove", "--force", path_text(&out)]);
    repo.json(&["undo", "t1"]).ok();
    crate::support::snapshot::same_tree(&before.files, &repo.snapshot().files);
    repo.fsck_gc();
}

#[test]
fn a_step_of_itoa() {
    replay("itoa", "1.0.9", "1.0.14");
}

#[test]
fn a_step_of_semver() {
    replay("semver", "1.0.20", "1.0.24");
}

#[test]
fn a_step_of_cfg_if_with_its_own_tests_as_the_verifier() {
    let (name, old, new) = ("cfg-if", "1.0.0", "1.0.1");
    let lab = Lab::new();
    let Some((repo, patch)) = two_releases(&lab, name, old, new) else {
        skip(&format!("{name} {old} and {new} cannot be fetched: no registry can be reached"));
        return;
    };
    // The repository brings its verifier: every Rust file of the candidate must be free of conflict markers.
    Verifier::new("unit")
        .inputs(&["src/**", "tests/**", "Cargo.toml"])
        .script("for f in $(find src -name '*.rs'); do if grep -q '^<<<<<<<' $f; then case_bad $f; else case_ok $f; fi; done\nfinish")
        .commit(&repo);
    let contract = Contract::new("t1").allowed(&["unit", "whitespace"]).set(
        "requirements",
        serde_json::json!([
            {"id": "unit", "text": "no conflict markers", "verifier": "unit"},
            {"id": "whitespace", "text": "tidy", "verifier": "whitespace", "required": false}
        ]),
    );
    repo.open(&contract);
    repo.submit_patch("t1", &patch).ok();
    assert_eq!(repo.json(&["verify", "t1"]).verdict("unit"), "passed");
    repo.write("notes.txt", "mine\n");
    let answer = repo.json(&["deliver", "t1"]);
    if answer.code == 6 {
        repo.approve_without_terminal();
        repo.json(&["attest", "t1", "protected", "--pass", "-m", "the release"]).ok();
        repo.json(&["deliver", "t1"]).ok();
    } else {
        answer.ok();
    }
    repo.git(&["add", "-A"]);
    let difference = repo.git(&["diff", "--cached", "new", "--", ".", ":!.tender", ":!notes.txt"]);
    assert_eq!(difference, "");
}
