//! `whitespace`: what a change adds has no blemish that `git diff --check` knows, and no conflict marker
//! anywhere.
//!
//! Git judges, by its default rules and the base's attributes; what the user has configured says nothing
//! about a candidate. Only added lines are looked at (a moved file is compared with what it was). Three
//! things differ from git:
//! - A file that has CRLF line ends already, or is new and has no others, may end its lines with a carriage
//!   return.
//! - A line of `=` is a heading in prose, unless another marker is in the file.
//! - A text file that the attributes hide from diffs (`-diff`, `binary`, a driver) is searched for markers
//!   too.

use super::{BuiltinOutcome, finding};
use crate::domain::proof::evidence::Finding;
use crate::domain::proof::verdict::Verdict;
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::command::Git;
use crate::git::repository::Repository;
use crate::git::tree::{self, TreeDifference};
use crate::git::{Objects, Quarantine};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Git's rules where nothing is configured.
const DEFAULT_RULES: &str = "blank-at-eol,blank-at-eof,space-before-tab,tabwidth=8";
/// The rule of a left marker.
const MARKER: &str = "conflict-marker";
/// Files in which a line of `=` underlines a heading.
const PROSE: [&str; 7] = ["md", "markdown", "rst", "txt", "adoc", "asciidoc", "mkd"];

/// Judges what the candidate adds to the base. The failure is that git or an object cannot be read.
pub fn judge(
    repository: &Repository,
    quarantine: Option<&Quarantine>,
    base_tree: &ObjectId,
    tree: &ObjectId,
) -> Result<BuiltinOutcome> {
    let objects = repository.object_reader(quarantine)?;
    let changed: BTreeMap<RepoPath, TreeDifference> = tree::list_differences(&objects, base_tree, tree)?
        .into_iter()
        .filter(|difference| difference.new.is_some())
        .map(|difference| (difference.path.clone(), difference))
        .collect();
    let look = WhitespaceSearch { repository, quarantine, objects, base_tree, tree, changed };
    Ok(match look.blemishes() {
        Ok(blemishes) => BuiltinOutcome::by(blemishes.into_iter().map(Blemish::finding).collect()),
        Err(Trouble::Failed(failure)) => return Err(failure),
        Err(Trouble::NotUnderstood(line)) => BuiltinOutcome {
            outcome: Verdict::Error,
            reason: Some(format!("git diff-tree --check wrote what is not understood: {line}")),
            findings: Vec::new(),
        },
    })
}

enum Trouble {
    Failed(Failure),
    NotUnderstood(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One line that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Blemish {
    path: RepoPath,
    line: u64,
    problem: String,
}

impl Blemish {
    fn is_marker(&self) -> bool {
        self.problem == "leftover conflict marker"
    }

    fn finding(self) -> Finding {
        let rule = if self.is_marker() { MARKER } else { "whitespace" };
        finding(&self.path, Some(self.line), rule, self.problem)
    }
}

struct WhitespaceSearch<'a> {
    repository: &'a Repository,
    quarantine: Option<&'a Quarantine>,
    objects: Objects,
    base_tree: &'a ObjectId,
    tree: &'a ObjectId,
    changed: BTreeMap<RepoPath, TreeDifference>,
}

impl WhitespaceSearch<'_> {
    /// All blemishes, sorted by path and line.
    fn blemishes(&self) -> std::result::Result<BTreeSet<Blemish>, Trouble> {
        if self.changed.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut found = self.check(DEFAULT_RULES)?;
        let mut returning = BTreeSet::new();
        let trailing = found.iter().filter(|blemish| blemish.problem.contains("trailing whitespace"));
        for path in trailing.map(|blemish| &blemish.path).collect::<BTreeSet<_>>() {
            if self.returns(path)? {
                returning.insert(path.clone());
            }
        }
        if !returning.is_empty() {
            let lenient = self.check(&format!("{DEFAULT_RULES},cr-at-eol"))?;
            found.retain(|blemish| !returning.contains(&blemish.path));
            found.extend(lenient.into_iter().filter(|blemish| returning.contains(&blemish.path)));
        }
        found.extend(self.hidden_markers()?);
        let mut kept = BTreeSet::new();
        for blemish in found {
            if !blemish.is_marker() || !self.is_heading(&blemish)? {
                kept.insert(blemish);
            }
        }
        Ok(kept)
    }

    /// Git on this repository's objects, with nothing around it that could speak along: an attribute or a
    /// setting of the user's, a prefix from the current folder.
    fn git(&self, rules: &str) -> Git {
        let git = self.repository.git_call().work_tree(self.repository.git_dir());
        let git = git.attributes_from(self.base_tree.as_str()).with_setting("core.attributesFile=/dev/null");
        let git = git.with_setting(&format!("core.whitespace={rules}")).env("GIT_ATTR_NOSYSTEM", "1");
        match self.quarantine {
            Some(quarantine) => git.with_quarantine(quarantine),
            None => git,
        }
    }

    fn check(&self, rules: &str) -> std::result::Result<BTreeSet<Blemish>, Trouble> {
        let output = self
            .git(rules)
            .args([
                "diff-tree",
                "--check",
                "-r",
                "-M",
                "-l1000",
                "--no-color",
                "--no-ext-diff",
                "--no-relative",
            ])
            .args([self.base_tree.as_str(), self.tree.as_str()])
            .run()?;
        match output.code {
            Some(0 | 2) => self.read(&output.stdout),
            _ => Err(output.to_failure().into()),
        }
    }

    /// Lines `path:line: problem`; behind a problem that ends with a full stop, and is not about the end of
    /// the file, stands the added line itself.
    fn read(&self, mut text: &[u8]) -> std::result::Result<BTreeSet<Blemish>, Trouble> {
        let odd: Vec<&RepoPath> =
            self.changed.keys().filter(|path| path.as_bytes().contains(&b'\n')).collect();
        let mut found = BTreeSet::new();
        while !text.is_empty() {
            let Some((blemish, rest)) = self.header(&odd, text) else {
                return Err(Trouble::NotUnderstood(String::from_utf8_lossy(first_line(text).0).into_owned()));
            };
            text = rest;
            if !blemish.is_marker() && blemish.problem != "new blank line at EOF" {
                text = first_line(text).1;
            }
            found.insert(blemish);
        }
        Ok(found)
    }

    fn header<'t>(&self, odd: &[&RepoPath], text: &'t [u8]) -> Option<(Blemish, &'t [u8])> {
        let behind = |path: &RepoPath| {
            let (told, rest) = first_line(text.strip_prefix(path.as_bytes())?.strip_prefix(b":")?);
            let (line, problem) = std::str::from_utf8(told).ok()?.split_once(": ")?;
            let line = line.parse().ok()?;
            let problem = problem.strip_suffix('.').unwrap_or(problem).to_owned();
            Some((Blemish { path: path.clone(), line, problem }, rest))
        };
        if let Some(found) = odd.iter().find_map(|path| behind(path)) {
            return Some(found);
        }
        let line = first_line(text).0;
        let colons = (0..line.len()).rev().filter(|at| line[*at] == b':');
        colons
            .filter_map(|at| self.changed.get_key_value(&RepoPath::new(&line[..at]).ok()?))
            .find_map(|(path, _)| behind(path))
    }

    /// True where a carriage return before the line feed is how this file's lines end.
    fn returns(&self, path: &RepoPath) -> Result<bool> {
        let Some(difference) = self.changed.get(path) else { return Ok(false) };
        if let Some(TreeObject { id, .. }) = &difference.old {
            let base = self.objects.read_blob(id)?;
            if base.contains(&b'\n') {
                return Ok(base.windows(2).any(|pair| pair == b"\r\n"));
            }
        }
        let bytes = self.new_bytes(path)?;
        let mut lines =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).peekable();
        Ok(lines.peek().is_some() && lines.all(|line| line.ends_with(b"\r\n")))
    }

    /// The candidate's bytes; none for what is no file.
    fn new_bytes(&self, path: &RepoPath) -> Result<Vec<u8>> {
        match self.changed.get(path).and_then(|difference| difference.new.as_ref()) {
            Some(TreeObject { mode, id }) if *mode != Mode::Gitlink => self.objects.read_blob(id),
            _ => Ok(Vec::new()),
        }
    }

    /// A line of `=` in prose that has no other marker of that length.
    fn is_heading(&self, blemish: &Blemish) -> Result<bool> {
        let name = String::from_utf8_lossy(blemish.path.file_name()).to_ascii_lowercase();
        if !name.rsplit_once('.').is_some_and(|(_, end)| PROSE.contains(&end)) {
            return Ok(false);
        }
        let bytes = self.new_bytes(&blemish.path)?;
        let at = usize::try_from(blemish.line).unwrap_or(usize::MAX).saturating_sub(1);
        let line = bytes.split(|byte| *byte == b'\n').nth(at).unwrap_or_default().trim_ascii_end();
        let alone = !bytes
            .split(|byte| *byte == b'\n')
            .any(|other| [b'<', b'>'].iter().any(|sign| marker(other, line.len()) == Some(*sign)));
        Ok(line.iter().all(|byte| *byte == b'=') && alone)
    }

    /// Markers in files that git does not look into.
    fn hidden_markers(&self) -> Result<Vec<Blemish>> {
        let mut found = Vec::new();
        for (path, size) in self.hidden()? {
            let Some(difference) = self.changed.get(&path) else { continue };
            if !difference.new.as_ref().is_some_and(|object| object.mode.is_regular()) {
                continue;
            }
            let bytes = self.new_bytes(&path)?;
            if bytes[..bytes.len().min(8000)].contains(&0) {
                continue;
            }
            let old = match &difference.old {
                Some(TreeObject { mode, id }) if mode.is_regular() => self.objects.read_blob(id)?,
                _ => Vec::new(),
            };
            for line in added_markers(&old, &bytes, size) {
                let problem = "leftover conflict marker".to_owned();
                found.push(Blemish { path: path.clone(), line, problem });
            }
        }
        Ok(found)
    }

    /// Changed paths whose attribute `diff` is set to something, with the length of their markers.
    fn hidden(&self) -> Result<Vec<(RepoPath, usize)>> {
        let asked: Vec<u8> = self.changed.keys().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let told = self
            .git(DEFAULT_RULES)
            .args(["check-attr", "-z", "--stdin", "diff", "conflict-marker-size"])
            .stdin(asked)
            .run_for_stdout()?;
        let fields: Vec<&[u8]> = told.split(|byte| *byte == 0).collect();
        let mut hidden = Vec::new();
        for answer in fields.chunks_exact(6) {
            let (path, diff, size) = (answer[0], answer[2], answer[5]);
            if diff != b"unspecified" && diff != b"set" {
                let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()).unwrap_or(7);
                hidden.push((RepoPath::new(path)?, size));
            }
        }
        Ok(hidden)
    }
}

/// The first line without its end, and what follows.
fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// The sign of a line that is a marker of this length by git's rule: nothing, or a space, behind it.
fn marker(line: &[u8], size: usize) -> Option<u8> {
    let sign = *line.first().filter(|sign| b"<|=>".contains(sign))?;
    let fits = line.iter().take_while(|byte| **byte == sign).count() == size;
    (size > 0 && fits && line.get(size).is_none_or(u8::is_ascii_whitespace)).then_some(sign)
}

/// The lines, from 1, of markers that the new bytes have and the old ones have not. A line of `=` or `|`
/// counts only beside one that is a marker without doubt.
fn added_markers(old: &[u8], new: &[u8], size: usize) -> Vec<u64> {
    let mut had: HashMap<&[u8], usize> = HashMap::new();
    for line in old.split(|byte| *byte == b'\n').filter(|line| marker(line, size).is_some()) {
        *had.entry(line).or_default() += 1;
    }
    let mut added = Vec::new();
    let mut sure = false;
    for (line, number) in new.split(|byte| *byte == b'\n').zip(1u64..) {
        let Some(sign) = marker(line, size) else { continue };
        match had.get_mut(line).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => {
                sure |= matches!(sign, b'<' | b'>');
                added.push(number);
            }
        }
    }
    if sure { added } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    fn judged(home: &TestRepository, base: &ObjectId, tree: &ObjectId) -> BuiltinOutcome {
        judge(&home.repository(), None, base, tree).expect("judged")
    }

    /// What is found when each file goes from its first to its second bytes.
    fn found(files: &[(&str, &[u8], &[u8])]) -> Vec<String> {
        let home = TestRepository::new();
        // The user's own rules count for nothing.
        home.set_config("core.whitespace", "-blank-at-eol,-blank-at-eof,tab-in-indent");
        home.set_config("core.attributesFile", "/nonexistent");
        home.set_config("diff.relative", "true");
        home.set_config("color.diff", "always");
        for (path, old, _) in files.iter().filter(|file| !file.1.is_empty()) {
            home.write_file(path, old);
        }
        let base = home.commit_all("base");
        files.iter().for_each(|(path, _, new)| home.write_file(path, new));
        let tree = home.commit_all("candidate");
        let judged = judged(&home, &base, &tree);
        assert_eq!(judged.outcome == Verdict::Passed, judged.findings.is_empty(), "{judged:?}");
        judged
            .findings
            .iter()
            .map(|f| {
                format!(
                    "{}:{} {}",
                    f.path.as_deref().unwrap_or_default(),
                    f.line.unwrap_or_default(),
                    f.message
                )
            })
            .collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn added_blemishes_are_found_and_old_ones_are_not() {
        let new = b"old \nnew \n \tx\n\ty\n\n";
        let expected =
            ["a:2 trailing whitespace", "a:3 space before tab in indent", "a:5 new blank line at EOF"];
        assert_eq!(found(&[("a", b"old \n", new)]), expected);
        assert_eq!(found(&[("a", b"x\n", b"x\ny\n"), ("gone", b"", b"fine\n")]), NONE);
        assert_eq!(found(&[("a", b"x \nb\n", b"b\n")]), NONE, "what goes is not looked at");
    }

    #[test]
    fn names_of_any_kind_are_told_apart() {
        let bad: &[u8] = b"x \n";
        let files = [
            ("+p:1: trailing whitespace.", b"".as_slice(), bad),
            ("a b/ä", b"", bad),
            ("o\nd", b"", bad),
            ("d", b"", b"fine\n"),
        ];
        let expected = ["\"o\\nd\":1", "+p:1: trailing whitespace.:1", "a b/ä:1"];
        let mut found = found(&files);
        found.sort();
        assert_eq!(found, expected.map(|place| format!("{place} trailing whitespace")));
    }

    #[test]
    fn carriage_returns_belong_to_files_that_have_them() {
        assert_eq!(found(&[("a", b"x\r\ny\r\n", b"x\r\nz\r\n")]), NONE);
        assert_eq!(found(&[("a", b"x\r\ny\n", b"x\r\nz\r\ny\n")]), NONE, "mixed ends stay as they are");
        assert_eq!(found(&[("new", b"", b"x\r\nz\r\n")]), NONE);
        assert_eq!(found(&[("new", b"", b"x\r\nz\n")]), ["new:1 trailing whitespace"]);
        assert_eq!(found(&[("a", b"x\ny\n", b"x\r\ny\r\n")]).len(), 2, "a change of the ends is told");
        assert_eq!(found(&[("a", b"x\r\n", b"x\r\nz \r\n"), ("b", b"x\n", b"x\nz\r\n")]).len(), 2);
    }

    #[test]
    fn markers_are_found_also_where_git_does_not_look() {
        let conflict: &[u8] = b"a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n";
        let lines = |name: &str| [2, 4, 6].map(|line| format!("{name}:{line} leftover conflict marker"));
        assert_eq!(found(&[("a.rs", b"a\n", conflict)]), lines("a.rs"));
        assert_eq!(found(&[("a.md", b"a\n", conflict)]), lines("a.md"));
        for attributes in ["a.lock -diff", "a.lock binary", "a.lock diff=driver"] {
            let rules = format!("{attributes}\n");
            let attributes: (&str, &[u8], &[u8]) = (".gitattributes", rules.as_bytes(), rules.as_bytes());
            assert_eq!(found(&[attributes, ("a.lock", b"a\n", conflict)]), lines("a.lock"), "{rules}");
            assert_eq!(
                found(&[attributes, ("a.lock", conflict, &[conflict, b"z\n"].concat())]),
                NONE,
                "{rules}"
            );
            assert_eq!(found(&[attributes, ("a.lock", b"a\n", b"\0\n<<<<<<< a\n")]), NONE, "{rules}");
        }
        assert_eq!(found(&[("bin", b"", b"\0 \n<<<<<<< a\n")]), NONE);
    }

    #[test]
    fn headings_are_no_markers() {
        let heading: &[u8] = b"Heading\n=======\n\ntext\n";
        assert_eq!(found(&[("a.md", b"", heading), ("b.RST", b"", heading)]), NONE);
        assert_eq!(found(&[("a.rs", b"", heading)]), ["a.rs:2 leftover conflict marker"]);
    }

    #[test]
    fn the_attributes_of_the_base_count_and_not_the_candidates() {
        let (none, strict): (&[u8], &[u8]) = (b"* -whitespace\n", b"* whitespace\n");
        assert_eq!(found(&[(".gitattributes", none, strict), ("a", b"", b"x \n")]), NONE);
        assert_eq!(
            found(&[(".gitattributes", strict, none), ("a", b"", b"x \n")]),
            ["a:1 trailing whitespace"]
        );
        let sized: &[u8] = b"* conflict-marker-size=9\n";
        assert_eq!(found(&[(".gitattributes", sized, sized), ("a", b"", b"<<<<<<< a\n")]), NONE);
        assert_eq!(found(&[(".gitattributes", sized, sized), ("a", b"", b"<<<<<<<<< a\n")]).len(), 1);
    }

    #[test]
    fn a_moved_file_keeps_its_old_blemishes() {
        let home = TestRepository::new();
        let text: Vec<u8> = (0..50).flat_map(|n| format!("line {n} \n").into_bytes()).collect();
        home.write_file("old", &text);
        let base = home.commit_all("base");
        home.remove_file("old");
        home.write_file("new", &[text.as_slice(), b"more \n"].concat());
        let tree = home.commit_all("candidate");
        let judged = judged(&home, &base, &tree);
        assert_eq!(judged.findings.len(), 1);
        assert_eq!(judged.reason.as_deref(), Some("new:51: trailing whitespace"));
        assert_eq!(self::judged(&home, &base, &base).outcome, Verdict::Passed);
    }
}
