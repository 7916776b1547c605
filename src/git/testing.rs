//! A throw-away repository for unit tests, untouched by the configuration of whoever runs them: the one way
//! in which a unit test makes one. Tests of the built program have theirs in `tests/support/`.

#![cfg(test)]

use super::{Caller, Environment, Git, Quarantine, Repository};
use crate::domain::value::digest::{Mode, ObjectId};
use crate::domain::value::repo_path::RepoPath;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The repository lies in `repo/` of a temporary directory.
pub(crate) struct TestRepository {
    folder: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
    environment: Environment,
}

impl TestRepository {
    pub(crate) fn new() -> Self {
        Self::with_format("sha1")
    }

    pub(crate) fn with_format(format: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let path = std::env::vars_os().find(|(name, _)| name == "PATH").map(|(_, value)| value);
        let variables: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path.unwrap_or_default()),
            ("HOME".into(), folder.path().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ];
        let environment = Environment::scrub_variables(variables.clone());
        let home = Self { folder, variables, environment };
        home.init_at(&home.top(), &["-b", "main", &format!("--object-format={format}")]);
        home.set_config("user.name", "Test");
        home.set_config("user.email", "test@example.org");
        home
    }

    /// Another repository, at a path: the one place where `git init` stands.
    pub(crate) fn init_at(&self, path: &Path, options: &[&str]) {
        std::fs::create_dir_all(path).expect("a directory");
        let init = Git::new(&self.environment, None).cwd(path);
        init.args(["init", "-q"]).args(options).run_for_stdout().expect("git init");
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// The folder that holds the repository, for what lies beside it.
    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// What a program would be started with here.
    pub(crate) fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn repository(&self) -> Repository {
        let caller =
            Caller { cwd: self.top(), git_dir: None, work_tree: None, environment: self.environment.clone() };
        Repository::discover(&caller).expect("a repository")
    }

    /// A quarantine as a task has it.
    pub(crate) fn quarantine(&self) -> Quarantine {
        let objects = self.folder.path().join("task").join("objects");
        std::fs::create_dir_all(&objects).expect("a directory");
        Quarantine { objects, repository_objects: self.top().join(".git").join("objects") }
    }

    pub(crate) fn git_call(&self) -> Git {
        Git::new(&self.environment, Some(&self.top().join(".git"))).work_tree(&self.top())
    }

    pub(crate) fn run_git<const N: usize>(&self, args: [&str; N]) -> String {
        let output = self.git_call().args(args).run().expect("git starts");
        assert!(output.success(), "{args:?}: {}", output.stderr);
        output.first_text()
    }

    pub(crate) fn set_config(&self, key: &str, value: &str) {
        self.run_git(["config", key, value]);
    }

    pub(crate) fn write_file(&self, path: &str, bytes: &[u8]) {
        self.write_bytes(path.as_bytes(), bytes);
    }

    #[expect(clippy::disallowed_methods, reason = "a test plays the user")]
    pub(crate) fn write_bytes(&self, path: &[u8], bytes: &[u8]) {
        let place = self.top().join(OsStr::from_bytes(path));
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("directories");
        std::fs::write(place, bytes).expect("writes");
    }

    pub(crate) fn remove_file(&self, path: &str) {
        std::fs::remove_file(self.top().join(path)).expect("removes");
    }

    /// Commits all that is there and gives the tree.
    pub(crate) fn commit_all(&self, message: &str) -> ObjectId {
        self.run_git(["add", "-A", "-f"]);
        self.run_git(["commit", "-q", "--allow-empty", "-m", message]);
        self.tree_of("HEAD")
    }

    pub(crate) fn tree_of(&self, revision: &str) -> ObjectId {
        self.run_git(["rev-parse", &format!("{revision}^{{tree}}")]).parse().expect("an id")
    }

    /// `git hash-object` of a file of the work tree, as `git add` would write it; `None` where git refuses.
    pub(crate) fn hash_file(&self, path: &[u8]) -> Option<String> {
        let output = self
            .git_call()
            .env("GIT_INDEX_FILE", "/nonexistent/index")
            .args(["hash-object", "-w", "--"])
            .arg(OsStr::from_bytes(path))
            .run()
            .expect("git starts");
        output.success().then(|| output.first_text())
    }

    /// What `git checkout-index` writes for a blob at a path.
    pub(crate) fn checkout_blob(&self, path: &[u8], id: &str, quarantine: &Quarantine) -> Vec<u8> {
        let index = self.folder.path().join("checkout-index");
        let _ = std::fs::remove_file(&index);
        let line = [b"100644 ", id.as_bytes(), b"\t", path, b"\0"].concat();
        let git = || self.git_call().with_quarantine(quarantine).with_index(&index);
        git().args(["update-index", "-z", "--index-info"]).stdin(line).run_for_stdout().expect("an index");
        git().args(["checkout-index", "-f", "-a"]).run_for_stdout().expect("a checkout");
        std::fs::read(self.top().join(OsStr::from_bytes(path))).expect("reads")
    }

    /// Writes a tree of files, each a path with its mode and bytes.
    pub(crate) fn write_tree(&self, files: &[(RepoPath, Mode, Vec<u8>)]) -> ObjectId {
        let store = git2::Repository::open(self.top()).expect("opens");
        let mut index = git2::Index::new().expect("an index");
        for (path, mode, bytes) in files {
            let entry = git2::IndexEntry {
                ctime: git2::IndexTime::new(0, 0),
                mtime: git2::IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: u32::from_str_radix(mode.as_str(), 8).expect("a mode"),
                uid: 0,
                gid: 0,
                file_size: 0,
                id: store.blob(bytes).expect("writes"),
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add(&entry).expect("adds");
        }
        index.write_tree_to(&store).expect("writes").to_string().parse().expect("an id")
    }
}
