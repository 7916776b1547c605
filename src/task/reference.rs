//! References that a worker may read: the records that count for its own task, and the logs and outputs that
//! they name.

use crate::domain::proof::evidence::Evidence;
use crate::domain::value::digest::Sha256;
use crate::error::{Code, Failure, Result};
use crate::task::evidence;
use crate::task::held::TaskWrite;

/// Refuses a reference that no record of this task names.
pub fn require_own(task: &TaskWrite<'_>, digest: &Sha256) -> Result<()> {
    let evidence = evidence::counting_for(&task.ledger, &task.view)?;
    if evidence.iter().any(|record| record.value.digest() == *digest || names_log(&record.value, digest)) {
        return Ok(());
    }
    let shown = format!("sha256:{digest}");
    Err(Failure::new(Code::NotFound, format!("{shown} is no log or record of the task {}", task.view.id))
        .subject(shown)
        .advice("Use a reference that an answer of this task gave."))
}

fn names_log(evidence: &Evidence, digest: &Sha256) -> bool {
    let logs = evidence.attempts.iter().flat_map(|attempt| [attempt.stdout, attempt.stderr]);
    logs.flatten().any(|log| log == *digest)
}
