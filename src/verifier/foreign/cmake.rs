//! Build folders of CMake: each has written down whose sources it builds, and where its packages lie.

use super::planned::{Lead, PlannedRun, entries, joined, text_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Options before the build folder, of cmake, ctest, ninja, make and meson.
const OPTIONS: &[&str] = &["-B", "--build", "--test-dir", "-C", "--install"];

const CURE: &str = "configure a build folder in the slot's scratch (`cmake -S . -B build`)";

pub(super) fn leads_of_builds(run: &PlannedRun<'_>) -> Vec<Lead> {
    let mut folders: BTreeSet<PathBuf> = run.scratch_folders().into_iter().collect();
    folders.extend(
        run.scratch
            .patterns()
            .iter()
            .filter(|pattern| !pattern.contains('*'))
            .flat_map(|pattern| entries(&run.slot.join(pattern))),
    );
    let mut is_folder = false;
    for argument in run.argv {
        let joint = OPTIONS.iter().find_map(|option| argument.strip_prefix(option));
        let named =
            if is_folder { Some(argument.as_str()) } else { joint.map(|rest| rest.trim_start_matches('=')) };
        folders.extend(named.filter(|name| !name.is_empty()).map(|name| joined(run.slot, Path::new(name))));
        is_folder = OPTIONS.contains(&argument.as_str());
    }
    folders.iter().flat_map(|folder| leads_of_cache(&folder.join("CMakeCache.txt"))).collect()
}

/// What a build folder's cache leads to: the sources as such, and every other path that it holds.
fn leads_of_cache(cache: &Path) -> Vec<Lead> {
    let Some(text) = text_of(cache) else { return Vec::new() };
    let mut leads = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', '/'])) {
        let Some((name, value)) = line.split_once('=').filter(|(_, value)| value.contains('/')) else {
            continue;
        };
        let name = name.split(':').next().unwrap_or_default();
        for path in value.split(';').filter(|path| path.starts_with('/')) {
            let lead = Lead::new(format!("{name} in {}", cache.display()), path, CURE);
            leads.push(if name == "CMAKE_HOME_DIRECTORY" { lead.builds() } else { lead });
        }
    }
    leads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::foreign::planned::LeadUse;

    #[test]
    fn a_build_folder_says_whose_sources_it_builds_and_where_its_packages_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = folder.path().join("CMakeCache.txt");
        let text = "# comment=/c\n//help=/h\nCMAKE_HOME_DIRECTORY:INTERNAL=/live\nX_DIR:PATH=/p;/q\nFLAGS:STRING=-O2\n";
        crate::store::layout::write_private(&cache, text.as_bytes()).expect("written");
        let found: Vec<(PathBuf, bool)> =
            leads_of_cache(&cache).into_iter().map(|lead| (lead.to, lead.used == LeadUse::Builds)).collect();
        assert_eq!(found, [("/live".into(), true), ("/p".into(), false), ("/q".into(), false)]);
    }
}
