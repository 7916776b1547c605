//! TAP, the Test Anything Protocol, versions 12 to 14: a line a case, a plan that says how many there are,
//! and subtests that stand further in.
//!
//! Cases are the points that hold no subtest; a point that closes one only says once more what its cases
//! said. A plan has to be there at each depth and to be borne out, since nothing else tells a run that ended
//! early from one that is whole. Numbers of points are not held against each other: node counts anew in each
//! file. A failure counts whatever else is wrong.

mod line;

use super::runners::{claimed_failure, failed_how, is_hook_name, is_script_name};
use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::cases::{CaseOutcome, CountedCase};
use line::{Directive, INDENT, TapLine, TestPoint, is_failing_point, read_line};

/// How deep subtests may nest.
const DEEPEST: usize = 64;
/// How many lines of what follows a point are kept for its message.
const MOST_LINES: usize = 20;

/// The cases of a document, or why it cannot be read, in words.
pub fn count_cases(bytes: &[u8]) -> Result<Counted, String> {
    refuse_size(bytes)?;
    let text = String::from_utf8_lossy(bytes);
    let mut document = TapDocument { levels: vec![TapLevel::default()], ..TapDocument::default() };
    for (at, line) in text.lines().enumerate() {
        document.number = at + 1;
        document.take_line(line);
    }
    document.finish()
}

/// What stands at one depth.
#[derive(Default)]
struct TapLevel {
    /// The subtest that it is.
    name: Option<String>,
    /// How many points the plan says, and how many had been seen where it stood.
    plan: Option<(u64, u64)>,
    points: u64,
    highest: u64,
    /// How many failures there were when it began.
    failures_before: u64,
    /// A subtest in braces that is open, by the point that opened it.
    brace: Option<SeenPoint>,
    /// The subtest that has ended and waits for its point.
    ended: Option<EndedSubtest>,
}

/// A subtest that has ended.
struct EndedSubtest {
    empty: bool,
    failed: bool,
}

/// A point, until it is known what belongs to it.
struct SeenPoint {
    point: TestPoint,
    depth: usize,
    /// It was announced by its own name.
    announced: bool,
    subtest: Option<EndedSubtest>,
    /// The lines that follow it.
    lines: Vec<String>,
}

#[derive(Default)]
struct TapDocument {
    levels: Vec<TapLevel>,
    /// The name that the last remark `Subtest: NAME` at each depth gave to what follows it.
    announced: Vec<Option<String>>,
    /// The last point.
    point: Option<SeenPoint>,
    /// The indentation of the block of YAML that is open.
    block: Option<usize>,
    counted: Counted,
    number: usize,
    /// The first thing that was not understood, or was not borne out.
    problem: Option<String>,
}

impl TapDocument {
    fn note_problem(&mut self, problem: &str) {
        let number = self.number;
        self.problem.get_or_insert_with(|| format!("{problem}, at line {number}"));
    }

    fn count_failures(&self) -> u64 {
        self.counted.checks.failed + self.counted.outside
    }

    fn take_line(&mut self, line: &str) {
        if self.is_in_block(line) {
            return;
        }
        let (depth, said) = read_line(line);
        match said {
            TapLine::Remark(remark) => self.take_remark(depth, remark, line),
            TapLine::Other if is_failing_point(line) => {
                self.note_problem("a failing point stands neither at the margin nor in a subtest");
            }
            TapLine::Other => self.keep_line(line),
            TapLine::Brace => self.close_brace(depth),
            _ if depth > DEEPEST => self.note_problem("its subtests nest too deep"),
            said => {
                self.come_to(depth);
                self.take_structure(depth, said);
            }
        }
    }

    /// True where the line belongs to the block of YAML below the last point, its first and last line too.
    fn is_in_block(&mut self, line: &str) -> bool {
        let Some(point) = &mut self.point else { return false };
        let indent = point.depth * INDENT + 2;
        let within = line.get(..indent).filter(|spaces| spaces.trim_start_matches(' ').is_empty());
        let rest = within.map(|_| line[indent..].trim_end());
        match (self.block, rest) {
            (None, Some("---")) if point.lines.is_empty() => self.block = Some(indent),
            (None, _) => return false,
            (Some(_), Some("...")) => self.block = None,
            (Some(_), Some(rest)) => point.keep(rest),
            (Some(_), None) if line.trim().is_empty() => point.keep(""),
            (Some(_), None) => {
                self.block = None;
                self.note_problem("a block of YAML does not end before it");
                return false;
            }
        }
        true
    }

    fn take_remark(&mut self, depth: usize, remark: &str, line: &str) {
        if let Some(claim) = claimed_failure(remark) {
            self.note_problem(&claim);
        }
        match remark.strip_prefix("Subtest: ") {
            Some(name) if depth <= DEEPEST => {
                self.announced.resize(self.announced.len().max(depth + 1), None);
                self.announced[depth] = Some(name.to_owned());
            }
            _ => self.keep_line(line),
        }
    }

    fn take_announced(&mut self, depth: usize) -> Option<String> {
        self.announced.get_mut(depth)?.take()
    }

    fn keep_line(&mut self, line: &str) {
        if let Some(point) = &mut self.point {
            point.keep(line);
        }
    }

    /// Ends what stands further in than `depth`, or begins the subtest that stands there.
    fn come_to(&mut self, depth: usize) {
        let opens =
            self.point.as_ref().is_some_and(|open| open.point.name.ends_with('{') && open.depth + 1 == depth);
        let point = self.point.take();
        let mut brace = None;
        match point {
            Some(point) if opens => brace = Some(point),
            Some(point) => self.conclude(point),
            None => {}
        }
        while self.levels.len() <= depth {
            let at = self.levels.len();
            let own = brace.as_ref().map(|brace: &SeenPoint| brace.name_before_brace());
            // Old versions of perl's indent the name of a subtest like what stands in it.
            let name = own.or_else(|| self.take_announced(at - 1)).or_else(|| self.take_announced(at));
            self.levels[at - 1].brace = brace.take();
            let failures_before = self.count_failures();
            self.levels.push(TapLevel { name, failures_before, ..TapLevel::default() });
        }
        self.end_subtests(depth);
    }

    fn end_subtests(&mut self, depth: usize) {
        self.announced.truncate(depth + 1);
        while self.levels.len() > depth + 1 {
            let Some(level) = self.levels.pop() else { return };
            let failed = self.count_failures() > level.failures_before;
            let empty = level.points == 0;
            self.check_level(&level);
            if let Some(outer) = self.levels.last_mut() {
                outer.ended = Some(EndedSubtest { empty, failed });
            }
        }
    }

    fn close_brace(&mut self, depth: usize) {
        if self.levels.get(depth).is_none_or(|level| level.brace.is_none()) {
            return;
        }
        self.come_to(depth);
        let level = &mut self.levels[depth];
        if let Some(mut point) = level.brace.take() {
            point.subtest = level.ended.take();
            point.point.name = point.name_before_brace();
            self.conclude(point);
        }
    }

    fn take_structure(&mut self, depth: usize, said: TapLine<'_>) {
        let level = &mut self.levels[depth];
        match said {
            TapLine::Version(version) if !["12", "13", "14"].contains(&version) => {
                self.note_problem(&format!("its version is {version:?}, where 12 to 14 are read"));
            }
            TapLine::Version(_) if level.points > 0 || level.plan.is_some() => {
                self.note_problem("a second document begins");
            }
            TapLine::Plan(_) if level.plan.is_some() => self.note_problem("there is a second plan"),
            TapLine::Plan(planned) => level.plan = Some((planned, level.points)),
            TapLine::BailOut => self.note_problem("the run gave up (`Bail out!`)"),
            TapLine::Point(point) => {
                level.points += 1;
                level.highest = level.highest.max(point.number.unwrap_or(0));
                let (subtest, lines) = (level.ended.take(), Vec::new());
                let announced = self.take_announced(depth).is_some_and(|name| name == point.name);
                self.point = Some(SeenPoint { point, depth, announced, subtest, lines });
            }
            _ => {}
        }
    }

    fn conclude(&mut self, seen: SeenPoint) {
        let SeenPoint { point, depth, announced, subtest, .. } = &seen;
        let names: Vec<&str> =
            self.levels[1..=*depth].iter().filter_map(|level| level.name.as_deref()).collect();
        let class = (!names.is_empty()).then(|| names.join(" > "));
        let details = PointDetails::read(&seen.lines);
        let failed = failed_how(CaseOutcome::FailedByAssertion, details.kind.as_deref(), &details.message);
        let outcome = match (point.ok, point.directive) {
            (_, Some(Directive::Todo)) | (true, Some(Directive::Skip)) => CaseOutcome::Skipped,
            (true, None) => CaseOutcome::Passed,
            (false, _) => failed,
        };
        let case = CountedCase { class, ..CountedCase::with_name(&point.name, outcome) };
        let ended_well = outcome == CaseOutcome::Skipped || outcome == CaseOutcome::Passed;
        let no_case = match subtest {
            Some(EndedSubtest { empty: true, .. }) => outcome != CaseOutcome::Skipped,
            Some(EndedSubtest { failed: true, .. }) => return,
            Some(_) => true,
            None => *announced && is_script_name(&point.name) || is_hook_name(&point.name),
        };
        match (no_case, ended_well) {
            (true, true) => {}
            (true, false) => self.counted.fail_outside(&case.full_title(), details.place, &details.message),
            (false, true) => self.counted.count_case(case),
            (false, false) => self.counted.count_failure(case, details.place, &details.message),
        }
    }

    /// Notes what a depth that has ended lacks.
    fn check_level(&mut self, level: &TapLevel) {
        let &TapLevel { points, highest, .. } = level;
        match level.plan {
            None => self.note_problem("there is no plan: the run ended too early, or it is cut"),
            Some((planned, _)) if planned != points => {
                self.note_problem(&format!("the plan says {planned} and there are {points}"));
            }
            Some((planned, before)) if before != 0 && before != planned => {
                self.note_problem("the plan stands in the midst of what it plans");
            }
            Some((planned, _)) if highest > planned => {
                self.note_problem(&format!("the plan says {planned} and one has the number {highest}"));
            }
            Some(_) if level.ended.is_some() || level.brace.is_some() => {
                self.note_problem("a subtest has no result");
            }
            Some(_) => {}
        }
    }

    fn finish(mut self) -> Result<Counted, String> {
        if self.block.is_some() {
            self.note_problem("a block of YAML does not end");
        }
        self.come_to(0);
        if let Some(level) = self.levels.pop() {
            self.check_level(&level);
        }
        self.counted.unless_failed(self.problem)
    }
}

impl SeenPoint {
    fn name_before_brace(&self) -> String {
        self.point.name.trim_end_matches('{').trim().to_owned()
    }

    fn keep(&mut self, line: &str) {
        // Messages stand at the beginning, and what places them within the first lines after it.
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.to_owned());
        }
    }
}

/// What the lines after a point say of a failure.
#[derive(Debug, Default)]
struct PointDetails {
    message: String,
    place: CasePlace,
    /// node's word for the kind of failure.
    kind: Option<String>,
}

impl PointDetails {
    fn read(lines: &[String]) -> Self {
        let value = |key: &str| {
            let at = lines.iter().position(|line| line.trim_start().starts_with(key))?;
            let first = lines[at].trim_start()[key.len()..].trim();
            if !first.starts_with(['|', '>']) {
                return Some(first.trim_matches('\'').to_owned());
            }
            let indent = |line: &str| line.len() - line.trim_start().len();
            let within = |line: &&String| line.trim().is_empty() || indent(line) > indent(&lines[at]);
            let block: Vec<&str> =
                lines[at + 1..].iter().take_while(within).map(|line| line.trim()).collect();
            Some(block.join("\n").trim().to_owned())
        };
        let message = value("error: ").or_else(|| value("message: "));
        let place = value("location: ").or_else(|| value("at: "));
        Self {
            message: message.unwrap_or_else(|| lines.join("\n")),
            place: place.and_then(|text| read_place(&text)).unwrap_or_default(),
            kind: value("failureType: "),
        }
    }
}

/// `/tree/a.test.js:3:1`, `f (/tree/a.test.js:3:1)`
fn read_place(text: &str) -> Option<CasePlace> {
    let text = text.rsplit_once('(').map_or(text, |(_, text)| text).trim_end_matches(')');
    let mut parts = text.strip_prefix("file://").unwrap_or(text).rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(CasePlace { path: Some(parts.next()?.to_owned()), line: Some(line), column: Some(column) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_ok(text: &str) -> Counted {
        count_cases(text.as_bytes()).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn a_plan_is_there_and_borne_out() {
        for (text, why) in [
            ("", "there is no plan"),
            ("hello\n", "there is no plan"),
            ("ok 1\n", "there is no plan"),
            ("1..2\nok 1\n", "the plan says 2 and there are 1"),
            ("1..1\nok 1\nok 2\n", "the plan says 1 and there are 2"),
            ("1..1\nok 1\nok\n", "the plan says 1 and there are 2"),
            ("1..2\nok 1\nok 3\n", "has the number 3"),
            ("ok 1\n1..2\nok 2\n", "in the midst"),
            ("1..1\nok 1\n1..1\n", "a second plan"),
            ("1..1\nok 1\nTAP version 14\n", "a second document"),
            ("TAP version 15\n1..1\nok 1\n", "its version"),
            ("1..1\nok 1\nBail out!\n", "gave up"),
            ("1..1\n    ok 1\n    Bail out! x\n    1..1\nok 1\n", "gave up"),
            ("1..1\n    ok 1\nok 1 - a\n", "there is no plan"),
            ("1..1\n    ok 1\n    1..2\nok 1 - a\n", "the plan says 2"),
            ("1..1\nok 1\n    ok 1\n    1..1\n", "a subtest has no result"),
            ("        ok 1\n1..0\n", "there is no plan"),
            ("ok 1 - a {\n    ok 1\n    1..1\n1..1\n", "a subtest has no result"),
            ("ok 1\n  ---\n  a: b\n1..1\n", "a block of YAML"),
            ("1..1\nok 1\n  ---\n  a: b\n", "a block of YAML"),
            ("1..1\nok 1\n# fail  1\n", "it says"),
            ("1..1\n  not ok 1 - inner\nok 1\n", "neither at the margin"),
            ("1..1\n\tnot ok 1 - inner\nok 1\n", "neither at the margin"),
        ] {
            let found = count_cases(text.as_bytes()).expect_err(text);
            assert!(found.contains(why), "{text}: {found}");
            let failing = format!("not ok 1\n{text}");
            assert_eq!(read_ok(&failing).checks.failed, 1, "a failure counts whatever else is wrong: {text}");
        }
        assert_eq!(read_ok("1..0 # SKIP why\n").checks.ran, 0);
    }

    #[test]
    fn a_subtest_is_its_cases_and_not_its_result() {
        let text = "1..4\n# Subtest: a\n    # Subtest: b\n        ok 1 - c\n        1..1\n    ok 1 - b\n    not ok 2 - d\n    1..2\n\
            not ok 1 - a\n    ok 1 - e\n    1..1\nnot ok 2 - own\n    1..0 # SKIP\nok 3 # skip none\n    1..0\nok 4 - empty\n";
        let counted = read_ok(text);
        let titles: Vec<_> = counted.cases.iter().map(|case| (case.full_title(), case.outcome)).collect();
        let expected = [
            ("a > b::c", CaseOutcome::Passed),
            ("a::d", CaseOutcome::FailedByAssertion),
            ("e", CaseOutcome::Passed),
            ("", CaseOutcome::Skipped),
        ];
        assert_eq!(titles, expected.map(|(title, outcome)| (title.to_owned(), outcome)));
        assert_eq!(counted.outside, 1, "what failed though its cases did not");
    }

    #[test]
    fn a_file_without_tests_is_no_case_and_a_checked_file_is_one() {
        let nodes = "1..2\n# Subtest: a.js\nok 1 - a.js\n# Subtest: b.js\nnot ok 2 - b.js\n";
        assert_eq!((read_ok(nodes).checks.ran, read_ok(nodes).outside), (0, 1));
        assert_eq!(read_ok("1..1\nok 1 - a.js\n").checks.passed, 1, "as linters write it");
    }

    #[test]
    fn a_failure_says_what_and_where() {
        let text = "1..3\nnot ok 1 - a\n  ---\n  location: 'file:///t/a.mjs:3:1'\n  failureType: 'cancelledByParent'\n  error: |-\n    one\n    two\n  code: 'x'\n  ...\n\
            not ok 2 b\n  1 == 2\nnot ok 3 - c\n  ---\n  at: f (/t/c.js:7:2)\n  message: \"no\"\n  ...\n";
        let counted = read_ok(text);
        assert_eq!(counted.cases[0].outcome, CaseOutcome::FailedByError, "not in its own body");
        let told = |n: usize| {
            (
                counted.findings[n].message.as_str(),
                counted.findings[n].path.as_deref(),
                counted.findings[n].line,
            )
        };
        assert_eq!(told(0), ("one\ntwo", Some("/t/a.mjs"), Some(3)));
        assert_eq!(told(1), ("  1 == 2", None, None));
        assert_eq!(told(2), ("\"no\"", Some("/t/c.js"), Some(7)));
    }

    proptest! {
        #[test]
        fn cases_are_counted_and_a_cut_document_is_no_pass(cases in proptest::collection::vec(0u8..3, 1..20), depth in 0usize..3, cut in 0.0f64..1.0) {
            let points = ["ok - a", "ok # SKIP", "not ok # TODO"];
            let mut lines: Vec<String> = cases.iter().map(|case| points[usize::from(*case)].to_owned()).collect();
            lines.push(format!("1..{}", cases.len()));
            for _ in 0..depth {
                lines = lines.iter().map(|line| format!("    {line}")).chain(["ok".to_owned(), "1..1".to_owned()]).collect();
            }
            let text = lines.join("\n");
            let passed = cases.iter().filter(|case| **case == 0).count() as u64;
            let found = read_ok(&text).checks;
            prop_assert_eq!((found.passed, found.failed, found.skipped), (passed, 0, cases.len() as u64 - passed));
            let end = (cut * text.len() as f64) as usize;
            prop_assert!(!count_cases(&text.as_bytes()[..end]).is_ok_and(|c| !c.holds_failure()));
        }

        #[test]
        fn any_lines_give_an_answer(lines in proptest::collection::vec("(    ){0,3}(ok|not ok 1|1..2|ok 1 - a \\{|\\}|  ---|  \\.\\.\\.|# Subtest: a|x)", 0..30)) {
            let _ = count_cases(lines.join("\n").as_bytes());
        }
    }
}
