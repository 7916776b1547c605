//! Slots: kept directories that each hold exactly one verifier's view of one tree.
//!
//! A slot is brought from what it holds to what is needed by the difference, so a run on a large repository
//! costs what changed. It is ours alone while its lock is held. From the moment it is taken it counts as
//! dirty, until it is given back in order; a dirty slot, or one from before the machine's last start, is
//! emptied before it is used again.
//!
//! What a run left in its scratch is removed before the next one: a candidate's build could have planted in
//! it what judges the next candidate. Only what a run on a base commit left is kept, and copied for later
//! runs ([`scratch`]); of such a copy stays what a run did not touch ([`laid`]).

mod above;
mod laid;
mod mending;
mod scratch;

use super::beneath::{Folder, file_type, remove_content, walk_folder};
use super::boot::boot_id;
use super::command::{Environment, Git};
use super::convert::{Conversions, Drivers};
use super::index_file::write_index_of_files;
use super::materialise::{
    Alteration, AttributeTrees, FillPermissions, HeldFile, HeldFiles, find_altered, is_unchanged,
    materialise_files,
};
use super::tree::TreeFile;
use crate::domain::value::digest::{ObjectFormat, ObjectId, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Failure, Result};
use crate::store::layout::{create_private_dir, replace_private_unsynced};
use crate::store::lock::LockGuard;
pub use above::{ConfigurationAbove, choose_slots_folder};
use laid::LaidScratch;
pub use mending::MendedFile;
use rustix::fs::FileType;
use scratch::{KeptScratch, Ours};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// How many slots one verifier has at most: so many of its runs can go on at once.
const MOST: usize = 16;

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
    /// The start of the machine in which it was written.
    boot: String,
    held: HeldFiles,
    /// The listing that the index of its git directory has.
    index: Option<Sha256>,
    /// The verifier's manifest that scratch was kept for: another one may name other paths.
    #[serde(default)]
    manifest: Option<Sha256>,
    #[serde(default)]
    kept: Option<KeptScratch>,
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
    /// The folder of all slots, and the one of their locks.
    places: (PathBuf, PathBuf),
    /// Where its kept scratch lies.
    kept: PathBuf,
    /// The copy of it that lies in its tree, and where that is noted.
    laid: LaidScratch,
    laid_note: PathBuf,
    /// What the setup that lies in its tree was made from.
    setup: Option<Sha256>,
    state: SlotState,
    format: ObjectFormat,
}

impl Slot {
    /// Takes a free slot of a verifier. Where all are in use it waits for the first, at most as long as for
    /// any lock.
    pub fn take_free(
        places: &SlotPlaces<'_>,
        (verifier, manifest): (&str, Sha256),
        format: ObjectFormat,
    ) -> Result<Self> {
        create_private_dir(places.slots)?;
        let name = |n: usize| format!("{verifier}-{n}");
        let lock = |n: usize| places.book.join(format!("{}.lock", name(n)));
        for n in 0..MOST {
            if let Some(guard) = LockGuard::try_acquire(&lock(n))? {
                return Self::open_locked(places, (&name(n), manifest), format, guard);
            }
        }
        let guard = LockGuard::acquire(&lock(0))?;
        Self::open_locked(places, (&name(0), manifest), format, guard)
    }

    fn open_locked(
        places: &SlotPlaces<'_>,
        (name, manifest): (&str, Sha256),
        format: ObjectFormat,
        lock: LockGuard,
    ) -> Result<Self> {
        let mut slot = Self {
            _lock: lock,
            state_file: places.book.join(format!("{name}.json")),
            dirty: places.book.join(format!("{name}.dirty")),
            git_dir: places.book.join(format!("{name}.git")),
            folder: places.slots.join(name),
            places: (places.slots.to_path_buf(), places.book.to_path_buf()),
            kept: places.slots.join(".kept").join(name),
            laid: LaidScratch::default(),
            laid_note: places.book.join(format!("{name}.laid")),
            setup: None,
            state: SlotState::default(),
            format,
        };
        let known: Option<SlotState> =
            std::fs::read(&slot.state_file).ok().and_then(|b| serde_json::from_slice(&b).ok());
        slot.state =
            known.filter(|state| state.boot == boot_id() && !state.boot.is_empty()).unwrap_or_default();
        let in_order = !slot.state.boot.is_empty() && !slot.dirty.exists() && slot.tree_folder().is_dir();
        slot.state.boot = boot_id();
        if slot.state.manifest.replace(manifest) != Some(manifest) {
            slot.state.kept = None;
        }
        std::fs::File::create(&slot.dirty).map_err(|e| Failure::io("make the marker", &slot.dirty, &e))?;
        if let Some(KeptScratch::Kept { stamps, .. }) = slot.state.kept.filter(|_| in_order) {
            let tree = Folder::open_path(&slot.tree_folder())?;
            slot.laid = LaidScratch::read_note(&slot.laid_note, &tree, stamps);
        }
        if !in_order || !slot.remove_foreign()? {
            slot.empty_slot()?;
        }
        Ok(slot)
    }

    /// The directory that holds the view.
    pub fn tree_folder(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Brings the slot to these files (sorted by path bytes), read-only, with a git directory that lists
    /// them.
    pub fn show_files(
        &mut self,
        environment: &Environment,
        filling: &Filling<'_>,
        files: &[TreeFile],
        progress: &dyn Fn(u64, u64),
    ) -> Result<()> {
        if self.state.kept.is_some_and(|kept| !kept.is_past()) {
            self.state.kept = None;
        }
        let held = std::mem::take(&mut self.state.held);
        self.state.held = match self.fill_tree(filling, held, files, progress) {
            Ok(held) => held,
            Err(_) => {
                self.empty_slot()?;
                self.fill_tree(filling, HeldFiles::default(), files, progress)?
            }
        };
        self.lay_kept_scratch()?;
        self.make_git_directory(environment, files)
    }

    fn fill_tree(
        &self,
        filling: &Filling<'_>,
        held: HeldFiles,
        files: &[TreeFile],
        progress: &dyn Fn(u64, u64),
    ) -> Result<HeldFiles> {
        let (conversions, attributes, drivers) = (filling.conversions, filling.attributes, filling.drivers);
        let read_only = FillPermissions::ReadOnly;
        materialise_files(
            conversions,
            attributes,
            drivers,
            &self.tree_folder(),
            held,
            files,
            read_only,
            progress,
        )
    }

    /// Lays a copy of the kept scratch into the tree. Where that is not what was kept, the run begins cold.
    fn lay_kept_scratch(&mut self) -> Result<()> {
        let before = std::mem::take(&mut self.laid);
        if let Some(KeptScratch::Kept { stamps, setup, .. }) = self.state.kept {
            if self.kept.is_dir()
                && let Some(laid) = scratch::lay_scratch(&self.kept, &self.tree_folder(), stamps, &before)?
            {
                (self.laid, self.setup) = (laid, setup);
                return Ok(());
            }
            self.state.kept = None;
        } else if before.is_empty() {
            return Ok(());
        }
        self.remove_foreign().map(drop)
    }

    /// Removes what lies in the folders above the tree that are ours and was put there by others; gives its
    /// paths.
    pub fn remove_strangers_above(&self) -> Result<Vec<PathBuf>> {
        above::remove_strangers(&self.places.0, &self.places.1, &self.folder)
    }

    /// The configuration in the folders above those that are ours.
    pub fn look_above(&self) -> ConfigurationAbove {
        self.places.0.parent().map(ConfigurationAbove::above_place).unwrap_or_default()
    }

    /// What was put above the tree since `before`. It is removed from where only we write.
    pub fn find_what_was_put_above(&self, before: &ConfigurationAbove) -> Result<Vec<PathBuf>> {
        let mut found = self.remove_strangers_above()?;
        let now = self.look_above();
        let parent = self.places.0.parent();
        for path in now.changed_since(before) {
            if path.parent() == parent.and_then(|p| p.canonicalize().ok()).as_deref() {
                above::remove_configuration(path)?;
            }
            found.push(path.to_path_buf());
        }
        Ok(found)
    }

    /// What is not as it was shown, but for what `scratch` names.
    pub fn find_altered(&self, scratch: &Scope) -> Result<Vec<(Vec<u8>, Alteration)>> {
        find_altered(&self.tree_folder(), &self.state.held, scratch)
    }

    /// What the setup was last made from; `None` where there is none, or where it was removed since.
    pub fn setup_key(&self) -> Option<Sha256> {
        self.setup
    }

    /// The setup was made, from this.
    pub fn set_setup(&mut self, made_from: Option<Sha256>) {
        self.setup = made_from;
    }

    /// False where no run on a base commit was asked yet for scratch to keep.
    pub fn knows_scratch(&self) -> bool {
        self.state.kept.is_some()
    }

    /// Keeps the scratch that a run on a base commit left. `in_order` says that the run did nothing else.
    pub fn keep_scratch(&mut self, in_order: bool) -> Result<()> {
        create_private_dir(&self.kept)?;
        self.laid = LaidScratch::default();
        let kept = match in_order {
            true => scratch::keep_scratch(&self.tree_folder(), &self.kept, self.setup, &self.ownership())?,
            false => None,
        };
        self.state.kept = Some(kept.unwrap_or(KeptScratch::Nothing));
        // Known also where the slot itself is given up.
        self.write_state()
    }

    /// The slot is as it was shown, scratch aside.
    pub fn give_back(self) -> Result<()> {
        self.write_state()?;
        let note = serde_json::to_vec(&self.laid)
            .map_err(|e| Failure::internal(format!("what was laid cannot be written: {e}")))?;
        replace_private_unsynced(&self.laid_note, &note)?;
        std::fs::remove_file(&self.dirty).map_err(|e| Failure::io("remove the marker", &self.dirty, &e))
    }

    fn write_state(&self) -> Result<()> {
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|e| Failure::internal(format!("a slot's state cannot be written: {e}")))?;
        // After a restart of the machine nothing of the slot is believed.
        replace_private_unsynced(&self.state_file, &bytes)
    }

    /// Empties the slot. All its files are newer then than the kept scratch, which is so of no more use.
    fn empty_slot(&mut self) -> Result<()> {
        create_private_dir(&self.folder)?;
        self.laid = LaidScratch::default();
        remove_content(&Folder::open_path(&self.folder)?)?;
        let tree = self.tree_folder();
        std::fs::create_dir(&tree).map_err(|e| Failure::io("make the slot", &tree, &e))?;
        let kept = self.state.kept.filter(|kept| *kept == KeptScratch::Nothing);
        let manifest = self.state.manifest;
        self.state = SlotState { boot: boot_id(), manifest, kept, ..SlotState::default() };
        Ok(())
    }

    /// Removes everything that was not written by us, but for scratch that is as it was laid. False where
    /// what was written is not as it was.
    fn remove_foreign(&self) -> Result<bool> {
        let whose = self.ownership();
        let mut untouched = 0;
        walk_folder(&Folder::open_path(&self.tree_folder())?, &mut |parent, path, stat| {
            let directory = file_type(stat) == FileType::Directory;
            match whose(path) {
                Ours::File(file) => {
                    untouched += usize::from(is_unchanged(file, stat, directory));
                    return Ok(false);
                }
                Ours::Folder => return Ok(true),
                Ours::Not if self.laid.is_as_laid(parent, path, stat) => return Ok(directory),
                Ours::Not => {}
            }
            let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
            let failed = |e: std::io::Error| super::beneath::path_operation_failed("remove", path, e);
            if directory {
                let child = parent.open_subfolder(name).map_err(failed)?;
                remove_content(&child)?;
                parent.remove_folder(name).map_err(failed)?;
            } else {
                parent.unlink(name).map_err(failed)?;
            }
            Ok(false)
        })?;
        Ok(untouched == self.state.held.0.len())
    }

    /// Tells what we wrote in the tree from what we did not.
    fn ownership<'s>(&'s self) -> impl Fn(&[u8]) -> Ours<'s> + 's {
        let held = &self.state.held.0;
        let files: HashMap<&[u8], &HeldFile> =
            held.iter().map(|(path, file)| (path.as_bytes(), file)).collect();
        let folders: HashSet<Vec<u8>> =
            held.keys().flat_map(RepoPath::ancestors).map(|path| path.as_bytes().to_vec()).collect();
        move |path| match files.get(path) {
            Some(file) => Ours::File(file),
            None if folders.contains(path) => Ours::Folder,
            None => Ours::Not,
        }
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
        let tree = Folder::open_path(&self.tree_folder())?;
        let target = self.tree_folder().join(".git");
        let failed = |e: std::io::Error| Failure::io("make", &target, &e);
        match std::fs::symlink_metadata(&target) {
            Ok(there) if there.is_dir() => {
                remove_content(&tree.open_subfolder(b".git").map_err(failed)?)?;
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
        replace_private_unsynced(&self.git_dir.join("HEAD"), b"ref: refs/heads/slot\n")?;
        replace_private_unsynced(&self.git_dir.join("config"), config.as_bytes())?;
        let index = self.git_dir.join("index");
        // Whoever was killed while it wrote the index left the lock; the slot's own lock is ours.
        for left in [&index, &self.git_dir.join("index.lock")] {
            match std::fs::remove_file(left) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::io("remove", left, &e));
                }
                _ => {}
            }
        }
        if self.format == ObjectFormat::Sha1 && write_index_of_files(&index, files).is_some() {
            return Ok(());
        }
        let mut input = Vec::new();
        for file in files {
            input.extend(format!("{} {}\t", file.mode, file.id).as_bytes());
            input.extend(file.path.as_bytes());
            input.push(0);
        }
        Git::new(environment, Some(&self.git_dir))
            .work_tree(&self.tree_folder())
            .args(["update-index", "-z", "--index-info"])
            .stdin(input)
            .run_for_stdout()?;
        if !index.exists() {
            Git::new(environment, Some(&self.git_dir))
                .work_tree(&self.tree_folder())
                .args(["read-tree", "--empty"])
                .run_for_stdout()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::beneath::Stamp;
    use crate::git::testing::TestRepository;
    use crate::git::tree;

    struct Bench {
        home: TestRepository,
    }

    impl Bench {
        fn take_slot(&self) -> Slot {
            let slots = self.home.outside().join("slots");
            let book = self.home.outside().join("book");
            create_private_dir(&book).expect("made");
            Slot::take_free(
                &SlotPlaces { slots: &slots, book: &book },
                ("unit", Sha256::of(b"a manifest")),
                ObjectFormat::Sha1,
            )
            .expect("takes")
        }

        fn show_tree(&self, slot: &mut Slot, tree: &ObjectId) {
            let repository = self.home.repository();
            let files =
                tree::list_files(&repository.object_reader(None).expect("opens"), tree).expect("lists");
            let conversions = Conversions { repository: &repository, quarantine: None };
            let attributes = AttributeTrees::all_of(tree);
            let filling = Filling { conversions: &conversions, attributes, drivers: &Drivers::Named(&[]) };
            slot.show_files(repository.environment(), &filling, &files, &|_, _| {}).expect("shows");
        }
    }

    fn scratch_scope() -> Scope {
        Scope::new(vec!["target/".to_owned()]).expect("a scope")
    }

    fn write_file(path: PathBuf, bytes: &[u8]) {
        replace_private_unsynced(&path, bytes).expect("written");
    }

    fn put_in_target(slot: &Slot, bytes: &[u8]) {
        create_private_dir(&slot.tree_folder().join("target")).expect("made");
        write_file(slot.tree_folder().join("target/built"), bytes);
    }

    fn read_built(slot: &Slot) -> Option<Vec<u8>> {
        std::fs::read(slot.tree_folder().join("target/built")).ok()
    }

    #[test]
    fn a_run_begins_with_what_a_base_left_and_with_nothing_of_a_candidate() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write_file("src/a", b"1\n");
        bench.home.write_file("src/same", b"1\n");
        bench.home.write_file("b", b"1\n");
        let first = bench.home.commit_all("first");
        bench.home.write_file("src/a", b"2\n");
        bench.home.remove_file("b");
        let second = bench.home.commit_all("second");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &first);
        put_in_target(&slot, b"of a candidate");
        assert_eq!(slot.find_altered(&scratch_scope()).expect("looks"), []);
        assert_eq!(slot.find_altered(&Scope::default()).expect("looks").len(), 1);
        slot.give_back().expect("given back");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &first);
        assert_eq!((read_built(&slot), slot.knows_scratch()), (None, false));
        put_in_target(&slot, b"of a base");
        slot.set_setup(Some(Sha256::of(b"x")));
        slot.keep_scratch(true).expect("keeps");
        slot.give_back().expect("given back");
        for _ in 0..2 {
            let mut slot = bench.take_slot();
            bench.show_tree(&mut slot, &second);
            assert_eq!((read_built(&slot).as_deref(), slot.knows_scratch()), (Some(&b"of a base"[..]), true));
            assert_eq!(slot.setup_key(), Some(Sha256::of(b"x")));
            let written = |path: &str| {
                std::fs::metadata(slot.tree_folder().join(path)).and_then(|m| m.modified()).expect("there")
            };
            assert!(written("src/same") <= written("target/built"));
            assert!(written("target/built") < written("src/a"), "what differs is later than the copy");
            let listed = Git::new(bench.home.environment(), Some(&slot.tree_folder().join(".git")))
                .work_tree(&slot.tree_folder())
                .arg("ls-files")
                .run_for_stdout()
                .expect("git lists");
            assert_eq!(String::from_utf8_lossy(&listed), "src/a\nsrc/same\n");
            write_file(slot.tree_folder().join("target/built"), b"of a candidate");
            slot.give_back().expect("given back");
        }
    }

    /// An entry below `target`: its path, kind and mode, number of names, time of its last write, content.
    type TargetEntry = (Vec<u8>, u32, u64, i64, Vec<u8>);

    fn list_target(slot: &Slot) -> Vec<TargetEntry> {
        let target = slot.tree_folder().join("target");
        let mut found = Vec::new();
        walk_folder(&Folder::open_path(&target).expect("opens"), &mut |parent, path, stat| {
            let name = path.rsplit(|b| *b == b'/').next().expect("a name");
            let content = match file_type(stat) {
                FileType::RegularFile => {
                    std::fs::read(target.join(String::from_utf8_lossy(path).as_ref())).unwrap_or_default()
                }
                FileType::Symlink => parent.read_link(name).expect("reads"),
                _ => Vec::new(),
            };
            let stamp = Stamp::of_stat(stat);
            found.push((path.to_vec(), stat.st_mode, stat.st_nlink, stamp.mtime, content));
            Ok(true)
        })
        .expect("walks");
        found
    }

    /// What a run leaves of the scratch that it was given is told by stamps, and only that is not laid again.
    #[test]
    fn whatever_a_run_did_to_its_scratch_is_undone_and_the_rest_is_laid_once() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let bench = Bench { home: TestRepository::new() };
        bench.home.write_file("a", b"1\n");
        let tree = bench.home.commit_all("first");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        put_in_target(&slot, b"of a base");
        let target = slot.tree_folder().join("target");
        for folder in ["sub", "deep/er"] {
            std::fs::create_dir_all(target.join(folder)).expect("made");
        }
        for file in ["kept", "gone", "sub/mode", "sub/swapped", "deep/er/linked", "named"] {
            write_file(target.join(file), b"of a base");
        }
        symlink("kept", target.join("link")).expect("links");
        slot.keep_scratch(true).expect("keeps");
        slot.give_back().expect("given back");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        let as_laid = list_target(&slot);
        let stamp_of = |name: &str| {
            Stamp::of_stat(&Folder::open_path(&target).expect("opens").stat(name.as_bytes()).expect("there"))
        };
        let (left, built) = (stamp_of("kept"), stamp_of("built"));
        // In place, with its size and its time put back.
        let file = std::fs::File::options().write(true).open(target.join("built")).expect("opens");
        let before = file.metadata().and_then(|m| m.modified()).expect("a time");
        std::io::Write::write_all(&mut &file, b"of a cand").expect("writes");
        file.set_modified(before).expect("put back");
        assert_eq!((stamp_of("built").mtime, stamp_of("built").size), (built.mtime, built.size));
        std::fs::remove_file(target.join("gone")).expect("removed");
        std::fs::set_permissions(target.join("sub/mode"), PermissionsExt::from_mode(0o777)).expect("set");
        write_file(target.join("sub/new"), b"of a cand");
        std::fs::rename(target.join("sub/new"), target.join("sub/swapped")).expect("renamed");
        std::fs::hard_link(target.join("deep/er/linked"), target.join("deep/more")).expect("linked");
        std::fs::remove_file(target.join("link")).expect("removed");
        symlink("named", target.join("link")).expect("links");
        std::fs::create_dir(target.join("planted")).expect("made");
        write_file(target.join("planted/x"), b"of a cand");
        std::fs::set_permissions(target.join("sub"), PermissionsExt::from_mode(0o700)).expect("set");
        std::fs::remove_file(target.join("named")).expect("removed");
        std::fs::create_dir(target.join("named")).expect("made");
        write_file(target.join("named/x"), b"of a cand");
        assert_ne!(list_target(&slot), as_laid);
        slot.give_back().expect("given back");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!(list_target(&slot), as_laid);
        assert_eq!(read_built(&slot).as_deref(), Some(&b"of a base"[..]));
        if laid::notes_every_write(&Folder::open_path(&target).expect("opens")) {
            assert_eq!(stamp_of("kept"), left, "nobody touched it, so it was not laid again");
        }
        slot.give_back().expect("given back");
        // What is kept is another one now, so all of it is laid.
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        write_file(target.join("kept"), b"of another base");
        slot.keep_scratch(true).expect("keeps");
        slot.give_back().expect("given back");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!(std::fs::read(target.join("kept")).expect("reads"), b"of another base");
    }

    #[test]
    fn kept_scratch_that_was_touched_is_not_used() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write_file("a", b"1\n");
        let tree = bench.home.commit_all("first");
        let keep = |in_order| {
            let mut slot = bench.take_slot();
            bench.show_tree(&mut slot, &tree);
            put_in_target(&slot, b"of a base");
            slot.keep_scratch(in_order).expect("keeps");
            slot.give_back().expect("given back");
        };
        keep(true);
        write_file(bench.home.outside().join("slots/.kept/unit-0/target/built"), b"of the base");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!((read_built(&slot), slot.knows_scratch()), (None, false));
        slot.give_back().expect("given back");
        keep(true);
        let (slots, book) = (bench.home.outside().join("slots"), bench.home.outside().join("book"));
        let places = SlotPlaces { slots: &slots, book: &book };
        let other = ("unit", Sha256::of(b"another manifest"));
        let mut slot = Slot::take_free(&places, other, ObjectFormat::Sha1).expect("takes");
        bench.show_tree(&mut slot, &tree);
        assert_eq!((read_built(&slot), slot.knows_scratch()), (None, false));
        slot.give_back().expect("given back");
        keep(false);
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!((read_built(&slot), slot.knows_scratch()), (None, true), "a base's run that went wrong");
    }

    #[test]
    fn a_slot_that_was_touched_between_runs_is_filled_again() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write_file("a", b"1\n");
        bench.home.write_file("b", b"1\n");
        let tree = bench.home.commit_all("first");
        let give_back = || {
            let mut slot = bench.take_slot();
            bench.show_tree(&mut slot, &tree);
            let top = slot.tree_folder();
            slot.give_back().expect("given back");
            top
        };
        let top = give_back();
        std::fs::remove_file(top.join("a")).expect("removed");
        write_file(top.join("a"), b"2\n");
        std::fs::remove_file(top.join("b")).expect("removed");
        write_file(top.join("c"), b"2\n");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!(slot.find_altered(&Scope::default()).expect("looks"), []);
        assert_eq!(std::fs::read(top.join("a")).expect("reads"), b"1\n");
    }

    #[test]
    fn a_slot_that_was_not_given_back_is_rebuilt_and_one_in_use_is_left_alone() {
        let bench = Bench { home: TestRepository::new() };
        bench.home.write_file("a", b"1\n");
        let tree = bench.home.commit_all("first");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        let other = bench.take_slot();
        assert_ne!(slot.tree_folder(), other.tree_folder());
        drop(other);
        write_file(slot.tree_folder().join("planted"), b"x");
        // Killed while its index was written.
        std::fs::rename(slot.git_dir.join("index"), slot.git_dir.join("index.lock")).expect("renames");
        let place = slot.tree_folder();
        drop(slot);
        let mut slot = bench.take_slot();
        assert_eq!(slot.tree_folder(), place);
        assert!(!slot.tree_folder().join("planted").exists());
        bench.show_tree(&mut slot, &tree);
        assert_eq!(slot.find_altered(&Scope::default()).expect("looks"), []);
        // Something of the scratch lies where the next tree has a file.
        std::fs::create_dir(slot.tree_folder().join("target")).expect("made");
        write_file(slot.tree_folder().join("target/x"), b"x");
        slot.give_back().expect("given back");
        bench.home.write_file("target", b"a file now\n");
        let tree = bench.home.commit_all("second");
        let mut slot = bench.take_slot();
        bench.show_tree(&mut slot, &tree);
        assert_eq!(slot.find_altered(&Scope::default()).expect("looks"), []);
    }
}
