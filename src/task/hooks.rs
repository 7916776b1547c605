//! Hooks: the programs of the repository's owners that guard a worker's calls or hear of them.
//!
//! What runs is what the base commit has beneath `.tender/`, in a private folder that is filled anew each
//! time; or what lies in the user's own layer, from there. Nothing of the worktree's is ever started: a
//! program there is refused, and no search path leads into it. So no candidate decides what guards it. A
//! guard that says no, does not answer, or cannot be started blocks the call. An observer hears durations and
//! counts, never contents, and whatever becomes of it changes nothing.

use crate::domain::contract::hook::{Hook, Kind, Layer, Moment};
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::outside::plain_line;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::FolderCursor;
use crate::git::{tree, worktree};
use crate::process::{
    self, FinishedRun, Invocation, PrivateHome, ProgramEnd, base_environment, find_program,
};
use crate::store::Ledger;
use crate::store::layout::create_private_dir;
use crate::task::action::milliseconds;
use crate::task::family;
use crate::task::held::TaskWrite;
use crate::task::session::{Session, secrets};
use crate::task::view::catch_up;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The `schema` of what a hook reads.
const SCHEMA: &str = "git-tender/hook/v1";
/// Where hooks lie in a tree.
const FOLDER: &str = ".tender";
/// How long a hook may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How much of its output is kept, in bytes.
const OUTPUT: u64 = 16 * 1024;
/// How many lines of a guard's complaint a failure has, and how long each may be.
const SHOWN: (usize, usize) = (5, 300);

#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub tool: &'a str,
    pub action: &'a str,
    /// Its arguments; guards alone see them.
    pub arguments: &'a Value,
}

#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// What it failed with; `None` where it did not.
    pub code: Option<Code>,
    pub duration: Duration,
    /// The length of its answer, in bytes.
    pub bytes: u64,
}

/// Before a worker's call, which was charged on its arrival, is carried out. The failure is
/// `permission.denied` and names the guard that blocked it.
pub fn before_action(task: &TaskWrite<'_>, event: &Event<'_>) -> Result<()> {
    let opened = task.view.opened_terms()?;
    let told = json!({
        "schema": SCHEMA, "event": "before_action", "taskId": task.view.id, "tool": event.tool, "action": event.action,
    });
    let mut asked = told.clone();
    asked["actor"] = json!(task.session.actor);
    asked["arguments"] = event.arguments.clone();
    asked["contract"] = json!(opened.seal);
    let wanted = || task.require_wanted().is_ok();
    each(task.session, opened, Moment::BeforeAction, &wanted, |hook, run| match hook.kind {
        Kind::Guard => match run(&asked) {
            Ok(finished) if finished.end == ProgramEnd::Stopped => {
                task.require_wanted().and_then(|()| verdict(hook, &finished))
            }
            Ok(finished) => verdict(hook, &finished),
            Err(failure) => Err(blocked(hook, &format!("it could not be asked: {failure}"))),
        },
        Kind::Observer => {
            drop(run(&told));
            Ok(())
        }
    })
}

/// After a worker's call has its result.
pub fn after_action(task: &TaskWrite<'_>, event: &Event<'_>, ended: &Ended) {
    let Ok(opened) = task.view.opened_terms() else { return };
    let told = json!({
        "schema": SCHEMA, "event": "after_action", "taskId": task.view.id, "tool": event.tool, "action": event.action,
        "outcome": ended.code.map_or("ok", Code::as_str), "durationMs": milliseconds(ended.duration), "answerBytes": ended.bytes,
    });
    tell(task.session, opened, Moment::AfterAction, &told);
}

/// After a task was completed, cancelled or undone. `known` is what was known of it before.
pub fn after_task(session: &Session, ledger: &Ledger, known: &TaskView) {
    let hears = |hook: &Hook| hook.event == Moment::AfterTask;
    let Ok(opened) = known.opened_terms() else { return };
    if !opened.hooks.iter().any(hears) {
        return;
    }
    if let Some(counts) = task_counts(ledger, known) {
        tell(session, opened, Moment::AfterTask, &counts);
    }
}

fn task_counts(ledger: &Ledger, known: &TaskView) -> Option<Value> {
    let (task, mut view) = (&known.id, known.clone());
    catch_up(ledger, &mut view).ok()?;
    family::attach(ledger, &mut view).ok()?;
    let paths = view.delivered.as_ref().map_or(0, |delivered| delivered.value.receipt.paths.len());
    let told = json!({
        "schema": SCHEMA, "event": "after_task", "taskId": task, "state": view.state_with(&[]),
        "candidates": view.candidates.len(), "runs": view.evidence.len(), "findings": view.findings.len(), "paths": paths,
        "budget": view.standing.as_ref().map(crate::domain::ledger::charges::Standing::shares_object),
    });
    Some(told)
}

/// Lets all observers of a moment hear.
fn tell(session: &Session, opened: &Opened, moment: Moment, told: &Value) {
    let heard = each(session, opened, moment, &|| true, |_, run| {
        drop(run(told));
        Ok(())
    });
    // Nobody waits for an observer.
    drop(heard);
}

/// What starts a hook with something to read.
type Run<'a> = &'a dyn Fn(&Value) -> Result<FinishedRun>;

/// Goes through the hooks of a moment in their order. Nothing is prepared where there is none.
fn each(
    session: &Session,
    opened: &Opened,
    moment: Moment,
    wanted: &dyn Fn() -> bool,
    mut work: impl FnMut(&Hook, Run<'_>) -> Result<()>,
) -> Result<()> {
    let hooks: Vec<&Hook> = opened.hooks.iter().filter(|hook| hook.event == moment).collect();
    if hooks.is_empty() {
        return Ok(());
    }
    let stage = Stage::set(session, opened);
    for hook in hooks {
        let run = |input: &Value| match &stage {
            Ok(stage) => stage.run(hook, input, wanted),
            Err(failure) => Err(failure.clone()),
        };
        work(hook, &run)?;
    }
    Ok(())
}

/// Where hooks run: private folders that go away afterwards.
struct Stage<'a> {
    session: &'a Session,
    worktree: PathBuf,
    home: PrivateHome,
    folder: tempfile::TempDir,
}

impl<'a> Stage<'a> {
    fn set(session: &'a Session, opened: &Opened) -> Result<Self> {
        let under = worktree::worktree_root(&session.repository)?.join(".slots").join(".runs");
        create_private_dir(&under)?;
        let failed = |e: std::io::Error| Failure::io("make a folder for hooks in", &under, &e);
        let folder = tempfile::Builder::new().prefix("hooks-").tempdir_in(&under).map_err(failed)?;
        fill(session, opened, folder.path())?;
        let home = PrivateHome::create_under(&under, Path::new("/nonexistent"), &[])?;
        let worktree = PathBuf::from(&opened.worktree);
        let worktree = worktree.canonicalize().unwrap_or(worktree);
        Ok(Self { session, worktree, home, folder })
    }

    fn run(&self, hook: &Hook, input: &Value, wanted: &dyn Fn() -> bool) -> Result<FinishedRun> {
        let (cwd, argv) = match hook.layer {
            Layer::Committed => (self.folder.path().to_path_buf(), hook.command.clone()),
            Layer::Private => (self.session.layout.local(), in_the_private_layer(&hook.command)),
        };
        let env = self.environment();
        self.require_outside(&argv, &cwd, &env)?;
        let mut command = Invocation::new(argv.iter().map(OsString::from), cwd);
        command.env = env;
        command.stdin = format!("{input}\n").into_bytes();
        command.timeout = Duration::from_millis(hook.timeout_ms);
        command.grace = GRACE;
        command.output_cap = OUTPUT;
        command.secrets = secrets(self.session);
        process::run_program(&self.session.machine.program, &command, &|_| wanted())
    }

    /// The fixed environment, with no search path into the worktree.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let var = |name: &str| {
            let vars = &self.session.machine.vars;
            vars.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
        };
        let path = var("PATH").unwrap_or_default();
        let outside = std::env::split_paths(path).filter(|entry| !self.is_in_the_worktree(entry));
        let path = std::env::join_paths(outside).unwrap_or_default();
        base_environment(&path, self.home.home(), self.home.tmp(), var("LANG"), var("TZ"))
    }

    fn is_in_the_worktree(&self, place: &Path) -> bool {
        place.canonicalize().is_ok_and(|real| real.starts_with(&self.worktree))
    }

    /// No argument may be a way into the worktree: what lies there is the worker's.
    fn require_outside(&self, argv: &[String], cwd: &Path, env: &[(OsString, OsString)]) -> Result<()> {
        let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let program = argv.first().and_then(|name| find_program(OsStr::new(name), cwd, path).ok());
        let named = argv.iter().map(|argument| cwd.join(argument)).chain(program);
        match named.into_iter().find(|place| self.is_in_the_worktree(place)) {
            None => Ok(()),
            Some(place) => Err(Failure::new(
                Code::ConfigInvalid,
                format!("{} lies in the task's worktree, and nothing of that is ever run", place.display()),
            )
            .subject(place.display().to_string())),
        }
    }
}

/// In the private layer `.tender/` stands for that layer's own folder.
fn in_the_private_layer(command: &[String]) -> Vec<String> {
    let own = |argument: &String| match argument.strip_prefix(".tender/") {
        Some(below) => format!("./{below}"),
        None => argument.clone(),
    };
    command.iter().map(own).collect()
}

/// Fills a folder with what the base commit has beneath `.tender/`.
fn fill(session: &Session, opened: &Opened, folder: &Path) -> Result<()> {
    let objects = session.repository.object_reader(None)?;
    let files = tree::files_beneath(&objects, opened.base.commit_tree(), &RepoPath::new(FOLDER)?)?;
    let mut cursor = FolderCursor::new(folder)?;
    for file in files.into_iter().filter(|file| file.mode.is_regular()) {
        let mode = if file.mode == crate::domain::value::digest::Mode::Executable { 0o700 } else { 0o600 };
        let place = cursor.made_folder(&file.path)?;
        let failed = |e: std::io::Error| Failure::io("write", file.path.as_path(), &e);
        let mut made = place.create_file(file.path.file_name(), mode).map_err(failed)?;
        made.write_all(&objects.read_blob(&file.id)?).map_err(failed)?;
    }
    Ok(())
}

/// What a guard's end says.
fn verdict(hook: &Hook, finished: &FinishedRun) -> Result<()> {
    let why = match &finished.end {
        ProgramEnd::Exited(0) => return Ok(()),
        ProgramEnd::Exited(code) => format!("it exited with {code}"),
        ProgramEnd::Signalled(signal) => format!("it was ended by signal {signal}"),
        ProgramEnd::TimedOut => format!("it did not answer within {} ms", hook.timeout_ms),
        ProgramEnd::Stopped => "the call was stopped while it was asked".to_owned(),
        ProgramEnd::NotStarted { message, .. } => format!("it could not be started: {message}"),
        ProgramEnd::SupervisorLost => "it was lost while it ran".to_owned(),
    };
    let stderr = String::from_utf8_lossy(&finished.stderr.bytes);
    let said: Vec<String> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(SHOWN.0)
        .map(|line| plain_line(line, SHOWN.1))
        .collect();
    let failure = blocked(hook, &why).detail("stderr", said);
    Err(match finished.end {
        ProgramEnd::Exited(code) => failure.detail("exitCode", code),
        ProgramEnd::Signalled(signal) => failure.detail("signal", signal),
        ProgramEnd::TimedOut => failure.detail("timeoutMs", hook.timeout_ms),
        _ => failure,
    })
}

fn blocked(hook: &Hook, why: &str) -> Failure {
    let command = hook.command.join(" ");
    Failure::new(
        Code::PermissionDenied,
        format!("the guard `{}` does not let the call through: {why}", plain_line(&command, 200)),
    )
    .subject(command)
    .detail("command", &hook.command)
    .advice("What it says is the repository's rule: do it another way, or ask the user.")
}
