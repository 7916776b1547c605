//! `verifier`: for those who write verifiers.

use super::Invocation;
use crate::cli::args::VerifierCommand;
use crate::error::{Code, Failure, Result};
use crate::{ops, render};

impl Invocation<'_> {
    pub(super) fn verifier(&self, command: &VerifierCommand) -> Result<u8> {
        let session = self.session()?;
        match command {
            VerifierCommand::List => {
                let object = ops::verifiers::list_all_verifiers(&session)?;
                self.show(&object, || render::verifier_list_text(&object))
            }
            VerifierCommand::Show { id } => {
                let object = ops::verifiers::show_verifier(&session, id)?;
                self.show(&object, || render::shown_verifier_text(&object))
            }
            VerifierCommand::Test { id } => {
                let object = ops::verifiers::test_verifier(&session, id)?;
                self.show(&object, || render::tested_verifier_text(&object))?;
                let failed = Failure::new(Code::VerificationFailed, "it does not say what it should");
                Ok(if object.passed { 0 } else { failed.exit_code() })
            }
            VerifierCommand::New { id, command } => {
                let object = ops::verifiers::write_new_verifier(&session, id, command)?;
                self.show(&object, || render::written_verifier_text(&object))
            }
        }
    }
}
