//! The policy: the repository's ceiling over every contract, from `.tender/config.toml` at the base commit.
//!
//! Authority only shrinks: two policies intersect, a contract is intersected with the policy, and every
//! narrowing is named. A key that is left out sets no ceiling, but for the protected paths and `flaky`. What
//! a later version fulfils is refused by name, never ignored: a ceiling that nobody enforces would be a lie.

mod read;

#[cfg(test)]
pub use read::{CONFIG_FIELDS, POLICY_FIELDS};

use crate::domain::contract::budget::{Amounts, Limits};
use crate::domain::contract::hook::Hook;
use crate::domain::contract::worktree_rules::WorktreeRules;
use crate::domain::contract::{Contract, DeliveryMode, Kind};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::{Fit, Scope};
use crate::error::{Code, Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Protected where the policy does not say.
pub const DEFAULT_PROTECTED: [&str; 4] = [".tender/", ".github/", "**/.gitattributes", "**/.gitmodules"];

/// Protected whatever the policy says.
const ALWAYS_PROTECTED: [&str; 1] = [".tender/"];

/// The verdict that a pass after a fail on the same bytes counts as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flaky {
    #[default]
    Fail,
    /// A pass, and a risk in the report.
    Warn,
}

/// What a delivery does about a live tree with other files than the verifiers saw; the strictest comes last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LiveRule {
    /// Nobody looks.
    Off,
    /// The rows say so, and it is a risk in the report.
    #[default]
    Warn,
    /// It is shown on the live tree before anything is written.
    Prove,
}

/// What it takes that a case of the base does not run any more; the later is the stricter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoneCases {
    /// A risk in the report.
    Warn,
    /// A person confirms it.
    #[default]
    Person,
}

/// When a verifier is run on the base, to compare; the later is the stricter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaseRuns {
    /// Not for that alone: what other runs left is used.
    #[default]
    Reuse,
    /// Once for each base, where it failed on the candidate.
    #[serde(rename = "on-failure")]
    OnFailure,
    /// Once for each base.
    Always,
}

impl BaseRuns {
    /// The words that stand for them.
    pub const ALL: [(&str, Self); 3] =
        [("reuse", Self::Reuse), ("on-failure", Self::OnFailure), ("always", Self::Always)];

    /// True for the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A verifier that must pass where a change touches certain paths, whatever the contract says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// Id of the verifier; the row has the same id.
    pub verifier: String,
    pub when: Scope,
}

/// The ceiling. Read with its defaults by [`Config::parse_config`]; without a configuration it is the
/// default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// A path that changes must be in each of these; no ceiling where empty. Several come from intersecting.
    pub write: Vec<Scope>,
    /// Paths whose change a person confirms; `None` stands for the default. See [`Policy::protected_scope`].
    pub protected: Option<Scope>,
    /// Verifiers that a change needs.
    pub require: Vec<Floor>,
    /// Modes that may be used; `None` sets no ceiling.
    pub delivery: Option<Vec<DeliveryMode>>,
    /// False where no task may commit.
    pub commit: Option<bool>,
    /// False where no setup may be told how to reach the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// What flaky counts as; `None` sets nothing, and stands for [`Flaky::Fail`] in the end.
    pub flaky: Option<Flaky>,
    /// What to do about other files in the live tree; `None` sets nothing, and stands for [`LiveRule::Warn`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveRule>,
    /// What gone cases need; `None` sets nothing, and stands for [`GoneCases::Person`] in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_cases: Option<GoneCases>,
    /// When every verifier is run on the base; `None` leaves it to the manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseRuns>,
    /// By kind: the most that a task may use.
    pub budget: BTreeMap<String, Amounts>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    pub policy: Policy,
    /// Names of filter drivers that run in slots.
    pub filters: Vec<String>,
    /// Programs that are asked, or hear, of what workers do.
    pub hooks: Vec<Hook>,
    /// What a task's worktree gets beside the files of its base.
    #[serde(default)]
    pub worktree: WorktreeRules,
}

impl Policy {
    /// Both ceilings at once: what one forbids is forbidden, what one asks for is asked for.
    pub fn intersect(&self, other: &Policy) -> Policy {
        let mut write = self.write.clone();
        write.extend(other.write.iter().filter(|scope| !self.write.contains(scope)).cloned());
        let mut require = self.require.clone();
        require.extend(other.require.iter().filter(|floor| !self.require.contains(floor)).cloned());
        let mut budget = self.budget.clone();
        for (kind, amounts) in &other.budget {
            let own = budget.entry(kind.clone()).or_default();
            for (key, most) in amounts {
                own.entry(*key).and_modify(|own| *own = (*own).min(*most)).or_insert(*most);
            }
        }
        Policy {
            write,
            protected: lower_of(&self.protected, &other.protected, Scope::union),
            require,
            delivery: lower_of(&self.delivery, &other.delivery, |a, b| {
                a.iter().filter(|mode| b.contains(mode)).copied().collect()
            }),
            commit: lower_of(&self.commit, &other.commit, |a, b| *a && *b),
            network: lower_of(&self.network, &other.network, |a, b| *a && *b),
            flaky: lower_of(&self.flaky, &other.flaky, |a, b| {
                if [a, b].contains(&&Flaky::Fail) { Flaky::Fail } else { Flaky::Warn }
            }),
            live: lower_of(&self.live, &other.live, |a, b| *a.max(b)),
            gone_cases: self.gone_cases.max(other.gone_cases),
            base: self.base.max(other.base),
            budget,
        }
    }

    /// The protected paths, the default and what is always protected included.
    pub fn protected_scope(&self) -> Scope {
        let own = self.protected.clone().unwrap_or_else(|| built_in(&DEFAULT_PROTECTED));
        own.union(&built_in(&ALWAYS_PROTECTED))
    }

    /// The keys that another policy sets otherwise.
    pub fn differing_keys(&self, other: &Self) -> Vec<String> {
        let fields = |policy: &Self| match serde_json::to_value(policy) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (own, theirs) = (fields(self), fields(other));
        let keys: BTreeSet<&String> = own.keys().chain(theirs.keys()).collect();
        keys.into_iter().filter(|key| own.get(*key) != theirs.get(*key)).cloned().collect()
    }

    /// The digest that an authorization names as its basis.
    pub fn digest(&self) -> Sha256 {
        Sha256::of_json(self)
    }
}

/// A scope of patterns that are known to be right.
fn built_in(patterns: &[&str]) -> Scope {
    Scope::new(patterns.iter().map(|pattern| (*pattern).to_owned()).collect()).unwrap_or_default()
}

/// The lower of two ceilings, each of which may be left out.
fn lower_of<T: Clone>(a: &Option<T>, b: &Option<T>, join: impl FnOnce(&T, &T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (one, None) | (None, one) => one.clone(),
    }
}

/// One place where the contract asks for more than it gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Narrowing {
    /// The field of the contract.
    pub field: String,
    /// The key of the policy that narrows it.
    pub by: String,
    pub text: String,
}

/// The rules in force for a task: the contract within the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effective {
    /// The contract's scope and each ceiling: a path that changes is in all of them.
    write: Vec<Scope>,
    /// Paths whose change a person confirms.
    protected: Scope,
    /// Verifiers that a change needs.
    require: Vec<Floor>,
    /// The task's limits, but for what a person adds.
    #[serde(default)]
    pub limits: Limits,
    /// The policy's own limits: no person may add beyond them.
    #[serde(default)]
    pub ceiling: Amounts,
    pub delivery: DeliveryMode,
    pub commit: bool,
    pub flaky: Flaky,
    #[serde(default)]
    pub live: LiveRule,
    #[serde(default)]
    pub gone_cases: GoneCases,
    #[serde(default)]
    pub base: BaseRuns,
    pub policy_sha256: Sha256,
}

/// The contract within the policy, and each narrowing. Refused (`permission.denied`) where the contract's
/// delivery mode is none that the policy has: that cannot be narrowed.
pub fn effective_contract(contract: &Contract, policy: &Policy) -> Result<(Effective, Vec<Narrowing>)> {
    if let Some(modes) = policy.delivery.as_ref().filter(|modes| !modes.contains(&contract.delivery)) {
        let words: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
        let asked = contract.delivery.as_str();
        let message = format!(
            "the policy does not allow the delivery mode `{asked}`; it allows [{}]",
            words.join(", ")
        );
        return Err(Failure::new(Code::PermissionDenied, message).subject("delivery").expected(words, asked));
    }
    let mut narrowings = narrowed_scopes(contract, policy);
    narrowings.extend(narrowed_by_kind(contract));
    let kind = contract.kind.as_str();
    let ceiling = policy.budget.get(kind).cloned().unwrap_or_default();
    let (limits, narrowed) = Limits::within_ceiling(contract.kind, &contract.budget, &ceiling);
    narrowings.extend(narrowed.into_iter().map(|key| {
        let (asked, word) = (contract.budget.get(&key).copied().unwrap_or(0), key.as_str());
        let by = format!("policy.budget.{kind}.{word}");
        let text = format!("budget.{word} {asked} narrowed to {} by {by}", limits.limit_of(key));
        Narrowing { field: format!("budget.{word}"), by, text }
    }));
    let commit = contract.commit_allowed && policy.commit != Some(false);
    if contract.commit_allowed && !commit {
        narrowings.push(Narrowing {
            field: "commitAllowed".to_owned(),
            by: "policy.commit".to_owned(),
            text: "commitAllowed true narrowed to false by policy.commit".to_owned(),
        });
    }
    if contract.delivery.publishes() && !commit {
        let asked = contract.delivery.as_str();
        let message = format!("the policy allows no commits, and the delivery mode `{asked}` makes one");
        return Err(Failure::new(Code::PermissionDenied, message)
            .subject("delivery")
            .expected("a mode without a commit, such as `local_files`", asked));
    }
    let mut write: Vec<Scope> =
        std::iter::once(&contract.write_scope).chain(&policy.write).cloned().collect();
    if contract.kind == Kind::Explore {
        // No path is in it, whatever the contract says.
        write.push(Scope::default());
    }
    let effective = Effective {
        write,
        protected: policy.protected_scope(),
        require: policy.require.clone(),
        limits,
        ceiling,
        delivery: contract.delivery,
        commit,
        flaky: policy.flaky.unwrap_or_default(),
        live: policy.live.unwrap_or_default(),
        gone_cases: policy.gone_cases.unwrap_or_default(),
        base: policy.base.unwrap_or_default(),
        policy_sha256: policy.digest(),
    };
    Ok((effective, narrowings))
}

/// An `explore` changes nothing, whatever its contract says.
fn narrowed_by_kind(contract: &Contract) -> Option<Narrowing> {
    if contract.kind != Kind::Explore || contract.write_scope.is_empty() {
        return None;
    }
    let list = contract.write_scope.patterns().join(", ");
    Some(Narrowing {
        field: "writeScope".to_owned(),
        by: "kind".to_owned(),
        text: format!("writeScope [{list}] narrowed to nothing by the kind `explore`, which changes nothing"),
    })
}

fn narrowed_scopes(contract: &Contract, policy: &Policy) -> Vec<Narrowing> {
    let mut narrowings = Vec::new();
    for ceiling in &policy.write {
        for (pattern, fit) in contract.write_scope.fit_patterns(ceiling) {
            let list = ceiling.patterns().join(", ");
            let text = match fit {
                Fit::Within => continue,
                Fit::Partly => {
                    format!("writeScope {pattern} narrowed by policy.write to what lies in [{list}]")
                }
                Fit::Outside => format!("writeScope {pattern} narrowed to nothing by policy.write [{list}]"),
            };
            narrowings.push(Narrowing {
                field: "writeScope".to_owned(),
                by: "policy.write".to_owned(),
                text,
            });
        }
    }
    narrowings
}

/// The part of a pattern that lies within a ceiling.
fn part_within(pattern: String, ceiling: &Scope) -> Vec<String> {
    let Ok(scope) = Scope::new(vec![pattern.clone()]) else { return vec![pattern] };
    let fit = scope.fit_patterns(ceiling).first().map(|(_, fit)| *fit);
    match fit {
        Some(Fit::Outside) => Vec::new(),
        Some(Fit::Partly) => {
            let inner = ceiling.fit_patterns(&scope).into_iter().filter(|(_, fit)| *fit == Fit::Within);
            let inner: Vec<String> = inner.map(|(text, _)| text.to_owned()).collect();
            if inner.is_empty() { vec![pattern] } else { inner }
        }
        Some(Fit::Within) | None => vec![pattern],
    }
}

impl Effective {
    /// True where a task may change the path. No [`RepoPath`] is git's own, so that `.git` never comes here.
    pub fn write_allows(&self, path: &RepoPath) -> bool {
        self.write.iter().all(|scope| scope.matches_path(path))
    }

    /// Patterns for people of what [`Effective::write_allows`]: the contract's, without what lies outside of
    /// a ceiling. Where one lies in it partly, the ceiling's own patterns within it take its place, if there
    /// are such.
    pub fn write_patterns(&self) -> Vec<String> {
        let (first, ceilings) = match self.write.split_first() {
            Some((first, ceilings)) => (first.patterns().to_vec(), ceilings),
            None => (Vec::new(), [].as_slice()),
        };
        let mut patterns = ceilings.iter().fold(first, |patterns, ceiling| {
            patterns.into_iter().flat_map(|pattern| part_within(pattern, ceiling)).collect()
        });
        patterns.dedup();
        patterns
    }

    /// True where a change of the path is a person's to confirm: protected paths, in any case of letters, and
    /// the directories above them (a link in their place would hide them).
    pub fn is_protected(&self, path: &RepoPath) -> bool {
        self.protected.touches_path(path)
            || RepoPath::new(path.fold_key()).is_ok_and(|folded| self.protected.touches_path(&folded))
    }

    /// Within what is in force for the task that this one is a part of, whose limits are `limits` by now.
    pub fn within_parent(mut self, parent: &Effective, limits: &Limits) -> Self {
        self.write.extend(
            parent.write.iter().filter(|scope| !self.write.contains(scope)).cloned().collect::<Vec<_>>(),
        );
        self.require.extend(
            parent.require.iter().filter(|floor| !self.require.contains(floor)).cloned().collect::<Vec<_>>(),
        );
        self.protected = self.protected.union(&parent.protected);
        self.limits = self.limits.at_most(limits);
        self.commit &= parent.commit;
        if parent.flaky == Flaky::Fail {
            self.flaky = Flaky::Fail;
        }
        self.live = self.live.max(parent.live);
        self.gone_cases = self.gone_cases.max(parent.gone_cases);
        self.base = self.base.max(parent.base);
        self
    }

    /// Protects more: the closure and the manifests of the verifiers.
    pub fn protect_more(mut self, more: &Scope) -> Self {
        self.protected = self.protected.union(more);
        self
    }

    /// The verifiers that a change of these paths needs, each once, in the order of the policy.
    pub fn floor_for<'a>(&self, changed: impl IntoIterator<Item = &'a RepoPath>) -> Vec<String> {
        let changed: Vec<&RepoPath> = changed.into_iter().collect();
        let mut verifiers: Vec<String> = Vec::new();
        for floor in &self.require {
            if !verifiers.contains(&floor.verifier)
                && changed.iter().any(|path| floor.when.matches_path(path))
            {
                verifiers.push(floor.verifier.clone());
            }
        }
        verifiers
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::budget::Key;
    use crate::domain::contract::policy::*;

    fn parsed_config(text: &str) -> Config {
        Config::parse_config(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    fn refused_config(text: &str) -> Failure {
        Config::parse_config(text.as_bytes()).expect_err(text)
    }

    fn contract_with(more: &str) -> Contract {
        let text = format!(r#"{{"taskId":"t1","goal":"g","allowedTools":[],{more}}}"#);
        Contract::parse_document(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    fn repo_path(text: &str) -> RepoPath {
        RepoPath::new(text).expect("a path")
    }

    const WHOLE: &str = r#"
filters = ["lfs"]
[policy]
write = ["docs/", "src/", "tests/"]
protected = ["secret/"]
require = [{ verifier = "unit", when = ["src/**"] }, { verifier = "lint", when = ["**/*.rs"] }]
network = "disabled"
delivery = ["local_files", "bundle"]
commit = false
flaky = "warn"
goneCases = "warn"
base = "always"
live = "off"
[policy.budget.repair]
artifactBytes = 1000
"#;

    #[test]
    fn every_key_in_force_is_read() {
        let config = parsed_config(WHOLE);
        assert_eq!(config.filters, ["lfs"]);
        let policy = config.policy;
        assert_eq!(policy.write[0].patterns(), ["docs/", "src/", "tests/"]);
        assert_eq!(policy.protected_scope().patterns(), ["secret/", ".tender/"]);
        assert_eq!(policy.require[1].verifier, "lint");
        assert_eq!(policy.delivery, Some(vec![DeliveryMode::LocalFiles, DeliveryMode::Bundle]));
        assert_eq!((policy.commit, policy.flaky), (Some(false), Some(Flaky::Warn)));
        assert_eq!(policy.live, Some(LiveRule::Off));
        assert_eq!((policy.gone_cases, policy.base), (Some(GoneCases::Warn), Some(BaseRuns::Always)));
        assert_eq!(policy.budget["repair"].get(&Key::ArtifactBytes), Some(&1000));
    }

    #[test]
    fn nothing_said_is_the_default() {
        assert_eq!(parsed_config(""), Config::default());
        let network = |text: &str| parsed_config(&format!("[policy]\nnetwork = {text}\n")).policy.network;
        assert_eq!(network("{ allow = [\"localhost:80\"] }"), Some(true));
        assert_eq!(network("\"disabled\""), Some(false));
        let protected = Policy::default().protected_scope();
        for name in
            [".tender/config.toml", ".github/w.yml", ".gitattributes", "a/.gitattributes", "b/.gitmodules"]
        {
            assert!(protected.matches_path(&repo_path(name)), "{name}");
        }
    }

    #[test]
    fn faults_name_the_key_and_the_nearest() {
        for (text, subject, says) in [
            ("polcy = 1", "polcy", "`policy`"),
            ("[policy]\nwrites = []", "policy.writes", "`policy.write`"),
            ("[policy.budget.repair]\ntoolcall = 1", "policy.budget.repair.toolcall", "toolCalls"),
            ("[policy.budget.fix]\ntoolCalls = 1", "policy.budget.fix", "policy.budget."),
            ("[policy]\nwrite = \"docs/\"", "policy.write", "a list"),
            ("[policy]\nwrite = [\"../\"]", "policy.write[0]", ".."),
            ("[policy]\nflaky = \"maybe\"", "policy.flaky", "fail, warn"),
            ("[policy]\ngoneCases = \"maybe\"", "policy.goneCases", "person, warn"),
            ("[policy]\nbase = \"never\"", "policy.base", "reuse, on-failure, always"),
            ("[policy]\nlive = \"on\"", "policy.live", "off, warn, prove"),
            ("[policy]\ncommit = \"no\"", "policy.commit", "true or false"),
            ("[policy]\nnetwork = \"open\"", "policy.network", "disabled"),
            ("[policy]\ndelivery = [\"mail\"]", "policy.delivery[0]", "local_files"),
            ("[policy]\nrequire = [{ verifier = \"unit\" }]", "policy.require[0].when", "missing"),
            ("[policy]\nrequire = [{ verifier = \"a b\", when = [] }]", "policy.require[0].verifier", "a b"),
            ("[policy.budget.edit]\nartifactBytes = -1", "policy.budget.edit.artifactBytes", "from 0"),
            ("filters = [\"a\", \"a\"]", "filters[1]", "already"),
            ("hooks = 1", "hooks", "list"),
            ("[policy]\naccept = \"all\"", "policy.accept", "signed"),
        ] {
            let failure = refused_config(text);
            assert_eq!(
                (failure.code(), failure.subject_text()),
                (Code::ConfigInvalid, Some(subject)),
                "{failure}"
            );
            assert!(failure.message().contains(says), "{failure}");
        }
        let damaged = refused_config("[policy]\nwrite = [");
        assert_eq!(damaged.code(), Code::ConfigInvalid);
        assert!(damaged.message().contains("line 2"), "{damaged}");
        assert_eq!(refused_config("a = 1\na = 2").code(), Code::ConfigInvalid);
        assert_eq!(
            Config::parse_config(&[b'#'; 2 << 20]).expect_err("too large").code(),
            Code::ConfigInvalid
        );
        assert_eq!(Config::parse_config(b"\xff").expect_err("not UTF-8").code(), Code::ConfigInvalid);
    }

    #[test]
    fn what_comes_later_is_refused_by_name() {
        let failure = refused_config("[policy]\naccept = \"signed\"");
        assert_eq!((failure.code(), failure.subject_text()), (Code::NotSupported, Some("policy.accept")));
        let both = refused_config("[policy]\naccept = \"signed\"\nwrites = []");
        assert_eq!(both.code(), Code::ConfigInvalid);
        assert_eq!(both.others()[0].code(), Code::NotSupported);
    }

    #[test]
    fn policies_intersect() {
        let committed = parsed_config(WHOLE).policy;
        let private = parsed_config(
            "[policy]\nwrite = [\"src/\"]\nprotected = [\"more/\"]\ndelivery = [\"local_files\"]\ncommit = true\n\
             require = [{ verifier = \"mine\", when = [\"**\"] }]\n[policy.budget.repair]\nartifactBytes = 10\n\
             [policy.budget.edit]\nartifactBytes = 7\n",
        )
        .policy;
        for policy in [committed.intersect(&private), private.intersect(&committed)] {
            let (force, _) =
                effective_contract(&contract_with(r#""writeScope":["**"]"#), &policy).expect("allowed");
            assert!(force.write_allows(&repo_path("src/a")) && !force.write_allows(&repo_path("docs/a")));
            assert!(force.is_protected(&repo_path("secret/a")) && force.is_protected(&repo_path("more/a")));
            assert!(!force.is_protected(&repo_path(".github/a")), "both say what is protected");
            assert_eq!(policy.delivery, Some(vec![DeliveryMode::LocalFiles]));
            assert_eq!((policy.commit, policy.flaky), (Some(false), Some(Flaky::Warn)));
            assert_eq!(policy.require.len(), 3);
            assert_eq!(policy.network, Some(false));
            let bytes = |kind: &str| policy.budget[kind][&Key::ArtifactBytes];
            assert_eq!((bytes("edit"), bytes("repair")), (7, 10));
        }
        assert_eq!(committed.intersect(&committed), committed);
        assert_eq!(committed.differing_keys(&committed), Vec::<String>::new());
        assert_eq!(
            committed.differing_keys(&private),
            [
                "base",
                "budget",
                "commit",
                "delivery",
                "flaky",
                "goneCases",
                "live",
                "network",
                "protected",
                "require",
                "write"
            ]
        );
        assert_eq!(committed.intersect(&Policy::default()), committed, "who says nothing changes nothing");
        let lenient = Policy { flaky: Some(Flaky::Warn), ..Policy::default() };
        assert_eq!(lenient.intersect(&Policy::default()).flaky, Some(Flaky::Warn));
        let strict = Policy { flaky: Some(Flaky::Fail), ..Policy::default() };
        assert_eq!(strict.intersect(&lenient).flaky, Some(Flaky::Fail), "the stricter of the two");
        let said = |text: &str| parsed_config(&format!("[policy]\n{text}")).policy;
        let (lenient, strict) =
            (said("goneCases = \"warn\""), said("goneCases = \"person\"\nbase = \"always\""));
        let both = lenient.intersect(&strict);
        assert_eq!((both.gone_cases, both.base), (Some(GoneCases::Person), Some(BaseRuns::Always)));
        assert_eq!(strict.intersect(&lenient), both);
        let rule = |live| Policy { live, ..Policy::default() };
        for (one, other, holds) in [
            (Some(LiveRule::Off), Some(LiveRule::Warn), Some(LiveRule::Warn)),
            (Some(LiveRule::Prove), Some(LiveRule::Warn), Some(LiveRule::Prove)),
            (Some(LiveRule::Off), None, Some(LiveRule::Off)),
        ] {
            assert_eq!(rule(one).intersect(&rule(other)).live, holds, "{one:?} {other:?}");
            assert_eq!(rule(other).intersect(&rule(one)).live, holds, "{other:?} {one:?}");
        }
        let told = serde_json::to_value(Policy::default()).expect("is written");
        assert!(told.get("live").is_none(), "its digest is in keys: a policy from before keeps it");
    }

    #[test]
    fn the_contract_is_narrowed_and_each_narrowing_shown() {
        let policy = parsed_config(WHOLE).policy;
        let contract = contract_with(
            r#""writeScope":["docs/a/","lib/","**/*.md"],"kind":"repair","case":["tests/"],"budget":{"artifactBytes":5000},"commitAllowed":true"#,
        );
        let (force, narrowings) = effective_contract(&contract, &policy).expect("allowed");
        assert!(force.write_allows(&repo_path("docs/a/x")) && force.write_allows(&repo_path("src/x.md")));
        for name in ["lib/x", "x.md", "docs/b", "src/x.rs"] {
            assert!(!force.write_allows(&repo_path(name)), "{name}");
        }
        assert_eq!((force.limits.limit_of(Key::ArtifactBytes), force.commit), (1000, false));
        let texts: Vec<&str> = narrowings.iter().map(|n| n.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "writeScope lib/ narrowed to nothing by policy.write [docs/, src/, tests/]",
                "writeScope **/*.md narrowed by policy.write to what lies in [docs/, src/, tests/]",
                "budget.artifactBytes 5000 narrowed to 1000 by policy.budget.repair.artifactBytes",
                "commitAllowed true narrowed to false by policy.commit",
            ]
        );
        let text = serde_json::to_string(&(&force, &narrowings)).expect("serializes");
        let back: (Effective, Vec<Narrowing>) = serde_json::from_str(&text).expect("reads");
        assert_eq!(back, (force, narrowings));
    }

    #[test]
    fn budgets_default_to_the_policy_then_to_the_built_in() {
        let plain = contract_with(r#""writeScope":[]"#);
        let bytes = |contract: &Contract, text: &str| {
            effective_contract(contract, &parsed_config(text).policy)
                .expect("allowed")
                .0
                .limits
                .limit_of(Key::ArtifactBytes)
        };
        let built_in = Key::ArtifactBytes.built_in(Kind::Edit);
        assert_eq!(bytes(&plain, ""), built_in);
        assert_eq!(bytes(&plain, "[policy.budget.edit]\nartifactBytes = 9"), 9);
        assert_eq!(bytes(&plain, "[policy.budget.repair]\nartifactBytes = 9"), built_in);
        let large = contract_with(r#""writeScope":[],"budget":{"artifactBytes":1000000000}"#);
        assert_eq!(bytes(&large, ""), 1_000_000_000);
    }

    #[test]
    fn every_key_of_the_budget_is_narrowed_by_its_own_ceiling() {
        let policy = parsed_config("[policy.budget.edit]\nwallSeconds = 60\ntoolCalls = 0\nturns = 7").policy;
        let asked = contract_with(r#""writeScope":[],"budget":{"wallSeconds":61,"toolCalls":1,"turns":6}"#);
        let (force, narrowings) = effective_contract(&asked, &policy).expect("allowed");
        let of = |key: Key| force.limits.limit_of(key);
        assert_eq!((of(Key::WallSeconds), of(Key::ToolCalls), of(Key::Turns)), (60, 0, 6));
        assert_eq!(of(Key::OutputBytes), Key::OutputBytes.built_in(Kind::Edit));
        let texts: Vec<&str> = narrowings.iter().map(|n| n.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "budget.wallSeconds 61 narrowed to 60 by policy.budget.edit.wallSeconds",
                "budget.toolCalls 1 narrowed to 0 by policy.budget.edit.toolCalls",
            ]
        );
    }

    #[test]
    fn a_delivery_mode_that_the_policy_lacks_is_denied() {
        let policy = parsed_config("[policy]\ndelivery = [\"bundle\"]").policy;
        let failure = effective_contract(&contract_with(r#""writeScope":[]"#), &policy).expect_err("denied");
        assert_eq!((failure.code(), failure.subject_text()), (Code::PermissionDenied, Some("delivery")));
        assert_eq!(failure.details()["expected"], serde_json::json!(["bundle"]));
    }

    #[test]
    fn a_policy_without_commits_denies_the_modes_that_make_one() {
        let policy = parsed_config("[policy]\ncommit = false").policy;
        for mode in ["branch", "push"] {
            let contract =
                contract_with(&format!(r#""writeScope":[],"commitAllowed":true,"delivery":"{mode}""#));
            let failure = effective_contract(&contract, &policy).expect_err("denied");
            assert_eq!((failure.code(), failure.subject_text()), (Code::PermissionDenied, Some("delivery")));
            assert!(effective_contract(&contract, &Policy::default()).is_ok());
        }
    }

    #[test]
    fn tender_is_protected_always_and_in_any_letters() {
        let policy = parsed_config("[policy]\nprotected = []").policy;
        let (force, _) =
            effective_contract(&contract_with(r#""writeScope":["**"]"#), &policy).expect("allowed");
        for name in [".tender/config.toml", ".tender", ".TENDER/verifiers/x", ".Tender"] {
            assert!(force.is_protected(&repo_path(name)), "{name}");
        }
        assert!(
            !force.is_protected(&repo_path(".tenderx/a")) && !force.is_protected(&repo_path(".github/a"))
        );
        let closure = Scope::new(vec!["bin/unit.sh".into()]).expect("a scope");
        let force = force.protect_more(&closure);
        assert!(force.is_protected(&repo_path("bin/unit.sh")) && force.is_protected(&repo_path("bin")));
        assert!(!force.is_protected(&repo_path("bin/other.sh")));
    }

    #[test]
    fn the_floor_follows_the_touched_paths() {
        let (force, _) =
            effective_contract(&contract_with(r#""writeScope":["**"]"#), &parsed_config(WHOLE).policy)
                .expect("allowed");
        assert_eq!(force.floor_for([&repo_path("docs/a.md")]), Vec::<String>::new());
        assert_eq!(force.floor_for([&repo_path("docs/a.rs")]), ["lint"]);
        assert_eq!(force.floor_for([&repo_path("docs/a.md"), &repo_path("src/a.rs")]), ["unit", "lint"]);
    }

    #[test]
    fn a_policy_survives_the_ledger_and_has_one_digest() {
        let policy = parsed_config(WHOLE).policy;
        let text = serde_json::to_string(&policy).expect("serializes");
        let back: Policy = serde_json::from_str(&text).expect("reads");
        assert_eq!(back, policy);
        assert_eq!(back.digest(), policy.digest());
        assert_ne!(policy.digest(), Policy::default().digest());
    }
}
