//! What the mounts under a delivery can do, tried on them once, with objects of ours, before the first path
//! changes: a mount's name says nothing of it.
//!
//! Every way forward and back needs one thing: to give an object a name only if that is free, by a move that
//! does not replace or by a second link. Without it a save of the user's in the wrong moment would be
//! overwritten, and an object that was taken away could not come back.

use super::back::accept_absence;
use super::names::{trial_name, unready_name};
use super::run::{operation_failed, require_folder};
use crate::domain::delivery::receipt::{DeliveryPlan, Inode, Spot, Staged};
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Folder, TreeTop, cannot_be_done, or_absent};
use std::io;

/// Refuses a mount on which there would be no way back. Everything is staged, and stays as it is.
pub(super) fn try_mounts(top: &TreeTop, plan: &DeliveryPlan, staged: &Staged) -> Result<()> {
    let mut tried: Vec<u64> = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        let Some(spot) = &step.temporary else { continue };
        let room = require_folder(top, spot.folder.as_ref())?;
        if tried.contains(&room.inode.dev) {
            continue;
        }
        tried.push(room.inode.dev);
        let object = staged.objects.get(at).copied().flatten();
        try_names(&room, spot, object).map_err(|why| match cannot_be_done(&why) {
            true => refuse_mount(plan, step.change.path.to_string(), &why),
            false => operation_failed("try the file system of", &step.change.path, &why),
        })?;
    }
    Ok(())
}

/// A staged object goes to another name and comes back; where none is staged, one is made for this.
fn try_names(room: &Folder, spot: &Spot, staged: Option<Inode>) -> io::Result<()> {
    let (name, trial) = (spot.name.as_bytes(), trial_name(spot.name.as_bytes()));
    if let Some(inode) = staged {
        room.move_to(name, room, &trial)?;
        room.move_to(&trial, room, name)?;
        let now = room.look_up(name)?.map(|entry| entry.inode.ino);
        return if now == Some(inode.ino) {
            Ok(())
        } else {
            let why = "a file that gets another name gets another inode number too";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        };
    }
    let unready = unready_name(name);
    drop(room.create_file(&unready, 0o600)?);
    room.move_to(&unready, room, &trial)?;
    room.unlink(&trial)
}

/// Removes what a trial that failed has left. No path was changed yet, so that an object of ours under such a
/// name is of no use any more.
pub(super) fn clear_trials(top: &TreeTop, plan: &DeliveryPlan) -> Result<()> {
    for step in &plan.steps {
        let Some(spot) = &step.temporary else { continue };
        let found = or_absent(top.open_folder(spot.folder.as_ref()));
        let Some(room) = found.map_err(|e| Failure::io("tidy up in", &plan.top, &e))? else { continue };
        for name in [unready_name(spot.name.as_bytes()), trial_name(spot.name.as_bytes())] {
            room.unlink(&name)
                .or_else(accept_absence)
                .map_err(|e| Failure::io("tidy up in", &plan.top, &e))?;
        }
    }
    Ok(())
}

fn refuse_mount(plan: &DeliveryPlan, path: String, why: &io::Error) -> Failure {
    let top = plan.top.display();
    let message = format!(
        "nothing was written: the file system of {path} cannot give a file a name that has to be free, so there would be no way back ({why})"
    );
    Failure::new(Code::NotSupported, message).subject(path).remedy(
        format!("Keep the repository on another file system than that of {top}, or let a task deliver it to a branch."),
        ["git", "tender", "doctor"],
    )
}
