//! The hunks between two versions of a text, and the version that comes of taking some of them.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};
use std::ops::Range;

/// How many equal lines are shown around what differs.
const CONTEXT: usize = 3;

/// Lines that differ, with the equal ones around them: which lines of the one version they are, and which of
/// the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextHunk {
    old: Range<usize>,
    new: Range<usize>,
    ops: Vec<DiffOp>,
}

/// Two versions of a text, by lines.
#[derive(Debug)]
pub struct TextPair<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
}

impl<'a> TextPair<'a> {
    /// `None` where one of them is no text.
    pub fn split_lines(old: &'a [u8], new: &'a [u8]) -> Option<Self> {
        let lines = |text: &'a [u8]| text.split_inclusive(|byte| *byte == b'\n').collect();
        let is_text = |text: &[u8]| !text.contains(&0);
        (is_text(old) && is_text(new)).then(|| Self { old: lines(old), new: lines(new) })
    }

    /// What differs, from the top.
    pub fn list_hunks(&self) -> Vec<TextHunk> {
        let ops = capture_diff_slices(Algorithm::Myers, &self.old, &self.new);
        let groups = group_diff_ops(ops, CONTEXT);
        let hunk = |ops: Vec<DiffOp>| {
            let (first, last) = (ops.first()?, ops.last()?);
            Some(TextHunk {
                old: first.old_range().start..last.old_range().end,
                new: first.new_range().start..last.new_range().end,
                ops,
            })
        };
        groups.into_iter().filter_map(hunk).collect()
    }

    /// The old version with these hunks taken.
    pub fn with_hunks(&self, taken: &[TextHunk]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut at = 0;
        for hunk in taken {
            self.old[at..hunk.old.start].iter().for_each(|line| text.extend_from_slice(line));
            self.new[hunk.new.clone()].iter().for_each(|line| text.extend_from_slice(line));
            at = hunk.old.end;
        }
        self.old[at..].iter().for_each(|line| text.extend_from_slice(line));
        text
    }

    /// A hunk as people know it: its head, then each line behind ` `, `-` or `+`.
    pub fn show_hunk(&self, hunk: &TextHunk) -> Vec<String> {
        let start = |range: &Range<usize>| if range.is_empty() { range.start } else { range.start + 1 };
        let (old, new) = (&hunk.old, &hunk.new);
        let mut shown = vec![format!("@@ -{},{} +{},{} @@", start(old), old.len(), start(new), new.len())];
        let mut add = |sign: char, lines: &[&[u8]]| {
            for line in lines {
                let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
                shown.push(format!("{sign}{text}"));
                if !line.ends_with(b"\n") {
                    shown.push("\\ No newline at end of file".to_owned());
                }
            }
        };
        for op in &hunk.ops {
            if op.tag() == DiffTag::Equal {
                add(' ', &self.old[op.old_range()]);
            } else {
                add('-', &self.old[op.old_range()]);
                add('+', &self.new[op.new_range()]);
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_hunk_can_be_taken_by_itself() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n3\n", "\nthree\n").replace("\n18\n", "\n").replace("20\n", "20");
        let pair = TextPair::split_lines(old.as_bytes(), new.as_bytes()).expect("text");
        let hunks = pair.list_hunks();
        assert_eq!(hunks.len(), 2);
        let first = String::from_utf8(pair.with_hunks(&hunks[..1])).expect("text");
        assert_eq!(first, old.replace("\n3\n", "\nthree\n"));
        let second = String::from_utf8(pair.with_hunks(&hunks[1..])).expect("text");
        assert_eq!(second, old.replace("\n18\n", "\n").replace("20\n", "20"));
        let shown = pair.show_hunk(&hunks[1]);
        assert_eq!(shown[0], "@@ -15,6 +15,5 @@");
        assert!(shown.contains(&"-18".to_owned()) && shown.last().is_some_and(|last| last.starts_with('\\')));
        assert!(TextPair::split_lines(b"a\0", b"a").is_none());
    }

    proptest! {
        #[test]
        fn none_of_them_is_the_old_version_and_all_of_them_the_new(
            old in prop::collection::vec("[ab]{0,2}\n?", 0..40), new in prop::collection::vec("[ab]{0,2}\n?", 0..40),
        ) {
            let (old, new) = (old.concat(), new.concat());
            let pair = TextPair::split_lines(old.as_bytes(), new.as_bytes()).expect("text");
            let hunks = pair.list_hunks();
            prop_assert_eq!(pair.with_hunks(&[]), old.as_bytes());
            prop_assert_eq!(pair.with_hunks(&hunks), new.as_bytes());
        }
    }
}
