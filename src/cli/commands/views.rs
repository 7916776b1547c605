//! The views: commands that change nothing.

use super::Invocation;
use crate::cli::args::{ReportArgs, StatusArgs};
use crate::cli::output::{self, OutputFormat, show};
use crate::error::Result;
use crate::ops::report::StatusWishes;
use crate::{ops, render};

impl Invocation<'_> {
    /// What needs recovery stands in the list itself.
    pub(super) fn status(&self, args: &StatusArgs) -> Result<u8> {
        let session = self.session()?;
        let StatusArgs { all, size, live } = *args;
        let object = ops::report::status(&session, StatusWishes { all, size, live })?;
        self.show(&object, || render::status_text(&object))?;
        self.tell_copy(&session).map(|()| 0)
    }

    pub(super) fn report(&self, args: &ReportArgs) -> Result<u8> {
        let session = self.session()?;
        let task = args.task.as_deref();
        if args.brief {
            let object = ops::report::brief(&session, task)?;
            self.show(&object, || render::brief_text(&object))?;
        } else {
            let object = ops::report::report(&session, task)?;
            self.show(&object, || render::report_text(&object))?;
        }
        self.tell_state(&session).map(|()| 0)
    }

    pub(super) fn path(&self, task: Option<&str>) -> Result<u8> {
        let object = ops::path::find_worktree(&self.session()?, task)?;
        self.show(&object, || format!("{}\n", object.worktree))
    }

    pub(super) fn diff(&self, task: Option<&str>, stat: bool) -> Result<u8> {
        let session = self.session()?;
        let object = ops::report::diff(&session, task)?;
        match self.cli.format {
            OutputFormat::Text if stat => output::write_out(render::stat_text(&object).as_bytes())?,
            OutputFormat::Json => show(OutputFormat::Json, &object, String::new)?,
            _ => output::write_out(&object.patch)?,
        }
        self.tell_state(&session).map(|()| 0)
    }

    pub(super) fn log(&self, task: Option<&str>, number: Option<usize>) -> Result<u8> {
        let session = self.session()?;
        let entries = ops::report::log(&session, task)?;
        let skipped = number.map_or(0, |number| entries.len().saturating_sub(number));
        for entry in entries.into_iter().skip(skipped) {
            self.show(&entry, || render::entry_line(&entry))?;
        }
        self.tell_unfinished(&session)?;
        self.tell_copy(&session)?;
        ops::report::refuse_rollback(&session).map(|()| 0)
    }

    pub(super) fn show_reference(&self, reference: &str) -> Result<u8> {
        let session = self.session()?;
        let object = ops::report::show(&session, reference)?;
        match (self.cli.format, object.raw_bytes()) {
            (OutputFormat::Text, Some(bytes)) => match ops::report::read_logs(&session, &bytes)? {
                Some(told) => {
                    output::write_out(render::evidence_text(&told.evidence, &told.logs).as_bytes())?
                }
                None => output::write_out(&bytes)?,
            },
            (format, _) => show(format, &object, || render::action_text(&object))?,
        }
        self.tell_state(&session).map(|()| 0)
    }
}
