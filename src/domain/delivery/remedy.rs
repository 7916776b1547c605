//! What helps against a conflict. Each reason has its own next step: a rebase carries over content alone, and
//! whoever follows a remedy must not come back to the same failure.

use crate::domain::delivery::conflict::{Conflict, Reason};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Remedy;

/// What met the conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Delivery,
    /// The same, where the index follows.
    Staging,
    Undo,
}

impl Conflict {
    /// True where a rebase may solve it: there is content on both sides, or nothing in the way.
    pub fn is_for_a_rebase(&self) -> bool {
        match self.reason {
            Reason::Appeared => self.actual.is_some(),
            Reason::Edited
            | Reason::Missing
            | Reason::ModeChanged
            | Reason::IndexChanged
            | Reason::IntentToAdd => true,
            _ => false,
        }
    }
}

/// The next step where these stand in a task's way: that of the first which no rebase solves, since the
/// rebase would meet it as well.
pub fn advise_on_conflicts(task: &str, tried: Tried, conflicts: &[Conflict]) -> Remedy {
    if let Some(hard) = conflicts.iter().find(|conflict| !conflict.is_for_a_rebase()) {
        return step_by_hand(task, tried, hard);
    }
    let in_index = |c: &&Conflict| matches!(c.reason, Reason::IndexChanged | Reason::IntentToAdd);
    match (tried, conflicts.iter().find(in_index)) {
        (Tried::Staging, Some(first)) => step_of(
            "The index has a version of its own: stage what lies in the tree, or restore it there."
                .to_owned(),
            &["git", "add", "--", &first.path.to_string()],
        ),
        (Tried::Undo, _) => {
            step_of("Look at what was delivered.".to_owned(), &["git", "tender", "diff", task])
        }
        _ => step_of(
            "Carry the change over to what is there now, in the task's worktree.".to_owned(),
            &["git", "tender", "rebase", task],
        ),
    }
}

fn step_by_hand(task: &str, tried: Tried, conflict: &Conflict) -> Remedy {
    let path = &conflict.path;
    let here = pathspec(path);
    let status = ["git", "status", "--short", "--ignored", "--", &here];
    let diff = ["git", "tender", "diff", task];
    let again = if tried == Tried::Undo { "undo" } else { "deliver" };
    let above = || pathspec(path.ancestors().first().unwrap_or(path));
    match conflict.reason {
        Reason::TypeChanged => {
            step_of(format!("{path} is another kind of thing now: put it back, or move it away."), &status)
        }
        Reason::Collision => leave_collision(task, tried, conflict),
        Reason::ParentIsLink => step_of(
            format!(
                "A folder above {path} is a link here, which is not followed: put a folder in its place."
            ),
            &["git", "status", "--short", "--ignored", "--", &above()],
        ),
        Reason::ParentIsFile => step_of(
            format!("A folder above {path} is a file here: move that away."),
            &["git", "status", "--short", "--ignored", "--", &above()],
        ),
        Reason::Unmerged => {
            step_of(format!("Resolve the merge of {path} and `git add` it first."), &["git", "status"])
        }
        Reason::OutsideSparse => {
            let folder = path.parent().map_or_else(|| format!("/{path}"), |folder| folder.to_string());
            step_of(
                "Take its folder into the sparse checkout, or let a task deliver it to a branch.".to_owned(),
                &["git", "sparse-checkout", "add", &folder],
            )
        }
        Reason::NestedRepository => step_of(
            format!("{path} lies in another repository inside this one: the change has to be made there."),
            &diff,
        ),
        Reason::Gitlink => {
            step_of(format!("{path} is a submodule, which only a person moves: do that by hand."), &diff)
        }
        // In words alone: who follows remedies by themselves should not become somebody else.
        Reason::Owner => step_of(
            format!(
                "{path} is another user's or group's, and a new file cannot be given to them: let them deliver, or take the file over first."
            ),
            &diff,
        ),
        Reason::OpenForWriting => step_of(
            format!("Something has {path} open for writing: close it there, then go on."),
            &["git", "tender", again, task],
        ),
        Reason::Appeared => step_of(format!("Move what lies at {path} away."), &status),
        Reason::Edited
        | Reason::Missing
        | Reason::ModeChanged
        | Reason::IndexChanged
        | Reason::IntentToAdd => step_of("Put the live tree in order first.".to_owned(), &status),
    }
}

fn leave_collision(task: &str, tried: Tried, conflict: &Conflict) -> Remedy {
    let (path, partner) = (&conflict.path, partner_of(conflict));
    if tried == Tried::Undo {
        let status = ["git", "status", "--short", "--ignored", "--", &pathspec(path)];
        return step_of(format!("Give {partner} another name first."), &status);
    }
    step_of(
        format!(
            "Not every file system can hold both {path} and {partner}: give the new one another name in the task's worktree, then submit."
        ),
        &["git", "tender", "submit", task],
    )
}

fn partner_of(conflict: &Conflict) -> String {
    conflict.partner.as_ref().map_or_else(|| "the other".to_owned(), ToString::to_string)
}

/// A path of the tree wherever the command is typed.
fn pathspec(path: &RepoPath) -> String {
    format!(":(top,literal){path}")
}

fn step_of(text: String, command: &[&str]) -> Remedy {
    Remedy { text, command: command.iter().map(|word| (*word).to_owned()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ALL: [Reason; 16] = [
        Reason::Edited,
        Reason::Missing,
        Reason::Appeared,
        Reason::TypeChanged,
        Reason::ModeChanged,
        Reason::ParentIsLink,
        Reason::ParentIsFile,
        Reason::Collision,
        Reason::IndexChanged,
        Reason::Unmerged,
        Reason::IntentToAdd,
        Reason::OutsideSparse,
        Reason::NestedRepository,
        Reason::Gitlink,
        Reason::Owner,
        Reason::OpenForWriting,
    ];

    fn conflict(reason: Reason) -> Conflict {
        let path = RepoPath::new("d/f").expect("a path");
        Conflict { path, reason, expected: None, actual: None, mergeable: false, partner: None }
    }

    #[test]
    fn what_no_rebase_solves_has_a_step_of_its_own() {
        let mut texts = HashSet::new();
        for reason in ALL {
            let conflict = conflict(reason);
            for tried in [Tried::Delivery, Tried::Staging, Tried::Undo] {
                let advice = advise_on_conflicts("t", tried, std::slice::from_ref(&conflict));
                let rebases = advice.command.contains(&"rebase".to_owned());
                assert!(!rebases || conflict.is_for_a_rebase() && tried != Tried::Undo, "{reason:?}");
                if !conflict.is_for_a_rebase() {
                    texts.insert((reason, advice.text));
                }
            }
        }
        let reasons: HashSet<Reason> = texts.iter().map(|(reason, _)| *reason).collect();
        let distinct: HashSet<&String> = texts.iter().map(|(_, text)| text).collect();
        assert_eq!((reasons.len(), distinct.len()), (11, 12), "a collision has two");
    }

    #[test]
    fn the_hard_one_decides_and_the_index_is_staged_where_it_follows() {
        let both = [conflict(Reason::Edited), conflict(Reason::Unmerged)];
        assert_eq!(advise_on_conflicts("t", Tried::Delivery, &both).command, ["git", "status"]);
        let index = [conflict(Reason::IntentToAdd)];
        let staged = advise_on_conflicts("t", Tried::Staging, &index);
        assert_eq!(staged.command, ["git", "add", "--", "d/f"]);
    }
}
