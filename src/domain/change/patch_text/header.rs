//! The lines that open a file: `diff --git` with what follows it, or `---` and `+++` alone.

use crate::domain::change::patch_text::body::Body;
use crate::domain::change::patch_text::cursor::{Cursor, unreadable_at};
use crate::domain::change::patch_text::names::Strip;
use crate::domain::change::patch_text::{IndexLine, Operation, Section, body, names};
use crate::error::{DetailKey, Failure, Result};

/// The lines after `diff --git`, word by word.
#[derive(Default)]
struct Lines {
    old_mode: Option<String>,
    new_mode: Option<String>,
    new_file: Option<String>,
    deleted_file: Option<String>,
    rename_from: Option<Vec<u8>>,
    rename_to: Option<Vec<u8>>,
    copy_from: Option<Vec<u8>>,
    copy_to: Option<Vec<u8>>,
    similarity: Option<Vec<u8>>,
    index: Option<(IndexLine, Option<String>)>,
    before: Option<Dashes>,
    after: Option<Dashes>,
}

/// A `---` or `+++` line.
enum Dashes {
    Nothing,
    File { name: Vec<u8>, path: Option<Vec<u8>> },
}

pub(super) fn git_section(cursor: &mut Cursor, strip: Strip) -> Result<Section> {
    let (start, line) = (cursor.at(), cursor.line());
    let names = &cursor.take_whole_line()?[b"diff --git ".len()..];
    if names.ends_with(b"\r") {
        return Err(carriage_returns(line));
    }
    let twice = names::name_given_twice(names, strip);
    let lines = header_lines(cursor, strip)?;
    let changed = lines.similarity.as_ref().is_some_and(|text| text != b"100%");
    let mut section = assemble_section(lines, twice, names, line)?;
    section.body = git_body(cursor, &section, changed)
        .map_err(|f| f.subject(crate::domain::value::repo_path::display_bytes(section.shown_path())))?;
    section.range = start..cursor.at();
    Ok(section)
}

/// Reads header lines as long as they are known; each may stand once.
fn header_lines(cursor: &mut Cursor, strip: Strip) -> Result<Lines> {
    let mut lines = Lines::default();
    let mut seen = std::collections::HashSet::new();
    loop {
        let line = cursor.peek_line();
        let Some(word) = WORDS.iter().find(|word| line.starts_with(word.as_bytes())) else {
            return Ok(lines);
        };
        if *word == "--- " && lines.before.is_some() {
            return Ok(lines);
        }
        let number = cursor.line();
        let rest = &cursor.take_whole_line()?[word.len()..];
        if rest.ends_with(b"\r") {
            return Err(carriage_returns(number));
        }
        let kind = word.replace("rename old ", "rename from ").replace("rename new ", "rename to ");
        if !seen.insert(kind.clone()) {
            return Err(unreadable_at(
                number,
                format!("a second `{}` in one file's header", word.trim_end()),
            ));
        }
        lines.take_line(&kind, rest, strip).ok_or_else(|| {
            unreadable_at(number, format!("`{}` is not followed by what belongs there", word.trim_end()))
        })?;
    }
}

const WORDS: [&str; 15] = [
    "--- ",
    "+++ ",
    "old mode ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "copy from ",
    "copy to ",
    "rename old ",
    "rename new ",
    "rename from ",
    "rename to ",
    "similarity index ",
    "dissimilarity index ",
    "index ",
];

impl Lines {
    fn take_line(&mut self, word: &str, rest: &[u8], strip: Strip) -> Option<()> {
        match word {
            "--- " => self.before = Some(parse_dashes(rest, strip)?),
            "+++ " => self.after = Some(parse_dashes(rest, strip)?),
            "old mode " => self.old_mode = Some(parse_mode(rest)?),
            "new mode " => self.new_mode = Some(parse_mode(rest)?),
            "deleted file mode " => self.deleted_file = Some(parse_mode(rest)?),
            "new file mode " => self.new_file = Some(parse_mode(rest)?),
            "copy from " => self.copy_from = Some(names::whole_name(rest)?),
            "copy to " => self.copy_to = Some(names::whole_name(rest)?),
            "rename from " => self.rename_from = Some(names::whole_name(rest)?),
            "rename to " => self.rename_to = Some(names::whole_name(rest)?),
            "similarity index " => self.similarity = Some(rest.trim_ascii().to_vec()),
            "index " => self.index = Some(parse_index_line(rest)?),
            _ => {}
        }
        Some(())
    }
}

fn parse_dashes(rest: &[u8], strip: Strip) -> Option<Dashes> {
    if names::is_dev_null(rest) {
        return Some(Dashes::Nothing);
    }
    let name = names::after_dashes(rest)?;
    let path = names::stripped_name(&name, strip);
    Some(Dashes::File { name, path })
}

fn parse_mode(rest: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(rest).ok()?.trim_end();
    (text.len() == 6 && text.bytes().all(|b| (b'0'..=b'7').contains(&b))).then(|| text.to_owned())
}

fn parse_index_line(rest: &[u8]) -> Option<(IndexLine, Option<String>)> {
    let text = std::str::from_utf8(rest).ok()?.trim_end();
    let (ids, mode_text) = text.split_once(' ').map_or((text, None), |(ids, mode)| (ids, Some(mode)));
    let (old, new) = ids.split_once("..")?;
    let is_id = |id: &str| (4..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_id(old) || !is_id(new) {
        return None;
    }
    let mode_text = match mode_text {
        Some(text) => Some(parse_mode(text.as_bytes())?),
        None => None,
    };
    Some((IndexLine { old: old.to_ascii_lowercase(), new: new.to_ascii_lowercase() }, mode_text))
}

/// Brings the header lines together, as git does, and refuses those that contradict each other.
fn assemble_section(lines: Lines, twice: Option<Vec<u8>>, names: &[u8], line: usize) -> Result<Section> {
    let mut operation = lines.checked_operation(line)?;
    let [from, to] = match operation {
        Operation::Rename => [lines.rename_from.clone(), lines.rename_to.clone()],
        Operation::Copy => [lines.copy_from.clone(), lines.copy_to.clone()],
        _ => [None, None],
    };
    let side = |said: Option<Vec<u8>>, dashes: &Option<Dashes>| match (said, dashes) {
        (Some(name), Some(Dashes::File { path, .. })) if path.as_ref() != Some(&name) => None,
        (Some(name), _) => Some(name),
        (None, Some(Dashes::File { path, .. })) => path.clone(),
        (None, _) => twice.clone(),
    };
    let nameless = || {
        let name = crate::domain::value::repo_path::display_bytes(names);
        unreadable_at(
            line,
            format!("the names of the file ({name}) are missing, lack a prefix, or do not fit together"),
        )
    };
    let old = side(from, &lines.before);
    let new = side(to, &lines.after);
    let (old, new) = match operation {
        Operation::Create => (None, Some(new.ok_or_else(nameless)?)),
        Operation::Delete => (Some(old.ok_or_else(nameless)?), None),
        _ => (Some(old.ok_or_else(nameless)?), Some(new.ok_or_else(nameless)?)),
    };
    // As git has it: two names in the lines with dashes are a rename, said or not.
    if operation == Operation::Modify && old != new {
        operation = Operation::Rename;
    }
    let (index, index_mode) = lines.index.map_or((None, None), |(index, mode)| (Some(index), mode));
    let old_mode = lines.old_mode.or(lines.deleted_file).or_else(|| index_mode.clone());
    let new_mode =
        lines.new_mode.or(lines.new_file).or(index_mode.filter(|_| operation != Operation::Delete));
    Ok(Section {
        range: 0..0,
        line,
        is_git: true,
        operation,
        old,
        new,
        has_prefix: names::name_given_twice(names, Strip::None).is_none(),
        old_mode,
        new_mode,
        index,
        body: Body::None,
    })
}

impl Lines {
    fn checked_operation(&self, line: usize) -> Result<Operation> {
        let contradiction = "the header lines of the file contradict each other";
        let operation = self.asked_operation().ok_or_else(|| unreadable_at(line, contradiction))?;
        if operation != Operation::Create && matches!(self.before, Some(Dashes::Nothing)) {
            return Err(unreadable_at(line, "`--- /dev/null` without `new file mode`"));
        }
        if operation != Operation::Delete && matches!(self.after, Some(Dashes::Nothing)) {
            return Err(unreadable_at(line, "`+++ /dev/null` without `deleted file mode`"));
        }
        Ok(operation)
    }

    /// The operation that the header asks for; `None` where it contradicts itself.
    fn asked_operation(&self) -> Option<Operation> {
        let (rename, copy) = ((&self.rename_from, &self.rename_to), (&self.copy_from, &self.copy_to));
        let modes = self.old_mode.is_some() || self.new_mode.is_some();
        if self.old_mode.is_some() != self.new_mode.is_some() || self.before.is_some() != self.after.is_some()
        {
            return None;
        }
        match (rename, copy, &self.new_file, &self.deleted_file) {
            ((Some(_), Some(_)), (None, None), None, None) => Some(Operation::Rename),
            ((None, None), (Some(_), Some(_)), None, None) => Some(Operation::Copy),
            ((None, None), (None, None), Some(_), None) if !modes => Some(Operation::Create),
            ((None, None), (None, None), None, Some(_)) if !modes => Some(Operation::Delete),
            ((None, None), (None, None), None, None) => Some(Operation::Modify),
            _ => None,
        }
    }
}

/// The content change of a git section, held against what its header promises; `changed` is what its
/// similarity says.
fn git_body(cursor: &mut Cursor, section: &Section, changed: bool) -> Result<Body> {
    let line = cursor.peek_line();
    if line.starts_with(b"GIT binary patch") {
        return body::parse_binary(cursor);
    }
    if line.starts_with(b"Binary files ")
        || line.starts_with(b"Files ") && line.trim_ascii_end().ends_with(b" differ")
    {
        return Err(unreadable_at(
            cursor.line(),
            "the content of a binary file is missing; make the patch with --binary",
        ));
    }
    let number = cursor.line();
    let hunks = body::parse_hunks(cursor)?;
    if !hunks.is_empty() {
        let one_sided = match section.operation {
            Operation::Create => hunks.iter().all(|hunk| hunk.old_count == 0),
            Operation::Delete => hunks.iter().all(|hunk| hunk.new_count == 0),
            _ => true,
        };
        let what = "the hunks of a new file have old lines, or those of a deleted file new ones";
        return if one_sided { Ok(Body::Text(hunks)) } else { Err(unreadable_at(number, what)) };
    }
    let has_dashes = cursor.text()[..cursor.at()]
        .rsplit(|b| *b == b'\n')
        .nth(1)
        .is_some_and(|last| last.starts_with(b"+++ "));
    let moves = matches!(section.operation, Operation::Modify | Operation::Rename | Operation::Copy);
    let promised = section.index.as_ref().is_some_and(|index| moves && index.old != index.new);
    let empty = section.operation == Operation::Modify && section.old_mode == section.new_mode;
    if has_dashes || promised || changed || empty {
        let failure: Failure = unreadable_at(
            number,
            "the file's header is there, but its change is missing: the patch was cut off",
        );
        return Err(failure.detail("truncated", true));
    }
    Ok(Body::None)
}

/// `---`, `+++` and hunks, without `diff --git`.
pub(super) fn plain_section(cursor: &mut Cursor, strip: Strip) -> Result<Section> {
    let (start, line) = (cursor.at(), cursor.line());
    let before = &cursor.take_whole_line()?[4..];
    let after = &cursor.take_whole_line()?[4..];
    if before.ends_with(b"\r") || after.ends_with(b"\r") {
        return Err(carriage_returns(line));
    }
    let unreadable =
        || unreadable_at(line, "the name of the file cannot be read, or lacks the prefix to take off");
    let read = |rest: &[u8]| parse_dashes(rest, strip).ok_or_else(unreadable);
    let (operation, path, has_prefix) = match (read(before)?, read(after)?) {
        (Dashes::Nothing, Dashes::Nothing) => return Err(unreadable()),
        (Dashes::Nothing, Dashes::File { name, path }) => {
            (Operation::Create, path, first_folder(&name) == Some(b"b"))
        }
        (Dashes::File { name, path }, Dashes::Nothing) => {
            (Operation::Delete, path, first_folder(&name) == Some(b"a"))
        }
        (Dashes::File { name: old_name, path: old }, Dashes::File { name: new_name, path: new }) => {
            let operation = match (names::is_epoch(before), names::is_epoch(after)) {
                (true, _) => Operation::Create,
                (_, true) => Operation::Delete,
                _ => Operation::Modify,
            };
            (operation, one_of(old, new), first_folder(&old_name) != first_folder(&new_name))
        }
    };
    let path = path.ok_or_else(unreadable)?;
    let hunks = body::parse_hunks(cursor)
        .map_err(|f| f.subject(crate::domain::value::repo_path::display_bytes(&path)))?;
    let old = (operation != Operation::Create).then(|| path.clone());
    let new = (operation != Operation::Delete).then_some(path);
    let body = Body::Text(hunks);
    let range = start..cursor.at();
    Ok(Section {
        range,
        line,
        is_git: false,
        operation,
        old,
        new,
        has_prefix,
        old_mode: None,
        new_mode: None,
        index: None,
        body,
    })
}

fn first_folder(name: &[u8]) -> Option<&[u8]> {
    name.iter().position(|b| *b == b'/').map(|at| &name[..at])
}

/// Of two names of one file the one that is a beginning of the other (`x` and `x.orig`), else the second.
fn one_of(old: Option<Vec<u8>>, new: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (old, new) {
        (Some(old), Some(new)) if new.starts_with(&old) => Some(old),
        (Some(_), Some(new)) => Some(new),
        (one, other) => one.or(other),
    }
}

/// The line ends that a patch got on the way.
pub const LINE_ENDS: DetailKey<String> = DetailKey::new("lineEnds");

/// Something on the way turned the line ends of the whole patch into CRLF.
fn carriage_returns(line: usize) -> Failure {
    unreadable_at(line, "its own lines end in CRLF: something on the way changed the line ends of the patch")
        .with_detail(&LINE_ENDS, "crlf")
}
