//! A repair has to show that something failed before: a case that lies in the contract's `case`, failed in
//! its own body on the base, and passes now. Nothing else reproduces anything: not a build that broke, not a
//! file that could not be loaded, not a case that lies elsewhere.

use super::case_changes::shown_title;
use super::cases::{CaseIdentity, CaseList, CaseOutcome};
use super::evidence::{Evidence, Observation, Observed};
use super::listing::InputFile;
use super::records::{On, Record, StoredLists, find_on_base};
use super::verdict::Verdict;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What a repair's runs show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reproduction {
    Fixed,
    /// This case was mended, and nothing tells whether it lies in `case`.
    Undecided {
        case: String,
    },
    /// Nothing was reproduced, for this reason.
    Missing {
        why: &'static str,
    },
}

/// Looks for a case of the repair that failed on the base and passes in the run `now`.
pub(super) fn find_reproduction(
    observation: &Observation,
    observed: &Observed,
    records: &[Record],
    stored: StoredLists<'_>,
    now: &Evidence,
) -> Reproduction {
    let missing = |why| Reproduction::Missing { why };
    let on_base = |on| find_on_base(observation, observed, records, on);
    let list_of = |evidence: &Evidence| evidence.cases.and_then(|digest| (stored.cases)(&digest));
    let Some(base) = on_base(On::BaseWithCase) else {
        return missing("it was not run on the base, or that run ended in an error");
    };
    if base.flaky {
        return missing("on the base it failed and passed");
    }
    let failed = base.checks.map_or(0, |checks| checks.failed);
    let (Some(before), Some(now)) = (list_of(base), list_of(now)) else {
        return match base.outcome {
            Verdict::Passed => missing("the case passes on the base already"),
            _ if failed > 0 => missing("the verifier names no cases"),
            _ => missing("on the base no counted case failed; a build error proves nothing"),
        };
    };
    let place = CasePlaces {
        observation,
        observed,
        stored,
        files: OnceCell::new(),
        decided: RefCell::default(),
        base: on_base(On::Base).map(|base| list_of(base).unwrap_or_default()),
        without_case: on_base(On::BaseWithoutCase).and_then(list_of),
    };
    let (before, now) = (outcomes_by_case(&before), outcomes_by_case(&now));
    let mut undecided = None;
    let mut why = match before.is_empty() || base.outcome != Verdict::Passed {
        true => "on the base no counted case failed; a build error proves nothing",
        false => "the case passes on the base already",
    };
    for (case, outcomes) in &before {
        let mended = outcomes.contains(&CaseOutcome::FailedByAssertion)
            && now.get(case).is_some_and(|now| now.iter().all(|outcome| *outcome == CaseOutcome::Passed));
        let passed = outcomes.iter().all(|outcome| *outcome == CaseOutcome::Passed);
        if !mended && !passed {
            continue;
        }
        match place.lies_in_case(*case) {
            Some(true) if mended => return Reproduction::Fixed,
            Some(true) => why = "the case passes on the base already",
            None if mended => undecided = undecided.or(Some(shown_title(*case))),
            _ => {}
        }
    }
    undecided.map_or_else(|| missing(why), |case| Reproduction::Undecided { case })
}

fn outcomes_by_case(list: &CaseList) -> BTreeMap<CaseIdentity<'_>, BTreeSet<CaseOutcome>> {
    let mut found: BTreeMap<CaseIdentity<'_>, BTreeSet<CaseOutcome>> = BTreeMap::new();
    for case in &list.cases {
        found.entry(case.identity()).or_default().insert(case.outcome);
    }
    found
}

/// File and class of a case.
type NamedPlace = (Option<String>, Option<String>);

/// What tells where a case lies.
struct CasePlaces<'a> {
    observation: &'a Observation,
    observed: &'a Observed,
    stored: StoredLists<'a>,
    files: OnceCell<Vec<InputFile>>,
    /// What file and class decide, by both.
    decided: RefCell<BTreeMap<NamedPlace, Option<bool>>>,
    /// The cases of the base as it is; none where it came to none, since then it is the case's files that
    /// make the others run.
    base: Option<CaseList>,
    /// The cases of the base without the files of the case.
    without_case: Option<CaseList>,
}

impl CasePlaces<'_> {
    /// By the file that its tool names, else by its class read as a path, else by what runs without the files
    /// of the case; `None` where nothing of that decides.
    fn lies_in_case(&self, case: CaseIdentity<'_>) -> Option<bool> {
        let (file, class, _) = case;
        let place = (file.map(str::to_owned), class.map(str::to_owned));
        let known = self.decided.borrow().get(&place).copied();
        let by_place = known.unwrap_or_else(|| {
            let by_file = file.and_then(|file| self.is_case_file(file));
            let decided = by_file.or_else(|| class.and_then(|class| self.is_case_class(class)));
            self.decided.borrow_mut().insert(place, decided);
            decided
        });
        let holds = |list: &CaseList| list.cases.iter().any(|other| other.identity() == case);
        match (by_place, &self.base, &self.without_case) {
            (Some(decided), ..) => Some(decided),
            (None, Some(base), _) if !holds(base) => Some(true),
            (None, _, Some(without)) => Some(!holds(without)),
            _ => None,
        }
    }

    /// By a path, which tools write from the folder they work in.
    fn is_case_file(&self, file: &str) -> Option<bool> {
        let file = file.strip_prefix("./").unwrap_or(file);
        self.decide_by_paths(|path| path == file)
            .or_else(|| self.decide_by_paths(|path| lies_below_as(path, file)))
    }

    /// By the longest beginning of a class that is a path without its ending: `tests.test_a.TestB` is a class
    /// of `tests/test_a.py`.
    fn is_case_class(&self, class: &str) -> Option<bool> {
        if let Some(decided) = self.is_case_file(class) {
            return Some(decided);
        }
        let path = class.replace("::", "/").replace(['.', '\\'], "/");
        let mut beginning = Some(path.trim_matches('/')).filter(|path| !path.is_empty());
        while let Some(path) = beginning {
            let decided = self
                .decide_by_paths(|file| without_ending(file) == path)
                .or_else(|| self.decide_by_paths(|file| lies_below_as(without_ending(file), path)));
            if decided.is_some() {
                return decided;
            }
            beginning = path.rsplit_once('/').map(|(above, _)| above);
        }
        None
    }

    /// True where all the files that fit lie in `case`; `None` where none fits, or some do and some do not.
    fn decide_by_paths(&self, fits: impl Fn(&str) -> bool) -> Option<bool> {
        let read = || self.observed.listing.and_then(|listing| (self.stored.files)(&listing));
        let files = self.files.get_or_init(|| read().unwrap_or_default());
        let fitting = files.iter().filter(|file| std::str::from_utf8(file.path.as_bytes()).is_ok_and(&fits));
        let decided: BTreeSet<bool> =
            fitting.map(|file| self.observation.case.matches_path(&file.path)).collect();
        decided.first().copied().filter(|_| decided.len() == 1)
    }
}

/// True where a path ends with another one; a name alone would fit too many.
fn lies_below_as(path: &str, end: &str) -> bool {
    end.contains('/') && path.strip_suffix(end).is_some_and(|above| above.ends_with('/'))
}

/// The path up to the first dot of the file's name.
fn without_ending(path: &str) -> &str {
    let name = path.rfind('/').map_or(0, |at| at + 1);
    path[name..].find('.').filter(|at| *at > 0).map_or(path, |at| &path[..name + at])
}
