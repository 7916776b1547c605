//! Counting and disturbing the system calls of the real program, by `strace`. Only the program itself is
//! traced, not the git processes that it starts: those run on as orphans, as they would after a real kill.

use crate::support::lab::{TENDER, run};
use crate::support::{Out, Repo, skip};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Every call that changes names, bytes, permissions or what is safe on disk. `openat` is of interest only
/// where it creates.
const CALLS: &str = "renameat2,rename,renameat,unlink,unlinkat,rmdir,link,linkat,symlink,symlinkat,mkdirat,mkdir,openat,open,\
write,pwrite64,writev,fsync,fdatasync,syncfs,ftruncate,truncate,fchmod,fchmodat,chmod,fchown,fchownat,fsetxattr,\
fremovexattr,utimensat,copy_file_range,fallocate,sendfile";

/// One call of interest.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its position in the whole run, from 1.
    pub number: usize,
    /// Its name, and its position among the calls of that name: strace counts each name on its own.
    pub name: (String, usize),
    /// As strace shows it.
    pub line: String,
}

impl Call {
    /// True for a write into the ledger's own files, of which there are many.
    fn is_page(&self) -> bool {
        self.line.starts_with("pwrite64") && self.line.contains("/ledger.db")
    }

    /// The options of strace's that disturb just this call.
    pub fn inject(&self, what: What) -> [String; 2] {
        let (name, nth) = &self.name;
        let how = match what {
            What::Kill => "signal=SIGKILL".to_owned(),
            What::Fail(errno) => format!("error={errno}"),
        };
        ["-e".to_owned(), format!("inject={name}:{how}:when={nth}")]
    }

    /// True where a run's log says that this call is the one that was made to fail. How many calls of a name
    /// come before it is not the same in each run.
    pub fn has_failed(&self, log: &str) -> bool {
        let argument = |line: &str| line.split('"').nth(1).map(str::to_owned);
        log.lines().any(|line| {
            line.starts_with(&self.name.0)
                && line.ends_with("(INJECTED)")
                && argument(line) == argument(&self.line)
        })
    }

    /// True for calls that only a loss of power would make a difference to: to be killed before one of them
    /// is to be killed before the next.
    pub fn is_sync(&self) -> bool {
        ["fsync", "fdatasync", "syncfs"].contains(&self.name.0.as_str())
    }
}

/// What happens at a call.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// The process gets SIGKILL before the call takes place.
    Kill,
    /// The call does not take place and fails with this error.
    Fail(&'static str),
}

/// Whether this machine lets us trace. Where strace is missing that is a skip; where tracing is forbidden,
/// kills fall back to the clock.
pub fn can_trace() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
        match tried {
            Ok(status) if status.success() => true,
            Ok(_) => {
                crate::support::say(
                    "SKIPPED: tracing is forbidden here; the program is killed at random times instead",
                );
                false
            }
            Err(_) => {
                skip("strace is not installed; the program is killed at random times instead");
                false
            }
        }
    })
}

fn traced(repo: &Repo<'_>, args: &[&str], options: &[String]) -> (Out, String) {
    traced_with(repo, args, options, None)
}

fn traced_with(repo: &Repo<'_>, args: &[&str], options: &[String], input: Option<&[u8]>) -> (Out, String) {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file: PathBuf = repo.lab.path(format!("tmp/strace-{number}"));
    let mut command = repo.lab.command("setsid", &repo.path);
    command.args(["--wait", "strace", "-o"]).arg(&file);
    command.args(["-e", &format!("trace={CALLS}")]).args(options).arg("--").arg(TENDER).args(args);
    let out = run(command, input);
    let log =
        std::fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let _ = std::fs::remove_file(file);
    (out, log)
}

/// Runs to the end and gives the calls at which it is worth while to disturb it: all but reads, pipes, the
/// ledger's shared memory, what failed by itself, and of the many writes into the ledger every `pages`th.
#[track_caller]
pub fn calls(repo: &Repo<'_>, args: &[&str], pages: usize) -> Vec<Call> {
    calls_with(repo, args, pages, &[], 0)
}

/// The looks into the tree: every `openat` below its top that creates nothing, also those that find nothing.
#[track_caller]
pub fn looks(repo: &Repo<'_>, args: &[&str]) -> Vec<Call> {
    let (out, log) = traced(repo, args, &["-y", "-s", "200"].map(str::to_owned));
    out.ok();
    let top = format!("<{}", repo.path.display());
    let opened = log.lines().filter(|line| line.starts_with("openat(")).enumerate();
    let all = opened.map(|(at, line)| Call {
        number: at + 1,
        name: ("openat".to_owned(), at + 1),
        line: line.to_owned(),
    });
    let below_top = |call: &Call| {
        let folder = call.line.split("openat(").nth(1).and_then(|rest| rest.split(", ").next());
        let is_trees = folder.is_some_and(|folder| folder.contains(&top) && !folder.contains("/.git"));
        is_trees && !call.line.contains("O_CREAT") && !call.line.contains("\".git")
    };
    all.filter(below_top).collect()
}

/// The same where some calls are disturbed, so that it ends with another exit code.
#[track_caller]
pub fn calls_with(
    repo: &Repo<'_>,
    args: &[&str],
    pages: usize,
    disturbed: &[String],
    exit: i32,
) -> Vec<Call> {
    if !can_trace() {
        let (begin, out) = (Instant::now(), repo.tender(args));
        out.ok();
        let steps = usize::try_from(begin.elapsed().as_millis()).expect("fits") / 8;
        return (1..=steps)
            .map(|number| Call { number, name: Default::default(), line: String::new() })
            .collect();
    }
    let shown = ["-y", "-s", "200"].map(str::to_owned);
    let (out, log) = traced(repo, args, &[&shown, disturbed].concat());
    out.exits(exit);
    worth_while(&log, pages)
}

/// The calls of a program that reads `input` to its end.
#[track_caller]
pub fn calls_reading(repo: &Repo<'_>, args: &[&str], pages: usize, input: &[u8]) -> Vec<Call> {
    let shown = ["-y", "-s", "200"].map(str::to_owned);
    let (out, log) = traced_with(repo, args, &shown, Some(input));
    out.ok();
    worth_while(&log, pages)
}

/// Such a program is killed at a call; whether it was.
pub fn killed_reading(repo: &Repo<'_>, args: &[&str], call: &Call, input: &[u8]) -> bool {
    let (_, log) = traced_with(repo, args, &call.inject(What::Kill), Some(input));
    log.contains("killed by SIGKILL")
}

fn worth_while(log: &str, pages: usize) -> Vec<Call> {
    let lines = log.lines().filter(|line| !line.starts_with("+++") && !line.starts_with("---"));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let all = lines.enumerate().map(|(at, line)| {
        let name = line.split('(').next().unwrap_or_default().to_owned();
        let nth = seen.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
        Call { number: at + 1, name: (name, *nth), line: line.to_owned() }
    });
    let mut page = 0;
    let mut worth = |call: &Call| {
        let reads = call.line.starts_with("open") && !call.line.contains("O_CREAT");
        let aside = ["ledger.db-shm", "<pipe:", "<socket:", "/dev/tty", "/dev/null"]
            .iter()
            .any(|part| call.line.contains(part));
        let output = call.line.starts_with("write(1<") || call.line.starts_with("write(2<");
        let failed = call.line.contains(" = -1 ");
        page += usize::from(call.is_page());
        !reads && !aside && !output && !failed && (!call.is_page() || page % pages.max(1) == 0)
    };
    all.filter(|call| worth(call)).collect()
}

/// Runs with one call disturbed. For a kill: whether it was killed (a call that does not come is no kill).
pub fn disturbed(repo: &Repo<'_>, args: &[&str], call: &Call, what: What) -> (Out, bool) {
    if !can_trace() {
        return killed_after(repo, args, Duration::from_millis(8 * call.number as u64));
    }
    let (out, log) = traced(repo, args, &call.inject(what));
    (out, log.contains("killed by SIGKILL"))
}

/// Runs with a call that fails and a later one at which it is killed: whether it was. `None` where another
/// call failed than the one that is meant.
pub fn killed_after_failure(
    repo: &Repo<'_>,
    args: &[&str],
    failing: (&Call, What),
    kill: &Call,
) -> Option<bool> {
    let (call, how) = failing;
    let (_, log) = traced(repo, args, &[call.inject(how), kill.inject(What::Kill)].concat());
    call.has_failed(&log).then(|| log.contains("killed by SIGKILL"))
}

/// Runs and gets SIGKILL after a while.
pub fn killed_after(repo: &Repo<'_>, args: &[&str], delay: Duration) -> (Out, bool) {
    let mut command = repo.lab.command(TENDER, &repo.path);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = format!("{command:?}");
    let mut child = command.spawn().expect("starts");
    std::thread::sleep(delay);
    let killed = child.try_wait().expect("waits").is_none() && child.kill().is_ok();
    // The git processes that are left may hold the pipes a moment longer.
    let out = Out::new(shown, child.wait_with_output().expect("waits"));
    let killed = killed && out.code == 128 + 9;
    (out, killed)
}
