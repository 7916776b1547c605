//! What is known of a candidate's rows without running a verifier: who shows each, and the key that a record
//! must have to count. Everything is digested anew on every call; only digests of bytes that cannot change
//! are kept.

use super::cache::FileDigests;
use super::folders::{FolderMemory, InputView, Wanted};
use super::inputs::inputs_of;
use super::judge::{BaseInputs, Judge};
use super::listings::Listings;
use super::load::{Verifier, Verifiers};
use super::manifest::{Pass, VerifierKind};
use super::reads::read_digests;
use super::seen::{SeenInputs, SeenNote, SeenTrees};
use super::watched::{ChangedJudge, TreeChange};
use super::{Host, VerificationSubject, builtin, protocol, tools, view};
use crate::domain::change::patch::Change;
use crate::domain::contract::clause::{Clause, Origin, Permission, clauses_of};
use crate::domain::contract::{Kind, PROTECTED};
use crate::domain::proof::evidence::{Identity, Observation, Source};
use crate::domain::proof::judge::{NOT_CONCERNED, some_of};
use crate::domain::proof::records::On;
use crate::domain::value::digest::{FileState, Sha256, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use crate::git::attributes::outside_attributes;
use crate::git::convert::{Conversions, Drivers};
use crate::git::drivers::configured_drivers;
use crate::git::laid_tree::{LaidTree, ReadTrees};
use crate::process::SandboxLayer;
use crate::store::Memo;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The system and the architecture that runs are made on.
pub(super) fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

/// Looks at everything that decides about a candidate's rows. Runs the tools' version probes, and nothing
/// else.
pub fn observe(
    subject: &VerificationSubject<'_>,
    verifiers: &Verifiers,
    host: &Host<'_>,
) -> Result<Observation> {
    let changes = &subject.candidate.changes;
    let floor = subject.effective.floor_for(changes.iter().map(|change| &change.path));
    let objects = subject.repository.object_reader(subject.quarantine)?;
    let trees = ReadTrees::new(&objects);
    let mut observer = Observer::new(subject, verifiers, host, &trees);
    let asked = asked_for(subject, &floor);
    let blind = observer.without_inputs(&asked)?;
    let told = observer.told_otherwise(&asked)?;
    // Who takes away what a verifier looks at takes away the judge.
    let emptied =
        |path: &RepoPath| blind.values().any(|blind| blind.inputs.matches_path(path) && blind.emptied);
    let guarded = |path: &RepoPath| subject.effective.is_protected(path) || emptied(path);
    let mut protected: Vec<RepoPath> =
        changes.iter().map(|c| &c.path).filter(|p| guarded(p)).cloned().collect();
    let by_policy: Vec<&RepoPath> = protected.iter().filter(|p| subject.effective.is_protected(p)).collect();
    observer.confirmed = reasons_to_confirm(&by_policy, &told, &blind);
    protected.extend(told.values().flatten().map(|changed| changed.path.clone()));
    let mut judges: BTreeMap<String, Judge> = BTreeMap::new();
    let mut rows = Vec::new();
    for mut clause in clauses_of(subject.contract, &floor, &protected) {
        let why = nothing_to_see(subject, &clause, &blind);
        clause.required &= why.is_none();
        let judge = match clause.permission {
            Permission::Allowed if why.is_some() => {
                let mut judge = Judge::none(Source::NothingToSee { why: why.unwrap_or_default() });
                judge.judge_changed = blind.get(&clause.verifier).is_some_and(|blind| blind.emptied);
                judge
            }
            Permission::Forbidden => Judge::none(Source::Forbidden),
            Permission::NotNamed => Judge::none(Source::NotAllowed),
            Permission::Allowed => match judges.get(&clause.verifier) {
                Some(judge) => judge.clone(),
                None => {
                    let mut judge = observer.judge(&clause.verifier)?;
                    judge.judge_changed |= told.contains_key(&clause.verifier);
                    judges.insert(clause.verifier.clone(), judge.clone());
                    judge
                }
            },
        };
        let title = verifiers.title(&clause.verifier).map(str::to_owned);
        let wanted = subject.contract.requirements.iter().find(|wanted| wanted.id == clause.id);
        let base_runs = wanted.filter(|_| clause.origin == Origin::Requirement).map(|wanted| wanted.base);
        let mut row = judge.observed(clause, title);
        row.base_runs = row.base_runs.max(base_runs.unwrap_or_default());
        rows.push(row);
    }
    observer.memory.save();
    observer.programs.save();
    Ok(Observation {
        task: subject.task.to_owned(),
        candidate: subject.candidate.candidate,
        contract_version: subject.candidate.contract_version,
        manifest_sha256: subject.candidate.patch.manifest_sha256,
        kind: subject.contract.kind,
        flaky: subject.effective.flaky,
        gone_cases: subject.effective.gone_cases,
        case: subject.contract.case.clone(),
        rows,
    })
}

/// The verifiers that a contract or its policy asks for.
fn asked_for<'a>(subject: &VerificationSubject<'a>, floor: &'a [String]) -> BTreeSet<&'a String> {
    let contract = subject.contract;
    let required = contract.requirements.iter().map(|requirement| &requirement.verifier);
    required.chain(&contract.verification.allowed).chain(floor).collect()
}

/// Why a person has to confirm a change, a clause each.
fn reasons_to_confirm(
    protected: &[&RepoPath],
    told: &BTreeMap<&String, Vec<ChangedJudge>>,
    blind: &BTreeMap<String, Blind<'_>>,
) -> Vec<String> {
    let names: Vec<String> = protected.iter().map(ToString::to_string).collect();
    let paths = (!names.is_empty()).then(|| format!("protected paths are touched ({})", some_of(&names, "")));
    let judges = told.iter().map(|(id, changed)| {
        let what: Vec<String> = changed.iter().map(|changed| changed.what.clone()).collect();
        format!("{id} is told otherwise how to judge ({})", some_of(&what, ""))
    });
    let emptied = blind.iter().filter(|(_, blind)| blind.emptied);
    let emptied = emptied.map(|(id, _)| format!("{id} has nothing left to look at"));
    paths.into_iter().chain(judges).chain(emptied).collect()
}

/// A verifier whose inputs name no file of the candidate.
struct Blind<'a> {
    inputs: &'a Scope,
    /// True where the base had files for it.
    emptied: bool,
}

/// Why a verifier has nothing to say of this change.
fn nothing_to_see(
    subject: &VerificationSubject<'_>,
    clause: &Clause,
    blind: &BTreeMap<String, Blind<'_>>,
) -> Option<String> {
    if let Some(blind) = blind.get(&clause.verifier) {
        let ended = if blind.emptied { "any more" } else { "yet" };
        return Some(format!("nothing under {} {ended}", blind.inputs.patterns().join(", ")));
    }
    let requirement = subject.contract.requirements.iter().find(|r| r.id == clause.id)?;
    let paths = requirement.paths.as_ref().filter(|_| clause.origin == Origin::Requirement)?;
    let touched = subject.candidate.changes.iter().any(|change| paths.matches_path(&change.path));
    (!touched).then(|| NOT_CONCERNED.to_owned())
}

struct Observer<'a> {
    subject: &'a VerificationSubject<'a>,
    verifiers: &'a Verifiers,
    host: &'a Host<'a>,
    memory: FolderMemory,
    programs: FileDigests,
    trees: &'a ReadTrees<'a>,
    candidate: LaidTree<'a, 'a>,
    base: LaidTree<'a, 'a>,
    /// What was seen of verifiers, by their ids.
    seen: BTreeMap<String, SeenTrees>,
    checkout: Option<Vec<String>>,
    /// Why a person has to confirm the change.
    confirmed: Vec<String>,
}

impl<'a> Observer<'a> {
    fn new(
        subject: &'a VerificationSubject<'a>,
        verifiers: &'a Verifiers,
        host: &'a Host<'a>,
        trees: &'a ReadTrees<'a>,
    ) -> Self {
        let candidate = subject.candidate;
        let back = candidate.changes.iter().map(|change| laid_over(change, &change.old));
        Self {
            subject,
            verifiers,
            host,
            memory: FolderMemory::new(Memo::of_layout(host.layout)),
            programs: FileDigests::open(&host.layout.digests()),
            trees,
            candidate: LaidTree::new(trees, &candidate.tree, std::iter::empty()),
            base: LaidTree::new(trees, &candidate.tree, back),
            seen: BTreeMap::new(),
            checkout: None,
            confirmed: Vec::new(),
        }
    }

    /// The verifiers that are asked for and have no file to look at.
    fn without_inputs(&mut self, asked: &BTreeSet<&String>) -> Result<BTreeMap<String, Blind<'a>>> {
        let mut blind = BTreeMap::new();
        for id in asked.iter().copied() {
            // One that cannot be used fails where it is judged.
            let Ok(Some(verifier)) = self.verifiers.get(id) else { continue };
            let Some(inputs) = inputs_of(verifier) else { continue };
            let seen = self.see_trees(verifier)?;
            if !seen.has_inputs {
                blind.insert(id.clone(), Blind { inputs, emptied: seen.had_inputs });
            }
        }
        Ok(blind)
    }

    /// The verifiers that the change has judge otherwise, with what does.
    fn told_otherwise<'b>(
        &mut self,
        asked: &BTreeSet<&'b String>,
    ) -> Result<BTreeMap<&'b String, Vec<ChangedJudge>>> {
        let mut told = BTreeMap::new();
        for id in asked.iter().copied() {
            let Ok(Some(verifier)) = self.verifiers.get(id) else { continue };
            let changed = self.see_trees(verifier)?.changed;
            if !changed.is_empty() {
                told.insert(id, changed);
            }
        }
        Ok(told)
    }

    /// What the two trees show of a verifier: as it was noted, or looked at now.
    fn see_trees(&mut self, verifier: &Verifier) -> Result<SeenTrees> {
        let id = &verifier.manifest.id;
        if let Some(known) = self.seen.get(id) {
            return Ok(known.clone());
        }
        let note = SeenNote::of(self.host.layout, self.subject, verifier);
        let is_stored = |listing: &Sha256| self.host.blobs.path(listing).exists();
        let seen = match note.read_seen(is_stored) {
            Some(seen) => seen,
            None => {
                let seen = self.look_at_trees(verifier)?;
                note.keep_seen(&seen);
                seen
            }
        };
        self.seen.insert(id.clone(), seen.clone());
        Ok(seen)
    }

    fn look_at_trees(&self, verifier: &Verifier) -> Result<SeenTrees> {
        let (memory, changes) = (&self.memory, &self.subject.candidate.changes);
        for state in changes.iter().flat_map(|change| change.old.iter().chain(&change.new)) {
            memory.learn_blob(&state.git_blob, state.sha256);
        }
        let case = &self.subject.contract.case;
        let (base, candidate) = (&self.base, &self.candidate);
        let changed = TreeChange { memory, base, candidate, changes, case }.find_changed_judges(verifier)?;
        let is_there = |path: &RepoPath| Ok(candidate.file_at(path)?.is_some());
        let command = match verifier.manifest.kind {
            VerifierKind::Command => Some(match view::missing_program(verifier, &is_there)? {
                Some(what) => Err(what),
                None => Ok(self.see_inputs(verifier)?),
            }),
            _ => None,
        };
        let (mut dead_inputs, mut has_inputs, mut had_inputs) = (Vec::new(), true, true);
        if let Some(inputs) = inputs_of(verifier) {
            dead_inputs = self.dead_patterns(inputs, candidate)?;
            has_inputs = dead_inputs.len() < inputs.patterns().len();
            had_inputs = self.dead_patterns(inputs, base)?.len() < inputs.patterns().len();
        }
        Ok(SeenTrees { has_inputs, had_inputs, dead_inputs, changed, command })
    }

    /// The patterns that name no file of a tree.
    fn dead_patterns(&self, inputs: &Scope, tree: &LaidTree<'_, '_>) -> Result<Vec<String>> {
        let mut dead = Vec::new();
        for pattern in inputs.patterns() {
            let own = Scope::parse_field("inputs", Code::ConfigInvalid, vec![pattern.clone()])?;
            let wanted = Wanted {
                id: Sha256::of_json(&own),
                fits: &|path| own.matches_path(path),
                may_hold: &|folder| folder.is_none_or(|folder| own.may_hold(folder)),
            };
            if !self.memory.has_any(tree, &wanted)? {
                dead.push(pattern.clone());
            }
        }
        Ok(dead)
    }

    fn see_inputs(&self, verifier: &Verifier) -> Result<SeenInputs> {
        let view = InputView::new(verifier, None);
        let now = self.memory.tree_digest(&self.candidate, &view)?;
        let candidate = self.subject.candidate;
        let (memory, trees, blobs) = (&self.memory, self.trees, self.host.blobs);
        let listings = Listings { memory, trees, blobs, view: &view };
        Ok(SeenInputs {
            base_inputs: self.base_inputs(verifier, &view)?,
            listing: listings.store(&candidate.tree, &candidate.base_tree)?,
            inputs: self.inputs(verifier, On::Candidate, now),
        })
    }

    fn judge(&mut self, id: &str) -> Result<Judge> {
        if id == PROTECTED {
            let why = self.confirmed.clone();
            return Ok(self.by_hand(Source::Protected { why }, Sha256::of(PROTECTED.as_bytes())));
        }
        let verifier = self.verifiers.get(id)?;
        match verifier.map(|verifier| (verifier, verifier.manifest.kind)) {
            Some((verifier, VerifierKind::Command)) => self.command(verifier),
            Some((verifier, VerifierKind::Manual)) => {
                let mut judge = self.by_hand(Source::Manual, verifier.manifest_sha256);
                judge.judge_changed = view::judge_changed(&self.subject.candidate.changes, verifier);
                Ok(judge)
            }
            _ if builtin::NAMES.contains(&id) => Ok(self.builtin(id)),
            _ => match self.verifiers.elsewhere(id, self.trees.objects(), &self.subject.candidate.tree)? {
                Some(place) => Ok(Judge::none(Source::OnlyIn { place })),
                None => Ok(self.by_hand(Source::Manual, Sha256::of(id.as_bytes()))),
            },
        }
    }

    /// A person speaks of exactly this candidate.
    fn by_hand(&self, source: Source, manifest: Sha256) -> Judge {
        let mut judge = Judge::none(source);
        judge.identity = Some(bare_identity(manifest));
        judge.inputs = Some(self.subject.candidate.patch.manifest_sha256);
        judge
    }

    /// What is built in depends on the whole candidate; it costs too little to be told more precisely.
    fn builtin(&self, id: &str) -> Judge {
        let candidate = self.subject.candidate;
        let rules = json!({
            "builtin": id,
            "writeScope": self.subject.contract.write_scope,
            "policy": self.subject.effective.policy_sha256,
            "artifacts": self.subject.contract.artifacts,
            "attributes": self.subject.base_commit_tree,
        });
        let mut judge = Judge::none(Source::Builtin);
        judge.identity = Some(bare_identity(Sha256::of_json(&rules)));
        judge.inputs = Some(Sha256::of_json(&json!({
            "manifestSha256": candidate.patch.manifest_sha256,
            "tree": candidate.tree,
            "baseTree": candidate.base_tree,
        })));
        judge
    }

    fn command(&mut self, verifier: &Verifier) -> Result<Judge> {
        let tools = match tools::find(self.host, verifier, &mut self.programs)? {
            Ok(tools) => tools,
            Err(what) => return Ok(Judge::none(Source::Missing { what })),
        };
        let SeenTrees { command, dead_inputs, .. } = self.see_trees(verifier)?;
        let seen = match command {
            Some(Ok(seen)) => seen,
            Some(Err(what)) => return Ok(Judge::none(Source::Missing { what })),
            None => return Err(Failure::internal("a verifier without a command was to be run")),
        };
        Ok(Judge {
            source: Source::Command,
            identity: Some(self.identity(verifier, tools)?),
            listing: Some(seen.listing),
            inputs: Some(seen.inputs),
            base_inputs: Some(seen.base_inputs),
            platform: platform(),
            base_runs: verifier.manifest.base_runs.max(self.subject.effective.base),
            compares_cases: verifier.manifest.compares_cases,
            counts: verifier.manifest.counts(),
            reuse: verifier.manifest.reuse,
            judge_changed: view::judge_changed(&self.subject.candidate.changes, verifier),
            dead_inputs,
        })
    }

    fn base_inputs(&self, verifier: &Verifier, view: &InputView<'_>) -> Result<BaseInputs> {
        let plain = self.inputs(verifier, On::Base, self.memory.tree_digest(&self.base, view)?);
        let told_requirement = verifier.manifest.pass == Pass::Protocol;
        let (changes, contract) = (&self.subject.candidate.changes, self.subject.contract);
        if contract.kind != Kind::Repair {
            return Ok(BaseInputs { with_case: plain, of_repair: None, told_requirement });
        }
        let sides = changes.iter().map(|change| match contract.case.matches_path(&change.path) {
            true => laid_over(change, &change.new),
            false => laid_over(change, &change.old),
        });
        let with_case = LaidTree::new(self.trees, &self.subject.candidate.tree, sides);
        let with_case = self.memory.tree_digest(&with_case, view)?;
        let without_case = InputView::new(verifier, Some(&contract.case));
        let without_case = self.memory.tree_digest(&self.base, &without_case)?;
        Ok(BaseInputs {
            with_case: self.inputs(verifier, On::BaseWithCase, with_case),
            of_repair: Some((plain, self.inputs(verifier, On::BaseWithoutCase, without_case))),
            told_requirement,
        })
    }

    /// The digest of everything of the subject that a run can know: the files that it sees, and what it is
    /// told.
    fn inputs(&self, verifier: &Verifier, on: On, files: Sha256) -> Sha256 {
        match verifier.manifest.pass {
            Pass::Protocol => Sha256::of_json(
                &json!({"files": files, "told": protocol::told_to_verifier(self.subject, on)}),
            ),
            _ => files,
        }
    }

    fn identity(
        &mut self,
        verifier: &Verifier,
        tools: Vec<crate::domain::proof::evidence::Tool>,
    ) -> Result<Identity> {
        Ok(Identity {
            manifest: verifier.manifest_sha256,
            argv: verifier.manifest.command.clone(),
            closure: verifier.closure.iter().map(|file| file.file.clone()).collect(),
            tools,
            env: tools::env_digests(self.host, verifier),
            read: read_digests(self.host, verifier, &mut self.programs),
            checkout: self.checkout(verifier)?,
            sandbox: self.host.sandbox.as_str().to_owned(),
            tender_version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// What decides, beside the candidate's attributes, how bytes are checked out: settings for everything,
    /// and for the closure what the base's attributes make of it.
    fn checkout(&mut self, verifier: &Verifier) -> Result<Vec<String>> {
        let mut all = self.settings()?;
        let regular = verifier.closure.iter().filter(|file| file.file.mode.is_regular());
        let paths: Vec<&RepoPath> = regular.map(|file| &file.file.path).collect();
        let conversions = Conversions { repository: self.subject.repository, quarantine: None };
        let drivers = Drivers::Named(self.subject.filters);
        let kinds = conversions.conversion_kinds(self.subject.base_commit_tree, &drivers, &paths)?;
        let converted = paths.iter().zip(kinds).filter(|(_, kind)| !kind.is_empty());
        all.extend(converted.map(|(path, kind)| format!("{path}: {kind}")));
        Ok(all)
    }

    fn settings(&mut self) -> Result<Vec<String>> {
        if let Some(known) = &self.checkout {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for key in ["core.autocrlf", "core.eol"] {
            if let Some(value) = self.subject.repository.config_value(key)? {
                found.push(format!("{key}={value}"));
            }
        }
        let drivers = configured_drivers(self.subject.repository)?;
        let made = |name: &String| drivers.get(name).map(|driver| driver.smudge_digest().to_string());
        let named = self.subject.filters.iter();
        found.extend(named.map(|name| format!("filter={name} {}", made(name).unwrap_or_default())));
        let outside = outside_attributes(self.subject.repository)?;
        found.extend(outside.into_iter().map(|(place, sha256)| format!("attributes {place} {sha256}")));
        Ok(self.checkout.insert(found).clone())
    }
}

/// One side of a change, to be laid over a tree.
fn laid_over(change: &Change, side: &Option<FileState>) -> (RepoPath, Option<TreeObject>) {
    (change.path.clone(), side.as_ref().map(FileState::tree_object))
}

fn bare_identity(manifest: Sha256) -> Identity {
    Identity::by_hand(manifest, SandboxLayer::None.as_str(), env!("CARGO_PKG_VERSION"))
}
