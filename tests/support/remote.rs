//! Remotes that run here: a bare repository with hooks, and `git daemon` in front of it.

use super::{Lab, Repo};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for something that has to happen; a failure, not a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds.
#[track_caller]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A bare repository that counts what arrives.
pub struct Bare<'l> {
    pub lab: &'l Lab,
    pub path: PathBuf,
}

impl<'l> Bare<'l> {
    pub fn new(lab: &'l Lab) -> Self {
        let path = lab.path("served/app.git");
        lab.repo_at(path.clone(), &["--bare", "--initial-branch=main"]);
        let bare = Self { lab, path };
        bare.git(&["config", "core.logAllRefUpdates", "true"]);
        bare.hook("post-receive", "cat >> pushes\n");
        bare
    }

    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.lab.git(&self.path, args).ok().text().trim_end_matches('\n').to_owned()
    }

    /// Installs a hook; it runs in the bare repository.
    pub fn hook(&self, name: &str, body: &str) {
        let path = self.path.join("hooks").join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("creates");
        std::fs::write(&path, format!("#!/bin/sh\n{body}")).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("sets");
    }

    pub fn no_hook(&self, name: &str) {
        std::fs::remove_file(self.path.join("hooks").join(name)).expect("removes");
    }

    /// A hook that says where it is and then waits for [`Bare::go`]; each run adds a line to `started`.
    pub fn blocking(&self, name: &str) {
        self.hook(
            name,
            "cat > /dev/null\necho x >> started\nwhile [ ! -e go ] && [ -e HEAD ]; do sleep 0.05; done\n",
        );
    }

    pub fn go(&self) {
        std::fs::write(self.path.join("go"), "").expect("writes");
    }

    pub fn started(&self) -> usize {
        self.lines("started").len()
    }

    /// Every ref update that arrived, as the server's hook heard it: `old new ref`.
    pub fn pushes(&self) -> Vec<String> {
        self.lines("pushes")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What a branch names.
    pub fn at(&self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let out = self.lab.git(&self.path, &["rev-parse", "--verify", "--quiet", &name]);
        (out.code == 0).then(|| out.text().trim_end().to_owned())
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// A person with a clone of their own, on this branch.
    pub fn person(&self, branch: &str) -> Repo<'l> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = self.lab.path(format!("person-{number}"));
        let text = path.to_str().expect("UTF-8");
        self.lab.git(self.lab.path("").as_path(), &["clone", "-q", "-b", branch, &self.url(), text]).ok();
        Repo::at(self.lab, path)
    }

    /// A person commits on top of a branch and pushes; gives the commit.
    pub fn human_commit(&self, branch: &str) -> String {
        let person = self.person(branch);
        person.write("human.txt", "by hand\n");
        let commit = person.commit("by hand");
        person.git(&["push", "-q", "origin", &format!("HEAD:{branch}")]);
        commit
    }
}

/// A program of git's own that not every package has; `None` where it is missing.
pub fn git_program(lab: &Lab, name: &str) -> Option<PathBuf> {
    let out = lab.git(lab.path("").as_path(), &["--exec-path"]).ok();
    let file = Path::new(out.text().trim_end()).join(name);
    file.is_file().then_some(file)
}

/// `git daemon` on loopback. It ends with this value.
pub struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Serves what lies beneath `served/`; `None` where this git has no daemon.
    pub fn start(lab: &Lab) -> Option<Self> {
        let program = git_program(lab, "git-daemon")?;
        // The port is free for a moment only: whoever takes it first makes us look for another one.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").expect("binds").local_addr().expect("bound").port();
            let mut command = lab.command(&program, &lab.path(""));
            command
                .args(["--reuseaddr", "--export-all", "--enable=receive-pack", "--informative-errors"])
                .arg("--listen=127.0.0.1")
                .arg(format!("--port={port}"))
                .arg(format!("--base-path={}", lab.path("served").display()))
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut daemon = Self { child: command.spawn().expect("starts"), port };
            if daemon.comes_up() {
                return Some(daemon);
            }
        }
        panic!("git daemon found no port");
    }

    fn comes_up(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && self.child.try_wait().expect("asks").is_none() {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub fn url(&self) -> String {
        format!("git://127.0.0.1:{}/app.git", self.port)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
