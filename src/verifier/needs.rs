//! What a verifier needs, tried thing by thing: for whoever asks what is missing before anything is judged.

use super::inputs::{dead_patterns, inputs_of};
use super::load::Verifier;
use super::manifest::VerifierKind;
use super::{Host, reads, tools, view};
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::tree::TreeFile;

/// What a verifier has and has not of what it needs.
#[derive(Debug, Default)]
pub struct FoundNeeds {
    /// Its programs, each with what is wrong with it; `None` where it works.
    pub tools: Vec<(String, Option<String>)>,
    /// What its manifest lets it read and is not on this machine. It runs without.
    pub absent_reads: Vec<String>,
    /// Those patterns of its inputs that name no file of the tree.
    pub dead_inputs: Vec<String>,
    /// Why it could not run on this tree.
    pub problem: Option<String>,
}

/// Looks for everything that a verifier needs, on this machine and in a tree. Runs the probes of its tools.
pub fn find_needs(verifier: &Verifier, host: &Host<'_>, tree: &[TreeFile]) -> Result<FoundNeeds> {
    if verifier.manifest.kind != VerifierKind::Command {
        return Ok(FoundNeeds::default());
    }
    let paths: Vec<&RepoPath> = tree.iter().map(|file| &file.path).collect();
    let patterns = inputs_of(verifier);
    let dead_inputs = patterns.map(|inputs| dead_patterns(inputs, &paths)).transpose()?.unwrap_or_default();
    let nothing = patterns.filter(|inputs| dead_inputs.len() == inputs.patterns().len());
    let nothing = nothing.map(|_| "its inputs name no file".to_owned());
    let is_there = |path: &RepoPath| Ok(tree.iter().any(|file| file.path == *path));
    let problem = match nothing {
        Some(nothing) => Some(nothing),
        None => view::missing_program(verifier, &is_there)?,
    };
    Ok(FoundNeeds {
        tools: tools::try_each_tool(host, verifier)?,
        absent_reads: reads::absent_reads(host, verifier),
        dead_inputs,
        problem,
    })
}
