//! Programs run through the launcher and a real supervisor: how they end, what is kept, and that nothing
//! survives.

#![expect(clippy::disallowed_methods, reason = "a test harness of its own is started, to be killed")]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::command::{NotStarted, ProcessLimits};
use super::output::Captured;
use super::{FinishedRun, Invocation, ProgramEnd, run_program};

const ROLE: &str = "TENDER_TEST_HARNESS_DIR";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("tempdir") }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn shell_here(&self, script: &str) -> Invocation {
        shell_command(self.path(), script)
    }

    /// The processes that wrote their ids into `pids`, once there are `count` of them.
    fn recorded_pids(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let text = std::fs::read_to_string(self.path().join("pids")).unwrap_or_default();
            let pids: Vec<String> = text.lines().map(str::to_owned).collect();
            if pids.len() >= count && text.ends_with('\n') {
                return pids;
            }
            assert!(Instant::now() < deadline, "only {} of {count} processes started", pids.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn shell_command(cwd: &Path, script: &str) -> Invocation {
    let mut command = Invocation::new(["sh", "-c", script], cwd);
    command.env = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    command.timeout = Duration::from_secs(30);
    command.grace = Duration::from_millis(300);
    command
}

fn run_to_end(command: &Invocation) -> FinishedRun {
    let finished = run_program(crate::process::testing::program_under_test(), command, &|_| true)
        .expect("the launcher works");
    assert_eq!(finished.unkillable, 0);
    finished
}

fn captured_text(captured: &Captured) -> String {
    String::from_utf8_lossy(&captured.bytes).into_owned()
}

fn is_process_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn assert_gone(pids: &[String]) {
    let left: Vec<_> = pids.iter().filter(|pid| is_process_alive(pid)).collect();
    assert!(left.is_empty(), "still alive: {left:?}");
}

#[test]
fn an_exit_code_and_both_outputs_come_back() {
    let place = Place::new();
    for code in [0, 1, 77, 255] {
        let got = run_to_end(&place.shell_here(&format!("echo out; echo err >&2; exit {code}")));
        assert_eq!(got.end, ProgramEnd::Exited(code));
        assert_eq!(
            (captured_text(&got.stdout), captured_text(&got.stderr)),
            ("out\n".into(), "err\n".into())
        );
        assert_eq!((got.stdout.total, got.stdout.truncated, got.survivors_killed), (4, false, 0));
        assert!(got.duration > Duration::ZERO);
    }
}

#[test]
fn a_signal_is_not_an_exit_code() {
    let place = Place::new();
    assert_eq!(run_to_end(&place.shell_here("kill -SEGV $$")).end, ProgramEnd::Signalled(11));
    assert_eq!(run_to_end(&place.shell_here("kill -KILL $$")).end, ProgramEnd::Signalled(9));
}

#[test]
fn a_time_out_ends_a_grandchild_that_holds_the_pipe() {
    let place = Place::new();
    let mut command =
        place.shell_here("(echo $$; sh -c 'echo $$; exec sleep 300' & wait) | tee pids; sleep 300");
    command.timeout = Duration::from_millis(500);
    let before = Instant::now();
    let got = run_to_end(&command);
    assert_eq!(got.end, ProgramEnd::TimedOut);
    assert!(before.elapsed() < Duration::from_secs(60), "{:?}", before.elapsed());
    assert!(got.duration >= Duration::from_millis(500));
    assert_gone(&place.recorded_pids(1));
}

#[test]
fn a_background_child_with_the_pipe_does_not_hold_up_the_end() {
    let place = Place::new();
    let before = Instant::now();
    let got = run_to_end(
        &place
            .shell_here("sh -c 'echo $$ >> pids; exec sleep 300' & while [ ! -s pids ]; do :; done; echo hi"),
    );
    assert_eq!((got.end, captured_text(&got.stdout)), (ProgramEnd::Exited(0), "hi\n".into()));
    assert_eq!(got.survivors_killed, 1);
    assert!(!got.stdout.truncated);
    assert!(before.elapsed() < Duration::from_secs(60), "{:?}", before.elapsed());
    assert_gone(&place.recorded_pids(1));
}

#[test]
fn a_child_that_ends_a_moment_later_is_no_survivor() {
    let place = Place::new();
    let got = run_to_end(&place.shell_here("sleep 0.02 & exit 0"));
    assert_eq!((got.end, got.survivors_killed), (ProgramEnd::Exited(0), 0));
}

#[test]
fn who_ignores_the_request_to_end_is_killed() {
    let place = Place::new();
    let mut command = place.shell_here(
        "trap '' TERM; sh -c 'echo $$ >> pids; while :; do sleep 300; done' & \
         echo $$ >> pids; while :; do sleep 300; done",
    );
    command.timeout = Duration::from_millis(400);
    let before = Instant::now();
    let got = run_to_end(&command);
    assert_eq!(got.end, ProgramEnd::TimedOut);
    assert!(got.survivors_killed >= 1, "{}", got.survivors_killed);
    let took = before.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(60), "{took:?}");
    assert_gone(&place.recorded_pids(2));
}

#[test]
fn who_hears_the_request_to_end_may_clean_up() {
    let place = Place::new();
    let mut command = place.shell_here("trap 'echo cleaned; exit 0' TERM; sleep 300 & wait");
    command.timeout = Duration::from_millis(400);
    command.grace = Duration::from_secs(200);
    let before = Instant::now();
    let got = run_to_end(&command);
    assert_eq!((got.end, captured_text(&got.stdout)), (ProgramEnd::TimedOut, "cleaned\n".into()));
    assert!(before.elapsed() < Duration::from_secs(60), "{:?}", before.elapsed());
}

/// Daemons: double fork, own session, deaf to every signal that can be ignored.
const DAEMONS: &str = "trap '' TERM HUP INT; for i in 1 2 3; do \
    (setsid sh -c 'echo $$ >> pids; (setsid sh -c \"echo \\$\\$ >> pids; exec sleep 300\" &) ; exec sleep 300' &); done; \
    while [ \"$(cat pids 2>/dev/null | wc -l)\" -lt 6 ]; do sleep 0.01; done";

#[test]
fn daemons_with_their_own_session_do_not_survive() {
    let place = Place::new();
    let got = run_to_end(&place.shell_here(DAEMONS));
    assert_eq!((got.end, got.survivors_killed), (ProgramEnd::Exited(0), 6));
    assert_gone(&place.recorded_pids(6));
}

#[test]
fn a_process_that_forks_without_end_does_not_survive() {
    let place = Place::new();
    let comet = "cat > comet <<'E'\necho $$ >> pids\n(setsid sh ./comet > /dev/null 2>&1 &)\nE\n\
        sh ./comet; while [ \"$(wc -l < pids)\" -lt 5 ]; do :; done";
    let got = run_to_end(&place.shell_here(comet));
    assert_eq!(got.end, ProgramEnd::Exited(0));
    let after = place.recorded_pids(5).len();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(place.recorded_pids(5).len(), after, "it forks on");
}

#[test]
fn a_flood_costs_the_cap_and_no_more() {
    let place = Place::new();
    let mut command =
        place.shell_here("echo first; yes | head -c 200000000; yes >&2 & echo last; sleep 1; exit 3");
    command.output_cap = 10_000;
    command.secrets = vec![b"not there".to_vec()];
    let got = run_to_end(&command);
    assert_eq!(got.end, ProgramEnd::Exited(3));
    assert_eq!(got.stdout.total, 200_000_011);
    for stream in [&got.stdout, &got.stderr] {
        assert!(stream.truncated && stream.bytes.len() < 10_100, "{}", stream.bytes.len());
    }
    assert!(
        captured_text(&got.stdout).starts_with("first\ny\n")
            && captured_text(&got.stdout).ends_with("y\nlast\n")
    );
    assert!(peak_memory_kib() < 300 * 1024, "{} KiB", peak_memory_kib());
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn an_endless_flood_ends_with_the_time_out() {
    let place = Place::new();
    let mut command = place.shell_here("exec yes");
    command.timeout = Duration::from_millis(500);
    command.output_cap = 1000;
    let got = run_to_end(&command);
    assert_eq!(got.end, ProgramEnd::TimedOut);
    assert!(got.stdout.truncated && got.stdout.total > 1000);
}

#[test]
fn what_cannot_be_started_says_why() {
    let place = Place::new();
    let file = |name: &str, content: &str, mode: u32| {
        let path = place.path().join(name);
        std::fs::write(&path, content).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
    };
    file("plain", "#!/bin/sh\n", 0o644);
    file("orphan", "#!/no/such/interpreter\n", 0o755);
    file("bare", "echo no first line\n", 0o755);
    for (argv, wanted) in [
        (vec!["no-such-program-here"], NotStarted::NotFound),
        (vec!["./missing"], NotStarted::NotFound),
        (vec!["./plain"], NotStarted::PermissionDenied),
        (vec!["./"], NotStarted::PermissionDenied),
        (vec!["./orphan"], NotStarted::NotFound),
        (vec!["orphan"], NotStarted::NotFound),
        (vec!["./bare"], NotStarted::Other),
        (vec!["sh", "a\0b"], NotStarted::Other),
        (vec![], NotStarted::Other),
    ] {
        let mut command = place.shell_here("");
        command.argv = argv.iter().map(OsString::from).collect();
        // A relative entry of PATH must not make a file of the tree a command.
        command.env = vec![("PATH".into(), ".::/usr/bin:/bin".into())];
        match run_to_end(&command).end {
            ProgramEnd::NotStarted { kind, message } => {
                assert_eq!(kind, wanted, "{argv:?}: {message}");
                assert!(!message.is_empty());
            }
            other => panic!("{argv:?} ended as {other:?}"),
        }
    }
    let gone = Invocation { cwd: place.path().join("gone"), ..place.shell_here("true") };
    assert!(matches!(run_to_end(&gone).end, ProgramEnd::NotStarted { kind: NotStarted::NoDirectory, .. }));
}

#[test]
fn odd_names_and_arguments_arrive_as_they_are() {
    let place = Place::new();
    let name = std::os::unix::ffi::OsStringExt::from_vec(b"./a b\xff".to_vec());
    let path = place.path().join(&name);
    std::fs::write(&path, "#!/bin/sh\necho \"$1|$2\"\n").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let mut command = place.shell_here("");
    command.argv = vec![name, "x  y".into(), "$(id)".into()];
    let got = run_to_end(&command);
    assert_eq!((got.end, captured_text(&got.stdout)), (ProgramEnd::Exited(0), "x  y|$(id)\n".into()));
}

#[test]
fn secrets_that_are_split_over_writes_are_not_kept() {
    let place = Place::new();
    let mut command = place.shell_here(
        "printf 'a hunt'; sleep 0.05; printf 'er2secret b '; printf 'hunter2secret' | base64; echo hunter2secret >&2",
    );
    command.secrets = vec![b"hunter2secret".to_vec()];
    let got = run_to_end(&command);
    assert_eq!(captured_text(&got.stdout), "a [redacted] b [redacted]\n");
    assert_eq!(captured_text(&got.stderr), "[redacted]\n");
    assert!(!format!("{command:?}").contains("\"hunter2secret\""));
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let place = Place::new();
    let mut command = Invocation::new(["/usr/bin/env"], place.path());
    command.env = vec![("B".into(), "2 x".into()), ("A".into(), "1".into())];
    let got = run_to_end(&command);
    let mut lines: Vec<String> = captured_text(&got.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["A=1", "B=2 x"]);
}

#[test]
fn the_program_has_three_descriptors_and_no_terminal() {
    let place = Place::new();
    // What this process holds without close-on-exec reaches the supervisor, and must end there.
    let mut inherited = std::process::Command::new("sh");
    inherited.args([
        "-c",
        "exec 7</dev/null 9</dev/null; exec \"$0\" --exact --ignored process::tests::harness",
        &current_exe(),
    ]);
    inherited.env(ROLE, place.path()).env("TENDER_TEST_SCRIPT", "ls /proc/self/fd > fds; tty > tty; :");
    assert!(inherited.output().expect("harness").status.success());
    let fds = std::fs::read_to_string(place.path().join("fds")).expect("fds");
    // The fourth is the directory that `ls` itself reads.
    assert_eq!(fds.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert!(std::fs::read_to_string(place.path().join("tty")).expect("tty").starts_with("not a tty"));
}

#[test]
fn standard_input_is_delivered() {
    let place = Place::new();
    let mut command = place.shell_here("sha256sum; echo done");
    command.stdin = vec![b'x'; 3_000_000];
    let expected =
        run_to_end(&place.shell_here("head -c 3000000 /dev/zero | tr '\\0' x | sha256sum; echo done"));
    assert_eq!(captured_text(&run_to_end(&command).stdout), captured_text(&expected.stdout));
    assert_eq!(captured_text(&run_to_end(&place.shell_here("cat; echo end")).stdout), "end\n");
}

#[test]
fn large_input_to_who_does_not_read_blocks_nothing() {
    let place = Place::new();
    for script in ["exit 4", "exec <&-; sleep 0.1; exit 4", "sleep 0.1; exit 4"] {
        let mut command = place.shell_here(script);
        command.stdin = vec![b'x'; 3_000_000];
        let before = Instant::now();
        assert_eq!(run_to_end(&command).end, ProgramEnd::Exited(4), "{script}");
        assert!(before.elapsed() < Duration::from_secs(60), "{script}");
    }
    let mut command = place.shell_here("sleep 300");
    command.stdin = vec![b'x'; 3_000_000];
    command.timeout = Duration::from_millis(300);
    assert_eq!(run_to_end(&command).end, ProgramEnd::TimedOut);
}

#[test]
fn a_program_that_kills_its_supervisor_is_found_out() {
    let place = Place::new();
    let before = Instant::now();
    let got = run_to_end(&place.shell_here(
        "sh -c 'echo $$ >> pids; exec sleep 300' & \
        while [ ! -s pids ]; do :; done; kill -9 $PPID; sleep 300",
    ));
    assert_eq!(got.end, ProgramEnd::SupervisorLost);
    assert!(got.survivors_killed >= 2, "{}", got.survivors_killed);
    assert!(before.elapsed() < Duration::from_secs(60), "{:?}", before.elapsed());
    assert_gone(&place.recorded_pids(1));
}

#[test]
fn limits_of_the_system_hold() {
    let place = Place::new();
    let mut command =
        place.shell_here("ulimit -n; ulimit -c; head -c 100000 /dev/zero > big; stat -c %s big");
    command.limits =
        ProcessLimits { file_size: Some(4096), open_files: Some(50), ..ProcessLimits::default() };
    assert_eq!(captured_text(&run_to_end(&command).stdout), "50\n0\n4096\n");
}

#[test]
fn many_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|number| {
                let command = place
                    .shell_here(&format!("(setsid sleep 300 &) ; sleep 0.05; echo {number}; exit {number}"));
                scope.spawn(move || run_to_end(&command))
            })
            .collect();
        for (number, thread) in (0..).zip(runs) {
            let got = thread.join().expect("joined");
            assert_eq!(
                (got.end, captured_text(&got.stdout)),
                (ProgramEnd::Exited(number), format!("{number}\n"))
            );
        }
    });
}

fn current_exe() -> String {
    let path: PathBuf = std::env::current_exe().expect("own path");
    path.to_str().expect("text").to_owned()
}

/// Not a test: the process that plays the harness for the tests that need one of their own.
#[test]
#[ignore = "started by other tests"]
fn harness() {
    let Some(place) = std::env::var_os(ROLE) else { return };
    let script = std::env::var("TENDER_TEST_SCRIPT").expect("a script");
    run_to_end(&shell_command(Path::new(&place), &script));
}

#[test]
fn when_the_harness_is_killed_everything_dies() {
    let place = Place::new();
    let script =
        format!("echo $PPID >> pids; echo $$ >> pids; {}; sleep 300", DAEMONS.replace("-lt 6", "-lt 8"));
    let mut harness = std::process::Command::new(current_exe())
        .args(["--exact", "--ignored", "process::tests::harness"])
        .env(ROLE, place.path())
        .env("TENDER_TEST_SCRIPT", script)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("harness");
    let pids = place.recorded_pids(8);
    assert!(pids.iter().all(|pid| is_process_alive(pid)), "the tree stands");
    harness.kill().expect("killed");
    harness.wait().expect("reaped");
    let deadline = Instant::now() + Duration::from_secs(5);
    while pids.iter().any(|pid| is_process_alive(pid)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_gone(&pids);
}
