//! Before the first path changes: the plan with its temporary names, the new objects on disk, the old
//! bytes stored.

use super::look::{is_barred, made_way};
use super::run::{operation_failed, require_folder};
use super::{Delivery, Keeper, attributes};
use crate::domain::delivery::receipt::{
    Attributes, DeliveryPlan, IndexPlan, Inode, Kept, Note, PlannedStep, Raw, Spot, Staged,
};
use crate::domain::delivery::{ClearedPlan, IndexStep, Item, LiveKind, Step};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Failure, Result};
use crate::git::beneath::{Folder, TreeTop, or_absent};
use crate::git::index_write::lock_name;
use crate::git::live::{Body, BodyPermissions, Materials};
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};

/// Stored preimages are put together up to this size.
const CHUNK: usize = 64 << 20;

/// The whole plan: what happens at each path, in which order, under which temporary names.
pub(super) fn lay_out(
    cleared: ClearedPlan,
    materials: &Materials,
    delivery: Delivery<'_>,
) -> Result<DeliveryPlan> {
    let items = cleared.plan().items();
    if items.len() != materials.bodies.len() {
        return Err(Failure::internal("the bytes of a delivery were not made from its plan"));
    }
    let filled: HashSet<&RepoPath> =
        items.iter().filter(|i| i.change.new.is_some()).map(|i| &i.change.path).collect();
    let prefix = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let mut order: Vec<usize> = (0..items.len()).collect();
    // What goes away makes room for what comes.
    order.sort_by_key(|at| match items[*at].step {
        Step::Delete => 0,
        Step::Replace => 1,
        Step::Create => 2,
        Step::Already => 3,
    });
    let mut steps = Vec::with_capacity(items.len());
    let mut folders = Vec::new();
    for at in order {
        let item = &items[at];
        let temporary = match item.step {
            Step::Already => None,
            step => Some(Spot {
                folder: waiting_room(&materials.top, step, &item.change.path, &filled)?,
                name: format!(".tender-{prefix:016x}-{at}"),
            }),
        };
        if item.step == Step::Create {
            folders.extend(missing_above(&materials.top, &item.change.path)?);
        }
        let mut notes = match &item.kind {
            LiveKind::File(file) if file.links > 1 && item.step == Step::Replace => {
                vec![Note::HardLinkBroken]
            }
            _ => Vec::new(),
        };
        notes.extend(item.leaves_bit().then_some(Note::ExecutableBitLeft));
        let after = materials.bodies[at].as_ref().map(raw_of);
        let before = state_before(item);
        steps.push(PlannedStep {
            change: item.change.clone(),
            step: item.step,
            before,
            after,
            temporary,
            notes,
        });
    }
    folders.sort();
    folders.dedup();
    let manifest_sha256 = cleared.manifest();
    Ok(DeliveryPlan {
        id: delivery.id.to_owned(),
        top: delivery.top.to_path_buf(),
        manifest_sha256,
        steps,
        folders,
        index: index_plan(cleared.plan().index(), delivery, prefix),
    })
}

fn index_plan(steps: &[IndexStep], delivery: Delivery<'_>, unique: u64) -> Option<IndexPlan> {
    (!steps.is_empty()).then(|| IndexPlan {
        git_dir: delivery.repository.git_dir().to_path_buf(),
        lock: lock_name(&format!("{unique:016x}")),
        steps: steps.to_vec(),
    })
}

/// The directory of a step's temporary name. It has to exist before the delivery and to survive it.
fn waiting_room(
    top: &TreeTop,
    step: Step,
    path: &RepoPath,
    filled: &HashSet<&RepoPath>,
) -> Result<Option<RepoPath>> {
    match step {
        // A new directory inherits group and ACL from the nearest one that exists, so a file staged there
        // gets the same.
        Step::Create => {
            let mut last = None;
            for above in path.ancestors() {
                if !is_there(top, &above)? {
                    break;
                }
                last = Some(above);
            }
            Ok(last)
        }
        // A directory that makes room for a file cannot keep what was in it.
        Step::Delete => match path.ancestors().into_iter().find(|above| filled.contains(above)) {
            Some(replaced) => Ok(replaced.parent()),
            None => Ok(path.parent()),
        },
        Step::Replace | Step::Already => Ok(path.parent()),
    }
}

fn missing_above(top: &TreeTop, path: &RepoPath) -> Result<Vec<RepoPath>> {
    let mut missing = Vec::new();
    for above in path.ancestors() {
        if !is_there(top, &above)? {
            missing.push(above);
        }
    }
    Ok(missing)
}

fn is_there(top: &TreeTop, folder: &RepoPath) -> Result<bool> {
    let found = or_absent(top.open_folder(Some(folder)));
    found.map(|found| found.is_some()).map_err(|e| operation_failed("enter the directory", folder, &e))
}

fn state_before(item: &Item) -> Option<Raw> {
    match &item.kind {
        LiveKind::File(file) => Some(Raw::File { sha256: file.sha256, permissions: Some(file.permissions) }),
        LiveKind::Link { sha256, .. } => Some(Raw::Link { sha256: *sha256 }),
        LiveKind::Directory { .. } => Some(Raw::Directory),
        LiveKind::Missing | LiveKind::Other => None,
    }
}

fn raw_of(body: &Body) -> Raw {
    match body {
        Body::File { bytes, permissions, .. } => Raw::File {
            sha256: Sha256::of(bytes),
            permissions: match permissions {
                BodyPermissions::New { .. } => None,
                BodyPermissions::Exactly(bits) => Some(*bits),
            },
        },
        Body::Link { target } => Raw::Link { sha256: Sha256::of(target) },
    }
}

/// Writes all new objects, stores all old bytes, and waits until both are safe. With a failure comes
/// what was staged until then.
pub(super) fn stage_objects(
    plan: &DeliveryPlan,
    materials: &Materials,
    keeper: &dyn Keeper,
) -> std::result::Result<Staged, (Staged, Failure)> {
    let none = plan.steps.iter().map(|_| None).collect();
    let mut staged =
        Staged { objects: none, kept: plan.steps.iter().map(|_| None).collect(), notes: Vec::new() };
    match write_all(plan, materials, &mut staged)
        .and_then(|()| keep_old_bytes(plan, materials, keeper, &mut staged))
        .and_then(|()| sync_staged(plan, materials, keeper))
    {
        Ok(()) => Ok(staged),
        Err(e) => Err((staged, e)),
    }
}

fn write_all(plan: &DeliveryPlan, materials: &Materials, staged: &mut Staged) -> Result<()> {
    for at in (0..plan.steps.len()).filter(|at| plan.steps[*at].after.is_some()) {
        let step = &plan.steps[at];
        let Some(spot) = &step.temporary else { continue };
        let body = body_of(step, materials)?;
        let room = require_folder(&materials.top, spot.folder.as_ref())?;
        let (inode, notes) = write_one(&room, spot.name.as_bytes(), step, body)?;
        staged.objects[at] = Some(inode);
        if !notes.is_empty() {
            staged.notes.resize(plan.steps.len(), Vec::new());
            staged.notes[at] = notes;
        }
    }
    Ok(())
}

/// Waits until what was staged and what was stored is on the disk: once for a file system, where that
/// waits for all of it. The names need no wait of their own: an exchange that survives a power cut
/// took place in the same folder, after them.
fn sync_staged(plan: &DeliveryPlan, materials: &Materials, keeper: &dyn Keeper) -> Result<()> {
    let fail = |e: std::io::Error| Failure::io("sync", &plan.top, &e);
    let mut devices = Vec::new();
    for step in &plan.steps {
        let Some(spot) = &step.temporary else { continue };
        let room = require_folder(&materials.top, spot.folder.as_ref())?;
        let device = room.inode.dev;
        if devices.contains(&device) {
            continue;
        }
        if room.syncs_as_whole() {
            room.sync_file_system().map_err(fail)?;
            keeper.note_synced(device);
            devices.push(device);
        } else if let Some(Raw::File { .. }) = step.after {
            room.open_file(spot.name.as_bytes()).and_then(|file| file.sync_all()).map_err(fail)?;
        }
    }
    Ok(())
}

fn body_of<'a>(step: &PlannedStep, materials: &'a Materials) -> Result<&'a Body> {
    // The name ends in the item's number.
    let number = step.temporary.as_ref().and_then(|spot| spot.name.rsplit('-').next()?.parse::<usize>().ok());
    let body = number.and_then(|at| materials.bodies.get(at)?.as_ref());
    body.ok_or_else(|| Failure::internal(format!("there are no bytes for {}", step.change.path)))
}

fn write_one(room: &Folder, name: &[u8], step: &PlannedStep, body: &Body) -> Result<(Inode, Vec<Note>)> {
    let mut notes = Vec::new();
    let path = &step.change.path;
    let fail = |e: std::io::Error| operation_failed("stage the new version of", path, &e);
    match body {
        Body::Link { target } => room.create_link(name, target).map_err(fail)?,
        Body::File { bytes, permissions, attributes } => {
            let new = match permissions {
                BodyPermissions::New { executable: true } => 0o777,
                BodyPermissions::New { executable: false } => 0o666,
                BodyPermissions::Exactly(_) => 0o600,
            };
            let mut file = room.create_file(name, new).map_err(fail)?;
            file.write_all(bytes).map_err(fail)?;
            if let BodyPermissions::Exactly(bits) = permissions {
                notes = like_the_old(room, step, &file, attributes.as_ref(), *bits).map_err(fail)?;
            }
        }
    }
    let entry = room.look_up(name).map_err(fail)?;
    let inode = entry.map(|e| e.inode).ok_or_else(|| fail(std::io::ErrorKind::NotFound.into()))?;
    Ok((inode, notes))
}

/// Owner, attributes and ACL of the file that will be replaced, or of the one that an undo brings
/// back; then exactly the wanted bits.
fn like_the_old(
    room: &Folder,
    step: &PlannedStep,
    file: &File,
    former: Option<&Attributes>,
    bits: u32,
) -> std::io::Result<Vec<Note>> {
    let mut notes = Vec::new();
    if let (Step::Replace, Some(Raw::File { .. })) = (step.step, &step.before) {
        // If it is gone or changed by now, the commit step finds out.
        if let Ok(old) = room.open_file(step.change.path.file_name()) {
            notes = attributes::carry_over(&old, file)?;
        }
    } else if let Some(former) = former {
        notes = attributes::restore_attributes(former, file)?;
    }
    rustix::fs::fchmod(file, rustix::fs::Mode::from_raw_mode(bits))?;
    Ok(notes)
}

/// What belongs to a file that goes away for good, beside its bytes. If it is gone or changed by now,
/// the commit step finds out.
fn attributes_of(top: &TreeTop, step: &PlannedStep) -> io::Result<Option<Attributes>> {
    let stays = matches!((&step.before, &step.after), (Some(Raw::File { .. }), Some(Raw::File { .. })));
    if stays || !matches!(step.before, Some(Raw::File { .. })) {
        return Ok(None);
    }
    let path = &step.change.path;
    let Some(folder) = or_absent(top.open_folder(path.parent().as_ref()))? else { return Ok(None) };
    match folder.open_file(path.file_name()) {
        Err(e) if made_way(&e) || is_barred(&e) => Ok(None),
        file => attributes::read_attributes(&file?).map(Some),
    }
}

/// Stores the old bytes, many small ones in one blob.
fn keep_old_bytes(
    plan: &DeliveryPlan,
    materials: &Materials,
    keeper: &dyn Keeper,
    staged: &mut Staged,
) -> Result<()> {
    let mut chunk: Vec<u8> = Vec::new();
    let mut parts: Vec<(usize, u64, u64, Option<Attributes>)> = Vec::new();
    let mut flush =
        |chunk: &mut Vec<u8>, parts: &mut Vec<(usize, u64, u64, Option<Attributes>)>| -> Result<()> {
            if parts.is_empty() {
                return Ok(());
            }
            let blob = keeper.put(chunk)?;
            for (at, offset, length, attributes) in parts.drain(..) {
                staged.kept[at] = Some(Kept { blob, offset, length, attributes });
            }
            chunk.clear();
            Ok(())
        };
    for (at, step) in plan.steps.iter().enumerate() {
        let old = matches!(step.step, Step::Replace | Step::Delete) && step.before != Some(Raw::Directory);
        let Some(live) = materials.live.get(&step.change.path).filter(|_| old) else { continue };
        if !chunk.is_empty() && chunk.len() + live.bytes.len() > CHUNK {
            flush(&mut chunk, &mut parts)?;
        }
        let attributes = attributes_of(&materials.top, step)
            .map_err(|e| operation_failed("read the attributes of", &step.change.path, &e))?;
        parts.push((at, chunk.len() as u64, live.bytes.len() as u64, attributes));
        chunk.extend_from_slice(&live.bytes);
    }
    flush(&mut chunk, &mut parts)
}
