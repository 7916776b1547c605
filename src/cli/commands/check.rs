//! `check` on the command line: rows as they are settled for people, one object or document for programs.

use super::{Invocation, exit_code_of_verification, runs_wanted, sandbox_wanted};
use crate::cli::args::CheckArgs;
use crate::cli::output::{self, OutputFormat, ProgressBar};
use crate::error::Result;
use crate::{ops, render};

impl Invocation<'_> {
    pub(super) fn check_tree(&self, args: &CheckArgs) -> Result<u8> {
        let target = match &args.rev {
            Some(range) => ops::check::CheckTarget::Range(range.clone()),
            None if args.live => ops::check::CheckTarget::Live,
            None if args.all => ops::check::CheckTarget::All,
            None => ops::check::CheckTarget::Staged,
        };
        let options = ops::check::CheckOptions {
            target,
            index: self.surroundings.index_file(self.cli.folder.as_deref()),
            flaky: runs_wanted(args.again),
            sandbox: sandbox_wanted(args.no_sandbox),
            fix: if args.fix { ops::check::Fix::Written } else { ops::check::Fix::Told },
        };
        let mut session = self.session()?;
        session.machine.no_sandbox = args.no_sandbox;
        let text = self.cli.format == OutputFormat::Text;
        let progress = std::cell::RefCell::new(None);
        let object = ops::check::check_tree(&session, &options, &|event| {
            progress.take();
            let line = match event {
                ops::check::CheckEvent::Began(checked) => render::checked_text(checked),
                ops::check::CheckEvent::Settled { row, runs } => render::settled_text(row, runs),
                ops::check::CheckEvent::Mended(changes) => render::mended_text(changes),
                ops::check::CheckEvent::Runs { verifier, number, of } => {
                    let bar = ProgressBar::start(self.cli.format, format!("running {verifier}"));
                    bar.advance(number, of);
                    return drop(progress.replace(Some(bar)));
                }
            };
            if text {
                let _ = output::write_out(line.as_bytes());
            }
        })?;
        self.show(&object, || match self.cli.format {
            OutputFormat::Github => render::github_text(&object),
            OutputFormat::Sarif => render::sarif_text(&object),
            OutputFormat::Junit => render::junit_text(&object),
            OutputFormat::Text | OutputFormat::Json => render::check_end_text(&object),
        })?;
        Ok(exit_code_of_verification(&object))
    }
}
