//! Findings: what a worker notes while it works, checked here and recorded by the gate.
//!
//! A reference is looked up when the note is made: a file that is there and may be read, lines that it has,
//! an action or a stored file of this task's own. One that is not is refused, so that nothing in a report
//! refers to nothing.

use crate::domain::contract::Kind;
use crate::domain::ledger::entry::Entry;
use crate::domain::value::digest::TreeObject;
use crate::domain::value::outside::plain_line;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::worker::finding::{Finding, Kind as NoteKind, Lines, MOST_REFERENCES, Reference};
use crate::error::{Code, Failure, Result};
use crate::git::tree;
use crate::task::held::TaskWrite;
use crate::task::reach::worktree_of;
use crate::task::reference::require_own;
use crate::tools::place::{Place, refuse_too_large};

/// The note as it is recorded. Refused where it says nothing, or refers to what is not there.
pub fn check_finding(task: &TaskWrite<'_>, text: &str, refs: &[String], kind: NoteKind) -> Result<Finding> {
    task.require_active()?;
    if refs.len() > MOST_REFERENCES {
        let message = format!("`refs` has {} references; at most {MOST_REFERENCES} are taken", refs.len());
        return Err(Failure::new(Code::ArgumentsInvalid, message)
            .subject("refs")
            .expected(MOST_REFERENCES, refs.len()));
    }
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    for reference in refs {
        match look_up(task, reference) {
            Ok(reference) if found.contains(&reference) => {}
            Ok(reference) => found.push(reference),
            Err(failure) if failure.code() == Code::Io => return Err(failure),
            Err(failure) => wrong.push(failure),
        }
    }
    match Failure::first_of(wrong) {
        Some(failure) => Err(failure),
        None => Finding::new(kind, text, found),
    }
}

fn look_up(task: &TaskWrite<'_>, reference: &str) -> Result<Reference> {
    if let Some(digest) = reference.strip_prefix("sha256:") {
        let digest = digest.parse().map_err(|_| leads_nowhere(reference, "it is no digest"))?;
        require_own(task, &digest)?;
        return Ok(Reference::Ledger { name: reference.to_owned() });
    }
    let own = |entry: &Entry| entry.task.as_deref() == Some(task.view.id.as_str());
    if task.ledger.action(reference)?.first().is_some_and(own) {
        return Ok(Reference::Ledger { name: reference.to_owned() });
    }
    let whole = match find_file(task, reference, None) {
        Ok(Some(file)) => return Ok(file),
        Err(failure) if failure.code() == Code::Io => return Err(failure),
        whole => whole,
    };
    // The scope may name a file, and the reference a line of it: then only what stands before the line may be
    // read.
    if let Some((path, lines)) = reference.rsplit_once(':')
        && let Some(lines) = Lines::parse_range(lines)
    {
        let file = find_file(task, path, Some(lines))?;
        return file.ok_or_else(|| leads_nowhere(reference, "no such file is in the worktree or the base"));
    }
    whole?;
    Err(leads_nowhere(reference, "it names no file of the worktree or the base, and no action of this task"))
}

fn leads_nowhere(reference: &str, why: &str) -> Failure {
    let shown = plain_line(reference, 200);
    let forms = "path, path:line, path:first-last, an action of this task, or sha256:…";
    Failure::new(Code::NotFound, format!("the reference {shown:?} leads nowhere: {why}"))
        .subject(shown.clone())
        .expected(forms, shown)
        .advice("Name what is there, or leave it out: a finding without references is marked as unverified.")
}

/// A file that may be read, or some of its lines; `None` where there is no such file.
fn find_file(task: &TaskWrite<'_>, path: &str, lines: Option<Lines>) -> Result<Option<Reference>> {
    let (place, path) = (worktree_of(task)?, Place::check_path(path)?);
    place.require_readable(&path)?;
    let Some(bytes) = read_content(task, &place, &path)? else { return Ok(None) };
    if let Some(wanted) = lines {
        let has = bytes.split_inclusive(|b| *b == b'\n').count() as u64;
        if wanted.last > has {
            let failure = leads_nowhere(&format!("{path}:{wanted}"), &format!("the file has {has} lines"));
            return Err(failure.expected(has, wanted.last));
        }
    }
    Ok(Some(Reference::File { blob: place.blob_id(&bytes)?, path, lines }))
}

/// The bytes of a file as the worker has it, else as the base has it; in an exploration always those of the
/// base.
fn read_content(task: &TaskWrite<'_>, place: &Place<'_>, path: &RepoPath) -> Result<Option<Vec<u8>>> {
    // An exploration changes nothing: what it finds is there in what it started from.
    let explores = task.view.opened_terms()?.contract.kind == Kind::Explore;
    if place.open_file(path)?.is_some() && !explores {
        return place.read_bytes(path).map(Some);
    }
    let objects = task.session.repository.object_reader(Some(&task.session.quarantine(&task.view.id)))?;
    match tree::find_entry(&objects, &task.view.opened_terms()?.base.tree, path)? {
        Some(TreeObject { mode, id }) if mode.is_regular() => {
            refuse_too_large(path, objects.blob_size(&id)?)?;
            objects.read_blob(&id).map(Some)
        }
        _ => Ok(None),
    }
}
