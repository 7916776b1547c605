//! Takes known secret values out of what is going to be stored or shown.
//!
//! A value is looked for as it is and in the forms that tools print it in: base64 (both alphabets, alone or
//! as part of something longer), hexadecimal, percent-encoded, escaped for JSON and XML; a value of several
//! lines also line by line, for each line of at least [`MIN_LINE`] bytes. Matches may overlap: every byte
//! that any of them covers goes. It works on a stream, so a value that is split over two reads is found as
//! well.
//!
//! Values shorter than [`MIN_VALUE`] bytes are ignored: they would tear holes into ordinary text and protect
//! nothing. Not found are forms nobody announced (compressed, encrypted, base64 that is broken into lines).

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What stands in the place of a secret.
pub const REPLACEMENT: &[u8] = b"[redacted]";
/// Shorter values are not looked for.
pub const MIN_VALUE: usize = 4;
/// Of a value of several lines, shorter lines are not looked for on their own.
pub const MIN_LINE: usize = 8;
/// Shorter pieces of base64 are too likely to be ordinary text.
const MIN_BASE64: usize = 8;

/// A compiled set of secret values; cheap to clone.
#[derive(Clone)]
pub struct Secrets(Option<Arc<SecretAutomaton>>);

struct SecretAutomaton {
    /// None where the set is beyond what an automaton can number (gigabytes of patterns): then nothing of the
    /// output is let through.
    automaton: Option<AhoCorasick>,
    longest: usize,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

impl Secrets {
    /// Compiles the values with all their forms.
    pub fn new(values: &[Vec<u8>]) -> Self {
        let mut patterns: Vec<Vec<u8>> = values.iter().flat_map(|value| forms_of(value)).collect();
        patterns.sort();
        patterns.dedup();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        if longest == 0 {
            return Self(None);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok();
        Self(Some(Arc::new(SecretAutomaton { automaton, longest })))
    }

    /// A redactor for one stream.
    pub fn stream_redactor(&self) -> Redactor {
        Redactor { secrets: self.clone(), carry: Vec::new(), covered: 0 }
    }

    /// Redacts a text that is there as a whole.
    pub fn redact_bytes(&self, text: &[u8]) -> Vec<u8> {
        let mut stream = self.stream_redactor();
        let mut clean = stream.push_bytes(text);
        clean.extend(stream.finish_stream());
        clean
    }

    /// Redacts a string that is there as a whole.
    pub fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }
}

/// Redacts one stream; holds back as many bytes as could still become part of a match.
#[derive(Debug)]
pub struct Redactor {
    secrets: Secrets,
    carry: Vec<u8>,
    /// How many bytes at the start of `carry` belong to a match whose replacement is already out.
    covered: usize,
}

impl Redactor {
    /// Takes the next bytes, returns those that are decided.
    pub fn push_bytes(&mut self, raw: &[u8]) -> Vec<u8> {
        let Some(compiled) = self.secrets.0.clone() else { return raw.to_vec() };
        self.carry.extend_from_slice(raw);
        let decided = (self.carry.len() + 1).saturating_sub(compiled.longest);
        self.release_decided(&compiled, decided)
    }

    /// The end of the stream: returns what was held back.
    pub fn finish_stream(&mut self) -> Vec<u8> {
        let Some(compiled) = self.secrets.0.clone() else { return Vec::new() };
        let decided = self.carry.len();
        self.release_decided(&compiled, decided)
    }

    /// Gives out the first `decided` bytes: every match that begins there lies wholly in `carry`.
    fn release_decided(&mut self, compiled: &SecretAutomaton, decided: usize) -> Vec<u8> {
        if decided == 0 {
            return Vec::new();
        }
        let Some(automaton) = &compiled.automaton else {
            self.carry.drain(..decided);
            return REPLACEMENT.to_vec();
        };
        let mut ranges: Vec<(usize, usize)> = automaton
            .find_overlapping_iter(Input::new(&self.carry))
            .map(|found| (found.start(), found.end()))
            .filter(|(start, _)| *start < decided)
            .collect();
        ranges.sort_unstable();
        let mut clean = Vec::with_capacity(decided);
        let mut at = self.covered;
        for (start, end) in ranges {
            if start >= at {
                clean.extend_from_slice(&self.carry[at..start]);
                clean.extend_from_slice(REPLACEMENT);
            }
            at = at.max(end);
        }
        if at < decided {
            clean.extend_from_slice(&self.carry[at..decided]);
        }
        self.carry.drain(..decided);
        self.covered = at.saturating_sub(decided);
        clean
    }
}

fn forms_of(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    let trimmed = value.trim_ascii();
    for whole in [value, trimmed] {
        if whole.len() >= MIN_VALUE {
            encodings_of(whole, &mut forms);
        }
    }
    if trimmed.contains(&b'\n') {
        for line in trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if line.len() >= MIN_LINE {
                encodings_of(line, &mut forms);
            }
        }
    }
    forms
}

fn encodings_of(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    forms.push(value.to_vec());
    base64_forms(value, forms);
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_ascii_uppercase().into_bytes());
    forms.push(hex.into_bytes());
    // RFC 3986 and form encoding, and what `encodeURIComponent` and `encodeURI` leave alone.
    for unescaped in [&b"-._~"[..], b"-._~!'()*", b"-._~!'()*;/?:@&=+$,#", b"-._~/"] {
        let upper = percent_encoded(value, unescaped, false);
        forms.push(upper.replace("%20", "+").into_bytes());
        forms.push(upper.into_bytes());
        forms.push(percent_encoded(value, unescaped, true).into_bytes());
    }
    if let Ok(text) = std::str::from_utf8(value) {
        text_forms(text, forms);
    }
}

/// The value alone, padded, and its inner characters at each of the three places it can have in a longer
/// text.
fn base64_forms(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    for engine in [&STANDARD, &URL_SAFE] {
        let padded = engine.encode(value);
        forms.push(padded.trim_end_matches('=').as_bytes().to_vec());
        forms.push(padded.into_bytes());
        for before in 0..3 {
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(value);
            let encoded = engine.encode(&bytes);
            let text = encoded.trim_end_matches('=');
            let from = [0, 2, 3][before];
            let upto = text.len() - usize::from(bytes.len() % 3 != 0);
            if upto >= from + MIN_BASE64 {
                forms.push(text.as_bytes()[from..upto].to_vec());
            }
        }
    }
}

fn percent_encoded(value: &[u8], unescaped: &[u8], lower: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value {
        if byte.is_ascii_alphanumeric() || unescaped.contains(byte) {
            out.push(char::from(*byte));
        } else if lower {
            out.push_str(&format!("%{byte:02x}"));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Escapes of JSON (with and without `\/`, with and without `\u` beyond ASCII) and of XML.
fn text_forms(text: &str, forms: &mut Vec<Vec<u8>>) {
    let quoted = serde_json::Value::from(text).to_string();
    let json = quoted[1..quoted.len() - 1].to_owned();
    let mut ascii = String::new();
    for character in json.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    for escaped in [json, ascii] {
        forms.push(escaped.replace('/', "\\/").into_bytes());
        forms.push(escaped.into_bytes());
    }
    let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    forms.push(xml.replace('"', "&quot;").replace('\'', "&apos;").into_bytes());
    forms.push(xml.replace('"', "&quot;").replace('\'', "&#39;").into_bytes());
    forms.push(xml.replace('"', "&quot;").into_bytes());
    forms.push(xml.into_bytes());
}

/// Whether the name of an environment variable suggests that its value is secret.
///
/// Names are taken apart at everything that is not a letter or digit, and where a capital follows a small
/// letter: `GITHUB_TOKEN`, `npmAuth`, `DB_PWD` are found; `AUTHOR`, `KEYBOARD`, `PWD` are not.
pub fn looks_secret(name: &str) -> bool {
    const PARTS: [&str; 22] = [
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWORDS",
        "PASSWD",
        "PASSPHRASE",
        "PASS",
        "KEY",
        "KEYS",
        "APIKEY",
        "CREDENTIAL",
        "CREDENTIALS",
        "CREDS",
        "AUTH",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "JWT",
        "PAT",
        "DSN",
    ];
    const ENDINGS: [&str; 7] =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "CREDENTIALS"];
    let words = words_of(name);
    let several = words.len() > 1;
    words.iter().any(|word| {
        PARTS.contains(&word.as_str())
            || ENDINGS.iter().any(|ending| word.ends_with(ending))
            || (several && word == "PWD")
    })
}

/// The values of all variables whose names look like secrets.
pub fn secret_values(vars: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    let secret = |(name, _): &&(OsString, OsString)| name.to_str().is_some_and(looks_secret);
    vars.iter().filter(secret).map(|(_, value)| value.as_bytes().to_vec()).collect()
}

/// The values in a file of settings (`NAME=value` a line, as in `.env`) that look like secrets: by their
/// name, as the password in an address, or since nobody would type them.
pub fn secret_values_of_settings(file: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(file).lines() {
        let line = line.trim().trim_start_matches("export ");
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.split_once(*quote));
        let value = quoted.map_or(value, |(inner, _)| inner);
        if looks_secret(name.trim()) || looks_random(value) {
            found.push(value.as_bytes().to_vec());
        }
        found.extend(password_in_address(value).map(|password| password.as_bytes().to_vec()));
    }
    found
}

/// One long word of letters and digits.
fn looks_random(value: &str) -> bool {
    const LEAST: usize = 20;
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "_-+/=.".contains(c);
    value.len() >= LEAST
        && value.chars().all(is_of_word)
        && value.chars().filter(char::is_ascii_digit).count() >= 3
        && value.chars().any(|c| c.is_ascii_alphabetic())
        && !value.starts_with(['/', '.'])
}

/// The password of `scheme://user:password@host`.
fn password_in_address(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let (who, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
    who.split_once(':').map(|(_, password)| password).filter(|password| !password.is_empty())
}

fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for character in name.chars() {
        let breaks = !character.is_ascii_alphanumeric() || (after_small && character.is_ascii_uppercase());
        if breaks {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_uppercase());
        }
        after_small = character.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secrets_of(values: &[&str]) -> Secrets {
        Secrets::new(&values.iter().map(|value| value.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn every_announced_form_is_found() {
        let value = "p@ss w/ö\"&<rd>'x";
        let set = secrets_of(&[value]);
        for form in [
            value.to_owned(),
            STANDARD.encode(value),
            URL_SAFE.encode(value).trim_end_matches('=').to_owned(),
            "p%40ss%20w%2F%C3%B6%22%26%3Crd%3E%27x".to_owned(),
            "p%40ss%20w%2f%c3%b6%22%26%3crd%3e%27x".to_owned(),
            "p%40ss+w%2F%C3%B6%22%26%3Crd%3E%27x".to_owned(),
            "p@ss w/ö\\\"&<rd>'x".to_owned(),
            "p@ss w\\/\\u00f6\\\"&<rd>'x".to_owned(),
            "p@ss w/ö&quot;&amp;&lt;rd&gt;&#39;x".to_owned(),
        ] {
            assert_eq!(set.redact_text(&format!("a {form} b")), "a [redacted] b", "{form}");
        }
    }

    #[test]
    fn a_value_inside_a_longer_base64_text_is_found() {
        let set = secrets_of(&["correct-horse-battery"]);
        for before in ["", "u", "us", "use"] {
            for after in ["", ":", ":x", ":xy"] {
                let encoded = STANDARD.encode(format!("{before}correct-horse-battery{after}"));
                let clean = set.redact_text(&encoded);
                assert!(clean.contains("[redacted]") && clean.len() <= 10 + 9, "{encoded} -> {clean}");
            }
        }
    }

    #[test]
    fn lines_of_a_value_are_found_alone() {
        let set = secrets_of(&["-----BEGIN-----\r\nMIIabcdefgh\r\nshort\r\n-----END-----\n"]);
        assert_eq!(set.redact_text("x MIIabcdefgh y short"), "x [redacted] y short");
        assert_eq!(
            set.redact_text(r"-----BEGIN-----\r\nMIIabcdefgh\r\nshort\r\n-----END-----"),
            "[redacted]"
        );
    }

    #[test]
    fn overlapping_values_leave_no_rest() {
        let set = secrets_of(&["abcdef", "defghi", "abcd"]);
        assert_eq!(set.redact_text("1abcdefghi2"), "1[redacted]2");
        assert_eq!(set.redact_text("abcdabcdefg"), "[redacted][redacted]g");
    }

    #[test]
    fn short_values_and_none_change_nothing() {
        assert_eq!(secrets_of(&["abc", ""]).redact_text("abc"), "abc");
        assert_eq!(secrets_of(&[]).redact_text("abc"), "abc");
        assert_eq!(format!("{:?}", secrets_of(&["hunter2"])), "Secrets(..)");
    }

    #[test]
    fn names_are_judged_word_by_word() {
        for name in [
            "GITHUB_TOKEN",
            "GH_PAT",
            "AWS_SECRET_ACCESS_KEY",
            "npmAuth",
            "DB_PWD",
            "PGPASSWORD",
            "MYAPIKEY",
            "api-key",
            "SSH_AUTH_SOCK",
            "npm_config__authToken",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "KEYBOARD",
            "PWD",
            "OLDPWD",
            "PATTERN",
            "XDG_SESSION_ID",
            "",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_settings_are_told_from_the_rest() {
        let file = b"# TOKEN=comment\nNODE_ENV=development\nPORT=3000\nexport API_KEY='k-1234'\n\
            DATABASE_URL=postgres://me:pw%21x@localhost:5432/app\nSTRIPE=sk_live_51Habcdefghij0123\n\
            DIR=/usr/local/share/some/long/path0123\n//registry.example/:_authToken=npm_abc\nempty\n";
        let found: Vec<String> = secret_values_of_settings(file)
            .into_iter()
            .map(|v| String::from_utf8(v).expect("UTF-8"))
            .collect();
        assert_eq!(found, ["k-1234", "pw%21x", "sk_live_51Habcdefghij0123", "npm_abc"]);
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            text in "[abc]{0,60}", values in prop::collection::vec("[abc]{4,7}", 0..3), cuts in prop::collection::vec(0usize..61, 0..6),
        ) {
            let set = Secrets::new(&values.iter().map(|v| v.clone().into_bytes()).collect::<Vec<_>>());
            let whole = set.redact_bytes(text.as_bytes());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut stream, mut pieces, mut at) = (set.stream_redactor(), Vec::new(), 0);
            for cut in cuts {
                pieces.extend(stream.push_bytes(&text.as_bytes()[at..cut]));
                at = cut;
            }
            pieces.extend(stream.finish_stream());
            prop_assert_eq!(&pieces, &whole);
            let clean = String::from_utf8_lossy(&whole).into_owned();
            for value in &values {
                prop_assert!(!clean.replace("[redacted]", "|").contains(value.as_str()), "{} in {}", value, clean);
            }
        }
    }
}
