//! Risks: what a reader should know before relying on a result. Each comes from a rule and names the action
//! it rests on.

use crate::domain::contract::policy::{BaseRuns, GoneCases};
use crate::domain::contract::{Kind, PROTECTED};
use crate::domain::ledger::entry::Recorded;
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::task::TaskView;
use crate::domain::proof::evidence::{Evidence, shown_digest};
use crate::domain::proof::gone_cases::tell_gone_cases;
use crate::domain::proof::judge::{is_fresh, records_disagree};
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::finding;
use serde::{Deserialize, Serialize};

/// Something a reader should know before relying on the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    pub text: String,
    /// The ledger action it rests on.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Everything a report is computed from.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub view: &'a TaskView,
    /// The terms that `open` fixed.
    pub opened: &'a Opened,
    /// The rows of the last candidate (or of the base, where there is none).
    pub rows: &'a [Row],
    /// The evidence that the rows may rest on, with the actions that made it.
    pub evidence: &'a [Recorded<Evidence>],
    /// The runs that are no pass.
    pub runs: &'a [Run],
}

/// Every risk that holds, in a fixed order.
pub fn all_risks(known: Known<'_>) -> Vec<Risk> {
    let mut risks = Vec::new();
    for rule in [
        empty_change,
        nothing_asked,
        optional_rows,
        gone_cases,
        uncompared_cases,
        unseen_work,
        moved_head,
        add_confinement,
        add_protected,
        delivery_notes,
        a_persons_word,
        open_effects,
        add_flaky,
        cut_output,
        add_tripped,
        seen_after,
        unverified_findings,
        later_work,
    ] {
        rule(known, &mut risks);
    }
    risks
}

fn add_risk(risks: &mut Vec<Risk>, reference: &str, text: String) {
    risks.push(Risk { text, reference: reference.to_owned() });
}

fn empty_change(known: Known<'_>, risks: &mut Vec<Risk>) {
    // An exploration is not meant to change anything.
    let meant = known.opened.contract.kind != Kind::Explore;
    if let Some(candidate) = known.view.current_candidate().filter(|c| meant && c.value.changes.is_empty()) {
        add_risk(risks, &candidate.action, "the candidate changes nothing: no work was done".to_owned());
    }
}

/// A candidate without a single row to show for it is delivered unseen.
fn nothing_asked(known: Known<'_>, risks: &mut Vec<Risk>) {
    let meant = known.opened.contract.kind != Kind::Explore && known.rows.is_empty();
    if let Some(candidate) = known.view.current_candidate().filter(|c| meant && !c.value.changes.is_empty()) {
        add_risk(
            risks,
            &candidate.action,
            "no verifier was asked: nothing shows that the change is right".to_owned(),
        );
    }
}

fn a_persons_word(known: Known<'_>, risks: &mut Vec<Risk>) {
    if let Some(delivered) = known.view.delivered.as_ref().filter(|delivered| delivered.value.said_by_person)
    {
        let text = "nobody saw the delivery end: a person said that it took place".to_owned();
        add_risk(risks, &delivered.action, text);
    }
}

/// Later changes of a worker lie in the worktree alone.
fn later_work(known: Known<'_>, risks: &mut Vec<Risk>) {
    let (Some(delivered), true) = (&known.view.delivered, known.view.is_being_worked_on()) else { return };
    let text =
        "the worker changed files after the candidate that was delivered: they are only in its worktree";
    add_risk(risks, &delivered.action, text.to_owned());
}

fn optional_rows(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(candidate) = known.view.current_candidate() else { return };
    for row in known.rows.iter().filter(|row| !row.required && row.verdict != Verdict::Passed) {
        let reason = row.reason.as_deref().unwrap_or("no reason recorded");
        add_risk(
            risks,
            &candidate.action,
            format!("the optional requirement {} did not pass: {reason}", row.id),
        );
    }
}

/// Tests that vanish are a change of the judge, whoever let them.
fn gone_cases(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(candidate) = known.view.current_candidate() else { return };
    if let Some(gone) = tell_gone_cases(known.rows) {
        let (action, who) = who_confirmed(known, &candidate.action);
        let word = match known.opened.effective.gone_cases {
            GoneCases::Person => who,
            GoneCases::Warn => "the policy asks nobody".to_owned(),
        };
        add_risk(risks, &action, format!("{gone} ({word})"));
    }
}

/// A count says nothing of which cases ran.
fn uncompared_cases(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(candidate) = known.view.current_candidate() else { return };
    let counted = |row: &&Row| row.required && row.verdict == Verdict::Passed && row.checks.is_some();
    for row in known.rows.iter().filter(counted) {
        let observation = known.view.observation.as_ref();
        let observed = observation.and_then(|seen| seen.value.rows.iter().find(|of| of.clause.id == row.id));
        let why = match (&row.cases, observed) {
            (Some(cases), _) if cases.unnamed == 0 => continue,
            (Some(cases), _) => format!("{} of them have no name, there were too many", cases.unnamed),
            (None, Some(of)) if !of.compares_cases => "its manifest says that their names change".to_owned(),
            (None, Some(of)) if of.base_runs == BaseRuns::Reuse => {
                "no run on the base names them, and none was asked for (`base = \"always\"`)".to_owned()
            }
            (None, _) => "the runs name none".to_owned(),
        };
        let text = format!("the cases of {} were not compared with those of the base: {why}", row.id);
        add_risk(risks, &candidate.action, text);
    }
}

fn unseen_work(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(opened) = known.view.opened.as_ref().filter(|_| !is_proven(known)) else { return };
    let dirty = &opened.value.lacks.dirty;
    if !opened.value.base.live && !dirty.is_empty() {
        let text =
            format!("the live tree had uncommitted work in {} that no evidence saw", name_paths(dirty));
        add_risk(risks, &opened.action, text);
    }
}

/// True where all that was asked was shown on the live tree as it was.
fn is_proven(known: Known<'_>) -> bool {
    known.view.seen_after.as_ref().is_some_and(|seen| seen.value.proven)
}

fn moved_head(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(delivered) = known.view.delivered.as_ref().filter(|_| !is_proven(known)) else { return };
    let base = &known.opened.base;
    if let Some(head) = delivered.value.head.as_ref().filter(|head| **head != base.commit) {
        let text = format!(
            "HEAD of the live tree is {head}, the evidence was made on {}: the rest of the tree differs",
            base.commit
        );
        add_risk(risks, &delivered.action, text);
    }
}

fn add_confinement(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(opened) = &known.view.opened else { return };
    let text = match enforced_sandbox(known) {
        "none" => "no sandbox was in force: the worker and the verifiers could read and write whatever the user can, and use the network".to_owned(),
        tier => format!("the verifiers ran in the sandbox's tier {tier}; the worker was not confined: it could read and write whatever the user can, and use the network"),
    };
    add_risk(risks, &opened.action, text);
}

/// The weakest confinement of the runs that the rows rest on; `none` where nothing ran.
pub fn enforced_sandbox(known: Known<'_>) -> &str {
    const WEAKEST_FIRST: [&str; 3] = ["none", "partial", "full"];
    let counts = |evidence: &Evidence| {
        let digest = shown_digest(&evidence.digest());
        !evidence.attempts.is_empty() && known.rows.iter().any(|row| row.evidence.as_ref() == Some(&digest))
    };
    let ran = known.evidence.iter().map(|recorded| &recorded.value).filter(|evidence| counts(evidence));
    let tiers: Vec<&str> = ran.map(|evidence| evidence.sandbox.as_str()).collect();
    let weakest = WEAKEST_FIRST.into_iter().find(|tier| tiers.contains(tier));
    weakest.unwrap_or("none")
}

fn add_protected(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(candidate) = known.view.current_candidate() else { return };
    let touched: Vec<RepoPath> = candidate
        .value
        .changes
        .iter()
        .filter(|c| known.opened.effective.is_protected(&c.path))
        .map(|c| c.path.clone())
        .collect();
    let judges: Vec<&str> =
        known.rows.iter().filter(|row| row.judge_changed).map(|row| row.id.as_str()).collect();
    if touched.is_empty() && judges.is_empty() {
        return;
    }
    let (action, who) = who_confirmed(known, &candidate.action);
    if !touched.is_empty() {
        add_risk(risks, &action, format!("protected paths change: {} ({who})", name_paths(&touched)));
    }
    if !judges.is_empty() {
        add_risk(risks, &action, format!("the change touches what judges {} ({who})", judges.join(", ")));
    }
}

/// Who confirmed the row for protected paths, and with which action.
fn who_confirmed(known: Known<'_>, otherwise: &str) -> (String, String) {
    let row = known.rows.iter().find(|row| row.id == PROTECTED);
    let confirmed = row.filter(|row| row.verdict == Verdict::Passed).and_then(|row| {
        let by = known.evidence.iter().find(|e| Some(shown_digest(&e.value.digest())) == row.evidence)?;
        let person = by.value.attestation.as_ref().map_or("a person", |word| word.person.as_str());
        Some((by.action.clone(), format!("confirmed by {person} on {}", by.at)))
    });
    confirmed.unwrap_or_else(|| (otherwise.to_owned(), "not confirmed by a person".to_owned()))
}

fn delivery_notes(known: Known<'_>, risks: &mut Vec<Risk>) {
    if let Some(delivered) = &known.view.delivered {
        delivered
            .value
            .receipt
            .note_sentences()
            .into_iter()
            .for_each(|note| add_risk(risks, &delivered.action, note));
    }
    if let Some(undone) = &known.view.undone {
        undone.value.note_sentences().into_iter().for_each(|note| add_risk(risks, &undone.action, note));
    }
}

fn open_effects(known: Known<'_>, risks: &mut Vec<Risk>) {
    for (effect, action) in known.view.outside_effects() {
        add_risk(risks, action, effect);
    }
}

fn add_flaky(known: Known<'_>, risks: &mut Vec<Risk>) {
    let Some(observation) = known.view.observation.as_ref().map(|observed| &observed.value) else { return };
    for observed in &observation.rows {
        let clause = &observed.clause;
        let fresh = known.evidence.iter().filter(|e| is_fresh(observation, observed, &e.value));
        if !records_disagree(fresh.clone().map(|e| &e.value)) {
            continue;
        }
        if let Some(last) = fresh.max_by_key(|e| e.seq) {
            let (id, verifier) = (&clause.id, &clause.verifier);
            let text = format!(
                "the requirement {id} is flaky: its verifier {verifier} failed and passed on the same bytes"
            );
            add_risk(risks, &last.action, text);
        }
    }
}

fn cut_output(known: Known<'_>, risks: &mut Vec<Risk>) {
    for run in evidence_rested_on(known).filter(|e| e.value.is_truncated()) {
        add_risk(
            risks,
            &run.action,
            format!("the output of the verifier {} was truncated at its limit", run.value.verifier),
        );
    }
}

fn add_tripped(known: Known<'_>, risks: &mut Vec<Risk>) {
    for seen in &known.view.tripped {
        for change in &seen.value.changes {
            add_risk(risks, &seen.action, format!("while the task was open, {change}"));
        }
    }
}

fn seen_after(known: Known<'_>, risks: &mut Vec<Risk>) {
    if known.view.undone.is_none() {
        risks.extend(seen_after_delivery(known.view));
    }
}

/// What there was to tell right after the delivery.
pub fn seen_after_delivery(view: &TaskView) -> Vec<Risk> {
    let mut risks = Vec::new();
    if let Some(seen) = &view.seen_after {
        seen.value.risks().into_iter().for_each(|text| add_risk(&mut risks, &seen.action, text));
    }
    risks
}

fn unverified_findings(known: Known<'_>, risks: &mut Vec<Risk>) {
    let unverified = |noted: &&crate::domain::ledger::entry::Recorded<finding::Finding>| {
        noted.value.kind == finding::Kind::Finding && !noted.value.is_verified()
    };
    for noted in known.view.findings.iter().filter(unverified) {
        add_risk(risks, &noted.action, format!("a finding without evidence: {}", noted.value.one_line()));
    }
}

/// The evidence that the rows rest on.
fn evidence_rested_on<'a>(
    known: Known<'a>,
) -> impl Iterator<Item = &'a crate::domain::ledger::entry::Recorded<crate::domain::proof::evidence::Evidence>>
{
    known.evidence.iter().filter(move |e| {
        let reference = shown_digest(&e.value.digest());
        known.rows.iter().any(|row| row.evidence.as_deref() == Some(reference.as_str()))
    })
}

fn name_paths(paths: &[RepoPath]) -> String {
    match paths {
        [] => "no path".to_owned(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}
