//! What is staged, as a tree: exactly the entries of an index, which is only read. Objects go to a
//! quarantine.

use super::command::Quarantine;
use super::index_file::IndexFile;
use super::private_index::PrivateIndex;
use super::repository::Repository;
use super::tree;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::{Code, Failure, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Of an entry that is only meant to be added: there is nothing of it yet.
const INTENT_TO_ADD: u64 = 1 << 29;

/// An index as it was when it was read.
#[derive(Debug)]
pub struct StagedIndex {
    /// Empty where there is none.
    bytes: Vec<u8>,
}

impl StagedIndex {
    /// Reads the index at a path; an absent one is empty.
    pub fn read_from(path: &Path) -> Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self { bytes }),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Self { bytes: Vec::new() }),
            Err(e) => Err(Failure::io("read the index", path, &e)),
        }
    }

    /// Tells it from every other one.
    pub fn digest(&self) -> Sha256 {
        Sha256::of(&self.bytes)
    }

    /// The tree of what it holds, with all its objects in the quarantine or in the repository. `base` is a
    /// tree that is there. Entries that are only meant to be added are not in it; refused (`state.invalid`)
    /// where a path has several versions.
    pub fn write_tree(
        &self,
        repository: &Repository,
        quarantine: &Quarantine,
        base: &ObjectId,
    ) -> Result<ObjectId> {
        if self.bytes.is_empty() {
            return repository.empty_tree().parse();
        }
        let copy = PrivateIndex::copy_of(repository, quarantine, &self.bytes)?;
        let known = IndexFile::parse(self.bytes.clone()).filter(|_| copy.is_in_process());
        let Some(index) = known else {
            let listing = copy.git_on_index()?.args(["ls-files", "-z", "-u"]).run_for_stdout()?;
            let lines = listing.split(|b| *b == 0).filter(|line| !line.is_empty());
            refuse_unmerged(lines.filter_map(|line| line.splitn(2, |b| *b == b'\t').nth(1)))?;
            return copy.write_by_git();
        };
        refuse_unmerged(index.entries().filter(|entry| entry.stage > 0).map(|entry| entry.path))?;
        let meant = index.entries().filter(|entry| entry.flags & INTENT_TO_ADD != 0);
        let meant = meant.map(|entry| Ok((RepoPath::new(entry.path)?, None)));
        copy.update_entries(&meant.collect::<Result<Vec<_>>>()?)?;
        let tree = copy.write_tree()?;
        // An index may know trees that somebody's gc has taken away since.
        match tree::list_differences(&copy.object_reader()?, base, &tree) {
            Ok(_) => Ok(tree),
            Err(_) => copy.write_by_git(),
        }
    }
}

fn refuse_unmerged<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let mut names: Vec<String> = paths.map(display_bytes).collect();
    names.dedup();
    let Some(first) = names.first().cloned() else { return Ok(()) };
    let text = format!("{first} has conflicts, so there is no one tree that is staged");
    Err(Failure::new(Code::StateInvalid, text)
        .subject(first)
        .detail("unmerged", &names)
        .remedy("Resolve the conflicts and `git add` them.", ["git", "status"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    fn staged_tree(home: &TestRepository) -> Result<ObjectId> {
        let (repository, quarantine) = (home.repository(), home.quarantine());
        let index = home.top().join(".git/index");
        let base = repository.empty_tree().parse().expect("an id");
        StagedIndex::read_from(&index)?.write_tree(&repository, &quarantine, &base)
    }

    #[test]
    fn it_is_the_tree_that_git_would_write() {
        let home = TestRepository::new();
        assert_eq!(staged_tree(&home).expect("empty").as_str(), home.repository().empty_tree());
        home.write_file("a", b"1\n");
        home.write_file("dir/b", b"1\n");
        home.commit_all("first");
        home.write_file("dir/b", b"staged\n");
        home.run_git(["add", "dir/b"]);
        home.write_file("dir/b", b"not staged\n");
        home.write_file("meant", b"1\n");
        home.run_git(["add", "-N", "meant"]);
        let index = home.top().join(".git/index");
        let before = std::fs::read(&index).expect("reads");
        let tree = staged_tree(&home).expect("written");
        assert_eq!(std::fs::read(&index).expect("reads"), before);
        for split in ["--split-index", "--no-split-index"] {
            home.run_git(["update-index", split]);
            assert_eq!(staged_tree(&home).expect("written"), tree, "{split}");
        }
        assert_eq!(home.run_git(["write-tree"]).trim(), tree.as_str());
    }

    #[test]
    fn what_a_gc_took_away_is_written_anew() {
        let home = TestRepository::new();
        home.write_file("dir/a", b"1\n");
        home.run_git(["add", "-A"]);
        let tree = home.run_git(["write-tree"]);
        let (fan, rest) = tree.trim().split_at(2);
        std::fs::remove_file(home.top().join(".git/objects").join(fan).join(rest)).expect("there");
        let found = staged_tree(&home).expect("written");
        assert_eq!(found.as_str(), tree.trim());
        let objects = home.repository().object_reader(Some(&home.quarantine())).expect("opens");
        assert_eq!(tree::list_files(&objects, &found).expect("reads").len(), 1);
    }
}
