//! A run as it would be made, and what in it leads somewhere.

use crate::domain::value::scope::Scope;
use crate::git::tree::TreeFile;
use crate::process::find_program;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// How much of a script or manifest is looked at.
const MOST_READ: u64 = 1 << 20;

/// A run that has not begun.
pub(super) struct PlannedRun<'a> {
    pub(super) argv: &'a [String],
    /// Its complete environment.
    pub(super) env: &'a [(OsString, OsString)],
    /// The folder that it runs in: the tree of its slot.
    pub(super) slot: &'a Path,
    /// The files of the tree that are there; what scratch holds is not among them.
    pub(super) shown: &'a [TreeFile],
    pub(super) scratch: &'a Scope,
}

impl PlannedRun<'_> {
    pub(super) fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    /// The file that a program's name stands for.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        find_program(OsStr::new(name), self.slot, self.var("PATH")).ok()
    }

    /// The folders of the tree that have a file of this name.
    pub(super) fn folders_with(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let of_this_name = |file: &&TreeFile| file.path.file_name() == name.as_bytes();
        self.shown
            .iter()
            .filter(of_this_name)
            .filter_map(|file| self.slot.join(file.path.as_path()).parent().map(Path::to_path_buf))
    }

    /// The first folders of what the run may write: patterns up to their first wildcard, and what lies at the
    /// top of the slot without being shown.
    pub(super) fn scratch_folders(&self) -> Vec<PathBuf> {
        let fixed = |pattern: &String| {
            let words = pattern.split('/').take_while(|word| !word.contains(['*', '?', '[', '{']));
            self.slot.join(words.filter(|word| !word.is_empty()).collect::<PathBuf>())
        };
        let mut all: Vec<PathBuf> = self.scratch.patterns().iter().map(fixed).collect();
        all.extend(
            entries(self.slot).into_iter().filter(|path| path.file_name() != Some(OsStr::new(".git"))),
        );
        all.sort();
        all.dedup();
        all.retain(|folder| folder != self.slot);
        all
    }
}

/// How a run would use what a lead points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeadUse {
    /// It reads or executes files there.
    Loads,
    /// It builds there, or takes what was built there.
    Builds,
    /// Its Python finds modules there that none of these folders has.
    Imports { after: Vec<PathBuf>, modules: ModulePlace },
}

/// Which modules a place on the way of an import has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModulePlace {
    /// Those in the folder.
    Within,
    /// The place itself is one.
    Itself,
}

/// Something that points out of the slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lead {
    /// The pointing thing, in words that go before "leads to".
    pub(super) from: String,
    pub(super) to: PathBuf,
    pub(super) used: LeadUse,
    /// How a person makes it lead elsewhere.
    pub(super) cure: &'static str,
}

impl Lead {
    pub(super) fn new(from: impl Into<String>, to: impl Into<PathBuf>, cure: &'static str) -> Self {
        Self { from: from.into(), to: to.into(), used: LeadUse::Loads, cure }
    }

    pub(super) fn builds(self) -> Self {
        Self { used: LeadUse::Builds, ..self }
    }
}

/// The text of a file, as far as it is looked at; nothing where it cannot be read.
pub(super) fn text_of(file: &Path) -> Option<String> {
    let opened = std::fs::File::open(file).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let mut bytes = Vec::new();
    opened.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a folder holds, sorted.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// A path below `folder` without `.` and `..`, as text alone.
pub(super) fn joined(folder: &Path, path: &Path) -> PathBuf {
    let mut all = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(all.pop()),
            other => all.push(other),
        }
    }
    all
}

/// A path that exists, as it is or as a Python module without its ending.
pub(super) fn module_or_file(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return Some(path.to_path_buf());
    }
    let mut module = path.as_os_str().to_owned();
    module.push(".py");
    Some(PathBuf::from(module)).filter(|module| module.is_file())
}

/// The existing paths that a text names absolutely, wherever in it they stand: `-I/x`, `a=/x:/y`, `"/x y"`.
pub(super) fn absolute_paths(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut done = 0;
    for (at, _) in text.match_indices('/') {
        if at < done || !begins_a_path(&text[..at]) {
            continue;
        }
        let rest = &text[at..];
        let hard = rest.find([':', '\n', '"', '\'', '\0']).unwrap_or(rest.len());
        let soft = rest[..hard].match_indices([' ', '\t', ',', ';', ')', '&', '|', '\\']).map(|(end, _)| end);
        let mut ends: Vec<usize> = soft.take(8).chain([hard]).collect();
        ends.reverse();
        let there = |end: usize| Some((end, module_or_file(Path::new(&rest[..end])).filter(|_| end > 1)?));
        if let Some((end, path)) = ends.into_iter().find_map(there) {
            found.push(path);
            done = at + end;
        }
    }
    found
}

/// True where a `/` after this text begins an absolute path: after a delimiter, or a short option (`-I`).
fn begins_a_path(before: &str) -> bool {
    let word =
        before.rsplit([':', '=', ',', ';', ' ', '\t', '\n', '"', '\'', '(', '`', '>', '<', '@']).next();
    let word = word.unwrap_or_default();
    word.is_empty() || (word.len() <= 3 && word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_wherever_they_stand() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("a b");
        crate::store::layout::create_private_dir(&root).expect("made");
        crate::store::layout::write_private(&root.join("m.py"), b"").expect("written");
        let text = root.display().to_string();
        for (given, wanted) in [
            (format!("-I{text}"), vec![root.clone()]),
            (format!("x={text}:{text}"), vec![root.clone(), root.clone()]),
            (format!("cd '{text}' && true"), vec![root.clone()]),
            (format!("file://{text}"), vec![PathBuf::from(format!("//{text}"))]),
            (format!("load({text}/m)"), vec![root.join("m.py")]),
            (format!("relative{text}"), vec![]),
            ("/not-there / ".to_owned(), vec![]),
        ] {
            assert_eq!(absolute_paths(&given), wanted, "{given}");
        }
    }
}
