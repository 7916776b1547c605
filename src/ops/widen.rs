//! `amend`: a person widens the scope of a task. It becomes the next version of the contract, within the
//! policy, by the same way as a worker's wish that a person agrees to.

use super::Session;
use crate::domain::contract::amendment::Proposal;
use crate::domain::ledger::report::TaskObject;
use crate::domain::value::outside::plain_line;
use crate::domain::worker::inquiry::SHOWN;
use crate::error::{Code, Failure, Result};
use crate::task::amendment::{Accepted, agree_to, next_version};
use crate::task::session::{typed_scope, unconfirmed};
use crate::task::task_object::known_task_object;
use serde_json::{Map, json};
use std::path::Path;

/// Adds paths, as they were typed in `folder`, to what a task may change.
pub fn widen_scope(
    session: &Session,
    named: Option<&str>,
    typed: &[String],
    folder: &Path,
) -> Result<TaskObject> {
    let mut task = session.write(named)?;
    task.require_active()?;
    let id = task.view.id.clone();
    let opened = task.view.opened_terms()?;
    let mut scope = opened.contract.write_scope.patterns().to_vec();
    let added: Vec<String> =
        typed_scope(session, typed, folder)?.into_iter().filter(|pattern| !scope.contains(pattern)).collect();
    if added.is_empty() {
        return Err(Failure::new(Code::ArgumentsInvalid, format!("the scope of {id} has that already"))
            .subject("--scope")
            .expected("a path that may not change yet", &scope)
            .remedy("See what the contract says.", ["git", "tender", "report", "--brief", &id]));
    }
    scope.extend(added.iter().cloned());
    let document = session.blobs().get(&opened.seal.sha256)?;
    let change = Map::from_iter([("writeScope".to_owned(), json!(scope))]);
    let proposal = Proposal::new(&document, &change, "a person widens the scope")?;
    let mut action = task.action("amend", &json!({ "writeScope": added }));
    let next = match next_version(&task, &proposal) {
        Ok(next) => next,
        Err(failure) => return Err(action.deny(&mut task.ledger, failure)),
    };
    let shown = plain_line(&added.join(", "), SHOWN);
    let narrowed: String =
        next.opened.narrowed.iter().map(|line| format!("\n{}", plain_line(line, SHOWN))).collect();
    let question = format!(
        "Let {id} change {shown}, too?{narrowed}\nThis makes version {} of its contract.",
        next.opened.seal.version
    );
    if session.person.confirm(&question) != Some(true) {
        let call = ["git", "tender", "amend", &id, "--scope", &added[0]];
        let failure = unconfirmed("a wider scope is a person's to allow", &id, call);
        return Err(action.deny(&mut task.ledger, failure));
    }
    action.dispatch(&mut task.ledger)?;
    let Accepted { record, notes } = match agree_to(&mut task, action.id(), next) {
        Ok(accepted) => accepted,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    task.finish(action, &record)?;
    drop(task);
    let mut object = known_task_object(session, &id)?;
    object.notes.extend(notes);
    Ok(object)
}
