//! JUnit XML, as dozens of tools write it: `<testcase>` elements in suites that may nest, with or without a
//! root around them.
//!
//! The cases are counted; the suites' attributes are not. They are only held against the cases: a claim that
//! those do not bear out, an element or a status that is not understood, and nothing that failed beside it,
//! make the whole document unreadable, since something failed or was left out that is not seen. A document
//! that declares entities is refused as well, so that none can grow while it is read.

mod vocabulary;

use super::runners::{claimed_failure, failed_how, is_error_in_body};
use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::cases::{CaseOutcome, CountedCase};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;
use vocabulary::{Element, SuspectCase};

/// How deep elements may nest.
const DEEPEST: usize = 64;
/// How many bytes of one failure's text are kept while it is read.
const LONGEST_TEXT: usize = 64 << 10;

/// The cases of a document, or why it cannot be read, in words.
pub fn count_cases(bytes: &[u8]) -> Result<Counted, String> {
    refuse_size(bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let mut document = Document::default();
    loop {
        let at = reader.buffer_position();
        match reader.read_event() {
            Err(error) => return Err(format!("it is not XML: {error}, at byte {at}")),
            Ok(Event::Eof) => return document.finish(),
            Ok(Event::Decl(declaration)) => encoding(&declaration, text)?,
            Ok(event) => document.event(&event).map_err(|why| format!("{why}, at byte {at}"))?,
        }
    }
}

/// Refuses a document that says that its bytes are not what they were read as.
fn encoding(declaration: &BytesDecl<'_>, text: &str) -> Result<(), String> {
    let Some(label) = declaration.encoding() else { return Ok(()) };
    let label = label.map_err(|error| format!("it is not XML: {error}"))?.to_ascii_lowercase();
    let ascii = ["us-ascii", "ascii", "latin1"].contains(&label.as_str())
        || ["iso-8859-", "windows-125"].iter().any(|family| label.starts_with(family));
    match label.as_str() {
        "utf-8" | "utf8" => Ok(()),
        _ if ascii && text.is_ascii() => Ok(()),
        _ => Err(format!("its encoding is {label}, where UTF-8 is read")),
    }
}

/// What a suite claims of its cases.
#[derive(Debug, Clone, Default)]
struct ClaimedCounts {
    tests: Option<u64>,
    failures: u64,
    skipped: u64,
}

impl ClaimedCounts {
    fn of(attributes: &ElementAttributes) -> Result<Self, String> {
        let [tests, failures, errors, skipped, disabled] =
            ["tests", "failures", "errors", "skipped", "disabled"].map(|name| attributes.number(name));
        let failures = failures?.unwrap_or(0).saturating_add(errors?.unwrap_or(0));
        let skipped = skipped?.unwrap_or(0).max(disabled?.unwrap_or(0));
        Ok(Self { tests: tests?, failures, skipped })
    }
}

/// What was seen of a document so far.
#[derive(Debug, Clone, Copy, Default)]
struct SeenCounts {
    /// Elements `testcase`, whether they are cases or not.
    cases: u64,
    /// Elements that say that something failed: of a case, or of a suite as a whole.
    failures: u64,
    skipped: u64,
}

/// A suite that is open.
struct OpenSuite {
    name: String,
    claims: ClaimedCounts,
    before: SeenCounts,
    nests: bool,
    file: Option<String>,
}

#[derive(Default)]
struct Case {
    name: String,
    class: Option<String>,
    place: CasePlace,
    failed: Option<CaseOutcome>,
    /// By an element `error`.
    errored: bool,
    /// An element of its own says that it failed.
    marked: bool,
    skipped: bool,
    /// It is allowed to fail.
    todo: bool,
    flaky: bool,
    warned: bool,
    message: Option<String>,
    text: String,
}

#[derive(Default)]
struct Document {
    path: Vec<Element>,
    suites: Vec<OpenSuite>,
    case: Option<Case>,
    seen: SeenCounts,
    counted: Counted,
    rooted: bool,
    /// The first thing that was not understood, or was not borne out.
    problem: Option<String>,
}

impl Document {
    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(element) => self.open(element),
            Event::Empty(element) => {
                self.open(element)?;
                self.close()
            }
            Event::End(_) => self.close(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(name) => self.text(&resolved(name)?),
            Event::DocType(declared) if declared.xml10_content().contains("<!ENTITY") => {
                Err("it declares entities".to_owned())
            }
            Event::Comment(comment) => {
                // node says in comments what its root element does not.
                if let Some(claim) = claimed_failure(&comment.xml10_content()) {
                    self.note_problem(claim);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn note_problem(&mut self, problem: impl Into<String>) {
        self.problem.get_or_insert_with(|| problem.into());
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let name = tag.local_name();
        let name = name.as_ref();
        let attributes = ElementAttributes::of(tag)?;
        let parent = self.path.last().copied();
        if parent.is_none() && self.rooted {
            return Err("it has two root elements".to_owned());
        }
        if self.path.len() >= DEEPEST {
            return Err(format!("its elements nest more than {DEEPEST} deep"));
        }
        let element = Element::named(name).filter(|element| element.may_stand_in(parent));
        let Some(kind) = element else {
            return Err(match parent {
                None => format!("its root element is {name:?}, not `testsuites` or `testsuite`"),
                Some(_) => format!("the element {name:?} is not understood where it stands"),
            });
        };
        self.rooted = true;
        match kind {
            Element::Suites | Element::Suite => self.open_suite(&attributes)?,
            Element::Case => self.case = Some(self.begin(&attributes)),
            _ => self.mark(kind, &attributes),
        }
        self.path.push(kind);
        Ok(())
    }

    fn open_suite(&mut self, attributes: &ElementAttributes) -> Result<(), String> {
        let outer = self.suites.last_mut();
        let outer_file = outer.and_then(|outer| {
            outer.nests = true;
            outer.file.clone()
        });
        self.suites.push(OpenSuite {
            name: attributes.get("name").unwrap_or_default(),
            claims: ClaimedCounts::of(attributes)?,
            before: self.seen,
            nests: false,
            file: attributes.get("file").or(outer_file),
        });
        Ok(())
    }

    fn begin(&mut self, attributes: &ElementAttributes) -> Case {
        let mut case = Case {
            name: attributes.get("name").unwrap_or_default(),
            class: attributes.get("classname").filter(|class| !class.is_empty()),
            place: CasePlace {
                path: attributes
                    .get("file")
                    .or_else(|| self.suites.last().and_then(|open| open.file.clone())),
                line: attributes.get("line").and_then(|line| line.parse().ok()).filter(|line| *line > 0),
                column: None,
            },
            ..Case::default()
        };
        for (key, value) in &attributes.0 {
            match vocabulary::outcome_in_attribute(key, value) {
                Ok(None) => {}
                Ok(Some(CaseOutcome::Skipped)) => case.skipped = true,
                Ok(Some(outcome)) => case.fail(outcome),
                Err(problem) => self.note_problem(problem),
            }
        }
        case
    }

    /// Takes an element that says how a case ended, or that a suite failed as a whole.
    fn mark(&mut self, kind: Element, attributes: &ElementAttributes) {
        let message = || attributes.get("message").filter(|message| !message.trim().is_empty());
        let Some(case) = &mut self.case else {
            if let Element::Failed(_) = kind {
                self.seen.failures += 1;
                let message = message().unwrap_or_default();
                self.counted.fail_outside("outside of the cases", CasePlace::default(), &message);
            }
            return;
        };
        match kind {
            Element::Failed(how) | Element::FailedAgain(how) => {
                if let Element::Failed(_) = kind {
                    case.marked = true;
                    self.seen.failures += 1;
                }
                case.fail(failed_how(how, attributes.get("type").as_deref(), &message().unwrap_or_default()));
                case.errored |= how == CaseOutcome::FailedByError;
                case.message = case.message.take().or_else(message);
            }
            Element::Skipped => {
                case.skipped = true;
                case.todo |= attributes.get("type").is_some_and(|kind| kind == "todo");
                case.message = case.message.take().or_else(message);
            }
            Element::Flaky => case.flaky = true,
            Element::Warning => case.warned = true,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        let blank = text.trim_ascii().is_empty();
        match (self.path.as_slice(), &mut self.case) {
            ([], _) if !blank => Err("it is not XML: there is text outside of the root element".to_owned()),
            ([.., element], _) if !blank && !element.holds_text() => {
                self.note_problem("there is text between its elements");
                Ok(())
            }
            ([.., Element::Case, Element::Failed(_)], Some(case)) if case.text.len() < LONGEST_TEXT => {
                case.text.push_str(text);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.path.pop() {
            Some(Element::Case) => {
                if let Some(case) = self.case.take() {
                    self.count(case);
                }
            }
            Some(kind @ (Element::Suites | Element::Suite)) => {
                let open = self.suites.pop();
                if let Some(problem) = open.and_then(|open| self.not_borne_out(&open, kind)) {
                    self.note_problem(problem);
                }
            }
            Some(_) => {}
            None => return Err("it is not XML: an element ends that never began".to_owned()),
        }
        Ok(())
    }

    /// A claim of a suite that its cases do not bear out.
    fn not_borne_out(&self, suite: &OpenSuite, kind: Element) -> Option<String> {
        let (claims, seen) = (&suite.claims, self.seen);
        let failures = seen.failures - suite.before.failures;
        if claims.failures > failures {
            return Some(format!(
                "a suite claims {} failures and errors and holds {failures}",
                claims.failures
            ));
        }
        let skipped = seen.skipped - suite.before.skipped;
        let leaves_out = "mocha's leaves out what is pending unless `includePending` is set";
        if claims.skipped > skipped {
            let claimed = claims.skipped;
            return Some(format!("a suite claims {claimed} skipped cases and holds {skipped}; {leaves_out}"));
        }
        let cases = seen.cases - suite.before.cases;
        let claimed = claims.tests?;
        // pytest counts each subtest that passed and writes no case for it.
        if claimed > cases && suite.name != "pytest" {
            return Some(format!("a suite claims {claimed} cases and holds {cases}; {leaves_out}"));
        }
        // Who nests suites counts some of them as one case.
        (claimed < cases && kind == Element::Suite && !suite.nests).then(|| {
            format!("a suite claims {claimed} cases and holds {cases}; jest's writes a `todo` like a pass")
        })
    }

    fn count(&mut self, mut case: Case) {
        self.seen.cases += 1;
        self.seen.skipped += u64::from(case.skipped);
        self.seen.failures += u64::from(case.failed.is_some() && !case.marked);
        let outcome = match (case.failed, case.skipped) {
            (Some(CaseOutcome::FailedByError), _) if !case.todo && case.erred_in_body() => {
                CaseOutcome::FailedByAssertion
            }
            (Some(how), _) if !case.todo => how,
            (_, true) => CaseOutcome::Skipped,
            _ => CaseOutcome::Passed,
        };
        let failed = !matches!(outcome, CaseOutcome::Passed | CaseOutcome::Skipped);
        let file = case.place.path.clone();
        if failed && file.is_none() {
            case.place = placed(&case.text).unwrap_or_default();
        }
        let no_case = vocabulary::is_no_case(&SuspectCase {
            name: &case.name,
            class: case.class.as_deref().unwrap_or_default(),
            failed,
            warned: case.warned,
            message: case.message.as_deref().unwrap_or_default(),
        });
        let message = case.message.as_deref().unwrap_or(&case.text);
        match (no_case, failed) {
            (true, true) => self.counted.fail_outside(&case.name, case.place, message),
            (true, false) => self.counted.checks.skipped += u64::from(case.skipped),
            (false, _) => {
                self.counted.checks.flaky += u64::from(case.flaky && outcome == CaseOutcome::Passed);
                let counted = CountedCase { name: case.name, class: case.class, file, outcome };
                match failed {
                    true => self.counted.count_failure(counted, case.place, message),
                    false => self.counted.count_case(counted),
                }
            }
        }
    }

    fn finish(self) -> Result<Counted, String> {
        match (self.rooted, self.path.len()) {
            (false, _) => Err("it has no root element".to_owned()),
            (_, 0) => self.counted.unless_failed(self.problem),
            (_, open) => Err(format!("it is cut: {open} elements are not closed")),
        }
    }
}

impl Case {
    /// True where an `error` is an exception in its own body.
    fn erred_in_body(&self) -> bool {
        self.errored && is_error_in_body(self.class.as_deref().unwrap_or_default(), &self.name, &self.text)
    }

    /// Who failed by an assertion did so, whatever else went wrong afterwards.
    fn fail(&mut self, how: CaseOutcome) {
        if self.failed != Some(CaseOutcome::FailedByAssertion) {
            self.failed = Some(how);
        }
    }
}

/// A reference in text: the five that XML has and characters by number; nothing else can have been declared.
fn resolved(name: &BytesRef<'_>) -> Result<String, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("it is not XML: {error}");
    if let Some(character) = name.resolve_char_ref().map_err(|error| wrong(&error))? {
        return Ok(character.to_string());
    }
    let name = name.xml10_content();
    quick_xml::escape::resolve_xml_entity(&name)
        .map(str::to_owned)
        .ok_or_else(|| wrong(&format!("the entity {name:?} is not declared")))
}

/// Where a Python traceback ends: `tests/test_a.py:3: AssertionError`
fn placed(text: &str) -> Option<CasePlace> {
    text.lines().rev().find_map(|line| {
        let (path, rest) = line.split_once(':')?;
        let (number, _) = rest.split_once(':')?;
        let fits = path.contains('.') && !path.contains(char::is_whitespace);
        let line = number.parse().ok().filter(|line| fits && *line > 0)?;
        Some(CasePlace { path: Some(path.to_owned()), line: Some(line), column: None })
    })
}

/// The attributes of an element, every one checked.
struct ElementAttributes(Vec<(String, String)>);

impl ElementAttributes {
    fn of(tag: &BytesStart<'_>) -> Result<Self, String> {
        let mut found = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| format!("it is not XML: {error}"))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| format!("it is not XML: {error}"))?;
            found.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Self(found))
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    /// A count, where there is one.
    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.get(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| format!("the claim {name}={text:?} is no count"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::proof::verdict::Checks;
    use proptest::prelude::*;

    fn checks(text: &str) -> Checks {
        count_cases(text.as_bytes()).expect(text).checks
    }

    fn failed(text: &str) -> Vec<String> {
        count_cases(text.as_bytes())
            .expect(text)
            .findings
            .into_iter()
            .filter_map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn cases_are_counted_and_summaries_are_not() {
        let text = r#"<?xml version="1.0"?><testsuites tests="2" failures="0"><testsuite name="s" tests="1">
            <testcase name="a"/><testcase name="b"><failure message="x">&lt;skipped/&gt;</failure></testcase>
            <testsuite><testcase name="c"><skipped/></testcase><testcase name="d"><error/></testcase></testsuite>
            <testcase classname="k" name="e"><flakyFailure/></testcase>
            <testcase name="f"><failure/><rerunFailure/></testcase>
            <testcase name="g"><system-out><![CDATA[<failure/>]]></system-out></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(checks(text), Checks { ran: 6, passed: 3, failed: 3, skipped: 1, flaky: 1 });
        assert_eq!(failed(text), ["b", "d", "f"]);
        assert_eq!(checks("<testsuite><testcase/></testsuite>").ran, 1, "a bare suite is a root");
        assert_eq!(checks("<testsuites/>"), Checks::default());
        let outside = count_cases(b"<testsuite errors='1'><error/></testsuite>").expect("reads");
        assert_eq!((outside.checks.failed, outside.outside), (0, 1));
        let spaced = "<j:testsuite xmlns:j='urn:j'><j:testcase><j:failure/></j:testcase></j:testsuite>";
        assert_eq!(checks(spaced).failed, 1, "a prefix hides nothing");
        let rerun = "<testsuite><testcase name='a'><rerunFailure/></testcase></testsuite>";
        assert_eq!(checks(rerun).failed, 1, "reruns that failed without a pass");
    }

    #[test]
    fn what_a_case_says_of_itself_in_attributes_counts() {
        for word in ["status='notrun'", "status='disabled'", "result='suppressed'", "status='Skipped'"] {
            assert_eq!(checks(&format!("<testsuite><testcase {word}/></testsuite>")).skipped, 1, "{word}");
            let broken = format!("<testsuite><testcase {word}><failure/></testcase></testsuite>");
            assert_eq!(checks(&broken).failed, 1, "{word}");
        }
        assert_eq!(checks("<testsuite><testcase status='run' result='completed'/></testsuite>").passed, 1);
        assert_eq!(checks("<testsuite><testcase status='failed'/></testsuite>").failed, 1);
    }

    #[test]
    fn only_what_failed_in_the_body_of_a_case_is_a_failure_of_its_own() {
        let outcome = |case: &str, inner: &str| {
            let text = format!("<testsuite><testcase {case}>{inner}</testcase></testsuite>");
            let counted = count_cases(text.as_bytes()).expect(&text);
            counted.cases[0].outcome == CaseOutcome::FailedByAssertion
        };
        let java = "classname='app.AddTest' name='adds(int)[1]'";
        let trace = |method: &str| {
            format!(
                "<error type='java.lang.NullPointerException'>x\n\tat app.Add.add(Add.java:3)\n\tat app.AddTest.{method}(AddTest.java:7)</error>"
            )
        };
        assert!(outcome(java, &trace("adds")));
        assert!(!outcome(java, &trace("setUp")), "before its body");
        assert!(!outcome(
            java,
            &trace("adds").replace("error ", "error message='x' ").replace("adds(", "addsMore(")
        ));
        let python = "classname='t.TestAdd' name='test_adds'";
        let trace = |function: &str| {
            format!("<error>Traceback:\n  File \"t.py\", line 7, in {function}\n    f()\nValueError</error>")
        };
        assert!(outcome(python, &trace("test_adds")) && !outcome(python, &trace("setUp")));
        assert!(
            !outcome(python, "<error message='failed on setup with x'>def test_adds(): ...</error>"),
            "pytest"
        );
        assert!(outcome(python, "<failure message='ValueError: no'/>"));
        for unloaded in ["ModuleNotFoundError: No module named 'x'", "ImportError: cannot import name 'x'"] {
            assert!(!outcome(python, &format!("<failure message=\"{unloaded}\"/>")), "{unloaded}");
        }
        assert!(!outcome("name='a'", "<failure type='java.lang.NoClassDefFoundError'/>"));
    }

    #[test]
    fn each_case_has_its_name_its_place_and_how_it_ended() {
        let text = "<testsuite file='t.py'><testcase classname='k' name='a'><failure/><error/></testcase><testcase name='b' file='b.py'><error/></testcase>\
            <testcase name='c'><skipped/></testcase><testcase name='d'/></testsuite>";
        let cases = count_cases(text.as_bytes()).expect("reads").cases;
        let seen: Vec<_> =
            cases.iter().map(|case| (case.full_title(), case.file.as_deref(), case.outcome)).collect();
        let expected = [
            ("k::a", "t.py", CaseOutcome::FailedByAssertion),
            ("b", "b.py", CaseOutcome::FailedByError),
            ("c", "t.py", CaseOutcome::Skipped),
            ("d", "t.py", CaseOutcome::Passed),
        ];
        assert_eq!(seen, expected.map(|(title, file, outcome)| (title.to_owned(), Some(file), outcome)));
    }

    #[test]
    fn a_failure_says_what_and_where() {
        let text = "<testsuite file='t/s.py'><testcase name='a' file='t/a.py' line='7'><failure message='1 &lt; 0&#10;no'>x</failure></testcase>\
            <testcase name='b'><error>some <![CDATA[<b>]]> &amp; &#x41;</error></testcase></testsuite>";
        let findings = count_cases(text.as_bytes()).expect("reads").findings;
        assert_eq!((findings[0].path.as_deref(), findings[0].line), (Some("t/a.py"), Some(7)));
        assert_eq!(findings[0].message, "1 < 0\nno");
        assert_eq!(
            (findings[1].path.as_deref(), findings[1].message.as_str()),
            (Some("t/s.py"), "some <b> & A")
        );
        let text = "<testsuite><testcase name='a'><failure message='assert 1 == 2'>def test_a():\n&gt;  assert 1 == 2\nE  assert 1 == 2\n\ntests/test_a.py:3: AssertionError</failure></testcase></testsuite>";
        let finding = count_cases(text.as_bytes()).expect("reads").findings.remove(0);
        assert_eq!((finding.path.as_deref(), finding.line), (Some("tests/test_a.py"), Some(3)));
    }

    #[test]
    fn claims_are_only_believed_against_the_document() {
        let claim = |text: &str| count_cases(text.as_bytes()).map(|counted| counted.checks.failed);
        assert_eq!(
            claim("<testsuite failures='1' errors='1'><testcase><failure/><error/></testcase></testsuite>"),
            Ok(1)
        );
        assert_eq!(claim("<testsuite failures='0'><testcase><failure/></testcase></testsuite>"), Ok(1));
        for text in [
            "<testsuites failures='1'><testsuite/></testsuites>",
            "<testsuites><testsuite errors='1'><testcase/></testsuite></testsuites>",
            "<testsuite tests='2'><testcase/></testsuite>",
            "<testsuite tests='1'><testcase/><testcase/></testsuite>",
            "<testsuites tests='2'><testsuite><testcase/></testsuite></testsuites>",
            "<testsuite skipped='1'><testcase/></testsuite>",
            "<testsuite disabled='1'><testcase/></testsuite>",
            "<testsuite failures='many'><testcase/></testsuite>",
            "<testsuite><testcase/><!-- fail 1 --></testsuite>",
        ] {
            assert!(claim(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for inner in [
            "<testcase status='strange'/>",
            "<testcase result='strange'/>",
            "<testcase><rerun/></testcase>",
            "<testcase><system-out><failure/></system-out></testcase>",
            "<testcase><properties><failure/></properties></testcase>",
            "<testcase><failure><failure/></failure></testcase>",
            "<testcase><testsuite/></testcase>",
            "<testcase>failed</testcase>",
            "<skipped/><testcase/>",
            "<results/><testcase/>",
        ] {
            let text = format!("<testsuite>{inner}<testcase/></testsuite>");
            assert!(count_cases(text.as_bytes()).is_err(), "{text}");
        }
        let failing = "<testsuite><testcase status='strange'/><testcase><failure/></testcase></testsuite>";
        assert_eq!(checks(failing).failed, 1, "a failure counts whatever else is wrong");
        let attribute = "<testsuite><testcase name='a' failure='no'/></testsuite>";
        assert_eq!(checks(attribute).failed, 1);
    }

    #[test]
    fn damaged_documents_are_refused() {
        for text in [
            "",
            "   ",
            "ok",
            "<testsuite>",
            "<testsuite><testcase></testsuite>",
            "<testsuite/><testsuite/>",
            "<testsuite/>trailing",
            "<testsuite/>&amp;",
            "<report/>",
            "<testsuite><testcase><testcase/></testcase></testsuite>",
            "<testsuite><testcase name=a/></testsuite>",
            "<testsuite><testcase name='a' name='b'/></testsuite>",
            "<testsuite><testcase name='&x;'/></testsuite>",
            "<testsuite><testcase>&x;</testcase></testsuite>",
            "<testsuite><testcase>a & b</testcase></testsuite>",
            "<testsuite failures='1'><testcase/></testsuite>",
            "</testsuite>",
            "<?xml version='1.0' encoding='utf-16'?><testsuite/>",
            "<?xml version='1.0' encoding='iso-8859-1'?><testsuite name='é'/>",
        ] {
            assert!(count_cases(text.as_bytes()).is_err(), "{text}");
        }
        assert!(count_cases(b"<testsuite name='\xe9'/>").is_err());
        let deep = format!("{}{}", "<testsuite>".repeat(100), "</testsuite>".repeat(100));
        assert!(count_cases(deep.as_bytes()).is_err());
        let harmless = "\u{feff}<?xml version='1.0' encoding='ISO-8859-1'?><!DOCTYPE testsuite><testsuite/>";
        assert!(count_cases(harmless.trim_start_matches('\u{feff}').as_bytes()).is_ok());
        assert!(count_cases("\u{feff}<?xml version='1.0' encoding='UTF-8'?><testsuite/>".as_bytes()).is_ok());
    }

    #[test]
    fn entities_are_not_declared() {
        let mut bomb = "<!DOCTYPE x [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
        for n in 1..30 {
            bomb.push_str(&format!("<!ENTITY a{n} \"{}\">", format!("&a{};", n - 1).repeat(10)));
        }
        bomb.push_str(
            "]><testsuite><testcase name=\"&a29;\"><failure>&a29;</failure></testcase></testsuite>",
        );
        assert!(count_cases(bomb.as_bytes()).is_err_and(|why| why.contains("entities")));
    }

    proptest! {
        #[test]
        fn cases_are_counted_and_a_cut_document_is_refused(cases in proptest::collection::vec(0u8..4, 1..20), cut in 0.0f64..1.0) {
            let bodies = ["<testcase name='p'/>", "<testcase name='f'><failure/></testcase>", "<testcase name='s'><skipped/></testcase>", "<testcase name='k'><flakyError/></testcase>"];
            let text: String = cases.iter().map(|c| bodies[usize::from(*c)]).collect();
            let text = format!("<testsuites><testsuite name='x'>{text}</testsuite></testsuites>");
            let of = |n: u8| cases.iter().filter(|c| **c == n).count() as u64;
            let found = checks(&text);
            prop_assert_eq!(found, Checks { ran: of(0) + of(1) + of(3), passed: of(0) + of(3), failed: of(1), skipped: of(2), flaky: of(3) });
            let end = (cut * text.len() as f64) as usize;
            prop_assert!(count_cases(&text.as_bytes()[..end]).is_err());
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = count_cases(&bytes);
            let _ = super::super::libtest::count_cases(&bytes);
        }
    }
}
