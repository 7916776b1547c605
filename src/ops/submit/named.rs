//! `submit --only PATH…`: the named part of what the worktree changes.

use super::super::Session;
use crate::domain::change::patch::Change;
use crate::domain::ledger::report::CandidateObject;
use crate::domain::value::scope::{Scope, pattern_from_typed};
use crate::error::{Code, Failure, Result};
use crate::git::Objects;
use crate::task::budget;
use crate::task::candidate::candidate_object;
use crate::task::part::{Taken, whole_change};
use crate::task::submission::capture_chosen;
use serde_json::json;
use std::path::Path;

/// Captures what the worktree changes at the named paths. `names` are typed in `folder`, which lies in the
/// worktree or in the live tree. A name at which nothing changes is refused, and then nothing is captured.
pub fn submit_named(
    session: &Session,
    named: Option<&str>,
    names: &[String],
    folder: &Path,
) -> Result<CandidateObject> {
    let mut task = session.write(named)?;
    task.require_active()?;
    budget::require_left(&task)?;
    let id = task.view.id.clone();
    let worktree = task.view.opened_terms()?.worktree.clone();
    let wanted = read_names(session, names, folder, Path::new(&worktree))?;
    let whole = whole_change(&task)?;
    refuse_dead_names(&wanted, &whole.changes, &worktree)?;
    let choose = |changes: &[Change], _: &Objects| {
        let is_wanted = |change: &Change| wanted.iter().any(|(_, scope)| scope.matches_path(&change.path));
        Ok(changes.iter().map(|c| if is_wanted(c) { Taken::Whole } else { Taken::Nothing }).collect())
    };
    let asked = json!({ "patchSha256": null, "only": names });
    let (candidate, left) = capture_chosen(&mut task, &asked, &whole, &choose)?;
    Ok(CandidateObject { left: Some(left), ..candidate_object(session, &id, &candidate) })
}

/// Each name with what it means: a path, all beneath it, or a pattern.
fn read_names<'n>(
    session: &Session,
    names: &'n [String],
    folder: &Path,
    worktree: &Path,
) -> Result<Vec<(&'n str, Scope)>> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    let beneath = |top: &Path| folder.strip_prefix(real(top)).ok().and_then(Path::to_str).map(str::to_owned);
    let within = match beneath(worktree) {
        Some(within) => within,
        None => session.repository.top().ok().and_then(beneath).unwrap_or_default(),
    };
    let read = |name: &'n String| {
        let pattern = pattern_from_typed(name, &within);
        let mut patterns = vec![pattern.clone()];
        if !pattern.ends_with('/') && !pattern.ends_with("**") {
            patterns.push(format!("{pattern}/"));
        }
        Ok((name.as_str(), Scope::parse_field("--only", Code::ArgumentsInvalid, patterns)?))
    };
    names.iter().map(read).collect()
}

fn refuse_dead_names(wanted: &[(&str, Scope)], changes: &[Change], worktree: &str) -> Result<()> {
    let is_dead = |scope: &Scope| !changes.iter().any(|change| scope.matches_path(&change.path));
    let dead: Vec<&str> = wanted.iter().filter(|(_, scope)| is_dead(scope)).map(|(name, _)| *name).collect();
    let Some(first) = dead.first() else { return Ok(()) };
    let more = match dead.len() {
        1 => String::new(),
        all => format!(", nor at {} more", all - 1),
    };
    let changed: Vec<_> = changes.iter().map(|change| &change.path).collect();
    let text = format!("the worktree changes nothing at {first}{more}; nothing was captured");
    Err(Failure::new(Code::ArgumentsInvalid, text)
        .subject("--only")
        .detail("unmatched", &dead)
        .expected(changed, &dead)
        .remedy("Name paths that it changes.", ["git", "-C", worktree, "status", "--short"]))
}
