//! Paths inside a repository: relative, normalised, bytes (git paths are bytes), never one that git or a
//! file system could take for `.git` or for a place outside the tree.
//!
//! The rules are git's `verify_path` with `core.protectHFS` and `core.protectNTFS` on, on every system,
//! because a delivered tree is checked out elsewhere too.

use crate::domain::value::bytes;
use crate::error::{Code, DetailKey, Failure, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;

/// The rule that a path breaks.
pub const RULE: DetailKey<String> = DetailKey::new("rule");

/// A checked path relative to the top of the tree, with `/` between components.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Checks and takes a path. The failure is a `scope.violation` that names the path and the rule.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self> {
        let bytes = bytes.into();
        match refusal_of(&bytes) {
            None => Ok(Self(bytes)),
            Some(rule) => Err(Failure::new(
                Code::ScopeViolation,
                format!("the path {} is refused: {rule}", display_bytes(&bytes)),
            )
            .subject(display_bytes(&bytes))
            .with_detail(&RULE, rule)),
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a relative file system path.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The components from the top down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&self.0)
    }

    /// The directory that holds it; `None` at the top.
    pub fn parent(&self) -> Option<RepoPath> {
        let at = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..at].to_vec()))
    }

    /// Every directory above it, from the top down; empty at the top.
    pub fn ancestors(&self) -> Vec<RepoPath> {
        (0..self.0.len()).filter(|at| self.0[*at] == b'/').map(|at| Self(self.0[..at].to_vec())).collect()
    }

    /// The path `below` this one; `below` may have several components and is checked like any path.
    pub fn join_below(&self, below: impl AsRef<[u8]>) -> Result<RepoPath> {
        Self::new([&self.0, b"/".as_slice(), below.as_ref()].concat())
    }

    /// Two paths with one key are one name to a file system that ignores case or the form of Unicode.
    /// Bytes that are no UTF-8 stand for themselves.
    pub fn fold_key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            // Upper case first: it brings together what lower case alone keeps apart (final sigma, long s,
            // sharp s).
            let folded = chunk.valid().nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
            key.extend(folded.nfc().collect::<String>().into_bytes());
            key.extend(chunk.invalid());
        }
        key
    }

    /// Why git would not take this path for a link although it takes it for a file: `.gitmodules` in any
    /// spelling must be what the tree says, not what a link leads to. `None` where a link is fine.
    pub fn refused_as_link(&self) -> Option<&'static str> {
        self.components().any(is_dot_gitmodules).then_some("a link must not be named `.gitmodules`")
    }
}

/// Bytes as text for a message: lossless for UTF-8 without control characters, escaped otherwise.
pub fn display_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}

/// The reason why these bytes are no path that may be written, or `None`.
fn refusal_of(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("it is empty");
    }
    if bytes.contains(&0) {
        return Some("it holds a NUL byte");
    }
    if bytes[0] == b'/' {
        return Some("it is absolute");
    }
    bytes.split(|b| *b == b'/').find_map(|component| match component {
        b"" => Some("it has an empty component"),
        b"." => Some("it has a `.` component"),
        b".." => Some("it has a `..` component"),
        _ if is_dot_git(component) => Some("a component is a spelling of `.git`"),
        _ => None,
    })
}

/// True where some file system takes the component, or what follows a backslash in it, for `.git`:
/// NTFS (short name, trailing dots and spaces, alternate data streams, `\\` as separator) and HFS+
/// (code points that it ignores). ASCII case never matters.
pub fn is_dot_git(component: &[u8]) -> bool {
    is_on_hfs(component, ".git") || component.split(|b| *b == b'\\').any(is_dot_git_on_ntfs)
}

/// True where some file system takes the component for `.gitmodules`.
pub fn is_dot_gitmodules(component: &[u8]) -> bool {
    is_on_hfs(component, ".gitmodules") || component.split(|b| *b == b'\\').any(is_dot_gitmodules_on_ntfs)
}

/// Code points that HFS+ skips when it compares names.
fn is_ignored_on_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether HFS+ takes `component` for the ASCII name `name`. As in git, what is no UTF-8 ends the name.
fn is_on_hfs(component: &[u8], name: &str) -> bool {
    let valid = component.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut seen = valid
        .chars()
        .take_while(|c| !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .filter(|c| !is_ignored_on_hfs(*c));
    name.chars().all(|want| seen.next().is_some_and(|c| c.eq_ignore_ascii_case(&want)))
        && seen.next().is_none()
}

fn is_dot_git_on_ntfs(name: &[u8]) -> bool {
    [b".git".as_slice(), b"git~1"]
        .iter()
        .any(|start| strip_prefix_ignoring_case(name, start).is_some_and(is_nothing_on_ntfs))
}

fn is_dot_gitmodules_on_ntfs(name: &[u8]) -> bool {
    if let Some(rest) = strip_prefix_ignoring_case(name, b".gitmodules") {
        return is_nothing_on_ntfs(rest);
    }
    if let Some([digit, rest @ ..]) = strip_prefix_ignoring_case(name, b"gitmod~") {
        return (b'1'..=b'4').contains(digit) && is_nothing_on_ntfs(rest);
    }
    // The fallback short name: eight characters, a prefix of `gi7eba`, `~` and a number without leading zero.
    let Some((short, rest)) = name.split_at_checked(8) else { return false };
    let Some(tilde) = short.iter().position(|b| *b == b'~') else { return false };
    let (prefix, number) = (&short[..tilde], &short[tilde + 1..]);
    tilde <= 6
        && prefix.eq_ignore_ascii_case(&b"gi7eba"[..tilde])
        && number.iter().all(u8::is_ascii_digit)
        && number.first().is_some_and(|digit| *digit != b'0')
        && is_nothing_on_ntfs(rest)
}

fn strip_prefix_ignoring_case<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// NTFS drops trailing dots and spaces, and what follows a colon names a stream of the same file.
fn is_nothing_on_ntfs(rest: &[u8]) -> bool {
    rest.iter().take_while(|b| **b != b':').all(|b| matches!(b, b'.' | b' '))
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display_bytes(&self.0))
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        bytes::serialize_bytes(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::new(bytes::deserialize_bytes(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::value::repo_path::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[expect(clippy::disallowed_methods, reason = "git itself is the oracle here")]
    fn git_with_input(at: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("git")
            .current_dir(at)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", at)
            .args(["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git starts");
        child.stdin.take().expect("piped").write_all(input).expect("git reads");
        let output = child.wait_with_output().expect("git ends");
        assert!(output.status.success(), "git {arguments:?}");
        output.stdout
    }

    /// Which of the names git takes, each beneath a directory of its own.
    fn taken_by_git(names: &[Vec<u8>], mode: &str) -> Vec<bool> {
        let dir = tempfile::tempdir().expect("a directory");
        git_with_input(dir.path(), &["init", "-q", "."], b"");
        let mut input = Vec::new();
        for (at, name) in names.iter().enumerate() {
            write!(input, "{mode} ce013625030ba8dba906f756967f9e9ca394464a\tp{at}/").expect("writes");
            input.extend_from_slice(name);
            input.push(0);
        }
        git_with_input(dir.path(), &["update-index", "-z", "--index-info"], &input);
        let listed = git_with_input(dir.path(), &["ls-files", "-z"], b"");
        let taken: BTreeSet<&[u8]> = listed.split(|b| *b == 0).collect();
        let full = |at: usize| [format!("p{at}/").as_bytes(), &names[at]].concat();
        (0..names.len()).map(|at| taken.contains(full(at).as_slice())).collect()
    }

    fn is_accepted(name: &[u8]) -> bool {
        RepoPath::new(name).is_ok()
    }

    const CORES: [&str; 19] = [
        ".git",
        ".GIT",
        ".gIt",
        "git~1",
        "GIT~1",
        "git~2",
        "git~10",
        ".gi",
        ".gitx",
        "git",
        ".gitmodules",
        ".GitModules",
        "gitmod~1",
        "gitmod~4",
        "gitmod~5",
        "gi7eba~1",
        "GI7EB~12",
        "g~123456",
        "gi7eba~0",
    ];

    fn any_spelling() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::sample::select(vec![
            "",
            "",
            "",
            ".",
            " ",
            "..",
            ". .",
            ":",
            "::$INDEX_ALLOCATION",
            ":x",
            "\\",
            "/",
            "\u{200c}",
            "\u{feff}",
            "\u{206f}",
            "\u{202a}",
            "\u{2010}",
            "\u{ffff}",
            "é",
            "x",
            "~1",
        ]);
        let raw = prop::sample::select(vec![
            vec![],
            vec![],
            vec![],
            vec![0xff],
            vec![0xe2, 0x80],
            vec![0xed, 0xa0, 0x80],
        ]);
        let before = prop::sample::select(vec!["", "", "a", "a\\", "a/", "\\", "\u{200d}", ".", " "]);
        (
            before,
            prop::sample::select(CORES.to_vec()),
            noise.clone(),
            raw,
            noise,
            any::<prop::sample::Index>(),
        )
            .prop_map(|(before, core, middle, raw, after, at)| {
                let mut name = core.as_bytes().to_vec();
                if middle.chars().all(|c| !c.is_ascii()) {
                    let at = at.index(name.len() + 1);
                    name.splice(at..at, middle.bytes());
                } else {
                    name.extend(middle.bytes());
                }
                [before.as_bytes(), &name, &raw, after.as_bytes()].concat()
            })
    }

    fn sample_names(strategy: impl Strategy<Value = Vec<u8>>, count: usize) -> Vec<Vec<u8>> {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let one = prop::collection::vec(strategy, count);
        let tree = proptest::strategy::Strategy::new_tree(&one, &mut runner).expect("generates");
        proptest::strategy::ValueTree::current(&tree)
    }

    #[test]
    fn spellings_of_dot_git_are_judged_as_git_judges_them() {
        let mut names = sample_names(any_spelling(), 30_000);
        names.extend(CORES.iter().map(|core| core.as_bytes().to_vec()));
        let files = taken_by_git(&names, "100644");
        let links = taken_by_git(&names, "120000");
        let refused = files.iter().filter(|taken| !**taken).count();
        assert!(refused > 2_500 && refused < 25_000, "the generator lost its aim: {refused} refused");
        for (at, name) in names.iter().enumerate() {
            // Git does not look behind a backslash in the first place of a component; we do.
            let blind = name.split(|b| *b == b'/').any(|component| component.starts_with(b"\\"));
            assert!(
                is_accepted(name) == files[at] || blind && files[at],
                "{} as a file: git {}",
                display_bytes(name),
                files[at]
            );
            let link = RepoPath::new(name.clone()).is_ok_and(|path| path.refused_as_link().is_none());
            assert!(!link || links[at], "{} as a link is refused by git, taken by us", display_bytes(name));
        }
    }

    #[test]
    fn ordinary_names_are_taken_by_both() {
        let mut names: Vec<Vec<u8>> = [
            "a",
            "a b",
            "-x",
            "修正.md",
            ".gitignore",
            ".gitattributes",
            ".github/x",
            "git~",
            "a.git",
            "x.git/y",
            "...",
            "a\\b",
            "\"q\"",
            "new\nline",
            "a:b",
            "con",
            "nul.txt",
            "~",
            "a.",
            "a ",
            "git~12",
        ]
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
        names.push(b"caf\xe9.txt".to_vec());
        for (at, taken) in taken_by_git(&names, "100644").into_iter().enumerate() {
            assert!(
                taken && is_accepted(&names[at]),
                "{}: git {taken}, we {}",
                display_bytes(&names[at]),
                is_accepted(&names[at])
            );
        }
    }

    #[test]
    fn links_named_like_gitmodules_are_refused() {
        for name in [
            ".gitmodules",
            "a/.GITMODULES",
            "gitmod~1",
            "gi7eba~1",
            ".gitmodules::$DATA",
            ".git\u{200c}modules",
        ] {
            let path = RepoPath::new(name).expect("a file may be named so");
            assert!(path.refused_as_link().is_some(), "{name}");
        }
        for name in [".gitignore", "gitmod~5", "gi7eba~0", "modules"] {
            assert_eq!(RepoPath::new(name).expect("fine").refused_as_link(), None, "{name}");
        }
    }

    #[test]
    fn paths_out_of_the_tree_are_refused() {
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            "a//b",
            "a/",
            ".",
            "./a",
            "a/./b",
            "a\0b",
        ] {
            let failure = RepoPath::new(name).expect_err(name);
            assert_eq!(failure.code(), Code::ScopeViolation);
        }
    }

    #[test]
    fn starts_with_goes_by_component() {
        let path = |text: &str| RepoPath::new(text).expect("fine");
        assert_eq!(path("docs").join_below("a/b").expect("fine"), path("docs/a/b"));
        assert!(path("docs").join_below("../x").is_err());
        assert!(path("docs").join_below(".git").is_err());
    }

    #[test]
    fn fold_keys_meet_where_a_file_system_may_see_one_name() {
        let key = |text: &str| RepoPath::new(text).expect("fine").fold_key();
        for (a, b) in
            [("A/b", "a/B"), ("é", "e\u{301}"), ("É", "e\u{301}"), ("ΣΑΣ", "σας"), ("straße", "STRASSE")]
        {
            assert_eq!(key(a), key(b), "{a} {b}");
        }
        assert_ne!(key("a"), key("b"));
        assert_ne!(key("e"), key("é"));
        let raw = RepoPath::new(b"X\xff".to_vec()).expect("fine");
        assert_eq!(raw.fold_key(), b"x\xff");
    }

    #[test]
    fn json_keeps_every_byte() {
        for bytes in [b"docs/a.md".to_vec(), "修/正".into(), b"caf\xe9".to_vec()] {
            let path = RepoPath::new(bytes).expect("fine");
            let text = serde_json::to_string(&path).expect("serializes");
            assert_eq!(serde_json::from_str::<RepoPath>(&text).expect("reads"), path);
        }
        assert!(serde_json::from_str::<RepoPath>("\"../x\"").is_err());
    }
}
