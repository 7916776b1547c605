//! Compares a JSON value with a drawn shape.
//!
//! A shape is a JSON value whose strings may be marks: `$str`, `$text` (not empty), `$word`
//! (`lower_snake`), `$int`, `$bool`, `$object`, `$any` (present, may be null), `$sha256`, `$oid`,
//! `$abs` (absolute path), `$time`; a trailing `?` also lets null through. An array of one element
//! draws each element. Further keys are let through: within a version fields may be added.

use serde_json::Value;

/// Fails with the path of the first difference.
#[track_caller]
pub fn check(value: &Value, shape: &Value) {
    if let Err(problem) = matches(value, shape, "$") {
        panic!("{problem}\nin {value:#}");
    }
}

/// As [`check`], but says what differs. `at` names the place.
pub fn matches(value: &Value, shape: &Value, at: &str) -> Result<(), String> {
    match shape {
        Value::String(mark) if mark.starts_with('$') => marked(value, mark, at),
        Value::Object(fields) => {
            let Some(object) = value.as_object() else {
                return Err(format!("{at}: expected an object, found {value}"));
            };
            for (key, inner) in fields {
                let Some(found) = object.get(key) else {
                    return Err(format!("{at}.{key} is missing"));
                };
                matches(found, inner, &format!("{at}.{key}"))?;
            }
            Ok(())
        }
        Value::Array(items) if items.len() == 1 => {
            let Some(list) = value.as_array() else {
                return Err(format!("{at}: expected a list, found {value}"));
            };
            list.iter().enumerate().try_for_each(|(n, item)| matches(item, &items[0], &format!("{at}[{n}]")))
        }
        _ if value == shape => Ok(()),
        _ => Err(format!("{at}: expected {shape}, found {value}")),
    }
}

/// Every key and value of `part` is in `whole`; lists must have the same length.
pub fn contains(whole: &Value, part: &Value, at: &str) -> Result<(), String> {
    match (whole, part) {
        (Value::Object(object), Value::Object(fields)) => fields.iter().try_for_each(|(key, inner)| {
            let found = object.get(key).ok_or_else(|| format!("{at}.{key} is missing"))?;
            contains(found, inner, &format!("{at}.{key}"))
        }),
        (Value::Array(list), Value::Array(items)) if list.len() == items.len() => list
            .iter()
            .zip(items)
            .enumerate()
            .try_for_each(|(n, (a, b))| contains(a, b, &format!("{at}[{n}]"))),
        _ => matches(whole, part, at),
    }
}

fn marked(value: &Value, mark: &str, at: &str) -> Result<(), String> {
    let (mark, nullable) = mark.strip_suffix('?').map_or((mark, false), |short| (short, true));
    if nullable && value.is_null() {
        return Ok(());
    }
    let text = value.as_str();
    let hex = |t: &str| t.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let fits = match mark {
        "$any" => true,
        "$str" => text.is_some(),
        "$text" => text.is_some_and(|t| !t.is_empty()),
        "$word" => {
            text.is_some_and(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        }
        "$int" => value.is_u64(),
        "$bool" => value.is_boolean(),
        "$object" => value.is_object(),
        "$list" => value.is_array(),
        "$sha256" => text.is_some_and(|t| t.len() == 64 && hex(t)),
        "$ref256" => text.is_some_and(|t| t.strip_prefix("sha256:").is_some_and(|h| h.len() == 64 && hex(h))),
        "$oid" => text.is_some_and(|t| (t.len() == 40 || t.len() == 64) && hex(t)),
        "$abs" => text.is_some_and(|t| t.starts_with('/')),
        "$time" => text.is_some_and(|t| t.len() >= 20 && t.ends_with('Z') && t.as_bytes()[10] == b'T'),
        _ => return Err(format!("{at}: no such mark {mark}")),
    };
    if fits { Ok(()) } else { Err(format!("{at}: expected {mark}, found {value}")) }
}

#[cfg(test)]
mod tests {
    use super::{contains, matches};
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_found_and_named() {
        let shape = json!({"id": "$text", "n": "$int", "list": [{"a": "$bool"}], "maybe": "$str?"});
        let good = json!({"id": "x", "n": 1, "list": [{"a": true}, {"a": false, "more": 1}], "maybe": null});
        assert_eq!(matches(&good, &shape, "$"), Ok(()));
        for (bad, place) in [
            (json!({"id": "", "n": 1, "list": [], "maybe": null}), "$.id"),
            (json!({"id": "x", "n": -1, "list": [], "maybe": null}), "$.n"),
            (json!({"id": "x", "n": 1, "list": [{"a": null}], "maybe": null}), "$.list[0].a"),
            (json!({"id": "x", "n": 1, "list": []}), "$.maybe"),
            (json!([]), "$"),
        ] {
            let problem = matches(&bad, &shape, "$").expect_err("does not fit");
            assert!(problem.starts_with(place), "{problem}");
        }
        for (mark, value) in [
            ("$sha256", json!("AB")),
            ("$oid", json!("1234")),
            ("$abs", json!("relative")),
            ("$word", json!("Not A Word")),
            ("$time", json!("yesterday")),
            ("$nothing", json!("x")),
        ] {
            assert!(matches(&value, &json!(mark), "$").is_err(), "{mark}");
        }
    }

    #[test]
    fn a_part_is_found_in_the_whole_and_a_list_must_be_complete() {
        let whole = json!({"a": {"b": [1, {"c": "x"}]}, "d": 2});
        assert_eq!(contains(&whole, &json!({"a": {"b": [1, {"c": "$text"}]}}), "$"), Ok(()));
        assert!(contains(&whole, &json!({"a": {"b": [1]}}), "$").is_err());
        assert!(contains(&whole, &json!({"a": {"e": null}}), "$").is_err());
    }
}
