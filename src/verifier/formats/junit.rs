//! JUnit XML, as dozens of tools write it: `<testcase>` elements in suites that may nest, with or without a
//! root around them.
//!
//! The cases are counted; the suites' attributes are not. Only one thing is taken from them: a suite that
//! claims more failures and errors than it holds is refused, because something failed that is not in the
//! document. A document that declares entities is refused as well, so that none can grow while it is read.

use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::cases::{CaseOutcome, CountedCase};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

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

/// What an element is for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Suites,
    Suite,
    Case,
    Failed(CaseOutcome),
    Skipped,
    Flaky,
    Other,
}

fn element(name: &str) -> Element {
    match name {
        "testsuites" => Element::Suites,
        "testsuite" => Element::Suite,
        "testcase" => Element::Case,
        // A rerun that failed stands beside the failure; alone it is one.
        "failure" | "rerunFailure" => Element::Failed(CaseOutcome::FailedByAssertion),
        "error" | "rerunError" => Element::Failed(CaseOutcome::FailedByError),
        "skipped" => Element::Skipped,
        "flakyFailure" | "flakyError" => Element::Flaky,
        _ => Element::Other,
    }
}

/// A suite that is open: how many failures it claims, and how many were seen before it.
struct OpenSuite {
    claimed: u64,
    before: u64,
    file: Option<String>,
}

#[derive(Default)]
struct Case {
    name: String,
    class: Option<String>,
    place: CasePlace,
    failed: Option<CaseOutcome>,
    skipped: bool,
    flaky: bool,
    message: Option<String>,
    text: String,
}

#[derive(Default)]
struct Document {
    path: Vec<Element>,
    suites: Vec<OpenSuite>,
    case: Option<Case>,
    /// Elements that say that something failed: of a case, or of a suite as a whole.
    marks: u64,
    counted: Counted,
    rooted: bool,
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
            _ => Ok(()),
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let kind = element(tag.local_name().as_ref());
        let attributes = ElementAttributes::of(tag)?;
        let parent = self.path.last().copied();
        if parent.is_none() {
            if self.rooted {
                return Err("it has two root elements".to_owned());
            }
            if !matches!(kind, Element::Suites | Element::Suite) {
                let name = tag.local_name();
                return Err(format!(
                    "its root element is {:?}, not `testsuites` or `testsuite`",
                    name.as_ref()
                ));
            }
            self.rooted = true;
        }
        if self.path.len() >= DEEPEST {
            return Err(format!("its elements nest more than {DEEPEST} deep"));
        }
        match kind {
            Element::Suites | Element::Suite => self.suites.push(OpenSuite {
                claimed: attributes.number("failures").saturating_add(attributes.number("errors")),
                before: self.marks,
                file: attributes
                    .get("file")
                    .or_else(|| self.suites.last().and_then(|open| open.file.clone())),
            }),
            Element::Case if self.case.is_some() => {
                return Err("a test case lies within another one".to_owned());
            }
            Element::Case => self.case = Some(self.begin(&attributes)),
            Element::Failed(_) | Element::Skipped | Element::Flaky => self.mark(kind, parent, &attributes)?,
            Element::Other => {}
        }
        self.path.push(kind);
        Ok(())
    }

    fn begin(&self, attributes: &ElementAttributes) -> Case {
        let said = |words: &[&str]| {
            ["status", "result"]
                .iter()
                .filter_map(|key| attributes.get(key))
                .any(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
        };
        Case {
            name: attributes.get("name").unwrap_or_default(),
            class: attributes.get("classname").filter(|class| !class.is_empty()),
            place: CasePlace {
                path: attributes
                    .get("file")
                    .or_else(|| self.suites.last().and_then(|open| open.file.clone())),
                line: attributes.get("line").and_then(|line| line.parse().ok()).filter(|line| *line > 0),
                column: None,
            },
            failed: match (said(&["failed", "failure", "fail"]), said(&["error"])) {
                (true, _) => Some(CaseOutcome::FailedByAssertion),
                (false, true) => Some(CaseOutcome::FailedByError),
                (false, false) => None,
            },
            skipped: said(&["notrun", "disabled", "skipped", "suppressed", "ignored"]),
            ..Case::default()
        }
    }

    fn mark(
        &mut self,
        kind: Element,
        parent: Option<Element>,
        attributes: &ElementAttributes,
    ) -> Result<(), String> {
        let failed = match kind {
            Element::Failed(how) => Some(how),
            _ => None,
        };
        self.marks += u64::from(failed.is_some());
        match (&mut self.case, parent, failed) {
            (Some(case), Some(Element::Case), _) => {
                // Who failed by an assertion did so, whatever else went wrong afterwards.
                if case.failed != Some(CaseOutcome::FailedByAssertion) {
                    case.failed = failed.or(case.failed);
                }
                case.skipped |= kind == Element::Skipped;
                case.flaky |= kind == Element::Flaky;
                if failed.is_some() && case.message.is_none() {
                    case.message = attributes.get("message").filter(|message| !message.trim().is_empty());
                }
            }
            // A suite can fail as a whole, outside of any case.
            (None, Some(Element::Suite | Element::Suites), Some(_)) => {
                let message = attributes.get("message").unwrap_or_default();
                let case = CountedCase::named("outside of the cases", CaseOutcome::FailedByError);
                self.counted.count_failure(case, CasePlace::default(), &message);
            }
            (_, _, Some(_)) => {
                return Err("a failure stands in an element that is neither a case nor a suite".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match (self.path.as_slice(), &mut self.case) {
            ([], _) if !text.trim_ascii().is_empty() => {
                Err("it is not XML: there is text outside of the root element".to_owned())
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
            Some(Element::Suites | Element::Suite) => {
                let Some(open) = self.suites.pop() else { return Ok(()) };
                let held = self.marks - open.before;
                if open.claimed > held {
                    return Err(format!(
                        "a suite claims {} failures and errors and holds {held}",
                        open.claimed
                    ));
                }
            }
            Some(_) => {}
            None => return Err("it is not XML: an element ends that never began".to_owned()),
        }
        Ok(())
    }

    fn count(&mut self, mut case: Case) {
        let outcome = match (case.failed, case.skipped) {
            (Some(how), _) => how,
            (None, true) => CaseOutcome::Skipped,
            (None, false) => CaseOutcome::Passed,
        };
        let file = case.place.path.clone();
        let counted = CountedCase { name: case.name, class: case.class, file, outcome };
        if case.failed.is_some() {
            if case.place.path.is_none() {
                case.place = placed(&case.text).unwrap_or_default();
            }
            self.counted.count_failure(counted, case.place, case.message.as_deref().unwrap_or(&case.text));
        } else {
            self.counted.checks.flaky += u64::from(case.flaky && !case.skipped);
            self.counted.count_case(counted);
        }
    }

    fn finish(self) -> Result<Counted, String> {
        match (self.rooted, self.path.len()) {
            (false, _) => Err("it has no root element".to_owned()),
            (_, 0) => Ok(self.counted),
            (_, open) => Err(format!("it is cut: {open} elements are not closed")),
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

    /// A number, 0 where there is none.
    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
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
        let text = r#"<?xml version="1.0"?><testsuites tests="99" failures="0"><testsuite name="s" tests="1">
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
        assert_eq!(checks("<testsuite errors='1'><error/></testsuite>").failed, 1);
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
    fn each_case_has_its_name_its_place_and_how_it_ended() {
        let text = "<testsuite file='t.py'><testcase classname='k' name='a'><failure/><error/></testcase><testcase name='b' file='b.py'><error/></testcase>\
            <testcase name='c'><skipped/></testcase><testcase name='d'/></testsuite>";
        let cases = count_cases(text.as_bytes()).expect("reads").cases;
        let seen: Vec<_> =
            cases.iter().map(|case| (case.title(), case.file.as_deref(), case.outcome)).collect();
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
        let more = claim(
            "<testsuites><testsuite failures='2'><testcase><failure/></testcase></testsuite></testsuites>",
        );
        assert!(more.is_err_and(|why| why.contains("claims 2 failures and errors and holds 1")));
        assert!(claim("<testsuites failures='1'><testsuite/></testsuites>").is_err());
        for element in ["system-out", "failure", "properties"] {
            let hidden = format!(
                "<testsuite failures='1'><testcase><{element}><failure/></{element}></testcase></testsuite>"
            );
            assert!(claim(&hidden).is_err(), "{element}");
        }
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
