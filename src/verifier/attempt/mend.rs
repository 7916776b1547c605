//! A run that is no evidence: the verifier may change its slot, and what it made of the files is taken.

use super::Runner;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::slot::MendedFile;
use crate::process::ProgramEnd;
use std::collections::BTreeSet;

impl Runner<'_> {
    /// Runs the command once in a slot that can be written to, and gives the files that it changed; none
    /// where it did not end by itself, or would have judged other files than these. What judges is not its
    /// to change.
    pub(in crate::verifier) fn mend_files(mut self) -> Result<Vec<MendedFile>> {
        self.clean = false;
        if self.before_first_attempt()?.is_some() {
            return Ok(Vec::new());
        }
        let judges: BTreeSet<&RepoPath> = self.verifier.closure.iter().map(|file| &file.file.path).collect();
        let files: Vec<_> = self.shown.iter().filter(|file| !judges.contains(&file.path)).cloned().collect();
        let before = self.slot.open_for_mending(&files)?;
        let out = self.out_directory()?;
        let finished = self.launch(&self.verifier.manifest.command, out.path(), (Vec::new(), Vec::new()))?;
        let ended = matches!(finished.end, ProgramEnd::Exited(_)) && self.stopped.borrow().is_none();
        let alone = finished.survivors_killed == 0 && finished.unkillable == 0;
        let mended = if ended && alone { self.slot.collect_mended(&before)? } else { Vec::new() };
        self.finish()?;
        Ok(mended)
    }
}
