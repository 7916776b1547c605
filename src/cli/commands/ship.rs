//! `ship` on the command line: one task with its report, or all that are verified, each as it ends.

use super::{Invocation, proof_wanted, sandbox_wanted, write_wanted};
use crate::cli::args::ShipArgs;
use crate::cli::output::{self, OutputFormat};
use crate::error::Result;
use crate::ops::verify::Sandbox;
use crate::{ops, render};
use std::path::Path;

impl Invocation<'_> {
    pub(super) fn ship(&self, args: &ShipArgs) -> Result<u8> {
        let mut session = self.session()?;
        session.machine.no_sandbox = args.no_sandbox;
        // `ship -` is the only open task, with what comes in.
        let (task, first) = match args.task.as_deref() {
            Some("-") if args.input.is_none() && args.patch.is_none() => (None, Some(Path::new("-"))),
            task => (task, None),
        };
        let patch = self.read_inputs(first.or(args.input.as_deref()).or(args.patch.as_deref()))?;
        let contract = match task {
            Some(name) if self.cwd().join(name).is_file() => Some(self.read_input(Path::new(name))?),
            _ => None,
        };
        let subject = match &contract {
            Some(bytes) => ops::ship::Subject::Contract(bytes),
            None => ops::ship::Subject::Task(task),
        };
        let progress = self.start_progress("shipping");
        let how = ops::ship::Options {
            sandbox: sandbox_wanted(args.no_sandbox),
            proof: proof_wanted(args.prove),
            write: write_wanted(args.dry_run),
        };
        let shipped = ops::ship::ship(&session, subject, patch.as_deref(), how, &|done, total| {
            progress.advance(done, total)
        })?;
        drop(progress);
        self.show(&shipped.report, || render::report_text(&shipped.report))?;
        let Some(failure) = shipped.refused else { return Ok(0) };
        self.tell_person(&render::refusal_text(&failure));
        Ok(failure.exit_code())
    }

    pub(super) fn ship_all(&self, dry_run: bool, prove: bool) -> Result<u8> {
        let how = ops::ship::Options {
            sandbox: Sandbox::AsContracted,
            proof: proof_wanted(prove),
            write: write_wanted(dry_run),
        };
        let progress = self.start_progress("shipping");
        let shipped = ops::ship::ship_all(
            &self.session()?,
            how,
            &|done, total| progress.advance(done, total),
            &|row| {
                if self.cli.format == OutputFormat::Text {
                    let _ = output::write_out(render::queue_row_text(row).as_bytes());
                }
            },
        )?;
        drop(progress);
        self.show(&shipped.object, || render::queue_end_text(&shipped.object))?;
        Ok(shipped.refused.map_or(0, |failure| failure.exit_code()))
    }
}
