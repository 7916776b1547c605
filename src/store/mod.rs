//! What git-tender keeps beside the repository: the ledger, blobs, locks and the places of everything else.
//!
//! `ledger` is what happened, in order, and cannot be changed without being noticed; `blobs` is what is too
//! large for it, found by digest. Together they are all that a report needs. `layout` names every path,
//! `lock` makes a held lock a value, `claim` lets the holder of a task's be asked to stop, `check_room` is
//! where a tree is looked at that belongs to no task, `memo` what need not be worked out again.

mod birth;
pub mod blobs;
mod check_room;
pub mod claim;
pub mod layout;
pub mod ledger;
pub mod lock;
mod memo;
pub mod secret_files;
pub mod setup_cache;
mod spare;
mod unsynced;
mod unwritable;

pub use blobs::Blobs;
pub use check_room::CheckRoom;
pub use claim::Claim;
pub use layout::Layout;
pub use ledger::{Draft, Ledger};
pub use memo::Memo;
