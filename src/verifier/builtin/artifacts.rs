//! `artifacts`: what the contract claims of files holds for the candidate's bytes, whatever anyone said of
//! them.
//!
//! The bytes are those of the blob. A link is not the file that it leads to, and neither a directory nor a
//! submodule is a file: where one stands in its place, the claim is broken.

use super::{BuiltinOutcome, finding};
use crate::domain::contract::Artifact;
use crate::domain::proof::evidence::Finding;
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::document::quote_clipped;
use crate::domain::value::repo_path::RepoPath;
use crate::error::Result;
use crate::git::objects::Objects;
use crate::git::tree;

/// Judges every claim; each broken one is a finding. The failure is that an object cannot be read.
pub fn judge(
    artifacts: &[Artifact],
    objects: &Objects,
    base_tree: &ObjectId,
    tree: &ObjectId,
) -> Result<BuiltinOutcome> {
    let mut findings = Vec::new();
    for artifact in artifacts {
        let path = RepoPath::new(artifact.path.as_bytes())?;
        claim(artifact, &path, objects, (base_tree, tree), &mut findings)?;
    }
    Ok(BuiltinOutcome::by(findings))
}

fn claim(
    artifact: &Artifact,
    path: &RepoPath,
    objects: &Objects,
    (base_tree, tree): (&ObjectId, &ObjectId),
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let found = tree::find_entry(objects, tree, path)?;
    let directory = found.is_none() && is_directory(objects, tree, path)?;
    let mut broken = |rule: &str, message: String| findings.push(finding(path, None, rule, message));
    if artifact.must_change
        && !directory
        && let Some(message) =
            unchanged(objects, found.as_ref(), tree::find_entry(objects, base_tree, path)?.as_ref())?
    {
        broken("mustChange", message.to_owned());
    }
    let id = match found {
        Some(TreeObject { mode: Mode::File | Mode::Executable, id }) => id,
        other => {
            match other {
                Some(TreeObject { mode: Mode::Symlink, .. }) => {
                    broken("file", "is a link, not a file".to_owned())
                }
                Some(_) => broken("file", "is a submodule, not a file".to_owned()),
                None if directory => broken("file", "is a directory, not a file".to_owned()),
                None if artifact.must_exist => broken("mustExist", "is not there".to_owned()),
                None => {}
            }
            return Ok(());
        }
    };
    if artifact.max_bytes.is_none() && artifact.must_not_contain.is_empty() {
        return Ok(());
    }
    let bytes = objects.read_blob(&id)?;
    if let Some(most) = artifact.max_bytes.filter(|most| bytes.len() as u64 > *most) {
        broken("maxBytes", format!("has {} bytes, where {most} are the most", bytes.len()));
    }
    for text in &artifact.must_not_contain {
        if let Some(line) = line_of(&bytes, text) {
            let message = format!("contains {}", quote_clipped(text));
            findings.push(finding(path, Some(line), "mustNotContain", message));
        }
    }
    Ok(())
}

/// Says why a path counts as not changed: its content has to be another one, by more than white space at the
/// end. `None` where it changed.
fn unchanged(
    objects: &Objects,
    now: Option<&TreeObject>,
    before: Option<&TreeObject>,
) -> Result<Option<&'static str>> {
    let (now, before) = match (now, before) {
        (None, None) => return Ok(Some("is neither in the base nor here")),
        (Some(now), Some(before)) => (now, before),
        _ => return Ok(None),
    };
    if now == before {
        return Ok(Some("is as it was in the base"));
    }
    if !now.mode.is_regular() || !before.mode.is_regular() {
        return Ok(None);
    }
    if now.id == before.id {
        return Ok(Some("has another mode, and the content that it had in the base"));
    }
    let (now, before) = (objects.read_blob(&now.id)?, objects.read_blob(&before.id)?);
    let same = now.trim_ascii_end() == before.trim_ascii_end();
    Ok(same.then_some("differs from the base in nothing but white space at its end"))
}

/// The line, from 1, where the text first occurs, in UTF-8 or in UTF-16 of either order.
fn line_of(bytes: &[u8], text: &str) -> Option<u64> {
    let utf16 = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    let forms = [text.as_bytes().to_vec(), utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)];
    let at = aho_corasick::AhoCorasick::new(forms).ok()?.find(bytes)?.start();
    Some(bytes[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
}

fn is_directory(objects: &Objects, tree: &ObjectId, path: &RepoPath) -> Result<bool> {
    let mut at = tree.clone();
    for name in path.components() {
        match objects.read_tree(&at)?.into_iter().find(|entry| entry.name == name) {
            Some(entry) if entry.mode.is_none() => at = entry.id,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn artifact(path: &str) -> Artifact {
        Artifact {
            path: path.into(),
            must_exist: true,
            must_change: false,
            max_bytes: None,
            must_not_contain: Vec::new(),
        }
    }

    struct TreesFixture {
        home: TestRepository,
        base: ObjectId,
        candidate: ObjectId,
    }

    impl TreesFixture {
        fn new() -> Self {
            let home = TestRepository::new();
            home.write_file("same", b"old\n");
            home.write_file("other", b"old\n");
            home.write_file("gone", b"old\n");
            home.write_file("ended", b"old\n");
            home.write_file("moded", b"old\n");
            let base = home.commit_all("base");
            home.write_file("other", b"one\nTODO two\n");
            home.write_file("dir/file", b"x");
            home.remove_file("gone");
            home.write_file("ended", b"old \n\n");
            let moded = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(home.top().join("moded"), moded).expect("a mode");
            symlink("other", home.top().join("link")).expect("a link");
            let candidate = home.commit_all("candidate");
            Self { home, base, candidate }
        }

        fn judge(&self, artifact: Artifact) -> BuiltinOutcome {
            let objects = self.home.repository().object_reader(None).expect("objects");
            judge(&[artifact], &objects, &self.base, &self.candidate).expect("judged")
        }

        fn rules(&self, artifact: Artifact) -> Vec<String> {
            self.judge(artifact).findings.into_iter().filter_map(|finding| finding.rule).collect()
        }
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_file_has_to_be_there_as_a_file() {
        let trees = TreesFixture::new();
        assert_eq!(trees.rules(artifact("same")), NONE);
        assert_eq!(trees.rules(artifact("gone")), ["mustExist"]);
        assert_eq!(trees.rules(artifact("same/below")), ["mustExist"]);
        for place in ["link", "dir"] {
            assert_eq!(trees.rules(artifact(place)), ["file"], "{place}");
            assert_eq!(trees.rules(Artifact { must_exist: false, ..artifact(place) }), ["file"], "{place}");
        }
        let absent = Artifact { must_exist: false, max_bytes: Some(0), ..artifact("gone") };
        assert_eq!(trees.rules(absent), NONE, "nothing else is said of a file that is not there");
    }

    #[test]
    fn a_change_is_one_of_the_tree() {
        let trees = TreesFixture::new();
        let changed = |path: &str| Artifact { must_change: true, ..artifact(path) };
        assert_eq!(trees.rules(changed("same")), ["mustChange"]);
        assert_eq!(trees.rules(changed("other")), NONE);
        assert_eq!(trees.rules(changed("ended")), ["mustChange"], "white space at the end");
        assert_eq!(trees.rules(changed("moded")), ["mustChange"], "a mode alone");
        assert_eq!(trees.rules(changed("never")), ["mustChange", "mustExist"]);
        assert_eq!(trees.rules(Artifact { must_exist: false, ..changed("gone") }), NONE);
    }

    #[test]
    fn bytes_are_measured_and_searched() {
        let trees = TreesFixture::new();
        assert_eq!(trees.rules(Artifact { max_bytes: Some(13), ..artifact("other") }), NONE);
        let judged = trees.judge(Artifact {
            max_bytes: Some(12),
            must_not_contain: vec!["absent".into(), "TODO".into(), "one\nTODO".into()],
            ..artifact("other")
        });
        assert_eq!(judged.reason.as_deref(), Some("other: has 13 bytes, where 12 are the most (and 2 more)"));
        let lines: Vec<_> = judged.findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [None, Some(2), Some(1)]);
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = "\u{feff}a\nTODO".encode_utf16().flat_map(order).collect();
            assert_eq!((line_of(&bytes, "TODO"), line_of(&bytes[2..], "absent")), (Some(2), None));
        }
    }
}
