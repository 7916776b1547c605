//! Reading documents that people write (contract, configuration): every value is of the type that the
//! field has, every key is known, no key comes twice, and all problems are reported at once.
//!
//! A [`Node`] keeps what `serde_json::Value` loses: the order of the keys and those that came twice.
//! [`Problems`] collects what is wrong; a field reader gives `None` where it had to complain, so that reading
//! goes on and the first problem of the document leads the failure.

mod node;
mod time;

pub use node::{Node, read_json, read_toml};
pub use time::read_duration;

use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use serde_json::json;
use std::collections::HashSet;

/// Most items of one list, and most problems that are listed: a document beyond that is no one's honest work,
/// and neither the time to check it nor the size of the answer may grow without bound.
const MOST_ITEMS: usize = 10_000;
const MOST_PROBLEMS: usize = 200;
/// Longest string in bytes that is quoted whole in the details of a failure.
const LONGEST_QUOTE: usize = 4096;

/// A value in quotes, cut where it is long.
pub fn quote_clipped(value: &str) -> String {
    if value.chars().count() <= 80 {
        return format!("{value:?}");
    }
    let start: String = value.chars().take(80).collect();
    format!("{start:?}…")
}

/// A name, cut where it is long.
fn clipped_name(name: &str) -> String {
    name.chars().take(200).collect()
}

/// Of the known names the one that was most likely meant.
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(64).collect()
    };
    let name = plain(name);
    known.iter().copied().min_by_key(|candidate| edit_distance(&name, &plain(candidate)))
}

fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The name of a field within another.
pub fn field_below(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// The faults of one document, in its order.
#[derive(Debug)]
pub struct Problems {
    what: &'static str,
    code: Code,
    invalid: Vec<Failure>,
    later: Vec<Failure>,
}

impl Problems {
    /// No problems yet of the document that `what` names; all will have `code`.
    pub fn new(what: &'static str, code: Code) -> Self {
        Self { what, code, invalid: Vec::new(), later: Vec::new() }
    }

    /// The first problem with all others; wishes that this version does not fulfil come after all faults.
    pub fn into_result(self) -> Result<()> {
        // Whoever wrote a document mends it in one go.
        let all = self.invalid.into_iter().chain(self.later);
        Failure::first_of_at_most(MOST_PROBLEMS, all).map_or(Ok(()), Err)
    }

    fn add_invalid(&mut self, failure: Failure) {
        if self.invalid.len() < MOST_PROBLEMS {
            self.invalid.push(failure);
        }
    }

    /// `field` is at fault: `why` goes on from the field's name.
    pub fn report_fault(
        &mut self,
        field: &str,
        why: &str,
        expected: impl serde::Serialize,
        actual: impl serde::Serialize,
    ) {
        let message = format!("{}: `{field}` {why}", self.what);
        let mut actual = serde_json::to_value(actual).unwrap_or_default();
        if actual.as_str().is_some_and(|text| text.len() > LONGEST_QUOTE) {
            actual = quote_clipped(actual.as_str().unwrap_or_default()).into();
        }
        self.add_invalid(Failure::new(self.code, message).subject(field).expected(expected, actual));
    }

    /// `field` is right, but this version does not do what it asks for.
    pub fn report_later(&mut self, field: &str, wish: &str) {
        let message = format!("{}: `{field}`: {wish} is not supported by this version", self.what);
        self.later.push(Failure::new(Code::NotSupported, message).subject(field));
    }

    /// `field` has a value of the wrong type.
    pub fn report_mistyped(&mut self, field: &str, expected: &str, node: &Node) {
        if field.is_empty() {
            let message = format!("{} must be {expected}, but is {}", self.what, node.describe_value());
            self.add_invalid(Failure::new(self.code, message).expected(expected, node.describe_value()));
            return;
        }
        self.report_fault(
            field,
            &format!("must be {expected}, but is {}", node.describe_value()),
            expected,
            node.describe_value(),
        );
    }

    /// `field` is not there although it must be.
    pub fn report_missing(&mut self, field: &str, expected: &str) {
        self.report_fault(field, &format!("is missing; it must be {expected}"), expected, json!(null));
    }

    /// Reports `key` where the object in `field` does not have it.
    pub fn require_key(&mut self, field: &str, node: &Node, key: &str, expected: &str) {
        if matches!(node, Node::Object(_)) && node.get_key(key).is_none() {
            self.report_missing(&field_below(field, key), expected);
        }
    }

    /// A name that is none of the known ones.
    pub fn report_unknown(&mut self, field: &str, name: &str, known: &[&str]) {
        let meant = nearest_name(name, known).unwrap_or_default();
        let shown = clipped_name(field);
        let message = format!(
            "{}: `{shown}` is unknown; did you mean `{}`?",
            self.what,
            match field.rsplit_once('.') {
                Some((parent, last)) if last == name => field_below(parent, meant),
                _ => meant.to_owned(),
            }
        );
        self.add_invalid(
            Failure::new(self.code, message)
                .subject(clipped_name(field))
                .expected(meant, clipped_name(name))
                .detail("nearest", meant)
                .detail("known", known),
        );
    }

    /// A value that is none of the known words.
    pub fn unknown_value(&mut self, field: &str, value: &str, known: &[&str]) {
        let meant = nearest_name(value, known).unwrap_or_default();
        let message = format!(
            "{}: `{field}` is {}, which is unknown; did you mean {meant:?}?",
            self.what,
            quote_clipped(value)
        );
        self.add_invalid(
            Failure::new(self.code, message)
                .subject(field)
                .expected(meant, clipped_name(value))
                .detail("nearest", meant)
                .detail("known", known),
        );
    }

    /// Goes through the entries of an object in their order, as (key, dotted name, value); each known key
    /// once, the rest is reported.
    pub fn read_object(
        &mut self,
        field: &str,
        node: &Node,
        known: &[&str],
        mut each: impl FnMut(&mut Self, &str, &str, &Node),
    ) {
        self.read_entries(field, node, |problems, key, name, value| {
            if known.contains(&key) {
                each(problems, key, name, value);
            } else {
                problems.report_unknown(name, key, known);
            }
        });
    }

    /// Goes through the entries of an object whose keys are free; a key that comes twice is reported.
    pub fn read_entries(
        &mut self,
        field: &str,
        node: &Node,
        mut each: impl FnMut(&mut Self, &str, &str, &Node),
    ) {
        let Node::Object(entries) = node else {
            self.report_mistyped(field, "an object", node);
            return;
        };
        let mut seen = HashSet::new();
        for (key, value) in entries {
            let name = field_below(field, key);
            if seen.insert(key.as_str()) {
                each(self, key, &name, value);
            } else {
                self.report_fault(&name, "is there twice", "each field once", value.describe_value());
            }
        }
    }

    /// The items of a list with their names, as `field[0]`.
    pub fn read_list<'n>(
        &mut self,
        field: &str,
        node: &'n Node,
        of: &str,
    ) -> Option<Vec<(String, &'n Node)>> {
        let Node::List(items) = node else {
            self.report_mistyped(field, &format!("a list of {of}"), node);
            return None;
        };
        if items.len() > MOST_ITEMS {
            self.report_fault(field, &format!("has more than {MOST_ITEMS} items"), MOST_ITEMS, items.len());
            return None;
        }
        Some(items.iter().enumerate().map(|(at, item)| (format!("{field}[{at}]"), item)).collect())
    }

    /// A string that says something.
    pub fn read_text(&mut self, field: &str, node: &Node) -> Option<String> {
        match node {
            Node::Text(text) if text.trim().is_empty() => {
                self.report_fault(field, "is empty", "a string that is not empty", text);
                None
            }
            Node::Text(text) => Some(text.clone()),
            _ => {
                self.report_mistyped(field, "a string", node);
                None
            }
        }
    }

    /// A list of strings that each say something.
    pub fn read_texts(&mut self, field: &str, node: &Node) -> Option<Vec<String>> {
        let items = self.read_list(field, node, "strings")?;
        let count = items.len();
        let texts: Vec<String> = items.iter().filter_map(|(name, item)| self.read_text(name, item)).collect();
        (texts.len() == count).then_some(texts)
    }

    pub fn read_boolean(&mut self, field: &str, node: &Node) -> Option<bool> {
        match node {
            Node::Bool(value) => Some(*value),
            _ => {
                self.report_mistyped(field, "true or false", node);
                None
            }
        }
    }

    /// A whole number that is not negative.
    pub fn read_count(&mut self, field: &str, node: &Node) -> Option<u64> {
        let value = match node {
            Node::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        if value.is_none() {
            self.report_mistyped(field, "a whole number from 0 on", node);
        }
        value
    }

    pub fn read_choice<T: Copy>(&mut self, field: &str, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let Node::Text(text) = node else {
            self.report_mistyped(field, &format!("one of {}", words.join(", ")), node);
            return None;
        };
        let found = choices.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
        if found.is_none() {
            let why = format!("must be one of {}, but is {}", words.join(", "), quote_clipped(text));
            self.report_fault(field, &why, words, text);
        }
        found
    }

    pub fn read_scope(&mut self, field: &str, node: &Node) -> Option<Scope> {
        let items = self.read_list(field, node, "paths and globs")?;
        let mut patterns = Vec::new();
        for (name, item) in &items {
            match item {
                Node::Text(text) => patterns.push(text.clone()),
                _ => self.report_mistyped(name, "a string", item),
            }
        }
        if patterns.len() < items.len() {
            return None;
        }
        match Scope::check_patterns(field, self.code, patterns) {
            Ok(scope) => Some(scope),
            Err(failures) => {
                failures.into_iter().for_each(|failure| self.add_invalid(failure));
                None
            }
        }
    }

    /// An id: a letter or digit, then up to 63 letters, digits, `.`, `_`, `-`.
    pub fn read_id(&mut self, field: &str, node: &Node) -> Option<String> {
        let text = self.read_text(field, node)?;
        if is_id(&text) {
            return Some(text);
        }
        let why = format!("must match {ID}, but is {}", quote_clipped(&text));
        self.report_fault(field, &why, ID, text);
        None
    }

    /// Ids, none of them twice.
    pub fn read_ids(&mut self, field: &str, node: &Node) -> Option<Vec<String>> {
        let items = self.read_list(field, node, "ids")?;
        let mut ids: Vec<String> = Vec::new();
        for (name, item) in &items {
            if let Some(id) = self.read_id(name, item)
                && self.require_once(name, &id, &ids)
            {
                ids.push(id);
            }
        }
        Some(ids)
    }

    /// Reports `value` where it is there already; true where it is not.
    pub fn require_once(&mut self, field: &str, value: &str, before: &[String]) -> bool {
        let fresh = !before.iter().any(|other| other == value);
        if !fresh {
            self.report_fault(
                field,
                &format!("is {value:?}, which is there already"),
                "each value once",
                value,
            );
        }
        fresh
    }
}

/// The grammar of ids, for messages.
pub const ID: &str = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}";

/// True for a text that may be the id of a task, a requirement or a verifier.
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.len() <= 64
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use crate::domain::value::document::*;

    const KNOWN: [&str; 4] = ["taskId", "goal", "writeScope", "readScope"];

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        for (name, meant) in
            [("task_id", "taskId"), ("TASKID", "taskId"), ("gaol", "goal"), ("write-scope", "writeScope")]
        {
            assert_eq!(nearest_name(name, &KNOWN), Some(meant));
        }
        assert_eq!(nearest_name("", &[]), None);
        assert!(nearest_name(&"x".repeat(1_000_000), &KNOWN).is_some());
    }

    #[test]
    fn ids_are_short_and_plain() {
        for id in ["a", "t1", "A.b_c-d", &"x".repeat(64)] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", ".a", "-a", "_a", "a/b", "a b", "é", "a\n", &"x".repeat(65)] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn toml_and_json_read_alike() {
        let json =
            read_json("it", Code::ContractInvalid, br#"{"a": {"b": [1, true, "x", 1.5]}}"#).expect("reads");
        let toml = read_toml("it", Code::ContractInvalid, b"[a]\nb = [1, true, \"x\", 1.5]").expect("reads");
        assert_eq!(json, toml);
        assert_eq!(
            json.get_key("a").and_then(|a| a.get_key("b")).map(Node::describe_value),
            Some("a list of 4".to_owned())
        );
        let date = read_toml("it", Code::ConfigInvalid, b"a = 2020-01-01").expect("reads");
        assert!(matches!(date.get_key("a"), Some(Node::Object(_))));
        let deep = format!("a = {}", "[".repeat(500_000));
        assert!(read_toml("it", Code::ConfigInvalid, deep.as_bytes()).is_err());
    }

    #[test]
    fn hostile_documents_give_bounded_answers() {
        let mut problems = Problems::new("it", Code::ContractInvalid);
        let many = Node::Object((0..100_000).map(|n| (format!("k{n}"), Node::Null)).collect());
        problems.read_object("", &many, &KNOWN, |_, _, _, _| {});
        let failure = problems.into_result().expect_err("refused");
        assert_eq!(failure.others().len(), MOST_PROBLEMS - 1);
        let mut problems = Problems::new("it", Code::ContractInvalid);
        let long = Node::List((0..20_000).map(|n| Node::Text(format!("i{n}"))).collect());
        assert_eq!(problems.read_ids("a", &long), None);
        problems.read_id("b", &Node::Text("?".repeat(1_000_000)));
        problems.read_object(
            "",
            &Node::Object(vec![("x".repeat(1_000_000), Node::Null)]),
            &KNOWN,
            |_, _, _, _| {},
        );
        let failure = problems.into_result().expect_err("refused");
        assert!(serde_json::to_string(&failure).expect("serializes").len() < 10_000);
    }
}
