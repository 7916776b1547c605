//! The lines that open a file's section: `diff --git` and what git writes beneath it, `---` and `+++`.
//!
//! `a/` and `b/` (and the other pairs that git knows) are taken off where both names have their part of the
//! pair; names without them are paths as they are.

use super::super::lines::{PatchLines, quote_line};
use super::super::{line_invalid, parse_written_path};
use crate::domain::change::patch_text::names;
use crate::domain::change::patch_text::names::Strip;
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::Result;
use crate::tools::place::as_written;

/// What the header of a file says.
#[derive(Debug, Default)]
pub(super) struct SectionHeader {
    /// The path before; `None` for a new file.
    pub old: Option<RepoPath>,
    /// The path after; `None` for a deleted file.
    pub new: Option<RepoPath>,
    /// It begins with `diff --git`.
    pub is_git: bool,
    /// The executable bit after, where it is said to change or to be new.
    pub executable: Option<bool>,
    /// The blob before, perhaps abbreviated.
    pub preimage: Option<String>,
    /// The blob after, perhaps abbreviated.
    pub postimage: Option<String>,
    /// `---` and `+++` stand there, and hunks have to follow.
    has_dashes: bool,
    /// It is said to have less than all in common with what it was.
    is_partly_similar: bool,
}

/// The pairs of prefixes that git writes, for the two sides of a diff.
const PREFIXES: [(&str, &str); 6] =
    [("a/", "b/"), ("b/", "a/"), ("i/", "w/"), ("c/", "i/"), ("c/", "w/"), ("o/", "w/")];

/// The header lines as they stand there.
#[derive(Default)]
struct HeaderLines<'a> {
    git: Option<&'a str>,
    old_mode: Option<bool>,
    new_mode: Option<bool>,
    new_file: Option<bool>,
    deleted_file: Option<bool>,
    rename_from: Option<Vec<u8>>,
    rename_to: Option<Vec<u8>>,
    ids: (Option<String>, Option<String>),
    dashes: Option<[Option<Vec<u8>>; 2]>,
    similarity: Option<&'a str>,
}

impl SectionHeader {
    /// True where the header alone is a whole change.
    pub(super) fn is_whole(&self) -> bool {
        let is_change = self.old != self.new || self.executable.is_some();
        let is_other_text =
            self.preimage.is_some() && self.postimage.is_some() && self.preimage != self.postimage;
        self.is_git && is_change && !is_other_text && !self.has_dashes && !self.is_partly_similar
    }

    /// Reads from the section's first line to its hunks.
    pub(super) fn read_section(text: &PatchLines<'_>, at: &mut usize) -> Result<Self> {
        let start = *at;
        let mut said = HeaderLines::default();
        if let Some(names) = text.line(*at).strip_prefix("diff --git ") {
            said.git = Some(names);
            *at += 1;
            while said.take_line(text, *at)? {
                *at += 1;
            }
        }
        if let (Some(before), Some(after)) =
            (text.line(*at).strip_prefix("--- "), text.line(*at + 1).strip_prefix("+++ "))
        {
            said.dashes = Some([parse_name(before, *at)?, parse_name(after, *at + 1)?]);
            *at += 2;
        }
        said.brought_together(start)
    }
}

/// The name in the rest of a `---` or `+++` line; `None` for `/dev/null`.
fn parse_name(rest: &str, at: usize) -> Result<Option<Vec<u8>>> {
    let rest = rest.as_bytes();
    if names::is_dev_null(rest) || names::is_epoch(rest) {
        return Ok(None);
    }
    names::after_dashes(rest)
        .map(without_dot)
        .filter(|name| !name.is_empty())
        .map(Some)
        .ok_or_else(|| line_invalid(at + 1, "the name of the file cannot be read"))
}

/// Before the prefixes are looked at: `./a/f` and `./b/f` have a pair of them too.
fn without_dot(name: Vec<u8>) -> Vec<u8> {
    as_written(&name).to_vec()
}

impl<'a> HeaderLines<'a> {
    /// Takes one line beneath `diff --git`; false where it is none of the header's.
    fn take_line(&mut self, text: &PatchLines<'a>, at: usize) -> Result<bool> {
        let line = text.line(at);
        let after = |word: &str| line.strip_prefix(word);
        let renamed = |rest: &str| {
            names::whole_name(rest.as_bytes()).ok_or_else(|| line_invalid(at + 1, "the name cannot be read"))
        };
        if let Some(rest) = after("old mode ") {
            self.old_mode = Some(parse_executable_mode(rest, at)?);
        } else if let Some(rest) = after("new mode ") {
            self.new_mode = Some(parse_executable_mode(rest, at)?);
        } else if let Some(rest) = after("new file mode ") {
            self.new_file = Some(parse_executable_mode(rest, at)?);
        } else if let Some(rest) = after("deleted file mode ") {
            self.deleted_file = Some(parse_executable_mode(rest, at)?);
        } else if let Some(rest) = after("rename from ") {
            self.rename_from = Some(renamed(rest)?);
        } else if let Some(rest) = after("rename to ") {
            self.rename_to = Some(renamed(rest)?);
        } else if let Some(rest) = after("index ") {
            self.ids = parse_index_ids(rest, at)?;
        } else if after("copy from ").or(after("copy to ")).is_some() {
            return Err(line_invalid(at + 1, "copies cannot be made; add the file with its content"));
        } else if let Some(rest) = after("similarity index ") {
            self.similarity = Some(rest.trim());
        } else {
            return Ok(after("dissimilarity index ").is_some());
        }
        Ok(true)
    }

    /// Brings the lines together, and refuses those that contradict each other.
    fn brought_together(self, start: usize) -> Result<SectionHeader> {
        let wrong = |what: &str| line_invalid(start + 1, what);
        let (before, after) = self.both_names(start)?;
        let creates =
            self.new_file.is_some() || self.dashes.as_ref().is_some_and(|[before, _]| before.is_none());
        let deletes =
            self.deleted_file.is_some() || self.dashes.as_ref().is_some_and(|[_, after]| after.is_none());
        let moves = self.rename_from.is_some();
        let modes = self.old_mode.is_some() || self.new_mode.is_some();
        let shown = self
            .dashes
            .as_ref()
            .is_some_and(|[before, after]| creates && before.is_some() || deletes && after.is_some());
        if [creates, deletes, moves || modes].into_iter().filter(|holds| *holds).count() > 1
            || self.old_mode.is_some() != self.new_mode.is_some()
            || shown
        {
            return Err(wrong("the header lines of the file contradict each other"));
        }
        let (old, new) = (parse_written_path(before)?, parse_written_path(after)?);
        if !moves && old != new {
            let message = format!(
                "the two names of the file differ ({old}, {new}); a rename needs `rename from` and `rename to`"
            );
            return Err(line_invalid(start + 1, message));
        }
        if moves && old == new {
            return Err(wrong("a file is renamed to its own name"));
        }
        Ok(SectionHeader {
            old: (!creates).then_some(old),
            new: (!deletes).then_some(new),
            is_git: self.git.is_some(),
            executable: self
                .new_file
                .or(self.new_mode)
                .filter(|mode| creates || self.old_mode != Some(*mode)),
            preimage: self.ids.0.filter(|_| !creates),
            postimage: self.ids.1.filter(|_| !deletes),
            has_dashes: self.dashes.is_some(),
            is_partly_similar: self.similarity.is_some_and(|part| part != "100%"),
        })
    }

    /// The two names; a new or deleted file has the same one twice.
    fn both_names(&self, start: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let twice = self.git.and_then(name_given_twice);
        match (&self.rename_from, &self.rename_to) {
            (Some(from), Some(to)) => return Ok((from.clone(), to.clone())),
            (None, None) => {}
            _ => return Err(line_invalid(start + 1, "a rename needs both `rename from` and `rename to`")),
        }
        match (&self.dashes, twice) {
            (Some([Some(before), Some(after)]), twice) => {
                let (before, after) = without_prefixes(before, after);
                if before == after
                    && twice.is_some_and(|twice| !before.ends_with(&twice) && !twice.ends_with(&before))
                {
                    return Err(line_invalid(
                        start + 1,
                        "the names behind `diff --git` and behind `---` differ",
                    ));
                }
                Ok((before, after))
            }
            (Some([one, other]), twice) => {
                let (name, prefix) = match (one, other) {
                    (Some(name), _) => (name, "a/"),
                    (_, Some(name)) => (name, "b/"),
                    _ => return Err(line_invalid(start + 1, "both names are /dev/null")),
                };
                // Git's own line tells a prefix from a directory of that name.
                let stripped = name.strip_prefix(prefix.as_bytes()).unwrap_or(name);
                let path = twice.filter(|twice| name.ends_with(twice)).unwrap_or_else(|| stripped.to_vec());
                Ok((path.clone(), path))
            }
            (None, Some(path)) => Ok((path.clone(), path)),
            (None, None) => {
                let names = display_bytes(quote_line(self.git.unwrap_or_default()).as_bytes());
                Err(line_invalid(
                    start + 1,
                    format!("the names of the file ({names}) are missing or do not fit together"),
                ))
            }
        }
    }
}

/// The path that a `diff --git` line names twice, with the prefixes of a pair or without any.
fn name_given_twice(names: &str) -> Option<Vec<u8>> {
    let names = names.trim_end_matches('\r').as_bytes();
    let plain = names.strip_prefix(b"\"").unwrap_or(names);
    let has_prefix = PREFIXES.iter().any(|(old, _)| plain.starts_with(old.as_bytes()));
    let with = has_prefix.then(|| names::name_given_twice(names, Strip::One)).flatten();
    // Twice the very same name: a directory that is called like a prefix.
    names::name_given_twice(names, Strip::None).or(with)
}

fn without_prefixes(before: &[u8], after: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let strip = |(old, new): &(&str, &str)| {
        let (old, new) = (before.strip_prefix(old.as_bytes())?, after.strip_prefix(new.as_bytes())?);
        Some((old.to_vec(), new.to_vec()))
    };
    PREFIXES.iter().find_map(strip).unwrap_or_else(|| (before.to_vec(), after.to_vec()))
}

/// Whether a mode has the executable bit. Links and submodules are never written.
fn parse_executable_mode(rest: &str, at: usize) -> Result<bool> {
    match rest.trim() {
        "100644" | "100664" => Ok(false),
        "100755" => Ok(true),
        mode => {
            let mode = quote_line(mode);
            let message = format!(
                "the mode {mode} is not one of a regular file; only 100644 and 100755 can be written"
            );
            Err(line_invalid(at + 1, message).expected(["100644", "100755"], mode))
        }
    }
}

/// Both ids of an index line. One that is none says nothing; the mode behind them has to be a file's.
fn parse_index_ids(rest: &str, at: usize) -> Result<(Option<String>, Option<String>)> {
    let (ids, mode) = rest.trim_end().split_once(' ').unwrap_or((rest.trim_end(), "100644"));
    parse_executable_mode(mode, at)?;
    let Some((old, new)) = ids.split_once("..") else { return Ok((None, None)) };
    let id = |text: &str| {
        let is_id = (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
        (is_id && text.bytes().any(|b| b != b'0')).then(|| text.to_ascii_lowercase())
    };
    Ok((id(old), id(new)))
}
