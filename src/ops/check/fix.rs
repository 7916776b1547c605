//! `--fix`: verifiers that do not pass may change a copy of the tree; what they make of it is shown like any
//! other tree, and then written, as one bound change, to the user's files, and to the index where that is
//! what is looked at.
//!
//! What is protected, and what judges, is not theirs to change: it is told, and stays.

use super::{CheckEvent, CheckOptions, CheckPlace, CheckTarget, Fix, ShownTree, TreePair, candidate_of};
use crate::domain::change::patch::{Change, manifest_sha256};
use crate::domain::delivery::IndexRule;
use crate::domain::ledger::report::{DeliveredPath, FixObject, PatchObject, VerificationObject};
use crate::domain::proof::evidence::Observed;
use crate::domain::proof::verdict::Verdict;
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::convert::{Conversions, Drivers};
use crate::git::private_index::{PrivateIndex, PrivateIndexEntry};
use crate::git::slot::MendedFile;
use crate::git::{bound, tree};
use crate::task::Session;
use crate::task::action::random_hex;
use crate::task::effect::fix::{TreeFix, WrittenFix, carry_out};
use crate::verifier::{self, Ticket};
use std::collections::BTreeSet;

/// How often what was mended is mended again before it is taken as it is.
const MOST_ROUNDS: usize = 4;

/// Refuses before anything is looked at what could not be written back.
pub(super) fn refuse_unfixable(options: &CheckOptions) -> Result<()> {
    if options.fix == Fix::Told || !matches!(options.target, CheckTarget::Range(_)) {
        return Ok(());
    }
    Err(Failure::new(Code::ArgumentsInvalid, "commits cannot be fixed: they are what they are")
        .subject("--fix")
        .expected("--staged, --live or --all", "--rev")
        .remedy(
            "Check out the last commit of the range, and fix what lies there.",
            ["git", "tender", "check", "--all", "--fix"],
        ))
}

/// Shows a tree, and what verifiers make of it, until they leave it alone; then writes that.
pub(super) fn show_and_fix(place: &CheckPlace<'_>, trees: TreePair) -> Result<VerificationObject> {
    let mut shown = place.show_tree(&trees)?;
    let mut now = trees.tree.clone();
    let mut seen = BTreeSet::from([now.to_string()]);
    let mut left_alone = BTreeSet::new();
    for _ in 0..MOST_ROUNDS {
        let next = place.mend_tree(
            &shown,
            &TreePair { base: trees.base.clone(), tree: now.clone() },
            &mut left_alone,
        )?;
        if next == now {
            break;
        }
        let changes = place.changes(&now, &next)?;
        (place.listen)(CheckEvent::Mended(&changes));
        now = next;
        shown = place.show_tree(&TreePair { base: trees.base.clone(), tree: now.clone() })?;
        if !seen.insert(now.to_string()) {
            break;
        }
    }
    let fix = if now == trees.tree { None } else { Some(place.write_fix(&trees, &now, &shown)?) };
    if let Some(checked) = &mut shown.object.checked {
        checked.fix = fix;
        checked.notes.extend(left_alone.into_iter().map(|path| {
            format!("a verifier would change {path}, which is protected: that is left to a person")
        }));
    }
    Ok(shown.object)
}

impl CheckPlace<'_> {
    fn changes(&self, from: &ObjectId, to: &ObjectId) -> Result<Vec<Change>> {
        let quarantine = self.session.quarantine(self.room.id());
        tree::changes_between(&self.session.repository.object_reader(Some(&quarantine))?, from, to)
    }

    /// What the verifiers that do not pass make of a tree, each of what the one before left.
    fn mend_tree(
        &self,
        shown: &ShownTree,
        trees: &TreePair,
        left_alone: &mut BTreeSet<RepoPath>,
    ) -> Result<ObjectId> {
        let mut now = trees.tree.clone();
        for rows in rows_to_mend(shown) {
            let candidate = candidate_of(
                &TreePair { base: trees.base.clone(), tree: now.clone() },
                self.changes(&trees.base, &now)?,
            )?;
            let work = self.work_on(&candidate, &shown.asked);
            let ticket =
                Ticket { run: format!("m{}", random_hex(16)), nonce: random_hex(16), clearing: false };
            let mended = work.with_subject(|subject, host| {
                verifier::mend(subject, &shown.asked.terms.verifiers, host, &rows, &ticket)
            })?;
            let is_protected = |file: &MendedFile| shown.asked.terms.effective.is_protected(&file.path);
            let (protected, mended): (Vec<MendedFile>, Vec<MendedFile>) =
                mended.into_iter().partition(is_protected);
            left_alone.extend(protected.into_iter().map(|file| file.path));
            now = self.tree_with(&now, mended, &shown.asked.terms.filters)?;
        }
        Ok(now)
    }

    /// The tree with these files as git would store them.
    fn tree_with(&self, now: &ObjectId, mended: Vec<MendedFile>, filters: &[String]) -> Result<ObjectId> {
        if mended.is_empty() {
            return Ok(now.clone());
        }
        let (repository, quarantine) = (&self.session.repository, self.session.quarantine(self.room.id()));
        let conversions = Conversions { repository, quarantine: Some(&quarantine) };
        let objects = repository.object_reader(Some(&quarantine))?;
        let mut modes = Vec::new();
        let mut files = Vec::new();
        for file in mended {
            let executable = if file.executable { Mode::Executable } else { Mode::File };
            // What it was shown in place of the tree's own is none of the tree.
            if tree::find_entry(&objects, now, &file.path)?.is_some_and(|there| there.mode.is_regular()) {
                modes.push(executable);
                files.push((file.path, file.bytes));
            }
        }
        let ids = conversions.clean_blobs(now, &Drivers::Named(filters), &files, true)?;
        let entries: Vec<PrivateIndexEntry> = files
            .into_iter()
            .zip(modes.into_iter().zip(ids))
            .map(|((path, _), (mode, id))| (path, Some(TreeObject { mode, id })))
            .collect();
        let index = PrivateIndex::holding_tree(repository, &quarantine, now)?;
        index.update_entries(&entries)?;
        index.write_tree()
    }

    /// Binds the change, and writes it.
    fn write_fix(&self, trees: &TreePair, after: &ObjectId, shown: &ShownTree) -> Result<FixObject> {
        let session = self.session;
        let index = index_rule(session, self.options)?;
        let quarantine = session.quarantine(self.room.id());
        let changes = self.changes(&trees.tree, after)?;
        let text = bound::patch_text(&session.repository, &quarantine, &trees.tree, after)?;
        bound::verify_patch(&session.repository, &quarantine, &trees.tree, &text, after)?;
        let sha256 = session.blobs().put(&text)?;
        let evidence: Vec<String> = shown
            .object
            .requirements
            .iter()
            .filter_map(|row| row.evidence.as_ref())
            .map(ToString::to_string)
            .collect();
        let WrittenFix { action, paths } = carry_out(
            session,
            TreeFix {
                room: self.room.id(),
                drivers: &trees.base,
                before: &trees.tree,
                after,
                changes: &changes,
                index,
                evidence: &evidence,
            },
        )?;
        let patch = PatchObject {
            manifest_sha256: manifest_sha256(&changes),
            sha256,
            bytes: text.len() as u64,
            path: session.blobs().path(&sha256).display().to_string(),
        };
        let paths = paths.into_iter().map(|(path, outcome)| DeliveredPath { path, outcome }).collect();
        Ok(FixObject { action, patch, paths })
    }
}

/// The rows that did not pass, by verifier.
fn rows_to_mend(shown: &ShownTree) -> Vec<Vec<&Observed>> {
    let mut groups: Vec<Vec<&Observed>> = Vec::new();
    let observed = shown.observation.iter().flat_map(|observation| &observation.rows);
    for row in observed {
        let did_not_pass = |verdict| matches!(verdict, Verdict::Failed | Verdict::Error);
        let is_open = shown
            .object
            .requirements
            .iter()
            .any(|known| known.id == row.clause.id && did_not_pass(known.verdict));
        if !is_open {
            continue;
        }
        match groups.iter_mut().find(|group| group[0].clause.verifier == row.clause.verifier) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Whether the index changes with the files. While git holds it for a commit of named paths, or for `-a`,
/// what was looked at is no index that a fix could be written to.
fn index_rule(session: &Session, options: &CheckOptions) -> Result<IndexRule> {
    if options.target != CheckTarget::Staged {
        return Ok(IndexRule::Stays);
    }
    let own = session.repository.git_dir().join("index");
    let is_own = |named: &std::path::PathBuf| {
        let (named, own) = (named.canonicalize(), own.canonicalize());
        named.is_ok() && named.ok() == own.ok()
    };
    match &options.index {
        None => Ok(IndexRule::Follows),
        Some(named) if is_own(named) => Ok(IndexRule::Follows),
        Some(named) => {
            let text = "there is a fix, and nothing was written: git holds the index for a commit of named paths or of all \
                        (`git commit PATH`, `git commit -a`), and would not see it";
            Err(Failure::new(Code::StateInvalid, text)
                .subject(named.display().to_string())
                .expected(own.display().to_string(), named.display().to_string())
                .remedy("Stage what the commit shall hold with `git add`, fix that, then commit without naming paths.", [
                    "git", "tender", "check", "--fix",
                ]))
        }
    }
}
