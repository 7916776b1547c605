//! Bytes of a file as text, and back, without losing one: what `read_file` shows is what `apply_patch` takes.
//!
//! UTF-8 and UTF-16 (with its byte order mark) are what they are; the mark is no part of the text. Everything
//! else that holds no NUL is read as ISO-8859-1, in which each byte is one character, so that untouched bytes
//! stay whatever they mean. [`encode_text`] is the exact inverse of [`decode_text`].

use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8 behind its byte order mark.
    #[serde(rename = "utf-8-bom")]
    Utf8Bom,
    /// UTF-16, little end first, behind its mark.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, big end first, behind its mark.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// No UTF-8: each byte is one character.
    #[serde(rename = "iso-8859-1")]
    Latin1,
    /// Holds NUL and is no UTF-16: no text.
    #[serde(rename = "binary")]
    Binary,
    /// Something that is shown whatever it holds: NUL and what is no UTF-8 stand as U+FFFD. Only read, never
    /// written.
    #[serde(rename = "utf-8-lossy")]
    Lossy,
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const LITTLE_MARK: &[u8] = b"\xff\xfe";
const BIG_MARK: &[u8] = b"\xfe\xff";

/// The text of a file, without a byte order mark; `None` where it is [`Encoding::Binary`].
pub fn decode_text(bytes: &[u8]) -> Option<(Encoding, String)> {
    let wide = [
        (LITTLE_MARK, Encoding::Utf16Le, u16::from_le_bytes as fn([u8; 2]) -> u16),
        (BIG_MARK, Encoding::Utf16Be, u16::from_be_bytes),
    ];
    for (mark, encoding, unit) in wide {
        if let Some(text) = bytes.strip_prefix(mark).and_then(|rest| from_utf16(rest, unit)) {
            return Some((encoding, text));
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(match text.strip_prefix('\u{feff}') {
            Some(rest) => (Encoding::Utf8Bom, rest.to_owned()),
            None => (Encoding::Utf8, text.to_owned()),
        }),
        Err(_) => Some((Encoding::Latin1, bytes.iter().copied().map(char::from).collect())),
    }
}

/// The beginning of a file up to the last line end in it; nothing where it has none.
pub fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end: &[u8] = match bytes {
        _ if bytes.starts_with(LITTLE_MARK) => b"\n\0",
        _ if bytes.starts_with(BIG_MARK) => b"\0\n",
        _ => b"\n",
    };
    let last = bytes.chunks_exact(end.len()).rposition(|unit| unit == end);
    &bytes[..last.map_or(0, |last| (last + 1) * end.len())]
}

/// The text of a log: what [`decode_text`] refuses is shown as far as it can be, its lines where they are.
pub fn decode_lossy(bytes: &[u8]) -> (Encoding, String) {
    decode_text(bytes)
        .unwrap_or_else(|| (Encoding::Lossy, String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")))
}

/// A character of value zero would not survive as text elsewhere, and is how UTF-32 looks from here.
fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok().filter(|text| !text.contains('\0'))
}

/// The bytes of a text. Refused (`patch.invalid`) where the encoding has no such character.
pub fn encode_text(encoding: Encoding, text: &str) -> Result<Vec<u8>> {
    let wide = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect()
    };
    match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Utf8Bom => Ok([UTF8_MARK, text.as_bytes()].concat()),
        Encoding::Utf16Le => Ok(wide(LITTLE_MARK, u16::to_le_bytes)),
        Encoding::Utf16Be => Ok(wide(BIG_MARK, u16::to_be_bytes)),
        Encoding::Latin1 => text.chars().map(|c| u8::try_from(c).map_err(|_| no_such_character(c))).collect(),
        Encoding::Binary | Encoding::Lossy => {
            Err(Failure::new(Code::PatchInvalid, "the file holds NUL bytes: it cannot be edited as text"))
        }
    }
}

fn no_such_character(character: char) -> Failure {
    let message = format!(
        "the file is no UTF-8 and is read as ISO-8859-1, byte by byte; {character:?} (U+{:04X}) cannot be written into it",
        u32::from(character)
    );
    Failure::new(Code::PatchInvalid, message)
        .advice("Nothing was changed. Write it with the characters that the file can hold.")
        .detail("encoding", Encoding::Latin1)
        .detail("character", character.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_is_told_and_comes_back() {
        let cases: [(&[u8], Encoding, &str); 9] = [
            (b"", Encoding::Utf8, ""),
            ("h\u{e9}".as_bytes(), Encoding::Utf8, "h\u{e9}"),
            (b"\xef\xbb\xbfx\n", Encoding::Utf8Bom, "x\n"),
            (b"\xff\xfea\0\n\0", Encoding::Utf16Le, "a\n"),
            (b"\xfe\xff\0a\xd8\x3d\xde\0", Encoding::Utf16Be, "a\u{1f600}"),
            (b"caf\xe9\n", Encoding::Latin1, "caf\u{e9}\n"),
            (b"\xff\xfeabc", Encoding::Latin1, "\u{ff}\u{fe}abc"),
            (b"\xff\xfe", Encoding::Utf16Le, ""),
            (b"\xff\xfe\x00\xd8", Encoding::Binary, ""),
        ];
        for (bytes, encoding, text) in cases {
            assert_eq!(
                decode_text(bytes).map_or(Encoding::Binary, |(encoding, _)| encoding),
                encoding,
                "{bytes:?}"
            );
            if let Some((encoding, found)) = decode_text(bytes) {
                assert_eq!(found, text);
                assert_eq!(encode_text(encoding, &found).expect("encodes"), bytes);
            }
        }
        assert!(decode_text(b"\xff\xfe\0\0a\0\0\0").is_none(), "UTF-32");
        let failure = encode_text(Encoding::Latin1, "snow \u{2603}").expect_err("no such byte");
        assert_eq!(failure.details()["character"], "\u{2603}");
    }

    #[test]
    fn a_cut_goes_through_no_line() {
        assert_eq!(whole_lines("a\n\u{e9}\n\u{20ac}".as_bytes()), "a\n\u{e9}\n".as_bytes());
        assert_eq!(whole_lines(b"\xff\xfea\0\n\0\x0a\x20\n"), b"\xff\xfea\0\n\0");
        assert_eq!(whole_lines(b"\xfe\xff\0a\0\n\x0a"), b"\xfe\xff\0a\0\n");
        assert!(whole_lines(b"none").is_empty() && whole_lines(b"").is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(bytes in prop::collection::vec(any::<u8>(), 0..64), mark in 0usize..4) {
            let bytes = [[b"".as_slice(), UTF8_MARK, LITTLE_MARK, BIG_MARK][mark], &bytes].concat();
            if let Some((encoding, text)) = decode_text(&bytes) {
                prop_assert_eq!(encode_text(encoding, &text).expect("encodes"), bytes);
            }
        }
    }
}
