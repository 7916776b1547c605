//! Stores what files a key stands for, so that a later report can name what changed: a whole listing of some
//! tree now and then, and for every other tree what differs from it. So a candidate costs the size of its
//! change, however far its base has moved on.

use super::folders::{FolderMemory, InputView};
use crate::domain::proof::listing::Listing;
use crate::domain::value::digest::{ObjectId, Sha256, canonical_json};
use crate::error::Result;
use crate::git::laid_tree::{LaidTree, ReadTrees};
use crate::git::tree::{TreeDifference, TreeFile, list_differences};
use crate::store::Blobs;
use serde::{Deserialize, Serialize};

/// Up to how many differences a listing is told by them, beside a part of its files.
const FEW: usize = 200;
/// The part of the files that may differ beyond that.
const PART: usize = 8;

/// A listing that is stored whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WholeListing {
    tree: ObjectId,
    listing: Sha256,
    files: usize,
}

/// Stores the listings of one view.
pub(super) struct Listings<'a> {
    pub(super) memory: &'a FolderMemory,
    pub(super) trees: &'a ReadTrees<'a>,
    pub(super) blobs: &'a Blobs,
    pub(super) view: &'a InputView<'a>,
}

impl Listings<'_> {
    /// Stores the listing of a tree. Where none is near enough to it, that of its base is stored whole.
    pub(super) fn store(&self, tree: &ObjectId, base: &ObjectId) -> Result<Sha256> {
        let id = self.view.id().to_string();
        let known: Option<WholeListing> = self.memory.recall_note(&["listing", &id]);
        if let Some(known) = known.filter(|known| self.blobs.path(&known.listing).exists())
            // Its tree may be gone: nothing keeps it.
            && let Ok(listing) = self.differences(&known, tree)
            && listing.files.len() + listing.without.len() <= FEW + known.files / PART
        {
            return self.put(&known, &listing);
        }
        let files = self.memory.list(&LaidTree::new(self.trees, base, std::iter::empty()), self.view)?;
        let count = files.len();
        let listing = self.blobs.put(&canonical_json(&Listing::whole_listing(files)))?;
        let whole = WholeListing { tree: base.clone(), listing, files: count };
        self.memory.remember_note(&["listing", &id], &whole);
        self.put(&whole, &self.differences(&whole, tree)?)
    }

    fn put(&self, whole: &WholeListing, listing: &Listing) -> Result<Sha256> {
        match listing.files.is_empty() && listing.without.is_empty() {
            true => Ok(whole.listing),
            false => self.blobs.put(&canonical_json(listing)),
        }
    }

    fn differences(&self, whole: &WholeListing, tree: &ObjectId) -> Result<Listing> {
        let objects = self.trees.objects();
        let mut differences = Vec::new();
        for TreeDifference { path, new, .. } in list_differences(objects, &whole.tree, tree)? {
            if self.view.takes(&path) {
                let file = new.map(|new| TreeFile { path: path.clone(), mode: new.mode, id: new.id });
                let file = file.map(|file| self.memory.input_file(objects, file)).transpose()?;
                differences.push((path, file));
            }
        }
        Ok(Listing::listing_against(whole.listing, differences.into_iter()))
    }
}
