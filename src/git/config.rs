//! The merged configuration of a repository, read once: asking git for each key would be most of what a small
//! delivery costs.

use super::command::Git;
use crate::error::Result;

/// Keys and values in the order in which git reads them: the last one of a key counts.
#[derive(Debug, Clone, Default)]
pub struct GitConfig(Vec<(String, Option<String>)>);

impl GitConfig {
    /// Reads everything that counts for `git`'s repository.
    pub fn read(git: Git) -> Result<Self> {
        Ok(Self::listed(&git.args(["config", "--list", "-z", "--includes"]).ok()?))
    }

    /// Of git's own listing, entries ended by NUL.
    fn listed(listing: &[u8]) -> Self {
        let entry = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry);
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (text.into_owned(), None),
            }
        };
        Self(listing.split(|b| *b == 0).filter(|entry| !entry.is_empty()).map(entry).collect())
    }

    /// The value of a key; a key without a value gives the empty text.
    pub fn get(&self, key: &str) -> Option<&str> {
        let key = canonical(key);
        let found = self.0.iter().rev().find(|(known, _)| *known == key);
        found.map(|(_, value)| value.as_deref().unwrap_or_default())
    }

    /// The value of a key as git reads booleans; `None` where it is not set, or is none.
    pub fn bool(&self, key: &str) -> Option<bool> {
        let key = canonical(key);
        let (_, value) = self.0.iter().rev().find(|(known, _)| *known == key)?;
        let Some(value) = value else { return Some(true) };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" | "" => Some(false),
            number => number.parse::<i64>().ok().map(|number| number != 0),
        }
    }

    /// Every key that begins like this, with its value.
    pub fn beneath<'a>(&'a self, section: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.0.iter().filter(move |(key, _)| key.starts_with(section));
        all.map(|(key, value)| (key.as_str(), value.as_deref().unwrap_or_default()))
    }
}

/// Section and name in lower case, as git lists them; what stands between is kept.
fn canonical(key: &str) -> String {
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
        ];
        let config =
            GitConfig(entries.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect());
        assert_eq!(config.bool("core.fileMode"), Some(false));
        assert_eq!(config.bool("core.symlinks"), Some(true));
        assert_eq!(config.bool("core.sparseCheckout"), Some(true));
        assert_eq!(config.bool("core.odd"), None);
        assert_eq!(config.bool("core.none"), None);
        assert_eq!(config.get("core.eol"), Some("crlf"));
        assert_eq!(config.get("FILTER.Big.Clean"), Some("cat"));
        assert_eq!(config.get("filter.big.clean"), None);
        assert_eq!(config.beneath("filter.").collect::<Vec<_>>(), [("filter.Big.clean", "cat")]);
    }

    #[test]
    fn fuzz_a_listing_of_the_configuration() {
        const LISTING: &[u8] =
            b"core.filemode\ntrue\0core.symlinks\0filter.Big.Lfs.clean\ngit-lfs clean -- %f\0x\n\n\0";
        crate::fuzz::holds(&[LISTING], &[b"\0", b"\n", b".", b"core.bare\n0x1"], |bytes| {
            let config = GitConfig::listed(bytes);
            for (key, value) in config.beneath("") {
                let _ = config.bool(key);
                assert!(config.get(key).is_none_or(|last| last.len() <= bytes.len() * 3), "{key} = {value}");
            }
        });
    }
}
