//! Writes objects into a quarantine in process, and reads there what the repository has; in an ordinary
//! repository only. Whoever gets no answer asks git.

use super::boot::boot_id;
use super::command::Quarantine;
use super::laid_tree::{LaidFolder, LaidNode, LaidTree};
use super::tree::TreeDifference;
use crate::domain::value::digest::{ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::presence::syncs_as_whole;
use crate::error::{Failure, Result};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Up to this number of objects each gets a file of its own; more are git's to pack.
pub(super) const MOST_FILES: usize = 64;
/// How long another git may hold a ref of a task's.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often objects are written anew that somebody's gc has swept away.
const RETRIES: usize = 10;

/// A git directory of our own, in a temporary folder of the task. What it writes is nobody's until it
/// is moved into the quarantine, whole: a kill leaves no half object under a name that counts. What a
/// power cut has torn there is dropped when the machine is up again
/// ([`Quarantine::drop_torn_objects`]).
pub(super) struct ObjectStore {
    store: git2::Repository,
    /// The quarantine's.
    objects: PathBuf,
    /// Goes with this value.
    folder: tempfile::TempDir,
}

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectStore").finish_non_exhaustive()
    }
}

impl ObjectStore {
    pub(super) fn open(quarantine: &Quarantine) -> Option<Self> {
        let parent = quarantine.objects.parent()?;
        let folder = tempfile::Builder::new().prefix("store-").tempdir_in(parent).ok()?;
        for name in ["refs", "objects"] {
            std::fs::create_dir(folder.path().join(name)).ok()?;
        }
        for (name, text) in [("HEAD", "ref: refs/heads/none\n"), ("config", "[core]\n\tbare = true\n")] {
            write_new(&folder.path().join(name), text)?;
        }
        let store = git2::Repository::open_bare(folder.path()).ok()?;
        for alternate in [&quarantine.objects, &quarantine.repository_objects] {
            store.odb().ok()?.add_disk_alternate(alternate.to_str()?).ok()?;
        }
        Some(Self { store, objects: quarantine.objects.clone(), folder })
    }

    /// Moves what was written into the quarantine. It is whole for every reader; that it is on the
    /// disk is waited for once, when a ref of the repository is about to need it
    /// ([`Quarantine::sync_objects`]).
    pub(super) fn store_written(&self) -> Option<()> {
        for fan in std::fs::read_dir(self.folder.path().join("objects")).ok()? {
            let fan = fan.ok()?;
            if fan.file_name().len() != 2 {
                continue;
            }
            let there = self.objects.join(fan.file_name());
            for object in std::fs::read_dir(fan.path()).ok()? {
                let object = object.ok()?;
                std::fs::create_dir_all(&there).ok()?;
                std::fs::rename(object.path(), there.join(object.file_name())).ok()?;
            }
        }
        Some(())
    }

    pub(super) fn write_blob(&self, bytes: &[u8]) -> Option<ObjectId> {
        to_object_id(self.store.blob(bytes).ok()?)
    }

    /// Writes an index file that holds a tree.
    pub(super) fn write_index(&self, file: &Path, tree: &ObjectId) -> Option<()> {
        let mut index = git2::Index::open(file).ok()?;
        index.read_tree(&self.store.find_tree(to_oid(tree)?).ok()?).ok()?;
        index.write().ok()
    }

    /// The tree of what an index file holds, in the quarantine.
    pub(super) fn write_tree(&self, file: &Path) -> Option<ObjectId> {
        let mut index = git2::Index::open(file).ok()?;
        let tree = index.write_tree_to(&self.store).ok()?;
        self.store_written()?;
        to_object_id(tree)
    }

    /// The tree of a laid tree, in the quarantine: of folders over which nothing is laid it has the trees
    /// that are there.
    pub(super) fn write_laid_tree(&self, tree: &LaidTree<'_, '_>) -> Option<ObjectId> {
        let written = match self.write_laid_folder(tree, &tree.top())? {
            Some(id) => id,
            None => self.store.odb().ok()?.write(git2::ObjectType::Tree, b"").ok()?,
        };
        self.store_written()?;
        to_object_id(written)
    }

    /// `Some(None)` for a folder without a file.
    fn write_laid_folder(&self, tree: &LaidTree<'_, '_>, folder: &LaidFolder) -> Option<Option<git2::Oid>> {
        if let Some(id) = tree.tree_of(folder) {
            return Some(Some(to_oid(id)?));
        }
        let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for entry in tree.entries(folder).ok()? {
            let (name, mode, id, end) = match &entry {
                LaidNode::File(file) => {
                    (file.path.file_name(), file.mode.as_str(), to_oid(&file.id)?, b"".as_slice())
                }
                LaidNode::Folder(below) => match self.write_laid_folder(tree, below)? {
                    // Git sorts a folder as if its name ended with a slash.
                    Some(id) => (below.path.as_ref()?.file_name(), "40000", id, b"/".as_slice()),
                    None => continue,
                },
            };
            lines.push(([name, end].concat(), [mode.as_bytes(), b" ", name, b"\0", id.as_bytes()].concat()));
        }
        lines.sort();
        let lines: Vec<Vec<u8>> = lines.into_iter().map(|(_, line)| line).collect();
        match lines.is_empty() {
            true => Some(None),
            false => Some(Some(self.store.odb().ok()?.write(git2::ObjectType::Tree, &lines.concat()).ok()?)),
        }
    }

    /// True where a patch makes one tree of another one, which differ in these places; nothing of it is kept.
    /// Only those are laid out: what the patch would do elsewhere fails, or shows.
    pub(super) fn makes_of(&self, text: &[u8], places: &[TreeDifference]) -> Option<bool> {
        let diff = git2::Diff::from_buffer(text).ok()?;
        let only = |side: fn(&TreeDifference) -> &Option<TreeObject>| {
            let mut index = git2::Index::new().ok()?;
            for place in places {
                if let Some(object) = side(place) {
                    index.add(&index_entry(&place.path, object)?).ok()?;
                }
            }
            index.write_tree_to(&self.store).ok()
        };
        let (old, new) = (only(|place| &place.old)?, only(|place| &place.new)?);
        let mut made = self.store.apply_to_tree(&self.store.find_tree(old).ok()?, &diff, None).ok()?;
        Some(made.write_tree_to(&self.store).ok()? == new)
    }

    /// Writes a commit into the quarantine; author, committer and message are ours, the time is its
    /// parent's.
    pub(super) fn write_commit(
        &self,
        tree: &ObjectId,
        parent: Option<&ObjectId>,
        message: &str,
    ) -> Option<ObjectId> {
        let parent = match parent {
            Some(id) => Some(self.store.find_commit(to_oid(id)?).ok()?),
            None => None,
        };
        let seconds = parent.as_ref().map_or(0, |parent| parent.committer().when().seconds());
        let time = git2::Time::new(seconds, 0);
        let who = git2::Signature::new("git-tender", "git-tender@localhost", &time).ok()?;
        let tree = self.store.find_tree(to_oid(tree)?).ok()?;
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let commit = self.store.commit(None, &who, &who, message, &tree, &parents).ok()?;
        self.store_written()?;
        to_object_id(commit)
    }
}

impl Quarantine {
    /// Waits until its objects are on the disk. Gives the device, where that waited for all of it.
    pub(super) fn sync_objects(&self) -> std::io::Result<Option<u64>> {
        let folder = std::fs::File::open(&self.objects)?;
        if syncs_as_whole(&folder) {
            rustix::fs::syncfs(&folder)?;
            return Ok(Some(folder.metadata()?.dev()));
        }
        for object in loose_objects(&self.objects)? {
            std::fs::File::open(object)?.sync_all()?;
        }
        Ok(None)
    }

    /// Objects are not waited for one by one. So after a restart of the machine each is looked at
    /// once, and one that a power cut has torn goes: whoever needs it writes it again.
    pub fn drop_torn_objects(&self) -> Result<()> {
        let Some(task) = self.objects.parent() else { return Ok(()) };
        let (mark, boot) = (task.join("boot"), boot_id());
        if boot.is_empty() || std::fs::read_to_string(&mark).is_ok_and(|known| known == boot) {
            return Ok(());
        }
        let failed = |e: std::io::Error| Failure::io_of_ours("look through", &self.objects, &e);
        for object in loose_objects(&self.objects).map_err(failed)? {
            if !is_whole(&object) {
                std::fs::remove_file(&object).map_err(failed)?;
            }
        }
        let noted = std::fs::File::create(&mark).and_then(|mut file| file.write_all(boot.as_bytes()));
        noted.map_err(|e| Failure::io_of_ours("write", &mark, &e))
    }
}

fn loose_objects(objects: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for fan in std::fs::read_dir(objects)? {
        let fan = fan?;
        if fan.file_name().len() == 2 {
            for object in std::fs::read_dir(fan.path())? {
                found.push(object?.path());
            }
        }
    }
    Ok(found)
}

/// True for an object that can be unpacked and has as many bytes as its head says.
fn is_whole(object: &Path) -> bool {
    let Ok(packed) = std::fs::read(object) else { return false };
    let Ok(bytes) = miniz_oxide::inflate::decompress_to_vec_zlib(&packed) else { return false };
    let head = bytes.iter().position(|byte| *byte == 0).unwrap_or_default();
    let size = std::str::from_utf8(&bytes[..head]).ok().and_then(|head| head.split(' ').nth(1)?.parse().ok());
    size == bytes.len().checked_sub(head + 1)
}

impl ObjectStore {
    /// Copies a commit and what its tree has beyond its parent's into the repository, each object
    /// durable, and points a ref at it. `None` where git has to do it, also where a pack would be
    /// better than many files.
    pub(super) fn keep_commit(&self, target: &KeptTarget<'_>, commit: &ObjectId) -> Option<()> {
        let commit = self.store.find_commit(to_oid(commit)?).ok()?;
        let before = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0).ok()?.tree_id()),
        };
        let mut new = Vec::new();
        self.list_new(before, commit.tree_id(), &mut new)?;
        new.push(commit.id());
        let kept = git2::Repository::open(target.git_dir).ok()?;
        let (written, known) = (self.store.odb().ok()?, kept.odb().ok()?);
        // A gc that runs at this moment may sweep away what no ref names yet.
        for _ in 0..RETRIES {
            for id in &new {
                if self.link_object(*id, target.objects).is_none() {
                    // The repository had it before, or it cannot be linked there.
                    let object = written.read(*id).ok()?;
                    known.write(object.kind(), object.data()).ok()?;
                }
            }
            self.point_ref(target, &commit.id().to_string()).ok()?;
            known.refresh().ok()?;
            if new.iter().all(|id| known.exists(*id)) {
                return Some(());
            }
        }
        None
    }

    /// Points a ref of the task's, which nobody else changes, at a commit: under git's own lock, so
    /// that a gc which packs refs comes before or after. The lock is a second name of a file of ours:
    /// one that a crash left is ours exactly if it is that file.
    pub(super) fn point_ref(&self, target: &KeptTarget<'_>, commit: &str) -> std::io::Result<()> {
        let reference = target.git_dir.join(target.reference);
        let (lock, ours) = (PathBuf::from(format!("{}.lock", reference.display())), target.lock);
        if let (Ok(left), Ok(known)) = (std::fs::symlink_metadata(&lock), std::fs::symlink_metadata(ours))
            && (left.dev(), left.ino()) == (known.dev(), known.ino())
        {
            std::fs::remove_file(&lock)?;
        }
        match std::fs::remove_file(ours) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let folder = reference.parent().ok_or(ErrorKind::NotFound)?;
        std::fs::create_dir_all(folder)?;
        let mut file = std::fs::File::create_new(ours)?;
        file.write_all(format!("{commit}\n").as_bytes())?;
        file.sync_all()?;
        let end = Instant::now() + PATIENCE;
        while let Err(e) = std::fs::hard_link(ours, &lock) {
            if e.kind() != ErrorKind::AlreadyExists || Instant::now() > end {
                return Err(e);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::rename(&lock, &reference)?;
        std::fs::remove_file(ours)?;
        std::fs::File::open(folder)?.sync_all()
    }

    /// Gives a file of the quarantine, which is on the disk, its name among other objects too.
    fn link_object(&self, id: git2::Oid, objects: &Path) -> Option<()> {
        let name = id.to_string();
        let (fan, rest) = name.split_at(2);
        std::fs::create_dir_all(objects.join(fan)).ok()?;
        let there = objects.join(fan).join(rest);
        match std::fs::hard_link(self.objects.join(fan).join(rest), &there) {
            // A gc leaves young files alone.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let now = std::fs::FileTimes::new().set_modified(std::time::SystemTime::now());
                std::fs::File::open(&there).and_then(|file| file.set_times(now)).ok()
            }
            linked => linked.ok(),
        }
    }

    /// What a tree has beyond another one, what is beneath before what is above; `None` where it is
    /// much.
    fn list_new(&self, before: Option<git2::Oid>, now: git2::Oid, new: &mut Vec<git2::Oid>) -> Option<()> {
        if before == Some(now) {
            return Some(());
        }
        let before = match before {
            Some(id) => Some(self.store.find_tree(id).ok()?),
            None => None,
        };
        for entry in &self.store.find_tree(now).ok()? {
            let known = before.as_ref().and_then(|tree| tree.get_name_bytes(entry.name_bytes()));
            let same = known.as_ref().is_some_and(|known| known.id() == entry.id());
            match entry.kind() {
                _ if same => {}
                Some(git2::ObjectType::Tree) => {
                    let below = known.filter(|known| known.kind() == Some(git2::ObjectType::Tree));
                    self.list_new(below.map(|known| known.id()), entry.id(), new)?;
                }
                Some(git2::ObjectType::Blob) => new.push(entry.id()),
                // A commit of another repository.
                _ => {}
            }
        }
        new.push(now);
        (new.len() <= MOST_FILES).then_some(())
    }
}

/// Where a commit is kept.
pub(super) struct KeptTarget<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) objects: &'a Path,
    pub(super) reference: &'a str,
    /// Where the other name of the ref's lock is, on the same file system.
    pub(super) lock: &'a Path,
}

fn write_new(file: &Path, text: &str) -> Option<()> {
    std::fs::File::create_new(file).and_then(|mut made| made.write_all(text.as_bytes())).ok()
}

/// Changes an index file: removals come first, so that a file can become a directory.
pub(super) fn change_index(file: &Path, entries: &[(RepoPath, Option<TreeObject>)]) -> Option<()> {
    let mut index = git2::Index::open(file).ok()?;
    for (path, _) in entries.iter().filter(|(_, new)| new.is_none()) {
        if index.get_path(path.as_path(), 0).is_some() {
            index.remove(path.as_path(), 0).ok()?;
        }
    }
    for (path, new) in entries {
        if let Some(object) = new {
            index.add(&index_entry(path, object)?).ok()?;
        }
    }
    index.write().ok()
}

/// An entry of an index whose file nobody has looked at yet.
pub(super) fn index_entry(path: &RepoPath, object: &TreeObject) -> Option<git2::IndexEntry> {
    let unknown = git2::IndexTime::new(0, 0);
    Some(git2::IndexEntry {
        ctime: unknown,
        mtime: unknown,
        dev: 0,
        ino: 0,
        mode: u32::from_str_radix(&object.mode.to_string(), 8).ok()?,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: to_oid(&object.id)?,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    })
}

fn to_oid(id: &ObjectId) -> Option<git2::Oid> {
    git2::Oid::from_str(id.as_str()).ok()
}

fn to_object_id(oid: git2::Oid) -> Option<ObjectId> {
    oid.to_string().parse().ok()
}
