//! Which modules of a folder on Python's search path are found in the slot before they are found there.
//!
//! A folder of the live tree may stay on the path where it cannot be reached: each of its modules stands in a
//! folder of the slot that comes earlier. A package with `__init__.py` hides all of what is beneath; in any
//! other folder each file has to be hidden by itself, since Python puts such folders together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files that a tool runs and nothing imports.
const NOT_IMPORTED: &[&str] = &["setup.py", "conftest.py", "noxfile.py"];
/// Folders at the top whose files nothing imports unless they are a package.
const NOT_PACKAGES: &[&str] = &["docs", "doc", "examples", "benchmarks"];

/// The first file of a folder that an import can reach there; `files` are below the folder.
pub(super) fn first_reachable<'a>(files: &'a [PathBuf], earlier: &[PathBuf]) -> Option<&'a Path> {
    let packages: BTreeSet<&Path> =
        files.iter().filter(|file| file.ends_with("__init__.py")).filter_map(|file| file.parent()).collect();
    let mut hidden: BTreeSet<&Path> = BTreeSet::new();
    for file in files.iter().filter(|file| is_importable(file)) {
        let mut above: Vec<&Path> = file.ancestors().skip(1).collect();
        above.pop();
        let package = above.into_iter().rev().find(|folder| packages.contains(folder));
        let module = package.unwrap_or(file);
        if package.is_none() && is_not_imported(file) || hidden.contains(module) {
            continue;
        }
        let is_there = |folder: &PathBuf| match package {
            Some(package) => {
                let place = folder.join(package);
                place.join("__init__.py").is_file() || place.with_extension("py").is_file()
            }
            None => {
                let place = folder.join(file);
                place.is_file() || place.with_extension("").join("__init__.py").is_file()
            }
        };
        if !earlier.iter().any(is_there) {
            return Some(file);
        }
        hidden.insert(module);
    }
    None
}

/// True for a module whose dotted name can be written.
fn is_importable(file: &Path) -> bool {
    let is_word = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let words = file.to_str().map(|text| text.split('/').collect::<Vec<_>>()).unwrap_or_default();
    let Some((last, above)) = words.split_last() else { return false };
    let Some((stem, ending)) = last.split_once('.') else { return false };
    let is_module = ending == "py" || ending == "pyc" || ending.ends_with("so");
    is_module && is_word(stem) && above.iter().all(|word| is_word(word))
}

fn is_not_imported(file: &Path) -> bool {
    let top = file.iter().next().unwrap_or_default();
    let is_one = |names: &[&str]| names.iter().any(|name| top == *name);
    is_one(NOT_IMPORTED)
        || (is_one(NOT_PACKAGES) && file.iter().count() > 1)
        || file.file_name().is_some_and(|name| name == "conftest.py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_hides_what_is_beneath_and_a_plain_folder_hides_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let slot = folder.path().join("src");
        for file in ["p/__init__.py", "one.py", "plain/a.py"] {
            let file = slot.join(file);
            crate::store::layout::create_private_dir(file.parent().expect("a folder")).expect("made");
            crate::store::layout::write_private(&file, b"").expect("written");
        }
        let earlier = [slot];
        for (files, reachable) in [
            (vec!["p/__init__.py", "p/new/deep.py", "p/x.so"], None),
            (vec!["one.py", "setup.py", "docs/conf.py", "a-b.py", "README.md", "3.py"], None),
            (vec!["plain/a.py"], None),
            (vec!["plain/a.py", "plain/b.py"], Some("plain/b.py")),
            (vec!["q/__init__.py"], Some("q/__init__.py")),
            (vec!["one/__init__.py"], None),
            (vec!["p.py", "p/__init__.py"], None),
            (vec!["two.cpython-311-x86_64-linux-gnu.so"], Some("two.cpython-311-x86_64-linux-gnu.so")),
        ] {
            let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
            assert_eq!(first_reachable(&files, &earlier), reachable.map(Path::new), "{files:?}");
            assert_eq!(
                first_reachable(&files, &[]).is_some(),
                files.iter().any(|f| is_importable(f)),
                "{files:?}"
            );
        }
    }
}
