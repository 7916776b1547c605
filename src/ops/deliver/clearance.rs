//! What has to hold before the live tree is even looked at: the rows pass, nothing waits for an answer, and
//! the branch is the one that the task was opened on.

use super::options::Place;
use crate::domain::delivery::Clearance;
use crate::domain::proof::verdict::{REQUIREMENTS, Row};
use crate::error::{Code, Failure, Result};
use crate::task::effect::{DeliveryEffect, findings};
use crate::task::held::TaskWrite;
use crate::task::verification::with_next_step;

/// Of two things that have to hold, both are told where neither does.
pub(super) fn tell_both<T>(first: Result<T>, second: Result<()>) -> Result<T> {
    match (first, second) {
        (Ok(value), second) => second.map(|()| value),
        (Err(first), second) => {
            let all = std::iter::once(first.clone()).chain(second.err());
            Err(Failure::first_of(all).unwrap_or(first))
        }
    }
}

/// What has to hold before the live tree is even looked at.
pub(super) fn clear_delivery(task: &TaskWrite<'_>, rows: &[Row], place: Place) -> Result<Clearance> {
    let clearance = tell_both(require_shown(task, rows), task.view.require_answered())?;
    if DeliveryEffect::of_task(task) == DeliveryEffect::Tree {
        require_branch(task, place)?;
    }
    Ok(clearance)
}

/// What the rows have to show.
pub(super) fn require_shown(task: &TaskWrite<'_>, rows: &[Row]) -> Result<Clearance> {
    let candidate = &task.view.last_candidate()?.value;
    let explores = findings::is_meant(task);
    if candidate.changes.is_empty() && !explores {
        return Err(Failure::new(
            Code::VerificationFailed,
            "the candidate changes nothing, so there is nothing to deliver",
        )
        .subject(task.view.id.clone())
        .with_detail(&REQUIREMENTS, rows)
        .remedy(
            "Make the change in the task's worktree, then submit it.",
            ["git", "tender", "submit", &task.view.id],
        ));
    }
    let clearance = Clearance::from_rows(candidate.patch.manifest_sha256, rows)
        .map_err(|failure| with_next_step(&task.view.id, rows, failure))?;
    if explores {
        findings::require_something(task, rows)?;
    }
    Ok(clearance)
}

fn require_branch(task: &TaskWrite<'_>, place: Place) -> Result<()> {
    let opened = task.view.opened_terms()?;
    let now = task.session.live_repository(opened)?.current_branch()?;
    if now == opened.home.branch {
        return Ok(());
    }
    let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
    let (then, now) = (name(&opened.home.branch), name(&now));
    let id = &task.view.id;
    let say = |code| {
        Failure::new(
            code,
            format!("the task was opened on {then}, and {now} is checked out in {} now", opened.home.top),
        )
        .subject(opened.home.top.clone())
        .expected(&then, &now)
    };
    match place {
        Place::AsOpened => Err(say(Code::ConfirmationRequired).remedy(
            "Check the branch out again, or confirm that it goes here.",
            ["git", "tender", "deliver", id, "--here"],
        )),
        Place::Here => match task
            .session
            .person
            .confirm(&format!("Deliver {id} to {now} although it was opened on {then}?"))
        {
            Some(true) => Ok(()),
            _ => Err(say(Code::PermissionDenied).remedy(
                "Confirming another branch is a person's call: run it in a terminal and type yes.",
                ["git", "tender", "deliver", id, "--here"],
            )),
        },
    }
}
