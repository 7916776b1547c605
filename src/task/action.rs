//! An action on its way through its states: every row that it writes to the ledger goes through the one
//! transition function.

use crate::domain::contract::budget::Cost;
use crate::domain::delivery::decision::Decision;
use crate::domain::ledger::action::{ActionState, Actor};
use crate::domain::ledger::entry::{Entry, EntryBody};
use crate::domain::ledger::record::Record;
use crate::domain::ledger::row_json::RowJson;
use crate::domain::value::digest::Sha256;
use crate::error::{Failure, Result};
use crate::process::Secrets;
use crate::store::{Draft, Ledger};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// An action on its way. Every row that it writes goes through the one transition function.
#[derive(Debug)]
#[must_use = "an action that gets no result looks like a crash"]
pub struct RunningAction {
    template: EntryBody,
    state: Option<ActionState>,
    /// What must stand in no failure that it ends with.
    secrets: Secrets,
}

/// How whoever acts comes in, and which values must be seen nowhere of what they bring.
#[derive(Debug, Clone, Copy)]
pub struct ActionOrigin<'a> {
    pub origin: &'a str,
    pub secrets: &'a Secrets,
}

impl RunningAction {
    /// A new action with an id of its own.
    pub fn new(
        actor: Actor,
        task: Option<&str>,
        tool: &str,
        params: &impl Serialize,
        basis: Value,
        channel: ActionOrigin<'_>,
    ) -> Self {
        Self {
            template: EntryBody {
                task: task.map(str::to_owned),
                actor,
                action: fresh_id("a"),
                tool: tool.to_owned(),
                state: ActionState::Planned,
                params_sha256: Sha256::of_json(params),
                basis: basis.into(),
                origin: channel.origin.to_owned(),
                result: RowJson::null(),
            },
            state: None,
            secrets: channel.secrets.clone(),
        }
    }

    /// An action that a crash left unfinished, to be reconciled by the harness. `last` is its last row.
    pub fn resume(last: &Entry) -> Self {
        Self {
            template: EntryBody {
                task: last.task.clone(),
                actor: Actor::Harness,
                action: last.action.clone(),
                tool: last.tool.clone(),
                state: last.state,
                params_sha256: last.params_sha256,
                basis: last.basis.clone(),
                origin: "recovery".to_owned(),
                result: RowJson::null(),
            },
            state: Some(last.state),
            secrets: Secrets::new(&[]),
        }
    }

    pub fn id(&self) -> &str {
        &self.template.action
    }

    /// The row that takes the action to `state`.
    fn advance(&mut self, state: ActionState, result: RowJson) -> Result<Draft> {
        self.state = Some(match self.state {
            None if state == ActionState::Planned => state,
            None => return Err(Failure::internal("an action begins as planned")),
            Some(now) => now.transition_to(state)?,
        });
        Ok(EntryBody { state, result, ..self.template.clone() }.into())
    }

    fn write(
        &mut self,
        ledger: &mut Ledger,
        rows: impl IntoIterator<Item = (ActionState, RowJson)>,
    ) -> Result<Vec<Entry>> {
        let before = self.state;
        let drafts = rows
            .into_iter()
            .map(|(state, result)| self.advance(state, result))
            .collect::<Result<Vec<_>>>()?;
        self.append(ledger, before, &drafts)
    }

    /// A state counts only once the ledger has it: where that fails, the action is still in the one
    /// before.
    fn append(
        &mut self,
        ledger: &mut Ledger,
        before: Option<ActionState>,
        drafts: &[Draft],
    ) -> Result<Vec<Entry>> {
        let appended = ledger.append(drafts);
        if appended.is_err() {
            self.state = before;
        }
        appended
    }

    /// Written down on arrival, before anything is decided about it.
    pub fn arrive(&mut self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        let value = record.to_row()?;
        self.write(ledger, [(ActionState::Planned, value)]).map(|_| ())
    }

    /// Planned (unless it is that already), authorized, dispatched: in one transaction, before any
    /// effect.
    pub fn dispatch(&mut self, ledger: &mut Ledger) -> Result<()> {
        self.dispatch_as(ledger, RowJson::null())
    }

    /// The same, with a record of what it is dispatched with.
    pub fn dispatch_with(&mut self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        self.dispatch_as(ledger, record.to_row()?)
    }

    fn dispatch_as(&mut self, ledger: &mut Ledger, result: RowJson) -> Result<()> {
        let planned = self.state.is_none().then_some((ActionState::Planned, RowJson::null()));
        let rows = [(ActionState::Authorized, RowJson::null()), (ActionState::Dispatched, result)];
        self.write(ledger, planned.into_iter().chain(rows)).map(|_| ())
    }

    /// Writes rows that need no wait for the disk: those before a row that precedes the effect, or
    /// after the one from which recovery goes on in the same way.
    pub fn unawaited<T>(
        &mut self,
        ledger: &mut Ledger,
        write: impl FnOnce(&mut Self, &mut Ledger) -> Result<T>,
    ) -> Result<T> {
        let before = self.state;
        let written = ledger.commit_unawaited(|ledger| write(self, ledger));
        if written.is_err() {
            self.state = before;
        }
        written
    }

    /// A record of progress: the action stays in its state.
    pub fn note(&self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        let state = self.state.unwrap_or(ActionState::Planned);
        let row = EntryBody { state, result: record.to_row()?, ..self.template.clone() };
        ledger.append(&[row.into()]).map(|_| ())
    }

    /// The effect took place. What a worker wrote is kept without any value that must be seen nowhere.
    pub fn succeed(&mut self, ledger: &mut Ledger, record: &Record) -> Result<Vec<Entry>> {
        let kept = record.with_words_kept(&|text| self.secrets.redact_text(text));
        let (before, value) = (self.state, kept.to_row()?);
        let mut row = self.advance(ActionState::Succeeded, value)?;
        row.key = record.lookup_key();
        self.append(ledger, before, &[row])
    }

    /// The effect took place and left several records: all but the last are notes.
    pub fn succeed_with(
        &mut self,
        ledger: &mut Ledger,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Vec<Entry>> {
        let mut rows = Vec::new();
        for record in records {
            let body = EntryBody { result: record.to_row()?, ..self.template.clone() };
            rows.push(Draft { body, key: record.lookup_key() });
        }
        let last = rows.pop().ok_or_else(|| Failure::internal("an action succeeded without a record"))?;
        let before = self.state;
        self.advance(ActionState::Succeeded, RowJson::null())?;
        rows.push(last);
        for row in &mut rows {
            row.body.state = ActionState::Succeeded;
        }
        self.append(ledger, before, &rows)
    }

    /// It failed and changed nothing. Gives the failure back with a reference to the action.
    pub fn fail(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::FailedWithoutEffect], None, failure)
    }

    /// The same for a run or a call, with what it took.
    pub fn fail_charged(&mut self, ledger: &mut Ledger, cost: Cost, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::FailedWithoutEffect], Some(cost), failure)
    }

    /// Refused before any effect. Gives the failure back with a reference to the action.
    pub fn deny(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        let states: &[ActionState] = match self.state {
            None => &[ActionState::Planned, ActionState::Denied],
            Some(_) => &[ActionState::Denied],
        };
        self.end_with(ledger, states, None, failure)
    }

    /// It cannot be said whether the effect took place; recovery will look.
    pub fn lose(&mut self, ledger: &mut Ledger, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::OutcomeUnknown], None, failure)
    }

    /// The same for a call, with what it took.
    pub fn lose_charged(&mut self, ledger: &mut Ledger, cost: Cost, failure: Failure) -> Failure {
        self.end_with(ledger, &[ActionState::OutcomeUnknown], Some(cost), failure)
    }

    fn end_with(
        &mut self,
        ledger: &mut Ledger,
        states: &[ActionState],
        cost: Option<Cost>,
        failure: Failure,
    ) -> Failure {
        let failure = self.fit_to_keep(failure).reference(self.id());
        let record = Record::Failure { failure: failure.clone(), cost };
        let result = match record.to_row() {
            Ok(result) => result,
            Err(second) => return failure.also([second]),
        };
        match self.write(ledger, states.iter().map(|state| (*state, result.clone()))) {
            Ok(_) => failure,
            Err(second) => failure.also([second]),
        }
    }

    /// A failure quotes what was given to whoever failed, and what programs said: secrets of that are
    /// not kept.
    fn fit_to_keep(&self, failure: Failure) -> Failure {
        let Ok(told) = serde_json::to_value(&failure) else { return failure };
        let kept = self.fit(&told);
        if kept == told {
            return failure;
        }
        // A word of the failure's own that is somebody's secret leaves nothing of it but its code.
        serde_json::from_value(kept).unwrap_or_else(|_| Failure::new(failure.code(), "it cannot be shown"))
    }

    fn fit(&self, value: &Value) -> Value {
        let text = |text: &String| self.secrets.redact_text(text);
        match value {
            Value::String(own) => Value::String(text(own)),
            Value::Array(items) => items.iter().map(|item| self.fit(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(key, own)| (text(key), self.fit(own))).collect(),
            other => other.clone(),
        }
    }

    /// Recovery begins to look; from here on the action ends as succeeded, safe to retry, or a person's
    /// decision.
    pub fn reconcile(&mut self, ledger: &mut Ledger) -> Result<()> {
        let steps = match self.state {
            Some(ActionState::Dispatched) => vec![ActionState::OutcomeUnknown, ActionState::Reconcile],
            Some(ActionState::OutcomeUnknown) => vec![ActionState::Reconcile],
            Some(ActionState::Planned) => {
                vec![
                    ActionState::Authorized,
                    ActionState::Dispatched,
                    ActionState::OutcomeUnknown,
                    ActionState::Reconcile,
                ]
            }
            Some(ActionState::Authorized) => {
                vec![ActionState::Dispatched, ActionState::OutcomeUnknown, ActionState::Reconcile]
            }
            _ => vec![],
        };
        self.write(ledger, steps.into_iter().map(|state| (state, RowJson::null()))).map(|_| ())
    }

    /// Recovery cannot find out; a person has to say.
    pub fn need_decision(&mut self, ledger: &mut Ledger, decision: &Decision) -> Result<()> {
        if self.state == Some(ActionState::NeedsHumanDecision) {
            return Ok(());
        }
        self.reconcile(ledger)?;
        let value = Record::Decision(Box::new(decision.clone())).to_row()?;
        self.write(ledger, [(ActionState::NeedsHumanDecision, value)]).map(|_| ())
    }

    /// A person decides what recovery cannot find out.
    pub fn decided(
        &mut self,
        ledger: &mut Ledger,
        person: Actor,
        end: ActionState,
        record: &Record,
    ) -> Result<Vec<Entry>> {
        self.reconcile(ledger)?;
        self.template.actor = person;
        self.template.origin = "cli".to_owned();
        let (before, value) = (self.state, record.to_row()?);
        let mut rows = Vec::new();
        if self.state != Some(ActionState::NeedsHumanDecision) {
            rows.push(self.advance(ActionState::NeedsHumanDecision, RowJson::null())?);
        }
        let mut row = self.advance(end, value)?;
        row.key = record.lookup_key();
        rows.push(row);
        self.append(ledger, before, &rows)
    }

    /// Recovery found that nothing took place.
    pub fn safe_to_retry(&mut self, ledger: &mut Ledger, record: &Record) -> Result<()> {
        let value = record.to_row()?;
        self.write(ledger, [(ActionState::SafeToRetry, value)]).map(|_| ())
    }
}

/// An id that nobody else has: a letter and 16 random hex digits.
pub fn fresh_id(prefix: &str) -> String {
    format!("{prefix}{}", random_hex(8))
}

/// `bytes` random bytes in hex, from the kernel.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    let mut filled = 0;
    while filled < bytes {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(_) => break,
        }
    }
    buffer.iter().map(|b| format!("{b:02x}")).collect()
}

/// A duration as the ledger counts it.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
