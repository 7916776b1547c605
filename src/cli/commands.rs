//! Each command: convert the arguments, call one operation, hand its result to the output.

use super::args::{
    self, AgentArgs, AttestArgs, Cli, Command, DeliverArgs, ReportArgs, ShipArgs, StartArgs, SubmitArgs,
    VerifyArgs,
};
use super::environment::Surroundings;
use super::output::{self, Format, Progress, show};
use super::{is_homeless, session};
use crate::domain::ledger::report::VerificationObject;
use crate::error::{Category, Code, Failure, Result};
use crate::ops::{self, Session};
use crate::render::agent::{Client, Snippet};
use crate::{mcp, render};
use std::io::Read;
use std::path::Path;

/// Runs one command; gives the exit code.
pub fn run(cli: &Cli, surroundings: &Surroundings) -> Result<u8> {
    if is_homeless(&cli.command) {
        return without_repository(cli, surroundings);
    }
    if let Command::Mcp { task } = &cli.command {
        return serve(cli, surroundings, task.as_deref());
    }
    let session = session(cli, surroundings)?;
    let cwd = surroundings.caller(cli.folder.as_deref()).cwd;
    let format = cli.format;
    match &cli.command {
        Command::Start(args) => start(&session, format, args),
        Command::Open { contract } => open(&session, format, &cwd, contract),
        Command::Submit(args) => submit(&session, format, &cwd, args),
        Command::Verify(args) => verify(&session, format, args),
        Command::Attest(args) => attest(&session, format, args),
        Command::Deliver(args) => deliver(&session, format, args),
        Command::Ship(args) => ship(&session, format, &cwd, args),
        Command::Rebase { task } => {
            let object = ops::rebase::rebase(&session, task.as_deref())?;
            done(show(format, &object, || render::candidate::candidate_text(&object)))
        }
        Command::Undo { task } => {
            let object = ops::undo::undo(&session, task.as_deref())?;
            done(show(format, &object, || render::delivery::delivery_text(&object)))
        }
        Command::Cancel { task } => {
            let object = ops::cancel::cancel(&session, task.as_deref())?;
            done(show(format, &object, || render::cancel::cancel_text(&object)))
        }
        Command::Resume { task, add } => {
            let object = ops::resume::resume(&session, task.as_deref(), add)?;
            done(show(format, &object, || render::task::task_text(&object)))
        }
        Command::Answer { words } => answer(&session, format, words),
        Command::Recover => {
            let object = ops::recover::recover(&session)?;
            show(format, &object, || render::recovery::recovery_text(&object))?;
            Ok(left_over(object.actions.iter().map(|action| action.outcome)))
        }
        Command::Gc => {
            let object = ops::gc::gc(&session)?;
            done(show(format, &object, || render::gc::gc_text(&object)))
        }
        Command::Init(args) => {
            let layer = if args.private { ops::init::Layer::Private } else { ops::init::Layer::Committed };
            let object = ops::init::init(&session, layer)?;
            done(show(format, &object, || render::init::init_text(&object)))
        }
        view => {
            let code = look(&session, format, view)?;
            announce(&session, format, view)?;
            Ok(code)
        }
    }
}

/// A view changes nothing, but says what needs recovery. `status` has it in its list.
fn announce(session: &Session, format: Format, view: &Command) -> Result<()> {
    if format == Format::Text && !matches!(view, Command::Status) {
        for left in ops::report::unfinished(session, None)? {
            output::write_err(&format!("{}\n", render::status::unfinished_line(&left)));
        }
    }
    Ok(())
}

/// The exit code of a recovery by the words of its actions: the command itself worked, but something still
/// waits for somebody.
fn left_over<'a>(outcomes: impl Iterator<Item = &'a str>) -> u8 {
    let code = |outcome: &str| match outcome {
        "unknown" => Some(Code::OutcomeUnknown),
        "needs_human_decision" => Some(Code::DecisionRequired),
        _ => None,
    };
    let categories: Vec<Category> = outcomes.filter_map(code).map(Code::category).collect();
    Category::dominant(&categories).map_or(0, Category::exit_code)
}

fn done(shown: Result<()>) -> Result<u8> {
    shown.map(|()| 0)
}

fn look(session: &Session, format: Format, command: &Command) -> Result<u8> {
    match command {
        Command::Status => {
            let object = ops::report::status(session)?;
            done(show(format, &object, || render::status::status_text(&object)))
        }
        Command::Report(args) => report(session, format, args),
        Command::Diff { task } => {
            let object = ops::report::diff(session, task.as_deref())?;
            match format {
                Format::Text => done(output::write_out(&object.patch)),
                Format::Json => done(show(format, &object, String::new)),
            }
        }
        Command::Log { task } => {
            for entry in ops::report::log(session, task.as_deref())? {
                show(format, &entry, || render::log::entry_line(&entry))?;
            }
            Ok(0)
        }
        Command::Show { reference } => {
            let object = ops::report::show(session, reference)?;
            match (format, object.raw()) {
                (Format::Text, Some(bytes)) => match ops::report::told(session, &bytes)? {
                    Some(told) => done(output::write_out(
                        render::evidence::evidence_text(&told.evidence, &told.logs).as_bytes(),
                    )),
                    None => done(output::write_out(&bytes)),
                },
                _ => done(show(format, &object, || render::log::action_text(&object))),
            }
        }
        _ => Err(Failure::internal("this command has no handler")),
    }
}

fn without_repository(cli: &Cli, surroundings: &Surroundings) -> Result<u8> {
    match &cli.command {
        Command::Demo(args) => {
            let demo = ops::demo::demo(
                args.dir.as_deref(),
                surroundings.caller(None).environment,
                super::machine(surroundings),
                &|line| {
                    if cli.format == Format::Text {
                        let _ = output::write_out(line.as_bytes());
                    }
                },
            )?;
            done(show(cli.format, &demo, || render::demo::demo_text(&demo)))
        }
        Command::Agent(args) => agent(cli.format, args),
        Command::Doctor => {
            let caller = surroundings.caller(cli.folder.as_deref());
            let diagnosis = ops::doctor::diagnose(&caller);
            done(show(cli.format, &diagnosis, || render::doctor::doctor_text(&diagnosis)))
        }
        Command::Completions { shell } => done(output::write_out(&super::manual::completions(*shell))),
        Command::Man { dir } => {
            let written = super::manual::write_pages(dir.as_deref(), &surroundings.program)?;
            done(show(cli.format, &written, || render::manual::manual_text(&written)))
        }
        _ => Err(Failure::internal("this command has no handler")),
    }
}

/// The snippet alone goes to standard output, so that it can be put into a file; what a person has to know
/// stands beside it.
fn agent(format: Format, args: &AgentArgs) -> Result<u8> {
    let what = match args.what {
        args::AgentSnippet::Instructions => Snippet::Instructions,
        args::AgentSnippet::Mcp => Snippet::Mcp,
        args::AgentSnippet::Hooks => Snippet::Hooks,
    };
    let target = match args.target {
        args::AgentClient::Codex => Client::Codex,
        args::AgentClient::Claude => Client::Claude,
    };
    let object = ops::agent::agent(what, target, args.task.as_deref())?;
    show(format, &object, || object.text.clone())?;
    if format == Format::Text {
        output::write_err(&object.told());
    }
    Ok(0)
}

/// Once the protocol has begun, the output is its own: what fails then is told on standard error.
fn serve(cli: &Cli, surroundings: &Surroundings, task: Option<&str>) -> Result<u8> {
    let session = session(cli, surroundings)?.for_a_worker();
    let (input, output) = output::channel()?;
    let end = mcp::serve(&session, task, mcp::Channel { input, output })?;
    if let Some(failure) = end.failure {
        output::write_err(&render::failure::failure_text(&failure));
    }
    Ok(end.code)
}

fn start(session: &Session, format: Format, args: &StartArgs) -> Result<u8> {
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
    let wish =
        ops::open::Wish { goal: &args.goal, scope: &args.scope, verify: &args.verify, base: &args.base };
    let progress = Progress::start(format, "filling the worktree");
    let object =
        ops::open::start(session, &wish, &|done, total| progress.at(done, total)).map_err(|failure| {
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
    done(show(format, &object, || render::task::task_text(&object)))
}

fn open(session: &Session, format: Format, cwd: &Path, contract: &Path) -> Result<u8> {
    let bytes = read_input(cwd, contract)?;
    let progress = Progress::start(format, "filling the worktree");
    let object = ops::open::open(session, &bytes, &|done, total| progress.at(done, total))?;
    drop(progress);
    done(show(format, &object, || render::task::task_text(&object)))
}

fn submit(session: &Session, format: Format, cwd: &Path, args: &SubmitArgs) -> Result<u8> {
    let patch = args.patch.as_deref().map(|file| read_input(cwd, file)).transpose()?;
    let object = ops::submit::submit(session, args.task.as_deref(), patch.as_deref())?;
    done(show(format, &object, || render::candidate::candidate_text(&object)))
}

fn verify(session: &Session, format: Format, args: &VerifyArgs) -> Result<u8> {
    let options = ops::verify::Options {
        only: &args.only,
        explain: args.explain.into(),
        sandbox: args.no_sandbox.into(),
    };
    let progress = Progress::start(format, "running verifiers");
    let object = ops::verify::verify(session, args.task.as_deref(), &options, &|done, total| {
        progress.at(done, total)
    })?;
    drop(progress);
    verification(format, &object)
}

/// Shows a verification; the exit code follows from its required rows.
fn verification(format: Format, object: &VerificationObject) -> Result<u8> {
    show(format, object, || render::verification::verification_text(object))?;
    Ok(ops::verify::refusal(&object.task_id, &object.requirements).map_or(0, |failure| failure.exit_code()))
}

fn attest(session: &Session, format: Format, args: &AttestArgs) -> Result<u8> {
    let (task, requirement) = match args.names.as_slice() {
        [requirement] => (None, requirement),
        [task, requirement, ..] => (Some(task.as_str()), requirement),
        [] => return Err(Failure::internal("no requirement was parsed")),
    };
    let word = if args.pass { ops::attest::Word::Pass } else { ops::attest::Word::Fail };
    let object = ops::attest::attest(session, task, requirement, word, &args.message)?;
    done(show(format, &object, || render::verification::verification_text(&object)))
}

fn answer(session: &Session, format: Format, words: &[String]) -> Result<u8> {
    let (task, action, text) = match words {
        [task, text] => (task, None, text),
        [task, action, text] => (task, Some(action.as_str()), text),
        _ => return Err(Failure::internal("no answer was parsed")),
    };
    let object = ops::answer::answer(session, task, action, text)?;
    done(show(format, &object, || render::answer::answer_text(&object)))
}

fn deliver(session: &Session, format: Format, args: &DeliverArgs) -> Result<u8> {
    let options = ops::deliver::Options { write: (!args.dry_run).into(), place: args.here.into() };
    let progress = Progress::start(format, "writing files");
    let task = args.task.as_deref();
    let object = match args.merge {
        true => ops::deliver::merge(session, task, &options, &|done, total| progress.at(done, total))?,
        false => ops::deliver::deliver(session, task, &options)?,
    };
    drop(progress);
    done(show(format, &object, || render::delivery::delivery_text(&object)))
}

fn ship(session: &Session, format: Format, cwd: &Path, args: &ShipArgs) -> Result<u8> {
    let patch = args.patch.as_deref().map(|file| read_input(cwd, file)).transpose()?;
    let contract = match &args.task {
        Some(name) if cwd.join(name).is_file() => Some(read_input(cwd, Path::new(name))?),
        _ => None,
    };
    let subject = match (&contract, &args.task) {
        (Some(bytes), _) => ops::ship::Subject::Contract(bytes),
        (None, Some(task)) => ops::ship::Subject::Task(Some(task)),
        (None, None) => ops::ship::Subject::Task(None),
    };
    let progress = Progress::start(format, "shipping");
    let shipped =
        ops::ship::ship(session, subject, patch.as_deref(), args.no_sandbox.into(), &|done, total| {
            progress.at(done, total)
        })?;
    drop(progress);
    show(format, &shipped.report, || render::report::report_text(&shipped.report))?;
    let Some(failure) = shipped.refused else { return Ok(0) };
    if format == Format::Text {
        output::write_err(&render::failure::refusal_text(&failure));
    }
    Ok(failure.exit_code())
}

fn report(session: &Session, format: Format, args: &ReportArgs) -> Result<u8> {
    if args.brief {
        let object = ops::report::brief(session, args.task.as_deref())?;
        return done(show(format, &object, || render::brief::brief_text(&object)));
    }
    let object = ops::report::report(session, args.task.as_deref())?;
    done(show(format, &object, || render::report::report_text(&object)))
}

/// The most that is read of a file or of standard input: a patch of a 100 MB binary fits, a device without an
/// end does not.
const LARGEST_INPUT: u64 = 512 << 20;

/// Reads a named file, or standard input for `-`.
fn read_input(cwd: &Path, file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let failed = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
        Failure::new(code, format!("cannot read {}: {e}", file.display())).subject(file.display().to_string())
    };
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(LARGEST_INPUT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(cwd.join(file)).and_then(|f| f.take(LARGEST_INPUT + 1).read_to_end(&mut bytes))
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
