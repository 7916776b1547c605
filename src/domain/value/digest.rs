//! Digests and git object ids, and the canonical bytes that digests are taken of.
//!
//! A [`Sha256`] identifies bytes for us; an [`ObjectId`] identifies an object for git, in the hash function
//! of the repository. What binds a change or a piece of evidence always carries both, and both must match.

use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest;
use std::fmt;
use std::str::FromStr;

/// A sha256 digest; lower-case hex in text and JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Of what these parts make when they are put together.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = sha2::Sha256::new();
        parts.into_iter().for_each(|part| hasher.update(part));
        Self::from_hasher(hasher)
    }

    /// The digest of the canonical JSON of `value`.
    pub fn of_json(value: &impl Serialize) -> Self {
        Self::of(&canonical_json(value))
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From its bytes; `None` where they are not as many as a digest has.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From the finished state of a streaming hasher.
    pub fn from_hasher(hasher: sha2::Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            text.extend([byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)])));
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        let bad =
            || Failure::new(Code::ArgumentsInvalid, format!("{text:?} is not a sha256 in lower-case hex"));
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(bad());
        }
        let mut out = [0u8; 32];
        for (slot, at) in out.iter_mut().zip((0..64).step_by(2)) {
            *slot = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(out))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The hash function that a repository names its objects with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Length of an id in hex digits.
    pub fn hex_len(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }
}

/// The id of a git object (blob, tree or commit): lower-case hex in the repository's hash function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ObjectId(String);

impl ObjectId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for the id of zeros that git writes where there is no object.
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ObjectId {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        let hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if hex && (text.len() == 40 || text.len() == 64) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Failure::new(Code::ArgumentsInvalid, format!("{text:?} is not a git object id")))
        }
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The kind of object at a path: git's four modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// `100644`
    File,
    /// `100755`
    Executable,
    /// `120000`
    Symlink,
    /// `160000`, a commit of another repository.
    Gitlink,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// True for the two modes of a regular file.
    pub fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "100644" | "100664" => Ok(Self::File),
            "100755" => Ok(Self::Executable),
            "120000" => Ok(Self::Symlink),
            "160000" => Ok(Self::Gitlink),
            _ => {
                Err(Failure::new(Code::PatchInvalid, format!("{text:?} is not a file mode that git tracks")))
            }
        }
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The object at a path of a tree or an index: mode and blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeObject {
    pub mode: Mode,
    #[serde(rename = "gitBlob")]
    pub id: ObjectId,
}

/// The state of one path in a tree, in every digest that we know. Two states are the same only if
/// all of it is: the git id alone may be SHA-1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileState {
    pub mode: Mode,
    /// Git's id of the blob.
    pub git_blob: ObjectId,
    /// The sha256 of the blob's bytes (a link's bytes are its target).
    pub sha256: Sha256,
}

impl FileState {
    /// As a tree has it: mode and object.
    pub fn tree_object(&self) -> TreeObject {
        TreeObject { mode: self.mode, id: self.git_blob.clone() }
    }
}

/// The canonical JSON (RFC 8785) of `value`: what every digest of a document is taken of.
///
/// Values of this crate's own types always serialize; an unserializable value gives the bytes `null`.
pub fn canonical_json(value: &impl Serialize) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| b"null".to_vec())
}

#[cfg(test)]
mod tests {
    use crate::domain::value::digest::*;

    #[test]
    fn blob_ids_are_gits() {
        let id = ObjectFormat::Sha1.blob_id(b"hello\n").expect("hashes");
        assert_eq!(id.as_str(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let id = ObjectFormat::Sha256.blob_id(b"hello\n").expect("hashes");
        assert_eq!(id.as_str(), "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4");
    }

    #[test]
    fn canonical_json_sorts_keys_and_keeps_unicode() {
        let value = serde_json::json!({"b": 1, "a": "修"});
        assert_eq!(canonical_json(&value), "{\"a\":\"修\",\"b\":1}".as_bytes());
    }

    #[test]
    fn hex_is_lower_case_only() {
        let digest = Sha256::of(b"");
        let text = digest.to_string();
        assert_eq!(text.parse::<Sha256>().expect("parses"), digest);
        assert!(text.to_uppercase().parse::<Sha256>().is_err());
        assert!("é".repeat(32).parse::<Sha256>().is_err());
    }
}
