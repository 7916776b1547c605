//! The programs that judge: found on the caller's `PATH` (its absolute entries), digested, and asked for
//! their version.

use super::cache::FileDigests;
use super::load::Verifier;
use super::manifest::ToolSpec;
use super::{Host, RunHalt};
use crate::domain::proof::evidence::Tool;
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use crate::process::helper::find_program;
use crate::process::{
    self, Invocation, PrivateHome, ProgramEnd, base_environment, secret_values, secret_values_of_settings,
};
use crate::store::Layout;
use crate::store::secret_files::read_secret_files;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a probe may take.
const PROBE_TIME: Duration = Duration::from_secs(30);

/// How much of a script is read for its first line; the kernel reads no more.
const LONGEST_FIRST_LINE: usize = 256;

/// How much of a program's complaint goes into a reason, in characters.
const LONGEST_COMPLAINT: usize = 200;

/// Where tools keep what they fetched or built, below the private home: whatever a system's or a user's
/// settings say, a run writes there. What `read` names at such a place is linked, so that it is found there.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", ".cache"),
    ("npm_config_cache", ".npm"),
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("UV_CACHE_DIR", ".cache/uv"),
    ("POETRY_CACHE_DIR", ".cache/pypoetry"),
    ("PRE_COMMIT_HOME", ".cache/pre-commit"),
    ("GOCACHE", ".cache/go-build"),
    ("CCACHE_DIR", ".cache/ccache"),
    ("SCCACHE_DIR", ".cache/sccache"),
    ("DENO_DIR", ".cache/deno"),
];

/// The programs of one verifier, or what is missing, in a sentence.
pub(super) type Found = std::result::Result<Vec<Tool>, String>;

/// The directories in which private homes and outputs are made.
pub(super) fn runs_folder(host: &Host<'_>) -> Result<std::path::PathBuf> {
    let folder = host.slots.join(".runs");
    crate::store::layout::create_private_dir(&folder)?;
    Ok(folder)
}

/// A private home for a verifier.
pub(super) fn private_home(host: &Host<'_>, verifier: &Verifier) -> Result<PrivateHome> {
    let real = host.home.unwrap_or(Path::new("/nonexistent"));
    PrivateHome::create_under(&runs_folder(host)?, real, &verifier.manifest.read)
}

/// The complete environment of a verifier's processes.
pub(super) fn environment(
    host: &Host<'_>,
    verifier: &Verifier,
    home: &PrivateHome,
) -> Vec<(OsString, OsString)> {
    let path = host.var("PATH").unwrap_or_default();
    let mut env = base_environment(path, home.home(), home.tmp(), host.var("LANG"), host.var("TZ"));
    env.extend(CACHES.iter().map(|(name, place)| ((*name).into(), home.home().join(place).into())));
    for name in &verifier.manifest.env {
        if let Some(value) = host.var(name) {
            env.retain(|(key, _)| key != OsStr::new(name));
            env.push((name.into(), value.to_owned()));
        }
    }
    env
}

/// Values that must be seen nowhere: see [`known_secrets`].
pub(super) fn secrets(host: &Host<'_>) -> Vec<Vec<u8>> {
    known_secrets(host.layout, host.vars)
}

/// Those of all the caller's variables whose names look like secrets, and of the files of settings that were
/// copied into worktrees.
pub fn known_secrets(layout: &Layout, vars: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    let files = read_secret_files(layout);
    let of_files = files.iter().flat_map(|file| secret_values_of_settings(file));
    secret_values(vars).into_iter().chain(of_files).collect()
}

/// The digests of the variables' values that a verifier's verdict can hang on: the passed ones, and of the
/// fixed set those that are the caller's. The name is part of what is digested.
///
/// `PATH` is not among them: what it leads to is digested as the tools, and with it hardly any evidence would
/// count in another shell. The home directory and the one for temporary files are new for each run.
pub(super) fn env_digests(host: &Host<'_>, verifier: &Verifier) -> BTreeMap<String, Option<Sha256>> {
    use std::os::unix::ffi::OsStrExt;
    let digest = |name: &str, value: &OsStr| Sha256::of(&[name.as_bytes(), b"=", value.as_bytes()].concat());
    let nowhere = Path::new("");
    let fixed =
        base_environment(OsStr::new(""), nowhere, nowhere, host.var("LANG"), host.var("TZ")).into_iter();
    let callers = fixed.filter(|(name, _)| name == "LANG" || name == "TZ").map(|(name, value)| {
        let name = name.to_string_lossy().into_owned();
        let digest = digest(&name, &value);
        (name, Some(digest))
    });
    let passed = verifier.manifest.env.iter();
    let passed = passed.map(|name| (name.clone(), host.var(name).map(|value| digest(name, value))));
    callers.chain(passed).collect()
}

/// Finds, digests and asks the programs of a verifier.
pub(super) fn find(host: &Host<'_>, verifier: &Verifier, digests: &mut FileDigests) -> Result<Found> {
    let home = private_home(host, verifier)?;
    let env = environment(host, verifier, &home);
    let mut tools = Vec::new();
    for spec in tools_of_verifier(verifier) {
        match find_tool(host, &spec, (&env, home.tmp()), digests)? {
            Ok(found) => tools.extend(found),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(tools))
}

/// Tries each program of a verifier by itself: its name, and what is wrong with it.
pub(super) fn try_each_tool(host: &Host<'_>, verifier: &Verifier) -> Result<Vec<(String, Option<String>)>> {
    let home = private_home(host, verifier)?;
    let env = environment(host, verifier, &home);
    let mut digests = FileDigests::open(&host.layout.digests());
    let mut tried = Vec::new();
    for spec in tools_of_verifier(verifier) {
        let found = find_tool(host, &spec, (&env, home.tmp()), &mut digests)?;
        tried.push((spec.name, found.err()));
    }
    Ok(tried)
}

/// Finds, digests and asks one program, and whatever runs it.
fn find_tool(
    host: &Host<'_>,
    spec: &ToolSpec,
    (env, cwd): (&[(OsString, OsString)], &Path),
    digests: &mut FileDigests,
) -> Result<Found> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let Ok(file) = find_program(OsStr::new(&spec.name), Path::new("/"), path) else {
        return Ok(Err(format!("{} was not found on PATH", spec.name)));
    };
    let sha256 = match digests.of(&file) {
        Ok(sha256) => sha256,
        Err(error) => return Ok(Err(format!("{} cannot be read: {error}", file.display()))),
    };
    let probe = match spec.probe.is_empty() {
        true => None,
        false => match probe(host, &spec.probe, env, cwd)? {
            Ok(answer) => Some(answer),
            Err(why) => return Ok(Err(why)),
        },
    };
    let mut tools = Vec::new();
    if let Some(interpreter) = interpreter_of(&file, path)
        && let Ok(sha256) = digests.of(&interpreter)
    {
        let name = format!("{}, which runs {}", interpreter.display(), spec.name);
        tools.push(Tool { name, sha256, probe: None });
    }
    tools.push(Tool { name: spec.name.clone(), sha256, probe });
    Ok(Ok(tools))
}

/// The program that runs a script, as its first line names it; `None` for what is no script.
fn interpreter_of(script: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut first = [0u8; LONGEST_FIRST_LINE];
    let length = std::fs::File::open(script).ok()?.read(&mut first).ok()?;
    let line = first.get(..length)?.split(|b| *b == b'\n').next()?.strip_prefix(b"#!")?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let program = words.next()?;
    let is_env = Path::new(program).file_name() == Some(OsStr::new("env"));
    let named = match is_env {
        true => words.find(|word| !word.starts_with('-') && !word.contains('='))?,
        false => program,
    };
    find_program(OsStr::new(named), Path::new("/"), path).ok()
}

/// The declared tools, and the programs that the commands name.
fn tools_of_verifier(verifier: &Verifier) -> Vec<ToolSpec> {
    let manifest = &verifier.manifest;
    let mut tools = manifest.tools.clone();
    let programs =
        manifest.command.first().into_iter().chain(manifest.setup.iter().filter_map(|s| s.command.first()));
    for program in programs {
        // A program with a relative path is a file of the tree: the listing or the closure has it.
        let outside = program.starts_with('/') || !program.contains('/');
        if outside && !tools.iter().any(|tool| tool.name == *program) {
            tools.push(ToolSpec { name: program.clone(), probe: Vec::new() });
        }
    }
    tools
}

fn probe(
    host: &Host<'_>,
    argv: &[String],
    env: &[(OsString, OsString)],
    cwd: &Path,
) -> Result<std::result::Result<Sha256, String>> {
    let mut command = Invocation::new(argv.iter().map(OsString::from), cwd);
    command.env = env.to_vec();
    command.timeout = PROBE_TIME;
    command.output_cap = 64 * 1024;
    command.secrets = secrets(host);
    let unwanted = std::cell::RefCell::new(None);
    let finished = process::run_program(host.program, &command, &|_| {
        let halt = (host.watch)(0);
        let may_go_on = halt.is_none();
        unwanted.replace(halt);
        may_go_on
    })?;
    if let (ProgramEnd::Stopped, Some(RunHalt::Unwanted(failure))) = (&finished.end, unwanted.into_inner()) {
        return Err(failure);
    }
    Ok(match finished.end {
        ProgramEnd::Exited(0) => Ok(Sha256::of(&finished.stdout.bytes)),
        ProgramEnd::NotStarted { message, .. } => {
            Err(format!("`{}` could not be asked for its version: {message}", argv.join(" ")))
        }
        _ => Err(format!(
            "`{}` did not tell its version: {}",
            argv.join(" "),
            complaint_line(&finished.stderr.bytes)
        )),
    })
}

/// The first line of what a program complained about, for a sentence; Python says it last.
fn complaint_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("it failed");
    let line = if first.starts_with("Traceback") { lines.next_back().unwrap_or(first) } else { first };
    line.chars().filter(|c| !c.is_control()).take(LONGEST_COMPLAINT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the user")]
    fn a_script_is_run_by_what_its_first_line_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        let runs = |first: &str| {
            std::fs::write(&script, format!("{first}\nrest\n")).expect("written");
            interpreter_of(&script, Some(OsStr::new("/bin:/usr/bin")))
        };
        let named = |found: Option<PathBuf>| found.and_then(|p| p.file_name().map(OsStr::to_owned));
        assert_eq!(runs("#!/bin/sh -e"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(named(runs("#! /usr/bin/env -S A=1 sh -e")), Some("sh".into()));
        assert_eq!(runs("#!/nowhere/python"), None);
        assert_eq!((runs("echo"), runs("")), (None, None));
    }
}
