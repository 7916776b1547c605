//! Links in the slot: those of the tree, and those that stand at the first levels of scratch.

use super::planned::{Lead, PlannedRun, entries};
use crate::domain::value::digest::Mode;
use std::path::PathBuf;

/// How many entries of scratch are looked at.
const MOST_ENTRIES: usize = 2_000;

const CURE: &str = "replace the link by what it leads to, or by one that stays in the tree";

pub(super) fn leads_of_links(run: &PlannedRun<'_>) -> Vec<Lead> {
    let of_tree = run.shown.iter().filter(|file| file.mode == Mode::Symlink);
    let mut leads: Vec<Lead> = of_tree
        .map(|file| Lead::new(format!("the link {}", file.path), run.slot.join(file.path.as_path()), CURE))
        .collect();
    let mut looked = 0;
    let mut level: Vec<PathBuf> = run.scratch_folders();
    for _ in 0..2 {
        let mut below = Vec::new();
        for path in level {
            looked += 1;
            if looked > MOST_ENTRIES {
                return leads;
            }
            let Ok(found) = path.symlink_metadata() else { continue };
            if found.is_symlink() {
                let name = path.strip_prefix(run.slot).unwrap_or(&path).display().to_string();
                leads.push(Lead::new(format!("the link {name} in scratch"), &path, CURE));
            } else if found.is_dir() && path.file_name().is_none_or(|name| name != "node_modules") {
                below.extend(entries(&path));
            }
        }
        level = below;
    }
    leads
}
