//! The outputs of a run: none of an earlier run is there before it, and what is there afterwards is counted.
//!
//! They are read beneath descriptors and without following links, since a candidate decides what lies there.

use super::formats::{Counted, MOST_BYTES, WrittenTo};
use super::manifest::{DeclaredOutput, Manifest, OUT, Pass};
use crate::domain::proof::evidence::Produced;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::beneath::{FolderCursor, remove_content};
use crate::process::FinishedRun;
use std::io::Read;
use std::path::Path;

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
    for output in outputs.iter().filter(|output| !output.path.is_empty() && !output.path.starts_with(OUT)) {
        let path = RepoPath::new(output.path.as_bytes())?;
        let Some(folder) = cursor.folder(&path)? else { continue };
        if folder.unlink(path.file_name()).is_err()
            && let Ok(child) = folder.subfolder(path.file_name())
        {
            remove_content(&child)?;
            let _ = folder.remove_folder(path.file_name());
        }
    }
    Ok(())
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
        let count_cases = output.format.count_cases;
        let read = match output.format.written_to {
            WrittenTo::StandardOutput if finished.stdout.truncated => {
                Err("standard output was cut at its cap, so its cases cannot be counted".to_owned())
            }
            WrittenTo::StandardOutput => count_cases(&finished.stdout.bytes).map(Some),
            WrittenTo::File => match read_output(&output.path, folders)? {
                Err(why) => Err(why),
                Ok(None) if output.required => Err(format!("the output {} was not made", output.path)),
                Ok(None) => Ok(None),
                Ok(Some(bytes)) => {
                    let (sha256, length) = (Sha256::of(&bytes), bytes.len() as u64);
                    produced.push(Produced { path: output.path.clone(), sha256, bytes: length });
                    count_cases(&bytes).map(Some).map_err(|why| format!("the output {}: {why}", output.path))
                }
            },
        };
        match read {
            Err(why) => return Ok((Err(why), produced)),
            Ok(Some(counted)) => total.get_or_insert_default().add(counted),
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
    let Some(parent) = cursor.folder(&place)? else { return Ok(Ok(None)) };
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
