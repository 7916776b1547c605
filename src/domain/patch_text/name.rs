//! Names of files as patches write them.

/// A name in a patch. Those of `---`, `+++` and `diff --git` carry a prefix component (`a/`); those of `rename from` do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The bytes, unquoted.
    pub bytes: Vec<u8>,
    /// Whether a prefix belongs to it where the patch has prefixes.
    pub prefixed: bool,
}

impl Name {
    /// The path without its prefix component, where `strip` says that the patch has them. `None` where there is no component to strip.
    #[must_use]
    pub fn path(&self, strip: bool) -> Option<&[u8]> {
        if !(strip && self.prefixed) {
            return Some(&self.bytes);
        }
        let slash = self.bytes.iter().position(|b| *b == b'/')?;
        Some(&self.bytes[slash + 1..])
    }
}

/// The name of a `---` or `+++` line: up to a tab, or quoted. `None` for `/dev/null`. Second: what follows the name.
pub(super) fn of_line(rest: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    if let Some((name, used)) = unquote(rest) {
        return (Some(name), &rest[used..]);
    }
    let end = rest.iter().position(|b| *b == b'\t').unwrap_or(rest.len());
    let name = &rest[..end];
    ((name != b"/dev/null").then(|| name.to_vec()), rest.get(end + 1..).unwrap_or_default())
}

/// A name that fills its line, quoted or not.
pub(super) fn whole(rest: &[u8]) -> Vec<u8> {
    unquote(rest).map_or_else(|| rest.to_vec(), |(name, _)| name)
}

/// The name in `diff --git`, which both halves must agree on. `None` where they do not: then other lines tell the names.
pub(super) fn of_git_header(rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if let Some((old, used)) = unquote(rest) {
        let second = rest.get(used..)?.strip_prefix(b" ")?;
        return Some((old, whole(second)));
    }
    if rest.ends_with(b"\"") {
        let at = rest.windows(2).position(|w| w == b" \"")?;
        return Some((rest[..at].to_vec(), whole(&rest[at + 1..])));
    }
    let without_prefix = |name: &[u8]| name.iter().position(|b| *b == b'/').map(|n| name[n + 1..].to_vec());
    let spaces = (0..rest.len()).filter(|at| rest[*at] == b' ');
    let halves: Vec<(&[u8], &[u8])> = spaces.map(|at| (&rest[..at], &rest[at + 1..])).collect();
    let same = |(a, b): &&(&[u8], &[u8])| {
        a == b
            || matches!((without_prefix(a), without_prefix(b)), (Some(x), Some(y)) if x == y && !x.is_empty())
    };
    halves.iter().find(same).map(|(a, b)| (a.to_vec(), b.to_vec()))
}

/// A name in quotes with C escapes; gives it and how many bytes it took.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut at = text.first().filter(|b| **b == b'"').map(|_| 1)?;
    let mut name = Vec::new();
    loop {
        match *text.get(at)? {
            b'"' => return Some((name, at + 1)),
            b'\\' => {
                let (byte, used) = escape(text.get(at + 1..)?)?;
                name.push(byte);
                at += 1 + used;
            }
            byte => {
                name.push(byte);
                at += 1;
            }
        }
    }
}

fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let byte = match text.first()? {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'"' => b'"',
        b'\\' => b'\\',
        b'0'..=b'3' => {
            let digits = text.get(..3).filter(|d| d.iter().all(|b| (b'0'..=b'7').contains(b)))?;
            return Some((digits.iter().fold(0u8, |n, d| n.wrapping_mul(8).wrapping_add(d - b'0')), 3));
        }
        _ => return None,
    };
    Some((byte, 1))
}
