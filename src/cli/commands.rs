//! The table of the commands, which the compiler keeps: each is one variant of [`Command`], one function here
//! that converts its arguments and calls one operation, and one view in `render`.

mod check;
mod ship;
mod verifiers;
mod views;

use super::args::{
    AgentArgs, AttestArgs, Cli, Command, DeliverArgs, DemoArgs, InitArgs, StartArgs, StatusArgs, SubmitArgs,
    VerifyArgs,
};
use super::environment::Surroundings;
use super::output::{self, OutputFormat, ProgressBar, show};
use super::{machine, manual};
use crate::domain::ledger::brought::BroughtObject;
use crate::domain::ledger::objects::RecoveryOutcome;
use crate::domain::ledger::report::{TaskObject, VerificationObject};
use crate::error::{Category, Code, Failure, Result};
use crate::ops::deliver::{LiveProof, Place, Turn, Write};
use crate::ops::recover::Consent;
use crate::ops::schema::SchemaName;
use crate::ops::verify::{Explain, FlakyRows, Sandbox};
use crate::ops::{self, Session};
use crate::{mcp, render};
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most that is read of a file or of standard input: a patch of a 100 MB binary fits, a device without an
/// end does not.
const LARGEST_INPUT: u64 = 512 << 20;

/// Runs the command of a command line; gives the exit code.
pub fn run_command(cli: &Cli, surroundings: &Surroundings) -> Result<u8> {
    let run = Invocation { cli, surroundings };
    run.refuse_other_format()?;
    let Some(command) = &cli.command else { return run.status(&StatusArgs::default()) };
    match command {
        Command::Init(args) => run.init(args),
        Command::Demo(args) => run.demo(args),
        Command::Start(args) => run.start(args),
        Command::Open { contract, size } => run.open(contract, *size),
        Command::Submit(args) => run.submit(args),
        Command::Verify(args) => run.verify(args),
        Command::Check(args) => run.check_tree(args),
        Command::Attest(args) => run.attest(args),
        Command::Deliver(args) => run.deliver(args),
        Command::Ship(args) if args.all => run.ship_all(args.dry_run, args.prove),
        Command::Ship(args) => run.ship(args),
        Command::Queue(args) => run.ship_all(args.dry_run, args.prove),
        Command::Rebase { task } => run.rebase(task.as_deref()),
        Command::Undo { task, dry_run } => run.undo(task.as_deref(), write_wanted(*dry_run)),
        Command::Redo { task, dry_run } => run.redo(task.as_deref(), write_wanted(*dry_run)),
        Command::Amend { task, scope } => run.amend(task.as_deref(), scope),
        Command::Status(args) => run.status(args),
        Command::Report(args) => run.report(args),
        Command::Diff { task, stat } => run.diff(task.as_deref(), *stat),
        Command::Path { task } => run.path(task.as_deref()),
        Command::Log { task, number } => run.log(task.as_deref(), *number),
        Command::Show { reference } => run.show_reference(reference),
        Command::Answer { words } => run.answer(words),
        Command::Cancel { tasks } => run.cancel(tasks),
        Command::Resume { task, add } => run.resume(task.as_deref(), add),
        Command::Mcp { task } => run.serve_worker(task.as_deref()),
        Command::Agent(args) => run.agent(args),
        Command::Recover { accept_rollback: true, .. } => run.recover(Consent::Rollback),
        Command::Recover { adopt: true, .. } => run.recover(Consent::Adoption),
        Command::Recover { .. } => run.recover(Consent::Nothing),
        Command::Gc => run.gc(),
        Command::Doctor => run.doctor(),
        Command::Verifier { command } => run.verifier(command),
        Command::Schema { name } => run.schema(*name),
        Command::Completions { shell } => output::write_out(&manual::completions(*shell)).map(|()| 0),
        Command::Man { dir } => run.write_manual(dir.as_deref()),
    }
}

/// One run of the program: its command line, and what the process was started with. A command that needs no
/// repository asks for no session.
struct Invocation<'a> {
    cli: &'a Cli,
    surroundings: &'a Surroundings,
}

impl Invocation<'_> {
    fn session(&self) -> Result<Session> {
        let session = super::open_session(self.cli.folder.as_deref(), self.surroundings)?;
        if let Some(told) = ops::report::describe_move(&session)? {
            self.tell_person(&format!("{told}\n"));
        }
        Ok(session)
    }

    fn cwd(&self) -> PathBuf {
        self.surroundings.caller(self.cli.folder.as_deref()).cwd
    }

    /// Shows a result; the exit code is that of success.
    fn show(&self, object: &impl Serialize, text: impl FnOnce() -> String) -> Result<u8> {
        show(self.cli.format, object, text).map(|()| 0)
    }

    /// Tells a person something that is no part of the result.
    fn tell_person(&self, text: &str) {
        if self.cli.format == OutputFormat::Text {
            output::write_err(text);
        }
    }

    fn start_progress(&self, step: &'static str) -> ProgressBar {
        ProgressBar::start(self.cli.format, step)
    }

    fn tell_copy(&self, session: &Session) -> Result<()> {
        if let Some(told) = ops::report::describe_copy(session)? {
            self.tell_person(&format!("{told}; nothing is written here\n"));
        }
        Ok(())
    }

    /// A view changes nothing, but says what needs recovery, and whether the ledger was set back.
    fn tell_state(&self, session: &Session) -> Result<()> {
        self.tell_unfinished(session)?;
        self.tell_copy(session)?;
        for lost in ops::report::find_lost_heads(session)? {
            self.tell_person(&format!("{}\n", render::lost_head_line(&lost)));
        }
        Ok(())
    }

    fn tell_unfinished(&self, session: &Session) -> Result<()> {
        if self.cli.format == OutputFormat::Text {
            for left in ops::report::unfinished(session, None)? {
                output::write_err(&format!("{}\n", render::unfinished_line(&left)));
            }
        }
        Ok(())
    }

    /// Only a check can be shown in the forms of other programs.
    fn refuse_other_format(&self) -> Result<()> {
        let common = matches!(self.cli.format, OutputFormat::Text | OutputFormat::Json);
        if common || matches!(self.cli.command, Some(Command::Check(_))) {
            return Ok(());
        }
        Err(Failure::new(Code::ArgumentsInvalid, "only `check` can be shown in this format")
            .subject("--format")
            .expected(["text", "json"], "github, sarif or junit")
            .remedy("Take one of the common formats.", ["git", "tender", "-h"]))
    }

    fn read_inputs(&self, file: Option<&Path>) -> Result<Option<Vec<u8>>> {
        file.map(|file| self.read_input(file)).transpose()
    }

    /// Reads a named file, or standard input for `-`.
    fn read_input(&self, file: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let failed = |e: std::io::Error| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
            Failure::new(code, format!("cannot read {}: {e}", file.display()))
                .subject(file.display().to_string())
        };
        let read = if file == Path::new("-") {
            std::io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(self.cwd().join(file))
                .and_then(|f| f.take(LARGEST_INPUT + 1).read_to_end(&mut bytes))
        };
        read.map_err(failed)?;
        if bytes.len() as u64 > LARGEST_INPUT {
            return Err(Failure::new(
                Code::ArgumentsInvalid,
                format!("{} is larger than {LARGEST_INPUT} bytes", file.display()),
            )
            .subject(file.display().to_string())
            .expected(LARGEST_INPUT, "more"));
        }
        Ok(bytes)
    }
}

/// Commands that make and change tasks.
impl Invocation<'_> {
    fn init(&self, args: &InitArgs) -> Result<u8> {
        let session = self.session()?;
        let object = match args {
            InitArgs { unhook: true, .. } => ops::init::remove_hook(&session)?,
            InitArgs { hook: true, .. } => ops::init::init_hook(&session)?,
            InitArgs { private: true, .. } => ops::init::init(&session, ops::init::Layer::Private)?,
            _ => ops::init::init(&session, ops::init::Layer::Committed)?,
        };
        self.show(&object, || render::init_text(&object))
    }

    fn start(&self, args: &StartArgs) -> Result<u8> {
        let session = self.session()?;
        if !args.command.is_empty() {
            return Err(Failure::new(
                Code::NotSupported,
                "running a command in the worktree is not in this version",
            )
            .subject("CMD")
            .remedy(
                "Leave out what follows `--`, and work in the worktree that is printed.",
                ["git", "tender", "start", "--help"],
            ));
        }
        let folder = self.cwd();
        let wish = ops::start::Wish {
            goal: &args.goal,
            scope: &args.scope,
            folder: &folder,
            verify: &args.verify,
            manual: &args.manual,
            base: &args.base,
        };
        let progress = self.start_progress("filling the worktree");
        let object = ops::start::start(&session, &wish, &|done, total| progress.advance(done, total));
        let object = object.map_err(|failure| {
            // The contract was made from these flags: it is them that have to change.
            match failure.code() == Code::ContractInvalid && !failure.has_remedy() {
                true => failure.remedy(
                    "Correct the goal or the flag that it came from.",
                    ["git", "tender", "start", "--help"],
                ),
                false => failure,
            }
        })?;
        drop(progress);
        self.show_task(object, args.size)
    }

    /// A new task; what its worktree cost only where that was asked for.
    fn show_task(&self, mut object: TaskObject, size: bool) -> Result<u8> {
        if !size {
            object.brought = object.brought.map(BroughtObject::without_size);
        }
        self.show(&object, || render::task_text(&object))
    }

    fn open(&self, contract: &Path, size: bool) -> Result<u8> {
        let session = self.session()?;
        let bytes = self.read_input(contract)?;
        let progress = self.start_progress("filling the worktree");
        let object = ops::open::open(&session, &bytes, &|done, total| progress.advance(done, total))?;
        drop(progress);
        self.show_task(object, size)
    }

    fn submit(&self, args: &SubmitArgs) -> Result<u8> {
        let session = self.session()?;
        let task = args.task.as_deref();
        let object = match (args.patch_mode, args.only.as_slice()) {
            (true, _) => ops::submit::submit_hunks(&session, task)?,
            (false, []) => {
                let patch = self.read_inputs(args.patch.as_deref())?;
                ops::submit::submit(&session, task, patch.as_deref())?
            }
            (false, names) => ops::submit::submit_named(&session, task, names, &self.cwd())?,
        };
        self.show(&object, || render::candidate_text(&object))
    }

    fn verify(&self, args: &VerifyArgs) -> Result<u8> {
        let options = ops::verify::Options {
            only: &args.only,
            explain: if args.explain { Explain::Yes } else { Explain::No },
            flaky: runs_wanted(args.again),
            sandbox: sandbox_wanted(args.no_sandbox),
        };
        let mut session = self.session()?;
        session.machine.no_sandbox = args.no_sandbox;
        let progress = self.start_progress("running verifiers");
        let object = ops::verify::verify(&session, args.task.as_deref(), &options, &|done, total| {
            progress.advance(done, total)
        })?;
        drop(progress);
        self.show(&object, || render::verification_text(&object))?;
        Ok(exit_code_of_verification(&object))
    }

    fn attest(&self, args: &AttestArgs) -> Result<u8> {
        let session = self.session()?;
        let (task, requirement) = match args.names.as_slice() {
            [requirement] => (None, requirement),
            [task, requirement, ..] => (Some(task.as_str()), requirement),
            [] => return Err(Failure::internal("no requirement was parsed")),
        };
        let word = if args.pass { ops::attest::Word::Pass } else { ops::attest::Word::Fail };
        let object = ops::attest::attest(&session, task, requirement, word, &args.message)?;
        self.show(&object, || render::verification_text(&object))
    }

    fn deliver(&self, args: &DeliverArgs) -> Result<u8> {
        let session = self.session()?;
        let options = ops::deliver::Options {
            write: write_wanted(args.dry_run),
            place: if args.here { Place::Here } else { Place::AsOpened },
            proof: proof_wanted(args.prove),
            turn: Turn::First,
        };
        let progress = self.start_progress("writing files");
        let task = args.task.as_deref();
        let deliver = if args.merge { ops::deliver::merge } else { ops::deliver::deliver };
        let object = deliver(&session, task, &options, &|done, total| progress.advance(done, total))?;
        drop(progress);
        self.show(&object, || render::delivery_text(&object))
    }

    fn rebase(&self, task: Option<&str>) -> Result<u8> {
        let object = ops::rebase::rebase(&self.session()?, task)?;
        self.show(&object, || render::candidate_text(&object))
    }

    fn undo(&self, task: Option<&str>, write: Write) -> Result<u8> {
        let object = ops::undo::undo(&self.session()?, task, write)?;
        self.show(&object, || render::delivery_text(&object))
    }

    fn redo(&self, task: Option<&str>, write: Write) -> Result<u8> {
        let options = ops::deliver::Options { write, ..Default::default() };
        let progress = self.start_progress("writing files");
        let report = |done, total| progress.advance(done, total);
        let object = ops::deliver::redo(&self.session()?, task, &options, &report)?;
        drop(progress);
        self.show(&object, || render::delivery_text(&object))
    }

    fn amend(&self, task: Option<&str>, scope: &[String]) -> Result<u8> {
        let object = ops::widen::widen_scope(&self.session()?, task, scope, &self.cwd())?;
        self.show(&object, || render::task_text(&object))
    }

    fn answer(&self, words: &[String]) -> Result<u8> {
        let session = self.session()?;
        let (task, action, text) = match words {
            [task, text] => (task, None, text),
            [task, action, text] => (task, Some(action.as_str()), text),
            _ => return Err(Failure::internal("no answer was parsed")),
        };
        let object = ops::answer::answer(&session, task, action, text)?;
        self.show(&object, || render::answer_text(&object))
    }

    /// One object for one task; several are told one by one, up to the first that cannot be cancelled.
    fn cancel(&self, tasks: &[String]) -> Result<u8> {
        let session = self.session()?;
        let tasks: Vec<Option<&str>> = match tasks {
            [] => vec![None],
            named => named.iter().map(|task| Some(task.as_str())).collect(),
        };
        for task in tasks {
            let object = ops::cancel::cancel(&session, task)?;
            self.show(&object, || render::cancel_text(&object))?;
        }
        Ok(0)
    }

    fn resume(&self, task: Option<&str>, add: &[String]) -> Result<u8> {
        let object = ops::resume::resume(&self.session()?, task, add)?;
        self.show(&object, || render::task_text(&object))
    }

    fn recover(&self, consent: Consent) -> Result<u8> {
        let object = ops::recover::recover(&self.session()?, consent)?;
        self.show(&object, || render::recovery_text(&object))?;
        Ok(exit_code_of_recovery(object.actions.iter().map(|action| action.outcome)))
    }

    fn gc(&self) -> Result<u8> {
        let object = ops::gc::gc(&self.session()?)?;
        self.show(&object, || render::gc_text(&object))
    }

    /// Once the protocol has begun, the output is its own: a failure is told on standard error.
    fn serve_worker(&self, task: Option<&str>) -> Result<u8> {
        let session = self.session()?.for_a_worker();
        let (input, output) = output::take_channel()?;
        let end = mcp::serve(&session, task, mcp::Channel { input, output })?;
        if let Some(failure) = end.failure {
            output::write_err(&render::failure_text(&failure));
        }
        Ok(end.code)
    }
}

/// Commands that work outside any repository.
impl Invocation<'_> {
    fn demo(&self, args: &DemoArgs) -> Result<u8> {
        let environment = self.surroundings.caller(None).environment;
        let dir = args.dir.as_deref();
        let demo = ops::demo::demo(dir, environment, machine(self.surroundings), &|line| {
            if self.cli.format == OutputFormat::Text {
                let _ = output::write_out(line.as_bytes());
            }
        })?;
        self.show(&demo, || render::demo_text(&demo))
    }

    /// The snippet alone goes to standard output, so that it can be put into a file; what a person has to
    /// know stands beside it.
    fn agent(&self, args: &AgentArgs) -> Result<u8> {
        let object = ops::agent::agent(args.what, args.target, args.task.as_deref())?;
        self.show(&object, || object.text.clone())?;
        self.tell_person(&object.notes_text());
        Ok(0)
    }

    fn doctor(&self) -> Result<u8> {
        let caller = self.surroundings.caller(self.cli.folder.as_deref());
        let diagnosis = ops::doctor::diagnose(&caller, &machine(self.surroundings));
        self.show(&diagnosis, || render::doctor_text(&diagnosis))
    }

    fn schema(&self, name: SchemaName) -> Result<u8> {
        let schema = ops::schema::schema_of(name)?;
        self.show(&schema, || format!("{schema:#}\n"))
    }

    fn write_manual(&self, dir: Option<&Path>) -> Result<u8> {
        let written = manual::write_pages(dir, &self.surroundings.program)?;
        self.show(&written, || render::manual_text(&written))
    }
}

fn runs_wanted(again: bool) -> FlakyRows {
    if again { FlakyRows::Clear } else { FlakyRows::RunOnce }
}

fn sandbox_wanted(without: bool) -> Sandbox {
    if without { Sandbox::Without } else { Sandbox::AsContracted }
}

fn write_wanted(dry_run: bool) -> Write {
    if dry_run { Write::DryRun } else { Write::Yes }
}

fn proof_wanted(asked: bool) -> LiveProof {
    if asked { LiveProof::Asked } else { LiveProof::ByPolicy }
}

/// The exit code of a verification follows from its required rows.
fn exit_code_of_verification(object: &VerificationObject) -> u8 {
    let task = object.task_id.as_deref().unwrap_or_default();
    ops::verify::refusal_of_rows(task, &object.requirements).map_or(0, |failure| failure.exit_code())
}

/// The exit code of a recovery by the ends of its actions: the command itself worked, but something still
/// waits for somebody.
fn exit_code_of_recovery(outcomes: impl Iterator<Item = RecoveryOutcome>) -> u8 {
    let code = |outcome| match outcome {
        RecoveryOutcome::Unknown => Some(Code::OutcomeUnknown),
        RecoveryOutcome::NeedsHumanDecision => Some(Code::DecisionRequired),
        RecoveryOutcome::Completed
        | RecoveryOutcome::TakenBack
        | RecoveryOutcome::SafeToRetry
        | RecoveryOutcome::Failed
        | RecoveryOutcome::Busy => None,
    };
    let categories: Vec<Category> = outcomes.filter_map(code).map(Code::category).collect();
    Category::dominant(&categories).map_or(0, Category::exit_code)
}
