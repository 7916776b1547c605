//! One verifier in its slot: filled, set up, started, and looked at afterwards.
//!
//! Every attempt gets an output directory of its own, and finds none of the outputs of an earlier one.

mod mend;

use super::blame::Blame;
use super::cache::FileDigests;
use super::confinement::confine_run;
use super::foreign::{RunPlace, find_foreign_code};
use super::formats::Counted;
use super::load::Verifier;
use super::manifest::{Pass, Setup};
use super::outcome::{AttemptFacts, RowOutcome, RunOutcome, conclude};
use super::outputs::{OutputFolders, read_beneath, read_outputs, remove_old_outputs};
use super::protocol::{self, ProtocolAnswer, ProtocolCall, expand};
use super::reads::read_digests;
use super::{Host, RunHalt, Ticket, VerificationSubject, tools, view};
use crate::domain::proof::cases::CaseList;
use crate::domain::proof::evidence::{Attempt, Finding, Observed};
use crate::domain::proof::records::On;
use crate::domain::proof::verdict::{Checks, Said, Verdict};
use crate::domain::value::digest::{Sha256, canonical_json};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result, clipped};
use crate::git::convert::{Conversions, Drivers};
use crate::git::materialise::{Apart, AttributeTrees};
use crate::git::slot::{ConfigurationAbove, Filling, Slot, SlotPlaces};
use crate::git::tree;
use crate::process::{self, FinishedRun, Invocation, PrivateHome, ProgramEnd, Secrets, network_variables};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How much of each log is kept. It is held in memory while the program runs, so that it can be redacted and
/// looked through as one; what prints more than this is no log that anybody reads, and its head and tail have
/// to do.
const LOG: u64 = 16 << 20;
/// How many bytes of a reason or a finding's message are kept; a verifier writes them as long as it likes.
const LONGEST_TEXT: usize = 8 << 10;
/// How many bytes of a finding's level, path and rule are kept.
const LONGEST_NAME: usize = 2 << 10;
/// How long a verifier may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// A verifier that is ready to run.
pub(super) struct Runner<'a> {
    subject: &'a VerificationSubject<'a>,
    verifier: &'a Verifier,
    host: &'a Host<'a>,
    rows: &'a [&'a Observed],
    on: On,
    ticket: &'a Ticket,
    shown: Vec<tree::TreeFile>,
    slot: Slot,
    home: PrivateHome,
    secrets: Vec<Vec<u8>>,
    /// False once anything happened after which the slot cannot be trusted.
    clean: bool,
    /// How many bytes all its programs have printed.
    printed: Cell<u64>,
    /// Why the run says nothing: its program was ended before its time, or put something above the slot.
    stopped: RefCell<Option<String>>,
    /// What is told of the run beside its verdict.
    told: RefCell<Vec<Finding>>,
}

impl<'a> Runner<'a> {
    /// Takes a slot and brings it to what the verifier may see.
    pub(super) fn prepare(
        subject: &'a VerificationSubject<'a>,
        verifier: &'a Verifier,
        host: &'a Host<'a>,
        rows: &'a [&'a Observed],
        on: On,
        ticket: &'a Ticket,
    ) -> Result<Self> {
        let candidate = subject.candidate;
        let objects = subject.repository.object_reader(subject.quarantine)?;
        let attributes = if on == On::Candidate { &candidate.tree } else { &candidate.base_tree };
        let files = tree::list_files(&objects, attributes)?;
        let files = view::on_base(&files, &candidate.changes, &subject.contract.case, on);
        let shown = view::shown_files(&files, verifier);
        store_private_closure(subject, verifier)?;
        let (slots, book) = (host.slots, host.layout.slots());
        let id = &verifier.manifest.id;
        let judge = (id.as_str(), verifier.manifest_sha256);
        let mut slot =
            Slot::take_free(&SlotPlaces { slots, book: &book }, judge, subject.repository.format())?;
        let conversions = Conversions { repository: subject.repository, quarantine: subject.quarantine };
        let drivers = Drivers::Named(subject.filters);
        let own: BTreeSet<&RepoPath> = verifier.closure.iter().map(|file| &file.file.path).collect();
        // What judges comes from the base, and so do the attributes that make its bytes.
        let apart = Some(Apart { paths: &own, tree: subject.base_commit_tree });
        let attributes = AttributeTrees { tree: attributes, apart };
        let filling = Filling { conversions: &conversions, attributes, drivers: &drivers };
        let doing = format!("filling the slot of {id}");
        let progress = |done: u64, total: u64| (host.progress)(&doing, done, total);
        slot.show_files(subject.repository.environment(), &filling, &shown, &progress)?;
        let home = tools::private_home(host, verifier)?;
        let secrets = tools::secrets(host);
        let (printed, stopped, told) = (Cell::new(0), RefCell::new(None), RefCell::default());
        Ok(Self {
            subject,
            verifier,
            host,
            rows,
            on,
            ticket,
            shown,
            slot,
            home,
            secrets,
            clean: true,
            printed,
            stopped,
            told,
        })
    }

    /// True where the run would begin cold though a run on the base could have left scratch for it.
    pub(super) fn lacks_scratch(&self) -> bool {
        self.on == On::Candidate && self.writes_scratch() && !self.slot.knows_scratch()
    }

    fn writes_scratch(&self) -> bool {
        !self.verifier.manifest.scratch.patterns().is_empty()
    }

    /// Gives the slot back; leaves it dirty where it cannot be trusted. What a run on the base left in its
    /// scratch is kept.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.on == On::Base && self.writes_scratch() {
            self.slot.keep_scratch(self.clean)?;
        }
        if self.clean { self.slot.give_back() } else { Ok(()) }
    }

    /// What has to be done before the command is started. Gives the run's outcome where that decides it.
    pub(super) fn before_first_attempt(&mut self) -> Result<Option<RunOutcome>> {
        match self.set_up()? {
            Some(failed) => Ok(Some(failed)),
            None => self.refuse_foreign_code(&self.verifier.manifest.command),
        }
    }

    /// Runs the setup where what it depends on is not what it was made from. Gives the run's outcome where it
    /// fails.
    fn set_up(&mut self) -> Result<Option<RunOutcome>> {
        let Some(setup) = &self.verifier.manifest.setup else { return Ok(None) };
        let made_from = self.setup_digest(setup);
        if self.slot.setup_key() == Some(made_from) {
            return Ok(None);
        }
        (self.host.progress)(&format!("setting up {}", self.verifier.manifest.id), 0, 0);
        self.slot.set_setup(None);
        if let Some(refused) = self.refuse_foreign_code(&setup.command)? {
            return Ok(Some(refused));
        }
        let out = self.out_directory()?;
        let network = if setup.network { network_variables(self.host.vars) } else { Vec::new() };
        let finished = self.launch(&setup.command, out.path(), (Vec::new(), network))?;
        let said = self.conclude(&finished, &Ok(None), None, (None, None))?;
        if said.0 == Verdict::Passed {
            self.slot.set_setup(Some(made_from));
            return Ok(None);
        }
        let reason = format!("the setup failed: {}", said.1.unwrap_or_default());
        let said: Said = (Verdict::Error, Some(self.redacted(&reason)));
        let attempts = vec![self.logged(&finished, &said, None)?];
        let rows = self.rows.iter().map(|row| (row.clause.id.clone(), said.clone().into())).collect();
        Ok(Some(RunOutcome { rows, attempts, ..RunOutcome::default() }))
    }

    /// The outcome of a run that would load the user's files in place of the slot's; it is not made.
    fn refuse_foreign_code(&self, argv: &[String]) -> Result<Option<RunOutcome>> {
        let Some(reason) = self.foreign_code(argv)? else { return Ok(None) };
        let said: Said = (Verdict::Error, Some(reason));
        let rows = self.rows.iter().map(|row| (row.clause.id.clone(), said.clone().into())).collect();
        Ok(Some(RunOutcome { rows, ..RunOutcome::default() }))
    }

    fn foreign_code(&self, argv: &[String]) -> Result<Option<String>> {
        let slot = self.slot.tree_folder();
        let place = RunPlace { slot: &slot, shown: &self.shown, home: &self.home };
        let found = find_foreign_code(self.subject, self.verifier, self.host, place, argv)?;
        Ok(found.map(|reason| self.bounded(&reason, LONGEST_TEXT)))
    }

    fn setup_digest(&self, setup: &Setup) -> Sha256 {
        let files = self.shown.iter().filter(|file| setup.inputs.matches_path(&file.path));
        let files: Vec<_> = files.map(|file| (&file.path, file.mode, &file.id)).collect();
        let identity = self.rows.first().and_then(|row| row.identity.as_ref());
        let judges = identity.map(|i| (&i.tools, &i.env, &i.closure));
        Sha256::of_json(&json!({"command": setup.command, "files": files, "judges": judges}))
    }

    pub(super) fn attempt(&mut self) -> Result<RunOutcome> {
        let manifest = &self.verifier.manifest;
        (self.host.progress)(&format!("running {}", manifest.id), 0, 0);
        let out = self.out_directory()?;
        remove_old_outputs(&manifest.outputs, &self.slot.tree_folder())?;
        let root = self.slot.tree_folder();
        let call = ProtocolCall {
            run: &self.ticket.run,
            nonce: &self.ticket.nonce,
            clauses: self.rows.iter().map(|row| &row.clause).collect(),
            root: &root,
            out: out.path(),
            deadline: deadline(self.host.most.map_or(manifest.timeout, |most| most.min(manifest.timeout))),
        };
        let speaks = manifest.pass == Pass::Protocol;
        let stdin = if speaks { protocol::request(self.subject, self.on, &call) } else { Vec::new() };
        let finished = self.launch(&manifest.command, out.path(), (stdin, Vec::new()))?;
        let folders = OutputFolders { tree: &root, out: out.path() };
        let (counted, outputs) = read_outputs(manifest, &finished, folders)?;
        let answer = match speaks {
            true => Some(self.read_answer(&call)?),
            false => None,
        };
        // What the run itself installed was not there before it.
        let foreign = self.foreign_code(&manifest.command)?;
        let mut made = RunOutcome { outputs, ..RunOutcome::default() };
        made.findings = self.findings(&counted, answer.as_ref());
        made.blame = self.assign_blame(&finished, &counted, &root);
        let blame = made.blame.clone().map(|(blame, _)| blame);
        for row in self.rows {
            let id = &row.clause.id;
            let answered = answer.as_ref().map(|answer| protocol::said_of(answer, id));
            let own = match &answer {
                Some(Ok(answer)) => answer.counted(id, &counted),
                _ => counted.clone(),
            };
            let (verdict, reason) =
                self.conclude(&finished, &own, answered.as_ref(), (manifest.min_checks, blame.as_ref()))?;
            let checks = checks_of(&own).filter(|_| manifest.counts());
            let said = match &foreign {
                Some(reason) => (Verdict::Error, Some(reason.clone())),
                None => (verdict, reason.map(|reason| self.bounded(&reason, LONGEST_TEXT))),
            };
            let flaky = checks.is_some_and(|checks| checks.flaky > 0);
            let cases = self.store_cases(&own)?;
            made.rows.insert(id.clone(), RowOutcome { said, checks, cases, flaky });
        }
        let claimed = answer.as_ref().and_then(|answer| answer.as_ref().ok()?.claimed());
        let checks = checks_of(&counted).filter(|_| manifest.counts()).or(claimed);
        made.attempts = vec![self.logged(&finished, made.worst(), checks)?];
        Ok(made)
    }

    /// The verdict, after a look at the slot.
    fn conclude(
        &mut self,
        finished: &FinishedRun,
        counted: &std::result::Result<Option<Counted>, String>,
        answered: Option<&std::result::Result<Said, String>>,
        (min_checks, blame): (Option<u64>, Option<&Blame>),
    ) -> Result<Said> {
        let altered = self.slot.find_altered(&self.verifier.manifest.scratch)?;
        let survivors = finished.survivors_killed.saturating_add(finished.unkillable);
        self.clean &= altered.is_empty() && survivors == 0 && matches!(finished.end, ProgramEnd::Exited(_));
        let (end, timeout) = (&finished.end, self.verifier.manifest.timeout);
        let stopped = self.stopped.borrow();
        let stopped = stopped.as_deref();
        Ok(conclude(&AttemptFacts {
            end,
            timeout,
            stopped,
            survivors,
            altered: &altered,
            counted,
            answered,
            min_checks,
            blame,
            mends: self.verifier.manifest.uses_hooks,
        }))
    }

    /// Whose failure it is, where outputs count and the run ended badly before any case; a protocol's answer
    /// says it by itself.
    fn assign_blame(
        &self,
        finished: &FinishedRun,
        counted: &std::result::Result<Option<Counted>, String>,
        root: &Path,
    ) -> Option<(Blame, i32)> {
        let manifest = &self.verifier.manifest;
        let ProgramEnd::Exited(code @ 1..) = finished.end else { return None };
        if manifest.outputs.is_empty() || manifest.pass == Pass::Protocol {
            return None;
        }
        let nothing = |counted: &Counted| counted.checks == Checks::default() && counted.findings.is_empty();
        let none = counted.as_ref().ok().and_then(Option::as_ref).is_none_or(nothing);
        let blame = none.then(|| Blame::from_logs(finished, &self.shown, root))?;
        match self.on {
            On::Candidate => Some((blame, code)),
            // What a repair is compared with may fail to build; that is kept, what is missing outside is not.
            _ => Some((blame.decide_by_base(false), code)).filter(|(blame, _)| blame.is_outside()),
        }
    }

    /// Starts a program with what it reads and with variables beyond the fixed ones.
    fn launch(
        &self,
        argv: &[String],
        out: &Path,
        (stdin, more): (Vec<u8>, Vec<(OsString, OsString)>),
    ) -> Result<FinishedRun> {
        let mut command =
            Invocation::new(argv.iter().map(|argument| expand(argument, out)), self.slot.tree_folder());
        command.env = tools::environment(self.host, self.verifier, &self.home);
        command.env.extend(more);
        command.env.push(("TENDER_OUT".into(), OsString::from(out)));
        command.stdin = stdin;
        command.timeout = self.verifier.manifest.timeout;
        command.grace = GRACE;
        command.output_cap = LOG;
        command.secrets.clone_from(&self.secrets);
        let (live, tree) = (self.subject.repository.top().ok(), self.slot.tree_folder());
        command.confinement = confine_run(self.host, self.verifier, &self.home, (live, &tree, out))?;
        let before = self.printed.get();
        let halt = RefCell::new(None);
        let watch = |printed: u64| {
            let said = (self.host.watch)(before.saturating_add(printed));
            let may_go_on = said.is_none();
            halt.replace(said);
            may_go_on
        };
        let above = self.clear_above()?;
        let readable = self.read_digests();
        let finished = process::run_program(self.host.program, &command, &watch)?;
        if let Some(first) = self.slot.find_what_was_put_above(&above)?.first() {
            let why = format!("put something above its slot, where tools look for it: {}", first.display());
            self.stopped.borrow_mut().get_or_insert(self.bounded(&why, LONGEST_TEXT));
        }
        let now = self.read_digests();
        if let Some((path, _)) = now.iter().find(|(path, digest)| readable.get(*path) != Some(*digest)) {
            let why = format!(
                "changed {path}, which it may only read; for a store that its tool writes, the manifest says \
                 {{ path = {path:?}, cache = true }}"
            );
            self.stopped.borrow_mut().get_or_insert(self.bounded(&why, LONGEST_TEXT));
        }
        self.printed.set(before + finished.stdout.total + finished.stderr.total);
        match halt.into_inner().filter(|_| finished.end == ProgramEnd::Stopped) {
            Some(RunHalt::Unwanted(failure)) => return Err(failure),
            Some(RunHalt::Spent(why)) => drop(self.stopped.replace(Some(why))),
            None => {}
        }
        // The last bytes are charged too, and who passed over the budget with them has ended too late, not in
        // time.
        if let Some(RunHalt::Spent(why)) = (self.host.watch)(self.printed.get()) {
            self.stopped.borrow_mut().get_or_insert(why);
        }
        Ok(finished)
    }

    fn read_digests(&self) -> BTreeMap<String, Option<Sha256>> {
        let mut digests = FileDigests::open(&self.host.layout.digests());
        let found = read_digests(self.host, self.verifier, &mut digests);
        digests.save();
        found
    }

    /// Removes what others put above the slot, and tells it. Gives what lies above that is not ours.
    fn clear_above(&self) -> Result<ConfigurationAbove> {
        for stranger in self.slot.remove_strangers_above()? {
            let message = format!("{} lay above the slot; it was removed before the run", stranger.display());
            let message = self.bounded(&message, LONGEST_TEXT);
            self.told.borrow_mut().push(Finding { level: "note".to_owned(), message, ..Finding::default() });
        }
        Ok(self.slot.look_above())
    }

    fn out_directory(&self) -> Result<tempfile::TempDir> {
        let folder = tools::runs_folder(self.host)?;
        tempfile::Builder::new()
            .prefix("out-")
            .tempdir_in(&folder)
            .map_err(|e| Failure::io("make an output directory in", &folder, &e))
    }

    fn read_answer(&self, call: &ProtocolCall<'_>) -> Result<std::result::Result<ProtocolAnswer, String>> {
        Ok(match read_beneath(call.out, protocol::RESULT, protocol::LARGEST)? {
            Err(why) => Err(why),
            Ok(None) => Err(format!("{} was not written", protocol::RESULT)),
            Ok(Some(bytes)) => protocol::answer(&bytes, call),
        })
    }

    fn findings(
        &self,
        counted: &std::result::Result<Option<Counted>, String>,
        answer: Option<&std::result::Result<ProtocolAnswer, String>>,
    ) -> Vec<Finding> {
        let cases = counted.iter().flatten().flat_map(|counted| counted.findings.clone());
        let answered = answer.into_iter().flatten().flat_map(|answer| answer.findings.clone());
        let mut all: Vec<_> = self.told.take().into_iter().chain(cases).chain(answered).collect();
        for finding in &mut all {
            finding.message = self.bounded(&finding.message, LONGEST_TEXT);
            finding.level = self.bounded(&finding.level, LONGEST_NAME);
            finding.rule = finding.rule.as_ref().map(|rule| self.bounded(rule, LONGEST_NAME));
            finding.path = finding.path.as_ref().map(|path| self.bounded(path, LONGEST_NAME));
        }
        all
    }

    /// Stores the cases by name; `None` where nothing counts, or what counts names none.
    fn store_cases(&self, counted: &std::result::Result<Option<Counted>, String>) -> Result<Option<Sha256>> {
        let Ok(Some(counted)) = counted else { return Ok(None) };
        if counted.cases.is_empty() && counted.checks.ran > 0 {
            return Ok(None);
        }
        let secrets = Secrets::new(&self.secrets);
        let mut cases = counted.cases.clone();
        for case in &mut cases {
            for text in case.class.iter_mut().chain(&mut case.file).chain([&mut case.name]) {
                *text = secrets.redact_text(text);
            }
        }
        self.host.blobs.put(&canonical_json(&CaseList::new(cases, counted.unnamed))).map(Some)
    }

    /// First redacted, then clipped: what is left of a secret that was cut is not found.
    fn bounded(&self, text: &str, most: usize) -> String {
        clipped(&self.redacted(text), most).into_owned()
    }

    fn redacted(&self, text: &str) -> String {
        Secrets::new(&self.secrets).redact_text(text)
    }

    /// Stores the logs, which are redacted and capped already.
    fn logged(
        &self,
        finished: &FinishedRun,
        (outcome, reason): &Said,
        checks: Option<Checks>,
    ) -> Result<Attempt> {
        let store = |bytes: &[u8]| -> Result<Option<Sha256>> {
            if bytes.is_empty() { Ok(None) } else { self.host.blobs.put(bytes).map(Some) }
        };
        let (exit_code, signal) = match finished.end {
            ProgramEnd::Exited(code) => (Some(code), None),
            ProgramEnd::Signalled(signal) => (None, Some(signal)),
            _ => (None, None),
        };
        Ok(Attempt {
            outcome: *outcome,
            reason: reason.clone(),
            exit_code,
            signal,
            checks,
            stdout: store(&finished.stdout.bytes)?,
            stderr: store(&finished.stderr.bytes)?,
            truncated: finished.stdout.truncated || finished.stderr.truncated,
            stdout_total: finished.stdout.truncated.then_some(finished.stdout.total),
            stderr_total: finished.stderr.truncated.then_some(finished.stderr.total),
            milliseconds: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn checks_of(counted: &std::result::Result<Option<Counted>, String>) -> Option<Checks> {
    counted.as_ref().ok().and_then(Option::as_ref).map(|counted| counted.checks)
}

/// Closure files of the private layer are in no tree; the slot is filled from objects, so they become some.
fn store_private_closure(subject: &VerificationSubject<'_>, verifier: &Verifier) -> Result<()> {
    for file in verifier.closure.iter().filter_map(|file| file.bytes.as_ref()) {
        let git = subject.repository.git_call();
        let git = match subject.quarantine {
            Some(quarantine) => git.with_quarantine(quarantine),
            None => git,
        };
        git.args(["hash-object", "-w", "--stdin", "--no-filters"]).stdin(file.clone()).run_for_stdout()?;
    }
    Ok(())
}

fn deadline(timeout: Duration) -> String {
    let end =
        jiff::SignedDuration::try_from(timeout).ok().and_then(|d| jiff::Timestamp::now().checked_add(d).ok());
    end.map(|end| format!("{end:.3}")).unwrap_or_default()
}
