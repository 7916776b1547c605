//! The house keeps its shape: this test reads `src/` and fails where a file steps out of its place.
//!
//! What is looked at is the product's code: comments, strings and test code (`#[cfg(test)]`, `tests.rs`,
//! `tests/`, `testing.rs`, `fuzz.rs`) are taken out first. Every exception stands in a table with its reason, and a line
//! of a table that is no longer needed fails the test too, so that the tables cannot rot.

#[path = "architecture/documentation.rs"]
mod documentation;
#[path = "architecture/ratchets.rs"]
mod ratchets;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which module may name which: the arrows of the house, downwards only.
const ARROWS: &[(&str, &[&str])] = &[
    ("main", &[]),
    ("lib", &["cli"]),
    ("cli", &["mcp", "ops", "render", "domain", "error"]),
    ("mcp", &["ops", "render", "tools", "domain", "error"]),
    ("ops", &["render", "task", "tools", "verifier", "git", "store", "process", "domain", "error"]),
    ("task", &["tools", "verifier", "git", "store", "process", "domain", "error"]),
    ("tools", &["verifier", "git", "store", "process", "domain", "error"]),
    ("verifier", &["git", "store", "process", "domain", "error"]),
    ("render", &["domain", "error"]),
    ("git", &["domain", "error"]),
    ("store", &["domain", "error"]),
    ("process", &["domain", "error"]),
    ("domain", &["error"]),
    ("error", &[]),
];

/// Arrows beyond the table, file by file.
const ARROW_EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "cli/mod.rs",
        "process",
        "the helper that confines itself and execs is this same binary under another first argument",
    ),
    (
        "git/slot.rs",
        "store",
        "a slot takes the store's lock and writes its marker by the store's private writer",
    ),
    (
        "cli/environment.rs",
        "git",
        "the caller's variables are read here and handed down as git's typed environment",
    ),
    ("cli/mod.rs", "git", "the repository is found once, before any use case is chosen"),
    ("cli/mod.rs", "store", "likewise where our own files lie"),
    (
        "cli/person.rs",
        "git",
        "whether a call without a terminal counts stands in the repository's own git config",
    ),
    ("cli/manual.rs", "store", "man pages and completions are written by the one writer of shared files"),
];

/// Who may start a program.
const SPAWN_SITES: &[(&str, &str)] = &[
    ("git/command.rs", "git itself, with a scrubbed environment"),
    ("process/launch.rs", "everything else: verifiers, set-ups, probes"),
    ("process/helper.rs", "makes no child: it replaces itself by the program that it was started for"),
];

/// Who may print.
const PRINTERS: &[(&str, &str)] = &[("cli/output.rs", "the only printer")];

/// Who may read the process environment.
const ENVIRONMENT_READERS: &[(&str, &str)] = &[
    ("cli/environment.rs", "read once and passed down"),
    ("cli/mod.rs", "the arguments are where a program begins"),
    ("process/helper.rs", "the helper is a program of its own: its arguments and what it hands on"),
];

/// Who may create, change or remove files, and what of.
const WRITERS: &[(&str, &str)] = &[
    ("git/apply.rs", "user files: executes a cleared plan"),
    ("git/apply/", "user files: staging, the commit step, looking, recovery"),
    ("git/index_write.rs", "the user's index: replaced under git's own lock, entry by entry"),
    ("git/answers.rs", "our own cache of what programs answered"),
    ("git/lease.rs", "opens for a lease, writes nothing"),
    ("git/beneath.rs", "the primitive steps beneath a directory descriptor, no link followed"),
    ("git/materialise.rs", "our trees: fills worktrees and slots"),
    ("git/worktree.rs", "our worktrees and their administration"),
    ("git/object_store.rs", "objects into a quarantine, by a throw-away git directory; the refs of a task"),
    ("git/registration.rs", "git's record of a worktree of ours"),
    ("git/slot.rs", "our slots"),
    ("git/slot/mending.rs", "lets a verifier write in a slot of ours"),
    ("git/merge.rs", "a throw-away place for what git merges"),
    ("git/convert.rs", "a throw-away place for git's conversions"),
    ("git/live_base.rs", "a copy of the user's index, to work on as a private one"),
    ("git/staged_tree.rs", "a copy of the user's index, to make a tree of it"),
    ("git/patch_intake/mail.rs", "a throw-away folder into which git splits a mailbox"),
    ("git/keep.rs", "the refs and quarantined objects of a task"),
    ("git/capture.rs", "reads the worktree; its private index is ours"),
    ("git/private_index.rs", "a private index is ours"),
    ("store/", "ledger, blobs, locks, layout: our own files"),
    ("process/", "the private home and the captured output of a run"),
    ("ops/doctor.rs", "tries in a throw-away folder what the file system can do"),
    ("ops/demo.rs", "a throw-away repository"),
    ("ops/init.rs", "creates the folders of `.tender/`; files by the store's exclusive writer"),
    (
        "ops/verifiers.rs",
        "folders for a new verifier, and throw-away repositories; files by the store's writers",
    ),
    ("ops/init/hook.rs", "the hook of git's, where none of somebody else's is; files by the store's writer"),
    ("task/unfinished.rs", "removes a task's private files, which are ours"),
    ("cli/manual.rs", "the folder for generated man pages and completions"),
    ("verifier/", "outputs of earlier runs and throw-away folders of a run"),
];

const WRITE_TOKENS: &[&str] = &[
    "fs::write",
    "File::create",
    "OpenOptions",
    "fs::rename",
    "renameat",
    "fs::remove_",
    "unlinkat",
    "symlinkat",
    "mkdirat",
    "create_dir",
    "linkat(",
    "hard_link",
    "set_permissions",
    "fchmod",
    "chmodat",
    ".set_len(",
    "fs::copy",
    "OFlags::CREATE",
    "OFlags::TRUNC",
    "ftruncate",
    "O_CREAT",
];
const SPAWN_TOKENS: &[&str] = &["process::Command", "libc::fork", "posix_spawn", "libc::execv", "CommandExt"];
const PRINT_TOKENS: &[&str] =
    &["print!(", "println!(", "eprint!(", "eprintln!(", "dbg!(", "io::stdout", "io::stderr", "anstream::std"];
const ENVIRONMENT_TOKENS: &[&str] =
    &["env::var", "env::args", "env::current_exe", "env::current_dir", "env::set_"];

/// A source file: its path beneath `src/`, its lines of product code.
struct Source {
    path: String,
    lines: Vec<String>,
    /// Lines of the file before its tests, comments included.
    length: usize,
}

impl Source {
    fn code(&self) -> String {
        self.lines.join("\n")
    }

    /// `git` of `git/apply/step.rs`; `main` of `main.rs`.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().expect("a name");
        first.strip_suffix(".rs").unwrap_or(first)
    }

    fn has(&self, tokens: &[&str]) -> Option<String> {
        let code = self.code();
        tokens.iter().find(|token| code.contains(**token)).map(|token| (*token).to_owned())
    }
}

fn files(top: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut todo = vec![top.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).expect("lists").map(|entry| entry.expect("entry").path()) {
            if entry.is_dir() {
                todo.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                all.push(entry);
            }
        }
    }
    all.sort();
    all
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "testing.rs" | "testing" | "fuzz.rs"))
}

fn sources() -> &'static [Source] {
    static ALL: std::sync::LazyLock<Vec<Source>> = std::sync::LazyLock::new(read_sources);
    &ALL
}

fn read_sources() -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&top)
        .into_iter()
        .map(|path| (path.strip_prefix(&top).expect("beneath").display().to_string(), path))
        .filter(|(name, _)| !is_test_file(name))
        .map(|(name, path)| {
            let text = std::fs::read_to_string(&path).expect("reads");
            let product = without_tests(&text);
            let length = product.lines().count();
            Source { path: name, lines: bare(&product).lines().map(str::to_owned).collect(), length }
        })
        .collect()
}

/// Up to the inline test module, which stands last in a file.
fn without_tests(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines() {
        let inline = line.starts_with("mod ") && line.ends_with('{');
        if inline && kept.last().is_some_and(|last| last.starts_with("#[cfg(test)]")) {
            kept.pop();
            break;
        }
        if inline && kept.len() > 1 && kept[kept.len() - 2].starts_with("#[cfg(test)]") {
            kept.truncate(kept.len() - 2);
            break;
        }
        kept.push(line);
    }
    kept.join("\n")
}

/// The code without comments and without what stands in string literals.
fn bare(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let bytes: Vec<char> = text.chars().collect();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let begins = |word: &str| word.chars().enumerate().all(|(n, c)| rest.get(n) == Some(&c));
        if begins("//") {
            at += rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        } else if let Some(hashes) = raw_string(rest) {
            let open = rest.iter().position(|c| *c == '"').expect("a raw string opens");
            let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let body: String = rest[open + 1..].iter().collect();
            let end = body
                .find(&close)
                .map_or(rest.len(), |found| open + 1 + body[..found].chars().count() + 1 + hashes);
            out.push_str("\"\"");
            out.extend(rest[..end].iter().filter(|c| **c == '\n'));
            at += end;
        } else if rest[0] == '"' {
            let end = string_end(rest);
            out.push_str("\"\"");
            out.extend(rest[..end].iter().filter(|c| **c == '\n'));
            at += end;
        } else if rest[0] == '\'' && (rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')) {
            // A character literal, not a lifetime.
            let skip = if rest.get(1) == Some(&'\\') { 3 } else { 2 };
            at += skip + rest[skip..].iter().position(|c| *c == '\'').map_or(0, |found| found + 1);
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    out
}

/// The number of `#` of a raw string that begins here.
fn raw_string(rest: &[char]) -> Option<usize> {
    let start = match rest {
        ['r', '"' | '#', ..] => 1,
        ['b', 'r', '"' | '#', ..] => 2,
        _ => return None,
    };
    let hashes = rest[start..].iter().take_while(|c| **c == '#').count();
    (rest.get(start + hashes) == Some(&'"')).then_some(hashes)
}

fn string_end(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Every top-level module that the code names, by `crate::x`, `use crate::{x, …}` or `git_tender::x`.
fn named(source: &Source, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let code = source.code();
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "git_tender::"] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            let words: Vec<String> = if rest.starts_with('{') {
                let end = closing(rest);
                top_level_words(&rest[1..end])
            } else {
                vec![rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()]
            };
            found.extend(words.into_iter().filter(|word| modules.contains(word)));
        }
    }
    found
}

fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn top_level_words(list: &str) -> Vec<String> {
    let (mut depth, mut word, mut all) = (0, String::new(), Vec::new());
    for c in list.chars().chain([',']) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let first = word.trim().split("::").next().unwrap_or_default().to_owned();
                all.push(first);
                word.clear();
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    all
}

/// Whether a table's entry (a file, or a folder with `/`) covers a path.
fn covers(entry: &str, path: &str) -> bool {
    entry == path || (entry.ends_with('/') && path.starts_with(entry))
}

/// Files with a token that no entry of the table allows, as sentences.
fn strangers(all: &[Source], tokens: &[&str], table: &[(&str, &str)]) -> Vec<String> {
    all.iter()
        .filter(|source| !table.iter().any(|(entry, _)| covers(entry, &source.path)))
        .filter_map(|source| source.has(tokens).map(|token| format!("src/{} uses {token}", source.path)))
        .collect()
}

#[test]
fn arrows_point_down() {
    let all = sources();
    let modules: BTreeSet<String> = all.iter().map(|source| source.module().to_owned()).collect();
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for source in all {
        let module = source.module();
        let allowed = ARROWS.iter().find(|row| row.0 == module);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("src/{}: no such layer in the table", source.path));
        for target in named(source, &modules) {
            if target == module || allowed.contains(&target.as_str()) {
                continue;
            }
            let exception = ARROW_EXCEPTIONS.iter().position(|row| row.0 == source.path && row.1 == target);
            match exception {
                Some(number) => drop(used.insert(number)),
                None => wrong.push(format!("src/{} names {target}", source.path)),
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that point the wrong way:\n{}", wrong.join("\n"));
    for (number, row) in ARROW_EXCEPTIONS.iter().enumerate() {
        assert!(used.contains(&number), "the exception {} -> {} is not needed any more", row.0, row.1);
    }
}

#[test]
fn programs_are_started_in_two_places() {
    let wrong = strangers(sources(), SPAWN_TOKENS, SPAWN_SITES);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_place_prints() {
    let wrong = strangers(sources(), PRINT_TOKENS, PRINTERS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_place_reads_the_environment() {
    let wrong = strangers(sources(), ENVIRONMENT_TOKENS, ENVIRONMENT_READERS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_written_in_few_places_each_with_a_reason() {
    let wrong = strangers(sources(), WRITE_TOKENS, WRITERS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_stands_in_one_file() {
    for source in sources().iter().filter(|source| source.path != "git/lease.rs") {
        let code = source.code();
        let word = code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
        assert!(!word, "src/{} holds unsafe code", source.path);
    }
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|source| source.length >= 500)
        .map(|source| format!("src/{}: {} lines without tests", source.path, source.length))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_file_opens_with_what_it_owns() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for source in sources() {
        let text = std::fs::read_to_string(top.join(&source.path)).expect("reads");
        assert!(text.starts_with("//!"), "src/{} does not open with `//!`", source.path);
    }
}

#[test]
fn the_domain_is_pure() {
    let tokens =
        ["std::fs", "std::env", "std::process", "std::time", "SystemTime", "Instant::", "git2", "rusqlite"];
    for source in sources().iter().filter(|source| source.module() == "domain") {
        assert_eq!(source.has(&tokens), None, "src/{}", source.path);
    }
}

#[test]
fn lints_are_expected_never_allowed() {
    for source in sources() {
        let code = source.code();
        // One `allow` is let through where an `expect(clippy::allow_attributes)` beside it gives the reason.
        let allowed = code.matches("#[allow(").count() + code.matches("#![allow(").count();
        let reasoned = code.matches("expect(clippy::allow_attributes").count();
        assert!(allowed <= reasoned, "src/{}: use #[expect(…, reason)]", source.path);
    }
}

#[test]
fn the_scanner_sees_code_and_only_code() {
    let text = "let a = \"println!(x)\"; // println!(y)\nlet b = r#\"unsafe \"# ; let c = '\"'; let d: &'static str = \"\\\"unsafe\";\nreal!();";
    let code = bare(text);
    assert!(!code.contains("println") && !code.contains("unsafe"), "{code}");
    assert!(code.contains("real!()") && code.contains("'static"), "{code}");
    let source = Source {
        path: "ops/x.rs".to_owned(),
        lines: vec!["use crate::{git::{a, b}, store, domain::c};".to_owned()],
        length: 1,
    };
    let modules = ["git", "store", "domain", "a"].map(str::to_owned).into_iter().collect();
    assert_eq!(named(&source, &modules).into_iter().collect::<Vec<_>>(), ["domain", "git", "store"]);
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\nb\n}"), "a");
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\nb"), "a\n#[cfg(test)]\nmod tests;\nb");
    let spawn = Source {
        path: "ops/x.rs".to_owned(),
        lines: vec!["std::process::Command::new(p)".to_owned()],
        length: 1,
    };
    assert_eq!(strangers(&[spawn], SPAWN_TOKENS, SPAWN_SITES).len(), 1);
}
