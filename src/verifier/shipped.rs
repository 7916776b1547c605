//! The verifiers that come with git-tender, embedded, so that `init` can write the fitting ones into a
//! repository.
//!
//! They are starting points: once written, the files are the repository's own. Their sources lie in
//! `verifiers/`, each with a project that it passes and one that it fails.

#[derive(Debug, PartialEq, Eq)]
pub struct ShippedVerifier {
    /// Its id and the name of its directory.
    pub id: &'static str,
    /// For people, as in its manifest.
    pub title: &'static str,
    /// Names and contents of the files to write into its directory.
    pub files: &'static [(&'static str, &'static str)],
    /// What tells that it fits a tree; one of them does.
    marks: &'static [Mark],
}

/// What tells that a tool is used.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    /// A path is there.
    File(&'static str),
    /// A file at the top is there and has this text.
    Text(&'static str, &'static str),
}

use Mark::{File, Text};

macro_rules! shipped {
    ($id:literal, $title:literal, $marks:expr) => {
        ShippedVerifier {
            id: $id,
            title: $title,
            files: &[
                ("verifier.toml", include_str!(concat!("../../verifiers/", $id, "/verifier.toml"))),
                ("README.md", include_str!(concat!("../../verifiers/", $id, "/README.md"))),
            ],
            marks: $marks,
        }
    };
}

/// Every one, in the order in which `init` names them.
pub const ALL: &[ShippedVerifier] = &[
    shipped!("cargo-test", "Cargo tests", &[File("Cargo.toml")]),
    shipped!("clippy", "Clippy has nothing to say", &[File("Cargo.toml")]),
    shipped!("go-test", "Go tests", &[File("go.mod")]),
    shipped!("nextest", "Cargo tests by nextest", &[File(".config/nextest.toml")]),
    shipped!("node-test", "Tests by Node's own runner", &[Text("package.json", "node --test")]),
    shipped!(
        "pytest",
        "Python tests",
        &[
            File("pytest.ini"),
            File(".pytest.ini"),
            File("pyproject.toml"),
            File("setup.cfg"),
            File("setup.py"),
            File("tox.ini"),
            File("conftest.py"),
            File("tests/conftest.py"),
            File("tests/__init__.py"),
        ]
    ),
    shipped!(
        "ruff",
        "Ruff has nothing to say",
        &[File("ruff.toml"), File(".ruff.toml"), Text("pyproject.toml", "[tool.ruff")]
    ),
];

/// Those that fit a tree, in the order of [`ALL`]. `read` gives the text of a path relative to the top, where
/// something is there; of what is no text, an empty one.
pub fn fitting(read: &dyn Fn(&str) -> Option<String>) -> Vec<&'static ShippedVerifier> {
    let is_there = |mark: &Mark| match mark {
        File(path) => read(path).is_some(),
        Text(path, text) => read(path).is_some_and(|content| content.contains(text)),
    };
    ALL.iter().filter(|shipped| shipped.marks.iter().any(is_there)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::manifest::{Manifest, VerifierKind};
    use std::path::Path;

    fn manifest(shipped: &ShippedVerifier) -> Manifest {
        let (name, text) = shipped.files[0];
        assert_eq!(name, "verifier.toml");
        Manifest::parse(name, shipped.id, text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    #[test]
    fn every_manifest_is_read_and_is_what_it_is_said_to_be() {
        for shipped in ALL {
            let manifest = manifest(shipped);
            assert_eq!((manifest.id.as_str(), manifest.title.as_deref()), (shipped.id, Some(shipped.title)));
            assert_eq!((manifest.kind, manifest.attempts, manifest.inputs), (VerifierKind::Command, 1, None));
            let formats: Vec<&str> = manifest.outputs.iter().map(|output| output.format.name).collect();
            let (expected, least): (&[&str], _) = match shipped.id {
                "cargo-test" => (&["libtest"], Some(1)),
                "go-test" => (&["gotest"], Some(1)),
                "nextest" | "node-test" | "pytest" => (&["junit"], Some(1)),
                "ruff" => (&["sarif"], None),
                _ => (&[], None),
            };
            assert_eq!((formats.as_slice(), manifest.min_checks), (expected, least), "{}", shipped.id);
            assert!(
                manifest.tools.iter().any(|tool| manifest.command.contains(&tool.name)),
                "{}",
                shipped.id
            );
            // No file is in every repository, so the closure only names what may not appear.
            assert_eq!(manifest.closure.patterns(), manifest.may_be_absent, "{}", shipped.id);
            assert!(!manifest.watch.is_empty() && !manifest.may_be_absent.is_empty(), "{}", shipped.id);
        }
    }

    #[test]
    fn every_directory_is_embedded_and_has_its_readme_and_fixtures() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("verifiers");
        let mut found: Vec<String> = std::fs::read_dir(&folder)
            .expect("the directory")
            .map(|entry| entry.expect("an entry"))
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        found.sort();
        assert_eq!(found, ALL.iter().map(|shipped| shipped.id).collect::<Vec<_>>());
        for shipped in ALL {
            let readme = shipped.files[1].1;
            assert!(readme.starts_with(&format!("# {}\n", shipped.id)), "{}", shipped.id);
            for fixture in ["passing", "failing"] {
                let place = folder.join(shipped.id).join("fixtures").join(fixture);
                assert!(place.is_dir() && readme.contains(&format!("fixtures/{fixture}")), "{}", shipped.id);
                let read = |path: &str| std::fs::read_to_string(place.join(path)).ok();
                assert!(fitting(&read).contains(&shipped), "{} fits its own fixture", shipped.id);
            }
        }
    }

    #[test]
    fn what_fits_follows_from_the_files() {
        let ids = |files: &[&str]| {
            let read = |path: &str| files.contains(&path).then(String::new);
            fitting(&read).iter().map(|s| s.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&["Cargo.toml", "src"]), ["cargo-test", "clippy"]);
        assert_eq!(ids(&["setup.cfg"]), ["pytest"]);
        assert_eq!(ids(&["pyproject.toml", "Cargo.toml"]), ["cargo-test", "clippy", "pytest"]);
        assert_eq!(ids(&["tests", "README.md", "sub/Cargo.toml", "package.json"]), Vec::<&str>::new());
        let package = |path: &str| (path == "package.json").then(|| r#"{"test": "node --test"}"#.to_owned());
        assert_eq!(fitting(&package).iter().map(|s| s.id).collect::<Vec<_>>(), ["node-test"]);
    }
}
