//! Keeps the user's bytes on the lines that a change does not touch.
//!
//! A checkout whose line ends are not those that git would write today (rewritten by an editor, or mixed) is
//! no conflict as long as git would store the same blob. Writing git's own bytes would then change every
//! line, so the change is carried over line by line; the caller checks that git stores the result as exactly
//! the new blob.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The bytes of `live` with the difference from `before` to `after` (two blobs) carried over. `None` where
/// `live` is not `before` line by line, but for line ends.
pub fn carry_over(before: &[u8], after: &[u8], live: &[u8]) -> Option<Vec<u8>> {
    let (old, new, mine) = (split_lines(before), split_lines(after), split_lines(live));
    if old.len() != mine.len() || old.iter().zip(&mine).any(|(a, b)| strip_line_end(a) != strip_line_end(b)) {
        return None;
    }
    let end = usual_end(&mine);
    let mut out = Vec::with_capacity(live.len() + after.len().saturating_sub(before.len()));
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                mine[old_index..old_index + len].iter().for_each(|line| out.extend_from_slice(line));
            }
            DiffOp::Insert { new_index, new_len, .. } | DiffOp::Replace { new_index, new_len, .. } => {
                for line in &new[new_index..new_index + new_len] {
                    out.extend_from_slice(strip_line_end(line));
                    out.extend_from_slice(if line.ends_with(b"\n") { end } else { b"" });
                }
            }
            DiffOp::Delete { .. } => {}
        }
    }
    Some(out)
}

fn split_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|b| *b == b'\n').collect()
}

/// A line without its end.
fn strip_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The line end that most lines have.
fn usual_end(lines: &[&[u8]]) -> &'static [u8] {
    let crlf = lines.iter().filter(|l| l.ends_with(b"\r\n")).count();
    let lf = lines.iter().filter(|l| l.ends_with(b"\n")).count() - crlf;
    if crlf > lf { b"\r\n" } else { b"\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn untouched_lines_keep_their_ends() {
        let live = b"a\r\nb\nc\r\nd\r\n";
        let out = carry_over(b"a\nb\nc\nd\n", b"a\nb\nC\nx\nd\n", live).expect("same lines");
        assert_eq!(out, b"a\r\nb\nC\r\nx\r\nd\r\n");
        assert_eq!(carry_over(b"a\nb\n", b"a\n", b"a\nB\n"), None);
        assert_eq!(carry_over(b"a\n", b"a", b"a\r\n").expect("same lines"), b"a");
    }

    proptest! {
        #[test]
        fn the_result_is_the_new_blob_but_for_ends(
            old in proptest::collection::vec("[ab]{0,2}", 0..8),
            new in proptest::collection::vec("[ab]{0,2}", 0..8),
            ends in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let text = |lines: &[String]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
            let live: String =
                old.iter().zip(&ends).map(|(l, crlf)| format!("{l}{}", if *crlf { "\r\n" } else { "\n" })).collect();
            let out = carry_over(text(&old).as_bytes(), text(&new).as_bytes(), live.as_bytes()).expect("same lines");
            prop_assert_eq!(String::from_utf8(out).expect("text").replace('\r', ""), text(&new));
        }
    }
}
