//! Names in a patch: quoted the way C does, cut at a tab, with leading components to take off, or written
//! twice in a `diff --git` line. The rules are those of `git apply`, because it is git that applies the patch
//! in the end.

/// Number of leading components of a name that are not part of the path (`-p` of `git apply`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strip {
    None,
    /// Names begin with a prefix such as `a/` or `b/`.
    One,
}

impl Strip {
    /// The path in a name; `None` where the name has no component to take off. An absolute name is kept as it
    /// is, so that it is refused as one.
    fn strip_name(self, name: &[u8]) -> Option<&[u8]> {
        if self == Self::None || name.first() == Some(&b'/') {
            return Some(name);
        }
        name.iter().position(|b| *b == b'/').map(|at| &name[at + 1..])
    }
}

/// True where the rest of a `---` or `+++` line says that there is no file.
pub fn is_dev_null(rest: &[u8]) -> bool {
    rest.strip_prefix(b"/dev/null").is_some_and(|end| end.first().is_none_or(u8::is_ascii_whitespace))
}

/// The name in the rest of a `---` or `+++` line, with its prefix: unquoted, without what follows a tab or a
/// time stamp.
pub fn after_dashes(rest: &[u8]) -> Option<Vec<u8>> {
    if rest.first() == Some(&b'"') {
        return unquote_name(rest).map(|(name, _)| name);
    }
    let end = rest.iter().position(|b| *b == b'\t').unwrap_or_else(|| before_time(rest));
    Some(rest[..end].to_vec())
}

/// The name in the rest of a `rename` or `copy` line: never with a prefix.
pub fn whole_name(rest: &[u8]) -> Option<Vec<u8>> {
    if rest.first() == Some(&b'"') { unquote_name(rest).map(|(name, _)| name) } else { Some(rest.to_vec()) }
}

/// Takes the prefix off a name.
pub fn stripped_name(name: &[u8], strip: Strip) -> Option<Vec<u8>> {
    strip.strip_name(name).filter(|path| !path.is_empty()).map(<[u8]>::to_vec)
}

/// The path that the rest of a `diff --git` line names twice; `None` where the two differ (a rename says them
/// again).
pub fn name_given_twice(rest: &[u8], strip: Strip) -> Option<Vec<u8>> {
    if rest.first() == Some(&b'"') {
        let (first, after) = unquote_name(rest)?;
        let second = after.trim_ascii_start();
        let second = if second.first() == Some(&b'"') { unquote_name(second)?.0 } else { second.to_vec() };
        return same_path(&first, &second, strip);
    }
    if let Some(quote) = rest.iter().position(|b| *b == b'"') {
        let (second, _) = unquote_name(&rest[quote..])?;
        return same_path(rest[..quote].trim_ascii_end(), &second, strip);
    }
    twice_plain(rest, strip)
}

/// Likewise, of names without quotes. Where the first path begins hangs on no blank, and where the second
/// does only moves on with them: no part of the line is looked through for each blank anew.
fn twice_plain(rest: &[u8], strip: Strip) -> Option<Vec<u8>> {
    let has_prefix = |at: usize| strip == Strip::One && rest.get(at) != Some(&b'/');
    let first = if has_prefix(0) { 1 + rest.iter().position(|b| *b == b'/')? } else { 0 };
    let mut slash = 0;
    (0..rest.len()).filter(|at| matches!(rest[*at], b' ' | b'\t')).find_map(|blank| {
        let mut second = blank + 1;
        if has_prefix(second) {
            slash = slash.max(second);
            slash += rest[slash..].iter().position(|b| *b == b'/').unwrap_or(rest.len() - slash);
            second = slash + 1;
        }
        let (one, other) = (rest.get(first..blank)?, rest.get(second..)?);
        (one == other && !one.is_empty()).then(|| one.to_vec())
    })
}

fn same_path(first: &[u8], second: &[u8], strip: Strip) -> Option<Vec<u8>> {
    let (first, second) = (strip.strip_name(first)?, strip.strip_name(second)?);
    (first == second && !first.is_empty()).then(|| first.to_vec())
}

/// Undoes C quoting: the bytes between the quotes, and what follows the closing one.
pub fn unquote_name(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\n' => return None,
            b'\\' => {
                let (escaped, used) = parse_escape(rest)?;
                name.push(escaped);
                rest = &rest[used..];
            }
            byte => name.push(*byte),
        }
    }
}

/// An escape after a backslash: the byte it means and the length of its spelling.
fn parse_escape(rest: &[u8]) -> Option<(u8, usize)> {
    let simple = match rest.first()? {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        byte @ (b'"' | b'\\') => *byte,
        b'0'..=b'3' => {
            let digits = rest.get(..3).filter(|d| d.iter().all(|b| (b'0'..=b'7').contains(b)))?;
            return Some((digits.iter().fold(0, |value, digit| value * 8 + (digit - b'0')), 3));
        }
        _ => return None,
    };
    Some((simple, 1))
}

/// Where a time stamp set off by blanks begins, as `diff -u` of some systems writes it; the length where
/// there is none.
fn before_time(rest: &[u8]) -> usize {
    let mut end = rest.len();
    let mut words = 0;
    for word in rest.rsplit(|b| *b == b' ').take(3) {
        words += 1;
        let shape: Vec<u8> = word.iter().map(|b| if b.is_ascii_digit() { b'0' } else { *b }).collect();
        let is_zone = words == 1 && matches!(shape.as_slice(), b"+0000" | b"-0000");
        let is_time = shape.starts_with(b"00:00:00");
        end = end.saturating_sub(word.len() + 1);
        if shape == b"0000-00-00" && words > 1 {
            return end;
        }
        if !is_zone && !is_time {
            break;
        }
    }
    rest.len()
}

/// Whether the time stamp of a `---` or `+++` line is the beginning of time, by which `diff -N` means that
/// there is no file. As in git it follows a tab, and is whole: seconds and a zone belong to it.
pub fn is_epoch(rest: &[u8]) -> bool {
    epoch_stamp(rest).unwrap_or(false)
}

fn epoch_stamp(rest: &[u8]) -> Option<bool> {
    let stamp = rest.splitn(2, |b| *b == b'\t').nth(1)?;
    let mut words = std::str::from_utf8(stamp).ok()?.trim_end().split(' ');
    let (day, clock, zone) = (words.next()?, words.next()?, words.next()?);
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
    let (hours, minutes) = (number(clock.get(..2)?)?, number(clock.get(3..5)?)?);
    let seconds = clock.get(5..)?;
    let fraction = seconds.strip_prefix(":00")?;
    let whole = fraction.is_empty()
        || fraction.strip_prefix('.').is_some_and(|f| !f.is_empty() && f.bytes().all(|b| b == b'0'));
    let digits = zone.get(1..)?.replacen(':', "", 1);
    let offset = number(digits.get(..2)?)? * 60 + number(digits.get(2..)?)?;
    let (day, offset) = match (day, zone.get(..1)?) {
        ("1970-01-01", "+") => (0, offset),
        ("1970-01-01", "-") if offset == 0 => (0, 0),
        ("1969-12-31", "-") if offset > 0 => (-24 * 60, -offset),
        _ => return None,
    };
    let exact = clock.as_bytes().get(2) == Some(&b':') && digits.len() == 4 && words.next().is_none();
    Some(exact && whole && day + hours * 60 + minutes == offset)
}

#[cfg(test)]
mod tests {
    use crate::domain::change::patch_text::names::*;

    #[test]
    fn quotes_are_undone_as_c_writes_them() {
        assert_eq!(
            unquote_name(br#""a\tb\n\"\\\303\251" rest"#),
            Some((b"a\tb\n\"\\\xc3\xa9".to_vec(), &b" rest"[..]))
        );
        for bad in [&br#""a"#[..], br#""\q""#, br#""\40""#, br#""\8""#, b"a", br#""\"#, br#""\400""#] {
            assert_eq!(unquote_name(bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_header_line_names_one_path_twice() {
        let path = |text: &str| {
            name_given_twice(text.as_bytes(), Strip::One).map(|p| String::from_utf8_lossy(&p).into_owned())
        };
        assert_eq!(path("a/x b/x").as_deref(), Some("x"));
        assert_eq!(path("a/x b/y b/x b/y").as_deref(), Some("x b/y"));
        assert_eq!(path("a/x b/x b/x").as_deref(), None);
        assert_eq!(path("a/empty file b/empty file").as_deref(), Some("empty file"));
        assert_eq!(path(r#""a/t\tb" "b/t\tb""#).as_deref(), Some("t\tb"));
        assert_eq!(path("a/x b/y"), None);
        assert_eq!(path("x x"), None);
        assert_eq!(name_given_twice(b"x x", Strip::None), Some(b"x".to_vec()));
        assert_eq!(name_given_twice(b"src/x src/x", Strip::None), Some(b"src/x".to_vec()));
    }

    #[test]
    fn each_blank_may_be_the_one_between_the_names() {
        let slow = |rest: &[u8], strip: Strip| {
            let blanks = (0..rest.len()).filter(|at| matches!(rest[*at], b' ' | b'\t'));
            blanks.into_iter().find_map(|at| same_path(&rest[..at], &rest[at + 1..], strip))
        };
        let letters = b"a/ \t";
        for number in 0..4_usize.pow(9) {
            let text: Vec<u8> = (0..9).map(|place| letters[number / 4_usize.pow(place) % 4]).collect();
            for strip in [Strip::None, Strip::One] {
                assert_eq!(name_given_twice(&text, strip), slow(&text, strip), "{}", text.escape_ascii());
            }
        }
    }

    #[test]
    fn a_line_of_blanks_is_looked_through_once() {
        let started = std::time::Instant::now();
        for begin in ["a/", "", "a/x b/"] {
            let long = [begin.as_bytes(), &vec![b' '; 1 << 20]].concat();
            assert_eq!(name_given_twice(&long, Strip::One), None);
        }
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }

    #[test]
    fn what_follows_a_name_is_cut_off() {
        assert_eq!(after_dashes(b"a/x\t2020-01-01 00:00:00.0 +0000"), Some(b"a/x".to_vec()));
        assert_eq!(after_dashes(b"a/x y"), Some(b"a/x y".to_vec()));
        assert_eq!(after_dashes(b"a/x y 2020-01-01 10:20:30.123 +0100"), Some(b"a/x y".to_vec()));
        assert_eq!(after_dashes(b"a/x y 10:20"), Some(b"a/x y 10:20".to_vec()));
        assert!(is_dev_null(b"/dev/null") && is_dev_null(b"/dev/null\t1970") && !is_dev_null(b"/dev/nullx"));
        assert!(is_epoch(b"x\t1970-01-01 00:00:00.000000000 +0000"));
        assert!(is_epoch(b"x\t1970-01-01 01:00:00.000000000 +0100"));
        assert!(is_epoch(b"x\t1969-12-31 19:00:00 -0500"));
        assert!(is_epoch(b"x\t1969-12-31 16:00:00.000 -08:00"));
        assert!(is_epoch(b"x\t1970-01-01 00:00:00 -0000\r"));
        for other in [
            "x 1970-01-01 00:00:00 +0000",
            "x\t1969-12-31 16:00 -0800",
            "x\t1970-01-01 00:00:00",
            "x\t1970-01-01 00:00:00 +0000 more",
            "x\t1970-01-01 00:00:00. +0000",
            "x\t1969-12-31 00:00:00 +0000",
            "x\t1970-01-01 00:00:00 +00000",
            "x\t1970-01-01 0\u{e9}:00:00 +0000",
        ] {
            assert!(!is_epoch(other.as_bytes()), "{other}");
        }
        assert!(!is_epoch(b"x\t1970-01-01 00:00:01.000000000 +0000"));
        assert!(!is_epoch(b"x\t2020-01-01 00:00:00.000000000 +0000"));
    }
}
