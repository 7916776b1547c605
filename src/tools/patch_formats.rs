//! The forms in which workers write a change, read into one: which files, and for each the lines to find and
//! what takes their place.
//!
//! Three forms are told apart by the text itself, at the first line that belongs to one of them: a unified
//! diff (`unified`), the envelope `*** Begin Patch` (`envelope`), and search/replace blocks (`blocks`). Prose
//! and fences around them are left out; a second form in the same text is refused.
//!
//! Where a hunk goes is decided by its lines, never by a guess (`matcher`): each is looked for in the file
//! *as it was read*, not in what earlier hunks made of it, and must be found exactly once there. Line numbers
//! choose nothing, except where a diff names exactly the blob that the file has now: then its positions are
//! what they were, and a hunk goes there whose lines are there. The hunks of one section follow each other
//! down the file, and no two hunks touch the same line. Several sections that change the text of one file are
//! one change; anything else that names a path twice is refused.
//!
//! A blob that a diff names as the one it was made from has to be there, else it is a `version.conflict`; one
//! that it names as its result has to come out, where the first one held or the file is new.
//!
//! All of it is pure: bytes in, bytes out.

mod blocks;
mod edit;
mod envelope;
mod lines;
mod matcher;
#[cfg(test)]
mod tests;
mod unified;

use crate::domain::value::digest::ObjectFormat;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::tools::place::as_written;
pub use edit::FAILURES;
use lines::PatchLines;
pub(super) use lines::quote_line;
use std::collections::HashMap;

/// The longest patch that is read, in bytes.
pub const LONGEST: usize = 16 << 20;
/// The longest path that is looked at, in bytes; what can be written is shorter.
const LONGEST_NAME: usize = 4096;

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The file, as it is named now.
    pub path: RepoPath,
    pub kind: PatchKind,
    /// The blob that the patch was made from, where it names one: lower-case hex, perhaps abbreviated.
    pub preimage: Option<String>,
    /// The blob that the patch leads to, likewise.
    pub postimage: Option<String>,
}

/// What happens to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchKind {
    /// It appears; what is there is never overwritten.
    Add { text: String, executable: bool },
    Delete {
        /// What the patch shows of it, in a form that shows it: all its lines. Nothing, where it is empty, or
        /// where the patch names its blob.
        shown: Option<Vec<PatchHunk>>,
    },
    /// Its lines, its name or its executable bit change.
    Update {
        /// The changes of its lines.
        hunks: Vec<PatchHunk>,
        /// Its new name, which must be free.
        move_to: Option<RepoPath>,
        /// The executable bit, where the patch says it.
        executable: Option<bool>,
        /// Nothing but new lines, in a form that does not tell a new file from an old one: it may be missing.
        creates: bool,
    },
}

/// Lines that follow each other in the file, and what takes their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchHunk {
    /// Where it begins in the patch, from 1.
    line: usize,
    /// Number of the first old line, as a header says it.
    old_start: Option<usize>,
    /// Lines above it, each to be found beneath the one before.
    anchors: Vec<String>,
    /// Its old lines are the last ones of the file.
    at_end: bool,
    /// The first of a section: it may stand above the hunks before it.
    first: bool,
    /// What the form says of line ends.
    ends: Ends,
    lines: Vec<HunkLine>,
}

/// Whether a form can say how lines end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The missing newline at the end of a file is written down.
    AsWritten,
    /// Nothing is said of it: it stays as it is.
    AsInFile,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HunkLine {
    op: LineOp,
    /// Without the newline; a carriage return before it is still there.
    text: String,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineOp {
    Keep,
    Remove,
    Insert,
}

impl LineOp {
    fn is_old(self) -> bool {
        self != Self::Insert
    }

    fn is_new(self) -> bool {
        self != Self::Remove
    }
}

impl PatchHunk {
    fn new(line: usize, ends: Ends) -> Self {
        Self {
            line,
            old_start: None,
            anchors: Vec::new(),
            at_end: false,
            first: false,
            ends,
            lines: Vec::new(),
        }
    }

    fn push_line(&mut self, op: LineOp, text: &str) {
        self.lines.push(HunkLine { op, text: text.to_owned(), ended: true });
    }

    fn old_lines(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.op.is_old())
    }

    fn new_text(&self) -> String {
        let new = self.lines.iter().filter(|line| line.op.is_new());
        new.flat_map(|line| [line.text.as_str(), if line.ended { "\n" } else { "" }]).collect()
    }

    fn only_inserts(&self) -> bool {
        self.lines.iter().all(|line| line.op == LineOp::Insert)
    }

    /// Refused unless it changes something, and unless a line without newline is the last of its side.
    fn check_sides(self) -> Result<Self> {
        if self.lines.iter().all(|line| line.op == LineOp::Keep) {
            let message = format!("the hunk at line {} of the patch changes nothing", self.line);
            return Err(patch_invalid(message).detail("patchLine", self.line));
        }
        for side in [LineOp::is_old as fn(LineOp) -> bool, LineOp::is_new] {
            let mut of_side = self.lines.iter().filter(|line| side(line.op)).rev().skip(1);
            if of_side.any(|line| !line.ended) {
                return Err(line_invalid(
                    self.line,
                    "a line without newline at its end is not the last one of the file",
                ));
            }
        }
        Ok(self)
    }
}

impl FilePatch {
    /// The new name, where it moves.
    pub fn move_to(&self) -> Option<&RepoPath> {
        match &self.kind {
            PatchKind::Update { move_to, .. } => move_to.as_ref(),
            _ => None,
        }
    }

    /// The executable bit, where the patch says it.
    pub fn executable_bit(&self) -> Option<bool> {
        match &self.kind {
            PatchKind::Add { executable, .. } => Some(*executable),
            PatchKind::Update { executable, .. } => *executable,
            PatchKind::Delete { .. } => None,
        }
    }

    /// What becomes of the file: its new bytes, or `None` where it goes. `present`: what is there now.
    /// `format` is how the repository names blobs. Refused (`patch.invalid`) where a hunk does not match
    /// exactly once, and where nothing would change.
    pub fn apply_to_file(&self, present: Option<&[u8]>, format: ObjectFormat) -> Result<Option<Vec<u8>>> {
        edit::apply_patch(self, present, format).map_err(|failure| failure.subject(self.path.to_string()))
    }
}

/// Reads a patch. Refused (`patch.invalid`) where it is none, or not one; a path that may not be written is a
/// `scope.violation`.
pub fn parse_patch(text: &str) -> Result<Vec<FilePatch>> {
    if text.len() > LONGEST {
        let message = format!("the patch has {} bytes; the most is {LONGEST}", text.len());
        return Err(patch_invalid(message).expected(LONGEST, text.len()));
    }
    if text.contains('\0') {
        return Err(patch_invalid("the patch holds a NUL character"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((form, line)) = PatchForm::find_first(&PatchLines::new(text)) else { return Err(no_form(text)) };
    // Where the patch's own lines end in CRLF, something on the way did that to all of it.
    let plain = if line.ends_with('\r') { text.replace("\r\n", "\n") } else { text.to_owned() };
    let text = PatchLines::new(&plain);
    let files = match form {
        PatchForm::Unified => unified::parse_sections(&text),
        PatchForm::Envelope => envelope::parse_envelopes(&text),
        PatchForm::Blocks => blocks::parse_blocks(&text),
    }?;
    brought_together(files)
}

/// A way to write a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchForm {
    Unified,
    Envelope,
    Blocks,
}

impl PatchForm {
    const ALL: [Self; 3] = [Self::Unified, Self::Envelope, Self::Blocks];

    /// True where a form begins at this line.
    fn begins_at(self, text: &PatchLines<'_>, at: usize) -> bool {
        match self {
            Self::Unified => unified::begins_section(text, at),
            Self::Envelope => envelope::opens_envelope(text.line(at)),
            Self::Blocks => blocks::opens_block(text.line(at)),
        }
    }

    /// The form that begins first, and the line at which it does.
    fn find_first<'a>(text: &PatchLines<'a>) -> Option<(Self, &'a str)> {
        (0..text.len()).find_map(|at| {
            let form = Self::ALL.into_iter().find(|form| form.begins_at(text, at))?;
            Some((form, text.line(at)))
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unified => "a unified diff",
            Self::Envelope => "`*** Begin Patch`",
            Self::Blocks => "search/replace blocks",
        }
    }

    /// Outside of what this form has read, no other may begin.
    fn alone_at(self, text: &PatchLines<'_>, at: usize) -> Result<()> {
        match Self::ALL.into_iter().find(|form| *form != self && form.begins_at(text, at)) {
            None => Ok(()),
            Some(other) => {
                let message = format!(
                    "{} begins here, but the patch is {}; send one form only",
                    other.name(),
                    self.name()
                );
                Err(line_invalid(at + 1, message))
            }
        }
    }
}

fn no_form(text: &str) -> Failure {
    let what = if text.trim().is_empty() { "the patch is empty" } else { "the text is no patch" };
    let forms = [
        "a unified diff: `--- a/PATH`, `+++ b/PATH`, then hunks that begin with `@@`",
        "`*** Begin Patch`, then `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`, then `*** End Patch`",
        "PATH on a line, then `<<<<<<< SEARCH`, old lines, `=======`, new lines, `>>>>>>> REPLACE`",
    ];
    patch_invalid(format!("{what}; expected {}", forms.join("; or "))).detail("expected", forms)
}

/// Sections that change the text of one file become one; any other path that is named twice is refused.
fn brought_together(files: Vec<FilePatch>) -> Result<Vec<FilePatch>> {
    let mut together: Vec<FilePatch> = Vec::new();
    let mut known: HashMap<RepoPath, usize> = HashMap::new();
    for mut file in files {
        if let Some(at) = known.get(&file.path).copied() {
            let (Some(earlier), Some(more)) = (plain_hunks(&mut together[at]), plain_hunks(&mut file)) else {
                return Err(named_twice(&file.path));
            };
            earlier.append(more);
            if together[at].preimage != file.preimage {
                together[at].preimage = None;
            }
            together[at].postimage = None;
            continue;
        }
        for path in [Some(&file.path), file.move_to()].into_iter().flatten() {
            if known.insert(path.clone(), together.len()).is_some() {
                return Err(named_twice(path));
            }
        }
        together.push(file);
    }
    Ok(together)
}

/// The hunks of a file whose lines change and nothing else.
fn plain_hunks(file: &mut FilePatch) -> Option<&mut Vec<PatchHunk>> {
    match &mut file.kind {
        PatchKind::Update { hunks, move_to: None, executable: None, creates: false } => Some(hunks),
        _ => None,
    }
}

/// A path as patches write it: `./` at its beginning says nothing. A failure quotes no more of it than a file
/// system could take.
pub(super) fn parse_written_path(name: impl AsRef<[u8]>) -> Result<RepoPath> {
    let name = as_written(name.as_ref());
    if name.len() > LONGEST_NAME {
        let shown = quote_line(&String::from_utf8_lossy(name));
        return Err(patch_invalid(format!("the path {shown} is too long")).expected(LONGEST_NAME, name.len()));
    }
    RepoPath::new(name)
}

fn named_twice(path: &RepoPath) -> Failure {
    patch_invalid(format!("the patch names {path} twice; say once what becomes of it"))
        .subject(path.to_string())
}

/// What a worker can do about a patch that does not fit.
fn patch_invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::PatchInvalid, message).advice(
        "Nothing was changed. Read the file again where the message names one, then send a corrected patch.",
    )
}

/// A line of the patch that does not belong there.
fn line_invalid(line: usize, message: impl std::fmt::Display) -> Failure {
    patch_invalid(format!("line {line} of the patch: {message}")).detail("patchLine", line)
}
