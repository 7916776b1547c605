//! Says what the inputs of verifiers name, so that nothing is judged by a look at an empty folder.
//!
//! Inputs that name no file are a mistake of the manifest where the base has none, and a way to escape the
//! judge where the candidate took the last one away.

use super::load::{Verifier, Verifiers};
use super::manifest::VerifierKind;
use super::scripts::files_of_shell_text;
use crate::domain::contract::Contract;
use crate::domain::value::document::nearest_name;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::{Fit, Scope};
use crate::error::{Code, Failure, Result};
use std::collections::BTreeSet;

/// The inputs of a verifier that runs a command; `None` where it depends on the whole tree.
pub fn inputs_of(verifier: &Verifier) -> Option<&Scope> {
    verifier.manifest.inputs.as_ref().filter(|_| verifier.manifest.kind == VerifierKind::Command)
}

/// True where a path may lie in both.
pub fn can_meet(one: &Scope, other: &Scope) -> bool {
    let meets = |a: &Scope, b: &Scope| a.fit_patterns(b).iter().any(|(_, fit)| *fit != Fit::Outside);
    meets(one, other) || meets(other, one)
}

/// Looks at a verifier that a contract asks for, as `open` does: what its inputs name in the base, and how
/// its command reads. Gives notes for people; refused (`config.invalid`) where it could never look at
/// anything.
pub fn check_asked_for(verifier: &Verifier, base: &[RepoPath], contract: &Contract) -> Result<Vec<String>> {
    let id = &verifier.manifest.id;
    let mut notes = command_notes(verifier);
    notes.extend(hidden_script_notes(verifier, base));
    let Some(inputs) = inputs_of(verifier) else { return Ok(notes) };
    let dead = dead_patterns(inputs, &base.iter().collect::<Vec<_>>())?;
    if dead.len() < inputs.patterns().len() {
        notes.extend(dead.iter().map(|p| format!("{id}: `{p}` among its inputs names nothing in the base")));
        return Ok(notes);
    }
    let named = inputs.patterns().join(", ");
    if can_meet(inputs, &contract.write_scope) {
        notes.push(format!(
            "{id}: its inputs ({named}) name nothing in the base yet, so it cannot run before they do"
        ));
        return Ok(notes);
    }
    let folders = folders_of(base);
    let known: Vec<&str> = folders.iter().map(String::as_str).collect();
    let message = format!("the inputs of the verifier {id:?} ({named}) name no file of the base");
    let failure = Failure::new(Code::ConfigInvalid, message)
        .subject("inputs")
        .expected("a pattern that names a file of the base", &named)
        .detail("verifier", id);
    let failure = match nearest_name(&named, &known) {
        Some(near) => failure.detail("nearest", near),
        None => failure,
    };
    Err(failure.remedy(
        "Correct `inputs` in its manifest and commit it, or do not ask for this verifier.",
        ["git", "tender", "doctor"],
    ))
}

/// The patterns that name none of these files.
pub fn dead_patterns(inputs: &Scope, files: &[&RepoPath]) -> Result<Vec<String>> {
    let mut dead = Vec::new();
    for pattern in inputs.patterns() {
        let own = Scope::parse_field("inputs", Code::ConfigInvalid, vec![pattern.clone()])?;
        if !files.iter().any(|path| own.matches_path(path)) {
            dead.push(pattern.clone());
        }
    }
    Ok(dead)
}

/// The folders of a tree as patterns, and its files at the top.
fn folders_of(files: &[RepoPath]) -> BTreeSet<String> {
    let pattern = |path: &RepoPath| match path.parent() {
        Some(folder) => format!("{folder}/**"),
        None => path.to_string(),
    };
    files.iter().map(pattern).collect()
}

/// What a person should know of a command that no shell reads.
fn command_notes(verifier: &Verifier) -> Vec<String> {
    const OPERATORS: [&str; 9] = ["&&", "||", "|", ">", ">>", "<", "2>&1", ";", "&"];
    let manifest = &verifier.manifest;
    let setup = manifest.setup.iter().flat_map(|setup| setup.command.get(1..).unwrap_or_default());
    let own = manifest.command.get(1..).unwrap_or_default().iter();
    let odd = |argument: &&String| {
        OPERATORS.contains(&argument.as_str()) || (argument.contains('*') && !argument.starts_with('-'))
    };
    let through_shell = |argument: &&String| argument.contains(' ');
    own.chain(setup)
        .filter(|argument| odd(argument) && !through_shell(argument))
        .map(|argument| {
            format!("{}: no shell reads its command, so `{argument}` is passed on as it stands", manifest.id)
        })
        .collect()
}

/// Scripts that a shell's text runs: they are inputs, of which a change may have its own.
fn hidden_script_notes(verifier: &Verifier, base: &[RepoPath]) -> Vec<String> {
    let manifest = &verifier.manifest;
    let setup = manifest.setup.as_ref().map(|setup| setup.command.as_slice()).unwrap_or_default();
    let scripts = files_of_shell_text(&manifest.command).into_iter().chain(files_of_shell_text(setup));
    scripts
        .filter(|path| base.contains(path) && !verifier.scope.matches_path(path) && !manifest.watch.matches_path(path))
        .map(|path| {
            let id = &manifest.id;
            format!("{id}: `{path}` is named in a text for a shell, so it is an input, and a person confirms where a change has another; name it in `closure` to be judged by the base's")
        })
        .collect()
}

/// The ids among these that name nothing: no manifest, nothing built in, nothing in the live tree.
pub fn unknown_ids<'a>(verifiers: &Verifiers, ids: &'a [String]) -> Result<Vec<&'a String>> {
    let mut unknown = Vec::new();
    for id in ids {
        if verifiers.is_manual(id) && verifiers.get(id)?.is_none() {
            unknown.push(id);
        }
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| RepoPath::new(*name).expect("a path")).collect()
    }

    fn scope(patterns: &[&str]) -> Scope {
        Scope::new(patterns.iter().map(|p| (*p).to_owned()).collect()).expect("patterns")
    }

    #[test]
    fn a_pattern_is_dead_where_it_names_no_file() {
        let files = paths(&["src/a.py", "Makefile"]);
        let dead = dead_patterns(
            &scope(&["src/**", "scr/**", "Makefile", "*.toml"]),
            &files.iter().collect::<Vec<_>>(),
        );
        let dead = dead.expect("patterns");
        assert_eq!(dead, ["scr/**", "*.toml"]);
        assert_eq!(folders_of(&files).into_iter().collect::<Vec<_>>(), ["Makefile", "src/**"]);
    }

    #[test]
    fn scopes_meet_from_either_side() {
        for (one, other, meet) in [
            ("src/**", "src/", true),
            ("src/**", "src/a.py", true),
            ("docs/", "src/**", false),
            ("**", "docs/a.md", true),
            ("Cargo.*", "Cargo.toml", true),
        ] {
            assert_eq!(can_meet(&scope(&[one]), &scope(&[other])), meet, "{one} {other}");
            assert_eq!(can_meet(&scope(&[other]), &scope(&[one])), meet, "{other} {one}");
        }
    }
}
