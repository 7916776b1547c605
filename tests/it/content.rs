//! Conversions: line endings, ident, encodings, filter drivers. No false conflict, no changed byte that the
//! patch does not change; git itself is the oracle.

use crate::support::repo::{LINES, lines_with, path_text};
use crate::support::{Contract, Dice, Lab, Repo, setting};

/// A clone of the repository where the oracle, git, does what the patch says; returns (clone, files by name).
fn oracle<'l>(repo: &Repo<'l>, name: &str, change: impl FnOnce(&Repo<'l>)) -> Repo<'l> {
    let path = repo.lab.path(format!("tmp/{name}"));
    repo.git(&["clone", "-q", "--no-checkout", ".", path_text(&path)]);
    let copy = Repo::at(repo.lab, path);
    let config = repo.git(&["config", "--local", "--list"]);
    for line in config.lines().filter(|line| line.starts_with("filter.") || line.starts_with("core.autocrlf"))
    {
        let (key, value) = line.split_once('=').expect("key=value");
        copy.git(&["config", key, value]);
    }
    copy.git(&["checkout", "-q", "-f", "main"]);
    change(&copy);
    copy.git(&["add", "-A"]);
    copy
}

/// What git would check out of the oracle's index.
fn checked_out(copy: &Repo<'_>) -> crate::support::snapshot::Tree {
    let out = copy.lab.path(format!("tmp/out-{}", copy.path.file_name().expect("name").display()));
    let prefix = format!("--prefix={}/", out.display());
    copy.git(&["checkout-index", "-a", "-f", &prefix]);
    crate::support::snapshot::tree(&out)
}

/// Submits the oracle's staged change, delivers it, and compares with what git checks out.
#[track_caller]
fn delivers_like_git(repo: &Repo<'_>, copy: &Repo<'_>, paths: &[&str]) {
    let patch = copy.git_out(&["diff", "--cached", "--binary", "--full-index", "HEAD"]).ok().stdout;
    repo.open(&Contract::new("t1"));
    let candidate = repo.submit_patch("t1", &patch).ok();
    assert_eq!(candidate.json["tree"], copy.git(&["write-tree"]).as_str());
    repo.json(&["deliver", "t1"]).ok();
    let expected = checked_out(copy);
    let actual = repo.snapshot().files;
    for path in paths {
        let (one, two) = (expected.get(*path), actual.get(*path));
        assert!(one == two, "{path}: git checks out {one:?}, delivered was {two:?}");
    }
    for change in candidate.json["changes"].as_array().expect("list") {
        let path = change["path"].as_str().expect("text");
        let Some(blob) = change["new"]["gitBlob"].as_str() else { continue };
        // Where the blob itself holds CR, `git add` looks at the index and `git hash-object` does not: no
        // oracle.
        if !copy.git_out(&["cat-file", "blob", blob]).ok().stdout.contains(&b'\r') {
            assert_eq!(repo.git(&["hash-object", path]), blob, "{path}: the id is git's");
        }
    }
}

fn recheckout(repo: &Repo<'_>) {
    for name in repo.git(&["ls-files"]).lines() {
        if repo.exists(name) {
            repo.rm(name);
        }
    }
    repo.git(&["reset", "-q", "--hard"]);
}

#[test]
fn a_crlf_checkout_is_no_conflict_and_keeps_its_endings() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    repo.git(&["config", "core.autocrlf", "true"]);
    recheckout(&repo);
    assert!(repo.text("docs/a.md").contains("line 1\r\n"));
    repo.changing("t1", &[("docs/a.md", Some(&lines_with(5, "five").replace('\n', "\r\n")))]);
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("docs/a.md"), lines_with(5, "five").replace('\n', "\r\n"));
    assert_eq!(repo.git(&["diff", "--stat"]).lines().count(), 2, "one file, one line");
}

#[test]
fn autocrlf_variants_and_attributes_like_git() {
    let lab = Lab::new();
    for (number, (autocrlf, attributes)) in [
        ("true", ""),
        ("input", ""),
        ("false", "*.bat text eol=crlf\n*.sh text eol=lf\n"),
        ("false", "*.bat eol=crlf\n"),
        ("true", "*.bat -text\n*.sh text=auto\n"),
        ("false", "*.c ident\n"),
        ("false", "*.u16 text working-tree-encoding=UTF-16LE\n"),
        ("true", "*.u16 text working-tree-encoding=UTF-16 eol=crlf\n"),
    ]
    .iter()
    .enumerate()
    {
        let repo = lab.empty_repo(&format!("r{number}"));
        repo.git(&["config", "core.autocrlf", "false"]);
        if !attributes.is_empty() {
            repo.write(".gitattributes", attributes);
        }
        let names = ["run.bat", "run.sh", "main.c", "plain.txt"];
        for name in names {
            repo.write(name, format!("/* $Id$ */\n{LINES}"));
        }
        repo.write("wide.u16", utf16(LINES, attributes.contains("UTF-16 ")));
        repo.commit("files");
        repo.git(&["config", "core.autocrlf", autocrlf]);
        recheckout(&repo);
        let copy = oracle(&repo, &format!("o{number}"), |copy| {
            for name in names {
                let text = copy.text(name).replace("line 5", "five");
                copy.write(name, text);
            }
            if attributes.contains("u16") {
                copy.write("wide.u16", replaced_utf16(&copy.read("wide.u16")));
            }
        });
        delivers_like_git(&repo, &copy, &["run.bat", "run.sh", "main.c", "plain.txt", "wide.u16"]);
        assert_eq!(repo.git(&["diff", "--name-only", "--", ".gitattributes"]), "");
    }
}

fn utf16(text: &str, mark: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFFu16).into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

fn replaced_utf16(bytes: &[u8]) -> Vec<u8> {
    let big = bytes.starts_with(&[0xFE, 0xFF]);
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let units: Vec<u16> = bytes.chunks_exact(2).map(unit).collect();
    let text = String::from_utf16(&units).expect("UTF-16").replace("line 5", "five");
    text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
}

#[test]
fn mixed_endings_stay_as_they_are_line_by_line() {
    let lab = Lab::new();
    let mixed = "one\r\ntwo\nthree\r\nfour\nfive\r\nsix\nseven\r\n";
    for (number, (autocrlf, attributes)) in
        [("false", ""), ("true", ""), ("input", ""), ("false", "* -text\n"), ("false", "* text=auto\n")]
            .iter()
            .enumerate()
    {
        let repo = lab.empty_repo(&format!("r{number}"));
        repo.write("mixed.txt", mixed);
        repo.commit("raw bytes");
        repo.git(&["config", "core.autocrlf", autocrlf]);
        if !attributes.is_empty() {
            repo.write(".gitattributes", attributes);
            repo.git(&["add", ".gitattributes"]);
            repo.git(&["commit", "-q", "-m", "attributes"]);
        }
        assert_eq!(repo.text("mixed.txt"), mixed);
        let changed = mixed.replace("four", "FOUR");
        // The bytes of the blob hold CR: made by hand, so that no conversion of the oracle's interferes.
        let patch = "--- a/mixed.txt\n+++ b/mixed.txt\n@@ -1,7 +1,7 @@\n one\r\n two\n three\r\n-four\n+FOUR\n five\r\n six\n seven\r\n";
        repo.open(&Contract::new("t1"));
        repo.submit_patch("t1", patch.as_bytes()).ok();
        repo.json(&["deliver", "t1"]).ok();
        assert_eq!(repo.text("mixed.txt"), changed, "core.autocrlf={autocrlf} {attributes:?}");
    }
}

#[test]
fn a_clean_and_smudge_driver_of_the_base_is_used() {
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    repo.git(&["config", "filter.upper.clean", "tr A-Z a-z"]);
    repo.git(&["config", "filter.upper.smudge", "tr a-z A-Z"]);
    repo.git(&["config", "filter.upper.required", "true"]);
    repo.write(".gitattributes", "*.up filter=upper\n");
    repo.write("text.up", LINES.to_uppercase());
    repo.write("plain.txt", LINES);
    repo.commit("filtered");
    assert_eq!(repo.git(&["show", "HEAD:text.up"]) + "\n", LINES);
    let task = repo.open(&Contract::new("t1"));
    assert_eq!(
        task.read("text.up"),
        LINES.to_uppercase().as_bytes(),
        "the worktree is filled through the driver"
    );
    task.write("text.up", lines_with(5, "five").to_uppercase());
    task.write("plain.txt", lines_with(5, "five"));
    repo.json(&["submit", "t1"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(repo.text("text.up"), lines_with(5, "five").to_uppercase());
    assert_eq!(repo.text("plain.txt"), lines_with(5, "five"));
    repo.json(&["undo", "t1"]).ok();
    assert_eq!(repo.text("text.up"), LINES.to_uppercase());
}

#[test]
fn an_attribute_file_and_a_file_in_one_patch() {
    let lab = Lab::new();
    let repo = lab.empty_repo("app");
    repo.git(&["config", "core.autocrlf", "false"]);
    repo.write("run.bat", LINES);
    repo.write("other.bat", LINES);
    repo.commit("files");
    let copy = oracle(&repo, "oracle", |copy| {
        copy.write(".gitattributes", "*.bat text eol=crlf\n");
        copy.write("run.bat", lines_with(5, "five").replace('\n', "\r\n"));
    });
    // The default policy protects .gitattributes: a person confirms it.
    repo.approve_without_terminal();
    let patch = copy.git_out(&["diff", "--cached", "--binary", "--full-index", "HEAD"]).ok().stdout;
    repo.open(&Contract::new("t1"));
    repo.submit_patch("t1", &patch).ok();
    repo.json(&["deliver", "t1"]).fails("confirmation.required");
    repo.json(&["attest", "t1", "protected", "--pass", "-m", "endings"]).ok();
    repo.json(&["deliver", "t1"]).ok();
    assert_eq!(
        repo.text("run.bat"),
        lines_with(5, "five").replace('\n', "\r\n"),
        "written by the candidate's attributes"
    );
    assert_eq!(repo.text("other.bat"), LINES, "a path that the patch does not name is not rewritten");
    assert_eq!(repo.text(".gitattributes"), "*.bat text eol=crlf\n");
}

#[test]
fn random_attributes_and_contents_agree_with_git() {
    let lab = Lab::new();
    let trials = setting("TENDER_CONTENT_TRIALS", 12);
    let seed = setting("TENDER_SEED", 1);
    for trial in 0..trials {
        let mut dice = Dice::new(seed * 1000 + trial);
        let repo = lab.empty_repo(&format!("r{trial}"));
        repo.git(&["config", "core.autocrlf", "false"]);
        repo.git(&["config", "filter.swap.clean", "tr xyz abc"]);
        repo.git(&["config", "filter.swap.smudge", "tr abc xyz"]);
        let names: Vec<String> =
            (0..12).map(|n| format!("f{n}.{}", dice.pick(&["txt", "bat", "c", "bin", "md"]))).collect();
        let attributes: String =
            names.iter().map(|name| format!("{name} {}\n", attribute(&mut dice))).collect();
        repo.write(".gitattributes", attributes);
        for name in &names {
            repo.write(name, content(&mut dice));
        }
        repo.commit("random");
        repo.git(&["config", "core.autocrlf", dice.pick(&["true", "false", "input"])]);
        recheckout(&repo);
        let copy = oracle(&repo, &format!("o{trial}"), |copy| {
            for name in &names {
                if dice.below(3) > 0 {
                    let mut bytes = copy.read(name);
                    bytes.extend_from_slice(dice.pick(&[&b"more\n"[..], b"more\r\n", b"no end", b"\n"]));
                    copy.write(name, bytes);
                }
            }
        });
        let paths: Vec<&str> = names.iter().map(String::as_str).collect();
        eprintln!("trial {trial}, seed {seed}");
        if copy.git(&["diff", "--cached", "--name-only", "HEAD"]).is_empty() {
            continue;
        }
        delivers_like_git(&repo, &copy, &paths);
    }
}

fn attribute(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "text",
        "-text",
        "text=auto",
        "eol=crlf",
        "eol=lf",
        "text eol=crlf",
        "ident",
        "-text ident",
        "binary",
        "filter=swap",
        "filter=swap text",
        "filter=none",
        "!text",
        "text=auto eol=crlf",
    ])
}

fn content(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..dice.below(12) {
        bytes.extend_from_slice(dice.pick(&[
            &b"alpha"[..],
            b"$Id$",
            b"beta gamma",
            b"",
            b"caf\xc3\xa9",
            b"\xff\xfe",
            b"abc",
        ]));
        bytes.extend_from_slice(dice.pick(&[&b"\n"[..], b"\n", b"\r\n"]));
    }
    if dice.below(10) == 0 {
        bytes.push(0);
    }
    bytes
}
