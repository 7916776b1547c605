//! Which sections of a patch belong together. Those of one diff all start from the same tree; a file that comes
//! again starts from what the earlier section made of it, and so do all that follow.

use super::Step;
use crate::domain::digest::ObjectId;
use crate::error::Result;
use crate::git::objects::Objects;
use crate::git::tree;

/// How many of the sections, from the first on, are applied to `at` at once.
pub(super) fn first(objects: &Objects, at: &ObjectId, steps: &[Step]) -> Result<usize> {
    for (number, step) in steps.iter().enumerate().skip(1) {
        let earlier = &steps[..number];
        let paths = || step.old.iter().chain(&step.new);
        let overlaps =
            |other: &&Step| paths().any(|p| other.old.as_ref() == Some(p) || other.new.as_ref() == Some(p));
        let overlapping: Vec<&Step> = earlier.iter().filter(overlaps).collect();
        if overlapping.is_empty() {
            continue;
        }
        let moves =
            step.section.moved.is_some() || overlapping.iter().any(|other| other.section.moved.is_some());
        if !(moves && starts_here(objects, at, step)?) {
            return Ok(number);
        }
    }
    Ok(steps.len())
}

/// Whether the section's preimage is the one in `at`, as with two files that change names.
fn starts_here(objects: &Objects, at: &ObjectId, step: &Step) -> Result<bool> {
    let Some(path) = &step.old else { return Ok(true) };
    let Some((_, id)) = tree::entry(objects, at, path)? else { return Ok(false) };
    Ok(step.section.index.as_ref().is_none_or(|(old, _)| id.as_str().starts_with(old.as_str())))
}
