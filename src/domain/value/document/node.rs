//! From bytes to a [`Node`], whatever the syntax: size, encoding and damage are looked at here, meaning is
//! not.

use crate::domain::value::document::quote_clipped;
use crate::error::{Code, Failure, Result};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Largest document in bytes (1 MiB). A contract or a configuration is written by hand.
pub const LARGEST: usize = 1 << 20;

/// A value of a document with its keys in order, doubles included.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key of an object.
    pub fn get_key(&self, key: &str) -> Option<&Node> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// A key that an object in it has twice, if there is one.
    pub fn doubled_key(&self) -> Option<&str> {
        match self {
            Self::List(items) => items.iter().find_map(Node::doubled_key),
            Self::Object(entries) => {
                let mut seen = std::collections::HashSet::new();
                let doubled = entries.iter().find(|(key, _)| !seen.insert(key.as_str()));
                doubled
                    .map(|(key, _)| key.as_str())
                    .or_else(|| entries.iter().find_map(|(_, value)| value.doubled_key()))
            }
            _ => None,
        }
    }

    /// The kind of value and, where it is short, the value itself, for a message.
    pub fn describe_value(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Integer(value) => format!("the number {value}"),
            Self::Float(value) => format!("the number {value}"),
            Self::Text(value) => format!("the string {}", quote_clipped(value)),
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Object(_) => "an object".to_owned(),
        }
    }
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

/// Reads JSON. `what` names the document in messages. Errors: too large, not UTF-8, a byte order mark, cut
/// short or damaged (with line and column), something after the end.
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
    let mark = [b"\xef\xbb\xbf".as_slice(), b"\xff\xfe", b"\xfe\xff"]
        .into_iter()
        .any(|mark| bytes.starts_with(mark));
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
