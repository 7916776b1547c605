//! A ledger that was set back: a copy of the store from before took its place, and rows are missing.
//!
//! Each task's worktree has the head of the ledger in its own git directory, as it was when that task wrote
//! last. Where the ledger has no such row, nothing is written any more until a person goes on without what is
//! missing. Looking is still possible, and says so.

use super::Session;
use super::action::{ActionOrigin, RunningAction};
use super::session::unconfirmed;
use crate::domain::ledger::head::{HeadAnchor, KeptHeads, LedgerHead, LostHead};
use crate::domain::ledger::record::Record;
use crate::error::{Code, Failure, Result};
use crate::git::anchor::find_anchors;
use crate::store::Ledger;
use serde_json::{Value, json};

/// Heads that were kept outside the store, and are not in the ledger.
pub fn find_lost_heads(session: &Session) -> Result<Vec<LostHead>> {
    Ok(find_lost(session)?.into_iter().map(|(lost, _)| lost).collect())
}

/// Refuses (`store.rolled_back`) where the ledger was set back.
pub fn refuse_rollback(session: &Session) -> Result<()> {
    let lost = find_lost_heads(session)?;
    if lost.is_empty() { Ok(()) } else { Err(rolled_back(session, &lost)?) }
}

/// The refusal to write to a ledger that was set back, with what it lacks.
fn rolled_back(session: &Session, lost: &[LostHead]) -> Result<Failure> {
    let head = session.ledger()?.map_or(Ok(None), |ledger| ledger.head())?;
    let end = head.map_or("it has no rows".to_owned(), |head| format!("it ends with row {}", head.seq));
    let missing: Vec<String> = lost.iter().map(LostHead::clause).collect();
    let path = session.layout.ledger().display().to_string();
    Ok(Failure::new(
        Code::StoreRolledBack,
        format!("the ledger was set back: {end}, and {}", missing.join("; ")),
    )
    .subject(path)
    .detail("head", head)
    .detail("missing", lost)
    .remedy(
        "Put the newer ledger back, if you have it. Or go on without what is missing, which a person has to say.",
        ACCEPT,
    ))
}

const ACCEPT: [&str; 4] = ["git", "tender", "recover", "--accept-rollback"];

/// On a person's word the ledger goes on as it is; it says which heads it had lost.
pub fn accept_rollback(session: &Session) -> Result<Vec<LostHead>> {
    let found = find_lost(session)?;
    let lost: Vec<LostHead> = found.iter().map(|(lost, _)| lost.clone()).collect();
    if lost.is_empty() {
        return Ok(lost);
    }
    let failure = rolled_back(session, &lost)?;
    let question = format!("{}. Go on without what is missing?", failure.message());
    if session.person.confirm(&question) != Some(true) {
        let what = "going on with a ledger that was set back is a person's call";
        return Err(
            unconfirmed(what, &session.layout.ledger().display().to_string(), ACCEPT).details_of(&failure)
        );
    }
    let mut ledger = Ledger::create(&session.layout)?;
    let channel = ActionOrigin { origin: &session.origin, secrets: session.secrets() };
    let params = json!({ "acceptRollback": lost });
    let mut action = RunningAction::new(session.actor, None, "recover", &params, Value::Null, channel);
    let record = Record::RollbackAccepted { lost: lost.clone() };
    ledger.atomically(|ledger| {
        action.dispatch(ledger)?;
        action.succeed(ledger, &record)
    })?;
    for (_, anchor) in found {
        ledger.keep_head_at(Some(anchor));
        ledger.keep_head_outside();
    }
    Ok(lost)
}

fn find_lost(session: &Session) -> Result<Vec<(LostHead, HeadAnchor)>> {
    // The anchors first: the ledger only grows, so that whatever they name is in it by then.
    let anchors = find_anchors(&session.repository)?;
    if anchors.is_empty() {
        return Ok(Vec::new());
    }
    let ledger = session.ledger()?;
    let mut found = Vec::new();
    let has = |head: &LedgerHead| ledger.as_ref().map_or(Ok(false), |ledger| ledger.has_head(head));
    for anchor in anchors {
        // A file that cannot be read as heads says nothing.
        let Ok(kept) = anchor.text.parse::<KeptHeads>() else { continue };
        for head in kept.due_heads(&anchor.place.boot) {
            if !has(&head)? {
                let task_id = anchor.worktree.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let worktree = anchor.worktree.display().to_string();
                found.push((LostHead { task_id, worktree, head }, anchor.place.clone()));
                break;
            }
        }
    }
    Ok(found)
}
