//! Several failures as one, and the bounds of any.
//!
//! A failure goes into the ledger, to a terminal and back to a worker. What it tells of may have been written
//! by somebody else, who must not be able to make it large: texts are clipped where they come in, and of many
//! failures the first are told and the others counted.

use super::{Category, Failure};
use serde_json::Value;
use std::borrow::Cow;

/// That many failures are told with the one that leads.
const TOLD: usize = 20;
/// The most bytes that all failures told with one may take, as JSON.
const MOST_BYTES: usize = 256 << 10;
/// The longest sentence or subject, in bytes.
pub(super) const LONGEST_SENTENCE: usize = 4 << 10;
/// The longest text of a detail, in bytes.
const LONGEST_TEXT: usize = 16 << 10;

impl Failure {
    /// One failure out of several: the dominant one leads, the others are told with it in their order, the
    /// first of many. What comes beyond is made and counted, never kept.
    pub fn first_of(all: impl IntoIterator<Item = Failure>) -> Option<Failure> {
        Self::first_of_at_most(TOLD, all)
    }

    /// Likewise, with another bound than the usual one.
    pub fn first_of_at_most(most: usize, all: impl IntoIterator<Item = Failure>) -> Option<Failure> {
        let mut all = all.into_iter();
        let mut leader = all.next()?;
        let (mut place, mut others, mut more) = (0, Vec::new(), 0);
        for mut next in all {
            if outranks(&next, &leader) {
                std::mem::swap(&mut leader, &mut next);
                // The one that led goes back to where it came.
                others.insert(place, next);
                place = others.len().min(most);
            } else {
                others.push(next);
            }
            more += others.drain(most.min(others.len())..).map(|left| left.number()).sum::<usize>();
        }
        let mut leader = leader.also(others);
        leader.0.more += more;
        Some(leader)
    }

    /// Further failures that hold at the same time. The object lists them, or says how many more there are.
    pub fn also(mut self, others: impl IntoIterator<Item = Failure>) -> Self {
        let mut left = MOST_BYTES.saturating_sub(self.0.also.iter().map(size).sum());
        for other in others {
            match left.checked_sub(size(&other)) {
                Some(less) => {
                    left = less;
                    self.0.also.push(other);
                }
                None => self.0.more += other.number(),
            }
        }
        self
    }

    /// How many more hold at the same time than are listed.
    pub fn more(&self) -> usize {
        self.0.more
    }

    /// How many failures this one stands for.
    pub fn number(&self) -> usize {
        1 + self.0.more + self.0.also.iter().map(Self::number).sum::<usize>()
    }
}

fn outranks(one: &Failure, other: &Failure) -> bool {
    let (one, other) = (one.code().category(), other.code().category());
    one != other && Category::dominant(&[one, other]) == Some(one)
}

fn size(failure: &Failure) -> usize {
    serde_json::to_vec(failure).map_or(MOST_BYTES, |json| json.len())
}

/// A text of at most `most` bytes; of a longer one its beginning, with a mark that says how long it was.
pub fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len()))
}

/// Likewise, of a text that is ours.
pub(super) fn bounded(text: String, most: usize) -> String {
    if text.len() <= most { text } else { clipped(&text, most).into_owned() }
}

/// A detail whose texts are bearable.
pub(super) fn with_bounds(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(bounded(text, LONGEST_TEXT)),
        Value::Array(items) => items.into_iter().map(with_bounds).collect(),
        Value::Object(fields) => {
            let field = |(key, value)| (bounded(key, LONGEST_SENTENCE), with_bounds(value));
            fields.into_iter().map(field).collect()
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Code;
    use super::*;

    fn of(code: Code, subject: usize) -> Failure {
        Failure::new(code, "it does not fit").subject(subject.to_string())
    }

    fn subjects(failure: &Failure) -> Vec<&str> {
        std::iter::once(failure).chain(failure.others()).filter_map(Failure::subject_text).collect()
    }

    #[test]
    fn the_first_of_many_are_told_and_the_others_counted() {
        let many = (0..100_000).map(|at| of(Code::PatchInvalid, at));
        let all = Failure::first_of(many).expect("one leads");
        assert_eq!((all.others().len(), all.more(), all.number()), (TOLD, 100_000 - TOLD - 1, 100_000));
        let json = serde_json::to_value(&all).expect("json");
        assert_eq!(json["andMore"], 100_000 - TOLD - 1);
        let back: Failure = serde_json::from_value(json).expect("reads");
        assert_eq!(back, all);
        let one = serde_json::to_value(of(Code::Io, 1)).expect("json");
        assert!(one.get("andMore").is_none() && one.get("also").is_none(), "{one}");
    }

    #[test]
    fn the_dominant_one_leads_wherever_it_comes_and_the_others_keep_their_order() {
        let codes = [Code::DeliveryConflict, Code::InputRequired, Code::ScopeViolation, Code::PushConflict];
        let all = Failure::first_of(codes.into_iter().enumerate().map(|(at, code)| of(code, at)));
        assert_eq!(subjects(&all.expect("one leads")), ["2", "0", "1", "3"]);
        let late = (0..50).map(|at| of(Code::PushConflict, at)).chain([of(Code::PatchInvalid, 50)]);
        let late = Failure::first_of(late).expect("one leads");
        assert_eq!((subjects(&late)[..3].to_vec(), late.number()), (vec!["50", "0", "1"], 51));
    }

    #[test]
    fn no_text_makes_a_failure_large() {
        let long = "\u{e9}".repeat(1 << 20);
        let large = |_| {
            Failure::new(Code::PatchInvalid, long.clone())
                .subject(long.clone())
                .expected([&long], serde_json::json!({ &long: &long }))
                .remedy(long.clone(), ["git", "tender", &long])
        };
        let one = large(0);
        assert!(one.message().ends_with("(2097152 bytes)"), "{}", one.message());
        assert!(one.next_step().command.is_empty(), "a command that was cut is another one");
        assert!(size(&one) < 128 << 10, "{}", size(&one));
        let all = Failure::first_of((0..100).map(large)).expect("one leads");
        assert!(size(&all) < 512 << 10, "{}", size(&all));
        assert_eq!(all.number(), 100);
    }

    #[test]
    fn what_is_too_long_is_clipped_with_a_mark() {
        assert_eq!(clipped("äöü", 6), "äöü");
        assert_eq!(clipped("äöü!", 5), "äö… (7 bytes)");
    }
}
