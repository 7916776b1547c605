//! A place in a source file as tools write it: `path:row:column`, `path(row,column)`.

/// A place; row and column count from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourcePlace {
    pub(super) path: String,
    pub(super) row: Option<u32>,
    pub(super) column: Option<u32>,
}

impl SourcePlace {
    pub(super) fn new(path: &str, row: u32, column: Option<u32>) -> Self {
        Self { path: path.to_owned(), row: Some(row), column }
    }

    /// The whole text is a place: `path:row` or `path:row:column`.
    pub(super) fn whole(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches(':');
        let (front, last) = number_after(text, ':')?;
        match number_after(front, ':') {
            Some((path, row)) if !path.is_empty() => Some(Self::new(path, row, Some(last))),
            _ if !front.is_empty() => Some(Self::new(front, last, None)),
            _ => None,
        }
    }

    /// The line begins with a place and a colon, unindented; with what follows it. Words with a colon may
    /// stand in front of it (`vet: `, `warning: name@0.1.0: `).
    pub(super) fn in_front(line: &str) -> Option<(Self, &str)> {
        let mut from = 0;
        while let Some(found) = line[from..].find(':') {
            let colon = from + found;
            // There is no row 0: that is a time.
            if let Some((row, rest)) = number_before(&line[colon + 1..]).filter(|(row, _)| *row > 0) {
                let path = without_log_prefix(&line[..colon]);
                if path.is_empty() || line.starts_with(char::is_whitespace) {
                    return None;
                }
                return match number_before(rest) {
                    Some((column, said)) => Some((Self::new(path, row, Some(column)), said.trim_start())),
                    None => Some((Self::new(path, row, None), rest.trim_start())),
                };
            }
            from = colon + 1;
        }
        None
    }
}

/// A path without the words, times and numbers that logs have in front of their lines.
fn without_log_prefix(path: &str) -> &str {
    let mut path = path.rsplit(": ").next().unwrap_or(path);
    let is_count = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b"#.:+-TZ[]".contains(&b));
    while let Some((_, rest)) = path.split_once(' ').filter(|(word, _)| is_count(word)) {
        path = rest;
    }
    path
}

/// `front:12` as `front` and 12.
fn number_after(text: &str, sign: char) -> Option<(&str, u32)> {
    let (front, number) = text.rsplit_once(sign)?;
    Some((front, number.parse().ok()?))
}

/// `12: rest` as 12 and ` rest`.
fn number_before(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.split_once(':')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use crate::verifier::logs::place::*;

    #[test]
    fn places_are_read_as_tools_write_them() {
        assert_eq!(SourcePlace::whole("src/lib.rs:4:20"), Some(SourcePlace::new("src/lib.rs", 4, Some(20))));
        assert_eq!(SourcePlace::whole("src/lib.rs:4:20:"), Some(SourcePlace::new("src/lib.rs", 4, Some(20))));
        assert_eq!(SourcePlace::whole("/a b/x.py:7"), Some(SourcePlace::new("/a b/x.py", 7, None)));
        for none in ["", "x", ":4", "x:", "x:y", "12:00:01 up"] {
            assert_eq!(SourcePlace::whole(none), None, "{none}");
        }
        let (place, said) = SourcePlace::in_front("a/b.c:2:36: error: expected").expect("a place");
        assert_eq!((place, said), (SourcePlace::new("a/b.c", 2, Some(36)), "error: expected"));
        let (place, said) = SourcePlace::in_front("a.py:6: AssertionError").expect("a place");
        assert_eq!((place, said), (SourcePlace::new("a.py", 6, None), "AssertionError"));
        let (place, _) = SourcePlace::in_front("vet: ./main.go:9:14: cannot use").expect("a place");
        assert_eq!(place, SourcePlace::new("./main.go", 9, Some(14)));
        let (place, _) =
            SourcePlace::in_front("#9 2026-01-01T00:00:00Z src/a b.c:5:7: error: x").expect("a place");
        assert_eq!(place, SourcePlace::new("src/a b.c", 5, Some(7)));
        for none in ["  a.go:3: x", "no place: here", "a:b:c", ""] {
            assert_eq!(SourcePlace::in_front(none), None, "{none}");
        }
    }
}
