//! Cargo's ways out of the slot: `path` dependencies and `[patch]` of manifests, and the `paths`, patches,
//! sources, wrappers and target folders of the configurations that hold for the slot.

use super::commands::mentions;
use super::planned::{Lead, PlannedRun, joined, text_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::Value;

/// How many manifests outside of the slot are followed.
const MOST_MANIFESTS: usize = 200;

const OF_MANIFEST: &str = "name the dependency by a path that stays in the tree, by version or by `git`";
const OF_CONFIG: &str = "take it out of that configuration while verifiers run";

pub(super) fn leads_of_manifests(run: &PlannedRun<'_>) -> Vec<Lead> {
    if !mentions(run, "cargo") {
        return Vec::new();
    }
    let mut leads = leads_of_configurations(run);
    let mut pending: Vec<PathBuf> = run.folders_with("Cargo.toml").collect();
    let mut seen: BTreeSet<PathBuf> = pending.iter().cloned().collect();
    let mut outside = 0;
    while let Some(folder) = pending.pop() {
        let file = folder.join("Cargo.toml");
        let Some(text) = text_of(&file).filter(|text| may_lead_out(text)) else { continue };
        let mut named = Vec::new();
        if let Ok(value) = text.parse::<toml::Table>() {
            collect_paths(&Value::Table(value), "", &mut named);
        }
        for path in named {
            let to = joined(&folder, Path::new(&path));
            if to.starts_with(run.slot) {
                continue;
            }
            leads.push(Lead::new(
                format!("the path {path:?} in {}", name_in_tree(run, &file)),
                &to,
                OF_MANIFEST,
            ));
            outside += 1;
            if outside < MOST_MANIFESTS && seen.insert(to.clone()) {
                pending.push(to);
            }
        }
    }
    leads
}

/// A file of the slot by its name in the tree, any other by its place.
fn name_in_tree(run: &PlannedRun<'_>, file: &Path) -> String {
    file.strip_prefix(run.slot).unwrap_or(file).display().to_string()
}

/// Most manifests name no path at all, or one below them.
fn may_lead_out(text: &str) -> bool {
    text.contains("..") || text.contains("\"/") || text.contains("'/")
}

/// The values of the keys that hold a path: of dependencies, patches, targets, and the workspace's members.
fn collect_paths(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| collect_paths(value, key, found)),
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, key, found)),
        Value::String(text) if matches!(key, "path" | "members" | "build" | "workspace") => {
            found.push(text.trim_end_matches(['*', '/']).to_owned());
        }
        _ => {}
    }
}

fn leads_of_configurations(run: &PlannedRun<'_>) -> Vec<Lead> {
    let mut homes: Vec<PathBuf> = run.slot.ancestors().map(|folder| folder.join(".cargo")).collect();
    let home = run.var("CARGO_HOME").map(PathBuf::from);
    homes.extend(home.or_else(|| run.var("HOME").map(|home| Path::new(home).join(".cargo"))));
    let mut leads = Vec::new();
    for file in homes.iter().flat_map(|home| ["config.toml", "config"].map(|name| home.join(name))) {
        let Some(table) = text_of(&file).and_then(|text| text.parse::<toml::Table>().ok()) else { continue };
        let above = file.parent().and_then(Path::parent).unwrap_or(run.slot).to_path_buf();
        collect_settings(&Value::Table(table), "", &mut |key, text| {
            let to = joined(&above, Path::new(text));
            let lead =
                Lead::new(format!("`{key} = {text:?}` in {}", name_in_tree(run, &file)), to, OF_CONFIG);
            leads.push(if matches!(key, "target-dir" | "build-dir") { lead.builds() } else { lead });
        });
    }
    leads
}

/// Every text of a configuration that can be a path, with its key; a bare word is the name of something.
fn collect_settings(value: &Value, key: &str, found: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(key, value)| collect_settings(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_settings(item, key, found)),
        Value::String(text) if text.contains('/') && !text.contains("://") => found(key, text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_dependencies_patches_and_members_are_read() {
        let text = "[workspace]\nmembers = [\"../m/*\"]\n[dependencies]\na = { path = \"/a\" }\nb = \"1\"\n\
                    [target.'cfg(unix)'.dev-dependencies]\nc = { path = \"../c\" }\n\
                    [patch.crates-io]\nd = { path = \"d\" }\n[package]\nname = \"x\"\ndescription = \"/no\"\n";
        let mut found = Vec::new();
        collect_paths(&Value::Table(text.parse().expect("reads")), "", &mut found);
        found.sort();
        assert_eq!(found, ["../c", "../m", "/a", "d"]);
        assert!(may_lead_out(text) && !may_lead_out("[dependencies]\nd = { path = \"d\" }\n"));
    }

    #[test]
    fn settings_that_can_be_paths_are_read() {
        let text = "paths = [\"/a\"]\n[build]\ntarget-dir = \"../t\"\njobs = 2\nrustc-wrapper = \"sccache\"\n\
                    [source.v]\nregistry = \"https://x/y\"\n[env]\nE = { value = \"/e\" }\n";
        let mut found = Vec::new();
        let value = Value::Table(text.parse().expect("reads"));
        collect_settings(&value, "", &mut |key, text| found.push(format!("{key}={text}")));
        found.sort();
        assert_eq!(found, ["paths=/a", "target-dir=../t", "value=/e"]);
    }
}
