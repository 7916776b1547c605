//! The merged configuration of a repository, read once: asking git for each key would be most of what a small
//! delivery costs. It is git's own answer, kept as long as every file that it came from, or could have come
//! from, looks the same.

use super::answers::{answers_of_git, question_to_git};
use super::command::{Environment, Git};
use crate::error::Result;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The sections that are asked for. Nothing else is held or kept: an address or a header may be a secret.
const SECTIONS: [&str; 4] = ["core.", "filter.", "user.", "tender."];

/// The place of what is set by an argument or a variable.
const COMMAND_LINE: &[u8] = b"command line:";

/// Whose configuration is read.
#[derive(Clone, Copy)]
pub struct ConfigSource<'a> {
    pub environment: &'a Environment,
    pub git_dir: &'a Path,
    /// The git directory that all worktrees share.
    pub common_dir: &'a Path,
    /// Where answers are kept; nothing is, where this folder is not there.
    pub cache_dir: &'a Path,
}

impl ConfigSource<'_> {
    fn git(self) -> Git {
        Git::new(self.environment, Some(self.git_dir))
    }
}

/// Keys and values in the order in which git reads them: the last one of a key counts.
#[derive(Debug, Clone, Default)]
pub struct GitConfig(Vec<(String, Option<String>)>);

impl GitConfig {
    /// Reads what counts for a repository.
    pub fn read_config(source: ConfigSource<'_>) -> Result<Self> {
        let environment = source.environment;
        let head = std::fs::read(source.git_dir.join("HEAD")).unwrap_or_default();
        let program = environment.git_stamp();
        let git_dir = source.git_dir.as_os_str().as_bytes();
        let question = question_to_git(environment, &[b"configuration", program.as_bytes(), git_dir, &head]);
        let mut answers = answers_of_git(source.cache_dir);
        if let Some(listing) = answers.get(&question) {
            return Ok(Self::parse_listing(listing.as_bytes()));
        }
        let asked = SystemTime::now();
        let listing =
            source.git().args(["config", "--list", "-z", "--includes", "--show-origin"]).run_for_stdout()?;
        let mut entries = with_origins(&listing);
        // The user's own is asked for; ours is no hook at all.
        entries.retain(|(origin, entry)| *origin != COMMAND_LINE || !entry.starts_with(b"core.hookspath\n"));
        let config = Self::parse_listing(
            &entries.iter().flat_map(|(_, entry)| [entry, &b"\0"[..]].concat()).collect::<Vec<_>>(),
        );
        if let Some(places) = places_of(source, &entries) {
            answers.put(&question, &places, asked, &config.listing());
        }
        Ok(config)
    }

    /// The form of git's own listing.
    fn listing(&self) -> String {
        let entry = |(key, value): &(String, Option<String>)| match value {
            Some(value) => format!("{key}\n{value}\0"),
            None => format!("{key}\0"),
        };
        self.0.iter().map(entry).collect()
    }

    /// Of git's own listing, entries ended by NUL.
    fn parse_listing(listing: &[u8]) -> Self {
        let entry = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry);
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (text.into_owned(), None),
            }
        };
        let entries = listing.split(|b| *b == 0).filter(|entry| !entry.is_empty()).map(entry);
        Self(entries.filter(|(key, _)| SECTIONS.iter().any(|section| key.starts_with(section))).collect())
    }

    /// The value of a key; a key without a value gives the empty text.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = canonical_key(key);
        let found = self.0.iter().rev().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// The value of a key as git reads booleans; `None` where it is not set, or is none.
    pub fn bool_value(&self, key: &str) -> Option<bool> {
        let key = canonical_key(key);
        let (_, value) = self.0.iter().rev().find(|(known, _)| *known == key)?;
        match value {
            None => Some(true),
            Some(value) => read_git_bool(value),
        }
    }

    /// Every key that begins like this, with its value.
    pub fn keys_beneath<'a>(&'a self, section: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.0.iter().filter(move |(key, _)| key.starts_with(section));
        all.map(|(key, value)| (key.as_str(), value.as_deref().unwrap_or_default()))
    }
}

/// A word or a number, as git reads it; `None` where it is neither.
fn read_git_bool(value: &str) -> Option<bool> {
    let lower = value.to_ascii_lowercase();
    match lower.as_str() {
        "true" | "yes" | "on" => return Some(true),
        "false" | "no" | "off" | "" => return Some(false),
        _ => {}
    }
    let number = lower.trim_start();
    let digits = number.trim_start_matches(['+', '-']);
    let whole = digits.strip_suffix(['k', 'm', 'g']).filter(|rest| !rest.is_empty()).unwrap_or(digits);
    if number.len() - digits.len() > 1 {
        return None;
    }
    let (radix, whole) = match whole.strip_prefix("0x") {
        Some(rest) => (16, rest),
        None if whole.starts_with('0') => (8, whole),
        None => (10, whole),
    };
    let number =
        whole.bytes().all(|b| b.is_ascii_hexdigit()).then(|| i64::from_str_radix(whole, radix).ok())?;
    number.map(|number| number != 0)
}

/// The entries of a listing, each with the place that it comes from.
fn with_origins(listing: &[u8]) -> Vec<(&[u8], &[u8])> {
    let fields: Vec<&[u8]> = listing.split(|b| *b == 0).collect();
    fields.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Every file that the configuration came from or would have come from; `None` where that cannot be said.
fn places_of(source: ConfigSource<'_>, entries: &[(&[u8], &[u8])]) -> Option<Vec<PathBuf>> {
    let environment = source.environment;
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME");
    let mut places = vec![
        source.common_dir.join("config"),
        source.common_dir.join("config.worktree"),
        source.git_dir.join("config.worktree"),
    ];
    let folder = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    places.extend(folder.map(|folder| folder.join("git/config")));
    places.extend(home.as_ref().map(|home| home.join(".gitconfig")));
    places.extend(["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable));
    // Git's own place for the machine's depends on how it was built.
    let system = source.git().args(["var", "GIT_CONFIG_SYSTEM"]).run().ok()?;
    if !system.success() && environment.get("GIT_CONFIG_NOSYSTEM").is_none() {
        return None;
    }
    places.extend(system.first_text().lines().map(PathBuf::from));
    for (origin, entry) in entries {
        let Some(file) = origin.strip_prefix(b"file:") else {
            if *origin == COMMAND_LINE {
                continue;
            }
            return None;
        };
        let file = PathBuf::from(OsStr::from_bytes(file));
        places.extend(included(&file, entry, home.as_deref())?);
        if !places.contains(&file) {
            places.push(file);
        }
    }
    places.iter().all(|place| place.is_absolute()).then_some(places)
}

/// The file that an entry includes, whether it is there or not; `None` where only git can say which.
fn included(file: &Path, entry: &[u8], home: Option<&Path>) -> Option<Option<PathBuf>> {
    let at = entry.iter().position(|b| *b == b'\n').unwrap_or(entry.len());
    let (key, value) = (&entry[..at], entry.get(at + 1..).unwrap_or_default());
    if !(key == b"include.path" || (key.starts_with(b"includeif.") && key.ends_with(b".path"))) {
        return Some(None);
    }
    let path = Path::new(OsStr::from_bytes(value));
    match value {
        [b'~', b'/', rest @ ..] => Some(Some(home?.join(OsStr::from_bytes(rest)))),
        [b'~', ..] | [b'%', ..] | [] => None,
        _ => Some(Some(file.parent()?.join(path))),
    }
}

/// Section and name in lower case, as git lists them; what stands between is kept.
fn canonical_key(key: &str) -> String {
    match (key.find('.'), key.rfind('.')) {
        (Some(first), Some(last)) => {
            [&key[..first].to_lowercase(), &key[first..last], &key[last..].to_lowercase()].concat()
        }
        _ => key.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    #[test]
    fn values_are_read_as_git_reads_them() {
        let entries = [
            ("core.filemode", Some("no")),
            ("core.symlinks", None),
            ("core.eol", Some("lf")),
            ("core.eol", Some("crlf")),
            ("filter.Big.clean", Some("cat")),
            ("core.sparsecheckout", Some("2")),
            ("core.odd", Some("maybe")),
            ("core.a", Some("OFF")),
            ("core.b", Some("")),
            ("core.c", Some("0")),
            ("core.d", Some("1k")),
            ("core.e", Some("-0x0")),
            ("core.f", Some("k")),
            ("core.g", Some("+1")),
            ("core.h", Some("--1")),
        ];
        let config =
            GitConfig(entries.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect());
        assert_eq!(config.bool_value("core.fileMode"), Some(false));
        assert_eq!(config.bool_value("core.symlinks"), Some(true));
        assert_eq!(config.bool_value("core.sparseCheckout"), Some(true));
        assert_eq!(config.bool_value("core.odd"), None);
        assert_eq!(config.bool_value("core.none"), None);
        let letters = "abcdefgh".chars().map(|letter| config.bool_value(&format!("core.{letter}")));
        let read = [Some(false), Some(false), Some(false), Some(true), Some(false), None, Some(true), None];
        assert_eq!(letters.collect::<Vec<_>>(), read);
        assert_eq!(config.get("core.eol"), Some("crlf"));
        assert_eq!(config.get("FILTER.Big.Clean"), Some("cat"));
        assert_eq!(config.get("filter.big.clean"), None);
        assert_eq!(config.keys_beneath("filter.").collect::<Vec<_>>(), [("filter.Big.clean", "cat")]);
    }

    /// Whatever a value comes from: when that changes, git is asked anew.
    #[test]
    fn what_is_kept_is_forgotten_when_a_file_that_counts_changes() {
        let home = TestRepository::new();
        let included = home.outside().join("included");
        std::fs::create_dir_all(home.repository().cache_dir()).expect("a folder");
        home.set_config("tender.worktreeRoot", "one");
        home.set_config("includeIf.onbranch:other.path", "../../included");
        let value = || home.repository().config_value("tender.worktreeRoot").expect("asks").expect("is set");
        let kept = || {
            std::thread::sleep(std::time::Duration::from_millis(80));
            assert_eq!(value(), value());
            let kept =
                std::fs::read(home.repository().cache_dir().join("git-answers.json")).expect("is kept");
            let question = String::from_utf8_lossy(&kept).into_owned();
            assert!(!question.contains("secret"), "{question}");
        };
        home.set_config("http.extraHeader", "secret");
        kept();
        home.set_config("tender.worktreeRoot", "two");
        assert_eq!(value(), "two");
        kept();
        home.write_file("../included", b"[tender]\nworktreeRoot = three\n");
        assert_eq!(value(), "two");
        home.run_git(["symbolic-ref", "HEAD", "refs/heads/other"]);
        assert_eq!(value(), "three");
        kept();
        home.write_file("../included", b"[tender]\nworktreeRoot = four!\n");
        assert_eq!(value(), "four!");
        std::fs::remove_file(&included).expect("removes");
        assert_eq!(value(), "two");
    }

    #[test]
    fn fuzz_a_listing_of_the_configuration() {
        const LISTING: &[u8] =
            b"core.filemode\ntrue\0core.symlinks\0filter.Big.Lfs.clean\ngit-lfs clean -- %f\0x\n\n\0";
        crate::fuzz::holds(&[LISTING], &[b"\0", b"\n", b".", b"core.bare\n0x1"], |bytes| {
            let config = GitConfig::parse_listing(bytes);
            for (key, value) in config.keys_beneath("") {
                let _ = config.bool_value(key);
                assert!(config.get(key).is_none_or(|last| last.len() <= bytes.len() * 3), "{key} = {value}");
            }
        });
    }
}
