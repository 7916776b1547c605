//! The verdict of one run: an AND over everything that has to hold, and the first thing that does not.
//!
//! Pure, so that every line of the table in the documentation is a unit test. The order is: what makes the
//! run meaningless, what says no, what makes a yes unbelievable, what is not enough for a yes.

use super::blame::Blame;
use super::formats::{Counted, Lack};
use crate::domain::proof::evidence::{Attempt, Finding, Produced};
use crate::domain::proof::verdict::{Checks, Said, Verdict};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::display_bytes;
use crate::git::materialise::Alteration;
use crate::process::ProgramEnd;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct RunOutcome {
    /// What it says of each row, by the row's id.
    pub(super) rows: BTreeMap<String, RowOutcome>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) outputs: Vec<Produced>,
    pub(super) findings: Vec<Finding>,
    /// Whose failure it is, with the exit code, where it ended badly before any case was counted.
    pub(super) blame: Option<(Blame, i32)>,
}

impl RunOutcome {
    /// Of what was said of the rows, what stands for the attempt: the first that is no pass.
    pub(super) fn worst(&self) -> &Said {
        const PASSED: &Said = &(Verdict::Passed, None);
        let mut all = self.rows.values().map(|row| &row.said);
        all.find(|(verdict, _)| *verdict != Verdict::Passed).unwrap_or(PASSED)
    }

    /// True where only a run on the base can tell whose failure it is.
    pub(super) fn needs_base(&self) -> bool {
        matches!(self.blame, Some((Blame::AskBase(_), _)))
    }

    /// Decides with the run on the base whose failure it is.
    pub(super) fn decide_by_base(&mut self, base: &Self) {
        let Some((blame, code)) = self.blame.take() else { return };
        let base_works = base
            .rows
            .values()
            .any(|row| row.said.0 == Verdict::Passed || row.checks.is_some_and(|checks| checks.ran > 0));
        let decided = blame.decide_by_base(base_works);
        let undecided = blame.to_verdict(code);
        let said = decided.to_verdict(code);
        for row in self.rows.values_mut().filter(|row| row.said == undecided) {
            row.said = said.clone();
        }
        if let Some(last) = self.attempts.last_mut() {
            (last.outcome, last.reason) = said;
        }
        self.blame = Some((decided, code));
    }
}

/// What a run says of one of its rows.
#[derive(Debug, Clone)]
pub(super) struct RowOutcome {
    pub(super) said: Said,
    pub(super) checks: Option<Checks>,
    /// The stored names of the cases, where they have some.
    pub(super) cases: Option<Sha256>,
    /// It failed and passed within the run.
    pub(super) flaky: bool,
}

impl From<Said> for RowOutcome {
    fn from(said: Said) -> Self {
        Self { said, checks: None, cases: None, flaky: false }
    }
}

/// What is known of one attempt.
pub(super) struct AttemptFacts<'a> {
    pub end: &'a ProgramEnd,
    /// How long it was given, as the manifest says.
    pub timeout: std::time::Duration,
    /// Why it was ended before its time, where it was.
    pub stopped: Option<&'a str>,
    /// Processes that were still there at the end.
    pub survivors: u32,
    /// What is not as it was shown.
    pub altered: &'a [(Vec<u8>, Alteration)],
    /// What the outputs count; `None` where none is declared. `Err`: what is wrong with them.
    pub counted: &'a Result<Option<Counted>, String>,
    /// What the protocol's answer says of the requirement; `None` where the protocol is not spoken.
    pub answered: Option<&'a Result<Said, String>>,
    /// How many cases must have run; `None` where nothing counts.
    pub min_checks: Option<u64>,
    /// What it changes is what it finds fault with.
    pub mends: bool,
    /// Whose failure it is, where it ended badly before any case was counted.
    pub blame: Option<&'a Blame>,
}

pub(super) fn conclude(facts: &AttemptFacts<'_>) -> Said {
    meaningless(facts)
        .or_else(|| refuted(facts))
        .or_else(|| unbelievable(facts))
        .or_else(|| insufficient(facts))
        .unwrap_or((Verdict::Passed, None))
}

fn error(reason: impl Into<String>) -> Option<Said> {
    Some((Verdict::Error, Some(reason.into())))
}

fn failed(reason: impl Into<String>) -> Option<Said> {
    Some((Verdict::Failed, Some(reason.into())))
}

fn not_run(reason: impl Into<String>) -> Option<Said> {
    Some((Verdict::NotRun, Some(reason.into())))
}

/// It did not end by itself or passed over the budget, or it changed what it was to judge.
fn meaningless(facts: &AttemptFacts<'_>) -> Option<Said> {
    if let Some(why) = facts.stopped {
        return error(why);
    }
    match facts.end {
        ProgramEnd::TimedOut => return error(format!("timed out after {:?}", facts.timeout)),
        ProgramEnd::Stopped => return error("ended before its time"),
        ProgramEnd::Signalled(signal) => return error(format!("ended by signal {signal}")),
        ProgramEnd::NotStarted { message, .. } => return error(message.clone()),
        ProgramEnd::SupervisorLost => return error("its supervisor was lost"),
        ProgramEnd::Exited(_) => {}
    }
    let (path, what) = facts.altered.first()?;
    let path = display_bytes(path);
    let more = match facts.altered.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    match what {
        _ if facts.mends => failed(format!("it would change {path}{more}")),
        Alteration::Added => error(format!("wrote outside scratch: {path}{more}")),
        Alteration::Changed => error(format!("changed its inputs: {path}{more}")),
        Alteration::Removed => error(format!("changed its inputs: removed {path}{more}")),
    }
}

fn refuted(facts: &AttemptFacts<'_>) -> Option<Said> {
    let counted = facts.counted.as_ref().ok().and_then(Option::as_ref);
    let cases = counted.map_or(0, |counted| counted.checks.failed);
    let outside = counted.map_or(0, |counted| counted.outside);
    let names = || {
        let mut names: Vec<&str> = counted
            .iter()
            .flat_map(|c| &c.findings)
            .filter(|f| f.level == "error")
            .filter_map(|f| f.rule.as_deref())
            .collect();
        names.dedup();
        names.truncate(3);
        if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
    };
    let but_exit = match facts.end {
        ProgramEnd::Exited(0) => ", although it ended with exit code 0",
        _ => "",
    };
    match (facts.end, cases, outside) {
        (ProgramEnd::Exited(0), 0, 0) => {}
        (ProgramEnd::Exited(code), 0, 0) => match facts.blame {
            Some(blame) => return Some(blame.to_verdict(*code)),
            None => return failed(format!("exit code {code}")),
        },
        (_, 0, n) if facts.min_checks.is_none() => {
            let found =
                if n == 1 { "a finding is an error".to_owned() } else { format!("{n} findings are errors") };
            return failed(format!("{found}{}{but_exit}", names()));
        }
        (_, 0, _) => return failed(format!("failed outside of the cases{}{but_exit}", names())),
        (_, n, _) => return failed(format!("{n} failed{}{but_exit}", names())),
    }
    match facts.answered {
        Some(Ok((verdict @ Verdict::Failed, reason))) => Some((*verdict, reason.clone())),
        _ => None,
    }
}

/// It says yes in a way that cannot be believed.
fn unbelievable(facts: &AttemptFacts<'_>) -> Option<Said> {
    if facts.survivors > 0 {
        return error(format!("left {} processes running", facts.survivors));
    }
    if let Err(why) = facts.counted {
        return error(why.clone());
    }
    match facts.answered {
        Some(Err(why)) => error(format!("bad protocol: {why}")),
        Some(Ok((Verdict::Error, reason))) => Some((Verdict::Error, reason.clone())),
        _ => None,
    }
}

fn insufficient(facts: &AttemptFacts<'_>) -> Option<Said> {
    if let Some(Ok((verdict @ Verdict::NotRun, reason))) = facts.answered {
        return Some((*verdict, reason.clone()));
    }
    if let Ok(Some(Counted { lacking: Some(lack), .. })) = facts.counted {
        let Lack { output, ran, skipped, wanted } = lack;
        return match (ran, skipped) {
            (0, 0) => not_run(format!("no checks ran in {output}")),
            (0, _) => not_run(format!("all skipped in {output}")),
            _ => failed(format!("{ran} checks ran in {output}, at least {wanted} must")),
        };
    }
    let min = facts.min_checks?;
    let checks = match facts.counted {
        Ok(Some(counted)) => counted.checks,
        _ => Checks::default(),
    };
    match checks {
        Checks { ran: 0, skipped: 0, .. } if min > 0 => not_run("no checks ran"),
        Checks { ran: 0, .. } if min > 0 => not_run("all skipped"),
        Checks { ran, .. } if ran < min => failed(format!("{ran} checks ran, at least {min} must")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command::NotStarted;
    use proptest::prelude::*;
    use std::time::Duration;

    fn counted(passed: u64, failed: u64, skipped: u64) -> Counted {
        let checks = Checks { ran: passed + failed, passed, failed, skipped, flaky: 0 };
        let (level, rule) = ("error".to_owned(), Some("a::b".to_owned()));
        let finding = Finding { level, rule, ..Finding::default() };
        let findings = if failed > 0 { vec![finding] } else { Vec::new() };
        Counted { checks, findings, ..Counted::default() }
    }

    fn path() -> Vec<u8> {
        b"src/x".to_vec()
    }

    /// A run that passes, with something changed.
    fn say<'a>(change: impl FnOnce(&mut AttemptFacts<'a>)) -> (Verdict, String) {
        let counted: &'static _ = Box::leak(Box::new(Ok(Some(counted(2, 0, 0)))));
        let mut facts: AttemptFacts<'a> = AttemptFacts {
            end: &ProgramEnd::Exited(0),
            timeout: Duration::from_secs(2),
            stopped: None,
            survivors: 0,
            altered: &[],
            counted,
            answered: None,
            min_checks: Some(1),
            blame: None,
            mends: false,
        };
        change(&mut facts);
        let (verdict, reason) = conclude(&facts);
        (verdict, reason.unwrap_or_default())
    }

    #[test]
    fn the_table_holds() {
        assert_eq!(say(|_| {}), (Verdict::Passed, String::new()));
        let bare = Ok(None);
        assert_eq!(say(|f| (f.counted, f.min_checks) = (&bare, None)).0, Verdict::Passed);
        // exit code and cases
        assert_eq!(say(|f| f.end = &ProgramEnd::Exited(1)), (Verdict::Failed, "exit code 1".to_owned()));
        let one = Ok(Some(counted(5, 1, 0)));
        assert_eq!(say(|f| f.counted = &one).0, Verdict::Failed);
        let blame = Blame::AskBase(None);
        let unknown = say(|f| (f.end, f.blame) = (&ProgramEnd::Exited(1), Some(&blame)));
        assert_eq!(unknown, (Verdict::Error, "exit code 1 before any case was counted".to_owned()));
        let by_base = Blame::AskBase(None).decide_by_base(true);
        assert_eq!(say(|f| (f.end, f.blame) = (&ProgramEnd::Exited(1), Some(&by_base))).0, Verdict::Failed);
        let both = say(|f| (f.counted, f.end) = (&one, &ProgramEnd::Exited(101)));
        assert_eq!(both, (Verdict::Failed, "1 failed: a::b".to_owned()));
        // findings, where nothing counts
        let found = Ok(Some(Counted { checks: Checks::default(), outside: 1, ..counted(0, 1, 0) }));
        let said = say(|f| (f.counted, f.min_checks) = (&found, None));
        assert!(said.1.starts_with("a finding is an error: a::b, although"), "{said:?}");
        let said = say(|f| (f.counted, f.end) = (&found, &ProgramEnd::Exited(1)));
        assert_eq!(said, (Verdict::Failed, "failed outside of the cases: a::b".to_owned()));
        // too little
        let none = Ok(Some(counted(0, 0, 0)));
        assert_eq!(say(|f| f.counted = &none), (Verdict::NotRun, "no checks ran".to_owned()));
        let skipped = Ok(Some(counted(0, 0, 3)));
        assert_eq!(say(|f| f.counted = &skipped), (Verdict::NotRun, "all skipped".to_owned()));
        assert_eq!(say(|f| f.min_checks = Some(3)).0, Verdict::Failed);
        // errors
        assert_eq!(say(|f| f.end = &ProgramEnd::TimedOut), (Verdict::Error, "timed out after 2s".to_owned()));
        let spent = say(|f| (f.end, f.stopped) = (&ProgramEnd::Stopped, Some("no time is left")));
        assert_eq!(spent, (Verdict::Error, "no time is left".to_owned()));
        assert_eq!(say(|f| f.end = &ProgramEnd::Signalled(9)).1, "ended by signal 9");
        let lost = ProgramEnd::NotStarted { kind: NotStarted::NotFound, message: "no such thing".to_owned() };
        assert_eq!(say(|f| f.end = &lost), (Verdict::Error, "no such thing".to_owned()));
        assert_eq!(say(|f| f.survivors = 2), (Verdict::Error, "left 2 processes running".to_owned()));
        let bad = Err("x.xml is not XML".to_owned());
        assert_eq!(say(|f| f.counted = &bad), (Verdict::Error, "x.xml is not XML".to_owned()));
        for (what, words) in [
            (Alteration::Added, "wrote outside scratch: src/x"),
            (Alteration::Changed, "changed its inputs: src/x"),
            (Alteration::Removed, "changed its inputs: removed src/x"),
        ] {
            let altered = [(path(), what)];
            assert_eq!(say(|f| f.altered = &altered), (Verdict::Error, words.to_owned()));
        }
        // the protocol
        for (verdict, words) in
            [(Verdict::Failed, "no"), (Verdict::Error, "broke"), (Verdict::NotRun, "skipped")]
        {
            let answer = Ok((verdict, Some(words.to_owned())));
            assert_eq!(say(|f| f.answered = Some(&answer)), (verdict, words.to_owned()));
        }
        let bad = Err("the nonce is another one".to_owned());
        assert_eq!(say(|f| f.answered = Some(&bad)).0, Verdict::Error);
    }

    proptest! {
        /// Whatever else is said, a pass needs every single condition.
        #[test]
        fn a_pass_needs_all_of_it(
            code in 0i32..3, passed in 0u64..4, failed in 0u64..2, skipped in 0u64..3, survivors in 0u32..2,
            altered in 0usize..2, broken: bool, min in 0u64..4, answer in 0u8..5,
        ) {
            let result = if broken { Err("broken".to_owned()) } else { Ok(Some(counted(passed, failed, skipped))) };
            let altered = vec![(path(), Alteration::Added); altered];
            let end = ProgramEnd::Exited(code);
            let answers = [Verdict::Passed, Verdict::Failed, Verdict::NotRun, Verdict::Error];
            let answered: Result<Said, String> = match answers.get(usize::from(answer)) {
                Some(verdict) => Ok((*verdict, None)),
                None => Err("bad".to_owned()),
            };
            let facts = AttemptFacts { end: &end, timeout: Duration::from_secs(1), stopped: None, survivors, altered: &altered, counted: &result, answered: Some(&answered), min_checks: Some(min), blame: None, mends: false };
            let all = code == 0 && failed == 0 && survivors == 0 && altered.is_empty() && !broken && passed >= min && answer == 0;
            prop_assert_eq!(conclude(&facts).0 == Verdict::Passed, all);
        }
    }
}
