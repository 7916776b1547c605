//! Slots: kept directories that each hold exactly one verifier's view of one tree.
//!
//! A slot is brought from what it holds to what is needed by the difference, so a run on a large repository
//! costs what changed. It is ours alone while its lock is held. From the moment it is taken it counts as
//! dirty, until it is given back in order; a dirty slot, or one from before the machine's last start, is
//! emptied before it is used again.
//!
//! What a verifier left in its scratch serves the same owner's next run. Another owner finds it removed: a
//! candidate's build could have planted in it what judges the next candidate.

use super::beneath::{Folder, kind, remove_content, walk};
use super::command::{Environment, Git};
use super::convert::{Conversions, Drivers};
use super::materialise::{Alteration, AttributeTrees, FillPermissions, HeldFiles, altered, bring};
use super::tree::TreeFile;
use crate::domain::value::digest::{ObjectFormat, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Failure, Result};
use crate::store::layout::{create_private_dir, write_private};
use crate::store::lock::LockGuard;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// How many slots one verifier has at most: so many of its runs can go on at once.
const MOST: usize = 8;

/// Where slots and what is known of them lie.
#[derive(Debug, Clone, Copy)]
pub struct SlotPlaces<'a> {
    /// The slots: outside of any repository.
    pub slots: &'a Path,
    /// Locks, markers and states: in the store.
    pub book: &'a Path,
}

/// How a slot is filled.
#[derive(Debug, Clone, Copy)]
pub struct Filling<'a> {
    pub conversions: &'a Conversions<'a>,
    /// The trees whose attributes count.
    pub attributes: AttributeTrees<'a>,
    /// The filter drivers that may run.
    pub drivers: &'a Drivers<'a>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlotState {
    owner: String,
    /// The start of the machine in which it was written.
    boot: String,
    held: HeldFiles,
    /// The listing that the index of its git directory has.
    index: Option<Sha256>,
    /// What its setup was made from.
    setup: Option<Sha256>,
    /// The candidates (by their trees) whose runs could write what lies in its scratch.
    #[serde(default)]
    makers: BTreeSet<String>,
}

/// A slot that is held. Dropping it leaves it dirty; [`Slot::give_back`] does not.
#[derive(Debug)]
#[must_use = "a slot that is not given back is rebuilt"]
pub struct Slot {
    _lock: LockGuard,
    folder: PathBuf,
    state_file: PathBuf,
    dirty: PathBuf,
    git_dir: PathBuf,
    state: SlotState,
    format: ObjectFormat,
}

impl Slot {
    /// Takes a free slot of a verifier, one of the same owner's where there is one. Where all are in use it
    /// waits for the first, at most as long as for any lock.
    pub fn take(places: &SlotPlaces<'_>, verifier: &str, owner: &str, format: ObjectFormat) -> Result<Self> {
        create_private_dir(places.slots)?;
        let name = |n: usize| format!("{verifier}-{n}");
        let lock = |n: usize| places.book.join(format!("{}.lock", name(n)));
        let state = |n: usize| places.book.join(format!("{}.json", name(n)));
        let all: Vec<usize> = (0..MOST).collect();
        let (own, other): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|n| owner_of(&state(*n)).as_deref() == Some(owner));
        for n in own.into_iter().chain(other) {
            if let Some(guard) = LockGuard::try_acquire(&lock(n))? {
                return Self::open(places, &name(n), owner, format, guard);
            }
        }
        let guard = LockGuard::acquire(&lock(0))?;
        Self::open(places, &name(0), owner, format, guard)
    }

    fn open(
        places: &SlotPlaces<'_>,
        name: &str,
        owner: &str,
        format: ObjectFormat,
        lock: LockGuard,
    ) -> Result<Self> {
        let folder = places.slots.join(name);
        let mut slot = Self {
            _lock: lock,
            state_file: places.book.join(format!("{name}.json")),
            dirty: places.book.join(format!("{name}.dirty")),
            git_dir: places.book.join(format!("{name}.git")),
            folder,
            state: SlotState::default(),
            format,
        };
        let known: Option<SlotState> =
            std::fs::read(&slot.state_file).ok().and_then(|b| serde_json::from_slice(&b).ok());
        let whole = known.filter(|state| {
            state.boot == boot() && !slot.dirty.exists() && slot.tree().is_dir() && !state.boot.is_empty()
        });
        std::fs::File::create(&slot.dirty).map_err(|e| Failure::io("make the marker", &slot.dirty, &e))?;
        match whole {
            None => slot.rebuild()?,
            Some(state) => {
                slot.state = state;
                if slot.state.owner != owner {
                    slot.remove_foreign()?;
                    slot.state.setup = None;
                    slot.state.makers.clear();
                }
            }
        }
        slot.state.owner = owner.to_owned();
        slot.state.boot = boot();
        Ok(slot)
    }

    /// The directory that holds the view.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Brings the slot to these files (sorted by path bytes), read-only, with a git directory that lists
    /// them.
    pub fn show(
        &mut self,
        environment: &Environment,
        filling: &Filling<'_>,
        files: &[TreeFile],
        progress: &dyn Fn(u64, u64),
    ) -> Result<()> {
        let held = std::mem::take(&mut self.state.held);
        let fill = |held: HeldFiles| {
            let (conversions, attributes, drivers) =
                (filling.conversions, filling.attributes, filling.drivers);
            bring(
                conversions,
                attributes,
                drivers,
                &self.tree(),
                held,
                files,
                FillPermissions::ReadOnly,
                progress,
            )
        };
        let held = match fill(held) {
            Ok(held) => held,
            Err(_) => {
                // Something of its scratch can lie where a file has to be now.
                self.rebuild()?;
                let (conversions, attributes, drivers) =
                    (filling.conversions, filling.attributes, filling.drivers);
                let empty = HeldFiles::default();
                bring(
                    conversions,
                    attributes,
                    drivers,
                    &self.tree(),
                    empty,
                    files,
                    FillPermissions::ReadOnly,
                    progress,
                )?
            }
        };
        self.state.held = held;
        self.make_git_directory(environment, files)
    }

    /// What is not as it was shown, but for what `scratch` names.
    pub fn altered(&self, scratch: &Scope) -> Result<Vec<(Vec<u8>, Alteration)>> {
        altered(&self.tree(), &self.state.held, scratch)
    }

    /// What the setup was last made from; `None` where there is none, or where it was removed since.
    pub fn setup(&self) -> Option<Sha256> {
        self.state.setup
    }

    /// The setup was made, from this.
    pub fn set_setup(&mut self, made_from: Option<Sha256>) {
        self.state.setup = made_from;
    }

    /// A run of this candidate begins. True where the runs of another one may have left something in the
    /// scratch.
    pub fn serves(&mut self, tree: &ObjectId) -> bool {
        self.state.makers.insert(tree.to_string());
        self.state.makers.len() > 1
    }

    /// The slot is as it was shown, scratch aside.
    pub fn give_back(self) -> Result<()> {
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|e| Failure::internal(format!("a slot's state cannot be written: {e}")))?;
        write_private(&self.state_file, &bytes)?;
        std::fs::remove_file(&self.dirty).map_err(|e| Failure::io("remove the marker", &self.dirty, &e))
    }

    fn rebuild(&mut self) -> Result<()> {
        create_private_dir(&self.folder)?;
        remove_content(&Folder::open(&self.folder)?)?;
        let tree = self.tree();
        std::fs::create_dir(&tree).map_err(|e| Failure::io("make the slot", &tree, &e))?;
        self.state =
            SlotState { owner: std::mem::take(&mut self.state.owner), boot: boot(), ..SlotState::default() };
        Ok(())
    }

    /// Removes everything that was not written by us.
    fn remove_foreign(&self) -> Result<()> {
        let held = &self.state.held.0;
        let files: HashSet<&[u8]> = held.keys().map(RepoPath::as_bytes).collect();
        let folders: HashSet<Vec<u8>> =
            held.keys().flat_map(RepoPath::ancestors).map(|path| path.as_bytes().to_vec()).collect();
        walk(&Folder::open(&self.tree())?, &mut |parent, path, stat| {
            if files.contains(path) {
                return Ok(false);
            }
            if folders.contains(path) {
                return Ok(true);
            }
            let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
            let failed = |e: std::io::Error| super::beneath::failed("remove", path, e);
            if kind(stat) == FileType::Directory {
                let child = parent.subfolder(name).map_err(failed)?;
                remove_content(&child)?;
                parent.remove_folder(name).map_err(failed)?;
            } else {
                parent.unlink(name).map_err(failed)?;
            }
            Ok(false)
        })
    }

    /// A git directory with an index and nothing else, for tools that ask git which files there are. It is
    /// made beside the store, where no verifier was, and copied each time.
    fn make_git_directory(&mut self, environment: &Environment, files: &[TreeFile]) -> Result<()> {
        let listing: Vec<(&RepoPath, &str, &ObjectId)> =
            files.iter().map(|file| (&file.path, file.mode.as_str(), &file.id)).collect();
        let digest = Sha256::of_json(&listing);
        if self.state.index != Some(digest) || !self.git_dir.join("index").is_file() {
            self.write_git_directory(environment, files)?;
        }
        self.state.index = Some(digest);
        let tree = Folder::open(&self.tree())?;
        let target = self.tree().join(".git");
        let failed = |e: std::io::Error| Failure::io("make", &target, &e);
        match std::fs::symlink_metadata(&target) {
            Ok(there) if there.is_dir() => {
                remove_content(&tree.subfolder(b".git").map_err(failed)?)?;
                std::fs::remove_dir(&target).map_err(failed)?;
            }
            Ok(_) => std::fs::remove_file(&target).map_err(failed)?,
            Err(_) => {}
        }
        for folder in ["", "objects", "refs"] {
            std::fs::create_dir(target.join(folder)).map_err(failed)?;
        }
        for file in ["HEAD", "config", "index"] {
            let copy = target.join(file);
            std::fs::copy(self.git_dir.join(file), &copy).map_err(failed)?;
            let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o444);
            std::fs::set_permissions(&copy, read_only).map_err(failed)?;
        }
        Ok(())
    }

    fn write_git_directory(&self, environment: &Environment, files: &[TreeFile]) -> Result<()> {
        for folder in ["objects", "refs"] {
            create_private_dir(&self.git_dir.join(folder))?;
        }
        let config = match self.format {
            ObjectFormat::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
            ObjectFormat::Sha256 => {
                "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
            }
        };
        write_private(&self.git_dir.join("HEAD"), b"ref: refs/heads/slot\n")?;
        write_private(&self.git_dir.join("config"), config.as_bytes())?;
        let index = self.git_dir.join("index");
        if index.exists() {
            std::fs::remove_file(&index).map_err(|e| Failure::io("remove", &index, &e))?;
        }
        let mut input = Vec::new();
        for file in files {
            input.extend(format!("{} {}\t", file.mode, file.id).as_bytes());
            input.extend(file.path.as_bytes());
            input.push(0);
        }
        Git::new(environment, Some(&self.git_dir))
            .work_tree(&self.tree())
            .args(["update-index", "-z", "--index-info"])
            .stdin(input)
            .ok()?;
        if !index.exists() {
            Git::new(environment, Some(&self.git_dir))
                .work_tree(&self.tree())
                .args(["read-tree", "--empty"])
                .ok()?;
        }
        Ok(())
    }
}

fn owner_of(state: &Path) -> Option<String> {
    // Only the owner is needed, and it stands first; the rest of a state can be large.
    #[derive(Deserialize)]
    struct SlotOwner {
        owner: String,
    }
    serde_json::from_slice::<SlotOwner>(&std::fs::read(state).ok()?).ok().map(|state| state.owner)
}

/// Names the time since the machine's last start: what was not synced before it may be lost.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use crate::git::tree;

    struct Bench {
        home: TestRepository,
    }

    impl Bench {
        fn take(&self, owner: &str) -> Slot {
            let slots = self.home.outside().join("slots");
            let book = self.home.outside().join("book");
            create_private_dir(&book).expect("made");
            Slot::take(&SlotPlaces { slots: &slots, book: &book }, "unit", owner, ObjectFormat::Sha1)
                .expect("takes")
        }

        fn show(&self, slot: &mut Slot, tree: &ObjectId) {
            let repository = self.home.repository();
            let files = tree::files(&repository.objects(None).expect("opens"), tree).expect("lists");
            let conversions = Conversions { repository: &repository, quarantine: None };
            let attributes = AttributeTrees::all_of(tree);
            let filling = Filling { conversions: &conversions, attributes, drivers: &Drivers::Named(&[]) };
            slot.show(repository.environment(), &filling, &files, &|_, _| {}).expect("shows");
        }
    }

    fn scratch() -> Scope {
        Scope::new(vec!["target/".to_owned()]).expect("a scope")
    }

    fn put(path: PathBuf, bytes: &[u8]) {
        write_private(&path, bytes).expect("written");
    }

    #[test]
    fn a_slot_keeps_its_owners_scratch_and_no_other() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write("src/a", b"1\n");
        bench.home.write("b", b"1\n");
        let first = bench.home.commit("first");
        bench.home.write("src/a", b"2\n");
        bench.home.remove("b");
        let second = bench.home.commit("second");
        let mut slot = bench.take("t1");
        bench.show(&mut slot, &first);
        std::fs::create_dir(slot.tree().join("target")).expect("made");
        put(slot.tree().join("target/warm"), b"built");
        assert_eq!(slot.altered(&scratch()).expect("looks"), []);
        assert_eq!(slot.altered(&Scope::default()).expect("looks").len(), 1);
        slot.set_setup(Some(Sha256::of(b"x")));
        slot.give_back().expect("given back");
        let mut slot = bench.take("t1");
        bench.show(&mut slot, &second);
        assert!(slot.tree().join("target/warm").exists() && !slot.tree().join("b").exists());
        assert_eq!(std::fs::read(slot.tree().join("src/a")).expect("reads"), b"2\n");
        assert_eq!(slot.setup(), Some(Sha256::of(b"x")));
        let listed = Git::new(bench.home.environment(), Some(&slot.tree().join(".git")))
            .work_tree(&slot.tree())
            .arg("ls-files")
            .ok()
            .expect("git lists");
        assert_eq!(String::from_utf8_lossy(&listed), "src/a\n");
        slot.give_back().expect("given back");
        let mut slot = bench.take("t2");
        assert!(!slot.tree().join("target").exists() && slot.tree().join("src/a").exists());
        assert_eq!(slot.setup(), None);
        bench.show(&mut slot, &second);
        slot.give_back().expect("given back");
    }

    #[test]
    fn a_slot_that_was_not_given_back_is_rebuilt_and_one_in_use_is_left_alone() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write("a", b"1\n");
        let tree = bench.home.commit("first");
        let mut slot = bench.take("t1");
        bench.show(&mut slot, &tree);
        let other = bench.take("t1");
        assert_ne!(slot.tree(), other.tree());
        drop(other);
        put(slot.tree().join("planted"), b"x");
        let place = slot.tree();
        drop(slot);
        let mut slot = bench.take("t1");
        assert_eq!(slot.tree(), place);
        assert!(!slot.tree().join("planted").exists());
        bench.show(&mut slot, &tree);
        assert_eq!(slot.altered(&Scope::default()).expect("looks"), []);
        // Something of the scratch lies where the next tree has a file.
        std::fs::create_dir(slot.tree().join("target")).expect("made");
        put(slot.tree().join("target/x"), b"x");
        slot.give_back().expect("given back");
        bench.home.write("target", b"a file now\n");
        let tree = bench.home.commit("second");
        let mut slot = bench.take("t1");
        bench.show(&mut slot, &tree);
        assert_eq!(slot.altered(&Scope::default()).expect("looks"), []);
    }
}
