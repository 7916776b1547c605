//! The user's index, changed under git's own lock: some entries go from one known state to another, all
//! others stay as they are.
//!
//! `index.lock` is taken the way git takes it, so no git of the user's can come in between; but it is a
//! second name of a file of ours beside it. A lock that a crash left is ours exactly if it is the same file
//! as that one: then, and only then, recovery removes it. The new index is made from a copy in a private
//! folder, written to the lock file, synced, and takes the index's name in one step.

use super::beneath::{cannot_be_done, fault};
use super::command::Git;
use super::live::read_index_states;
use super::private_index::index_info;
use super::repository::Repository;
use crate::domain::delivery::receipt::IndexPlan;
use crate::domain::delivery::{Conflict, IndexState, IndexStep, refuse_delivery};
use crate::domain::value::digest::{ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another git may hold the index before we give up.
const PATIENCE: Duration = Duration::from_secs(30);

/// How our names in a git directory begin.
const PREFIX: &str = "tender-index-";

/// A name for [`IndexPlan::lock`] that no other delivery uses.
pub fn lock_name(unique: &str) -> String {
    format!("{PREFIX}{unique}")
}

/// The entries that a delivery changes, in the index of one live tree.
#[derive(Debug)]
pub struct IndexWriter<'a> {
    repository: Repository,
    plan: &'a IndexPlan,
    top: &'a Path,
}

/// The held lock. It stays until [`Locked::set_entries`] or [`IndexWriter::clear_stale`]: nothing is put in
/// order behind the ledger's back.
#[derive(Debug)]
#[must_use = "the index stays locked"]
pub struct Locked<'w, 'a> {
    writer: &'w IndexWriter<'a>,
    file: File,
}

/// Which of the two states of each entry is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// What the delivery puts there.
    After,
    /// What was there before it.
    Before,
}

impl<'a> IndexWriter<'a> {
    /// For the live tree that the plan names.
    pub fn new(environment: &super::Environment, plan: &'a IndexPlan, top: &'a Path) -> Result<Self> {
        Ok(Self { repository: Repository::at_git_dir(environment, &plan.git_dir, top, None)?, plan, top })
    }

    /// Takes git's lock, and waits for whoever has it; `store.busy` where that takes too long. The caller
    /// holds the delivery lock, so whatever another delivery has left here belongs to nobody any more.
    pub fn lock_index(&self) -> Result<Locked<'_, 'a>> {
        for name in self.names_of_ours()? {
            self.clear_file(&self.plan.git_dir.join(name))?;
        }
        let ours = self.own_lock_file();
        let file = File::create_new(&ours).map_err(|e| Failure::io("create", &ours, &e))?;
        let locked = Locked { writer: self, file };
        if let Err(failure) = self.try_second_name() {
            self.clear_stale()?;
            return Err(failure);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            match std::fs::hard_link(&ours, self.lock_file()) {
                Ok(()) => {
                    fault::reach_operation("index locked")
                        .map_err(|e| Failure::io("take the lock", &self.lock_file(), &e))?;
                    return Ok(locked);
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(25));
                }
                Err(e) => {
                    self.clear_stale()?;
                    return Err(match e.kind() {
                        ErrorKind::AlreadyExists => self.lock_is_busy(),
                        _ => Failure::io("take the lock", &self.lock_file(), &e),
                    });
                }
            }
        }
    }

    /// A lock of ours is known by being the same file under two names: tried before git's name is taken.
    fn try_second_name(&self) -> Result<()> {
        let (ours, second) =
            (self.own_lock_file(), self.plan.git_dir.join(format!("{}.trial", self.plan.lock)));
        let same = std::fs::hard_link(&ours, &second)
            .map_err(|e| match cannot_be_done(&e) {
                true => refuse_mount(&self.plan.git_dir, &e.to_string()),
                false => Failure::io("try a second name for", &ours, &e),
            })
            .and_then(|()| Ok(inode_of(&second)? == inode_of(&ours)?));
        remove_if_there(&second)?;
        match same {
            Ok(true) => Ok(()),
            Ok(false) => Err(refuse_mount(&self.plan.git_dir, "a link has another inode number")),
            Err(failure) => Err(failure),
        }
    }

    /// Removes what is ours and not in use: the lock, if it is ours, our name of it, and the folder of the
    /// copy.
    pub fn clear_stale(&self) -> Result<()> {
        self.clear_file(&self.work_file())?;
        self.clear_file(&self.own_lock_file())
    }

    fn names_of_ours(&self) -> Result<Vec<std::ffi::OsString>> {
        let failed = |e: std::io::Error| Failure::io("list", &self.plan.git_dir, &e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.plan.git_dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn clear_file(&self, ours: &Path) -> Result<()> {
        let failed = |e: &std::io::Error| Failure::io("remove", ours, e);
        match std::fs::symlink_metadata(ours) {
            Ok(found) if found.is_dir() => std::fs::remove_dir_all(ours).map_err(|e| failed(&e)),
            Ok(found) => {
                if inode_of(&self.lock_file())? == Some((found.dev(), found.ino())) {
                    remove_if_there(&self.lock_file())?;
                }
                remove_if_there(ours)
            }
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed(&e)),
        }
    }

    /// Brings the entries to one side and frees the lock. Gives the paths whose entry is neither side any
    /// more: they stay as they are.
    pub fn bring_entries(&self, towards: Towards) -> Result<Vec<RepoPath>> {
        let locked = self.lock_index()?;
        let (steps, others) = locked.due_steps(towards)?;
        let done = if steps.is_empty() { Ok(()) } else { locked.set_entries(&steps) };
        self.clear_stale()?;
        done.map(|()| others)
    }

    /// Frees the lock where a crash left it. Gives the paths whose entry is not that side's: they stay as
    /// they are.
    pub fn free_left_lock(&self, side: Towards) -> Result<Vec<RepoPath>> {
        self.clear_stale()?;
        let (steps, others) = self.compare_entries(side)?;
        Ok(steps.into_iter().map(|step| step.path).chain(others).collect())
    }

    fn compare_entries(&self, towards: Towards) -> Result<(Vec<IndexStep>, Vec<RepoPath>)> {
        let paths: Vec<&RepoPath> = self.plan.steps.iter().map(|step| &step.path).collect();
        let now = read_index_states(self.repository.git_call().work_tree(self.top), &paths)?;
        let (mut due, mut others) = (Vec::new(), Vec::new());
        for step in &self.plan.steps {
            let step = if towards == Towards::After { step.clone() } else { step.reverse_step() };
            let is = now.get(&step.path).unwrap_or(&IndexState::Absent);
            if *is == step.before {
                due.push(step);
            } else if *is != step.after {
                others.push(step.path);
            }
        }
        Ok((due, others))
    }

    fn own_lock_file(&self) -> PathBuf {
        self.plan.git_dir.join(&self.plan.lock)
    }

    fn work_file(&self) -> PathBuf {
        self.plan.git_dir.join(format!("{}.work", self.plan.lock))
    }

    fn lock_file(&self) -> PathBuf {
        self.plan.git_dir.join("index.lock")
    }

    fn index_file(&self) -> PathBuf {
        self.plan.git_dir.join("index")
    }

    fn lock_is_busy(&self) -> Failure {
        let lock = self.lock_file();
        Failure::new(
            Code::StoreBusy,
            format!(
                "another git held {} for more than {} seconds, so the index could not be changed",
                lock.display(),
                PATIENCE.as_secs()
            ),
        )
        .subject(lock.display().to_string())
        .remedy(
            "Wait until the other git has finished. If none runs, one has crashed: remove its lock, then deliver again.",
            ["git", "status"],
        )
    }
}

impl Locked<'_, '_> {
    /// The steps that have not been taken in a direction, and the paths whose entry is neither of its two
    /// states.
    pub fn due_steps(&self, towards: Towards) -> Result<(Vec<IndexStep>, Vec<RepoPath>)> {
        self.writer.compare_entries(towards)
    }

    /// Takes these steps. The new index is in place and durable when this returns, and git's lock is free.
    pub fn set_entries(mut self, steps: &[IndexStep]) -> Result<()> {
        let writer = self.writer;
        writer.require_objects(steps)?;
        let bytes = writer.changed_index(steps)?;
        let lock = writer.lock_file();
        let failed = |e: std::io::Error| Failure::io("write the new index to", &lock, &e);
        let mode = std::fs::metadata(writer.index_file()).map_or(0o644, |m| m.mode() & 0o7777);
        self.file
            .set_permissions(std::fs::Permissions::from_mode(mode))
            .and_then(|()| self.file.write_all(&bytes))
            .and_then(|()| self.file.sync_all())
            .map_err(failed)?;
        if inode_of(&lock)? != inode_of(&writer.own_lock_file())? {
            return Err(Failure::new(
                Code::Io,
                format!("{} was removed by someone else while it was held", lock.display()),
            )
            .subject(lock.display().to_string()));
        }
        fault::reach_operation("index written")
            .and_then(|()| std::fs::rename(&lock, writer.index_file()))
            .and_then(|()| File::open(&writer.plan.git_dir)?.sync_all())
            .and_then(|()| fault::reach_operation("index in place"))
            .map_err(|e| Failure::io("put the new index in place of", &writer.index_file(), &e))
    }
}

impl IndexWriter<'_> {
    /// An index must not name objects that only a task's private store has.
    fn require_objects(&self, steps: &[IndexStep]) -> Result<()> {
        let ids: Vec<(&RepoPath, &ObjectId)> =
            steps.iter().filter_map(|s| Some((&s.path, blob_of(&s.after)?))).collect();
        let input: Vec<u8> = ids.iter().flat_map(|(_, id)| format!("{id}\n").into_bytes()).collect();
        let answer = self
            .repository
            .git_call()
            .args(["cat-file", "--batch-check=%(objecttype)"])
            .stdin(input)
            .run_for_stdout()?;
        let missing = |line: &[u8]| line != b"blob";
        match ids.iter().zip(answer.split(|b| *b == b'\n')).find(|(_, line)| missing(line)) {
            None => Ok(()),
            Some(((path, id), _)) => Err(Failure::new(
                Code::Io,
                format!("the content {id} of {path} is not in the repository, so it cannot be staged"),
            )
            .subject(path.to_string())
            .expected(id, "no such object")
            .remedy("Capture the change again; that stores it.", ["git", "tender", "submit"])),
        }
    }

    /// The bytes of the index with the steps taken.
    fn changed_index(&self, steps: &[IndexStep]) -> Result<Vec<u8>> {
        let work = self.work_file();
        std::fs::create_dir(&work).map_err(|e| Failure::io("create", &work, &e))?;
        let copy = work.join("index");
        match super::live_base::copy_index(&self.index_file(), &copy) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(Failure::io("copy", &self.index_file(), &e)),
        }
        let git = || self.git_on(&copy);
        refuse_in_the_way(steps, &git().args(["ls-files", "-z"]).run_for_stdout()?)?;
        git()
            .args(["update-index", "--add", "-z", "--index-info"])
            .stdin(self.update_index_input(steps))
            .run_for_stdout()?;
        self.refresh_stat(git(), steps)?;
        std::fs::read(&copy).map_err(|e| Failure::io("read", &copy, &e))
    }

    fn git_on(&self, index: &Path) -> Git {
        self.repository
            .git_call()
            .work_tree(self.top)
            .with_index(index)
            // What the user keeps in the index beside its entries stays; but all of it is in one file.
            .with_setting("core.untrackedCache=keep")
            .with_setting("core.splitIndex=false")
    }

    fn update_index_input(&self, steps: &[IndexStep]) -> Vec<u8> {
        let entry = |step: &IndexStep| match &step.after {
            IndexState::Entry { mode, git_blob } => {
                (step.path.clone(), Some(TreeObject { mode: *mode, id: git_blob.clone() }))
            }
            _ => (step.path.clone(), None),
        };
        index_info(self.repository.format(), &steps.iter().map(entry).collect::<Vec<_>>())
    }

    /// Notes the size and times of the new files, as `git add` would have: else every tool that trusts them
    /// sees changes. Where the change brings other attributes, git might start a filter that they select;
    /// then the user's next `git status` does it.
    fn refresh_stat(&self, git: Git, steps: &[IndexStep]) -> Result<()> {
        if steps.iter().any(|step| step.path.file_name() == b".gitattributes") {
            return Ok(());
        }
        let there: Vec<&[u8]> =
            steps.iter().filter(|s| blob_of(&s.after).is_some()).map(|s| s.path.as_bytes()).collect();
        if there.is_empty() {
            return Ok(());
        }
        let add = git.arg("--literal-pathspecs").args([
            "add",
            "--refresh",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ]);
        // A path that is not as the index says (the user's later edit) is no failure here.
        add.stdin(there.join(&0)).run().map(|_| ())
    }
}

/// A file where the index has a directory, or the other way round: git would drop those entries for the new
/// one, and they are the user's.
fn refuse_in_the_way(steps: &[IndexStep], listing: &[u8]) -> Result<()> {
    let gone: BTreeSet<&[u8]> =
        steps.iter().filter(|step| blob_of(&step.after).is_none()).map(|step| step.path.as_bytes()).collect();
    let stay: BTreeSet<&[u8]> =
        listing.split(|b| *b == 0).filter(|name| !name.is_empty() && !gone.contains(name)).collect();
    let taken = |step: &&IndexStep| {
        let beneath = [step.path.as_bytes(), b"/"].concat();
        let next = stay.range(beneath.as_slice()..).next();
        next.is_some_and(|name| name.starts_with(&beneath))
            || step.path.ancestors().iter().any(|above| stay.contains(above.as_bytes()))
    };
    let new = steps.iter().filter(|step| step.before == IndexState::Absent);
    let conflicts: Vec<Conflict> =
        new.filter(taken).map(|step| Conflict::of_the_index(step.path.clone())).collect();
    if conflicts.is_empty() { Ok(()) } else { Err(refuse_delivery(&conflicts)) }
}

fn refuse_mount(git_dir: &Path, why: &str) -> Failure {
    let shown = git_dir.display().to_string();
    let message = format!(
        "nothing was written: the file system of {shown} cannot give one file two names ({why}), so a lock of the index would not be known as ours"
    );
    Failure::new(Code::NotSupported, message).subject(shown).remedy(
        "Keep the repository on another file system, or let a task deliver to local_files.",
        ["git", "tender", "doctor"],
    )
}

fn blob_of(state: &IndexState) -> Option<&ObjectId> {
    match state {
        IndexState::Entry { git_blob, .. } => Some(git_blob),
        _ => None,
    }
}

fn inode_of(path: &Path) -> Result<Option<(u64, u64)>> {
    match std::fs::symlink_metadata(path) {
        Ok(found) => Ok(Some((found.dev(), found.ino()))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::io("look at", path, &e)),
    }
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Failure::io("remove", path, &e)),
        _ => Ok(()),
    }
}
