//! What bytes are as text.

/// The encoding's name, and the text where it is one.
pub fn decode(bytes: &[u8]) -> (&'static str, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => ("utf-8", Some(text.to_owned())),
        Err(_) => ("binary", None),
    }
}
