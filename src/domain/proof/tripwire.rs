//! Tripwires: what lies around a task and is none of its business, as it was seen at one moment, and what
//! changed between two.
//!
//! A worker without confinement can alter the shared configuration, a hook, a branch, the stash. That is no
//! reason to refuse its work, but whoever reads the report should hear of it. The user may have done the
//! same: nothing here says who it was. Values of the configuration may be secrets, so that only their digests
//! are kept.

use crate::domain::value::digest::Sha256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of sentences that one kind of thing gets before the rest is only counted.
const MOST_NAMED: usize = 20;

/// Everything that was seen. Names are texts for people, with replacement characters where one is no UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sight {
    /// Digests of the configuration files, by their names.
    pub config_files: BTreeMap<String, Sha256>,
    /// Digests of the values of each key in them.
    pub config: BTreeMap<String, Sha256>,
    /// The directory that git takes hooks from.
    pub hooks_at: String,
    /// Mode and digest of each file in it.
    pub hooks: BTreeMap<String, String>,
    /// Digests of the files in `info/`.
    pub info: BTreeMap<String, String>,
    /// Branches and the stash: what each ref points at.
    pub refs: BTreeMap<String, String>,
    /// HEAD of the live tree: a branch's name, or an id.
    pub head: String,
    /// Tells without reading it whether the live tree's index was written.
    pub index_stamp: String,
    /// Entries of that index that are not the base's.
    pub index: BTreeMap<String, String>,
}

/// A look around a task that found changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tripped {
    /// Blob with a [`Sight`]: what there is now.
    pub sight: Sha256,
    pub changes: Vec<String>,
}

/// What changed, one sentence each. `ours` says of an object's id whether a delivery's record names it: what
/// a ref or an index entry has from a delivery is no alarm.
pub fn changes_since(before: &Sight, now: &Sight, ours: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let digests = |map: &BTreeMap<String, Sha256>| -> BTreeMap<String, String> {
        map.iter().map(|(name, digest)| (name.clone(), digest.to_string())).collect()
    };
    let keys = map_differences(&digests(&before.config), &digests(&now.config));
    if keys.is_empty() {
        let files = map_differences(&digests(&before.config_files), &digests(&now.config_files));
        tell_differences(&mut found, "the shared git configuration file", files);
    }
    tell_differences(&mut found, "the key of the shared git configuration", keys);
    if before.hooks_at != now.hooks_at {
        found
            .push(format!("git takes hooks from another directory: {} -> {}", before.hooks_at, now.hooks_at));
    } else {
        tell_differences(&mut found, "the hook", map_differences(&before.hooks, &now.hooks));
    }
    tell_differences(&mut found, "the file info/", map_differences(&before.info, &now.info));
    let is_ours =
        |one: &Difference| one.now.as_ref().is_some_and(|now| now.split(' ').next_back().is_some_and(ours));
    let foreign =
        |before, now| map_differences(before, now).into_iter().filter(|one| !is_ours(one)).collect();
    tell_differences(&mut found, "the ref", foreign(&before.refs, &now.refs));
    if before.head != now.head {
        found.push(format!(
            "HEAD of the live tree changed: {} -> {}",
            shorten_value(&before.head),
            shorten_value(&now.head)
        ));
    }
    // A checkout or a merge says so itself.
    if before.head == now.head && before.refs.get(&before.head) == now.refs.get(&now.head) {
        tell_differences(&mut found, "the live tree's index entry", foreign(&before.index, &now.index));
    }
    found
}

struct Difference {
    name: String,
    before: Option<String>,
    now: Option<String>,
}

fn map_differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Difference> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .map(|name| Difference {
            name: name.clone(),
            before: before.get(name).cloned(),
            now: now.get(name).cloned(),
        })
        .collect()
}

fn tell_differences(found: &mut Vec<String>, what: &str, differences: Vec<Difference>) {
    let more = differences.len().saturating_sub(MOST_NAMED);
    let space = if what.ends_with('/') { "" } else { " " };
    for one in differences.into_iter().take(MOST_NAMED) {
        let side =
            |value: Option<String>| value.map_or_else(|| "nothing".to_owned(), |value| shorten_value(&value));
        let (name, before, now) = (one.name, side(one.before), side(one.now));
        found.push(format!("{what}{space}{name} changed: {before} -> {now}"));
    }
    if more > 0 {
        found.push(format!("{more} more changes like: {what}"));
    }
}

/// Ids and digests are cut to what a person can compare; names stay whole.
fn shorten_value(value: &str) -> String {
    let cut = |word: &str| {
        let hex = word.len() >= 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
        if hex { word[..12].to_owned() } else { word.to_owned() }
    };
    value.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::domain::proof::tripwire::*;

    fn sight_sample() -> Sight {
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        Sight {
            config_files: [("config".to_owned(), Sha256::of(b"1"))].into(),
            config: [("core.bare".to_owned(), Sha256::of(b"false"))].into(),
            hooks_at: "/r/.git/hooks".to_owned(),
            hooks: text(&[("pre-commit", "100755 aa")]),
            info: text(&[("exclude", "100644 bb")]),
            refs: text(&[("refs/heads/main", &"a".repeat(40)), ("refs/stash", &"b".repeat(40))]),
            head: "refs/heads/main".to_owned(),
            index_stamp: String::new(),
            index: BTreeMap::new(),
        }
    }

    fn changes_after(change: impl FnOnce(&mut Sight)) -> Vec<String> {
        let mut now = sight_sample();
        change(&mut now);
        changes_since(&sight_sample(), &now, &|id| id == "c".repeat(40))
    }

    #[test]
    fn each_change_is_named_with_what_it_was_and_is() {
        assert!(changes_after(|_| {}).is_empty());
        let key = changes_after(|s| {
            s.config_files.insert("config".into(), Sha256::of(b"2"));
            s.config.insert("core.hookspath".into(), Sha256::of(b"x"));
        });
        assert_eq!(key.len(), 1);
        assert!(key[0].contains("core.hookspath changed: nothing -> "), "{key:?}");
        let file = changes_after(|s| s.config_files = [("config".into(), Sha256::of(b"2"))].into());
        assert!(file[0].contains("configuration file config changed"), "{file:?}");
        assert_eq!(
            changes_after(|s| drop(s.hooks.remove("pre-commit"))),
            ["the hook pre-commit changed: 100755 aa -> nothing"]
        );
        assert_eq!(
            changes_after(|s| drop(s.info.remove("exclude"))),
            ["the file info/exclude changed: 100644 bb -> nothing"]
        );
        let moved = changes_after(|s| drop(s.refs.insert("refs/heads/main".into(), "d".repeat(40))));
        assert_eq!(moved, ["the ref refs/heads/main changed: aaaaaaaaaaaa -> dddddddddddd"]);
        assert_eq!(
            changes_after(|s| s.head = "refs/heads/x".into()),
            ["HEAD of the live tree changed: refs/heads/main -> refs/heads/x"]
        );
        let staged = changes_after(|s| drop(s.index.insert("a".into(), "100644 1".into())));
        assert_eq!(staged, ["the live tree's index entry a changed: nothing -> 100644 1"]);
        assert!(changes_after(|s| s.hooks_at = "/x".into())[0].contains("/r/.git/hooks -> /x"));
    }

    #[test]
    fn what_a_delivery_made_is_no_alarm() {
        assert!(changes_after(|s| drop(s.refs.insert("refs/heads/bot".into(), "c".repeat(40)))).is_empty());
        assert!(
            changes_after(|s| drop(s.index.insert("a".into(), format!("100644 {}", "c".repeat(40)))))
                .is_empty()
        );
        assert_eq!(
            changes_after(|s| drop(s.refs.remove("refs/stash"))).len(),
            1,
            "a removal is nobody's delivery"
        );
    }

    #[test]
    fn a_flood_of_changes_is_counted() {
        let many = changes_after(|s| {
            (0..50).for_each(|n| drop(s.refs.insert(format!("refs/heads/b{n}"), "e".repeat(40))))
        });
        assert_eq!(many.len(), MOST_NAMED + 1);
        assert!(many[MOST_NAMED].starts_with("30 more"));
    }
}
