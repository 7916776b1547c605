//! From a task's worktree to a candidate tree.
//!
//! Taken from outside: the worktree is walked from its own descriptor, git is always told the repository's
//! directory, and what the worker did to git inside the worktree does not matter. Nothing in the worktree is
//! changed or run. Everything that is refused is found before anything is said, so that one answer names all
//! of it. Bytes of the candidate go only into the quarantine.

mod ignored;

pub use ignored::never_captured;

use super::beneath::{Folder, FolderCursor, Stamp, file_type, path_operation_failed, walk_folder};
use super::command::Quarantine;
use super::convert::{ConversionAttributes, Conversions, Drivers, write_blobs};
use super::drivers::configured_drivers;
use super::limits::{CandidateLimits, find_violations, refuse_by_rule};
use super::materialise::{HeldFiles, covers_folder};
use super::private_index::{PrivateIndex, PrivateIndexEntry};
use super::repository::Repository;
use super::submodule::refuse_changed_submodule;
use super::tree;
use crate::domain::change::patch::Change;
use crate::domain::ledger::brought::BroughtPlaces;
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::{RULE, RepoPath, display_bytes, is_dot_git};
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// As many bytes are held in memory before they are converted and stored.
const BATCH: usize = 64 << 20;

/// What a capture is taken of.
#[derive(Debug, Clone, Copy)]
pub struct CaptureRequest<'a> {
    pub repository: &'a Repository,
    pub quarantine: &'a Quarantine,
    pub worktree: &'a Path,
    /// What the task started from.
    pub base_tree: &'a ObjectId,
    /// What was written into the worktree; a file with the same stamp is not read again.
    pub held: &'a HeldFiles,
    /// Files that the last candidate added: they are captured also where git ignores them.
    pub added: &'a [PrivateIndexEntry],
    pub scratch: &'a Scope,
    /// What was brought into the worktree: never captured, whatever rules it has by now.
    pub brought: &'a BroughtPlaces,
    pub limits: CandidateLimits<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Its tree, in the quarantine.
    pub tree: ObjectId,
    /// The manifest, sorted by path bytes.
    pub changes: Vec<Change>,
}

/// Captures the worktree; the failure lists everything that is refused.
pub fn capture_worktree(request: &CaptureRequest) -> Result<Capture> {
    let index = PrivateIndex::holding_tree(request.repository, request.quarantine, request.base_tree)?;
    let objects = request.repository.object_reader(Some(request.quarantine))?;
    let base = tree::list_files(&objects, request.base_tree)?
        .into_iter()
        .map(|f| (f.path, TreeObject { mode: f.mode, id: f.id }))
        .collect();
    let file_mode = request.repository.configuration()?.bool_value("core.fileMode").unwrap_or(true);
    let mut survey = CaptureSurvey {
        request,
        base,
        added: request.added.iter().map(|(path, _)| path.clone()).collect(),
        index: &index,
        ignored: None,
        file_mode,
        seen: BTreeSet::new(),
        links: Vec::new(),
        files: Vec::new(),
        refused: Vec::new(),
    };
    survey.take_survey()?;
    let removed = survey.removed_paths();
    let mut entries: Vec<PrivateIndexEntry> = removed.iter().map(|path| (path.clone(), None)).collect();
    let conversions = index.conversions();
    entries.extend(survey.link_entries(&conversions)?);
    let attributes = survey.attribute_tree(&conversions, &removed)?;
    survey.refuse_drivers(&conversions, &attributes)?;
    if survey.refused.is_empty() {
        entries.extend(survey.file_entries(&conversions, &attributes)?);
    }
    finish_capture(&index, request, &entries, survey.refused)
}

fn finish_capture(
    index: &PrivateIndex,
    request: &CaptureRequest,
    entries: &[PrivateIndexEntry],
    mut refused: Vec<Failure>,
) -> Result<Capture> {
    index.update_entries(entries)?;
    let tree = index.write_tree()?;
    let objects = request.repository.object_reader(Some(request.quarantine))?;
    for failure in find_violations(&objects, request.base_tree, &tree, &request.limits)? {
        if !refused.iter().any(|f| f.subject_text() == failure.subject_text()) {
            refused.push(failure);
        }
    }
    refused.sort_by(|a, b| a.subject_text().cmp(&b.subject_text()));
    match Failure::first_of(refused) {
        Some(failure) => Err(failure),
        None => Ok(Capture { changes: tree::changes_between(&objects, request.base_tree, &tree)?, tree }),
    }
}

/// A regular file whose bytes have to be looked at.
struct Suspect {
    path: RepoPath,
    mode: Mode,
    size: u64,
}

struct CaptureSurvey<'a> {
    request: &'a CaptureRequest<'a>,
    base: BTreeMap<RepoPath, TreeObject>,
    added: BTreeSet<RepoPath>,
    /// Holds the base.
    index: &'a PrivateIndex<'a>,
    /// What git ignores; nobody asks it as long as everything is tracked.
    ignored: Option<BTreeSet<Vec<u8>>>,
    file_mode: bool,
    seen: BTreeSet<RepoPath>,
    links: Vec<(RepoPath, Vec<u8>)>,
    files: Vec<Suspect>,
    refused: Vec<Failure>,
}

impl CaptureSurvey<'_> {
    fn take_survey(&mut self) -> Result<()> {
        let root = Folder::open_path(self.request.worktree)?;
        walk_folder(&root, &mut |folder, path, stat| self.visit_entry(folder, path, stat))
    }

    /// True for a file of the base or of the last candidate, and for a folder that holds one: git ignores
    /// neither.
    fn is_tracked(&self, bytes: &[u8], directory: bool) -> bool {
        if !directory {
            return RepoPath::new(bytes)
                .is_ok_and(|path| self.base.contains_key(&path) || self.added.contains(&path));
        }
        let start = [bytes, b"/"].concat();
        // No path beneath it comes before this one.
        let Ok(first) = RepoPath::new([start.as_slice(), b"\x01"].concat()) else { return false };
        let beneath = |path: Option<&RepoPath>| path.is_some_and(|path| path.as_bytes().starts_with(&start));
        beneath(self.base.range(&first..).next().map(|(path, _)| path))
            || beneath(self.added.range(&first..).next())
    }

    fn is_ignored(&mut self, bytes: &[u8], directory: bool) -> Result<bool> {
        let ignored = match &mut self.ignored {
            Some(ignored) => ignored,
            unasked => unasked.insert(ignored::ignored_by_git(self.request, self.index)?),
        };
        let as_listed = if directory { [bytes, b"/"].concat() } else { bytes.to_vec() };
        Ok(ignored.contains(&as_listed))
    }

    fn visit_entry(&mut self, folder: &Folder, bytes: &[u8], stat: &Stat) -> Result<bool> {
        if bytes == b".git" {
            return Ok(false);
        }
        let directory = file_type(stat) == FileType::Directory;
        if !self.is_tracked(bytes, directory)
            && (self.request.brought.entry_at(bytes).is_some() || self.is_ignored(bytes, directory)?)
        {
            return Ok(false);
        }
        let path = match RepoPath::new(bytes) {
            Ok(path) => path,
            Err(failure) => {
                let parent = bytes.iter().rposition(|b| *b == b'/').map(|at| RepoPath::new(&bytes[..at]));
                if parent.is_some_and(|p| p.is_ok_and(|p| self.request.scratch.matches_path(&p))) {
                    return Ok(false);
                }
                self.refused.push(nested_repository(bytes).unwrap_or(failure));
                return Ok(false);
            }
        };
        if self.request.scratch.matches_path(&path)
            || (directory && covers_folder(self.request.scratch, &path))
        {
            return Ok(directory && !covers_folder(self.request.scratch, &path));
        }
        match file_type(stat) {
            FileType::Directory => return Ok(self.survey_directory(folder, &path)),
            FileType::Symlink => {
                let target = folder
                    .read_link(path.file_name())
                    .map_err(|e| path_operation_failed("read the link", bytes, e))?;
                self.links.push((path.clone(), target));
            }
            FileType::RegularFile => self.survey_file(&path, stat),
            _ => self.refuse_path(&path, "it is a pipe, a socket or a device, which git cannot hold"),
        }
        self.seen.insert(path);
        Ok(false)
    }

    fn refuse_path(&mut self, path: &RepoPath, rule: &str) {
        self.refused.push(refuse_by_rule(&path.to_string(), rule));
    }

    fn survey_directory(&mut self, folder: &Folder, path: &RepoPath) -> bool {
        let Some(recorded) = self.base.get(path).filter(|known| known.mode == Mode::Gitlink) else {
            return true;
        };
        let names = folder.open_subfolder(path.file_name()).and_then(|dir| dir.sorted_names());
        if names.is_ok_and(|names| !names.is_empty()) {
            self.refused.extend(refuse_changed_submodule(self.request.worktree, path, &recorded.id));
        }
        self.seen.insert(path.clone());
        false
    }

    fn survey_file(&mut self, path: &RepoPath, stat: &Stat) {
        let stamp = Stamp::of_stat(stat);
        if stat.st_nlink > 1 {
            return self.refuse_path(path, "it is a hard link: another name shares its bytes");
        }
        let known = self.base.get(path);
        let as_written = |held: &super::materialise::HeldFile| {
            held.stamp == stamp && known.is_some_and(|known| known.mode == held.mode && known.id == held.id)
        };
        if self.request.held.0.get(path).is_some_and(as_written) {
            return;
        }
        let executable = stat.st_mode & 0o100 != 0;
        let mode = match known.map(|known| known.mode) {
            Some(mode) if !self.file_mode && mode.is_regular() => mode,
            _ if self.file_mode && executable => Mode::Executable,
            _ => Mode::File,
        };
        if known.is_none()
            && let Some(failure) = self.request.limits.refuse_outside(path)
        {
            self.refused.push(failure);
            return;
        }
        self.files.push(Suspect { path: path.clone(), mode, size: stamp.size });
    }

    /// Tracked paths that are gone. What `scratch` names stays as it was in the base.
    fn removed_paths(&self) -> Vec<RepoPath> {
        self.base
            .keys()
            .filter(|p| !self.seen.contains(p) && !self.request.scratch.matches_path(p))
            .cloned()
            .collect()
    }

    fn link_entries(&self, conversions: &Conversions) -> Result<Vec<PrivateIndexEntry>> {
        let format = self.request.repository.format();
        let mut changed = Vec::new();
        for (path, target) in &self.links {
            if self.base.get(path) != Some(&TreeObject { mode: Mode::Symlink, id: format.blob_id(target)? }) {
                changed.push((path, target.clone()));
            }
        }
        let (paths, targets): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
        let ids = write_blobs(conversions, &targets)?;
        let link = |id| Some(TreeObject { mode: Mode::Symlink, id });
        Ok(paths.into_iter().zip(ids).map(|(path, id)| (path.clone(), link(id))).collect())
    }

    /// The tree whose attributes count for built-in conversions: the base with the candidate's
    /// `.gitattributes`.
    fn attribute_tree(&self, conversions: &Conversions, removed: &[RepoPath]) -> Result<ObjectId> {
        let ours = |path: &RepoPath| path.file_name() == b".gitattributes";
        let mut entries: Vec<PrivateIndexEntry> =
            removed.iter().filter(|p| ours(p)).map(|path| (path.clone(), None)).collect();
        let mut cursor = FolderCursor::new(self.request.worktree)?;
        for file in self.files.iter().filter(|f| ours(&f.path)) {
            let bytes = read_file(&mut cursor, &file.path, file.size)?;
            let id = write_blobs(conversions, &[bytes])?.remove(0);
            entries.push((file.path.clone(), Some(TreeObject { mode: Mode::File, id })));
        }
        if entries.is_empty() {
            return Ok(self.request.base_tree.clone());
        }
        let index = PrivateIndex::holding_tree(
            self.request.repository,
            self.request.quarantine,
            self.request.base_tree,
        )?;
        index.update_entries(&entries)?;
        index.write_tree()
    }

    /// A driver runs only where the base selects it, and never one whose program is a file of the tree.
    fn refuse_drivers(&mut self, conversions: &Conversions, attributes: &ObjectId) -> Result<()> {
        let configured = configured_drivers(self.request.repository)?;
        if configured.is_empty() || self.files.is_empty() {
            return Ok(());
        }
        let paths: Vec<RepoPath> = self.files.iter().map(|f| f.path.clone()).collect();
        let now = conversions.attributes_of_paths(attributes, &paths)?;
        let before = conversions.attributes_of_paths(self.request.base_tree, &paths)?;
        let mut relative: BTreeMap<String, bool> = BTreeMap::new();
        let selected =
            |a: &ConversionAttributes| a.filter.clone().filter(|name| configured.contains_key(name));
        for ((path, now), before) in paths.iter().zip(&now).zip(&before) {
            let Some(name) = selected(now) else { continue };
            let trees = [self.request.base_tree, attributes];
            if !relative.contains_key(&name) {
                relative.insert(name.clone(), conversions.relative_driver(&name, &trees)?);
            }
            let why = if selected(before).as_ref() != Some(&name) {
                "the base does not select that driver for this path"
            } else if relative.get(&name) == Some(&true) && !self.is_raw_base(path)? {
                "its program is named relative to the tree, so the candidate could have changed it"
            } else {
                continue;
            };
            self.refused.push(
                Failure::new(
                    Code::PermissionDenied,
                    format!("the filter driver {name} is not run for {path}: {why}"),
                )
                .subject(path.to_string())
                .detail("driver", &name)
                .with_detail(&RULE, why)
                .remedy(
                    "Take the attribute back, or let the repository's owner commit it first.",
                    ["git", "check-attr", "filter", "--", &path.to_string()],
                ),
            );
        }
        Ok(())
    }

    fn is_raw_base(&self, path: &RepoPath) -> Result<bool> {
        let Some(TreeObject { id, .. }) = self.base.get(path) else { return Ok(false) };
        let size = self.files.iter().find(|f| f.path == *path).map_or(0, |f| f.size);
        let bytes = read_file(&mut FolderCursor::new(self.request.worktree)?, path, size)?;
        Ok(self.request.repository.format().blob_id(&bytes)? == *id)
    }

    /// Reads the suspects and stores what really changed.
    fn file_entries(
        &mut self,
        conversions: &Conversions,
        attributes: &ObjectId,
    ) -> Result<Vec<PrivateIndexEntry>> {
        let drivers = Drivers::SelectedBy(self.request.base_tree);
        let store =
            |batch: &[(RepoPath, Vec<u8>)]| conversions.clean_blobs(attributes, &drivers, batch, true);
        let mut cursor = FolderCursor::new(self.request.worktree)?;
        let mut entries = Vec::new();
        let mut waiting = WaitingFiles::default();
        let mut total = 0u64;
        for file in &self.files {
            let base = self.base.get(&file.path);
            if !self.may_be_read(file, total) {
                self.refused.extend(self.request.limits.too_much(&file.path, total + file.size));
                return Ok(entries);
            }
            let bytes = read_file(&mut cursor, &file.path, file.size)?;
            if let Some(TreeObject { mode, id }) = base
                && self.request.repository.format().blob_id(&bytes)? == *id
            {
                if *mode != file.mode {
                    entries.push((file.path.clone(), Some(TreeObject { mode: file.mode, id: id.clone() })));
                }
                continue;
            }
            waiting.bytes += bytes.len();
            waiting.files.push((file.path.clone(), bytes));
            waiting.modes.push(file.mode);
            if waiting.bytes > BATCH {
                total += self.store_waiting(&mut waiting, store, &mut entries)?;
            }
            if let Some(failure) = self.request.limits.too_much(&file.path, total + waiting.bytes as u64) {
                // What is waiting may turn out to be unchanged.
                total += self.store_waiting(&mut waiting, store, &mut entries)?;
                if self.request.limits.too_much(&file.path, total).is_some() {
                    self.refused.push(failure);
                    return Ok(entries);
                }
            }
        }
        self.store_waiting(&mut waiting, store, &mut entries)?;
        Ok(entries)
    }

    /// False where the file alone breaks the budget and cannot be what was written.
    fn may_be_read(&self, file: &Suspect, total: u64) -> bool {
        let same_size = self.request.held.0.get(&file.path).is_some_and(|h| h.stamp.size == file.size);
        same_size || self.request.limits.too_much(&file.path, total + file.size).is_none()
    }

    /// Converts and stores what is waiting; gives the bytes of what changed.
    fn store_waiting(
        &self,
        waiting: &mut WaitingFiles,
        store: impl Fn(&[(RepoPath, Vec<u8>)]) -> Result<Vec<ObjectId>>,
        entries: &mut Vec<PrivateIndexEntry>,
    ) -> Result<u64> {
        let WaitingFiles { files, modes, .. } = std::mem::take(waiting);
        if files.is_empty() {
            return Ok(0);
        }
        let ids = store(&files)?;
        let mut changed = 0;
        for (((path, bytes), mode), id) in files.into_iter().zip(modes).zip(ids) {
            let object = TreeObject { mode, id };
            if self.base.get(&path) != Some(&object) {
                changed += bytes.len() as u64;
                entries.push((path, Some(object)));
            }
        }
        Ok(changed)
    }
}

/// Files that were read and are stored together.
#[derive(Default)]
struct WaitingFiles {
    files: Vec<(RepoPath, Vec<u8>)>,
    modes: Vec<Mode>,
    bytes: usize,
}

/// Where a component is `.git` itself, the directory above it is a repository of its own.
fn nested_repository(bytes: &[u8]) -> Option<Failure> {
    let (above, name) = match bytes.iter().rposition(|b| *b == b'/') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (&b""[..], bytes),
    };
    (is_dot_git(name) && !above.is_empty()).then(|| {
        refuse_by_rule(&display_bytes(above), "it is a repository of its own inside the worktree")
            .detail("found", display_bytes(bytes))
            .remedy(
                "Move the nested repository out of the worktree, or remove its .git.",
                ["git", "tender", "status"],
            )
    })
}

/// The bytes of a file of the worktree; a link or special file in its place is a failure, and so is one that
/// grew meanwhile.
fn read_file(cursor: &mut FolderCursor, path: &RepoPath, size: u64) -> Result<Vec<u8>> {
    let moved = || {
        Failure::new(Code::Io, format!("{path} changed while it was captured"))
            .subject(path.to_string())
            .remedy(
                "Wait until nothing writes to the worktree, then submit again.",
                ["git", "tender", "submit"],
            )
    };
    let folder = cursor.folder_of(path)?.ok_or_else(moved)?;
    let file =
        folder.open_file(path.file_name()).map_err(|e| path_operation_failed("read", path.as_bytes(), e))?;
    let stat =
        rustix::fs::fstat(&file).map_err(|e| path_operation_failed("look at", path.as_bytes(), e.into()))?;
    if file_type(&stat) != FileType::RegularFile || stat.st_nlink > 1 {
        return Err(moved());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(BATCH));
    file.take(size + 1).read_to_end(&mut bytes).map_err(|e| Failure::io("read", path.as_path(), &e))?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(moved()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use crate::git::worktree::{Opening, create_worktree, make_root};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    struct Task {
        home: TestRepository,
        repository: Repository,
        quarantine: Quarantine,
        path: PathBuf,
        base: ObjectId,
        held: HeldFiles,
    }

    impl Task {
        fn open_task(home: TestRepository) -> Self {
            let base = home.commit_all("base");
            let repository = home.repository();
            let quarantine = home.quarantine();
            let path = make_root(&repository).expect("a root").join("t1");
            let head = home.run_git(["rev-parse", "HEAD"]).parse().expect("an id");
            let opening = Opening {
                repository: &repository,
                quarantine: &quarantine,
                task: "t1",
                path: &path,
                base_commit: Some(&head),
                tree: &base,
            };
            let held = create_worktree(&opening, || Ok(()), &|_, _| {}).expect("made");
            Self { home, repository, quarantine, path, base, held }
        }

        fn submit_worktree(&self, budget: Option<u64>) -> Result<Capture> {
            capture_worktree(&CaptureRequest {
                repository: &self.repository,
                quarantine: &self.quarantine,
                worktree: &self.path,
                base_tree: &self.base,
                held: &self.held,
                added: &[],
                scratch: &Scope::default(),
                brought: &BroughtPlaces::default(),
                limits: CandidateLimits {
                    allowed: &|path| !path.as_bytes().starts_with(b"forbidden/"),
                    scope: &["everything else".to_owned()],
                    artifact_bytes: budget,
                },
            })
        }

        fn captured_paths(&self) -> Vec<String> {
            let capture = self.submit_worktree(None).expect("captured");
            let side = |s: &Option<crate::domain::value::digest::FileState>| {
                s.as_ref().map_or("-".to_owned(), |s| s.mode.to_string())
            };
            capture.changes.iter().map(|c| format!("{} {} {}", side(&c.old), side(&c.new), c.path)).collect()
        }

        fn refused_paths(&self) -> Vec<(String, Code)> {
            let failure = self.submit_worktree(Some(1 << 20)).expect_err("refused");
            let mut all: Vec<_> = std::iter::once(&failure)
                .chain(failure.others())
                .map(|f| (f.subject_text().unwrap_or_default().to_owned(), f.code()))
                .collect();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all
        }

        #[expect(clippy::disallowed_methods, reason = "a test plays the worker")]
        fn write_file(&self, path: &str, bytes: &[u8]) {
            let place = self.path.join(path);
            std::fs::create_dir_all(place.parent().expect("a parent")).expect("directories");
            std::fs::write(place, bytes).expect("writes");
        }

        fn git_inside(&self, args: &[&str]) {
            let git = crate::git::Git::new(self.home.environment(), None).cwd(&self.path);
            git.args(args).run_for_stdout().expect("git works");
        }
    }

    fn with_files(files: &[(&str, &[u8])]) -> TestRepository {
        let home = TestRepository::new();
        files.iter().for_each(|(path, bytes)| home.write_file(path, bytes));
        home
    }

    #[test]
    fn changes_of_every_kind_are_captured_and_the_rest_is_not() {
        let task = Task::open_task(with_files(&[
            ("gone", b"1\n"),
            ("dir/inner", b"1\n"),
            ("file", b"1\n"),
            ("mode", b"1\n"),
            ("touched", b"1\n"),
            (".gitignore", b"*.o\nout/\ntracked.o\n"),
            ("tracked.o", b"1\n"),
        ]));
        assert_eq!(task.captured_paths(), Vec::<String>::new());
        std::fs::remove_file(task.path.join("gone")).expect("removed");
        std::fs::remove_dir_all(task.path.join("dir")).expect("removed");
        std::fs::remove_file(task.path.join("file")).expect("removed");
        task.write_file("dir", b"a file now\n");
        task.write_file("file/below", b"a directory now\n");
        task.write_file("touched", b"1\n");
        task.write_file("tracked.o", b"2\n");
        task.write_file("new.o", b"ignored\n");
        task.write_file("out/x", b"ignored\n");
        task.write_file("n\u{e9}w \n\"", b"");
        symlink("dir", task.path.join("link")).expect("made");
        std::fs::set_permissions(task.path.join("mode"), std::fs::Permissions::from_mode(0o755))
            .expect("set");
        // The worker's own git does not matter: neither its index nor its commits, nor another `.git` file.
        task.git_inside(&["add", "-A"]);
        task.git_inside(&["-c", "user.name=w", "-c", "user.email=w", "commit", "-qm", "mine"]);
        let evil = task.home.outside().join("evil");
        task.write_file(".git", format!("gitdir: {}\n", evil.display()).as_bytes());
        assert_eq!(
            task.captured_paths(),
            [
                "- 100644 dir",
                "100644 - dir/inner",
                "100644 - file",
                "- 100644 file/below",
                "100644 - gone",
                "- 120000 link",
                "100644 100755 mode",
                "- 100644 \"n\\xc3\\xa9w \\n\\\"\"",
                "100644 100644 tracked.o",
            ]
        );
        task.write_file("dir", b"later than the worker's commit\n");
        let before = task.submit_worktree(None).expect("captured").tree;
        assert!(
            !task.home.git_call().args(["cat-file", "-e", before.as_str()]).run().expect("starts").success()
        );
        assert!(task.home.git_call().args(["fsck", "--strict"]).run().expect("starts").success());
    }

    #[test]
    fn everything_refused_is_named_at_once() {
        let task = Task::open_task(with_files(&[("a", b"1\n"), ("d/x", b"1\n"), ("forbidden/old", b"1\n")]));
        task.home.init_at(&task.path.join("front"), &[]);
        task.write_file("front/file", b"x\n");
        task.home.init_at(&task.path.join("d"), &[]);
        symlink("../..", task.path.join("d/up")).expect("made");
        symlink("/etc/passwd", task.path.join("abs")).expect("made");
        symlink(".git/config", task.path.join("dot")).expect("made");
        std::fs::hard_link(task.path.join("a"), task.home.outside().join("partner")).expect("made");
        rustix::fs::mknodat(rustix::fs::CWD, task.path.join("pipe"), FileType::Fifo, 0o600.into(), 0)
            .expect("made");
        task.write_file(".GIT/config", b"x\n");
        task.write_file("forbidden/new", b"x\n");
        std::fs::remove_file(task.path.join("forbidden/old")).expect("removed");
        let names: Vec<String> = task.refused_paths().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [".GIT", "a", "abs", "d", "d/up", "dot", "forbidden/new", "forbidden/old", "front", "pipe"]
        );
        assert!(task.refused_paths().iter().all(|(_, code)| *code == Code::ScopeViolation));
    }

    #[test]
    fn the_budget_counts_what_changed() {
        let big = vec![b'x'; 3000];
        let task = Task::open_task(with_files(&[("a", &big), ("b", &big)]));
        task.write_file("a", &big);
        task.write_file("c", &big);
        task.submit_worktree(Some(3500)).expect("only c changed");
        let file = std::fs::File::options().write(true).open(task.path.join("b")).expect("opens");
        file.set_len(1 << 40).expect("a huge sparse file");
        let refused = task.submit_worktree(Some(3500)).expect_err("over the budget");
        assert_eq!((refused.code(), refused.subject_text()), (Code::BudgetExhausted, Some("b")));
    }

    #[test]
    fn attributes_of_the_candidate_convert_and_drivers_are_those_of_the_base() {
        let home = with_files(&[
            (".gitattributes", b"a filter=upper\nown filter=own\n"),
            ("a", b"AB\n"),
            ("own", b"x\n"),
        ]);
        home.set_config("filter.upper.clean", "tr a-z A-Z");
        home.set_config("filter.upper.smudge", "tr A-Z a-z");
        let mark = home.outside().join("ran");
        home.set_config("filter.own.clean", &format!("./tool {}", mark.display()));
        let task = Task::open_task(home);
        assert_eq!(std::fs::read(task.path.join("a")).expect("reads"), b"ab\n");
        task.write_file("a", b"ab\ncd\n");
        task.write_file(".gitattributes", b"a filter=upper\nown filter=own\n*.txt eol=crlf\n");
        task.write_file("b.txt", b"1\r\n2\r\n");
        let capture = task.submit_worktree(None).expect("captured");
        let objects = task.repository.object_reader(Some(&task.quarantine)).expect("opens");
        let blob = |name: &str| {
            let path = RepoPath::new(name).expect("a path");
            let TreeObject { id, .. } =
                tree::find_entry(&objects, &capture.tree, &path).expect("reads").expect("there");
            objects.read_blob(&id).expect("reads")
        };
        assert_eq!((blob("a"), blob("b.txt")), (b"AB\nCD\n".to_vec(), b"1\n2\n".to_vec()));
        task.write_file("tool", format!("#!/bin/sh\ntouch {}\n", mark.display()).as_bytes());
        std::fs::set_permissions(task.path.join("tool"), std::fs::Permissions::from_mode(0o755))
            .expect("set");
        task.write_file("own", b"y\n");
        task.write_file("c", b"x\n");
        task.write_file(
            ".gitattributes",
            b"a filter=upper\nown filter=own\nc filter=upper\nd filter=nobody\n",
        );
        task.write_file("d", b"x\n");
        let denied = |name: &str| (name.to_owned(), Code::PermissionDenied);
        assert_eq!(task.refused_paths(), [denied("c"), denied("own")]);
        assert!(!mark.exists());
    }
}
