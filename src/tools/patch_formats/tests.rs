//! Each form by example, what is refused and why, and the properties that hold for any file.

mod broken_off;
mod forms;
mod large;
mod properties;
mod refusals;

use super::{FilePatch, parse_patch};
use crate::domain::value::digest::ObjectFormat;
use crate::error::{Code, Failure, Result};
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

fn files_of(list: &[(&str, &str)]) -> Files {
    list.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

/// Applies a patch to a handful of files as the tool does: all of it or nothing.
fn apply_to_files(before: &Files, patch: &str) -> Result<Files> {
    let mut after = before.clone();
    for file in parse_patch(patch)? {
        let name = file.path.to_string();
        let new = file.apply_to_file(before.get(&name).map(Vec::as_slice), ObjectFormat::Sha1)?;
        after.remove(&name);
        let name = file.move_to().map_or(name, ToString::to_string);
        if let Some(new) = new {
            after.insert(name, new);
        }
    }
    Ok(after)
}

#[track_caller]
fn assert_patch_gives(before: &[(&str, &str)], patch: &str, after: &[(&str, &str)]) {
    let found =
        apply_to_files(&files_of(before), patch).unwrap_or_else(|failure| panic!("{failure}\n{patch}"));
    let shown = |files: &Files| -> Vec<(String, String)> {
        files.iter().map(|(path, bytes)| (path.clone(), bytes.escape_ascii().to_string())).collect()
    };
    assert_eq!(shown(&found), shown(&files_of(after)), "{patch}");
}

#[track_caller]
fn expect_refusal(before: &[(&str, &str)], patch: &str, says: &str) -> Failure {
    let failure = apply_to_files(&files_of(before), patch).expect_err(patch);
    assert_eq!(failure.code(), Code::PatchInvalid, "{failure}");
    assert!(failure.message().contains(says), "{failure}\nlacks: {says}");
    failure
}

/// One file `f` through an update in the envelope.
fn envelope_updating(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

fn parse_only_patch(patch: &str) -> FilePatch {
    let mut files = parse_patch(patch).expect("a patch");
    assert_eq!(files.len(), 1);
    files.remove(0)
}
