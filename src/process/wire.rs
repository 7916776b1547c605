//! What the launcher and the supervisor say to each other over their socket.
//!
//! - Launcher to supervisor: one line of JSON ([`SupervisorOrder`]), then `stdin_len` bytes of standard
//!   input.
//! - Supervisor to launcher: one line of JSON ([`SupervisorAnswer`]) at the end.
//!
//! The launcher keeps its end open until then: the end of file tells the supervisor that the launcher is
//! dead. Both sides are the same binary, so there is no version. Texts of the system are bytes and travel in
//! base64.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::domain::value::bytes::{decode_base64, encode_base64};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::command::{ProcessLimits, ProgramEnd, SandboxLayer};

/// A text of the system, in base64 on the wire.
#[derive(Debug)]
pub(super) struct OsText(pub(super) OsString);

impl OsText {
    pub(super) fn from_os(text: impl AsRef<OsStr>) -> Self {
        Self(text.as_ref().to_owned())
    }
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode_base64(self.0.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = String::deserialize(deserializer)?;
        let bytes = decode_base64(&encoded).map_err(serde::de::Error::custom)?;
        Ok(Self(OsString::from_vec(bytes)))
    }
}

/// What to start and how long it may take.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SupervisorOrder {
    pub(super) argv: Vec<OsText>,
    pub(super) cwd: OsText,
    pub(super) env: Vec<(OsText, OsText)>,
    pub(super) stdin_len: u64,
    pub(super) timeout_ms: u64,
    pub(super) grace_ms: u64,
    pub(super) limits: ProcessLimits,
    /// What the program is confined by beside namespaces.
    pub(super) confinement: Option<ConfinementOrder>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfinementOrder {
    pub(super) layer: SandboxLayer,
    pub(super) read: Vec<OsText>,
    pub(super) write: Vec<OsText>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SupervisorAnswer {
    pub(super) end: ProgramEnd,
    pub(super) duration_us: u64,
    pub(super) survivors_killed: u32,
    pub(super) unkillable: u32,
}
