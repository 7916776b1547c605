//! The variables of a run and its arguments: absolute paths in them, and relative ones that climb out of the
//! slot. `PATH`, `PYTHONPATH`, `NODE_PATH`, `GOPATH`, `CMAKE_PREFIX_PATH` and `LIBRARY_PATH` are nothing
//! special here: any variable that the run gets can lead it somewhere.

use super::planned::{Lead, PlannedRun, absolute_paths, entries, joined};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Variables that hold folders made for the run.
const OWN: &[&str] = &["HOME", "TMPDIR", "TENDER_OUT"];
/// Variables that name the folder that a tool builds into.
const BUILDS: &[&str] = &["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"];
/// Options that name one.
const BUILD_OPTIONS: &[&str] = &["--target-dir", "--build", "--test-dir", "-B"];

const OF_PATH: &str = "call git tender with a PATH that does not have it";
const OF_VARIABLE: &str = "unset it, or take it out of `env` in the manifest";
const OF_ARGUMENT: &str = "name it in the manifest relative to the tree";

pub(super) fn leads_of_variables(run: &PlannedRun<'_>) -> Vec<Lead> {
    let mut leads = Vec::new();
    for (name, value) in run.env {
        let name = name.to_string_lossy();
        if !OWN.contains(&&*name) {
            leads.extend(leads_of_value(run, &name, value));
        }
    }
    let mut builds = false;
    for argument in run.argv {
        let shown = || format!("the argument {argument:?}");
        let own_option = argument.split('=').next().is_some_and(|option| BUILD_OPTIONS.contains(&option));
        let found = if Path::new(argument).is_absolute() {
            vec![existing_part(Path::new(argument))]
        } else {
            absolute_paths(argument)
        };
        for path in found {
            let lead = Lead::new(shown(), path, OF_ARGUMENT);
            leads.push(if builds || own_option { lead.builds() } else { lead });
        }
        if argument.contains("..") && !argument.contains(char::is_whitespace) {
            leads.push(Lead::new(shown(), joined(run.slot, Path::new(argument)), OF_ARGUMENT));
        }
        // An assignment, for `env` and `make`.
        if let Some((name, value)) = argument.split_once('=').filter(|(name, _)| is_name(name)) {
            leads.extend(leads_of_value(run, name, OsStr::new(value)));
        }
        builds = BUILD_OPTIONS.contains(&argument.as_str());
    }
    leads
}

fn leads_of_value(run: &PlannedRun<'_>, name: &str, value: &OsStr) -> Vec<Lead> {
    let cure = if name == "PATH" { OF_PATH } else { OF_VARIABLE };
    let is_list = name.ends_with("PATH");
    let split = value.as_bytes().split(|b| *b == b':').map(|entry| Path::new(OsStr::from_bytes(entry)));
    let entries_of_list =
        split.filter(|entry| !entry.as_os_str().is_empty() && (is_list || entry.is_absolute()));
    let mut places: Vec<PathBuf> = entries_of_list.map(|entry| joined(run.slot, entry)).collect();
    if !is_list {
        places.extend(value.to_str().map(absolute_paths).unwrap_or_default());
    }
    let mut leads = Vec::new();
    for place in places {
        let lead = Lead::new(format!("{name} ({})", place.display()), &place, cure);
        leads.push(if BUILDS.contains(&name) { lead.builds() } else { lead });
    }
    leads
}

/// The links in those folders of the search path that lie in a `node_modules`: a workspace's own commands.
pub(super) fn leads_of_commands(run: &PlannedRun<'_>) -> Vec<Lead> {
    let path = run.var("PATH").unwrap_or_default();
    let folders = path.as_bytes().split(|b| *b == b':').map(|entry| Path::new(OsStr::from_bytes(entry)));
    let of_modules = folders.filter(|folder| folder.iter().any(|name| name == "node_modules"));
    let links = of_modules.flat_map(entries).filter(|path| path.is_symlink());
    links.map(|link| Lead::new(format!("the command {} on PATH", link.display()), link, OF_PATH)).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A path, or the nearest folder above it that is there.
fn existing_part(path: &Path) -> PathBuf {
    path.ancestors().find(|part| part.exists()).unwrap_or(path).to_path_buf()
}
