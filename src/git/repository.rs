//! Which repository a call means, and what is known of it without reading its content.
//!
//! `-C` wins over `GIT_DIR`, `GIT_DIR` over the current folder. Inside a task's worktree the way back is the
//! `.repository` file beside the worktrees, never the worktree's own `.git` file: a worker may have rewritten
//! that one.

use super::answers::{answers_of_git, question_to_git};
use super::command::{Environment, Git, Quarantine, join_absolute};
use super::config::{ConfigSource, GitConfig};
use super::index_file::IndexFile;
use super::object_store::ObjectStore;
use super::objects::Objects;
use super::ordinary::{self, OrdinaryPlaces, OrdinaryRefs};
use crate::domain::value::digest::{ObjectFormat, ObjectId};
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Where a call comes from.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The folder that relative paths start from: the current one, or `-C`.
    pub cwd: PathBuf,
    /// `GIT_DIR`, unless `-C` overrides it.
    pub git_dir: Option<PathBuf>,
    /// `GIT_WORK_TREE`, likewise.
    pub work_tree: Option<PathBuf>,
    /// What git is started with.
    pub environment: Environment,
}

/// A repository, and the working tree that was meant.
#[derive(Debug, Clone)]
pub struct Repository {
    environment: Environment,
    git_dir: PathBuf,
    common_dir: PathBuf,
    top: Option<PathBuf>,
    format: ObjectFormat,
    task: Option<String>,
    /// True where its refs can be read without git.
    is_ordinary: bool,
    config: OnceLock<GitConfig>,
}

impl Repository {
    /// Finds the repository of a call.
    pub fn discover(caller: &Caller) -> Result<Self> {
        if let Some(git_dir) = &caller.git_dir {
            let git_dir = join_absolute(&caller.cwd, git_dir);
            let top = match &caller.work_tree {
                Some(top) => Some(join_absolute(&caller.cwd, top)),
                None => top_of(&git_dir),
            };
            return Self::at_git_dir(
                &caller.environment,
                &git_dir,
                top.as_deref().unwrap_or(&caller.cwd),
                None,
            );
        }
        if let Some((common_dir, task)) = way_back(&caller.cwd)? {
            let top = top_of(&common_dir);
            return Self::at_git_dir(
                &caller.environment,
                &common_dir,
                top.as_deref().unwrap_or(&common_dir),
                Some(task),
            );
        }
        if let Some(places) = ordinary::find_above(&caller.environment, &caller.cwd) {
            return Ok(Self::at_places(&caller.environment, places, None));
        }
        let git = Git::new(&caller.environment, None).cwd(&caller.cwd);
        Self::from_answer(&caller.environment, git, None, &caller.cwd)
    }

    /// The repository of a known git directory, with `top` as its working tree.
    pub fn at_git_dir(
        environment: &Environment,
        git_dir: &Path,
        top: &Path,
        task: Option<String>,
    ) -> Result<Self> {
        if let Some(places) = ordinary::places_of(git_dir, top) {
            return Ok(Self::at_places(environment, places, task));
        }
        let mut git = Git::new(environment, Some(git_dir));
        if is_bare(environment, git_dir) {
            git = git.cwd(git_dir);
        } else {
            git = git.work_tree(top);
        }
        Self::from_answer(environment, git, task, git_dir)
    }

    fn at_places(environment: &Environment, places: OrdinaryPlaces, task: Option<String>) -> Self {
        Self {
            environment: environment.clone(),
            git_dir: places.git_dir,
            common_dir: places.common_dir,
            top: Some(places.top),
            format: ordinary::FORMAT,
            task,
            is_ordinary: true,
            config: OnceLock::new(),
        }
    }

    fn from_answer(environment: &Environment, git: Git, task: Option<String>, asked: &Path) -> Result<Self> {
        let answer = git
            .args([
                "rev-parse",
                "--path-format=absolute",
                "--git-dir",
                "--git-common-dir",
                "--show-object-format",
            ])
            .args(["--is-bare-repository", "--is-inside-git-dir", "--show-toplevel"])
            .run()?;
        let lines: Vec<&[u8]> = answer.stdout.split(|b| *b == b'\n').collect();
        let [git_dir, common_dir, format, bare, inside, rest @ ..] = lines.as_slice() else {
            return Err(not_a_repository(&answer.stderr, asked));
        };
        if rest.len() > 2 || !git_dir.starts_with(b"/") {
            return Err(Failure::new(
                Code::GitUnsupported,
                "the path of the repository holds a line break, which cannot be worked with",
            )
            .subject(asked.display().to_string())
            .remedy(
                "Move the repository to a folder without one in its name.",
                ["git", "rev-parse", "--show-toplevel"],
            ));
        }
        let format = match *format {
            b"sha1" => ObjectFormat::Sha1,
            b"sha256" => ObjectFormat::Sha256,
            other => {
                let name = String::from_utf8_lossy(other).into_owned();
                return Err(Failure::new(
                    Code::GitUnsupported,
                    format!("the repository uses the object format {name}, which is not known here"),
                )
                .subject("extensions.objectFormat"));
            }
        };
        let to_path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let git_dir = to_path(git_dir);
        let top = match (*bare, *inside) {
            (b"true", _) => None,
            (_, b"true") => top_of(&git_dir),
            _ => rest.first().filter(|line| !line.is_empty()).map(|line| to_path(line)),
        };
        Ok(Self {
            environment: environment.clone(),
            git_dir,
            common_dir: to_path(common_dir),
            top,
            format,
            task,
            is_ordinary: false,
            config: OnceLock::new(),
        })
    }

    /// A git call on this repository.
    pub fn git_call(&self) -> Git {
        Git::new(&self.environment, Some(&self.git_dir))
    }

    /// A git call on this repository with the live tree as its work tree.
    pub fn git_in_top(&self) -> Result<Git> {
        Ok(self.git_call().work_tree(self.top()?))
    }

    /// The environment that git gets.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The git directory of the working tree that was meant (a linked worktree has its own).
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The top of the live tree, or a failure that says that a bare repository has none.
    pub fn top(&self) -> Result<&Path> {
        self.top.as_deref().ok_or_else(|| {
            Failure::new(
                Code::GitUnsupported,
                format!(
                    "{} is a bare repository: it has no working tree to deliver to",
                    self.common_dir.display()
                ),
            )
            .subject(self.common_dir.display().to_string())
            .remedy(
                "Call git tender in a clone or a linked worktree that has files.",
                ["git", "worktree", "list"],
            )
        })
    }

    /// The task whose worktree the call came from.
    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// The id of the empty tree.
    pub fn empty_tree(&self) -> &'static str {
        match self.format {
            ObjectFormat::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            ObjectFormat::Sha256 => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        }
    }

    /// Where answers are kept that are dear to get; only the store makes this folder.
    pub fn cache_dir(&self) -> PathBuf {
        self.common_dir.join("tender").join("cache")
    }

    /// What git says where its answer rests on itself, its variables and these files alone; kept until one of
    /// them changes.
    pub fn ask_git_once(
        &self,
        words: &str,
        places: &[PathBuf],
        ask: impl FnOnce() -> Result<String>,
    ) -> Result<String> {
        let program = self.environment.git_stamp();
        let shown: Vec<u8> =
            places.iter().flat_map(|place| [place.as_os_str().as_bytes(), b"\0"].concat()).collect();
        let question = question_to_git(&self.environment, &[words.as_bytes(), program.as_bytes(), &shown]);
        let mut answers = answers_of_git(&self.cache_dir());
        if let Some(known) = answers.get(&question) {
            return Ok(known.to_owned());
        }
        let asked = SystemTime::now();
        let answer = ask()?;
        answers.put(&question, places, asked, &answer);
        Ok(answer)
    }

    /// True where what is written by the rules of git's documentation needs no git.
    pub(super) fn is_ordinary(&self) -> bool {
        self.is_ordinary
    }

    /// A reader of refs in process; `None` where git has to be asked.
    pub(super) fn refs_in_process(&self) -> Option<OrdinaryRefs<'_>> {
        self.is_ordinary.then_some(OrdinaryRefs { git_dir: &self.git_dir, common_dir: &self.common_dir })
    }

    /// A writer of objects into a quarantine in process; `None` where git has to be asked.
    pub(super) fn object_store(&self, quarantine: &Quarantine) -> Option<ObjectStore> {
        if self.is_ordinary { ObjectStore::open(quarantine) } else { None }
    }

    /// The index of the working tree that was meant, read in process; `None` where git has to be asked.
    pub(super) fn index_in_process(&self) -> Option<IndexFile> {
        if self.is_ordinary { IndexFile::of(&self.git_dir) } else { None }
    }

    /// Where the repository's own objects lie.
    pub fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }

    /// A reader of objects, through a quarantine where one is given.
    pub fn object_reader(&self, quarantine: Option<&Quarantine>) -> Result<Objects> {
        let (environment, git_dir) = (self.environment.clone(), self.git_dir.clone());
        let git = move || Git::new(&environment, Some(&git_dir));
        Ok(Objects::open_store(self.format, self.objects_dir(), quarantine, git))
    }

    /// The merged configuration, as it was when it was first asked for.
    pub fn configuration(&self) -> Result<&GitConfig> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = GitConfig::read_config(ConfigSource {
            environment: &self.environment,
            git_dir: &self.git_dir,
            common_dir: &self.common_dir,
            cache_dir: &self.cache_dir(),
        })?;
        Ok(self.config.get_or_init(|| config))
    }

    /// A value of the merged configuration.
    pub fn config_value(&self, key: &str) -> Result<Option<String>> {
        Ok(self.configuration()?.get(key).map(str::to_owned))
    }

    /// The id that a revision names; `None` where there is none.
    pub fn resolve_revision(&self, revision: &str, kind: &str) -> Result<Option<ObjectId>> {
        if let Some(id) = self.resolve_in_process(revision, kind) {
            return Ok(Some(id));
        }
        let wanted = format!("{revision}^{{{kind}}}");
        let output =
            self.git_call().args(["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).run()?;
        if output.success() { output.first_text().parse().map(Some) } else { Ok(None) }
    }

    /// The same of HEAD and of whole ids of commits, where they can be read without git.
    fn resolve_in_process(&self, revision: &str, kind: &str) -> Option<ObjectId> {
        let refs = self.refs_in_process()?;
        let id = match revision {
            "HEAD" => refs.head_id()?,
            id => id.parse().ok().filter(|_| id.len() == self.format.hex_len())?,
        };
        let tree = self.object_reader(None).ok()?.tree_of_commit(&id)?;
        match kind {
            "commit" => Some(id),
            "tree" => Some(tree),
            _ => None,
        }
    }

    /// The branch that is checked out in the live tree; `None` where HEAD is detached.
    pub fn current_branch(&self) -> Result<Option<String>> {
        if let Some(branch) = self.refs_in_process().and_then(|refs| refs.current_branch()) {
            return Ok(branch);
        }
        let output = self.git_call().args(["symbolic-ref", "--quiet", "HEAD"]).run()?;
        Ok(output.success().then(|| output.first_text()))
    }
}

fn is_bare(environment: &Environment, git_dir: &Path) -> bool {
    let answer =
        Git::new(environment, Some(git_dir)).args(["config", "--type=bool", "--get", "core.bare"]).run();
    answer.is_ok_and(|output| output.first_text() == "true")
}

/// The working tree that belongs to a git directory by its place, without asking git (which would take the
/// current folder).
fn top_of(git_dir: &Path) -> Option<PathBuf> {
    if let Ok(link) = std::fs::read(git_dir.join("gitdir")) {
        let link = PathBuf::from(OsStr::from_bytes(link.trim_ascii_end()));
        return join_absolute(git_dir, &link).parent().map(Path::to_path_buf);
    }
    let named = git_dir.file_name() == Some(OsStr::new(".git"));
    named.then(|| git_dir.parent().map(Path::to_path_buf)).flatten()
}

/// From inside a task's worktree: the git directory that it belongs to and the task's name.
fn way_back(cwd: &Path) -> Result<Option<(PathBuf, String)>> {
    let Ok(start) = cwd.canonicalize() else { return Ok(None) };
    for folder in start.ancestors() {
        let (Some(root), Some(task)) = (folder.parent(), folder.file_name().and_then(OsStr::to_str)) else {
            continue;
        };
        let note = root.join(".repository");
        let common_dir = match std::fs::read(&note) {
            Ok(bytes) => PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())),
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(Failure::io_of_ours("read", &note, &e));
            }
            Err(_) => continue,
        };
        if is_folder(&common_dir.join("tender").join("tasks").join(task))? {
            return Ok(Some((common_dir, task.to_owned())));
        }
    }
    Ok(None)
}

fn not_a_repository(stderr: &str, asked: &Path) -> Failure {
    let said = stderr.trim();
    let asked = asked.display();
    let (failure, remedy, command) = if said.contains("not a git repository") {
        let failure = Failure::new(Code::NotFound, format!("{asked} is not inside a git repository"));
        (failure, "Run it inside a repository, name one with -C, or make one here.", vec!["git", "init"])
    } else if said.contains("cannot use bare repository") {
        let failure = Failure::new(
            Code::GitUnsupported,
            format!("{asked} is a bare repository: it has no working tree to deliver into"),
        );
        (
            failure,
            "Run it in a clone that has a working tree, or name one with -C.",
            vec!["git", "worktree", "list"],
        )
    } else {
        let failure =
            Failure::new(Code::GitUnsupported, format!("git cannot open the repository at {asked}: {said}"));
        (failure, "Mend what git says, until it can open the repository.", vec!["git", "status"])
    };
    failure.subject(asked.to_string()).detail("git", said).remedy(remedy, command)
}
