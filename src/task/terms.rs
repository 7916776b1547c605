//! What is in force of a contract on a base: the policy, filters, hooks and verifiers of the base's commit,
//! within the user's private layer and the task above.

use super::Session;
use super::view::load;
use crate::domain::contract::hook::{Hook, Layer};
use crate::domain::contract::policy::{Config, Effective, Policy, effective_contract};
use crate::domain::contract::worktree_rules::WorktreeRules;
use crate::domain::contract::{Contract, Kind, family};
use crate::domain::ledger::record::Opened;
use crate::domain::ledger::task::TaskView;
use crate::domain::value::digest::{ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::tree;
use crate::store::Ledger;
use crate::verifier::Verifiers;
use crate::verifier::manifest::Setup;

/// What the base commit says of a contract.
pub struct Terms {
    pub effective: Effective,
    /// Filter drivers that run while a slot is filled.
    pub filters: Vec<String>,
    /// Programs that are asked, or hear, of what the worker does.
    pub hooks: Vec<Hook>,
    /// What the policy took away, as sentences.
    pub narrowed: Vec<String>,
    /// What a new worktree gets beside the files of its base.
    pub worktree: WorktreeRules,
    pub verifiers: Verifiers,
}

impl Terms {
    /// The task as it is under these terms.
    pub fn apply(self, opened: Opened) -> Opened {
        let Self { effective, filters, hooks, narrowed, .. } = self;
        Opened { effective, filters, hooks, narrowed, ..opened }
    }
}

/// Policy and verifiers are read from the base commit's tree; every manifest that the contract or the policy
/// names has to be readable there, so that nothing is refused for that once the work is done.
pub fn read_terms(session: &Session, contract: &Contract, base: &ObjectId) -> Result<Terms> {
    require_what_shows_a_repair(contract)?;
    let config = read_configuration(session, base)?;
    let (effective, narrowings) = effective_contract(contract, &config.policy)?;
    let effective = limit_to_parent(session, contract, effective)?;
    let verifiers = Verifiers::load(&session.repository, base, &session.layout.local(), &contract.case)?;
    let forbidden = &contract.verification.forbidden;
    let demanded = contract.requirements.iter().map(|requirement| &requirement.verifier);
    let demanded = demanded.chain(config.policy.require.iter().map(|floor| &floor.verifier));
    let demanded = demanded.chain(&contract.verification.allowed);
    let is_networked = |setup: &Setup| setup.network;
    for id in demanded.filter(|verifier| !forbidden.contains(verifier)) {
        if verifiers.get(id)?.and_then(|verifier| verifier.manifest.setup.as_ref()).is_some_and(is_networked)
        {
            refuse_network(&config.policy, &format!("the setup of the verifier {id}"), "setup.network")?;
        }
    }
    if config.worktree.setup.as_ref().is_some_and(|setup| setup.network) {
        refuse_network(&config.policy, "the setup of worktrees", "worktree.setup.network")?;
    }
    Ok(Terms {
        effective: effective.protect_more(&verifiers.closure_scope()),
        filters: config.filters,
        hooks: config.hooks,
        narrowed: narrowings.into_iter().map(|narrowing| narrowing.text).collect(),
        worktree: config.worktree,
        verifiers,
    })
}

/// The verifiers of a task's base commit, and those of the user's private layer.
pub fn verifiers_of_base(session: &Session, opened: &Opened) -> Result<Verifiers> {
    let (base, case) = (opened.base.commit_tree(), &opened.contract.case);
    Verifiers::load(&session.repository, base, &session.layout.local(), case)
}

/// The policy of the base commit's tree and the user's private one together.
pub fn read_configuration(session: &Session, base: &ObjectId) -> Result<Config> {
    let objects = session.repository.object_reader(None)?;
    let path = RepoPath::new(".tender/config.toml")?;
    let committed = match tree::find_entry(&objects, base, &path)? {
        Some(TreeObject { mode, id }) if mode.is_regular() => Some(objects.read_blob(&id)?),
        _ => None,
    };
    let private = session.layout.local().join("config.toml");
    let private_bytes = match std::fs::read(&private) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Failure::io("read", &private, &e)),
    };
    let parse = |bytes: Option<Vec<u8>>, place: &str| -> Result<Option<Config>> {
        bytes
            .map(|bytes| Config::parse_config(&bytes))
            .transpose()
            .map_err(|failure| failure.detail("file", place))
    };
    let committed = parse(committed, ".tender/config.toml in the base commit")?;
    let mut private = parse(private_bytes, &private.display().to_string())?;
    private.iter_mut().flat_map(|config| &mut config.hooks).for_each(|hook| hook.layer = Layer::Private);
    // Only what is there takes part: the defaults of a missing file are no ceiling of anybody's.
    Ok(match (committed, private) {
        (Some(mut committed), Some(private)) => {
            committed.filters.extend(private.filters);
            committed.hooks.extend(private.hooks);
            let worktree = committed.worktree.joined_with(private.worktree);
            Config { policy: Policy::intersect(&committed.policy, &private.policy), worktree, ..committed }
        }
        (one, other) => one.or(other).unwrap_or_default(),
    })
}

/// The task that this one is a part of, which has to be there and to go on.
pub fn find_parent(ledger: &Ledger, contract: &Contract) -> Result<Option<TaskView>> {
    let Some(id) = &contract.parent else { return Ok(None) };
    let Some(view) = load(ledger, id)? else {
        return Err(Failure::new(
            Code::NotFound,
            format!("there is no task {id:?} that this one could be a part of"),
        )
        .subject("parent")
        .detail("parent", id)
        .remedy("Open that task first.", ["git", "tender", "status"]));
    };
    if view.has_ended() {
        let state = if view.cancelled.is_some() { "cancelled" } else { "completed" };
        return Err(Failure::new(
            Code::StateInvalid,
            format!("the task {id} is {state}, so nothing can be a part of it any more"),
        )
        .subject("parent")
        .detail("parent", id)
        .expected("a task that has not ended", state)
        .remedy("Leave `parent` out, or name a task that is open.", ["git", "tender", "status"]));
    }
    Ok(Some(view))
}

/// What is in force of a part of another task: nothing beyond that one.
fn limit_to_parent(session: &Session, contract: &Contract, effective: Effective) -> Result<Effective> {
    let view = match (&contract.parent, session.ledger()?) {
        (None, _) => None,
        (_, Some(ledger)) => find_parent(&ledger, contract)?,
        (Some(_), None) => return Err(Failure::internal("a ledger was made and is not there")),
    };
    let Some(view) = view else { return Ok(effective) };
    let (above, limits) = (view.opened_terms()?, view.current_limits());
    match Failure::first_of(family::find_excess(contract, &above.contract, &limits)) {
        Some(failure) => Err(failure),
        None => Ok(effective.within_parent(&above.effective, &limits)),
    }
}

/// A repair that requires nothing could never show that it repaired anything.
fn require_what_shows_a_repair(contract: &Contract) -> Result<()> {
    if contract.kind != Kind::Repair || contract.requirements.iter().any(|requirement| requirement.required) {
        return Ok(());
    }
    Err(Failure::new(
        Code::ContractInvalid,
        "a repair needs a required requirement that fails on the base and passes on the candidate",
    )
    .subject("requirements")
    .expected("a required requirement", "none")
    .remedy("Name the verifier that runs the case under verification.allowed.", ["git", "tender", "doctor"]))
}

/// A set-up may have the network only where no policy closes it.
fn refuse_network(policy: &Policy, whose: &str, field: &str) -> Result<()> {
    if policy.network != Some(false) {
        return Ok(());
    }
    let message = format!("{whose} asks for the network, which the policy keeps `disabled`");
    Err(Failure::new(Code::PermissionDenied, message)
        .subject(field)
        .expected("no network", "network = true")
        .remedy(
            "Take `network = true` out of the setup, or let the policy say `network = \"enabled\"`.",
            ["git", "tender", "doctor"],
        ))
}
