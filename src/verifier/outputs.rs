//! The outputs of a run: none of an earlier run is there before it, and what is there afterwards is counted.
//!
//! They are read beneath descriptors and without following links, since a candidate decides what lies there.

use super::formats::{Counted, Lack, MOST_BYTES};
use super::manifest::{DeclaredOutput, Manifest, OUT, Pass};
use crate::domain::proof::evidence::Produced;
use crate::domain::proof::verdict::Checks;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::beneath::{Folder, FolderCursor, file_type, remove_content, walk_folder};
use crate::process::FinishedRun;
use rustix::fs::FileType;
use std::io::Read;
use std::path::Path;

/// How many files one pattern may name.
const MOST_FILES: usize = 20_000;

/// The folders that outputs lie in.
#[derive(Clone, Copy)]
pub(super) struct OutputFolders<'a> {
    /// The slot's tree.
    pub tree: &'a Path,
    /// The run's output directory.
    pub out: &'a Path,
}

/// An output of an earlier run must never be taken for one of this.
pub(super) fn remove_old_outputs(outputs: &[DeclaredOutput], tree: &Path) -> Result<()> {
    let mut cursor = FolderCursor::new(tree)?;
    let folders = OutputFolders { tree, out: tree };
    for output in outputs.iter().filter(|output| !output.path.is_empty() && !output.path.starts_with(OUT)) {
        for path in paths_of_output(output, folders)? {
            let path = RepoPath::new(path.as_bytes())?;
            let Some(folder) = cursor.folder_of(&path)? else { continue };
            if folder.unlink(path.file_name()).is_err()
                && let Ok(child) = folder.open_subfolder(path.file_name())
            {
                remove_content(&child)?;
                let _ = folder.remove_folder(path.file_name());
            }
        }
    }
    Ok(())
}

/// The paths that an output stands for: its own, or those of what its pattern finds now, in order.
fn paths_of_output(output: &DeclaredOutput, folders: OutputFolders<'_>) -> Result<Vec<String>> {
    let Some(pattern) = &output.pattern else { return Ok(vec![output.path.clone()]) };
    let (root, prefix) = match output.path.strip_prefix(OUT) {
        Some(_) => (folders.out, format!("{OUT}/")),
        None => (folders.tree, String::new()),
    };
    let mut found = Vec::new();
    let root = Folder::open_path(root)?;
    walk_folder(&root, &mut |_, path, stat| {
        if file_type(stat) == FileType::Directory {
            return Ok(RepoPath::new(path).is_ok_and(|path| pattern.may_hold(&path)));
        }
        if pattern.matches_bytes(path)
            && let Ok(path) = std::str::from_utf8(path)
        {
            found.push(format!("{prefix}{path}"));
        }
        Ok(false)
    })?;
    Ok(found)
}

/// Counts what the outputs say. The inner failure is the run's: an output that is missing or cannot be read.
#[expect(clippy::type_complexity, reason = "a count that may be absent or refused, and what was read for it")]
pub(super) fn read_outputs(
    manifest: &Manifest,
    finished: &FinishedRun,
    folders: OutputFolders<'_>,
) -> Result<(std::result::Result<Option<Counted>, String>, Vec<Produced>)> {
    let mut total: Option<Counted> = None;
    let mut produced = Vec::new();
    for output in &manifest.outputs {
        let read = match output.is_standard_output() {
            true if finished.stdout.truncated => {
                Err("standard output was cut at its cap, so its cases cannot be counted".to_owned())
            }
            true => (output.format.read_results)(&finished.stdout.bytes).map(Some),
            false => count_files(output, folders, &mut produced)?,
        };
        match read {
            Err(why) => return Ok((Err(why), produced)),
            Ok(None) if output.required => {
                return Ok((Err(format!("the output {} was not made", output.path)), produced));
            }
            Ok(Some(mut counted)) => {
                counted.lacking = find_lack(output, manifest, &counted);
                total.get_or_insert_default().add(counted);
            }
            Ok(None) => {}
        }
    }
    if total.is_none() && manifest.pass == Pass::Outputs {
        return Ok((Err("none of the outputs that count was made".to_owned()), produced));
    }
    if let Some(counted) = &mut total {
        counted.name_relative_to(folders.tree);
    }
    Ok((Ok(total), produced))
}

/// The sum of an output's files; `None` where there is none.
fn count_files(
    output: &DeclaredOutput,
    folders: OutputFolders<'_>,
    produced: &mut Vec<Produced>,
) -> Result<std::result::Result<Option<Counted>, String>> {
    let paths = paths_of_output(output, folders)?;
    if paths.len() > MOST_FILES {
        return Ok(Err(format!(
            "{} names {} files; at most {MOST_FILES} are read",
            output.path,
            paths.len()
        )));
    }
    let mut sum: Option<Counted> = None;
    for path in paths {
        let bytes = match read_output(&path, folders)? {
            Err(why) => return Ok(Err(why)),
            Ok(None) if output.pattern.is_some() => return Ok(Err(format!("the output {path} is no file"))),
            Ok(None) => continue,
            Ok(Some(bytes)) => bytes,
        };
        let (sha256, length) = (Sha256::of(&bytes), bytes.len() as u64);
        produced.push(Produced { path: path.clone(), sha256, bytes: length });
        match (output.format.read_results)(&bytes) {
            Err(why) => return Ok(Err(format!("the output {path}: {why}"))),
            Ok(counted) => sum.get_or_insert_default().add(counted),
        }
    }
    Ok(Ok(sum))
}

/// What an output lacks for a pass: its own `min_checks`, and one case where it is required.
fn find_lack(output: &DeclaredOutput, manifest: &Manifest, counted: &Counted) -> Option<Lack> {
    let least = if output.required && output.format.counts {
        manifest.min_checks.map_or(0, |least| least.min(1))
    } else {
        0
    };
    let wanted = output.min_checks.unwrap_or(least);
    let name = if output.path.is_empty() { "standard output" } else { &output.path };
    let Checks { ran, skipped, .. } = counted.checks;
    (ran < wanted).then(|| Lack { output: name.to_owned(), ran, skipped, wanted })
}

/// The bytes of an output; `None` where it is missing, or something that is no file stands in the way.
fn read_output(
    path: &str,
    folders: OutputFolders<'_>,
) -> Result<std::result::Result<Option<Vec<u8>>, String>> {
    match path.strip_prefix(OUT) {
        Some(below) => read_beneath(folders.out, below.trim_start_matches('/'), MOST_BYTES as u64),
        None => read_beneath(folders.tree, path, MOST_BYTES as u64),
    }
}

/// The bytes of a file; `None` where it is missing, and the reason in words where it is none or too large.
pub(super) fn read_beneath(
    folder: &Path,
    path: &str,
    most: u64,
) -> Result<std::result::Result<Option<Vec<u8>>, String>> {
    let place = RepoPath::new(path.as_bytes())?;
    let mut cursor = FolderCursor::new(folder)?;
    let Some(parent) = cursor.folder_of(&place)? else { return Ok(Ok(None)) };
    let Ok(file) = parent.open_file(place.file_name()) else { return Ok(Ok(None)) };
    let failed = |e: std::io::Error| Failure::io("read", place.as_path(), &e);
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(Err(format!("{path} is no file")));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Ok(Err(format!("{path} has more than {most} bytes")));
    }
    Ok(Ok(Some(bytes)))
}
