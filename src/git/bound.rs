//! The text of a bound patch: written by git in one canonical form, whatever the user configured, and shown
//! to give the candidate.

use super::command::Quarantine;
use super::private_index::PrivateIndex;
use super::repository::Repository;
use super::tree::list_differences;
use crate::domain::value::digest::ObjectId;
use crate::error::{Failure, Result};

const FORM: &[&str] = &[
    "diff-tree",
    "-r",
    "-p",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-indent-heuristic",
    "--diff-algorithm=myers",
    "--unified=3",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--submodule=short",
    "--ignore-submodules=none",
];

/// The patch from `base` to `tree`; empty where they are the same.
pub fn patch_text(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    tree: &ObjectId,
) -> Result<Vec<u8>> {
    let index = PrivateIndex::isolated_empty(repository, quarantine)?;
    index.git_on_index()?.args(FORM).args([base.as_str(), tree.as_str(), "--"]).run_for_stdout()
}

/// Shows that the text, applied to `base`, gives exactly `tree`.
pub fn verify_patch(
    repository: &Repository,
    quarantine: &Quarantine,
    base: &ObjectId,
    text: &[u8],
    tree: &ObjectId,
) -> Result<()> {
    if text.is_empty() && base == tree {
        return Ok(());
    }
    let places = list_differences(&repository.object_reader(Some(quarantine))?, base, tree)?;
    let makes = || repository.object_store(quarantine)?.makes_of(text, &places);
    if !text.is_empty() && makes() == Some(true) {
        return Ok(());
    }
    // Git has the last word.
    let index = PrivateIndex::isolated_tree(repository, quarantine, base)?;
    if !text.is_empty() {
        let apply = ["apply", "--cached", "--binary", "--whitespace=nowarn", "-"];
        index.git_on_index()?.args(apply).stdin(text.to_vec()).run_for_stdout()?;
    }
    let given = index.write_tree()?;
    if given == *tree {
        return Ok(());
    }
    Err(Failure::internal(format!("the patch of the candidate gives the tree {given} instead of {tree}"))
        .expected(tree.as_str(), given.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_text_gives_the_candidate_and_does_not_depend_on_configuration() {
        for format in ["sha1", "sha256"] {
            let home = TestRepository::with_format(format);
            home.write_file("a b", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
            home.write_file("bin", b"\0\x01");
            home.write_file("d/x", b"1\n");
            home.write_file("l", b"1\r\n");
            let base = home.commit_all("base");
            home.write_file("a b", b"1\n2\n3\n4\nfive\n6\n7\n8\n9");
            home.write_file("bin", b"\0\x02");
            home.remove_file("d/x");
            std::fs::remove_dir(home.top().join("d")).expect("removed");
            home.write_file("d", b"a file now \n");
            home.remove_file("l");
            symlink("d", home.top().join("l")).expect("made");
            home.write_file("\u{e4}\n\"", b"");
            home.write_file("e m", b"");
            let tree = home.commit_all("candidate");
            let (repository, quarantine) = (home.repository(), home.quarantine());
            let plain = patch_text(&repository, &quarantine, &base, &tree).expect("made");
            verify_patch(&repository, &quarantine, &base, &plain, &tree).expect("gives the tree");
            verify_patch(&repository, &quarantine, &base, &plain, &base).expect_err("another tree");
            verify_patch(&repository, &quarantine, &base, &plain[..plain.len() / 2], &tree)
                .expect_err("cut off");
            for (key, value) in [
                ("diff.noprefix", "true"),
                ("diff.suppressBlankEmpty", "true"),
                ("diff.context", "0"),
                ("diff.external", "false"),
                ("color.ui", "always"),
                ("apply.whitespace", "error"),
                ("diff.x.xfuncname", "^[0-9]"),
            ] {
                home.set_config(key, value);
            }
            home.write_file(".git/info/attributes", b"* -diff\n");
            assert_eq!(patch_text(&repository, &quarantine, &base, &tree).expect("made"), plain);
            assert!(patch_text(&repository, &quarantine, &base, &base).expect("made").is_empty());
            verify_patch(&repository, &quarantine, &base, b"", &base).expect("nothing gives nothing");
        }
    }
}
