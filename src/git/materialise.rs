//! Brings a directory from the files that it holds to the files of a tree, touching only the difference.
//!
//! Nothing of the tree runs and nothing is followed: files are created exclusively, beneath descriptors.
//! What was written is remembered with the stamp of each file ([`HeldFiles`]), and the last write lies in
//! an earlier tick of the clock than anything that comes later, so a later change always shows in the
//! stamp.

use super::beneath::{Folder, FolderCursor, Stamp, file_type, path_operation_failed, walk_folder};
use super::convert::{Conversions, Drivers};
use super::tree::TreeFile;
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Below this many files a second thread costs more than it brings.
const WORTH_THREADS: usize = 256;

/// A file as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    /// Its mode in the tree.
    pub mode: Mode,
    pub id: ObjectId,
    /// What the conversion to checkout bytes depended on; empty where there was none.
    pub conversion: String,
    /// How to see that it was not touched since.
    pub stamp: Stamp,
}

/// What a directory holds as we wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldFiles(pub BTreeMap<RepoPath, HeldFile>);

impl Serialize for HeldFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(path, f)| {
            let s = f.stamp;
            (path, f.mode, &f.id, &f.conversion, s.ino, s.size, s.mtime, s.ctime)
        }))
    }
}

impl<'de> Deserialize<'de> for HeldFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        type Row = (RepoPath, Mode, ObjectId, String, u64, u64, i64, i64);
        let rows = Vec::<Row>::deserialize(deserializer)?;
        let entry = |(path, mode, id, conversion, ino, size, mtime, ctime)| {
            (path, HeldFile { mode, id, conversion, stamp: Stamp { ino, size, mtime, ctime } })
        };
        Ok(Self(rows.into_iter().map(entry).collect()))
    }
}

/// Whether what is written may be written again by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillPermissions {
    Writable,
    /// Files without any write bit; directories stay writable.
    ReadOnly,
}

/// The trees by whose attributes files are converted.
#[derive(Debug, Clone, Copy)]
pub struct AttributeTrees<'a> {
    /// The tree whose attributes count.
    pub tree: &'a ObjectId,
    /// Files for which those of another tree count, whatever the first one says of them.
    pub apart: Option<Apart<'a>>,
}

/// Files with attributes of their own.
#[derive(Debug, Clone, Copy)]
pub struct Apart<'a> {
    pub paths: &'a BTreeSet<&'a RepoPath>,
    /// The tree whose attributes count for them.
    pub tree: &'a ObjectId,
}

impl<'a> AttributeTrees<'a> {
    /// One tree for every file.
    pub fn all_of(tree: &'a ObjectId) -> Self {
        Self { tree, apart: None }
    }

    fn tree_for(&self, path: &RepoPath) -> &'a ObjectId {
        self.apart.filter(|apart| apart.paths.contains(path)).map_or(self.tree, |apart| apart.tree)
    }
}

/// How a path differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alteration {
    /// Other content, metadata or type.
    Changed,
    Removed,
    /// It was not written by us.
    Added,
}

/// Brings `dir` from `held` to `wanted`. Files of `held` are taken to be there untouched (see
/// [`find_altered`]).
///
/// `progress` hears of files written and files to write. A path that is in the way is an error that names it,
/// and so is a failing driver; the directory then holds a part.
#[expect(clippy::too_many_arguments, reason = "each is one independent fact of the job")]
pub fn materialise_files(
    conversions: &Conversions,
    attributes: AttributeTrees,
    drivers: &Drivers,
    dir: &Path,
    held: HeldFiles,
    wanted: &[TreeFile],
    permissions: FillPermissions,
    progress: &dyn Fn(u64, u64),
) -> Result<HeldFiles> {
    let job = FillJob { conversions, attributes, drivers, dir, permissions };
    let kinds = job.conversion_kinds(wanted)?;
    let mut after = held.0;
    let mut missing = Vec::new();
    let mut keep = BTreeSet::new();
    for (file, kind) in wanted.iter().zip(kinds) {
        keep.insert(&file.path);
        let same = |h: &HeldFile| h.mode == file.mode && h.id == file.id && h.conversion == kind;
        if !after.get(&file.path).is_some_and(same) {
            missing.push((file, kind));
        }
    }
    let replaced: BTreeSet<&RepoPath> = missing.iter().map(|(file, _)| &file.path).collect();
    let stale: Vec<RepoPath> =
        after.keys().filter(|p| !keep.contains(p) || replaced.contains(p)).cloned().collect();
    remove_files(dir, &stale)?;
    stale.iter().for_each(|path| drop(after.remove(path)));
    let files: Vec<&TreeFile> = missing.iter().map(|(file, _)| *file).collect();
    let stamps = job.write_all(&files, progress)?;
    let latest = stamps.iter().map(|s| s.ctime).max();
    for ((file, conversion), stamp) in missing.into_iter().zip(stamps) {
        after.insert(file.path.clone(), HeldFile { mode: file.mode, id: file.id.clone(), conversion, stamp });
    }
    if let Some(latest) = latest {
        pass_tick(latest);
    }
    Ok(HeldFiles(after))
}

/// Removes files that are there, and the directories that become empty by it.
pub fn remove_files(dir: &Path, paths: &[RepoPath]) -> Result<()> {
    let mut cursor = FolderCursor::new(dir)?;
    for path in paths.iter().rev() {
        let Some(folder) = cursor.folder_of(path)? else { continue };
        match folder.unlink(path.file_name()) {
            Ok(()) => {}
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::NOENT) => {}
                Some(Errno::ISDIR | Errno::PERM) => {
                    // A submodule's empty directory; what someone put into it stays.
                    let _ = folder.remove_folder(path.file_name());
                }
                _ => return Err(path_operation_failed("remove", path.as_bytes(), e)),
            },
        }
        cursor.remove_empty_folders(path)?;
    }
    Ok(())
}

/// What is no longer as it was written, sorted by the bytes of the paths; `ignore` names where anything may
/// be. `.git` at the top is not looked at. Any other spelling of it is no path that a tree could hold, so it
/// can only be something that was added.
pub fn find_altered(dir: &Path, held: &HeldFiles, ignore: &Scope) -> Result<Vec<(Vec<u8>, Alteration)>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let folders: BTreeSet<RepoPath> = held.0.keys().flat_map(RepoPath::ancestors).collect();
    walk_folder(&Folder::open_path(dir)?, &mut |parent, bytes, stat| {
        if bytes == b".git" {
            return Ok(false);
        }
        let Ok(path) = RepoPath::new(bytes) else {
            if !ignore.matches_bytes(bytes) {
                found.push((bytes.to_vec(), Alteration::Added));
            }
            return Ok(false);
        };
        let directory = file_type(stat) == FileType::Directory;
        match held.0.get(&path) {
            Some(file) => {
                if !is_unchanged(file, stat, directory) {
                    found.push((bytes.to_vec(), Alteration::Changed));
                }
                seen.insert(path);
                Ok(false)
            }
            None if directory => {
                if covers_folder(ignore, &path) {
                    return Ok(false);
                }
                let empty = || {
                    parent
                        .open_subfolder(path.file_name())
                        .and_then(|d| d.sorted_names())
                        .is_ok_and(|n| n.is_empty())
                };
                if !folders.contains(&path) && !ignore.matches_path(&path) && empty() {
                    found.push((bytes.to_vec(), Alteration::Added));
                }
                Ok(true)
            }
            None => {
                if !ignore.matches_path(&path) {
                    found.push((bytes.to_vec(), Alteration::Added));
                }
                Ok(false)
            }
        }
    })?;
    let removed = held.0.keys().filter(|path| !seen.contains(path));
    found.extend(removed.map(|path| (path.as_bytes().to_vec(), Alteration::Removed)));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// True where a pattern covers all that can be beneath a directory, so that nobody need go in.
pub fn covers_folder(scope: &Scope, folder: &RepoPath) -> bool {
    let Ok(name) = std::str::from_utf8(folder.as_bytes()) else { return false };
    scope.patterns().iter().any(|p| p.strip_suffix("/**").or_else(|| p.strip_suffix('/')) == Some(name))
}

/// True where a file is as it was written.
pub(super) fn is_unchanged(file: &HeldFile, stat: &rustix::fs::Stat, directory: bool) -> bool {
    match file.mode {
        // What a submodule's directory holds is its own matter.
        Mode::Gitlink => directory,
        _ => !directory && Stamp::of_stat(stat) == file.stamp && stat.st_nlink == 1,
    }
}

/// Waits until the clock that stamps files has passed `latest` (nanoseconds): at most a few ticks. False
/// where it has not by then.
pub(super) fn pass_tick(latest: i64) -> bool {
    for _ in 0..50 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        if now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec) > latest {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[derive(Clone, Copy)]
struct FillJob<'a> {
    conversions: &'a Conversions<'a>,
    attributes: AttributeTrees<'a>,
    drivers: &'a Drivers<'a>,
    dir: &'a Path,
    permissions: FillPermissions,
}

impl FillJob<'_> {
    fn conversion_kinds(&self, wanted: &[TreeFile]) -> Result<Vec<String>> {
        let mut kinds = vec![String::new(); wanted.len()];
        for (tree, places) in self.regular_files(wanted.iter()) {
            let paths: Vec<&RepoPath> = places.iter().map(|at| &wanted[*at].path).collect();
            let found = self.conversions.conversion_kinds(tree, self.drivers, &paths)?;
            places.into_iter().zip(found).for_each(|(at, kind)| kinds[at] = kind);
        }
        Ok(kinds)
    }

    /// Where in a list the regular files stand, by the tree whose attributes count for them.
    fn regular_files<'f>(&self, files: impl Iterator<Item = &'f TreeFile>) -> Vec<(&ObjectId, Vec<usize>)> {
        let mut all: Vec<(&ObjectId, Vec<usize>)> = Vec::new();
        for (at, file) in files.enumerate().filter(|(_, file)| file.mode.is_regular()) {
            let tree = self.attributes.tree_for(&file.path);
            match all.iter_mut().find(|(known, _)| *known == tree) {
                Some((_, places)) => places.push(at),
                None => all.push((tree, vec![at])),
            }
        }
        all
    }

    /// Writes new files; gives their stamps in the same order.
    fn write_all(&self, files: &[&TreeFile], progress: &dyn Fn(u64, u64)) -> Result<Vec<Stamp>> {
        let total = files.len() as u64;
        let threads = match std::thread::available_parallelism() {
            Ok(n) if files.len() >= WORTH_THREADS => n.get().min(4),
            _ => 1,
        };
        let mut stamps: Vec<Option<Stamp>> = vec![None; files.len()];
        let (sender, receiver) = mpsc::channel();
        let share = files.len().div_ceil(threads).max(1);
        let outcome: Result<()> = std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (part, chunk) in files.chunks(share).enumerate() {
                let (send, job) = (sender.clone(), *self);
                let write = move || {
                    job.write_part(chunk, &mut |at, stamp| send.send((part * share + at, stamp)).is_ok())
                };
                match std::thread::Builder::new().spawn_scoped(scope, write) {
                    Ok(worker) => workers.push(worker),
                    // No further thread is to be had: this one does the work.
                    Err(_) => self.write_part(chunk, &mut |at, stamp| {
                        sender.send((part * share + at, stamp)).is_ok()
                    })?,
                }
            }
            drop(sender);
            let mut done = 0;
            for (at, stamp) in receiver {
                stamps[at] = Some(stamp);
                done += 1;
                progress(done, total);
            }
            workers.into_iter().try_for_each(|w| {
                w.join().unwrap_or_else(|_| Err(Failure::internal("a writing thread panicked")))
            })
        });
        outcome?;
        stamps.into_iter().map(|s| s.ok_or_else(|| Failure::internal("a file was not written"))).collect()
    }

    fn write_part(&self, files: &[&TreeFile], done: &mut dyn FnMut(usize, Stamp) -> bool) -> Result<()> {
        let mut cursor = FolderCursor::new(self.dir)?;
        let objects = self.conversions.repository.object_reader(self.conversions.quarantine)?;
        for (at, file) in files.iter().enumerate().filter(|(_, file)| !file.mode.is_regular()) {
            let (folder, name) = (cursor.made_folder(&file.path)?, file.path.file_name());
            let made = match file.mode {
                Mode::Symlink => folder.create_link(name, &objects.read_blob(&file.id)?),
                _ => folder.make_subfolder(name).map(|_| ()),
            };
            let stat = made.and_then(|()| folder.stat(name)).map_err(|e| in_the_way(&file.path, e))?;
            done(at, Stamp::of_stat(&stat));
        }
        for (tree, places) in self.regular_files(files.iter().copied()) {
            let items: Vec<(RepoPath, ObjectId)> =
                places.iter().map(|at| (files[*at].path.clone(), files[*at].id.clone())).collect();
            self.conversions.smudge_blobs(tree, self.drivers, &items, &mut |at, bytes| {
                let stamp = self.write_file(&mut cursor, files[places[at]], &bytes)?;
                done(places[at], stamp);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn write_file(&self, cursor: &mut FolderCursor, file: &TreeFile, bytes: &[u8]) -> Result<Stamp> {
        let mode = match (self.permissions, file.mode == Mode::Executable) {
            (FillPermissions::Writable, false) => 0o666,
            (FillPermissions::Writable, true) => 0o777,
            (FillPermissions::ReadOnly, false) => 0o444,
            (FillPermissions::ReadOnly, true) => 0o555,
        };
        let created = cursor.made_folder(&file.path)?.create_file(file.path.file_name(), mode);
        let mut handle = created.map_err(|e| in_the_way(&file.path, e))?;
        let failed = |e: std::io::Error| Failure::io("write", file.path.as_path(), &e);
        handle.write_all(bytes).map_err(failed)?;
        rustix::fs::fstat(&handle).map(|stat| Stamp::of_stat(&stat)).map_err(|e| failed(e.into()))
    }
}

fn in_the_way(path: &RepoPath, error: std::io::Error) -> Failure {
    if error.kind() != std::io::ErrorKind::AlreadyExists {
        return path_operation_failed("make", path.as_bytes(), error);
    }
    Failure::new(
        Code::Io,
        format!("cannot write {path}: something that git-tender did not write is there already"),
    )
    .subject(path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use crate::git::tree;
    use std::os::unix::fs::PermissionsExt;

    struct Bench {
        home: TestRepository,
        dir: std::path::PathBuf,
    }

    impl Bench {
        fn new() -> Self {
            let home = TestRepository::new();
            let dir = home.outside().join("target");
            std::fs::create_dir(&dir).expect("made");
            Self { home, dir }
        }

        fn bring_to(
            &self,
            tree: &ObjectId,
            held: HeldFiles,
            permissions: FillPermissions,
        ) -> Result<HeldFiles> {
            let repository = self.home.repository();
            let files = tree::list_files(&repository.object_reader(None)?, tree)?;
            let conversions = Conversions { repository: &repository, quarantine: None };
            let drivers = Drivers::SelectedBy(tree);
            let attributes = AttributeTrees::all_of(tree);
            materialise_files(
                &conversions,
                attributes,
                &drivers,
                &self.dir,
                held,
                &files,
                permissions,
                &|_, _| {},
            )
        }

        fn list_folder(&self) -> Vec<String> {
            let mut found = Vec::new();
            walk_folder(&Folder::open_path(&self.dir).expect("opens"), &mut |_, path, stat| {
                found.push(format!("{} {:o}", String::from_utf8_lossy(path), stat.st_mode));
                Ok(true)
            })
            .expect("walks");
            found
        }
    }

    #[test]
    fn a_tree_is_written_and_then_only_the_difference() {
        let bench = Bench::new();
        let home = &bench.home;
        home.write_file("a/b/c", b"1\n");
        home.write_file("a/run", b"#!\n");
        home.write_file("keep", b"kept\n");
        home.write_file("lines.bat", b"x\ny\n");
        home.write_file(".gitattributes", b"*.bat eol=crlf\n");
        std::os::unix::fs::symlink("../nowhere", home.top().join("link")).expect("made");
        std::fs::set_permissions(home.top().join("a/run"), std::fs::Permissions::from_mode(0o755))
            .expect("set");
        let first = home.commit_all("first");
        let held = bench.bring_to(&first, HeldFiles::default(), FillPermissions::Writable).expect("brings");
        assert_eq!(std::fs::read(bench.dir.join("lines.bat")).expect("reads"), b"x\r\ny\r\n");
        assert_eq!(std::fs::read_link(bench.dir.join("link")).expect("reads"), Path::new("../nowhere"));
        assert_eq!(find_altered(&bench.dir, &held, &Scope::default()).expect("looks"), []);
        // A file becomes a directory and a directory a file; the attributes change the bytes of an unchanged
        // blob.
        std::fs::remove_dir_all(home.top().join("a")).expect("removed");
        home.remove_file("link");
        home.write_file("a", b"file now\n");
        home.write_file("link/inside", b"directory now\n");
        home.write_file(".gitattributes", b"*.bat -text\n");
        let second = home.commit_all("second");
        let kept = held.0[&RepoPath::new("keep").expect("a path")].stamp;
        let held = bench.bring_to(&second, held, FillPermissions::ReadOnly).expect("brings");
        assert_eq!(held.0[&RepoPath::new("keep").expect("a path")].stamp, kept);
        assert_eq!(std::fs::read(bench.dir.join("lines.bat")).expect("reads"), b"x\ny\n");
        assert_eq!(
            bench.list_folder(),
            [
                ".gitattributes 100444",
                "a 100444",
                "keep 100644",
                "lines.bat 100444",
                "link 40755",
                "link/inside 100444"
            ]
        );
        let text = serde_json::to_string(&held).expect("serializes");
        assert_eq!(serde_json::from_str::<HeldFiles>(&text).expect("parses"), held);
    }

    #[test]
    fn a_git_directory_below_is_added_or_scratch_and_not_entered() {
        let bench = Bench::new();
        bench.home.write_file("a", b"1\n");
        let tree = bench.home.commit_all("first");
        let held = bench.bring_to(&tree, HeldFiles::default(), FillPermissions::ReadOnly).expect("brings");
        for folder in ["sub/.git/objects", "x/target/r/.git", ".git/objects", "GIT~1"] {
            std::fs::create_dir_all(bench.dir.join(folder)).expect("made");
        }
        let scratch = Scope::new(vec!["**/target/".to_owned()]).expect("a scope");
        let added = |name: &str| (name.as_bytes().to_vec(), Alteration::Added);
        let found = find_altered(&bench.dir, &held, &scratch).expect("looks");
        assert_eq!(found, [added("GIT~1"), added("sub/.git")]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the worker")]
    fn any_later_change_shows_and_what_is_in_the_way_is_named() {
        let bench = Bench::new();
        for at in 0..300 {
            bench.home.write_file(&format!("d{}/f{at}", at % 7), b"same\n");
        }
        let tree = bench.home.commit_all("many");
        let held = bench.bring_to(&tree, HeldFiles::default(), FillPermissions::Writable).expect("brings");
        assert_eq!(find_altered(&bench.dir, &held, &Scope::default()).expect("looks"), []);
        let victim = bench.dir.join("d6/f293");
        let before = std::fs::metadata(&victim).expect("there").modified().expect("a time");
        std::fs::write(&victim, b"emas\n").expect("writes");
        let file = std::fs::File::options().write(true).open(&victim).expect("opens");
        file.set_modified(before).expect("set back");
        std::fs::remove_file(bench.dir.join("d0/f0")).expect("removed");
        std::fs::create_dir_all(bench.dir.join("new/empty")).expect("made");
        let path = |name: &str| name.as_bytes().to_vec();
        let found = find_altered(&bench.dir, &held, &Scope::default()).expect("looks");
        assert_eq!(
            found,
            [
                (path("d0/f0"), Alteration::Removed),
                (path("d6/f293"), Alteration::Changed),
                (path("new/empty"), Alteration::Added)
            ]
        );
        let refused = bench
            .bring_to(&tree, HeldFiles::default(), FillPermissions::Writable)
            .expect_err("files are there");
        assert_eq!(refused.code(), Code::Io);
    }
}
