//! `list_files`: the files of the worktree or of one directory, in order, within bounds that the answer
//! names.

use super::place::{Place, refuse_too_long};
use crate::domain::value::outside::Origin;
use crate::domain::value::repo_path::{RepoPath, display_bytes};
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Folder, file_type, walk_what_can_be_seen};
use rustix::fs::{FileType, Stat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most files of one answer.
pub const MOST_FILES: usize = 1_000;
/// The most files that are counted.
const MOST_COUNTED: u64 = 500_000;

/// Arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFilesArguments {
    /// A directory of the worktree; all of it where it is left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// What was listed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListFilesAnswer {
    /// The directory; empty for the top.
    pub path: String,
    /// The first files, by path.
    pub files: Vec<ListedFile>,
    /// How many files there are that may be read.
    pub total: u64,
    /// True where not all of them are in `files`: list a directory beneath.
    pub truncated: bool,
    /// Directories that cannot be looked into: what is in them is in neither `files` nor `total`.
    pub skipped: u64,
    /// Where the names came from.
    pub origin: Origin,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedFile {
    /// Its path from the top of the worktree.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// `file`, `link` or `other`.
    pub kind: String,
}

/// Lists a directory and everything beneath it.
pub fn list_folder(place: &Place<'_>, path: Option<&RepoPath>) -> Result<ListFilesAnswer> {
    let (mut files, mut total) = (Vec::new(), 0u64);
    let walked = each_file(place, path, &mut |_, found, stat| {
        total += 1;
        if files.len() < MOST_FILES {
            let kind = match file_type(stat) {
                FileType::RegularFile => "file",
                FileType::Symlink => "link",
                _ => "other",
            };
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            files.push(ListedFile { path: found.to_string(), bytes, kind: kind.to_owned() });
        }
        Ok(total < MOST_COUNTED)
    })?;
    // Whether one that may not be read is there is nobody's business.
    if path.is_some() && total + walked.skipped == 0 {
        return Err(no_folder(path));
    }
    let shown = path.map(ToString::to_string).unwrap_or_default();
    let truncated = !walked.complete || total > files.len() as u64;
    let origin = Origin::new("listing", shown.clone());
    Ok(ListFilesAnswer { path: shown, files, total, truncated, skipped: walked.skipped, origin })
}

/// What is called for each file: the directory that holds it, its path, what it is. False: enough.
pub type Each<'a> = dyn FnMut(&Folder, &RepoPath, &Stat) -> Result<bool> + 'a;

/// How far a walk came.
#[derive(Debug, Clone, Copy)]
pub struct Walked {
    /// False where whoever was called had enough.
    pub complete: bool,
    /// What could not be looked at.
    pub skipped: u64,
}

/// Calls `each` for every file that may be read beneath a directory, by path. Git's own files are none.
pub fn each_file(place: &Place<'_>, path: Option<&RepoPath>, each: &mut Each<'_>) -> Result<Walked> {
    let Some(dir) = place.open_folder(path)? else { return Err(no_folder(path)) };
    let (mut enough, mut too_deep) = (false, 0);
    let barred = walk_what_can_be_seen(&dir, &mut |dir, name, stat| {
        let found = match path {
            Some(path) => path.join_below(name),
            None => RepoPath::new(name),
        };
        // A name that no repository can hold (`.git` in any spelling) is not the worker's, with all beneath
        // it.
        let Ok(found) = found else { return Ok(false) };
        if enough {
            return Ok(false);
        }
        if file_type(stat) == FileType::Directory {
            // No tool takes a path that is longer.
            let is_too_deep = refuse_too_long(&found, Code::ArgumentsInvalid).is_err();
            let may_hold = place.may_hold(&found);
            too_deep += u64::from(is_too_deep && may_hold);
            return Ok(may_hold && !is_too_deep);
        }
        if place.may_read(&found) {
            enough = !each(dir, &found, stat)?;
        }
        Ok(false)
    })?;
    Ok(Walked { complete: !enough, skipped: barred + too_deep })
}

/// There is no such directory, or none with files that may be read.
pub fn no_folder(path: Option<&RepoPath>) -> Failure {
    let shown = path.map(|path| display_bytes(path.as_bytes())).unwrap_or_default();
    Failure::new(Code::NotFound, format!("the worktree has no directory {shown} with files that may be read"))
        .subject(shown)
}
