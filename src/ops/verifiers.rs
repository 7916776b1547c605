//! `verifier list|show|test|new`: for those who write verifiers.
//!
//! A test runs a verifier of the live tree, committed or not, on the projects beside its manifest
//! (`fixtures/passing`, `fixtures/failing`), each in a throw-away repository, by the same way as `check`.

use super::Session;
use super::check::{CheckOptions, CheckTarget, Fix, check_tree};
use crate::domain::ledger::action::Actor;
use crate::domain::ledger::verifier_objects::{
    FixtureRun, ShownVerifier, TestedVerifier, VerifierList, WrittenVerifier,
};
use crate::domain::proof::verdict::Verdict;
use crate::domain::value::document::{is_id, nearest_name};
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Folder, file_type, walk_folder};
use crate::git::{Caller, Git, Repository};
use crate::store::Layout;
use crate::store::layout::{write_executable, write_shared};
use crate::task::known_verifiers::list_verifiers;
use crate::task::session::Nobody;
use crate::task::verification::{FlakyRows, Sandbox};
use crate::verifier::load::{FOLDER, manifest_place};
use crate::verifier::manifest::Manifest;
use crate::verifier::shipped;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The projects of a verifier, and whether it passes them.
const FIXTURES: [(&str, Verdict); 2] = [("passing", Verdict::Passed), ("failing", Verdict::Failed)];

/// Every verifier of HEAD and the private layer, and those that are in the live tree alone.
pub fn list_all_verifiers(session: &Session) -> Result<VerifierList> {
    let verifiers = list_verifiers(&session.repository, &session.machine)?;
    Ok(VerifierList { schema: "git-tender/verifiers/v1", verifiers })
}

/// One of them, with its manifest.
pub fn show_verifier(session: &Session, id: &str) -> Result<ShownVerifier> {
    let mut all = list_verifiers(&session.repository, &session.machine)?;
    let Some(at) = all.iter().position(|known| known.id == id) else {
        let ids: Vec<&str> = all.iter().map(|known| known.id.as_str()).collect();
        return Err(unknown_verifier(id, &ids));
    };
    let place = verifier_folder(session, id)?.join("verifier.toml");
    let manifest = std::fs::read_to_string(&place).map_err(|e| Failure::io("read", &place, &e))?;
    let (schema, file) = ("git-tender/verifier/v1", place.display().to_string());
    Ok(ShownVerifier { schema, verifier: all.swap_remove(at), file, manifest })
}

fn unknown_verifier(id: &str, known: &[&str]) -> Failure {
    let failure = Failure::new(Code::NotFound, format!("there is no verifier {id:?}")).subject(id);
    let failure = match nearest_name(id, known) {
        Some(near) => failure.detail("nearest", near),
        None => failure,
    };
    failure.expected(known, id).remedy("See which there are.", ["git", "tender", "verifier", "list"])
}

/// Where a verifier's files lie: in the live tree, else in the private layer.
fn verifier_folder(session: &Session, id: &str) -> Result<PathBuf> {
    let live = session.repository.top()?.join(FOLDER).join(id);
    let private = session.layout.local().join("verifiers").join(id);
    let found = [live, private].into_iter().find(|folder| folder.join("verifier.toml").is_file());
    found.ok_or_else(|| unknown_verifier(id, &[]))
}

/// Writes a verifier to begin with: one of those that are shipped where it has such a name, else one that
/// runs the command.
pub fn write_new_verifier(session: &Session, id: &str, command: &[String]) -> Result<WrittenVerifier> {
    if !is_id(id) {
        return Err(Failure::new(Code::ArgumentsInvalid, format!("{id:?} is no name for a verifier"))
            .subject("ID")
            .expected("letters, digits, `.`, `_` and `-`", id));
    }
    let folder = session.repository.top()?.join(FOLDER).join(id);
    if folder.symlink_metadata().is_ok() {
        return Err(Failure::new(Code::StateInvalid, format!("{} is there already", folder.display()))
            .subject(id)
            .remedy("Look at it, or take another name.", ["git", "tender", "verifier", "show", id]));
    }
    let known = shipped::ALL.iter().find(|shipped| shipped.id == id && command.is_empty());
    let files: Vec<(&str, String)> = match known {
        Some(known) => known.files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
        None if command.is_empty() => {
            let shipped: Vec<&str> = shipped::ALL.iter().map(|shipped| shipped.id).collect();
            return Err(Failure::new(
                Code::ArgumentsInvalid,
                format!("what should {id} run? None of the shipped verifiers has that name"),
            )
            .subject("CMD")
            .expected(shipped, id)
            .remedy(
                "Say the command after `--`.",
                ["git", "tender", "verifier", "new", id, "--", "make", "test"],
            ));
        }
        None => vec![("verifier.toml", new_manifest(id, command))],
    };
    Manifest::parse("verifier.toml", id, files[0].1.as_bytes())?;
    std::fs::create_dir_all(&folder).map_err(|e| Failure::io("create", &folder, &e))?;
    let mut written = Vec::new();
    for (name, text) in files {
        write_shared(&folder.join(name), text.as_bytes())?;
        written.push(format!("{FOLDER}/{id}/{name}"));
    }
    Ok(WrittenVerifier { schema: "git-tender/verifier-new/v1", id: id.to_owned(), written })
}

fn new_manifest(id: &str, command: &[String]) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let argv: Vec<String> = command.iter().map(|word| text(word)).collect();
    format!(
        "protocol = 1\nid = {id}\ntitle = {title}\ncommand = [{argv}]\n\
         # What it depends on; the whole tree where this is left out:\n# inputs = [\"src/**\"]\n\
         # Files that it is made of beside this folder; a change cannot replace them:\n# closure = []\n\
         # Where it may write, and what it leaves to count cases by:\n# scratch = [\"target/\"]\n\
         # outputs = [{{ path = \"{{out}}/junit.xml\", format = \"junit\", required = true }}]\n# min_checks = 1\n",
        id = text(id),
        title = text(&command.join(" ")),
        argv = argv.join(", "),
    )
}

/// Runs a verifier on its own projects.
pub fn test_verifier(session: &Session, id: &str) -> Result<TestedVerifier> {
    let folder = verifier_folder(session, id)?;
    let mut fixtures = Vec::new();
    for (name, expected) in FIXTURES {
        let project = folder.join("fixtures").join(name);
        if project.is_dir() {
            fixtures.push(run_fixture(session, id, &folder, (name, &project, expected))?);
        }
    }
    if fixtures.is_empty() {
        let place = folder.join("fixtures");
        return Err(Failure::new(
            Code::NotFound,
            format!("{id} has no project to be tried on: neither passing nor failing in {}", place.display()),
        )
        .subject(id)
        .expected(["fixtures/passing", "fixtures/failing"], "neither")
        .remedy(
            "Put a project that it passes into fixtures/passing beside its manifest.",
            ["git", "tender", "verifier", "show", id],
        ));
    }
    let passed = fixtures.iter().all(|run| run.as_expected);
    Ok(TestedVerifier { schema: "git-tender/verifier-test/v1", id: id.to_owned(), passed, fixtures })
}

/// One project in a repository of its own, whose base has the verifier and the project.
fn run_fixture(
    session: &Session,
    id: &str,
    folder: &Path,
    (name, project, expected): (&str, &Path, Verdict),
) -> Result<FixtureRun> {
    let apart = tempfile::Builder::new()
        .prefix("git-tender-fixture-")
        .tempdir()
        .map_err(|e| Failure::io("make a folder in", &std::env::temp_dir(), &e))?;
    let top = apart.path().canonicalize().map_err(|e| Failure::io("find", apart.path(), &e))?.join("repo");
    copy_project(project, &top, &|_| true)?;
    let place = top.join(manifest_place(id));
    let judge = place.parent().unwrap_or(&top);
    copy_project(folder, judge, &|path| !path.starts_with(b"fixtures"))?;
    let environment = session.repository.environment();
    let git = || Git::new(environment, Some(&top.join(".git"))).work_tree(&top);
    Git::new(environment, None).cwd(&top).args(["init", "--quiet", "."]).run_for_stdout()?;
    git().args(["add", "--all", "--force"]).run_for_stdout()?;
    git()
        .with_setting("user.name=git-tender")
        .with_setting("user.email=verifier@localhost")
        .with_setting("commit.gpgSign=false")
        .args(["commit", "--quiet", "--message", name])
        .run_for_stdout()?;
    let caller = Caller { cwd: top, git_dir: None, work_tree: None, environment: environment.clone() };
    let repository = Repository::discover(&caller)?;
    let layout = Layout::new(repository.common_dir());
    let inner = Session {
        repository,
        layout,
        actor: Actor::Agent,
        origin: "verifier-test".to_owned(),
        machine: session.machine.clone(),
        person: Box::new(Nobody),
    };
    let options = CheckOptions {
        target: CheckTarget::All,
        index: None,
        flaky: FlakyRows::RunOnce,
        sandbox: Sandbox::AsContracted,
        fix: Fix::Told,
    };
    let object = check_tree(&inner, &options, &|_| {})?;
    let row = object.requirements.into_iter().find(|row| row.verifier == id);
    let run = object.runs.into_iter().next();
    let (verdict, reason) = row.map_or((Verdict::NotRun, None), |row| (row.verdict, row.reason));
    let first_error = run.and_then(|run| run.first_error);
    let as_expected = verdict == expected;
    Ok(FixtureRun { fixture: name.to_owned(), expected, verdict, reason, first_error, as_expected })
}

/// Copies files; nothing is followed.
fn copy_project(from: &Path, to: &Path, wanted: &dyn Fn(&[u8]) -> bool) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|e| Failure::io("create", to, &e))?;
    walk_folder(&Folder::open_path(from)?, &mut |_, path, stat| {
        if !wanted(path) {
            return Ok(false);
        }
        let (source, target) = (from.join(OsStr::from_bytes(path)), to.join(OsStr::from_bytes(path)));
        match file_type(stat) {
            FileType::Directory => {
                std::fs::create_dir_all(&target).map_err(|e| Failure::io("create", &target, &e))?;
            }
            FileType::RegularFile => {
                let bytes = std::fs::read(&source).map_err(|e| Failure::io("read", &source, &e))?;
                let write = if stat.st_mode & 0o100 == 0 { write_shared } else { write_executable };
                write(&target, &bytes)?;
            }
            _ => {}
        }
        Ok(true)
    })
}
