//! The verifiers that a repository has, each with what it needs and whether that is here.

use crate::domain::ledger::objects::{KnownVerifier, NeededTool};
use crate::domain::value::scope::Scope;
use crate::error::{Failure, Result};
use crate::git::Repository;
use crate::git::tree::{TreeFile, list_files};
use crate::process::SandboxGrant;
use crate::store::{Blobs, Layout};
use crate::task::session::Machine;
use crate::verifier::load::{Verifier, manifest_place};
use crate::verifier::needs::find_needs;
use crate::verifier::{Host, Verifiers};
use std::path::Path;

/// Every verifier of HEAD and of the private layer, and those that are in the live tree alone.
pub fn list_verifiers(repository: &Repository, machine: &Machine) -> Result<Vec<KnownVerifier>> {
    let Some(tree) = repository.resolve_revision("HEAD", "tree")? else { return Ok(Vec::new()) };
    let layout = Layout::new(repository.common_dir());
    let all = Verifiers::load(repository, &tree, &layout.local(), &Scope::default())?;
    let files = list_files(&repository.object_reader(None)?, &tree)?;
    // What a probe needs is made apart from everything that is kept.
    let apart = tempfile::tempdir().map_err(|e| Failure::io("make", Path::new("a temporary folder"), &e))?;
    let host = Host {
        program: &machine.program,
        vars: &machine.vars,
        home: machine.home.as_deref(),
        layout: &layout,
        blobs: &Blobs::new(&layout),
        slots: apart.path(),
        sandbox: &SandboxGrant::Unconfined,
        progress: &|_, _, _| {},
        watch: &|_| None,
        most: None,
    };
    let mut rows: Vec<KnownVerifier> =
        all.all().map(|(id, verifier)| describe_verifier(id, verifier, &host, &files)).collect();
    rows.extend(all.only_live().map(|id| KnownVerifier {
        id: id.to_owned(),
        problem: Some("it is in the live tree only: commit it".to_owned()),
        ..KnownVerifier::default()
    }));
    Ok(rows)
}

fn describe_verifier(
    id: &str,
    verifier: std::result::Result<&Verifier, &Failure>,
    host: &Host<'_>,
    files: &[TreeFile],
) -> KnownVerifier {
    let place = manifest_place(id);
    let committed = files.iter().any(|file| file.path.as_bytes() == place.as_bytes());
    let (id, private) = (id.to_owned(), !committed);
    let verifier = match verifier {
        Ok(verifier) => verifier,
        Err(failure) => {
            let problem = Some(failure.message().to_owned());
            return KnownVerifier { id, problem, committed, private, ..KnownVerifier::default() };
        }
    };
    let title = verifier.manifest.title.clone();
    match find_needs(verifier, host, files) {
        Ok(needs) => KnownVerifier {
            id,
            title,
            problem: needs.problem,
            committed,
            private,
            tools: needs.tools.into_iter().map(|(name, problem)| NeededTool { name, problem }).collect(),
            absent_reads: needs.absent_reads,
            dead_inputs: needs.dead_inputs,
        },
        Err(failure) => {
            let problem = Some(failure.message().to_owned());
            KnownVerifier { id, title, problem, committed, private, ..KnownVerifier::default() }
        }
    }
}
