//! What the launcher and the supervisor say to each other over their socket.
//!
//! Launcher to supervisor: one line of JSON ([`Order`]), then `stdin_len` bytes of standard input. Supervisor
//! to launcher: one line of JSON ([`Answer`]) at the end. The launcher keeps its end open all the while: its
//! end of file is how the supervisor learns that the launcher is dead. Both sides are always the same binary,
//! so there is no version. Texts of the system are bytes and travel in base64.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::domain::value::bytes::{decode_base64, encode_base64};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::command::{End, Limits, Sandbox};

/// A text of the system, in base64 on the wire.
#[derive(Debug)]
pub(super) struct Text(pub(super) OsString);

impl Text {
    pub(super) fn of(text: impl AsRef<OsStr>) -> Self {
        Self(text.as_ref().to_owned())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode_base64(self.0.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = String::deserialize(deserializer)?;
        let bytes = decode_base64(&encoded).map_err(serde::de::Error::custom)?;
        Ok(Self(OsString::from_vec(bytes)))
    }
}

/// What to start and how long it may take.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Order {
    pub(super) argv: Vec<Text>,
    pub(super) cwd: Text,
    pub(super) env: Vec<(Text, Text)>,
    pub(super) stdin_len: u64,
    pub(super) timeout_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) limits: Limits,
    pub(super) sandbox: Sandbox,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    pub(super) end: End,
    pub(super) duration_us: u64,
    pub(super) survivors_killed: u32,
    pub(super) unkillable: u32,
}
