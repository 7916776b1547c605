//! What git-tender keeps beside the repository: the ledger, blobs, locks and the places of everything else.

pub mod blobs;
pub mod layout;
pub mod ledger;
pub mod lock;

pub use blobs::Blobs;
pub use layout::Layout;
pub use ledger::{Draft, Ledger};
