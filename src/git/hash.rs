//! The id of a blob that need not be stored, in the hash function of a repository. SHA-1 is libgit2's, which
//! refuses bytes that were made to collide.

use crate::domain::value::digest::{ObjectFormat, ObjectId, Sha256};
use crate::error::{Failure, Result};
use sha2::Digest;

impl ObjectFormat {
    /// The id that git gives to a blob of these bytes, without any conversion.
    pub fn blob_id(self, bytes: &[u8]) -> Result<ObjectId> {
        match self {
            Self::Sha1 => git2::Oid::hash_object(git2::ObjectType::Blob, bytes)
                .map_err(|e| Failure::internal(format!("cannot hash a blob: {e}")))?
                .to_string()
                .parse(),
            Self::Sha256 => {
                let mut hasher = sha2::Sha256::default();
                hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
                hasher.update(bytes);
                Sha256::from_hasher(hasher).to_string().parse()
            }
        }
    }
}
