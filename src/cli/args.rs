//! The grammar of the command line.

use super::output::OutputFormat;
use crate::ops::schema::SchemaName;
use crate::render::agent::{Client, Snippet};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Delivers changes made by coding agents and bots into a git working tree that has work in progress:
/// only what the contract allows, only with fresh evidence, and never over your own edits.
#[derive(Debug, Parser)]
#[command(name = "git-tender", bin_name = "git tender", version, propagate_version = true)]
#[command(
    after_help = "A first look: `git tender demo`. A first task: `git tender start \"GOAL\" --scope docs/`,\n\
edit in the worktree that it prints, then `git tender ship`."
)]
pub struct Cli {
    /// Run as if started in this folder.
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub folder: Option<PathBuf>,
    /// How results are shown.
    #[arg(long, value_enum, default_value = "text", global = true)]
    pub format: OutputFormat,
    /// What to do; without it, `status`.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What `status` lists.
#[derive(Debug, Default, Args)]
pub struct StatusArgs {
    /// List the tasks that have ended, too.
    #[arg(long)]
    pub all: bool,
    /// Say how many bytes the worktree and the private files of each task take.
    #[arg(long)]
    pub size: bool,
    /// Say of each task whether its last candidate conflicts with the live tree now.
    #[arg(long)]
    pub live: bool,
}

/// The limits that hold where neither contract nor policy says anything.
pub const BUDGETS: &str = "\
Limits of a task, where neither its contract (`budget`) nor the policy (`[policy.budget.KIND]`) says another:
  key               edit       repair     explore    counts
  wallSeconds       3600       7200       3600       seconds that verifiers and tools run
  outputBytes       268435456  536870912  268435456  bytes that verifiers print
  artifactBytes     67108864   67108864   67108864   bytes of the files that a candidate adds or changes
  toolCalls         200        300        200        calls of a worker's tools, denied ones too
  turns             100        150        100        turns of a worker's model
  repeatedFailures  5          5          5          times that the same call has the same result
Once one of wallSeconds, toolCalls, outputBytes or repeatedFailures is used up the task is `incomplete` until a person adds to it (`git tender resume`).";

/// What a person who starts it by hand has to know.
pub const SERVING: &str = "\
A client starts this by itself; `git tender agent mcp` prints what to put into its configuration. One server is one worker of one task:
whoever calls over it is the worker, never you, whatever terminal it was started from. It ends with its input.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a `.tender/` for this repository: configuration, and verifiers for the tools found in it. Never
    /// overwrites.
    Init(InitArgs),
    /// Walk through the whole pipeline in a throw-away repository, a refusal included.
    Demo(DemoArgs),
    /// Make a contract from flags and open it.
    #[command(after_help = BUDGETS, alias = "new")]
    Start(StartArgs),
    /// Seal a contract and make its task's worktree.
    Open {
        /// The contract: a JSON file, or `-` for standard input.
        contract: PathBuf,
        /// Say what the files cost that were brought into the worktree beside its base.
        #[arg(long)]
        size: bool,
    },
    /// Capture a candidate from the task's worktree, or from a patch.
    Submit(SubmitArgs),
    /// Produce the missing evidence for the last candidate; what is fresh is reused.
    #[command(alias = "test")]
    Verify(VerifyArgs),
    /// Check what is staged, before a commit: the verifiers that it concerns run beside your files, never in
    /// them. Needs no task.
    Check(CheckArgs),
    /// Record a person's own verdict on a manual requirement or on `protected`.
    Attest(AttestArgs),
    /// Compare with the live tree, then apply: everything or nothing.
    #[command(alias = "apply")]
    Deliver(DeliverArgs),
    /// Submit, verify and deliver in one go, until one of them fails.
    Ship(ShipArgs),
    /// Deliver every verified task in turn: the same as `ship --all`.
    Queue(QueueArgs),
    /// Carry the last candidate over to HEAD and your edits of its paths, in the task's worktree.
    Rebase {
        /// The task; may be left out inside its worktree, or where one task is open.
        task: Option<String>,
    },
    /// Reverse a delivery by the same rules: a path that was edited since is refused.
    Undo {
        /// The task; left out, the one that was delivered last.
        task: Option<String>,
        /// Compare and say what would be taken back; write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Deliver again what was undone, by the same rules.
    Redo {
        /// The task; left out, the one that was delivered last.
        task: Option<String>,
        /// Compare and say what would be written; write nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Let a task change more paths: a person widens its scope, within the policy.
    Amend {
        /// The task; may be left out inside its worktree, or where one task is open.
        task: Option<String>,
        /// A path that may change, too, from the current folder. May be given several times.
        #[arg(long, value_name = "PATH", required = true)]
        scope: Vec<String>,
    },
    /// List the tasks that have not ended: state, age, whose turn it is, the next command.
    #[command(alias = "list", alias = "ls")]
    Status(StatusArgs),
    /// Show what is known of a task: requirements, evidence, risks, budget, delivery.
    Report(ReportArgs),
    /// Show the patch of the last candidate.
    Diff {
        /// The task; may be left out inside its worktree, where one task is open, or after a delivery.
        task: Option<String>,
        /// Only say which paths change, and by how many lines.
        #[arg(long)]
        stat: bool,
    },
    /// Print where a task's worktree lies.
    Path {
        /// The task; may be left out inside its worktree, or where one task is open.
        task: Option<String>,
    },
    /// Show the ledger, one entry a line, and check its whole chain.
    Log {
        /// Only this task's entries.
        task: Option<String>,
        /// Only the last entries, this many.
        #[arg(short = 'n', long, value_name = "N")]
        number: Option<usize>,
    },
    /// Show one action, evidence record or stored log by its reference.
    Show {
        /// An action's id, or `sha256:…` of a record or a stored file.
        reference: String,
    },
    /// Answer what a task asks of a person: a question of the worker's, an amendment of the contract that it
    /// proposes, or whether an effect took place that nobody can look at any more.
    #[command(override_usage = "git tender answer [OPTIONS] <TASK> [ID] <yes|no|TEXT>")]
    Answer {
        /// The task, the id of what is asked (may be left out where it is the only thing), and the answer:
        /// `yes` or `no` to an amendment or a decision, any text to a question.
        #[arg(value_names = ["TASK", "ID", "ANSWER"], num_args = 2..=3, required = true)]
        words: Vec<String>,
    },
    /// End a task without delivering it.
    #[command(alias = "abort", alias = "rm")]
    Cancel {
        /// The tasks; may be left out inside the task's worktree, or where one task is open.
        #[arg(value_name = "TASK")]
        tasks: Vec<String>,
    },
    /// Let a task go on whose budget is spent: a person adds to it.
    #[command(after_help = BUDGETS)]
    Resume {
        /// The task; may be left out inside its worktree, or where one task is open.
        task: Option<String>,
        /// Add to a limit, within the policy. May be given several times, each key once.
        #[arg(long, value_name = "KEY=N")]
        add: Vec<String>,
    },
    /// Serve the task's tools to a worker: the Model Context Protocol over standard input and output.
    #[command(after_help = SERVING)]
    Mcp {
        /// The task; may be left out inside its worktree, or where one task is open.
        task: Option<String>,
    },
    /// Print what a coding agent's client needs to work on a task; installs nothing.
    Agent(AgentArgs),
    /// Finish or undo what a crash left behind, and check the whole ledger.
    Recover {
        /// Go on with a ledger that was set back, without the rows that it has lost. A person has to confirm.
        #[arg(long)]
        accept_rollback: bool,
        /// Let the tasks of a copied repository go on in this copy. A person has to confirm.
        #[arg(long, conflicts_with = "accept_rollback")]
        adopt: bool,
    },
    /// Remove the worktrees and private files of ended tasks, where nothing would be lost.
    Gc,
    /// Say what this machine and repository offer, what is missing, and how to get it.
    Doctor,
    /// Look at this repository's verifiers, try one on projects of its own, write one to begin with.
    Verifier {
        #[command(subcommand)]
        command: VerifierCommand,
    },
    /// Print the JSON schema of a document, for editors.
    Schema {
        /// The document.
        #[arg(value_enum)]
        name: SchemaName,
    },
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages, so that `git tender --help` works.
    Man {
        /// Where to write them; by default `../share/man/man1` beside the program.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Arguments of `agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// What is wanted.
    #[arg(value_enum)]
    pub what: Snippet,
    /// Whose client it is for.
    #[arg(long, value_enum, value_name = "NAME")]
    pub target: Client,
    /// The task; may be left out: the server then takes the one whose worktree it is started in, or the only
    /// open one.
    pub task: Option<String>,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Keep it out of the repository: write the private layer under the git directory.
    #[arg(long)]
    pub private: bool,
    /// Have git check what is staged before each commit: installs the hook, and writes the private layer, so
    /// that it counts at once.
    #[arg(long, group = "git_hook")]
    pub hook: bool,
    /// Take that hook away.
    #[arg(long, group = "git_hook", conflicts_with = "private")]
    pub unhook: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to make the throw-away repository; by default a new temporary folder.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Arguments of `start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// What is to be reached, in your own words.
    pub goal: String,
    /// A path that may change, from the current folder: a folder, a file or a glob. May be given again.
    #[arg(long, value_name = "PATH", required = true)]
    pub scope: Vec<String>,
    /// Verifiers that must pass; `none` asks for none. Left out: each committed one that the change concerns.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub verify: Vec<String>,
    /// What a person has to attest, by a name of your own or of a manual verifier. May be given again.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub manual: Vec<String>,
    /// What the task starts from: a revision, or `live` for your uncommitted work.
    #[arg(long, value_name = "BASE", default_value = "HEAD")]
    pub base: String,
    /// Say what the files cost that were brought into the worktree beside its base.
    #[arg(long)]
    pub size: bool,
    /// A command to run in the worktree (not in this version).
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// What `verifier` does.
#[derive(Debug, Subcommand)]
pub enum VerifierCommand {
    /// List the verifiers with what each needs and whether that is here.
    List,
    /// Show one with its manifest.
    Show {
        /// The verifier.
        id: String,
    },
    /// Run one of the live tree on its `fixtures/passing` and `fixtures/failing`, each in a throw-away
    /// repository.
    Test {
        /// The verifier.
        id: String,
    },
    /// Write one to begin with: a shipped one by its name, or one that runs a command.
    New {
        /// Its name.
        id: String,
        /// What it runs.
        #[arg(last = true, value_name = "CMD")]
        command: Vec<String>,
    },
}

/// Arguments of `submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The task; may be left out inside its worktree, or where one task is open.
    pub task: Option<String>,
    /// Take this patch instead of the worktree; `-` reads standard input.
    #[arg(long, value_name = "FILE", group = "what")]
    pub patch: Option<PathBuf>,
    /// Take only what the worktree changes at these paths, from the current folder; the rest stays there.
    #[arg(long, value_name = "PATH", num_args = 1.., group = "what")]
    pub only: Vec<String>,
    /// Choose hunk by hunk what is taken, as `git add -p` does; at a terminal.
    #[arg(long, group = "what")]
    pub patch_mode: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The task; may be left out inside its worktree, or where one task is open.
    pub task: Option<String>,
    /// Run only these verifiers. May be given several times.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub only: Vec<String>,
    /// Say why each requirement's evidence is fresh or not.
    #[arg(long)]
    pub explain: bool,
    /// Run what is flaky until it passed three times in a row, which clears it.
    #[arg(long)]
    pub again: bool,
    /// Run without confinement, where the contract lets it through.
    #[arg(long)]
    pub no_sandbox: bool,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// What is staged, against HEAD; the default.
    #[arg(long, group = "what")]
    pub staged: bool,
    /// The commits of a range: the tree of B against that of A, by the verifiers of A.
    #[arg(long, value_name = "A..B", group = "what")]
    pub rev: Option<String>,
    /// The live tree, with new files that are not ignored, against HEAD.
    #[arg(long, group = "what")]
    pub live: bool,
    /// What is staged, by every verifier, concerned or not.
    #[arg(long, group = "what")]
    pub all: bool,
    /// Take what verifiers that do not pass would change: with what is staged, in your files and the index;
    /// with `--live` and `--all`, in your files alone.
    #[arg(long)]
    pub fix: bool,
    /// Run what is flaky until it passed three times in a row, which clears it.
    #[arg(long)]
    pub again: bool,
    /// Run without confinement.
    #[arg(long)]
    pub no_sandbox: bool,
}

/// Arguments of `attest`.
#[derive(Debug, Args)]
#[command(override_usage = "git tender attest [OPTIONS] <--pass|--fail> -m <TEXT> [TASK] <REQ>")]
pub struct AttestArgs {
    /// The task and the requirement; the task may be left out inside its worktree, or where one task is open.
    #[arg(value_names = ["TASK", "REQ"], num_args = 1..=2, required = true)]
    pub names: Vec<String>,
    /// It holds.
    #[arg(long, conflicts_with = "fail", required_unless_present = "fail")]
    pub pass: bool,
    /// It does not hold.
    #[arg(long)]
    pub fail: bool,
    /// What you looked at and why you say so.
    #[arg(short = 'm', long, value_name = "TEXT", required = true)]
    pub message: String,
}

/// Arguments of `deliver`.
#[derive(Debug, Args)]
pub struct DeliverArgs {
    /// The task; may be left out inside its worktree, or where one task is open.
    pub task: Option<String>,
    /// Compare and say what would be written; write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Deliver although another branch is checked out than when the task was opened.
    #[arg(long)]
    pub here: bool,
    /// Where your own edits are in the way and can be merged: rebase onto them, verify that, deliver that.
    #[arg(long)]
    pub merge: bool,
    /// Show it on the live tree first: run the verifiers that would see other files there than they saw.
    #[arg(long, conflicts_with = "dry_run")]
    pub prove: bool,
}

/// Arguments of `ship`.
#[derive(Debug, Args)]
pub struct ShipArgs {
    /// A task, or the file of a contract that is opened first.
    #[arg(conflicts_with = "all")]
    pub task: Option<String>,
    /// Deliver every verified task, one after the other. Where the one before moved the ground, the next is
    /// rebased and shown again; one that cannot be delivered is skipped.
    #[arg(long, conflicts_with_all = ["input", "patch", "no_sandbox"])]
    pub all: bool,
    /// Take this patch instead of the worktree; `-` reads standard input.
    #[arg(value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// The same, where the task is left out.
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub patch: Option<PathBuf>,
    /// Compare and say what would be written; write nothing.
    #[arg(long, conflicts_with = "prove")]
    pub dry_run: bool,
    /// Run without confinement, where the contract lets it through.
    #[arg(long)]
    pub no_sandbox: bool,
    /// Show it on the live tree first: run the verifiers that would see other files there than they saw.
    #[arg(long)]
    pub prove: bool,
}

/// Arguments of `queue`.
#[derive(Debug, Args)]
pub struct QueueArgs {
    /// Compare and say what would be written; write nothing.
    #[arg(long, conflicts_with = "prove")]
    pub dry_run: bool,
    /// Show each on the live tree first: run the verifiers that would see other files there than they saw.
    #[arg(long)]
    pub prove: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The task; may be left out inside its worktree, where one task is open, or after a delivery.
    pub task: Option<String>,
    /// For a worker whose context was cut: contract, open requirements, what was done, budget left.
    #[arg(long)]
    pub brief: bool,
}
