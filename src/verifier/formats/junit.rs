//! JUnit XML, as dozens of tools write it: `<testcase>` elements in suites that may nest, with or without a root around them.
//!
//! The cases are counted; the suites' attributes are not. Only one thing is taken from them: a suite that claims
//! failures or errors where no case shows any is refused, because something failed outside of the cases. Entities are
//! never expanded, so a document cannot grow while it is read.

use super::Counted;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// How deep elements may nest.
const DEEPEST: usize = 64;

/// The cases of a document, or why it cannot be read, in words.
pub fn read(bytes: &[u8]) -> Result<Counted, String> {
    let mut reader = Reader::from_reader(bytes);
    let mut document = Document::default();
    loop {
        let at = reader.buffer_position();
        match reader.read_event() {
            Err(error) => return Err(format!("it is not XML: {error}, at byte {at}")),
            Ok(Event::Start(element)) => document.open(&element)?,
            Ok(Event::Empty(element)) => {
                document.open(&element)?;
                document.close()?;
            }
            Ok(Event::End(_)) => document.close()?,
            Ok(Event::Text(text)) if document.path.is_empty() && !text.trim_ascii().is_empty() => {
                return Err(format!("it is not XML: there is text outside of the root element, at byte {at}"));
            }
            Ok(Event::Eof) => return document.finish(),
            Ok(_) => {}
        }
    }
}

/// What an element is for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Suites,
    Suite,
    Case,
    Failed,
    Skipped,
    Flaky,
    Other,
}

fn element(name: &[u8]) -> Element {
    match name {
        b"testsuites" => Element::Suites,
        b"testsuite" => Element::Suite,
        b"testcase" => Element::Case,
        // A rerun that failed stands beside the failure; alone it is one.
        b"failure" | b"error" | b"rerunFailure" | b"rerunError" => Element::Failed,
        b"skipped" => Element::Skipped,
        b"flakyFailure" | b"flakyError" => Element::Flaky,
        _ => Element::Other,
    }
}

/// A suite that is open: how many failures it claims, and how many were counted before it.
struct Open {
    claimed: u64,
    before: u64,
}

#[derive(Default)]
struct Case {
    name: String,
    failed: bool,
    skipped: bool,
    flaky: bool,
}

#[derive(Default)]
struct Document {
    path: Vec<Element>,
    suites: Vec<Open>,
    case: Option<Case>,
    counted: Counted,
    rooted: bool,
}

impl Document {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let kind = element(tag.local_name().as_ref());
        let parent = self.path.last().copied();
        if parent.is_none() {
            if self.rooted {
                return Err("it has two root elements".to_owned());
            }
            if !matches!(kind, Element::Suites | Element::Suite) {
                let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
                return Err(format!("its root element is {name:?}, not `testsuites` or `testsuite`"));
            }
            self.rooted = true;
        }
        if self.path.len() >= DEEPEST {
            return Err(format!("its elements nest more than {DEEPEST} deep"));
        }
        match kind {
            Element::Suites | Element::Suite => {
                let claimed = claim(tag, "failures")?.saturating_add(claim(tag, "errors")?);
                self.suites.push(Open { claimed, before: self.counted.checks.failed });
            }
            Element::Case if self.case.is_some() => return Err("a test case lies within another one".to_owned()),
            Element::Case => self.case = Some(Case { name: case_name(tag)?, ..Case::default() }),
            Element::Failed | Element::Skipped | Element::Flaky if parent == Some(Element::Case) => {
                if let Some(case) = &mut self.case {
                    case.failed |= kind == Element::Failed;
                    case.skipped |= kind == Element::Skipped;
                    case.flaky |= kind == Element::Flaky;
                }
            }
            // A suite can fail as a whole, outside of any case.
            Element::Failed if matches!(parent, Some(Element::Suite | Element::Suites)) => {
                self.counted.fail("outside of the cases");
            }
            _ => {}
        }
        self.path.push(kind);
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        match self.path.pop() {
            Some(Element::Case) => {
                if let Some(case) = self.case.take() {
                    self.count(&case);
                }
            }
            Some(Element::Suites | Element::Suite) => {
                let Some(open) = self.suites.pop() else { return Ok(()) };
                if open.claimed > 0 && self.counted.checks.failed == open.before {
                    return Err(format!("a suite claims {} failures and errors, but none of its cases has any", open.claimed));
                }
            }
            Some(_) => {}
            None => return Err("it is not XML: an element ends that never began".to_owned()),
        }
        Ok(())
    }

    fn count(&mut self, case: &Case) {
        if case.failed {
            self.counted.fail(&case.name);
        } else if case.skipped {
            self.counted.checks.skipped += 1;
        } else {
            self.counted.pass();
            self.counted.checks.flaky += u64::from(case.flaky);
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

/// The value of an attribute as written.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| format!("it is not XML: {error}"))?;
        if attribute.key.as_ref() == name.as_bytes() {
            return Ok(Some(String::from_utf8_lossy(&attribute.value).into_owned()));
        }
    }
    Ok(None)
}

fn claim(tag: &BytesStart<'_>, name: &str) -> Result<u64, String> {
    Ok(attribute(tag, name)?.and_then(|text| text.trim().parse().ok()).unwrap_or(0))
}

fn case_name(tag: &BytesStart<'_>) -> Result<String, String> {
    let name = attribute(tag, "name")?.unwrap_or_default();
    Ok(match attribute(tag, "classname")?.filter(|class| !class.is_empty()) {
        Some(class) => format!("{class}::{name}"),
        None => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::verdict::Checks;
    use proptest::prelude::*;

    fn checks(text: &str) -> Checks {
        read(text.as_bytes()).expect(text).checks
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
        assert_eq!(read(text.as_bytes()).expect("reads").failed, ["b", "d", "f"]);
        assert_eq!(checks("<testsuite><testcase/></testsuite>").ran, 1, "a bare suite is a root");
        assert_eq!(checks("<testsuites/>"), Checks::default());
        assert_eq!(checks("<testsuite errors='1'><error/></testsuite>").failed, 1);
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
            "<report/>",
            "<testsuite><testcase><testcase/></testcase></testsuite>",
            "<testsuite><testcase name=a/></testsuite>",
            "<testsuite failures='1'><testcase/></testsuite>",
            "</testsuite>",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let deep = format!("{}{}", "<testsuite>".repeat(100), "</testsuite>".repeat(100));
        assert!(read(deep.as_bytes()).is_err());
    }

    #[test]
    fn entities_are_not_expanded() {
        let mut bomb = "<!DOCTYPE x [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
        for n in 1..30 {
            bomb.push_str(&format!("<!ENTITY a{n} \"{}\">", format!("&a{};", n - 1).repeat(10)));
        }
        bomb.push_str("]><testsuite><testcase name=\"&a29;\"><failure>&a29;</failure></testcase></testsuite>");
        assert_eq!(read(bomb.as_bytes()).expect("reads").failed, ["&a29;"]);
    }

    proptest! {
        #[test]
        fn a_cut_document_is_refused(cases in proptest::collection::vec(0u8..4, 1..20), cut in 0.0f64..1.0) {
            let bodies = ["<testcase name='p'/>", "<testcase name='f'><failure/></testcase>", "<testcase name='s'><skipped/></testcase>", "<testcase name='k'><flakyError/></testcase>"];
            let text: String = cases.iter().map(|c| bodies[usize::from(*c)]).collect();
            let text = format!("<testsuites><testsuite name='x'>{text}</testsuite></testsuites>");
            let of = |n: u8| cases.iter().filter(|c| **c == n).count() as u64;
            let found = checks(&text);
            prop_assert_eq!(found, Checks { ran: of(0) + of(1) + of(3), passed: of(0) + of(3), failed: of(1), skipped: of(2), flaky: of(3) });
            let end = (cut * text.len() as f64) as usize;
            prop_assert!(read(&text.as_bytes()[..end]).is_err());
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = super::super::libtest::read(&bytes);
        }
    }
}
