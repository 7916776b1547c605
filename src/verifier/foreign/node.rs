//! Packages that node would find: `node_modules` of the slot's packages and of every folder above, and
//! `NODE_PATH`. `npm link`, `pnpm link`, `yarn link` and workspaces put links there.

use super::planned::{Lead, PlannedRun, entries, joined};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const CURE: &str = "install the package itself (`npm install PACKAGE`, `npm ci` in the verifier's setup) \
                    where it was linked (`npm unlink`, `pnpm unlink`, `yarn unlink`)";

pub(super) fn leads_of_modules(run: &PlannedRun<'_>) -> Vec<Lead> {
    let mut places: BTreeSet<PathBuf> =
        run.slot.ancestors().map(|folder| folder.join("node_modules")).collect();
    places.extend(run.folders_with("package.json").map(|folder| folder.join("node_modules")));
    let path = run.var("NODE_PATH").unwrap_or_default().as_bytes().split(|b| *b == b':');
    let named = path.filter(|entry| !entry.is_empty()).map(|entry| Path::new(OsStr::from_bytes(entry)));
    places.extend(named.map(|entry| joined(run.slot, entry)));
    places.iter().flat_map(|modules| leads_of_folder(modules)).collect()
}

/// The links of one `node_modules`, with those in scopes, commands, and what pnpm hoists. A folder that is a
/// link itself is looked through.
fn leads_of_folder(modules: &Path) -> Vec<Lead> {
    let mut pending = vec![modules.to_path_buf()];
    let mut leads = Vec::new();
    while let Some(folder) = pending.pop() {
        for path in entries(&folder) {
            let name = path.file_name().unwrap_or_default().as_bytes();
            let is_link = path.is_symlink();
            if is_link {
                leads.push(Lead::new(format!("the link {}", path.display()), &path, CURE));
            } else if folder == modules && (name.starts_with(b"@") || name == b".bin") {
                pending.push(path);
            } else if name == b".pnpm" {
                pending.push(path.join("node_modules"));
                pending.extend(entries(&path).into_iter().map(|package| package.join("node_modules")));
            } else if name.starts_with(b"@") {
                pending.push(path);
            }
        }
    }
    leads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::layout::create_private_dir;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_found_in_scopes_among_commands_and_where_pnpm_keeps_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let modules = folder.path().join("node_modules");
        let places = [
            "a",
            "@s/b",
            ".bin/c",
            ".pnpm/node_modules/d",
            ".pnpm/x@1/node_modules/e",
            ".pnpm/x@1/node_modules/@s/f",
        ];
        for place in places {
            let link = modules.join(place);
            create_private_dir(link.parent().expect("a folder")).expect("made");
            symlink("/live", &link).expect("linked");
        }
        create_private_dir(&modules.join("plain/node_modules")).expect("made");
        let found: BTreeSet<PathBuf> = leads_of_folder(&modules).into_iter().map(|lead| lead.to).collect();
        assert_eq!(found, places.iter().map(|place| modules.join(place)).collect());
    }
}
