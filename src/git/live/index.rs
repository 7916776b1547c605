//! What the index says of the touched paths, and which of its names fold to one of them. Its file is read in
//! process where that can be done, else there is one `ls-files`, whatever the number of paths.

use crate::domain::change::patch::Change;
use crate::domain::delivery::IndexState;
use crate::domain::value::digest::Mode;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::index_file::FileEntry;
use crate::git::{Git, Repository};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Up to this number of paths git is asked for just these; above it one listing of the whole index is
/// cheaper.
const FEW: usize = 200;

const SKIP_WORKTREE: u64 = 1 << 30;
const INTENT_TO_ADD: u64 = 1 << 29;

/// The index entry of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    pub state: IndexState,
    /// Whether a sparse checkout leaves it out.
    pub skip_worktree: bool,
}

/// The index, as far as it concerns a patch.
#[derive(Debug, Default)]
pub struct Index {
    entries: HashMap<RepoPath, IndexEntry>,
    folded: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Index {
    /// Reads the entries of the patch's paths.
    pub fn read_entries(repository: &Repository, top: &Path, changes: &[Change]) -> Result<Self> {
        let wanted: HashSet<&[u8]> = changes.iter().map(|c| c.path.as_bytes()).collect();
        let created: HashSet<Vec<u8>> =
            changes.iter().filter(|c| c.old.is_none()).map(|c| fold_name(c.path.as_bytes())).collect();
        let mut index = Self::default();
        let mut take = |record: &IndexRecord<'_>| {
            if wanted.contains(record.path) {
                index.add_record(record)?;
            }
            if !created.is_empty() {
                let folded = fold_name(record.path);
                if created.contains(&folded) {
                    index.folded.entry(folded).or_default().push(record.path.to_vec());
                }
            }
            Ok(())
        };
        if let Some(file) = repository.index_in_process() {
            file.entries().try_for_each(|entry| take(&IndexRecord::from(entry)))?;
            return Ok(index);
        }
        let mut git =
            repository.git_call().work_tree(top).args(["ls-files", "--stage", "-z", "--debug", "--"]);
        if changes.len() <= FEW {
            git = git.args(changes.iter().flat_map(pathspecs));
        }
        for record in index_records(&git.run_for_stdout()?) {
            take(&record.ok_or_else(unknown_answer)?)?;
        }
        Ok(index)
    }

    fn add_record(&mut self, record: &IndexRecord<'_>) -> Result<()> {
        let state = record.index_state()?;
        let entry = IndexEntry { state, skip_worktree: record.flags & SKIP_WORKTREE != 0 };
        self.entries.insert(RepoPath::new(record.path)?, entry);
        Ok(())
    }

    /// The entry of a path.
    pub fn entry_at(&self, path: &RepoPath) -> IndexEntry {
        let absent = IndexEntry { state: IndexState::Absent, skip_worktree: false };
        self.entries.get(path).cloned().unwrap_or(absent)
    }

    /// True where a name other than the path, and that the patch does not delete, differs from it in case or
    /// Unicode form only.
    pub fn find_collision(&self, path: &RepoPath, deleted: &HashSet<&RepoPath>) -> Option<RepoPath> {
        let is_deleted = |name: &[u8]| deleted.iter().any(|d| d.as_bytes() == name);
        let mut same = self.folded.get(&fold_name(path.as_bytes()))?.iter();
        let other = same.find(|n| *n != path.as_bytes() && !is_deleted(n))?;
        // A name that no path of ours can have is shown as the one that is wanted.
        Some(RepoPath::new(other.to_vec()).unwrap_or_else(|_| path.clone()))
    }
}

/// What an index says of one of its own paths.
pub(in crate::git) fn state_of(entry: FileEntry<'_>) -> Result<IndexState> {
    IndexRecord::from(entry).index_state()
}

/// What an index says of these paths; one that has no entry is not in the answer. `git` is a call on that
/// index.
pub(in crate::git) fn read_index_states(
    git: Git,
    paths: &[&RepoPath],
) -> Result<HashMap<RepoPath, IndexState>> {
    let mut git = git.args(["ls-files", "--stage", "-z", "--debug", "--"]);
    if paths.len() <= FEW {
        git = git.args(paths.iter().map(|path| literal_pathspec(path)));
    }
    let wanted: HashSet<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let mut states = HashMap::new();
    for record in index_records(&git.run_for_stdout()?) {
        let record = record.ok_or_else(unknown_answer)?;
        if wanted.contains(record.path) {
            states.insert(RepoPath::new(record.path)?, record.index_state()?);
        }
    }
    Ok(states)
}

fn unknown_answer() -> Failure {
    Failure::new(Code::Io, "git ls-files gave an unknown answer")
}

fn literal_pathspec(path: &RepoPath) -> OsString {
    OsStr::from_bytes(&[b":(literal)", path.as_bytes()].concat()).to_owned()
}

/// The name as a file system would see it that ignores case and Unicode form.
pub fn fold_name(name: &[u8]) -> Vec<u8> {
    use unicode_normalization::UnicodeNormalization;
    match std::str::from_utf8(name) {
        Ok(text) => text.nfc().flat_map(char::to_lowercase).nfc().collect::<String>().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// A path by its bytes; a created one also by its other spellings.
fn pathspecs(change: &Change) -> Vec<OsString> {
    use unicode_normalization::UnicodeNormalization;
    let with = |magic: &str, name: &[u8]| OsStr::from_bytes(&[magic.as_bytes(), name].concat()).to_owned();
    let path = change.path.as_bytes();
    let Some(text) = std::str::from_utf8(path).ok().filter(|_| change.old.is_none()) else {
        return vec![literal_pathspec(&change.path)];
    };
    let mut forms: Vec<String> = vec![text.to_owned(), text.nfc().collect(), text.nfd().collect()];
    forms.dedup();
    forms.iter().map(|form| with(":(icase,literal)", form.as_bytes())).collect()
}

struct IndexRecord<'a> {
    mode: u32,
    id: RecordId<'a>,
    is_merged: bool,
    path: &'a [u8],
    flags: u64,
}

/// An id as the index holds it, or as git writes it.
enum RecordId<'a> {
    Raw(&'a [u8]),
    Text(&'a [u8]),
}

impl<'a> From<FileEntry<'a>> for IndexRecord<'a> {
    fn from(entry: FileEntry<'a>) -> Self {
        let (is_merged, id) = (entry.stage == 0, RecordId::Raw(entry.id));
        Self { mode: entry.mode, id, is_merged, path: entry.path, flags: entry.flags }
    }
}

impl IndexRecord<'_> {
    fn index_state(&self) -> Result<IndexState> {
        if !self.is_merged {
            return Ok(IndexState::Unmerged);
        }
        if self.flags & INTENT_TO_ADD != 0 {
            return Ok(IndexState::IntentToAdd);
        }
        let mode: Mode = format!("{:06o}", self.mode).parse()?;
        let id = match self.id {
            RecordId::Raw(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
            RecordId::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        Ok(IndexState::Entry { mode, git_blob: id.parse()? })
    }
}

/// `mode SP id SP stage TAB path NUL`, then lines of details up to `flags: …`, and the next.
fn index_records(mut raw: &[u8]) -> impl Iterator<Item = Option<IndexRecord<'_>>> {
    std::iter::from_fn(move || {
        if raw.is_empty() {
            return None;
        }
        let mut parse = || {
            let tab = raw.iter().position(|b| *b == b'\t')?;
            let nul = raw.iter().position(|b| *b == 0)?;
            let mut fields = raw[..tab].split(|b| *b == b' ');
            let (mode, id, stage) = (fields.next()?, fields.next()?, fields.next()?);
            let path = raw.get(tab + 1..nul)?;
            let rest = &raw[nul + 1..];
            let at = rest.windows(7).position(|w| w == b"flags: ")? + 7;
            let end = at + rest[at..].iter().position(|b| *b == b'\n')?;
            let flags = u64::from_str_radix(std::str::from_utf8(&rest[at..end]).ok()?, 16).ok()?;
            raw = &rest[end + 1..];
            let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
            Some(IndexRecord { mode, id: RecordId::Text(id), is_merged: stage == b"0", path, flags })
        };
        let parsed = parse();
        if parsed.is_none() {
            raw = &[];
        }
        Some(parsed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_by_case_and_form() {
        assert_eq!(fold_name("Ünï".as_bytes()), fold_name("u\u{308}Ni\u{308}".as_bytes()));
        assert_eq!(fold_name(b"README"), fold_name(b"readme"));
        assert_ne!(fold_name(b"a"), fold_name(b"b"));
        assert_eq!(fold_name(b"\xffA"), b"\xffa");
    }

    #[test]
    fn fuzz_a_listing_of_the_index() {
        const LISTING: &[u8] = b"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\ta\0  ctime: 1:2\n  mtime: 3:4\n  dev: 5\tino: 6\n  uid: 0\tgid: 0\n  size: 0\tflags: 20000000\n160000 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 2\td/b\0  size: 0\tflags: 0\n";
        crate::fuzz::holds(
            &[LISTING],
            &[b"\0", b"\t", b" ", b"flags: ", b"flags: 1ffffffffffffffff\n"],
            |bytes| {
                let found: Vec<_> = index_records(bytes).collect();
                assert!(found.len() <= bytes.len());
                for record in found.into_iter().flatten() {
                    let _ = (record.index_state(), RepoPath::new(record.path), fold_name(record.path));
                }
            },
        );
    }
}
