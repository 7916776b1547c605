//! `check`: what is staged, a range of commits or the live tree, shown by the verifiers that it concerns,
//! without a task.
//!
//! The tree is captured by reading alone, and verifiers run in slots: whatever they do, and whenever this is
//! killed, the user's files, index and stash stay as they are. The judges are those of the tree that the
//! change is made against and of the user's private layer. What a run shows is written to the ledger like
//! that of a task's, as an action of no task: a pass counts wherever the same key is asked for. A run has no
//! effect that would have to be recovered, so its rows are written together once it has ended.

mod asked;
mod fix;

use super::Session;
use crate::domain::change::patch::{BoundPatch, Candidate, Change, manifest_sha256};
use crate::domain::contract::clause::Origin;
use crate::domain::contract::{Contract, PROTECTED};
use crate::domain::ledger::action::Actor;
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::{CheckedTree, VerificationObject};
use crate::domain::proof::evidence::{Evidence, Observation};
use crate::domain::proof::judge::{self, Job};
use crate::domain::proof::records::On;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::Row;
use crate::domain::value::digest::{ObjectId, Sha256, canonical_json};
use crate::error::{Code, Failure, Result};
use crate::git::live_base::capture_live;
use crate::git::staged_tree::StagedIndex;
use crate::git::tree;
use crate::store::{CheckRoom, Ledger};
use crate::task::action::{ActionOrigin, RunningAction, random_hex};
use crate::task::enter::require_own_store;
use crate::task::home::note_home;
use crate::task::observation::{JudgeRules, lend_subject};
use crate::task::recover::as_far_as_known;
use crate::task::terms::Terms;
use crate::task::verification::{FlakyRows, Sandbox};
use crate::task::{evidence, runs};
use crate::verifier;
use asked::{AskedCheck, ask_for_concerned};
use serde_json::json;
use std::path::PathBuf;

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// The index against HEAD.
    Staged,
    /// The index against HEAD, by every verifier.
    All,
    /// The live tree, with what is neither tracked nor ignored, against HEAD.
    Live,
    /// `A..B`: the tree of B against that of A.
    Range(String),
}

impl CheckTarget {
    fn word(&self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::All => "all",
            Self::Live => "live",
            Self::Range(_) => "rev",
        }
    }
}

/// What to check and how.
#[derive(Debug)]
pub struct CheckOptions {
    pub target: CheckTarget,
    /// The index that git named, where it is another one than the working tree's.
    pub index: Option<PathBuf>,
    pub flaky: FlakyRows,
    pub sandbox: Sandbox,
    pub fix: Fix,
}

/// What becomes of what verifiers would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// It is told as a failure.
    Told,
    /// It is written to the user's files, and to the index where that is what is looked at.
    Written,
}

/// What happens during a check, for whoever looks on.
#[derive(Debug)]
pub enum CheckEvent<'a> {
    /// It is known what is looked at.
    Began(&'a CheckedTree),
    /// A verifier begins: the how many-th of how many.
    Runs { verifier: &'a str, number: u64, of: u64 },
    /// A row is settled, with the runs that it rests on.
    Settled { row: &'a Row, runs: &'a [Run] },
    /// Verifiers would change these paths; what they make of them is looked at next.
    Mended(&'a [Change]),
}

/// Hears what happens.
pub type CheckListener<'a> = &'a dyn Fn(CheckEvent<'_>);

/// The tree that is looked at, and the one that it is compared with.
struct TreePair {
    base: ObjectId,
    tree: ObjectId,
}

/// Checks a tree.
pub fn check_tree(
    session: &Session,
    options: &CheckOptions,
    listen: CheckListener<'_>,
) -> Result<VerificationObject> {
    require_own_store(session)?;
    fix::refuse_unfixable(options)?;
    // What a fix that was cut off has left in files and index is no work of the user's.
    let room = CheckRoom::take_free(&session.layout)?;
    as_far_as_known(session, room.id())?;
    let trees = find_trees(session, &room, options)?;
    let place = CheckPlace { session, room: &room, options, listen };
    match options.fix {
        Fix::Told => Ok(place.show_tree(&trees)?.object),
        Fix::Written => fix::show_and_fix(&place, trees),
    }
}

/// Where trees are looked at, and how.
struct CheckPlace<'a> {
    session: &'a Session,
    room: &'a CheckRoom,
    options: &'a CheckOptions,
    listen: CheckListener<'a>,
}

/// What was shown of a tree.
struct ShownTree {
    object: VerificationObject,
    asked: AskedCheck,
    /// `None` where no run could show anything.
    observation: Option<Observation>,
}

impl CheckPlace<'_> {
    fn show_tree(&self, trees: &TreePair) -> Result<ShownTree> {
        let CheckPlace { session, room, options, listen } = *self;
        let objects = session.repository.object_reader(Some(&session.quarantine(room.id())))?;
        let changes = tree::changes_between(&objects, &trees.base, &trees.tree)?;
        let mut asked = ask_for_concerned(session, trees, &changes, &options.target)?;
        let checked = CheckedTree {
            what: options.target.word().to_owned(),
            base_tree: trees.base.clone(),
            tree: trees.tree.clone(),
            changes: changes.len() as u64,
            notes: std::mem::take(&mut asked.notes),
            fix: None,
        };
        listen(CheckEvent::Began(&checked));
        let mut object = VerificationObject {
            checked: Some(checked),
            ..VerificationObject::of_rows(std::mem::take(&mut asked.settled), Vec::new())
        };
        object.requirements.iter().for_each(|row| listen(CheckEvent::Settled { row, runs: &[] }));
        let mut observation = None;
        if asked.has_any {
            let candidate = candidate_of(trees, changes)?;
            let mut work = self.work_on(&candidate, &asked);
            let shown = work.show_rows(options.flaky)?;
            object.requirements.extend(shown.rows);
            object.runs = shown.runs;
            observation = Some(shown.observation);
        }
        Ok(ShownTree { object, asked, observation })
    }

    fn work_on<'w>(&'w self, candidate: &'w Candidate, asked: &'w AskedCheck) -> CheckWork<'w> {
        CheckWork {
            session: self.session,
            room: self.room,
            candidate,
            contract: &asked.contract,
            contract_sha256: asked.contract_sha256,
            terms: &asked.terms,
            listen: self.listen,
            sandbox: if self.options.sandbox == Sandbox::Without { "without" } else { "as offered" },
            made: Vec::new(),
        }
    }
}

fn find_trees(session: &Session, room: &CheckRoom, options: &CheckOptions) -> Result<TreePair> {
    let (repository, quarantine) = (&session.repository, session.quarantine(room.id()));
    if let CheckTarget::Range(range) = &options.target {
        return find_range(session, range);
    }
    // Before the first commit everything is new.
    let base = match repository.resolve_revision("HEAD", "tree")? {
        Some(tree) => tree,
        None => repository.empty_tree().parse()?,
    };
    if options.target == CheckTarget::Live {
        let tree = capture_live(repository, &quarantine)?;
        return Ok(TreePair { base, tree });
    }
    let place = options.index.clone().unwrap_or_else(|| repository.git_dir().join("index"));
    let index = StagedIndex::read_from(&place)?;
    let digest = index.digest();
    if let Some(tree) = room.find_tree(&digest).and_then(|known| known.parse().ok()) {
        return Ok(TreePair { base, tree });
    }
    let tree = index.write_tree(repository, &quarantine, &base)?;
    room.note_tree(&digest, tree.as_str());
    Ok(TreePair { base, tree })
}

/// The two ends of `A..B`, or of `A...B`, which begins where both parted. An empty side is HEAD.
fn find_range(session: &Session, range: &str) -> Result<TreePair> {
    let repository = &session.repository;
    let (from, to, from_fork) = match (range.split_once("..."), range.split_once("..")) {
        (Some((from, to)), _) => (from, to, true),
        (None, Some((from, to))) => (from, to, false),
        (None, None) => {
            return Err(Failure::new(Code::ArgumentsInvalid, format!("{range:?} is no range of commits"))
                .subject("--rev")
                .expected("A..B", range)
                .remedy("Name both ends.", ["git", "tender", "check", "--rev", "HEAD~1..HEAD"]));
        }
    };
    let named = |side: &str| if side.is_empty() { "HEAD".to_owned() } else { side.to_owned() };
    let (mut from, to) = (named(from), named(to));
    let missing = |side: &str| {
        Failure::new(Code::NotFound, format!("there is no commit {side:?}"))
            .subject("--rev")
            .expected("a commit", side)
            .remedy("See which commits there are.", ["git", "log", "--oneline", "--all"])
    };
    let tree_of = |side: &str| repository.resolve_revision(side, "tree")?.ok_or_else(|| missing(side));
    let tree = tree_of(&to)?;
    if from_fork {
        tree_of(&from)?;
        let output = repository.git_call().args(["merge-base", "--", &from, &to]).run()?;
        if !output.success() {
            let text = format!("{from} and {to} have no commit in common");
            return Err(Failure::new(Code::NotFound, text)
                .subject("--rev")
                .expected("a common commit", range));
        }
        from = output.first_text();
    }
    Ok(TreePair { base: tree_of(&from)?, tree })
}

/// Each check is a candidate of its own: a verifier whose runs are never reused is asked by each.
fn candidate_of(trees: &TreePair, changes: Vec<Change>) -> Result<Candidate> {
    let number = u32::from_str_radix(&random_hex(4), 16)
        .map_err(|e| Failure::internal(format!("a random number is none: {e}")))?;
    Ok(Candidate {
        candidate: number,
        contract_version: 1,
        base_tree: trees.base.clone(),
        tree: trees.tree.clone(),
        // The change is in both trees; no patch of it is written.
        patch: BoundPatch { manifest_sha256: manifest_sha256(&changes), sha256: Sha256::of(b""), bytes: 0 },
        artifact_bytes: 0,
        changes,
    })
}

/// A check at work.
struct CheckWork<'a> {
    session: &'a Session,
    room: &'a CheckRoom,
    candidate: &'a Candidate,
    contract: &'a Contract,
    contract_sha256: Sha256,
    terms: &'a Terms,
    listen: CheckListener<'a>,
    sandbox: &'static str,
    /// The digests of the records that this check made.
    made: Vec<Sha256>,
}

/// All rows, the runs to tell of, and what they were observed on.
struct ShownRows {
    rows: Vec<Row>,
    runs: Vec<Run>,
    observation: Observation,
}

impl CheckWork<'_> {
    fn with_subject<T>(
        &self,
        work: impl FnOnce(&verifier::VerificationSubject<'_>, &verifier::Host<'_>) -> Result<T>,
    ) -> Result<T> {
        let rules = JudgeRules {
            base_commit_tree: &self.candidate.base_tree,
            contract: self.contract,
            contract_sha256: self.contract_sha256,
            effective: &self.terms.effective,
            filters: &self.terms.filters,
        };
        lend_subject(self.session, (self.room.id(), self.candidate), rules, (&|_| None, None), work)
    }

    /// Runs what no fresh evidence is there for.
    fn show_rows(&mut self, flaky: FlakyRows) -> Result<ShownRows> {
        // A store that holds anything has a ledger.
        let mut ledger = Ledger::create(&self.session.layout)?;
        note_home(self.session)?;
        let mut observation =
            self.with_subject(|subject, host| verifier::observe(subject, &self.terms.verifiers, host))?;
        for row in observation.rows.iter_mut().filter(|row| row.clause.origin == Origin::Protected) {
            row.clause.required = false;
        }
        let mut records = evidence::recorded_under(&ledger, &observation)?;
        let first = self.missing_jobs(&observation, &records);
        let waiting = |at: usize| first.iter().any(|job| job.rows.contains(&at));
        self.tell_settled(&observation, &records, &|at| !waiting(at));
        self.run_jobs((&mut ledger, &observation, &mut records), first, flaky)?;
        if flaky == FlakyRows::Clear {
            for _ in 1..judge::CLEARING_RUNS {
                let known = evidence::in_order(&records);
                let mut jobs = self.missing_jobs(&observation, &records);
                jobs.retain(|job| judge::has_to_clear(&observation, job, &known));
                self.run_jobs((&mut ledger, &observation, &mut records), jobs, flaky)?;
            }
        }
        let rows = self.judge_rows(&observation, &records);
        let runs = runs::of_rows(&self.session.blobs(), &records, &rows);
        Ok(ShownRows { rows, runs, observation })
    }

    fn missing_jobs(&self, observation: &Observation, records: &[Recorded<Evidence>]) -> Vec<Job> {
        let known = evidence::in_order(records);
        let blobs = self.session.blobs();
        evidence::with_stored_lists(&blobs, |stored| judge::missing_jobs(observation, &known, stored))
    }

    /// Protected paths are a delivery's matter: here they are told, and stop nothing.
    fn judge_rows(&self, observation: &Observation, records: &[Recorded<Evidence>]) -> Vec<Row> {
        let mut rows = evidence::judge(&self.session.blobs(), observation, records);
        judge::mark_reused(&mut rows, &self.made);
        for row in rows.iter_mut().filter(|row| row.verifier == PROTECTED) {
            row.required = false;
        }
        rows
    }

    fn tell_settled(
        &self,
        observation: &Observation,
        records: &[Recorded<Evidence>],
        is_settled: &dyn Fn(usize) -> bool,
    ) {
        let rows = self.judge_rows(observation, records);
        let told = runs::of_rows(&self.session.blobs(), records, &rows);
        for row in &rows {
            // A row that was added by the judgement comes last, with the result.
            let at = observation.rows.iter().position(|observed| observed.clause.id == row.id);
            if at.is_some_and(is_settled) {
                (self.listen)(CheckEvent::Settled { row, runs: &told });
            }
        }
    }

    fn run_jobs(
        &mut self,
        (ledger, observation, records): (&mut Ledger, &Observation, &mut Vec<Recorded<Evidence>>),
        jobs: Vec<Job>,
        flaky: FlakyRows,
    ) -> Result<()> {
        let total = jobs.len() as u64;
        for (job, number) in jobs.iter().zip(1u64..) {
            let verifier = &observation.rows[job.rows[0]].clause.verifier;
            (self.listen)(CheckEvent::Runs { verifier, number, of: total });
            let made = self.run_job(ledger, observation, job, flaky)?;
            records.extend(made);
            if job.on == On::Candidate {
                self.tell_settled(observation, records, &|at| job.rows.contains(&at));
            }
        }
        Ok(())
    }

    /// One run of one verifier, and its records in the ledger.
    fn run_job(
        &mut self,
        ledger: &mut Ledger,
        observation: &Observation,
        job: &Job,
        flaky: FlakyRows,
    ) -> Result<Vec<Recorded<Evidence>>> {
        let session = self.session;
        let verifier = &observation.rows[job.rows[0]].clause.verifier;
        let params = json!({ "verifier": verifier, "tree": self.candidate.tree, "baseTree": self.candidate.base_tree, "sandbox": self.sandbox });
        let basis = json!({ "policySha256": self.terms.effective.policy_sha256 });
        let channel = ActionOrigin { origin: &session.origin, secrets: session.secrets() };
        let mut action = RunningAction::new(Actor::Harness, None, "check", &params, basis, channel);
        let ticket = verifier::Ticket {
            run: action.id().to_owned(),
            nonce: random_hex(16),
            clearing: flaky == FlakyRows::Clear,
        };
        let made = self.with_subject(|subject, host| {
            verifier::run(subject, &self.terms.verifiers, host, observation, job, &ticket)
        })?;
        let blobs = session.blobs();
        for record in &made {
            self.made.push(blobs.put(&canonical_json(record))?);
        }
        let rows = made.iter().map(|record| Record::Evidence(Box::new(record.clone())));
        let entries = ledger.atomically(|ledger| {
            action.dispatch(ledger)?;
            action.succeed_with(ledger, rows)
        })?;
        Ok(entries.iter().zip(made).map(|(entry, record)| Recorded::new(entry, record)).collect())
    }
}
