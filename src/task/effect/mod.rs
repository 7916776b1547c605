//! The effects that a task can have beyond the ledger.
//!
//! Each has a file, with the same verbs where they make sense: `plan` looks, `carry_out` does it under an
//! action that was dispatched, `resume` brings one to its end that was cut off, `undo` reverses it, `decide`
//! ends it on a person's word. A delivery is one of three, [`DeliveryEffect`]; what a crash leaves behind is
//! one of [`UnfinishedEffect`](cut_off::UnfinishedEffect).

pub mod advance;
pub mod cut_off;
pub mod findings;
pub mod fix;
pub mod patch;
pub mod refs;
pub mod tree;

use crate::domain::delivery::Clearance;
use crate::domain::delivery::decision::{CHOICES, Choice};
use crate::domain::delivery::receipt::Receipt;
use crate::domain::ledger::action::ActionState;
use crate::domain::ledger::entry::Entry;
use crate::domain::ledger::objects::Reconciled;
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::DeliveryObject;
use crate::domain::ledger::task::TaskView;
use crate::error::{Code, Failure, Result};
use crate::store::Ledger;
use crate::task::Session;
use crate::task::action::RunningAction;
use crate::task::held::TaskWrite;
use crate::task::view::load;

/// Whether an effect is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    #[default]
    Yes,
    /// Only say what would be written.
    DryRun,
}

/// What the delivery of a task changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryEffect {
    /// The live tree.
    Tree,
    /// A ref, here or on a remote.
    Refs,
    /// Nothing: the report is what an exploration delivers.
    Findings,
}

impl DeliveryEffect {
    /// What the task will change.
    pub fn of_task(task: &TaskWrite<'_>) -> Self {
        match (findings::is_meant(task), task.view.publishes()) {
            (true, _) => Self::Findings,
            (false, true) => Self::Refs,
            (false, false) => Self::Tree,
        }
    }

    /// What a delivery has changed; refused where there is nothing to take back.
    pub fn of_receipt(task: &TaskWrite<'_>, receipt: &Receipt) -> Result<Self> {
        findings::refuse_undo(task)?;
        Ok(if receipt.publication.is_some() { Self::Refs } else { Self::Tree })
    }

    /// Delivers a cleared candidate, under an action that was dispatched.
    pub fn carry_out(
        self,
        task: &mut TaskWrite<'_>,
        action: RunningAction,
        clearance: &Clearance,
        evidence: Vec<String>,
        write: Write,
    ) -> Result<DeliveryObject> {
        match self {
            Self::Tree => tree::carry_out(task, action, clearance, evidence, write),
            Self::Refs => refs::carry_out(task, action, clearance, evidence, write),
            Self::Findings => findings::carry_out(task, action, clearance, evidence, write),
        }
    }

    /// Reverses a delivery, under an action that was dispatched.
    pub fn undo(
        self,
        task: &mut TaskWrite<'_>,
        action: RunningAction,
        receipt: &Receipt,
        write: Write,
    ) -> Result<DeliveryObject> {
        match self {
            Self::Tree => tree::undo(task, action, receipt, write),
            Self::Refs => refs::undo(task, action, receipt, write),
            Self::Findings => Err(Failure::internal("an exploration has nothing to take back")),
        }
    }
}

/// An action that was cut off, as whoever brings it to its end holds it.
#[derive(Debug)]
pub struct CutOff<'a> {
    session: &'a Session,
    ledger: Ledger,
    action: RunningAction,
    /// The state in which it was found.
    state: ActionState,
    view: Option<TaskView>,
    /// What was found out.
    pub found: Reconciled,
}

impl<'a> CutOff<'a> {
    /// Takes an action up, with its rows. The caller holds its locks. `None` where whoever had them before
    /// has ended it meanwhile: the list of the unfinished was read without them.
    pub fn take_up(session: &'a Session, action: &str) -> Result<Option<(Self, Vec<Entry>)>> {
        let ledger = Ledger::create(&session.layout)?;
        let rows = ledger.action(action)?;
        let last = rows.last().ok_or_else(|| {
            let message = format!("the ledger is damaged: the unfinished action {action} has no rows");
            Failure::new(Code::StoreCorrupt, message).subject(action)
        })?;
        if last.state.is_final() {
            return Ok(None);
        }
        let view = last.task.as_deref().map(|task| load(&ledger, task)).transpose()?.flatten();
        let (action, state, found) = (RunningAction::resume(last), last.state, Reconciled::new(last));
        Ok(Some((Self { session, ledger, action, state, view, found }, rows)))
    }

    /// What is known of its task.
    pub fn view(&self) -> Option<&TaskView> {
        self.view.as_ref()
    }

    /// Ends it as one that has changed nothing.
    fn end_untouched(&mut self, why: &str) -> Result<()> {
        self.action.reconcile(&mut self.ledger)?;
        self.action.safe_to_retry(&mut self.ledger, &Record::Done { text: why.to_owned() })
    }
}

/// The question and its answers, as lines.
pub fn choice_lines(failure: &Failure) -> Vec<String> {
    let choices = failure.read_detail(&CHOICES).unwrap_or_default();
    let line = |choice: &Choice| format!("{}: {}", choice.answer, choice.consequence);
    std::iter::once(failure.message().to_owned()).chain(choices.iter().map(line)).collect()
}
