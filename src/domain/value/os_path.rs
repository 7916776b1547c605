//! A path of the operating system in JSON: text, or `{"bytes":"base64"}` where it is not UTF-8. For
//! `#[serde(with = …)]`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Wire {
    Text(String),
    Bytes { bytes: String },
}

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    let wire = match path.to_str() {
        Some(text) => Wire::Text(text.to_owned()),
        None => Wire::Bytes { bytes: STANDARD.encode(path.as_os_str().as_bytes()) },
    };
    wire.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Wire::deserialize(deserializer)? {
        Wire::Text(text) => PathBuf::from(text),
        Wire::Bytes { bytes } => {
            let bytes = STANDARD.decode(bytes).map_err(serde::de::Error::custom)?;
            PathBuf::from(OsStr::from_bytes(&bytes))
        }
    })
}
