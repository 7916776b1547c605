//! What a verifier's run is confined to: it reads the system, the programs of the caller's `PATH` and what
//! its manifest names; it writes its slot, its private home and its output. The live tree, other slots and
//! other tasks are in none of these.

use super::Host;
use super::load::Verifier;
use super::reads::real_path;
use crate::error::Result;
use crate::process::sandbox::program_folders;
use crate::process::{Confinement, PrivateHome, SandboxGrant, confinement_refused};
use std::path::{Path, PathBuf};

/// The confinement of one run; `None` where none was asked for.
///
/// # Errors
/// `sandbox.unavailable` where one was, and this machine cannot give it.
pub(super) fn confine_run(
    host: &Host<'_>,
    verifier: &Verifier,
    home: &PrivateHome,
    (live, tree, out): (Option<&Path>, &Path, &Path),
) -> Result<Option<Confinement>> {
    let (layer, bubblewrap) = match host.sandbox {
        SandboxGrant::Unconfined => return Ok(None),
        SandboxGrant::Refused(why) => return Err(confinement_refused(why)),
        SandboxGrant::Confined { layer, bubblewrap } => (*layer, bubblewrap.clone()),
    };
    // A program that lies in the live tree or beside the tasks is not shown, whatever `PATH` says.
    let ours = host.slots.parent();
    let is_shown = |folder: &PathBuf| !live.into_iter().chain(ours).any(|hidden| folder.starts_with(hidden));
    let programs = program_folders(host.var("PATH").unwrap_or_default()).into_iter().filter(is_shown);
    let named = verifier.manifest.read.iter().map(|entry| real_path(host, entry));
    let read = programs.chain(named).flat_map(with_real_place).collect();
    let write = [tree, home.home(), home.tmp(), out].map(Path::to_path_buf).to_vec();
    let bare = ours.map(Path::to_path_buf).into_iter().collect();
    Ok(Some(Confinement { layer, bubblewrap, read, write, bare }))
}

/// A path as it is named, and where links lead from it.
fn with_real_place(path: PathBuf) -> Vec<PathBuf> {
    let real = path.canonicalize().ok().filter(|real| *real != path);
    std::iter::once(path).chain(real).collect()
}
