//! One line of TAP by itself.

/// How many spaces a subtest stands further in than what it belongs to.
pub(super) const INDENT: usize = 4;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TapLine<'a> {
    Version(&'a str),
    /// How many cases there are.
    Plan(u64),
    Point(TestPoint),
    BailOut,
    /// The end of a subtest in braces.
    Brace,
    /// What follows the `#`.
    Remark(&'a str),
    Other,
}

/// A line that says how something ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestPoint {
    pub ok: bool,
    pub number: Option<u64>,
    pub name: String,
    pub directive: Option<Directive>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Skip,
    Todo,
}

/// How deep a line stands, and what it says.
pub(super) fn read_line(line: &str) -> (usize, TapLine<'_>) {
    let said = line.trim_start_matches(' ');
    let spaces = line.len() - said.len();
    let read = match spaces % INDENT {
        0 => read_unindented(said.trim_end()),
        _ => TapLine::Other,
    };
    (spaces / INDENT, read)
}

/// True for a point that failed, wherever it stands.
pub(super) fn is_failing_point(line: &str) -> bool {
    read_point(line.trim()).is_some_and(|point| !point.ok)
}

fn read_unindented(line: &str) -> TapLine<'_> {
    if let Some(version) = line.strip_prefix("TAP version ") {
        return TapLine::Version(version.trim());
    }
    if let Some(remark) = line.strip_prefix('#') {
        return TapLine::Remark(remark.trim());
    }
    if line == "}" {
        return TapLine::Brace;
    }
    if line.get(..9).is_some_and(|word| word.eq_ignore_ascii_case("bail out!")) {
        return TapLine::BailOut;
    }
    let plan = line.strip_prefix("1..").and_then(read_plan).map(TapLine::Plan);
    plan.or_else(|| read_point(line).map(TapLine::Point)).unwrap_or(TapLine::Other)
}

/// `3`, and `0 # SKIP why`
fn read_plan(text: &str) -> Option<u64> {
    let (count, rest) = split_number(text)?;
    (rest.is_empty() || rest.trim_start().starts_with('#')).then_some(count)
}

/// The number that a text begins with, and what follows it.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn read_point(line: &str) -> Option<TestPoint> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start();
    let numbered = split_number(rest).filter(|(_, rest)| rest.is_empty() || rest.starts_with([' ', '\t']));
    let (number, rest) = numbered.map_or((None, rest), |(number, rest)| (Some(number), rest));
    let (name, directive) = split_directive(rest);
    let name = name.trim();
    let name = name.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' ')).unwrap_or(name);
    Some(TestPoint { ok, number, name: unescaped(name.trim_start()), directive })
}

/// What stands before the first `#` that begins a directive or a remark of node-tap's on the time, and the
/// directive.
fn split_directive(text: &str) -> (&str, Option<Directive>) {
    for (at, _) in text.match_indices('#') {
        let before = &text[..at];
        if !before.is_empty() && !before.ends_with([' ', '\t']) {
            continue;
        }
        let word = text[at + 1..].trim_start();
        let word = &word[..word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len())];
        match word.to_ascii_lowercase().as_str() {
            "todo" => return (before, Some(Directive::Todo)),
            "time" => return (before, None),
            word if word.starts_with("skip") => return (before, Some(Directive::Skip)),
            _ => {}
        }
    }
    (text, None)
}

fn unescaped(name: &str) -> String {
    let mut kept = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = (character == '\\').then(|| characters.next_if(|next| ['#', '\\'].contains(next)));
        kept.push(escaped.flatten().unwrap_or(character));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line: &str) -> (bool, Option<u64>, String, Option<Directive>) {
        match read_line(line).1 {
            TapLine::Point(TestPoint { ok, number, name, directive }) => (ok, number, name, directive),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_point_has_a_number_a_name_and_a_directive() {
        use Directive::{Skip, Todo};
        for (line, expected) in [
            ("ok", (true, None, "", None)),
            ("not ok", (false, None, "", None)),
            ("ok 3", (true, Some(3), "", None)),
            ("ok 3 - a - b", (true, Some(3), "a - b", None)),
            ("ok 3 a", (true, Some(3), "a", None)),
            ("ok 3 -", (true, Some(3), "", None)),
            ("ok 3 -x", (true, Some(3), "-x", None)),
            ("ok - 3 pigs", (true, None, "3 pigs", None)),
            ("ok 3rd", (true, None, "3rd", None)),
            ("ok 3 # skip why", (true, Some(3), "", Some(Skip))),
            ("ok 3 - a # SKIPPED: why", (true, Some(3), "a", Some(Skip))),
            ("not ok 3 - a # TODO", (false, Some(3), "a", Some(Todo))),
            ("not ok 3 - a #todo later", (false, Some(3), "a", Some(Todo))),
            ("not ok 3 - a # todos", (false, Some(3), "a # todos", None)),
            (r"not ok 3 - a \# TODO b", (false, Some(3), "a # TODO b", None)),
            (r"not ok 3 - a \\# TODO b", (false, Some(3), r"a \# TODO b", None)),
            ("not ok 3 - issue#7 # issue 8", (false, Some(3), "issue#7 # issue 8", None)),
            ("ok 3 - a.js # time=7ms", (true, Some(3), "a.js", None)),
        ] {
            let (ok, number, name, directive) = expected;
            assert_eq!(point(line), (ok, number, name.to_owned(), directive), "{line}");
        }
    }

    #[test]
    fn what_only_looks_like_a_line_of_tap_is_none() {
        for line in [
            "okay", "not okay", "Not ok 1", "nok 1", "ok1", " ok 1", "\tok 1", "1..", "1..a", "2..3",
            "1..3 a",
        ] {
            assert_eq!(read_line(line).1, TapLine::Other, "{line}");
        }
        assert_eq!(read_line("        1..0 # SKIP why"), (2, TapLine::Plan(0)));
        assert_eq!(read_line("1..99999999999999999999").1, TapLine::Other);
        assert_eq!(read_line("    bail OUT!  why"), (1, TapLine::BailOut));
        assert_eq!(read_line("TAP version 14 ").1, TapLine::Version("14"));
    }
}
