//! A repository with a live tree, and a way through the whole of a delivery.

use crate::domain::change::patch::{Change, manifest_sha256};
use crate::domain::delivery::receipt::{DeliveryPlan, Outcome, Receipt, Staged};
use crate::domain::delivery::{
    Clearance, Conflict, IndexRule, IndexState, Reason, plan_delivery, refuse_delivery,
};
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Code, Failure, Result};
use crate::git::apply::recover::{Reached, Recovered, UnfinishedDelivery};
use crate::git::apply::{Delivery, Journal, Keeper, Record, execute_plan, recover};
use crate::git::live::{FormerFiles, LiveTerms, Materials, Settings, prepare_materials, survey_paths};
use crate::git::testing::TestRepository;
use crate::git::{Quarantine, Repository, tree};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The empty tree has no attributes: what tests write is stored as it is.
const NO_ATTRIBUTES: &str = "--attr-source=4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A path's type and mode, and its bytes.
pub(crate) type Tree = BTreeMap<String, (String, Vec<u8>)>;

pub(crate) struct World {
    pub(crate) home: TestRepository,
    pub(crate) repository: Repository,
    quarantine: Quarantine,
    base: ObjectId,
    last: RefCell<Option<ObjectId>>,
    pub(crate) rule: Cell<IndexRule>,
    blobs: RefCell<HashMap<Sha256, Vec<u8>>>,
    pub(crate) journal: RefCell<Log>,
}

impl Keeper for RefCell<HashMap<Sha256, Vec<u8>>> {
    fn put(&self, bytes: &[u8]) -> Result<Sha256> {
        let digest = Sha256::of(bytes);
        self.borrow_mut().insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn get(&self, digest: &Sha256) -> Result<Vec<u8>> {
        let found = self.borrow().get(digest).cloned();
        found.ok_or_else(|| Failure::new(Code::NotFound, "no such blob"))
    }

    fn note_synced(&self, _device: u64) {}
}

/// What the ledger would hold.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) plan: Option<DeliveryPlan>,
    pub(crate) staged: Option<Staged>,
    pub(crate) reached: Option<Reached>,
    pub(crate) end: Option<&'static str>,
    pub(crate) fail_at: Option<usize>,
    written: usize,
}

impl Journal for Log {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        self.written += 1;
        if self.fail_at == Some(self.written) {
            return Err(Failure::new(Code::Io, "the ledger cannot be written"));
        }
        match record {
            Record::Planned(plan) => {
                *self = Self { fail_at: self.fail_at, written: self.written, ..Self::default() };
                self.plan = Some(through_json(plan));
            }
            Record::Staged(staged) => self.staged = Some(through_json(staged)),
            Record::InPlace => self.reached = Some(Reached::InPlace),
            Record::TakingBack => self.reached = Some(Reached::TakingBack),
            Record::TakenBack(_) => self.end = Some("taken_back"),
            Record::Done(receipt) => {
                let _: Receipt = through_json(receipt);
                self.end = Some("done");
            }
        }
        Ok(())
    }
}

fn through_json<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).expect("serializes")).expect("parses")
}

pub(crate) struct Ready {
    cleared: crate::domain::delivery::ClearedPlan,
    materials: Materials,
    outcome: Outcome,
}

impl World {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = TestRepository::new();
        for (path, content) in files {
            home.write_file(path, content.as_bytes());
        }
        home.run_git([NO_ATTRIBUTES, "add", "-A"]);
        home.run_git(["commit", "--quiet", "--allow-empty", "-m", "base"]);
        let repository = home.repository();
        let base = home.tree_of("HEAD");
        let quarantine = home.quarantine();
        Self {
            home,
            repository,
            quarantine,
            base,
            last: RefCell::default(),
            rule: Cell::new(IndexRule::Stays),
            blobs: RefCell::default(),
            journal: RefCell::default(),
        }
    }

    /// The live tree as it was at first; other files are removed.
    pub(crate) fn reset_live(&self, files: &Tree) {
        self.restore_live(files);
        *self.journal.borrow_mut() = Log::default();
    }

    /// The tree as it is given, by new files, and nothing else in it: as a reset and a clean leave it.
    pub(crate) fn restore_live(&self, files: &Tree) {
        for entry in std::fs::read_dir(self.path("")).expect("lists") {
            let path = entry.expect("an entry").path();
            if path.ends_with(".git") {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(path).expect("removes");
            } else {
                std::fs::remove_file(path).expect("removes");
            }
        }
        for (name, (mode, bytes)) in files {
            self.write_file(name, std::str::from_utf8(bytes).expect("text"));
            self.set_mode(name, u32::from_str_radix(mode, 8).expect("a file's mode"));
        }
    }

    /// True where these bytes are in the store.
    pub(crate) fn is_stored(&self, bytes: &[u8]) -> bool {
        self.blobs.borrow().contains_key(&Sha256::of(bytes))
    }

    /// Removes what we have lying around, as `git clean` does.
    pub(crate) fn clean_temporaries(&self) {
        for name in self.live_tree().into_keys().filter(|name| name.contains(".tender-")) {
            std::fs::remove_file(self.path(&name)).expect("removes");
        }
    }

    pub(crate) fn run_git(&self, args: &[&str]) -> String {
        let out = self.home.git_call().cwd(&self.home.top()).args(args).run_for_stdout().expect("git works");
        String::from_utf8(out).expect("text")
    }

    /// A call that may end with another exit code than 0.
    pub(crate) fn try_git(&self, args: &[&str]) {
        self.home.git_call().cwd(&self.home.top()).args(args).run().expect("git starts");
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.top().join(path)
    }

    pub(crate) fn write_file(&self, path: &str, content: &str) {
        write_file(&self.path(path), content);
    }

    pub(crate) fn set_mode(&self, path: &str, bits: u32) {
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(bits)).expect("sets");
    }

    pub(crate) fn make_link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).expect("links");
    }

    pub(crate) fn mode_of(&self, path: &str) -> u32 {
        self.path(path).metadata().expect("there").mode() & 0o7777
    }

    /// The changes that an edit of the base amounts to; the live tree is not touched.
    pub(crate) fn edit_candidate(&self, edit: impl FnOnce(&Editor)) -> Vec<Change> {
        let place = self.home.outside().join("candidate");
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).expect("creates");
        let index = self.home.outside().join("candidate.index");
        let git = || {
            let git = self.repository.git_call().work_tree(&place).with_index(&index).arg(NO_ATTRIBUTES);
            git.with_setting("core.autocrlf=false")
                .with_setting("core.fileMode=true")
                .with_setting("core.sparseCheckout=false")
        };
        git().args(["read-tree", self.base.as_str()]).run_for_stdout().expect("reads");
        git().args(["checkout-index", "-a", "-f"]).run_for_stdout().expect("fills");
        edit(&Editor(place.clone()));
        git().args(["add", "-A", "-f"]).run_for_stdout().expect("adds");
        let out = git().args(["write-tree"]).run_for_stdout().expect("writes");
        let id: ObjectId = String::from_utf8(out).expect("text").trim().parse().expect("an id");
        let objects = self.repository.object_reader(None).expect("opens");
        let changes = tree::changes_between(&objects, &self.base, &id).expect("compares");
        *self.last.borrow_mut() = Some(id);
        changes
    }

    pub(crate) fn live_terms<'a>(&'a self, changes: &'a [Change], candidate: &'a ObjectId) -> LiveTerms<'a> {
        LiveTerms {
            repository: &self.repository,
            quarantine: Some(&self.quarantine),
            top: self.repository.top().expect("not bare"),
            changes,
            before_tree: &self.base,
            after_tree: candidate,
            drivers: &self.base,
            former: None,
            settings: Settings::read_settings(&self.repository).expect("reads"),
        }
    }

    pub(crate) fn prepare_delivery(&self, changes: &[Change]) -> Result<Ready> {
        let candidate = self.last.borrow().clone().expect("a candidate");
        self.prepare_for(&self.live_terms(changes, &candidate), Outcome::Applied, None)
    }

    fn prepare_for(
        &self,
        terms: &LiveTerms<'_>,
        outcome: Outcome,
        receipt: Option<&Receipt>,
    ) -> Result<Ready> {
        let seen = survey_paths(terms)?;
        let objects = self.repository.object_reader(None)?;
        let state = |path| match tree::find_entry(&objects, &self.base, path).expect("reads") {
            Some(object) => IndexState::Entry { mode: object.mode, git_blob: object.id },
            None => IndexState::Absent,
        };
        let at_base: Vec<IndexState> = terms.changes.iter().map(|change| state(&change.path)).collect();
        let plan = plan_delivery(terms.changes, &seen.facts, self.rule.get(), &at_base)
            .map_err(|conflicts| refuse_delivery(&conflicts))?;
        let materials = prepare_materials(terms, seen, &plan)?;
        let clearance = match receipt {
            Some(receipt) => Clearance::to_undo(receipt),
            None => Clearance::from_rows(manifest_sha256(terms.changes), &[])?,
        };
        Ok(Ready { cleared: plan.clear_with(&clearance)?, materials, outcome })
    }

    pub(crate) fn execute_ready(&self, ready: Ready) -> Result<Receipt> {
        let delivery = Delivery {
            id: "d1",
            top: self.repository.top().expect("top"),
            outcome: ready.outcome,
            repository: &self.repository,
        };
        let mut journal = self.journal.borrow_mut();
        execute_plan(ready.cleared, ready.materials, delivery, &mut *journal, &self.blobs)
    }

    /// Writes a worker's edit of the live tree, taken for its worktree.
    pub(crate) fn execute_edit(&self, edit: crate::git::edit::PreparedEdit) -> Result<Receipt> {
        let (cleared, materials) = (edit.cleared, edit.materials);
        self.execute_ready(Ready { cleared, materials, outcome: Outcome::Applied })
    }

    pub(crate) fn deliver_changes(&self, changes: &[Change]) -> Result<Receipt> {
        self.execute_ready(self.prepare_delivery(changes)?)
    }

    pub(crate) fn undo_receipt(&self, receipt: &Receipt) -> Result<Receipt> {
        let candidate = self.last.borrow().clone().expect("a candidate");
        let changes = receipt.reversed_changes();
        let former = FormerFiles::from_receipt(receipt, &|digest| self.blobs.get(digest))?;
        let mut terms = self.live_terms(&changes, &self.base);
        terms.before_tree = &candidate;
        terms.former = Some(&former);
        self.execute_ready(self.prepare_for(&terms, Outcome::Reverted, Some(receipt))?)
    }

    pub(crate) fn unfinished_delivery(&self) -> Option<UnfinishedDelivery> {
        let log = self.journal.borrow();
        let plan = log.plan.clone().filter(|_| log.end.is_none())?;
        let staged = log.staged.clone();
        let reached = log.reached.clone().unwrap_or(Reached::Begun);
        Some(UnfinishedDelivery { plan, staged, reached, outcome: Outcome::Applied })
    }

    pub(crate) fn recover_unfinished(&self, unfinished: &UnfinishedDelivery) -> Result<Recovered> {
        let mut journal = self.journal.borrow_mut();
        recover::recover_delivery(self.home.environment(), unfinished, &mut *journal, &self.blobs)
    }

    pub(crate) fn journal_ends(&self) -> &'static str {
        self.journal.borrow().end.unwrap_or("nothing")
    }

    /// All files and links of the live tree; `.git` is left out, temporary files are not.
    pub(crate) fn live_tree(&self) -> Tree {
        let mut tree = Tree::new();
        collect_tree(&self.path(""), "", &mut tree);
        tree
    }
}

fn collect_tree(dir: &Path, prefix: &str, tree: &mut Tree) {
    for entry in std::fs::read_dir(dir).expect("lists") {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.metadata().expect("there");
        if name == ".git" {
        } else if kind.is_dir() {
            collect_tree(&entry.path(), &format!("{name}/"), tree);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).expect("a link");
            tree.insert(name, ("link".into(), target.to_string_lossy().into_owned().into_bytes()));
        } else {
            let bytes = std::fs::read(entry.path()).expect("reads");
            tree.insert(name, (format!("{:o}", kind.mode() & 0o7777), bytes));
        }
    }
}

pub(crate) struct Editor(PathBuf);

impl Editor {
    pub(crate) fn write_file(&self, path: &str, content: &str) {
        write_file(&self.0.join(path), content);
    }

    pub(crate) fn remove_path(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .expect("removes");
    }

    pub(crate) fn set_mode(&self, path: &str, bits: u32) {
        std::fs::set_permissions(self.0.join(path), std::fs::Permissions::from_mode(bits)).expect("sets");
    }

    pub(crate) fn make_link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.0.join(path)).expect("links");
    }
}

fn write_file(path: &Path, content: &str) {
    use std::io::Write;
    std::fs::create_dir_all(path.parent().expect("has one")).expect("creates");
    std::fs::File::create(path).and_then(|mut f| f.write_all(content.as_bytes())).expect("writes");
}

/// The conflicts of a refusal.
pub(crate) fn conflict_reasons(failure: &Failure) -> Vec<(String, Reason)> {
    let conflicts = failure.details().get("conflicts").cloned();
    let conflicts = conflicts.unwrap_or_else(|| panic!("no conflict: {failure:?}"));
    let conflicts: Vec<Conflict> = serde_json::from_value(conflicts).expect("parses");
    conflicts.into_iter().map(|c| (c.path.to_string(), c.reason)).collect()
}
