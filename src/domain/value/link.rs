//! Where a symbolic link of a tree leads, worked out from the tree alone.
//!
//! A link may lead through other links, so `a/b/..` is not simply `a`: the walk resolves each link on its
//! way, as the system would.

use crate::domain::value::repo_path::{RepoPath, is_dot_git};

/// More links than this on one way are a loop; the system gives up at the same number.
const MOST_LINKS: u32 = 40;

/// Why the target of the link at `path` is not inside the tree, or `None` where it is. `lookup` gives the
/// target of a link at a path of the tree.
pub fn find_escape(
    path: &RepoPath,
    target: &[u8],
    lookup: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<&'static str> {
    let mut at: Vec<Vec<u8>> = path.components().map(<[u8]>::to_vec).collect();
    at.pop();
    let mut rest: Vec<Vec<u8>> = split_target(target)?;
    if target.first() == Some(&b'/') {
        return Some("its target is absolute");
    }
    let mut followed = 0;
    while let Some(name) = rest.pop() {
        match name.as_slice() {
            b"" | b"." => continue,
            b".." => {
                if at.pop().is_none() {
                    return Some("its target lies outside the tree");
                }
                continue;
            }
            name if is_dot_git(name) => return Some("its target is a `.git`"),
            _ => at.push(name),
        }
        let Some(next) = lookup(&at.join(&b'/')) else { continue };
        followed += 1;
        if followed > MOST_LINKS {
            return None;
        }
        if next.first() == Some(&b'/') {
            return Some("it leads through another link to an absolute path");
        }
        at.pop();
        rest.extend(split_target(&next).unwrap_or_default());
    }
    None
}

/// The components of a target, last one first. An empty target leads nowhere.
fn split_target(target: &[u8]) -> Option<Vec<Vec<u8>>> {
    (!target.is_empty()).then(|| target.split(|b| *b == b'/').rev().map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use crate::domain::value::link::*;

    fn escape_of(path: &str, target: &str, links: &[(&str, &str)]) -> Option<&'static str> {
        let lookup = |at: &[u8]| {
            links.iter().find(|(p, _)| p.as_bytes() == at).map(|(_, target)| target.as_bytes().to_vec())
        };
        find_escape(&RepoPath::new(path).expect("a path"), target.as_bytes(), &lookup)
    }

    #[test]
    fn inside_is_fine() {
        for (path, target) in
            [("a/l", "../b"), ("l", "a/b/../c"), ("a/b/l", "../../x"), ("l", "./x"), ("l", "l")]
        {
            assert_eq!(escape_of(path, target, &[("l", "l")]), None, "{path} -> {target}");
        }
    }

    #[test]
    fn outside_is_seen_also_through_other_links() {
        for (path, target) in
            [("l", ".."), ("a/l", "../../x"), ("l", "/etc/passwd"), ("l", ".git/config"), ("l", "a/.GIT")]
        {
            assert!(escape_of(path, target, &[]).is_some(), "{path} -> {target}");
        }
        let links = [("p/q/d", "../../a")];
        assert!(escape_of("l", "p/q/d/../../z", &links).is_some());
        assert_eq!(escape_of("l", "p/q/e/../../z", &links), None);
        assert!(escape_of("l", "d/x", &[("d", "/tmp")]).is_some());
    }
}
