//! Go's ways out of the slot: `go.work` (of the slot, of a folder above, or by `GOWORK`) and `replace` with a
//! path, in the modules of the slot and in those that they lead to.

use super::planned::{Lead, PlannedRun, joined, text_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many modules are followed.
const MOST_MODULES: usize = 200;

const CURE: &str = "set `GOWORK=off`, or name a path that stays in the tree";

pub(super) fn leads_of_modules(run: &PlannedRun<'_>) -> Vec<Lead> {
    let mut pending: Vec<PathBuf> = run.folders_with("go.mod").map(|folder| folder.join("go.mod")).collect();
    pending.extend(run.folders_with("go.work").map(|folder| folder.join("go.work")));
    if pending.is_empty() {
        return Vec::new();
    }
    let named = run.var("GOWORK").filter(|value| !value.is_empty());
    match named {
        Some(named) if named == "off" => {}
        Some(named) => pending.push(joined(run.slot, Path::new(named))),
        None => {
            pending.extend(run.slot.ancestors().map(|folder| folder.join("go.work")).find(|f| f.is_file()))
        }
    }
    let mut seen = BTreeSet::new();
    let mut leads = Vec::new();
    while let Some(file) = pending.pop() {
        let Some(text) = text_of(&file).filter(|_| seen.len() < MOST_MODULES) else { continue };
        let folder = file.parent().unwrap_or(run.slot);
        for path in paths(&text) {
            let to = joined(folder, Path::new(&path));
            if to.starts_with(run.slot) {
                continue;
            }
            let place = file.strip_prefix(run.slot).unwrap_or(&file).display();
            leads.push(Lead::new(format!("{path} in {place}"), &to, CURE));
            if seen.insert(to.clone()) {
                pending.push(to.join("go.mod"));
            }
        }
    }
    leads
}

/// The paths of `use` and `replace`, each on a line of its own or in a block. A path begins with `.` or `/`,
/// so a module's name is none.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block = "";
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let (verb, rest) = match line.split_once([' ', '\t', '(']) {
            _ if line == ")" => {
                block = "";
                continue;
            }
            Some((verb @ ("use" | "replace"), _)) if line.ends_with('(') => {
                block = verb;
                continue;
            }
            Some((verb @ ("use" | "replace"), rest)) => (verb, rest),
            _ => (block, line),
        };
        let path = match verb {
            "use" => rest,
            "replace" => rest.split_once("=>").map(|(_, to)| to).unwrap_or_default(),
            _ => continue,
        };
        let path = path.trim().trim_matches(['"', '`']);
        if path.starts_with(['.', '/']) {
            found.push(path.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn uses_and_replacements_are_read_alone_and_in_blocks() {
        let text = "module a // use /x\ngo 1.22\nreplace b => ../b\nreplace c v1 => example.com/c v2\n\
                    use ./tools\nuse (\n\t.\n\t\"/w/d e\" // d\n)\nreplace (\n\tf => /f\n)\nrequire (\n\tg /no\n)\n";
        assert_eq!(super::paths(text), ["../b", "./tools", ".", "/w/d e", "/f"]);
    }
}
