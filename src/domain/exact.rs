//! Applying the hunks of one file exactly where they say: no fuzz, no offset.

use super::patch_text::{Hunk, Section};
use crate::error::{Code, Failure, Result};

/// The bytes after the hunks. `path` is for messages.
pub fn apply(path: &str, section: &Section, old: &[u8]) -> Result<Vec<u8>> {
    let lines: Vec<&[u8]> = old.split_inclusive(|b| *b == b'\n').collect();
    let mut new: Vec<&[u8]> = Vec::with_capacity(lines.len());
    let mut taken = 0;
    for hunk in &section.hunks {
        let wanted: Vec<&[u8]> = hunk.old_lines().collect();
        let at = if hunk.old_count == 0 { hunk.old_start } else { hunk.old_start - 1 };
        if at < taken || lines.get(at..at + wanted.len()) != Some(wanted.as_slice()) {
            return Err(misplaced(path, hunk, &lines, &wanted));
        }
        new.extend(&lines[taken..at]);
        let expected = if hunk.new_count == 0 { new.len() } else { new.len() + 1 };
        if hunk.new_start != expected {
            return Err(invalid(path, hunk, "its new lines would begin elsewhere than its header says")
                .expected(expected, hunk.new_start));
        }
        new.extend(hunk.new_lines());
        taken = at + wanted.len();
    }
    new.extend(&lines[taken..]);
    if new.iter().rev().skip(1).any(|line| !line.ends_with(b"\n")) {
        return Err(Failure::new(
            Code::PatchInvalid,
            format!("the patch of {path} puts a line without a newline before other lines"),
        )
        .subject(path));
    }
    Ok(new.concat())
}

fn invalid(path: &str, hunk: &Hunk, why: &str) -> Failure {
    Failure::new(Code::PatchInvalid, format!("the hunk {} of {path} does not apply: {why}", hunk.header))
        .subject(path)
        .detail("hunk", &hunk.header)
        .detail("patchLine", hunk.line)
        .remedy(
            "Make the patch anew against the task's base and submit that one; see where the task stands:",
            ["git", "tender", "status"],
        )
}

fn misplaced(path: &str, hunk: &Hunk, lines: &[&[u8]], wanted: &[&[u8]]) -> Failure {
    let found: Vec<usize> = if wanted.is_empty() {
        Vec::new()
    } else {
        lines
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, w)| *w == wanted)
            .map(|(at, _)| at + 1)
            .take(5)
            .collect()
    };
    let why = match found.first() {
        Some(line) => format!(
            "its old lines stand at line {line}, not at line {}; a patch made against this base needs no offset",
            hunk.old_start
        ),
        None => format!("the lines at line {} are others than its old lines", hunk.old_start),
    };
    let have = lines.get(hunk.old_start.saturating_sub(1)..).unwrap_or_default();
    let differs =
        wanted.iter().zip(have).position(|(want, have)| want != have).unwrap_or(have.len().min(wanted.len()));
    let shown = |line: Option<&&[u8]>| line.map(|l| super::repo_path::display(l.trim_ascii_end()));
    invalid(path, hunk, &why)
        .expected(shown(wanted.get(differs)), shown(have.get(differs)))
        .detail("oldStart", hunk.old_start)
        .detail("foundAt", &found)
}
