//! A hermetic laboratory: own home, own git configuration, no terminal, nothing of the machine's user.

use super::{Out, Repo};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The real binary under test.
pub const TENDER: &str = env!("CARGO_BIN_EXE_git-tender");

const GIT_CONFIG: &str = "\
[user]
\tname = Test Person
\temail = person@example.org
[init]
\tdefaultBranch = main
[commit]
\tgpgsign = false
[gc]
\tauto = 0
[protocol \"file\"]
\tallow = always
[advice]
\tdetachedHead = false
";

/// One temporary world. Everything a test does happens beneath it.
pub struct Lab {
    dir: Option<tempfile::TempDir>,
    root: PathBuf,
}

impl Lab {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// Beneath a folder of the caller's choice.
    pub fn within(place: &Path) -> Self {
        let dir =
            tempfile::Builder::new().prefix("tender-it-").tempdir_in(place).expect("temporary directory");
        let root = dir.path().canonicalize().expect("temporary directory resolves");
        for name in ["home", "config", "cache", "data", "state", "tmp", "contracts"] {
            std::fs::create_dir(root.join(name)).expect("creates");
        }
        std::fs::write(root.join("gitconfig"), GIT_CONFIG).expect("writes the git configuration");
        Self { dir: Some(dir), root }
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Appends to the private user-level git configuration.
    pub fn git_config(&self, key: &str, value: &str) {
        self.git(&self.root, &["config", "--global", key, value]).ok();
    }

    /// A new repository without commits.
    pub fn empty_repo(&self, name: &str) -> Repo<'_> {
        self.repo_with(name, &[])
    }

    /// A new repository without commits, made by `git init` with further arguments.
    pub fn repo_with(&self, name: &str, options: &[&str]) -> Repo<'_> {
        self.repo_at(self.path(name), options)
    }

    /// A new repository at a path: the one place where `git init` stands.
    pub fn repo_at(&self, path: PathBuf, options: &[&str]) -> Repo<'_> {
        std::fs::create_dir_all(&path).expect("creates");
        let args = [&["init", "-q"], options].concat();
        self.git(&path, &args).ok();
        Repo::at(self, path)
    }

    /// A repository with one commit: some documents, some sources.
    pub fn repo(&self, name: &str) -> Repo<'_> {
        let repo = self.empty_repo(name);
        repo.write("docs/a.md", super::repo::LINES);
        repo.write("docs/b.md", "second\n");
        repo.write("src/a.txt", "alpha\n");
        repo.write("src/b.txt", "beta\n");
        repo.write("README.md", "readme\n");
        repo.write(".gitignore", ".env\n*.log\nbuild/\n");
        repo.commit("first");
        repo
    }

    /// A command in this world: cleared environment, no standard input.
    pub fn command(&self, program: impl AsRef<OsStr>, cwd: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(cwd).stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").expect("PATH is set"));
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        command.env("XDG_CONFIG_HOME", self.path("config")).env("XDG_CACHE_HOME", self.path("cache"));
        command.env("XDG_DATA_HOME", self.path("data")).env("XDG_STATE_HOME", self.path("state"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", self.path("gitconfig"));
        command.env("GIT_TERMINAL_PROMPT", "0").env("TZ", "UTC").env("LANG", "C.UTF-8");
        command.env("GIT_AUTHOR_DATE", "2024-01-02T03:04:05Z");
        command.env("GIT_COMMITTER_DATE", "2024-01-02T03:04:05Z");
        command
    }

    /// True where a tool is on this machine; else the test says that it was left out.
    pub fn has_tool(&self, tool: &str, version: &str) -> bool {
        let found =
            self.command(tool, &self.root).arg(version).output().is_ok_and(|output| output.status.success());
        if !found {
            super::say(&format!("left out: {tool} is not on this machine"));
        }
        found
    }

    /// Where the real rustup keeps its toolchains, where cargo is on this machine.
    pub fn rustup_home(&self) -> Option<String> {
        let real = || format!("{}/.rustup", std::env::var("HOME").unwrap_or_default());
        let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| real());
        let mut cargo = self.command("cargo", &self.root);
        let found =
            cargo.arg("-V").env("RUSTUP_HOME", &rustup).output().is_ok_and(|out| out.status.success());
        if !found {
            super::say("left out: cargo is not on this machine");
        }
        found.then_some(rustup)
    }

    /// The program under test in a session of its own, so that `/dev/tty` leads nowhere.
    pub fn tender_command(&self, cwd: &Path) -> Command {
        let mut command = self.command("setsid", cwd);
        command.arg("--wait").arg(TENDER);
        command
    }

    pub fn git(&self, cwd: &Path, args: &[&str]) -> Out {
        let mut command = self.command("git", cwd);
        command.args(args);
        run(command, None)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // A slot's files are read-only on purpose; as a plain user they have to be opened up first.
        if std::fs::remove_dir_all(&self.root).is_err() {
            let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(&self.root).status();
        }
        drop(self.dir.take());
    }
}

/// Runs a command to its end and keeps all it printed.
pub fn run(mut command: Command, stdin: Option<&[u8]>) -> Out {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if stdin.is_some() {
        command.stdin(Stdio::piped());
    }
    let shown = format!("{command:?}");
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
    let feeder = stdin.map(|bytes| {
        let mut pipe = child.stdin.take().expect("piped");
        let bytes = bytes.to_vec();
        std::thread::spawn(move || {
            // A program that refuses early closes its end; that is its right.
            let _ = pipe.write_all(&bytes);
        })
    });
    let output = child.wait_with_output().expect("waits");
    if let Some(feeder) = feeder {
        feeder.join().expect("feeds");
    }
    Out::new(shown, output)
}
