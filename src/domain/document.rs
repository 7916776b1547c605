//! Reading documents that people write (contract, configuration): every value is of the type that the
//! field has, every key is known, no key comes twice, and all problems are reported at once.
//!
//! A [`Node`] keeps what `serde_json::Value` loses: the order of the keys and those that came twice.
//! [`Problems`] collects what is wrong; a field reader gives `None` where it had to complain, so that reading goes
//! on and the first problem of the document leads the failure.

use super::scope::Scope;
use crate::error::{Code, Failure, Result};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::collections::HashSet;
use std::fmt;

/// Largest document in bytes (1 MiB). A contract or a configuration is written by hand.
pub const LARGEST: usize = 1 << 20;

/// A value of a document with its keys in order, doubles included.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Another number.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The kind of value and, where it is short, the value itself, for a message.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Integer(value) => format!("the number {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Text(value) => format!("the string {}", clipped(value)),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// A value in quotes, cut where it is long.
#[must_use]
pub fn clipped(value: &str) -> String {
    if value.chars().count() <= 80 {
        return format!("{value:?}");
    }
    let start: String = value.chars().take(80).collect();
    format!("{start:?}…")
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Node::Object(object))
    }
}

/// Reads JSON. `what` names the document in messages. Errors: too large, not UTF-8, a byte order mark, cut short
/// or damaged (with line and column), something after the end.
pub fn read_json(what: &str, code: Code, bytes: &[u8]) -> Result<Node> {
    let text = checked_text(what, code, bytes)?;
    if text.trim().is_empty() {
        return Err(Failure::new(code, format!("{what} is empty")));
    }
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let full = error.to_string();
        let reason = full.split(" at line ").next().unwrap_or(&full);
        let cut = if error.is_eof() { "it ends too early: " } else { "" };
        Failure::new(code, format!("{what} is not JSON: {cut}{reason}, at line {line} column {column}"))
            .detail("line", line)
            .detail("column", column)
    })
}

/// Reads TOML; like [`read_json`].
pub fn read_toml(what: &str, code: Code, bytes: &[u8]) -> Result<Node> {
    let text = checked_text(what, code, bytes)?;
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        let reason = error.message();
        Failure::new(code, format!("{what} is not TOML: {reason}, at line {line} column {column}"))
            .detail("line", line)
            .detail("column", column)
    })
}

fn checked_text<'a>(what: &str, code: Code, bytes: &'a [u8]) -> Result<&'a str> {
    if bytes.len() > LARGEST {
        let message = format!("{what} has {} bytes; at most {LARGEST} are read", bytes.len());
        return Err(Failure::new(code, message).expected(LARGEST, bytes.len()).detail("limit", LARGEST));
    }
    let mark = [b"\xef\xbb\xbf".as_slice(), b"\xff\xfe", b"\xfe\xff"].into_iter().any(|mark| bytes.starts_with(mark));
    if mark {
        return Err(Failure::new(
            code,
            format!("{what} begins with a byte order mark; save it as UTF-8 without one"),
        ));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
        Failure::new(code, format!("{what} is not UTF-8: byte {at}, in line {line}"))
            .detail("byte", at)
            .detail("line", line)
    })
}

/// Of the known names the one that was most likely meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).take(64).collect()
    };
    let name = plain(name);
    known.iter().copied().min_by_key(|candidate| distance(&name, &plain(candidate)))
}

/// Edit distance.
fn distance(a: &[char], b: &[char]) -> usize {
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
#[must_use]
pub fn below(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

/// What is wrong with one document, in its order.
#[derive(Debug)]
pub struct Problems {
    what: &'static str,
    code: Code,
    invalid: Vec<Failure>,
    later: Vec<Failure>,
}

impl Problems {
    /// No problems yet of the document that `what` names; all will have `code`.
    #[must_use]
    pub fn new(what: &'static str, code: Code) -> Self {
        Self { what, code, invalid: Vec::new(), later: Vec::new() }
    }

    /// The code that the problems have.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The first problem with all others; wishes that this version does not fulfil come after all faults.
    pub fn finish(self) -> Result<()> {
        let all = self.invalid.into_iter().chain(self.later).collect();
        Failure::first_of(all).map_or(Ok(()), Err)
    }

    /// `field` is at fault: `why` goes on from the field's name.
    pub fn fault(&mut self, field: &str, why: &str, expected: impl serde::Serialize, actual: impl serde::Serialize) {
        let message = format!("{}: `{field}` {why}", self.what);
        self.invalid.push(Failure::new(self.code, message).subject(field).expected(expected, actual));
    }

    /// `field` is right, but this version does not do what it asks for.
    pub fn later(&mut self, field: &str, wish: &str) {
        let message = format!("{}: `{field}`: {wish} is not supported by this version", self.what);
        self.later.push(Failure::new(Code::NotSupported, message).subject(field));
    }

    /// `field` has a value of the wrong type.
    pub fn mistyped(&mut self, field: &str, expected: &str, node: &Node) {
        if field.is_empty() {
            let message = format!("{} must be {expected}, but is {}", self.what, node.describe());
            self.invalid.push(Failure::new(self.code, message).expected(expected, node.describe()));
            return;
        }
        self.fault(field, &format!("must be {expected}, but is {}", node.describe()), expected, node.describe());
    }

    /// `field` is not there although it must be.
    pub fn missing(&mut self, field: &str, expected: &str) {
        self.fault(field, &format!("is missing; it must be {expected}"), expected, json!(null));
    }

    /// Reports `key` where the object in `field` does not have it.
    pub fn require(&mut self, field: &str, node: &Node, key: &str, expected: &str) {
        if matches!(node, Node::Object(_)) && node.get(key).is_none() {
            self.missing(&below(field, key), expected);
        }
    }

    /// A name that is none of the known ones.
    pub fn unknown(&mut self, field: &str, name: &str, known: &[&str]) {
        let meant = nearest(name, known).unwrap_or_default();
        let message = format!("{}: `{field}` is unknown; did you mean `{}`?", self.what, match field.rsplit_once('.') {
            Some((parent, last)) if last == name => below(parent, meant),
            _ => meant.to_owned(),
        });
        self.invalid.push(
            Failure::new(self.code, message)
                .subject(field)
                .expected(meant, name)
                .detail("nearest", meant)
                .detail("known", known),
        );
    }

    /// A value that is none of the known words.
    pub fn unknown_value(&mut self, field: &str, value: &str, known: &[&str]) {
        let meant = nearest(value, known).unwrap_or_default();
        let message =
            format!("{}: `{field}` is {}, which is unknown; did you mean {meant:?}?", self.what, clipped(value));
        self.invalid.push(
            Failure::new(self.code, message)
                .subject(field)
                .expected(meant, value)
                .detail("nearest", meant)
                .detail("known", known),
        );
    }

    /// Goes through the entries of an object in their order, as (key, dotted name, value); each known key once,
    /// the rest is reported.
    pub fn object(
        &mut self,
        field: &str,
        node: &Node,
        known: &[&str],
        mut each: impl FnMut(&mut Self, &str, &str, &Node),
    ) {
        self.entries(field, node, |problems, key, name, value| {
            if known.contains(&key) {
                each(problems, key, name, value);
            } else {
                problems.unknown(name, key, known);
            }
        });
    }

    /// Goes through the entries of an object whose keys are free; a key that comes twice is reported.
    pub fn entries(&mut self, field: &str, node: &Node, mut each: impl FnMut(&mut Self, &str, &str, &Node)) {
        let Node::Object(entries) = node else {
            self.mistyped(field, "an object", node);
            return;
        };
        let mut seen = HashSet::new();
        for (key, value) in entries {
            let name = below(field, key);
            if seen.insert(key.as_str()) {
                each(self, key, &name, value);
            } else {
                self.fault(&name, "is there twice", "each field once", value.describe());
            }
        }
    }

    /// The items of a list with their names, as `field[0]`.
    pub fn list<'n>(&mut self, field: &str, node: &'n Node, of: &str) -> Option<Vec<(String, &'n Node)>> {
        let Node::List(items) = node else {
            self.mistyped(field, &format!("a list of {of}"), node);
            return None;
        };
        Some(items.iter().enumerate().map(|(at, item)| (format!("{field}[{at}]"), item)).collect())
    }

    /// A string that says something.
    pub fn text(&mut self, field: &str, node: &Node) -> Option<String> {
        match node {
            Node::Text(text) if text.trim().is_empty() => {
                self.fault(field, "is empty", "a string that is not empty", text);
                None
            }
            Node::Text(text) => Some(text.clone()),
            _ => {
                self.mistyped(field, "a string", node);
                None
            }
        }
    }

    /// A list of strings that each say something.
    pub fn texts(&mut self, field: &str, node: &Node) -> Option<Vec<String>> {
        let items = self.list(field, node, "strings")?;
        let count = items.len();
        let texts: Vec<String> = items.iter().filter_map(|(name, item)| self.text(name, item)).collect();
        (texts.len() == count).then_some(texts)
    }

    /// A boolean.
    pub fn boolean(&mut self, field: &str, node: &Node) -> Option<bool> {
        match node {
            Node::Bool(value) => Some(*value),
            _ => {
                self.mistyped(field, "true or false", node);
                None
            }
        }
    }

    /// A whole number that is not negative.
    pub fn count(&mut self, field: &str, node: &Node) -> Option<u64> {
        let value = match node {
            Node::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        if value.is_none() {
            self.mistyped(field, "a whole number from 0 on", node);
        }
        value
    }

    /// One of several words.
    pub fn choice<T: Copy>(&mut self, field: &str, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let Node::Text(text) = node else {
            self.mistyped(field, &format!("one of {}", words.join(", ")), node);
            return None;
        };
        let found = choices.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
        if found.is_none() {
            let why = format!("must be one of {}, but is {}", words.join(", "), clipped(text));
            self.fault(field, &why, words, text);
        }
        found
    }

    /// Paths and globs.
    pub fn scope(&mut self, field: &str, node: &Node) -> Option<Scope> {
        let items = self.list(field, node, "paths and globs")?;
        let mut patterns = Vec::new();
        for (name, item) in &items {
            match item {
                Node::Text(text) => patterns.push(text.clone()),
                _ => self.mistyped(name, "a string", item),
            }
        }
        if patterns.len() < items.len() {
            return None;
        }
        match Scope::check(field, self.code, patterns) {
            Ok(scope) => Some(scope),
            Err(failures) => {
                self.invalid.extend(failures);
                None
            }
        }
    }

    /// An id: a letter or digit, then up to 63 letters, digits, `.`, `_`, `-`.
    pub fn id(&mut self, field: &str, node: &Node) -> Option<String> {
        let text = self.text(field, node)?;
        if is_id(&text) {
            return Some(text);
        }
        let why = format!("must match {ID}, but is {}", clipped(&text));
        self.fault(field, &why, ID, text);
        None
    }

    /// Ids, none of them twice.
    pub fn ids(&mut self, field: &str, node: &Node) -> Option<Vec<String>> {
        let items = self.list(field, node, "ids")?;
        let mut ids: Vec<String> = Vec::new();
        for (name, item) in &items {
            if let Some(id) = self.id(name, item)
                && self.once(name, &id, &ids)
            {
                ids.push(id);
            }
        }
        Some(ids)
    }

    /// Reports `value` where it is there already; true where it is not.
    pub fn once(&mut self, field: &str, value: &str, before: &[String]) -> bool {
        let fresh = !before.iter().any(|other| other == value);
        if !fresh {
            self.fault(field, &format!("is {value:?}, which is there already"), "each value once", value);
        }
        fresh
    }
}

/// The grammar of ids, for messages.
pub const ID: &str = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}";

/// Whether a text is a task id, a requirement id or a verifier id.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.len() <= 64
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}
