//! `doctor`: what this machine and repository offer, what is missing, and how to get it. Each answer comes
//! from trying it.

use crate::domain::ledger::objects::{Diagnosis, DoctorCheck};
use crate::git::version::{OLDEST_GIT, parse_version};
use crate::git::{Caller, Git, Repository};
use crate::process::SandboxOffer;
use crate::process::command::SandboxLayer;
use crate::store::{Layout, Ledger};
use crate::task::known_verifiers::list_verifiers;
use crate::task::session::Machine;
use std::path::Path;

/// Looks at the machine, and at the repository where there is one.
pub fn diagnose(caller: &Caller, machine: &Machine) -> Diagnosis {
    let mut checks = vec![DoctorCheck::new("git", git_version(caller))];
    let mut verifiers = Vec::new();
    match Repository::discover(caller) {
        Ok(repository) => {
            in_repository(&repository, &mut checks);
            // What keeps a repository from being read is among the checks already.
            verifiers = list_verifiers(&repository, machine).unwrap_or_default();
        }
        Err(failure) => {
            let remedy = "run it inside a repository, or name one with -C, to have that looked at too";
            checks.push(DoctorCheck::new("repository", Err((failure.message().to_owned(), remedy))));
        }
    }
    checks.push(DoctorCheck::new("sandbox", try_sandbox(machine)));
    Diagnosis { schema: "git-tender/doctor/v1", ok: checks.iter().all(|c| c.ok), checks, verifiers }
}

/// Really starts a program in each tier.
fn try_sandbox(machine: &Machine) -> std::result::Result<String, (String, &'static str)> {
    const REMEDY: &str =
        "install bubblewrap and allow user namespaces, or use a kernel with Landlock (6.2 or newer)";
    let path = machine.vars.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let offer = SandboxOffer::try_tiers(&machine.program, path);
    let lacks = offer.lacks.join("; ");
    let ask = "verifiers run in it where the contract says `\"sandbox\": \"required\"`, or git's `tender.sandbox` is `best`";
    match offer.layer {
        SandboxLayer::Full => Ok(format!("full; {ask}")),
        SandboxLayer::Partial => Ok(format!("partial; {ask}; for the tier full is missing: {lacks}")),
        SandboxLayer::None => Err((lacks, REMEDY)),
    }
}

fn git_version(caller: &Caller) -> std::result::Result<String, (String, &'static str)> {
    const REMEDY: &str = "install git 2.41 or newer and put it first on PATH";
    let output = Git::new(&caller.environment, None)
        .arg("version")
        .run()
        .map_err(|e| (e.message().to_owned(), REMEDY))?;
    let said = output.first_text();
    match parse_version(&said) {
        Some(found) if found >= OLDEST_GIT => Ok(said),
        _ => Err((format!("{said:?}; 2.41 is the oldest that works"), REMEDY)),
    }
}

fn in_repository(repository: &Repository, checks: &mut Vec<DoctorCheck>) {
    let place = repository.common_dir().display();
    checks.push(DoctorCheck::new(
        "repository",
        Ok(format!("{place}, objects named by {:?}", repository.format())),
    ));
    match repository.top() {
        Ok(top) => {
            checks.push(DoctorCheck::new("worktree", Ok(top.display().to_string())));
            checks.push(DoctorCheck::new("exchange", exchange(top)));
        }
        Err(failure) => checks.push(DoctorCheck::new(
            "worktree",
            Err((failure.message().to_owned(), "use a clone that has files")),
        )),
    }
    checks.push(DoctorCheck::new("ledger", ledger(&Layout::new(repository.common_dir()))));
}

/// Really exchanges two files where deliveries would do it: in a directory beside the repository's own files.
fn exchange(top: &Path) -> std::result::Result<String, (String, &'static str)> {
    const REMEDY: &str = "deliveries still work, with a short window in which an edit made at the same moment is found only afterwards";
    let probe = || -> std::io::Result<bool> {
        let folder = tempfile::Builder::new().prefix(".tender-probe-").tempdir_in(top)?;
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::File::create_new(&a)?;
        std::fs::create_dir(&b)?;
        let here = rustix::fs::CWD;
        rustix::fs::renameat_with(here, &a, here, &b, rustix::fs::RenameFlags::EXCHANGE)?;
        Ok(a.is_dir() && b.is_file())
    };
    match probe() {
        Ok(true) => Ok("files are replaced by an atomic exchange".to_owned()),
        Ok(false) => Err(("an exchange of two files did nothing".to_owned(), REMEDY)),
        Err(e) => Err((format!("the file system of {} cannot exchange files: {e}", top.display()), REMEDY)),
    }
}

fn ledger(layout: &Layout) -> std::result::Result<String, (String, &'static str)> {
    const REMEDY: &str = "keep a copy of the file; nothing repairs it silently";
    match Ledger::open(layout) {
        Ok(None) => Ok("none yet; the first task makes it".to_owned()),
        Ok(Some(ledger)) => match ledger.check_chain() {
            Ok(rows) => Ok(format!("{rows} rows, the chain is whole")),
            Err(failure) => Err((failure.message().to_owned(), REMEDY)),
        },
        Err(failure) => {
            let next = failure.next_step();
            Err((format!("{} {}", failure.message(), next.text), REMEDY))
        }
    }
}
