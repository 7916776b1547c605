//! The brief report: for a worker whose context was cut, and as the answer of `task_status`.

use crate::domain::change::patch::Candidate;
use crate::domain::contract::tool::WorkerTool;
use crate::domain::contract::{DeliveryMode, Verification};
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::inquiries::{AmendmentObject, QuestionObject};
use crate::domain::ledger::record::{Opened, Seal};
use crate::domain::ledger::report::{FindingObject, Report, word_of};
use crate::domain::ledger::task::{TaskState, TaskView};
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What `report --brief` shows: enough to go on after a context was cut.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    pub schema: &'static str,
    pub task_id: String,
    pub state: TaskState,
    pub goal: String,
    pub worktree: String,
    pub contract: Seal,
    pub kind: String,
    /// As far as policy and kind leave it.
    pub write_scope: Vec<String>,
    /// `None`: the whole tree.
    pub read_scope: Option<Vec<String>>,
    pub verification: Verification,
    /// One sentence for each thing that policy and kind took away of the contract.
    pub narrowed: Vec<String>,
    pub delivery: DeliveryMode,
    /// All that a worker may call, those that every task has among them.
    pub allowed_tools: Vec<&'static str>,
    pub candidate: Option<u32>,
    /// Required rows that have not passed.
    pub open: Vec<Row>,
    /// The runs that they rest on, with first error and logs.
    pub runs: Vec<Run>,
    /// The steps so far, each with its action.
    pub done: Vec<BriefStep>,
    /// The questions to a person, with the answers.
    pub questions: Vec<QuestionObject>,
    /// The proposed amendments, with the decisions.
    pub amendments: Vec<AmendmentObject>,
    /// The findings so far.
    pub findings: Vec<FindingObject>,
    /// Limits of what was looked at.
    pub limits: Vec<String>,
    pub budget: Value,
}

/// One thing that was done.
#[derive(Debug, Serialize)]
pub struct BriefStep {
    pub text: String,
    #[serde(rename = "ref")]
    pub reference: String,
}

impl Brief {
    pub fn new(report: Report, view: &TaskView, opened: &Opened, allowed_tools: &[WorkerTool]) -> Self {
        let open: Vec<Row> = report
            .requirements
            .into_iter()
            .filter(|row| row.required && row.verdict != Verdict::Passed)
            .collect();
        let is_open = |id: &String| open.iter().any(|row| row.id == *id);
        let runs = report.runs.into_iter().filter(|run| run.requirements.iter().any(is_open)).collect();
        Self {
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
            allowed_tools: allowed_tools.iter().copied().map(WorkerTool::name).collect(),
            candidate: report.candidate,
            open,
            runs,
            done: brief_steps(view),
            questions: report.questions,
            amendments: report.amendments,
            findings: report.findings,
            limits: report.limits,
            budget: report.budget,
        }
    }

    /// As it may be read for instructions: without what programs said of the candidate, and without the notes
    /// of earlier workers and the names that they gave to files. Of a row only the verdict is left. What was
    /// asked of a person stays, marked as the worker's words.
    pub fn for_instructions(self) -> Self {
        let verdict = |row: Row| Row { reason: Some(word_of(&row.verdict).replace('_', " ")), ..row };
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
    pub fn novelty_key(&self) -> Value {
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
}

/// The steps that a task took, in the order of time.
fn brief_steps(view: &TaskView) -> Vec<BriefStep> {
    let mut steps = Vec::new();
    let mut add = |at: &str, reference: &str, text: String| {
        steps.push((at.to_owned(), BriefStep { text, reference: reference.to_owned() }))
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
        let outcome = word_of(&run.value.outcome);
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
