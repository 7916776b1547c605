//! Reading git objects, behind one small interface with two implementations.
//!
//! libgit2 answers in process and is used wherever it can: SHA-1 objects in a plain object directory. A kept
//! `git cat-file --batch` answers for everything else (SHA-256, a partial clone that must fetch, alternates
//! that libgit2 does not follow).

use super::command::{Conversation, Git, Quarantine};
use crate::domain::value::digest::{Mode, ObjectFormat, ObjectId};
use crate::error::{Code, Failure, Result};
use std::cell::RefCell;
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// One entry of a tree object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The name; one path component.
    pub name: Vec<u8>,
    /// `None` for a subtree.
    pub mode: Option<Mode>,
    pub id: ObjectId,
}

/// A reader of objects. Not shared between threads; open one each.
pub struct Objects {
    fast: Option<git2::Odb<'static>>,
    slow: RefCell<Option<Conversation>>,
    start: Box<dyn Fn() -> Result<Conversation>>,
    format: ObjectFormat,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("fast", &self.fast.is_some()).finish_non_exhaustive()
    }
}

impl Objects {
    /// Reads from a folder of objects and a quarantine; `git` begins a call on the same repository.
    pub(super) fn open_store(
        format: ObjectFormat,
        folder: PathBuf,
        quarantine: Option<&Quarantine>,
        git: impl Fn() -> Git + 'static,
    ) -> Self {
        let mut folders = vec![folder];
        folders.extend(quarantine.map(|q| q.objects.clone()));
        let fast = if format == ObjectFormat::Sha1 { fast_reader(&folders) } else { None };
        let quarantine = quarantine.cloned();
        let start = Box::new(move || {
            let git = match &quarantine {
                Some(quarantine) => git().with_quarantine(quarantine),
                None => git(),
            };
            git.args(["cat-file", "--batch"]).start_conversation()
        });
        Self { fast, slow: RefCell::new(None), start, format }
    }

    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// The bytes of a blob.
    pub fn read_blob(&self, id: &ObjectId) -> Result<Vec<u8>> {
        self.read_object(id, "blob")
    }

    /// The length of a blob in bytes.
    pub fn blob_size(&self, id: &ObjectId) -> Result<u64> {
        let header = self.fast.as_ref().and_then(|odb| {
            let oid = git2::Oid::from_str(id.as_str()).ok()?;
            odb.read_header(oid).ok().filter(|(_, kind)| *kind == git2::ObjectType::Blob)
        });
        match header {
            Some((size, _)) => Ok(size as u64),
            None => Ok(self.read_blob(id)?.len() as u64),
        }
    }

    /// The entries of a tree, in git's order.
    pub fn read_tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>> {
        parse_tree(&self.read_object(id, "tree")?, self.format.hex_len() / 2)
            .ok_or_else(|| Failure::new(Code::Io, format!("the tree {id} is damaged")).subject(id.as_str()))
    }

    /// The tree of a commit that can be read in process; `None` for all else.
    pub(super) fn tree_of_commit(&self, id: &ObjectId) -> Option<ObjectId> {
        let (kind, bytes) = self.read_fast(id)?;
        let header = bytes.strip_prefix(b"tree ").filter(|_| kind == git2::ObjectType::Commit)?;
        std::str::from_utf8(header.get(..self.format.hex_len())?).ok()?.parse().ok()
    }

    fn read_object(&self, id: &ObjectId, kind: &str) -> Result<Vec<u8>> {
        if let Some((found, bytes)) = self.read_fast(id) {
            return check_kind(id, kind, found.str(), bytes);
        }
        let (found, bytes) = self.read_slow(id)?;
        check_kind(id, kind, &found, bytes)
    }

    fn read_fast(&self, id: &ObjectId) -> Option<(git2::ObjectType, Vec<u8>)> {
        let odb = self.fast.as_ref()?;
        let oid = git2::Oid::from_str(id.as_str()).ok()?;
        let object = odb.read(oid).ok()?;
        Some((object.kind(), object.data().to_vec()))
    }

    fn read_slow(&self, id: &ObjectId) -> Result<(String, Vec<u8>)> {
        let lost = |e: std::io::Error| {
            Failure::new(Code::Io, format!("git cat-file broke off while reading {id}: {e}"))
        };
        let mut slot = self.slow.borrow_mut();
        let git = match slot.as_mut() {
            Some(git) => git,
            None => slot.insert((self.start)()?),
        };
        git.send_request(format!("{id}\n").as_bytes()).map_err(lost)?;
        let mut header = String::new();
        git.output.read_line(&mut header).map_err(lost)?;
        let fields: Vec<&str> = header.split_whitespace().collect();
        let [_, kind, size] = fields.as_slice() else {
            return Err(Failure::new(Code::NotFound, format!("the repository has no object {id}"))
                .subject(id.as_str())
                .remedy("A shallow or partial clone may lack it; fetch it.", ["git", "fetch", "--refetch"]));
        };
        let size: usize =
            size.parse().map_err(|_| Failure::new(Code::Io, format!("git cat-file answered {header:?}")))?;
        let mut bytes = vec![0; size];
        git.output.read_exact(&mut bytes).map_err(lost)?;
        let mut newline = [0u8; 1];
        git.output.read_exact(&mut newline).map_err(lost)?;
        Ok(((*kind).to_owned(), bytes))
    }
}

fn fast_reader(folders: &[PathBuf]) -> Option<git2::Odb<'static>> {
    let odb = git2::Odb::new().ok()?;
    for folder in folders {
        odb.add_disk_alternate(folder.to_str()?).ok()?;
    }
    Some(odb)
}

fn check_kind(id: &ObjectId, wanted: &str, found: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if wanted == found {
        return Ok(bytes);
    }
    Err(Failure::new(Code::Io, format!("the object {id} is a {found}, where a {wanted} was expected"))
        .subject(id.as_str())
        .expected(wanted, found))
}

/// Entries of a raw tree: `mode SP name NUL id` each. `None` where it is cut or has a mode that git does not
/// write.
fn parse_tree(mut raw: &[u8], id_len: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !raw.is_empty() {
        let space = raw.iter().position(|b| *b == b' ')?;
        let nul = raw.iter().position(|b| *b == 0)?;
        let id = raw.get(nul + 1..nul + 1 + id_len)?;
        let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
        let mode = match &raw[..space] {
            b"40000" | b"040000" => None,
            mode => Some(std::str::from_utf8(mode).ok()?.parse().ok()?),
        };
        entries.push(TreeEntry { name: raw.get(space + 1..nul)?.to_vec(), mode, id: hex.parse().ok()? });
        raw = &raw[nul + 1 + id_len..];
    }
    Some(entries)
}
