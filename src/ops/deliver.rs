//! `deliver`: the gate, the comparison with the live tree, the write. All or nothing; and a second time it writes nothing.

use super::live::{Facts, IndexAtBase, LedgerJournal, home};
use super::session::{Progress, RunningAction, TaskWrite};
use super::{Session, report, verify};
use crate::domain::delivery::{Clearance, plan, refused};
use crate::domain::receipt::{Outcome, Receipt};
use crate::domain::report::{DeliveredPath, DeliveryObject};
use crate::domain::task::{Record, TaskState};
use crate::domain::verdict::Row;
use crate::error::{Code, Failure, Result};
use crate::git::apply::{self, Delivery, Keeper};
use crate::git::{Repository, live};
use serde_json::json;
use std::path::Path;

/// How to deliver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to write.
    pub write: Write,
    /// Where to.
    pub place: Place,
}

/// Whether to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Write {
    /// Write.
    #[default]
    Yes,
    /// Only say what would be written.
    DryRun,
}

impl From<bool> for Write {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::DryRun }
    }
}

/// Which branch may be checked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// The one of when the task was opened.
    #[default]
    AsOpened,
    /// Whichever there is now; a person confirms it.
    Here,
}

impl From<bool> for Place {
    fn from(here: bool) -> Self {
        if here { Self::Here } else { Self::AsOpened }
    }
}

/// Delivers the last candidate into the live tree that the task was opened from.
pub fn deliver(session: &Session, named: Option<&str>, options: &Options, _progress: Progress<'_>) -> Result<DeliveryObject> {
    let mut task = session.write_live(named)?;
    if let (Some(delivered), None) = (&task.view.delivered, &task.view.undone) {
        return Ok(DeliveryObject::new(&task.view.id, TaskState::Completed, &delivered.value.receipt).already());
    }
    task.require_active()?;
    task.view.last_candidate()?;
    let observation = verify::observe(&mut task)?;
    let evidence = report::evidence(&task.ledger, &task.view)?;
    let rows = report::judge(&session.blobs(), &observation, &evidence);
    let params = json!({ "manifestSha256": observation.manifest_sha256, "dryRun": options.write == Write::DryRun, "here": options.place == Place::Here });
    let mut action = RunningAction::new(session.actor, Some(&task.view.id), "deliver", &params, task.view.basis());
    let clearance = match gate(&task, &rows, options) {
        Ok(clearance) => clearance,
        Err(failure) => return Err(action.deny(&mut task.ledger, failure)),
    };
    action.dispatch(&mut task.ledger)?;
    let evidence = rows.iter().filter_map(|row| row.evidence.clone()).collect();
    write(&mut task, action, clearance, evidence, options)
}

/// What has to hold before the live tree is even looked at.
fn gate(task: &TaskWrite<'_>, rows: &[Row], options: &Options) -> Result<Clearance> {
    let candidate = &task.view.last_candidate()?.value;
    if candidate.changes.is_empty() {
        return Err(Failure::new(Code::VerificationFailed, "the candidate changes nothing, so there is nothing to deliver")
            .subject(task.view.id.clone())
            .detail("requirements", rows)
            .remedy("Make the change in the task's worktree, then submit it.", ["git", "tender", "submit", &task.view.id]));
    }
    let clearance = Clearance::from_rows(candidate.patch.manifest_sha256, rows)
        .map_err(|failure| verify::with_remedy(&task.view.id, rows, failure))?;
    same_branch(task, options.place)?;
    Ok(clearance)
}

fn same_branch(task: &TaskWrite<'_>, place: Place) -> Result<()> {
    let opened = task.view.opened()?;
    let now = home(task.session.repository.environment(), opened)?.branch()?;
    if now == opened.home.branch {
        return Ok(());
    }
    let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
    let (then, now) = (name(&opened.home.branch), name(&now));
    let id = &task.view.id;
    let say = |code| {
        Failure::new(code, format!("the task was opened on {then}, and {now} is checked out in {} now", opened.home.top))
            .subject(opened.home.top.clone())
            .expected(&then, &now)
    };
    match place {
        Place::AsOpened => Err(say(Code::ConfirmationRequired)
            .remedy("Check the branch out again, or confirm that it goes here.", ["git", "tender", "deliver", id, "--here"])),
        Place::Here => match task.session.person.confirm(&format!("Deliver {id} to {now} although it was opened on {then}?")) {
            Some(true) => Ok(()),
            _ => Err(say(Code::PermissionDenied).remedy(
                "Confirming another branch is a person's call: run it in a terminal and type yes.",
                ["git", "tender", "deliver", id, "--here"],
            )),
        },
    }
}

fn write(
    task: &mut TaskWrite<'_>,
    mut action: RunningAction,
    clearance: Clearance,
    evidence: Vec<String>,
    options: &Options,
) -> Result<DeliveryObject> {
    let session = task.session;
    let opened = task.view.opened()?.clone();
    let candidate = task.view.last_candidate()?.value.clone();
    let id = task.view.id.clone();
    let quarantine = session.quarantine(&id);
    let facts = |home: &Repository| -> Result<(Facts, IndexAtBase)> {
        let head = home.resolve("HEAD", "commit")?;
        let index = IndexAtBase::read(&session.blobs(), &opened, &candidate.changes)?;
        Ok((Facts { head, evidence, undoes: false }, index))
    };
    let prepared = home(session.repository.environment(), &opened).and_then(|home| facts(&home).map(|(facts, index)| (home, facts, index)));
    let (home, facts, index) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return Err(action.fail(&mut task.ledger, failure)),
    };
    let top = Path::new(&opened.home.top);
    let mut journal = LedgerJournal { ledger: &mut task.ledger, action: &mut action, planned: None, facts, open: false };
    let outcome = (|| {
        let terms = live::Terms {
            repository: &home,
            quarantine: Some(&quarantine),
            top,
            changes: &candidate.changes,
            before_tree: &candidate.base_tree,
            after_tree: &candidate.tree,
            drivers: &candidate.base_tree,
            former: None,
            settings: live::Settings::read(&home)?,
        };
        let survey = live::survey(&terms)?;
        let plan = plan(&candidate.changes, &survey.facts, &|path| index.of(path)).map_err(|conflicts| conflict(&id, &refused(&conflicts)))?;
        if options.write == Write::DryRun {
            return Ok(Written::Preview(apply::preview(&plan)));
        }
        let materials = live::prepare(&terms, survey, &plan)?;
        let cleared = plan.clear(&clearance)?;
        let delivery = Delivery { id: &id, top, outcome: Outcome::Applied };
        let blobs = session.blobs();
        let keeper = Keeper { put: &|bytes| blobs.put(bytes), get: &|digest| blobs.get(digest) };
        apply::execute(cleared, materials, delivery, &mut journal, keeper).map(Written::Receipt).map_err(|failure| conflict(&id, &failure))
    })();
    match outcome {
        Ok(Written::Receipt(receipt)) => Ok(DeliveryObject::new(&id, TaskState::Completed, &receipt)),
        Ok(Written::Preview(paths)) => {
            action.succeed(&mut task.ledger, &Record::Done { text: "compared with the live tree; nothing was written".to_owned() })?;
            let paths = paths.into_iter().map(|(path, outcome)| DeliveredPath { path, outcome }).collect();
            Ok(DeliveryObject {
                schema: "git-tender/delivery/v1".to_owned(),
                task_id: id,
                state: TaskState::Verified,
                mode: "local_files".to_owned(),
                paths,
                notes: Vec::new(),
            })
        }
        Err(failure) => Err(journal_end(failure, &mut journal)),
    }
}

enum Written {
    Receipt(Receipt),
    Preview(Vec<(crate::domain::repo_path::RepoPath, Outcome)>),
}

fn journal_end(failure: Failure, journal: &mut LedgerJournal<'_>) -> Failure {
    journal.failed(failure)
}

/// A conflict gets the command that shows what was to be delivered; nothing was lost, the patch is kept.
fn conflict(task: &str, failure: &Failure) -> Failure {
    let failure = failure.clone();
    if failure.code() == Code::DeliveryConflict && !failure.has_remedy() {
        return failure.remedy("Your files are as they were, and the patch is kept. Look at what it would change.", ["git", "tender", "diff", task]);
    }
    failure
}
