//! What `gc` removed and kept.

use crate::domain::ledger::objects::Collection;

pub fn gc_text(collection: &Collection) -> String {
    let removed = collection.removed.iter().map(|id| format!("removed {id}\n"));
    let kept = collection.kept.iter().map(|kept| format!("kept {}: {}\n", kept.task_id, kept.reason));
    let commits = collection.commits.iter();
    let commits = commits
        .map(|kept| format!("{}: its worker's commit {} is {}\n", kept.task_id, kept.commit, kept.reference));
    let setups = match collection.setups {
        0 => None,
        1 => Some("removed what one set-up of worktrees had made\n".to_owned()),
        many => Some(format!("removed what {many} set-ups of worktrees had made\n")),
    };
    let text: String = removed.chain(kept).chain(commits).chain(setups).collect();
    if text.is_empty() { "nothing to remove\n".to_owned() } else { text }
}
