//! Times as people write them in manifests and configurations.

use crate::domain::value::document::{Node, Problems, quote_clipped};

/// A time in a document in milliseconds, at most `most` (in words: `bound`); anything else is reported.
pub fn read_duration(
    problems: &mut Problems,
    field: &str,
    node: &Node,
    most: u64,
    bound: &str,
) -> Option<u64> {
    let text = problems.read_text(field, node)?;
    let parsed = parse_duration(&text).filter(|time| *time > 0 && *time <= most);
    if parsed.is_none() {
        let right = format!("a time such as 500ms, 30s, 10m or 1h30m, at most {bound}");
        problems.report_fault(
            field,
            &format!("must be {right}, but is {}", quote_clipped(&text)),
            right,
            &text,
        );
    }
    parsed
}

/// `1h30m`, `10m`, `30s`, `500ms`: whole numbers, each followed by its unit, units falling.
fn parse_duration(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (mut rest, mut total, mut from) = (text, 0u64, 0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let at = from + UNITS[from..].iter().position(|(unit, _)| *unit == &rest[digits..end])?;
        total = total.checked_add(number.checked_mul(UNITS[at].1)?)?;
        (rest, from) = (&rest[end..], at + 1);
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use crate::domain::value::document::time::*;

    #[test]
    fn times_are_read() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("1m1ms", 60_001)] {
            assert_eq!(parse_duration(text), Some(millis), "{text}");
        }
        for text in ["", "10", "m", "30m1h", "1s1s", "-1s", "1.5s", "1d", "99999999999999999999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
