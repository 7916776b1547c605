//! Bytes that are mostly text, in JSON: text, or `{"bytes":"base64"}` where they are not UTF-8. As
//! `#[serde(with = …)]` for a path of the operating system.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Text(String),
    Bytes { bytes: String },
}

pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn decode_base64(code: &str) -> Result<Vec<u8>, base64::DecodeError> {
    STANDARD.decode(code)
}

pub fn serialize_bytes<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serializer.serialize_str(text),
        Err(_) => Wire::Bytes { bytes: encode_base64(bytes) }.serialize(serializer),
    }
}

pub fn deserialize_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    match Wire::deserialize(deserializer)? {
        Wire::Text(text) => Ok(text.into_bytes()),
        Wire::Bytes { bytes } => decode_base64(&bytes).map_err(serde::de::Error::custom),
    }
}

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serialize_bytes(path.as_os_str().as_bytes(), serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    deserialize_bytes(deserializer).map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}
