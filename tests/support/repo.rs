//! A repository in a laboratory, and a task in it.

use super::lab::run;
use super::{Answer, Contract, Lab, Out, Snapshot, Verifier};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ten lines that most tests edit.
pub const LINES: &str = "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\n";

/// [`LINES`] with one line replaced (1 is the first).
pub fn lines_with(number: usize, text: &str) -> String {
    let old = format!("line {number}\n");
    LINES.replacen(&old, &format!("{text}\n"), 1)
}

/// A repository (or any directory that tests work in).
#[derive(Clone)]
pub struct Repo<'l> {
    pub lab: &'l Lab,
    pub path: PathBuf,
}

/// An opened task.
pub struct Task {
    pub id: String,
    pub worktree: PathBuf,
    pub opened: Value,
}

impl<'l> Repo<'l> {
    pub fn at(lab: &'l Lab, path: PathBuf) -> Self {
        Self { lab, path }
    }

    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    #[track_caller]
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        write(&self.path.join(relative), bytes.as_ref());
    }

    #[track_caller]
    pub fn read(&self, relative: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path.join(relative);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[track_caller]
    pub fn text(&self, relative: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(relative)).expect("UTF-8")
    }

    #[track_caller]
    pub fn rm(&self, relative: impl AsRef<Path>) {
        rm(&self.path.join(relative));
    }

    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        std::fs::symlink_metadata(self.path.join(relative)).is_ok()
    }

    #[track_caller]
    pub fn chmod(&self, relative: impl AsRef<Path>, mode: u32) {
        chmod(&self.path.join(relative), mode);
    }

    #[track_caller]
    pub fn link(&self, relative: impl AsRef<Path>, target: impl AsRef<Path>) {
        let path = self.path.join(relative);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("creates");
        std::os::unix::fs::symlink(target, path).expect("links");
    }

    pub fn git_out(&self, args: &[&str]) -> Out {
        self.lab.git(&self.path, args)
    }

    /// Runs git, which must succeed; its stdout without the last newline.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.git_out(args).ok().text().trim_end_matches('\n').to_owned()
    }

    /// Adds everything (ignored files not) and commits.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub fn tender(&self, args: &[&str]) -> Out {
        self.tender_in("", &[], None, args)
    }

    /// In a subfolder, with variables and standard input.
    pub fn tender_in(&self, sub: &str, env: &[(&str, &str)], stdin: Option<&[u8]>, args: &[&str]) -> Out {
        let mut command: Command = self.lab.tender_command(&self.path.join(sub));
        command.args(args).envs(env.iter().copied());
        run(command, stdin)
    }

    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Answer {
        self.json_in("", &[], None, args)
    }

    #[track_caller]
    pub fn json_in(&self, sub: &str, env: &[(&str, &str)], stdin: Option<&[u8]>, args: &[&str]) -> Answer {
        let args = with_format(args);
        Answer::of(self.tender_in(sub, env, stdin, &args))
    }

    #[track_caller]
    pub fn open(&self, contract: &Contract) -> Task {
        let file = contract.file(self.lab);
        let answer = self.json(&["open", path_text(&file)]).ok();
        Task::of(&answer.json)
    }

    /// Opens a contract that must be refused.
    #[track_caller]
    pub fn open_fails(&self, contract: &Contract) -> Answer {
        let file = contract.file(self.lab);
        self.json(&["open", path_text(&file)])
    }

    /// Opens, lets `work` edit the worktree, submits.
    #[track_caller]
    pub fn submitted(&self, contract: &Contract, work: impl FnOnce(&Task)) -> Task {
        let task = self.open(contract);
        work(&task);
        self.json(&["submit", &task.id]).ok();
        task
    }

    /// A task whose candidate replaces files: `None` removes one.
    #[track_caller]
    pub fn changing(&self, id: &str, files: &[(&str, Option<&str>)]) -> Task {
        self.submitted(&Contract::new(id), |task| {
            for (path, content) in files {
                match content {
                    Some(content) => task.write(path, content),
                    None => task.rm(path),
                }
            }
        })
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self)
    }

    /// git's own housekeeping finds nothing wrong, at this moment.
    #[track_caller]
    pub fn fsck_gc(&self) {
        let before = self.git_out(&["fsck", "--strict", "--no-dangling"]).ok();
        assert!(!before.all().contains("error"), "{}", before.all());
        let gc = self.git_out(&["gc", "--quiet", "--prune=now"]).ok();
        assert!(!gc.all().contains("error") && !gc.all().contains("fatal"), "{}", gc.all());
        let after = self.git_out(&["fsck", "--strict", "--no-dangling"]).ok();
        assert!(!after.all().contains("error"), "{}", after.all());
    }

    /// `<git-common-dir>/tender`.
    pub fn store(&self) -> PathBuf {
        let common = self.git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        Path::new(&common).join("tender")
    }

    /// Lets a person's calls through although there is no terminal.
    pub fn approve_without_terminal(&self) {
        self.git(&["config", "tender.approveWithoutTerminal", "true"]);
    }

    /// The patch that turns HEAD into what `change` makes of it, as git writes it.
    #[track_caller]
    pub fn patch_of(&self, change: impl FnOnce(&Repo<'l>)) -> Vec<u8> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let copy = self.lab.path(format!("tmp/patch-{number}"));
        let from = path_text(&self.path).to_owned();
        self.git(&["clone", "-q", "--no-local", &from, path_text(&copy)]);
        let copy = Repo::at(self.lab, copy);
        change(&copy);
        copy.git(&["add", "-A", "-f"]);
        let patch = copy.git_out(&["diff", "--cached", "--binary", "--full-index", "HEAD"]).ok().stdout;
        std::fs::remove_dir_all(&copy.path).expect("removes the copy");
        patch
    }

    /// Submits bytes as a patch from standard input.
    #[track_caller]
    pub fn submit_patch(&self, task: &str, patch: &[u8]) -> Answer {
        self.json_in("", &[], Some(patch), &["submit", task, "--patch", "-"])
    }

    /// Commits a verifier and returns the repository for chaining.
    pub fn with(self, verifier: &Verifier) -> Self {
        verifier.commit(&self);
        self
    }
}

impl Task {
    pub fn of(opened: &Value) -> Self {
        Self {
            id: opened["taskId"].as_str().expect("taskId").to_owned(),
            worktree: PathBuf::from(opened["worktree"].as_str().expect("worktree")),
            opened: opened.clone(),
        }
    }

    #[track_caller]
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        write(&self.worktree.join(relative), bytes.as_ref());
    }

    #[track_caller]
    pub fn rm(&self, relative: impl AsRef<Path>) {
        rm(&self.worktree.join(relative));
    }

    #[track_caller]
    pub fn chmod(&self, relative: impl AsRef<Path>, mode: u32) {
        chmod(&self.worktree.join(relative), mode);
    }

    #[track_caller]
    pub fn link(&self, relative: impl AsRef<Path>, target: impl AsRef<Path>) {
        let path = self.worktree.join(relative);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("creates");
        std::os::unix::fs::symlink(target, path).expect("links");
    }

    pub fn read(&self, relative: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.worktree.join(relative)).expect("reads")
    }

    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        std::fs::symlink_metadata(self.worktree.join(relative)).is_ok()
    }
}

/// The arguments with `--format json`: at the end, or before what follows `--`.
pub fn with_format<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let at = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
    let mut all = args.to_vec();
    all.splice(at..at, ["--format", "json"]);
    all
}

pub fn path_text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

#[track_caller]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("parent")).expect("creates the parent");
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

#[track_caller]
fn rm(path: &Path) {
    let meta = std::fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if meta.is_dir() {
        std::fs::remove_dir_all(path).expect("removes");
    } else {
        std::fs::remove_file(path).expect("removes");
    }
}

#[track_caller]
fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changes the mode");
}
