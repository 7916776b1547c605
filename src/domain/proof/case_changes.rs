//! What became of the cases of the base: those of two runs, held against each other by name.
//!
//! A case that ran on the base and does not run now is gone, whatever took it away: it was removed, renamed
//! or is skipped. Where several cases share a name, each counts.

use super::cases::{CaseIdentity, CaseList, CaseOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many cases are named of each kind; all are counted.
const MOST_NAMES: usize = 20;

/// Some cases: how many, and the names of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCases {
    pub count: u64,
    pub first: Vec<String>,
}

impl NamedCases {
    fn add_case(&mut self, name: impl FnOnce() -> String, count: u64) {
        self.count += count;
        if count > 0 && self.first.len() < MOST_NAMES {
            self.first.push(name());
        }
    }

    /// The names, and how many more there are.
    pub fn list_names(&self, most: usize) -> String {
        let shown = &self.first[..self.first.len().min(most)];
        match self.count.saturating_sub(shown.len() as u64) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

/// A gone case with the new one that it seems to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedCase {
    pub from: String,
    pub to: String,
}

/// Likewise several: how many, and the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedCases {
    pub count: u64,
    pub first: Vec<MovedCase>,
}

/// The cases of a candidate's run against those of its base's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseChanges {
    /// Ran on the base, and did not run now.
    pub gone: NamedCases,
    pub new: NamedCases,
    /// Failed on the base and pass now.
    pub fixed: NamedCases,
    /// Passed on the base and fail now.
    pub broken: NamedCases,
    /// Some of the gone that seem to be new ones elsewhere, where only file or class differ.
    #[serde(default)]
    pub moved: MovedCases,
    /// All names of the gone.
    #[serde(skip)]
    pub all_gone: Vec<String>,
    /// How many cases of both runs have no name, because there were too many, and are not among these.
    #[serde(skip)]
    pub unnamed: u64,
}

/// How often a case came out how.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    fn count_runs(self) -> u64 {
        self.passed + self.failed
    }

    fn count_all(self) -> u64 {
        self.count_runs() + self.skipped
    }
}

/// Compares the cases of a run on the base with those of a run on the candidate.
pub fn compare_cases(base: &CaseList, now: &CaseList) -> CaseChanges {
    let mut found = CaseChanges { unnamed: base.unnamed + now.unnamed, ..CaseChanges::default() };
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for (case, [before, after]) in tally_both(base, now) {
        let title = || shown_title(case);
        let lost = before.count_runs().saturating_sub(after.count_runs());
        let added = after.count_all().saturating_sub(before.count_all());
        found.gone.add_case(title, lost);
        found.new.add_case(title, added);
        gone.extend((lost > 0).then_some(case));
        new.extend((added > 0).then_some(case));
        let fixed = before.failed > 0 && after.passed > 0 && after.failed == 0;
        found.fixed.add_case(title, u64::from(fixed));
        let broken = before.passed > 0 && before.failed == 0 && after.failed > 0;
        found.broken.add_case(title, u64::from(broken));
    }
    found.moved = pair_moved(&gone, &new);
    found.all_gone = gone.into_iter().map(shown_title).collect();
    found
}

fn tally_both<'a>(base: &'a CaseList, now: &'a CaseList) -> BTreeMap<CaseIdentity<'a>, [Tally; 2]> {
    let mut tallies: BTreeMap<CaseIdentity<'a>, [Tally; 2]> = BTreeMap::new();
    for (side, list) in [base, now].into_iter().enumerate() {
        for case in &list.cases {
            let tally = &mut tallies.entry(case.identity()).or_default()[side];
            match case.outcome {
                CaseOutcome::Passed => tally.passed += 1,
                CaseOutcome::FailedByAssertion | CaseOutcome::FailedByError => tally.failed += 1,
                CaseOutcome::Skipped => tally.skipped += 1,
            }
        }
    }
    tallies
}

/// The name of a case for a reader; its file where it has no class.
pub fn shown_title((file, class, name): CaseIdentity<'_>) -> String {
    match class.filter(|class| !class.is_empty()).or(file) {
        Some(place) => format!("{place}::{name}"),
        None => name.to_owned(),
    }
}

/// Each gone case with a new one that has the same name at the end; a module's path is a class too.
fn pair_moved(gone: &[CaseIdentity<'_>], new: &[CaseIdentity<'_>]) -> MovedCases {
    let bare = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
    let mut free: BTreeMap<String, Vec<CaseIdentity<'_>>> = BTreeMap::new();
    for case in new.iter().rev() {
        free.entry(bare(case.2)).or_default().push(*case);
    }
    let pairs = gone.iter().filter_map(|from| {
        let to = free.get_mut(&bare(from.2))?.pop()?;
        let (old, now) = (shown_title(*from), shown_title(to));
        let same = old == now;
        let placed = |title: String, file: Option<&str>| match file.filter(|_| same) {
            Some(file) => format!("{title} in {file}"),
            None => title,
        };
        Some(MovedCase { from: placed(old, from.0), to: placed(now, to.0) })
    });
    let mut moved = MovedCases::default();
    for pair in pairs {
        moved.count += 1;
        moved.first.extend((moved.first.len() < MOST_NAMES).then_some(pair));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::proof::cases::CountedCase;
    use CaseOutcome::{FailedByAssertion, FailedByError, Passed, Skipped};

    fn list_of(cases: &[(&str, CaseOutcome)]) -> CaseList {
        let case = |(name, outcome): &(&str, CaseOutcome)| {
            let mut case = CountedCase::with_name(name, *outcome);
            if let Some((class, name)) = name.rsplit_once('.') {
                (case.class, case.name) = (Some(class.to_owned()), name.to_owned());
            }
            case
        };
        CaseList::new(cases.iter().map(case).collect(), 0)
    }

    fn join_names(cases: &NamedCases) -> String {
        format!("{}: {}", cases.count, cases.first.join(" "))
    }

    #[test]
    fn each_case_of_the_base_is_accounted_for() {
        let base = list_of(&[
            ("kept", Passed),
            ("removed", Passed),
            ("skipped now", Passed),
            ("failing and removed", FailedByAssertion),
            ("skipped and removed", Skipped),
            ("mended", FailedByError),
            ("spoilt", Passed),
            ("bad", FailedByAssertion),
            ("woken", Skipped),
        ]);
        let now = list_of(&[
            ("kept", Passed),
            ("skipped now", Skipped),
            ("mended", Passed),
            ("spoilt", FailedByError),
            ("bad", FailedByAssertion),
            ("woken", Passed),
            ("added", Passed),
            ("added and skipped", Skipped),
        ]);
        let found = compare_cases(&base, &now);
        assert_eq!(join_names(&found.gone), "3: failing and removed removed skipped now");
        assert_eq!(join_names(&found.new), "2: added added and skipped");
        assert_eq!(
            (join_names(&found.fixed), join_names(&found.broken)),
            ("1: mended".into(), "1: spoilt".into())
        );
        assert_eq!(compare_cases(&base, &base), CaseChanges::default());
        let wire = serde_json::to_value(&found).expect("serializes");
        let keys: Vec<_> = wire.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["gone", "new", "fixed", "broken", "moved"]);
    }

    #[test]
    fn cases_of_one_name_count_each_for_itself() {
        let three = list_of(&[("a", Passed), ("a", Passed), ("a", Passed)]);
        let one = list_of(&[("a", Passed), ("a", Skipped)]);
        assert_eq!(join_names(&compare_cases(&three, &one).gone), "2: a");
        assert_eq!(join_names(&compare_cases(&one, &three).new), "1: a");
        let mixed = list_of(&[("a", Passed), ("a", FailedByAssertion)]);
        assert_eq!(compare_cases(&mixed, &mixed), CaseChanges::default());
    }

    #[test]
    fn a_case_that_moved_is_shown_as_a_pair() {
        let base = list_of(&[("tests.a.one", Passed), ("m::two", Passed), ("three", Passed)]);
        let now = list_of(&[("tests.b.one", Passed), ("n::two", Passed), ("four", Passed)]);
        let found = compare_cases(&base, &now);
        assert_eq!((found.gone.count, found.new.count), (3, 3), "a pair counts as both");
        let pair = |a: &str, b: &str| MovedCase { from: a.to_owned(), to: b.to_owned() };
        assert_eq!(found.moved.first, [pair("m::two", "n::two"), pair("tests.a::one", "tests.b::one")]);
        assert_eq!(found.moved.count, 2);
        let of_file = |file: &str| {
            let mut case = CountedCase::with_name("x", Passed);
            (case.class, case.file) = (Some("c".to_owned()), Some(file.to_owned()));
            CaseList::new(vec![case], 0)
        };
        let found = compare_cases(&of_file("a"), &of_file("b"));
        assert_eq!(found.moved.first, [pair("c::x in a", "c::x in b")]);
    }

    #[test]
    fn few_are_named_and_all_are_counted() {
        let many: Vec<String> = (0..50).map(|n| format!("n{n:02}")).collect();
        let many: Vec<_> = many.iter().map(|name| (name.as_str(), Passed)).collect();
        let gone = compare_cases(&list_of(&many), &CaseList { cases: Vec::new(), unnamed: 7 });
        assert_eq!((gone.gone.count, gone.gone.first.len(), gone.unnamed), (50, MOST_NAMES, 7));
        assert_eq!(gone.gone.list_names(2), "n00, n01 and 48 more");
    }
}
