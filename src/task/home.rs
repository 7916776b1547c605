//! Whether the store belongs to the repository in which it is found; asked before anything is written.
//!
//! A store that was copied knows paths of another repository: of its tree, of its worktrees. Nothing is
//! written from it until a person says that the copy shall go on. One that was moved goes on by itself; then
//! its tasks are told where their live trees and worktrees are now.

use super::Session;
use super::action::{ActionOrigin, RunningAction};
use super::effect::cut_off::Ground;
use super::session::unconfirmed;
use super::view::load;
use crate::domain::delivery::receipt::Inode;
use crate::domain::ledger::record::{Home, Record, Relocation};
use crate::domain::ledger::store_home::{StoreHome, Whereabouts};
use crate::domain::ledger::task::TaskView;
use crate::error::presence::means_absent;
use crate::error::{Code, Failure, Result, Retry};
use crate::git::relocate::{has_record_named, relocate_path, relocate_worktree};
use crate::store::Ledger;
use crate::store::layout::write_private;
use crate::store::lock::LockGuard;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const COPIED: &str = "is another repository";
const ADOPT: [&str; 4] = ["git", "tender", "recover", "--adopt"];

/// Refuses (`state.invalid`) where the store is another repository's. One that was moved goes on here.
pub fn require_home(session: &Session) -> Result<()> {
    let Some((known, here, whereabouts)) = find_whereabouts(session)? else { return Ok(()) };
    match whereabouts {
        Whereabouts::AtHome => Ok(()),
        Whereabouts::Noted => write_home(session, &here),
        Whereabouts::Moved => settle_in(session, &known, &here),
        Whereabouts::Copied => Err(not_at_home(session, &known, COPIED)),
        Whereabouts::Replaced | Whereabouts::Carried => match find_gap(session)? {
            Some(gap) => Err(not_at_home(session, &known, &gap)),
            None if whereabouts == Whereabouts::Replaced => write_home(session, &here),
            None => settle_in(session, &known, &here),
        },
    }
}

/// Writes down which repository the store belongs to, where nothing says so yet.
pub fn note_home(session: &Session) -> Result<()> {
    if read_home(session)?.is_some() {
        Ok(())
    } else {
        write_home(session, &home_of(session.repository.common_dir())?)
    }
}

/// What there is to tell before a store goes on where it was moved to.
pub fn describe_move(session: &Session) -> Result<Option<String>> {
    let Some((known, here, whereabouts)) = find_whereabouts(session)? else { return Ok(None) };
    let (then, now) = (known.git_dir.display(), here.git_dir.display());
    Ok(matches!(whereabouts, Whereabouts::Moved | Whereabouts::Carried)
        .then(|| format!("this repository was at {then} before, and is at {now} now")))
}

/// What there is to tell of a store to which nothing is written here.
pub fn describe_copy(session: &Session) -> Result<Option<String>> {
    let Some((known, _, whereabouts)) = find_whereabouts(session)? else { return Ok(None) };
    let refused = || not_at_home(session, &known, COPIED).message().to_owned();
    Ok((whereabouts == Whereabouts::Copied).then(refused))
}

/// On a person's word the store goes on in the repository where it is. `None`: it is at home already.
pub fn adopt_store(session: &Session) -> Result<Option<Relocation>> {
    let Some((known, here, whereabouts)) = find_whereabouts(session)? else { return Ok(None) };
    if matches!(whereabouts, Whereabouts::AtHome | Whereabouts::Noted) {
        return Ok(None);
    }
    let (from, to) = (known.git_dir.display().to_string(), here.git_dir.display().to_string());
    let question =
        format!("The tasks here were made in {from}. Let them go on in {to}, apart from that one?");
    if session.person.confirm(&question) != Some(true) {
        return Err(unconfirmed("letting a copy go on by itself is a person's call", &to, ADOPT));
    }
    settle_in(session, &known, &here)?;
    Ok(Some(Relocation { from, to, place: None }))
}

fn not_at_home(session: &Session, known: &StoreHome, why: &str) -> Failure {
    let (from, here) = (known.git_dir.display().to_string(), session.repository.common_dir().display());
    Failure::new(Code::StateInvalid, format!("the tasks in {here} were made in {from}: it {why}"))
        .subject(here.to_string())
        .retry(Retry::AskUser)
        .expected(&from, here.to_string())
        .remedy("Work in that one. Where this one shall go on by itself, a person has to say so.", ADOPT)
}

/// What the store says of its home, what is here, and what follows; `None` for a store without a word on it.
fn find_whereabouts(session: &Session) -> Result<Option<(StoreHome, StoreHome, Whereabouts)>> {
    let here = home_of(session.repository.common_dir())?;
    let known = match read_home(session)? {
        Some(known) => known,
        None => match home_of_tasks(session)? {
            Some(known) => known,
            None => return Ok(None),
        },
    };
    if known == here {
        return Ok(Some((known, here, Whereabouts::AtHome)));
    }
    let there = inode_at(&known.git_dir)?;
    let whereabouts = known.compare(&here, there);
    Ok(Some((known, here, whereabouts)))
}

fn home_of(git_dir: &Path) -> Result<StoreHome> {
    Ok(StoreHome { git_dir: git_dir.to_path_buf(), inode: inode_at(git_dir)? })
}

fn inode_at(path: &Path) -> Result<Option<Inode>> {
    match path.metadata() {
        Ok(found) => Ok(Some(Inode { dev: found.dev(), ino: found.ino() })),
        Err(e) if means_absent(&e) => Ok(None),
        Err(e) => Err(Failure::io_of_ours("look at", path, &e)),
    }
}

fn read_home(session: &Session) -> Result<Option<StoreHome>> {
    let path = session.layout.home();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if means_absent(&e) => return Ok(None),
        Err(e) => return Err(Failure::io_of_ours("read", &path, &e)),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        Failure::new(Code::StoreCorrupt, format!("{} cannot be read: {e}", path.display()))
            .subject(path.display().to_string())
            .remedy("Remove that file; the ledger says the rest.", ["git", "tender", "doctor"])
    })
}

fn write_home(session: &Session, here: &StoreHome) -> Result<()> {
    let bytes = serde_json::to_vec(here)
        .map_err(|e| Failure::internal(format!("the place of the store cannot be written: {e}")))?;
    write_private(&session.layout.home(), &bytes)
}

/// A store from before that was written down: the last task says in which repository it was made.
fn home_of_tasks(session: &Session) -> Result<Option<StoreHome>> {
    let Some(ledger) = session.ledger()? else { return Ok(None) };
    for id in ledger.tasks()?.iter().rev() {
        if let Some(view) = load(&ledger, id)? {
            let git_dir = Path::new(&view.opened_terms()?.home.git_dir);
            // A linked worktree's own lies below the one that all share.
            let records =
                git_dir.parent().filter(|parent| parent.file_name().is_some_and(|n| n == "worktrees"));
            let common_dir = records.and_then(Path::parent).unwrap_or(git_dir).to_path_buf();
            return Ok(Some(StoreHome { git_dir: common_dir, inode: None }));
        }
    }
    Ok(None)
}

/// What keeps a store from going on unasked in a repository that may be another clone, as a clause.
fn find_gap(session: &Session) -> Result<Option<String>> {
    let Some(ledger) = session.ledger()? else { return Ok(None) };
    for row in ledger.unfinished()? {
        let task = row.task.as_deref().unwrap_or_default();
        if Ground::of_action(&ledger, &row) == Ground::LiveTree
            && !has_record_named(&session.repository, task)?
        {
            return Ok(Some(format!("was another clone, in which `{}` of {task} was cut off", row.tool)));
        }
    }
    for id in ledger.tasks()? {
        let Some(view) = load(&ledger, &id)?.filter(|view| !view.has_ended()) else { continue };
        let commit = &view.opened_terms()?.base.commit;
        if session.repository.resolve_revision(commit.as_str(), "commit")?.is_none() {
            return Ok(Some(format!("was another clone, and the base {commit} of {id} is not here")));
        }
    }
    Ok(None)
}

/// Tells each task where its live tree and its worktree are now, and the store where it is. Run again after a
/// crash it does what is left.
fn settle_in(session: &Session, known: &StoreHome, here: &StoreHome) -> Result<()> {
    let _delivery = LockGuard::acquire(&session.layout.delivery_lock())?;
    if read_home(session)?.as_ref() == Some(here) {
        return Ok(());
    }
    let mut ledger = Ledger::create(&session.layout)?;
    let (from, to) = (known.git_dir.display().to_string(), here.git_dir.display().to_string());
    for id in ledger.tasks()? {
        let Some(view) = load(&ledger, &id)?.filter(|view| !view.collected) else { continue };
        let place = present_place(session, &view, &known.git_dir)?;
        if place != view.place()? {
            let relocation = Relocation { from: from.clone(), to: to.clone(), place: Some(place) };
            record(session, &mut ledger, Some(&id), relocation)?;
        }
    }
    record(session, &mut ledger, None, Relocation { from, to, place: None })?;
    write_home(session, here)
}

fn present_place(session: &Session, view: &TaskView, from: &Path) -> Result<(String, Home)> {
    let opened = view.opened_terms()?;
    let to = session.repository.common_dir();
    let moved = |path: &str| super::session::path_text(&relocate_path(Path::new(path), from, to));
    let home = Home {
        top: moved(&opened.home.top)?,
        git_dir: moved(&opened.home.git_dir)?,
        branch: opened.home.branch.clone(),
    };
    let worktree = relocate_worktree(&session.repository, Path::new(&opened.worktree), from)?;
    Ok((super::session::path_text(&worktree)?, home))
}

fn record(session: &Session, ledger: &mut Ledger, task: Option<&str>, relocation: Relocation) -> Result<()> {
    let channel = ActionOrigin { origin: &session.origin, secrets: session.secrets() };
    let params = json!({ "from": relocation.from, "to": relocation.to });
    let mut action = RunningAction::new(session.actor, task, "recover", &params, Value::Null, channel);
    let record = Record::Relocated(Box::new(relocation));
    ledger.atomically(|ledger| {
        action.dispatch(ledger)?;
        action.succeed(ledger, &record).map(drop)
    })
}
