//! Code that a run would take from the user's live tree, from another worktree or from another slot.
//!
//! An editable install, a linked package or an absolute path leads out of the slot, and then the run judges
//! what the user is working on and not the candidate. Without a sandbox nothing keeps a program from opening
//! such a file, so before each run everything is looked at that is known to lead a tool there. Each reader
//! gives leads: what points where. Whether a lead is a hit is decided in one place (`trees`).
//!
//! Nothing of the candidate's is run for it: only an interpreter outside of the slot is asked, in an empty
//! folder. A tool that is not in use costs a few looks at names that are not there.

mod cargo;
mod cmake;
mod commands;
mod environment;
mod go;
mod kept;
mod links;
mod node;
mod planned;
mod python;
mod shadow;
mod site;
mod trees;

use super::load::Verifier;
use super::{Host, VerificationSubject, tools};
use crate::error::Result;
use crate::git::tree::TreeFile;
use crate::process::PrivateHome;
use planned::{Lead, PlannedRun};
use std::path::Path;
use trees::{OtherTrees, RunSurroundings};

/// How the reason of such a run begins.
const REASON: &str = "it would judge the live tree";

/// A run's place: the tree of its slot, what is shown there, and its home.
#[derive(Clone, Copy)]
pub(super) struct RunPlace<'a> {
    pub(super) slot: &'a Path,
    pub(super) shown: &'a [TreeFile],
    pub(super) home: &'a PrivateHome,
}

/// What a verifier's run of these arguments would load from the user's trees, as the reason of its error.
pub(super) fn find_foreign_code(
    subject: &VerificationSubject<'_>,
    verifier: &Verifier,
    host: &Host<'_>,
    place: RunPlace<'_>,
    argv: &[String],
) -> Result<Option<String>> {
    let slot = place.slot.canonicalize().unwrap_or_else(|_| place.slot.to_path_buf());
    let surroundings = RunSurroundings {
        slots: host.slots,
        own_slot: place.slot.parent().unwrap_or(place.slot),
        home: host.home,
        read: &verifier.manifest.read,
    };
    let trees = OtherTrees::around_run(subject.repository, &surroundings);
    let env = tools::environment(host, verifier, place.home);
    let run =
        PlannedRun { argv, env: &env, slot: &slot, shown: place.shown, scratch: &verifier.manifest.scratch };
    let asker = python::Asker { host, tmp: place.home.tmp(), read: &verifier.manifest.read };
    let readers: [fn(&PlannedRun<'_>) -> Vec<Lead>; 7] = [
        environment::leads_of_variables,
        environment::leads_of_commands,
        links::leads_of_links,
        node::leads_of_modules,
        cargo::leads_of_manifests,
        go::leads_of_modules,
        cmake::leads_of_builds,
    ];
    for leads in readers {
        if let Some(hit) = trees.first_hit(&leads(&run))? {
            return Ok(Some(format!("{REASON}: {hit}")));
        }
    }
    let hit = trees.first_hit(&python::leads_of_interpreters(&run, &asker)?)?;
    Ok(hit.map(|hit| format!("{REASON}: {hit}")))
}
