//! The text of the bound patch: canonical bytes of what differs between two trees, and the proof that the text says just that.
//!
//! The bytes depend on the two trees alone. They are made in a private git directory, where neither configuration nor attributes
//! reach, and every option that changes the output is named.

use super::isolated::Isolated;
use super::objects::Quarantine;
use super::repository::Repository;
use super::tree;
use crate::domain::digest::ObjectId;
use crate::error::{Code, Failure, Result};

/// Settings that have no option of their own.
const SETTINGS: &[&str] = &[
    "diff.suppressBlankEmpty=false",
    "core.bigFileThreshold=512m",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
];

/// Options of `git diff-tree`.
const OPTIONS: &[&str] = &[
    "-r",
    "-p",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--no-relative",
    "--submodule=short",
    "--ignore-submodules=none",
    "--ws-error-highlight=none",
    "--output-indicator-new=+",
    "--output-indicator-old=-",
    "--output-indicator-context= ",
];

/// The patch text from one tree to another; empty where they are equal.
pub fn text(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    tree: &ObjectId,
) -> Result<Vec<u8>> {
    let isolated = Isolated::new(repository, quarantine)?;
    let write = || {
        let mut git = isolated.git();
        for setting in SETTINGS {
            git = git.setting(setting);
        }
        git.arg("diff-tree").args(OPTIONS).args([base.as_str(), tree.as_str()]).ok()
    };
    write().or_else(|first| {
        // In a partial clone a blob may be missing here; reading the manifest brings it.
        tree::changes(&repository.objects(Some(quarantine))?, base, tree).map_err(|_| first)?;
        write()
    })
}

/// Applies the text to the base and compares the outcome. `patch.invalid` where it is not the expected tree.
pub fn verify(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    text: &[u8],
    expected: &ObjectId,
) -> Result<()> {
    let isolated = Isolated::new(repository, quarantine)?;
    let wrong = |what: String, actual: Option<&ObjectId>| {
        Failure::new(
            Code::PatchInvalid,
            format!("the patch does not lead from the tree {base} to {expected}: {what}"),
        )
        .subject(base.as_str())
        .expected(expected, actual)
    };
    let actual = if text.is_empty() {
        base.clone()
    } else {
        isolated.read(base)?;
        isolated.apply(text, "-p1")?.map_err(|said| wrong(said, None))?;
        isolated.write()?
    };
    if actual == *expected { Ok(()) } else { Err(wrong(format!("it leads to {actual}"), Some(&actual))) }
}
