//! `--prove`: what is delivered is shown on the live tree first.
//!
//! The verifiers run while others may write to the live tree: they take as long as they take. So it is laid
//! out anew under the delivery lock, and the evidence has to be for exactly that.

use super::clearance::require_shown;
use super::options::{LiveProof, Options};
use crate::domain::contract::policy::LiveRule;
use crate::domain::delivery::Clearance;
use crate::domain::ledger::entry::Recorded;
use crate::domain::proof::evidence::{Evidence, Source};
use crate::domain::proof::verdict::{Row, Verdict};
use crate::error::{Code, Failure, Result};
use crate::task::effect::{DeliveryEffect, Write, tree};
use crate::task::held::TaskWrite;
use crate::task::live_ground::{LiveGround, lay_on_live_tree};
use crate::task::session::Progress;
use crate::task::verification::{self, with_next_step};
use crate::task::{Session, evidence, observation, runs};

/// What a delivery rests on beside the candidate's own rows.
#[derive(Debug)]
pub(super) struct ProofOnLive {
    pub ground: LiveGround,
    /// All passed, as far as they are required.
    pub rows: Vec<Row>,
}

impl ProofOnLive {
    /// The rows of the candidate and those that only HEAD's rules ask for.
    pub fn add_to(proof: Option<&Self>, own: &[Row]) -> Vec<Row> {
        let rows = proof.iter().flat_map(|proof| &proof.rows);
        own.iter().chain(rows.filter(|row| !own.iter().any(|known| known.id == row.id))).cloned().collect()
    }

    /// The evidence of all rows, each once.
    pub fn evidence(proof: Option<&Self>, own: &[Row]) -> Vec<String> {
        let rows = own.iter().chain(proof.iter().flat_map(|proof| &proof.rows));
        let mut all: Vec<String> = Vec::new();
        for evidence in rows.filter_map(|row| row.evidence.as_ref()) {
            if !all.contains(evidence) {
                all.push(evidence.clone());
            }
        }
        all
    }
}

/// True where the delivery has to be shown on the live tree.
fn is_wanted(task: &TaskWrite<'_>, options: &Options) -> Result<bool> {
    let asked = options.proof == LiveProof::Asked;
    if DeliveryEffect::of_task(task) != DeliveryEffect::Tree {
        let text = "there is nothing to prove: this task delivers nothing to the live tree";
        let refused = Failure::new(Code::ArgumentsInvalid, text).subject("--prove");
        let next = ["git", "tender", "deliver", &task.view.id];
        return if asked { Err(refused.remedy("Leave the option out.", next)) } else { Ok(false) };
    }
    let by_policy = task.view.opened_terms()?.effective.live == LiveRule::Prove;
    Ok(options.write == Write::Yes && (asked || by_policy))
}

/// The task to deliver. What it takes to show the last candidate on the live tree is run first, where that is
/// wanted. What keeps the candidate from being delivered anyway is left to the delivery to say.
pub(super) fn enter_shown_on_live_tree<'s>(
    session: &'s Session,
    named: Option<&str>,
    options: &Options,
    progress: Progress<'_>,
) -> Result<TaskWrite<'s>> {
    let mut task = session.write_live(named)?;
    let has_work = options.turn.require_turn(&task.view).is_ok() && task.view.last_candidate().is_ok();
    if options.write == Write::DryRun || !has_work || !is_wanted(&task, options)? {
        return Ok(task);
    }
    run_on_live_tree(&mut task, progress)?;
    // Others may have come in while the verifiers ran.
    let id = task.view.id.clone();
    drop(task);
    session.write_live(Some(&id))
}

fn run_on_live_tree(task: &mut TaskWrite<'_>, progress: Progress<'_>) -> Result<()> {
    let session = task.session;
    let known = observation::observe(task)?;
    let records = evidence::counting_for(&task.ledger, &task.view)?;
    let rows = evidence::judge(&session.blobs(), &known, &records);
    if require_shown(task, &rows).is_err() || tree::plan(task).is_err() {
        return Ok(());
    }
    let ground = lay_on_live_tree(task)?;
    task.release_live_tree();
    run_missing(task, &ground, progress, |_| true)
}

fn run_missing(
    task: &mut TaskWrite<'_>,
    ground: &LiveGround,
    progress: Progress<'_>,
    asked: impl Fn(&Source) -> bool,
) -> Result<()> {
    let options = verification::Options::default();
    let rows = &ground.observation.rows;
    let asked =
        |job: &crate::domain::proof::judge::Job, _: &[_]| job.rows.iter().all(|at| asked(&rows[*at].source));
    verification::run_missing(task, ground.judged(), &ground.observation, &options, progress, asked)
        .map(|_| ())
}

/// What the candidate rests on beside its own rows; refused unless all that HEAD's rules require was shown on
/// the live tree as it is now.
pub(super) fn require_proof(task: &mut TaskWrite<'_>, options: &Options) -> Result<Option<ProofOnLive>> {
    if !is_wanted(task, options)? {
        return Ok(None);
    }
    // Where the change does not fit, nothing can be laid out.
    tree::plan(task)?;
    let ground = lay_on_live_tree(task)?;
    // What is built in depends on the whole tree and runs nothing: an edit that is nobody's input needs no
    // further call.
    run_missing(task, &ground, &|_, _| {}, |source| *source == Source::Builtin)?;
    let blobs = task.session.blobs();
    let records = evidence::counting_under(&task.ledger, &task.view, &ground.observation)?;
    let mut rows = evidence::judge(&blobs, &ground.observation, &records);
    for row in rows.iter_mut().filter(|row| row.verdict != Verdict::Passed) {
        let reason = row.reason.take().unwrap_or_else(|| "not shown".to_owned());
        row.reason = Some(format!("on the live tree: {reason}"));
    }
    match Clearance::from_rows(ground.candidate.patch.manifest_sha256, &rows) {
        Ok(_) => Ok(Some(ProofOnLive { ground, rows })),
        Err(failure) => Err(explained(task, failure, &records, &rows)),
    }
}

/// Adds what to do next, and what the runs said.
fn explained(
    task: &TaskWrite<'_>,
    failure: Failure,
    records: &[Recorded<Evidence>],
    rows: &[Row],
) -> Failure {
    let id = &task.view.id;
    let failure = match failure.code() {
        Code::EvidenceStale | Code::EvidenceMissing => failure.remedy(
            "The live tree is not what the verifiers saw. Prove it again once nobody edits what they depend on.",
            ["git", "tender", "deliver", id, "--prove"],
        ),
        Code::ConfirmationRequired => failure.remedy(
            "HEAD has other rules than the task's base. Carry the change over to it, then confirm it there.",
            ["git", "tender", "rebase", id],
        ),
        _ => with_next_step(id, rows, failure),
    };
    runs::tell_of_runs(failure, &task.session.blobs(), records, rows)
}
