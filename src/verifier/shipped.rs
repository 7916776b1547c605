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
    /// Paths of which one has to be in a tree for the verifier to fit it.
    marks: &'static [&'static str],
}

macro_rules! files {
    ($id:literal) => {
        &[
            ("verifier.toml", include_str!(concat!("../../verifiers/", $id, "/verifier.toml"))),
            ("README.md", include_str!(concat!("../../verifiers/", $id, "/README.md"))),
        ]
    };
}

/// Every one, in the order in which `init` names them.
pub const ALL: &[ShippedVerifier] = &[
    ShippedVerifier {
        id: "cargo-test",
        title: "Cargo tests",
        files: files!("cargo-test"),
        marks: &["Cargo.toml"],
    },
    ShippedVerifier {
        id: "clippy",
        title: "Clippy has nothing to say",
        files: files!("clippy"),
        marks: &["Cargo.toml"],
    },
    ShippedVerifier {
        id: "pytest",
        title: "Python tests",
        files: files!("pytest"),
        marks: &[
            "pytest.ini",
            ".pytest.ini",
            "pyproject.toml",
            "setup.cfg",
            "setup.py",
            "tox.ini",
            "conftest.py",
            "tests/conftest.py",
            "tests/__init__.py",
        ],
    },
];

/// Those that fit a tree, in the order of [`ALL`]. `has` says whether a path, relative to the top, is in it.
pub fn fitting(has: &dyn Fn(&str) -> bool) -> Vec<&'static ShippedVerifier> {
    ALL.iter().filter(|shipped| shipped.marks.iter().any(|mark| has(mark))).collect()
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
                "pytest" => (&["junit"], Some(1)),
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
                let has = |path: &str| place.join(path).exists();
                assert!(fitting(&has).contains(&shipped), "{} fits its own fixture", shipped.id);
            }
        }
    }

    #[test]
    fn what_fits_follows_from_the_files() {
        let ids =
            |files: &[&str]| fitting(&|path| files.contains(&path)).iter().map(|s| s.id).collect::<Vec<_>>();
        assert_eq!(ids(&["Cargo.toml", "src"]), ["cargo-test", "clippy"]);
        assert_eq!(ids(&["setup.cfg"]), ["pytest"]);
        assert_eq!(ids(&["pyproject.toml", "Cargo.toml"]), ["cargo-test", "clippy", "pytest"]);
        assert_eq!(ids(&["tests", "README.md", "sub/Cargo.toml"]), Vec::<&str>::new());
    }
}
