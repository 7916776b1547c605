//! The brief report: for a worker whose context was cut, and as the answer of `task_status`. From the ledger
//! and the blobs alone.

use super::super::{Session, gate};
use super::of_view;
use crate::domain::change::patch::Candidate;
use crate::domain::contract::{DeliveryMode, Verification};
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::report::word;
use crate::domain::ledger::task::{TaskState, TaskView};
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use crate::domain::value::outside::plain;
use crate::domain::worker::finding::FindingObject;
use crate::domain::worker::inquiry::{AmendmentObject, QuestionObject, SHOWN};
use crate::error::Result;
use crate::store::Ledger;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The most lines of a first error.
const SAID: usize = 4;
/// The most characters of one.
const WIDTH: usize = 200;

/// What `report --brief` shows: enough to go on after a context was cut.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    schema: &'static str,
    task_id: String,
    state: TaskState,
    goal: String,
    worktree: String,
    contract: crate::domain::ledger::task::Seal,
    kind: String,
    /// As far as policy and kind leave it.
    write_scope: Vec<String>,
    /// `None`: the whole tree.
    read_scope: Option<Vec<String>>,
    verification: Verification,
    /// What policy and kind took away of the contract.
    narrowed: Vec<String>,
    delivery: DeliveryMode,
    /// All that a worker may call, those that every task has among them.
    allowed_tools: Vec<String>,
    candidate: Option<u32>,
    /// Required rows that have not passed.
    open: Vec<Row>,
    /// The runs that they rest on, with first error and logs.
    runs: Vec<Run>,
    /// What was done, each with its action.
    done: Vec<Step>,
    /// What a person was asked, with the answers.
    questions: Vec<QuestionObject>,
    /// What was wished to be different in the contract, with what became of it.
    amendments: Vec<AmendmentObject>,
    /// What was noted so far.
    findings: Vec<FindingObject>,
    /// Limits of what was looked at.
    limits: Vec<String>,
    budget: Value,
}

/// One thing that was done.
#[derive(Debug, Serialize)]
struct Step {
    text: String,
    #[serde(rename = "ref")]
    reference: String,
}

/// The brief report of a task.
pub fn brief(session: &Session, named: Option<&str>) -> Result<Brief> {
    let (ledger, view) = session.view(named)?;
    brief_of_view(session, &ledger, &view)
}

/// The brief report of a task that is known already.
pub fn brief_of_view(session: &Session, ledger: &Ledger, view: &TaskView) -> Result<Brief> {
    let report = of_view(session, ledger, view)?;
    let opened = view.opened()?;
    let open: Vec<Row> = report
        .requirements
        .into_iter()
        .filter(|row| row.required && row.verdict != Verdict::Passed)
        .collect();
    let is_open = |id: &String| open.iter().any(|row| row.id == *id);
    let runs = report.runs.into_iter().filter(|run| run.requirements.iter().any(is_open)).collect();
    Ok(Brief {
        schema: "git-tender/brief/v1",
        task_id: view.id.clone(),
        state: report.state,
        goal: report.goal,
        worktree: opened.worktree.clone(),
        contract: opened.seal.clone(),
        kind: report.kind,
        write_scope: opened.effective.write_patterns(),
        read_scope: opened.contract.read_scope.as_ref().map(|scope| scope.patterns().to_vec()),
        verification: opened.contract.verification.clone(),
        narrowed: report.narrowed,
        delivery: opened.effective.delivery,
        allowed_tools: gate::allowed(view)?,
        candidate: report.candidate,
        open,
        runs,
        done: steps(view),
        questions: report.questions,
        amendments: report.amendments,
        findings: report.findings,
        limits: report.limits,
        budget: report.budget,
    })
}

fn steps(view: &TaskView) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |at: &str, reference: &str, text: String| {
        steps.push((at.to_owned(), Step { text, reference: reference.to_owned() }))
    };
    for captured in &view.candidates {
        let Candidate { candidate, changes, .. } = &captured.value;
        add(
            &captured.at,
            &captured.action,
            format!("captured candidate {candidate} with {} changed paths", changes.len()),
        );
    }
    for run in &view.evidence {
        let outcome = word(&run.value.outcome);
        add(&run.at, &run.action, format!("{} for {}: {outcome}", run.value.verifier, run.value.requirement));
    }
    for call in view.calls.iter() {
        let text = match call.state {
            ActionState::SafeToRetry => format!("{} was cut off; it had no effect of its own", call.tool),
            ActionState::Succeeded if !call.changed.is_empty() => {
                let paths: Vec<String> = call.changed.iter().map(ToString::to_string).collect();
                format!("{} changed {}", call.tool, paths.join(", "))
            }
            _ => continue,
        };
        add(&call.at, &call.action, text);
    }
    if let Some(receipt) = &view.delivered {
        add(&receipt.at, &receipt.action, format!("delivered {} paths", receipt.value.receipt.paths.len()));
    }
    if let Some(receipt) = &view.undone {
        add(&receipt.at, &receipt.action, "the delivery was reversed".to_owned());
    }
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    steps.into_iter().map(|(_, step)| step).collect()
}

impl Brief {
    /// As it may be read for instructions: without what programs said of the candidate, and without the notes
    /// of earlier workers and the names that they gave to files. Of a row only the verdict is left. What was
    /// asked of a person stays, marked as the worker's words.
    pub fn for_instructions(self) -> Self {
        let verdict = |row: Row| Row { reason: Some(word(&row.verdict).replace('_', " ")), ..row };
        Self {
            open: self.open.into_iter().map(verdict).collect(),
            runs: Vec::new(),
            done: Vec::new(),
            findings: Vec::new(),
            limits: Vec::new(),
            ..self
        }
    }

    /// What tells a new status from one that was given before: what stands, without ids, times, references,
    /// and what counts on with every call. What was done or said again in the same words is nothing new.
    pub fn novelty(&self) -> Value {
        let each = |values: Vec<Value>| -> BTreeSet<String> { values.iter().map(Value::to_string).collect() };
        let open = self.open.iter().map(|row| json!([row.id, row.verdict, row.reason, row.checks]));
        let runs = self.runs.iter().map(|run| json!([run.verifier, run.requirements, run.end]));
        let done = self.done.iter().map(|step| json!(step.text));
        let asked = self.questions.iter().map(|asked| {
            let hints: Vec<&str> = asked.hints.iter().map(|hint| hint.text.as_str()).collect();
            json!([asked.text, asked.answer.as_ref().map(|answer| &answer.text), hints])
        });
        let wished =
            self.amendments.iter().map(|wish| json!([wish.change, wish.reason, wish.answer, wish.version]));
        let found = self.findings.iter().map(|found| json!([found.text, found.refs]));
        json!({
            "state": self.state, "contract": self.contract, "candidate": self.candidate, "limits": self.limits,
            "open": each(open.collect()), "runs": each(runs.collect()), "done": each(done.collect()),
            "asked": each(asked.collect()), "wished": each(wished.collect()), "found": each(found.collect()),
        })
    }

    /// As text for a person or a worker.
    pub fn text(&self) -> String {
        use std::fmt::Write;
        let mut out = format!("task {}: {}\n", self.task_id, plain(&self.goal, usize::MAX));
        let listed = |list: &[String]| if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
        let _ = writeln!(out, "  worktree  {}\n  may write {}", self.worktree, listed(&self.write_scope));
        if let Some(read) = &self.read_scope {
            let _ = writeln!(out, "  may read  {}", listed(read));
        }
        let Verification { allowed, forbidden } = &self.verification;
        let _ = writeln!(out, "  may check {}", listed(allowed));
        if !forbidden.is_empty() {
            let _ = writeln!(out, "  forbidden {}", forbidden.join(", "));
        }
        for line in &self.narrowed {
            let _ = writeln!(out, "  narrowed  {}", plain(line, usize::MAX));
        }
        for row in &self.open {
            let reason = plain(row.reason.as_deref().unwrap_or("not shown yet"), usize::MAX);
            let _ = writeln!(out, "  open      {}: {reason}", row.id);
            if let Some(evidence) = &row.evidence {
                let _ = writeln!(out, "            record {evidence}");
            }
        }
        // Whoever reads this may be a model: the words are those of a program that ran the candidate, and are
        // marked so.
        for run in &self.runs {
            for line in run.error_lines(SAID) {
                let _ = writeln!(out, "  printed   {}: {}", run.verifier, plain(&line, WIDTH));
            }
            for log in &run.logs {
                let _ = writeln!(out, "  log       {} {}: {}", run.verifier, log.size(), log.reference);
            }
        }
        for step in &self.done {
            let _ = writeln!(out, "  done      {} [{}]", step.text, step.reference);
        }
        let asked = self.questions.iter().flat_map(QuestionObject::lines);
        for line in asked.chain(self.amendments.iter().flat_map(AmendmentObject::lines)) {
            let _ = writeln!(out, "  {line}");
        }
        for finding in &self.findings {
            let _ = writeln!(out, "  found     in the worker's words: {}", finding.line());
        }
        for limit in &self.limits {
            let _ = writeln!(out, "  limit     {}", plain(limit, SHOWN));
        }
        for (key, share) in self.budget.as_object().into_iter().flatten() {
            let used = share["used"].as_str().map_or_else(|| share["used"].to_string(), str::to_owned);
            let _ = writeln!(out, "  budget    {key}: {used} of {} used", share["limit"]);
        }
        out
    }
}
