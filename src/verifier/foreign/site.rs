//! What the folders of installed Python packages lead to, read without an interpreter: `.pth` files,
//! `direct_url.json` of editable installs, `.egg-link`, and the finders that an editable install leaves.

use super::planned::{absolute_paths, entries, joined, text_of};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Something installed, and the place that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pointer {
    pub(super) file: PathBuf,
    pub(super) to: PathBuf,
}

/// Everything in a folder of packages that names a place elsewhere.
pub(super) fn pointers(site: &Path) -> Vec<Pointer> {
    let mut found = Vec::new();
    for file in entries(site) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named = if name.ends_with(".pth") {
            lines_of_pth(site, &text_of(&file).unwrap_or_default())
        } else if name.ends_with(".egg-link") {
            let text = text_of(&file).unwrap_or_default();
            text.lines().take(1).map(|line| joined(site, Path::new(line.trim()))).collect()
        } else if is_finder(&name) {
            absolute_paths(&text_of(&file).unwrap_or_default())
        } else if name.ends_with(".dist-info") {
            editable_source(&text_of(&file.join("direct_url.json")).unwrap_or_default()).into_iter().collect()
        } else if file.is_symlink() {
            vec![file.clone()]
        } else {
            continue;
        };
        found.extend(named.into_iter().map(|to| Pointer { file: file.clone(), to }));
    }
    found
}

/// The files of a folder of packages whose change can make them lead elsewhere.
pub(super) fn deciding_files(site: &Path) -> Vec<PathBuf> {
    let decides = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".pth") || name.ends_with(".egg-link") || is_finder(&name)
    };
    entries(site).into_iter().filter(decides).collect()
}

/// The folders of packages of an environment (`.venv`, `.tox/py`).
pub(super) fn site_folders(environment: &Path) -> Vec<PathBuf> {
    let libraries = ["lib", "lib64"].map(|name| entries(&environment.join(name)));
    let all = libraries.into_iter().flatten().map(|python| python.join("site-packages"));
    all.filter(|site| site.is_dir()).collect()
}

/// Modules that start by themselves or stand for an editable install.
fn is_finder(name: &str) -> bool {
    let editable =
        name.starts_with("__editable__") || name.starts_with("_editable") || name.contains("_editable_");
    name.ends_with(".py") && (editable || matches!(name, "sitecustomize.py" | "usercustomize.py"))
}

/// A line is a folder, or a statement that begins with `import` and can name any.
fn lines_of_pth(site: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.starts_with("import ") || line.starts_with("import\t") {
            true => found.extend(absolute_paths(line)),
            false => found.push(joined(site, Path::new(line))),
        }
    }
    found
}

/// Where an editable install was made from.
fn editable_source(text: &str) -> Option<PathBuf> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    if value["dir_info"]["editable"] != true {
        return None;
    }
    let path = value["url"].as_str()?.strip_prefix("file://")?;
    Some(PathBuf::from(unescaped(path)))
}

/// A URL's path without its percent signs.
fn unescaped(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_installed_by_reference_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let (live, site) = (root.join("li ve"), root.join("lib/python3.9/site-packages"));
        let put = |path: &Path, text: &str| {
            crate::store::layout::create_private_dir(path.parent().expect("a folder")).expect("made");
            crate::store::layout::write_private(path, text.as_bytes()).expect("written");
        };
        put(&live.join("m.py"), "");
        let text = live.display().to_string();
        put(&site.join("a.pth"), &format!("# no\n{text}\n../../../li ve\n"));
        put(&site.join("b.pth"), &format!("import sys; sys.path.insert(0, '{text}')\n"));
        put(&site.join("c.egg-link"), &format!("{text}\n."));
        put(&site.join("__editable___d_finder.py"), &format!("MAPPING = {{'d': '{text}'}}\n"));
        let url = format!(
            "{{\"dir_info\": {{\"editable\": true}}, \"url\": \"file://{}\"}}",
            text.replace(' ', "%20")
        );
        put(&site.join("e.dist-info/direct_url.json"), &url);
        put(&site.join("f.dist-info/direct_url.json"), &url.replace("true", "false"));
        put(&site.join("g/__init__.py"), &format!("'{text}'"));
        let found = pointers(&site);
        let names = found.iter().map(|p| p.file.file_name().expect("a name").to_string_lossy().into_owned());
        let wanted = ["__editable___d_finder.py", "a.pth", "a.pth", "b.pth", "c.egg-link", "e.dist-info"];
        assert_eq!(names.collect::<Vec<_>>(), wanted);
        assert!(found.iter().all(|pointer| pointer.to == live), "{found:?}");
        assert_eq!(site_folders(root), [site]);
    }
}
