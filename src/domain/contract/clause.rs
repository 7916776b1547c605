//! Clauses: what a candidate has to show, in the order of the report.
//!
//! The contract's requirements come first, then the claims about files, the policy's floor, the confirmation
//! that protected paths call for, and last what the contract forbids, which is shown although nothing will
//! run.

use crate::domain::contract::{ARTIFACTS, Contract, PROTECTED};
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use serde::{Deserialize, Serialize};

/// The reason why a row is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// A requirement of the contract.
    Requirement,
    /// The contract makes claims about files.
    Artifacts,
    /// The policy demands the verifier for what is touched.
    Floor,
    Protected,
    /// The contract allows the verifier, and requires nothing of it.
    Allowed,
    /// The contract forbids the verifier.
    Forbidden,
}

/// A claim that has to be shown, and the verifier that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Clause {
    pub id: String,
    /// In words; evidence binds to the digest of this.
    pub text: String,
    pub verifier: String,
    pub required: bool,
    pub origin: Origin,
    /// Says if the contract lets the verifier run.
    pub permission: Permission,
}

/// The contract's word on a verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Permission {
    Allowed,
    Forbidden,
    /// Others are allowed, it is not named.
    NotNamed,
}

impl Clause {
    /// The digest of the text.
    pub fn digest(&self) -> Sha256 {
        Sha256::of(self.text.as_bytes())
    }
}

/// The clauses of a candidate. `floor` are the verifiers that the policy demands for what it touches,
/// `protected` the protected paths among them.
pub fn clauses_of(contract: &Contract, floor: &[String], protected: &[RepoPath]) -> Vec<Clause> {
    let mut found: Vec<Clause> = contract
        .requirements
        .iter()
        .map(|requirement| Clause {
            id: requirement.id.clone(),
            text: requirement.text.clone(),
            verifier: requirement.verifier.clone(),
            required: requirement.required,
            origin: Origin::Requirement,
            permission: permission_for(contract, &requirement.verifier),
        })
        .collect();
    let demanded =
        |found: &[Clause], verifier: &str| found.iter().any(|c| c.required && c.verifier == verifier);
    if !contract.artifacts.is_empty() && !demanded(&found, ARTIFACTS) {
        let id = free_id(&found, ARTIFACTS);
        let text = "the contract's claims about files hold".to_owned();
        found.push(required_clause(id, text, ARTIFACTS, Origin::Artifacts, Permission::Allowed));
    }
    for verifier in floor {
        if demanded(&found, verifier) {
            continue;
        }
        let permission = match permission_for(contract, verifier) {
            Permission::Forbidden => Permission::Forbidden,
            _ => Permission::Allowed,
        };
        let text = format!("the policy demands {verifier} for what is touched");
        found.push(required_clause(free_id(&found, verifier), text, verifier, Origin::Floor, permission));
    }
    if !protected.is_empty() {
        let text = "a person confirms the change of protected paths".to_owned();
        found.push(required_clause(
            free_id(&found, PROTECTED),
            text,
            PROTECTED,
            Origin::Protected,
            Permission::Allowed,
        ));
    }
    let lists = &contract.verification;
    let allowed = lists.allowed.iter().map(|id| (id, Origin::Allowed, Permission::Allowed));
    let forbidden = lists.forbidden.iter().map(|id| (id, Origin::Forbidden, Permission::Forbidden));
    for (verifier, origin, permission) in allowed.chain(forbidden) {
        if !found.iter().any(|c| c.verifier == *verifier) {
            let id = free_id(&found, verifier);
            let row = required_clause(id, verifier.clone(), verifier, origin, permission);
            found.push(Clause { required: false, ..row });
        }
    }
    found
}

fn required_clause(
    id: String,
    text: String,
    verifier: &str,
    origin: Origin,
    permission: Permission,
) -> Clause {
    Clause { id, text, verifier: verifier.to_owned(), required: true, origin, permission }
}

fn permission_for(contract: &Contract, verifier: &str) -> Permission {
    let named = |list: &[String]| list.iter().any(|id| id == verifier);
    if named(&contract.verification.forbidden) {
        Permission::Forbidden
    } else if contract.verification.allowed.is_empty() || named(&contract.verification.allowed) {
        // Without a list of its own, a contract allows what its requirements name.
        Permission::Allowed
    } else {
        Permission::NotNamed
    }
}

fn free_id(found: &[Clause], wanted: &str) -> String {
    let taken = |id: &str| found.iter().any(|clause| clause.id == id);
    let mut id = wanted.to_owned();
    while taken(&id) {
        id.insert(0, '+');
    }
    id
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::clause::*;

    fn contract_with(more: &str) -> Contract {
        let text =
            format!(r#"{{"taskId": "t", "goal": "g", "writeScope": ["**"], "allowedTools": [], {more}}}"#);
        Contract::parse_document(text.as_bytes()).expect("a contract")
    }

    fn shown_clauses(
        contract: &Contract,
        floor: &[&str],
        protected: &[&str],
    ) -> Vec<(String, bool, Origin, Permission)> {
        let floor: Vec<String> = floor.iter().map(|id| (*id).to_owned()).collect();
        let protected: Vec<RepoPath> = protected.iter().map(|p| RepoPath::new(*p).expect("a path")).collect();
        let rows = clauses_of(contract, &floor, &protected);
        rows.into_iter().map(|c| (c.id, c.required, c.origin, c.permission)).collect()
    }

    #[test]
    fn rows_come_in_the_documented_order() {
        let contract = contract_with(
            r#""verification": {"allowed": ["unit", "lint", "spell"], "forbidden": ["build", "deploy"]},
               "requirements": [{"id": "r", "text": "x", "verifier": "unit"},
                                {"id": "s", "text": "x", "verifier": "lint", "required": false}],
               "artifacts": [{"path": "a"}]"#,
        );
        let rows = shown_clauses(&contract, &["unit", "lint", "build", "extra"], &["a"]);
        let ids: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(ids, ["r", "s", "artifacts", "lint", "build", "extra", "protected", "spell", "deploy"]);
        let of = |id: &str| rows.iter().find(|row| row.0 == id).cloned().expect(id);
        assert_eq!((of("lint").1, of("lint").2), (true, Origin::Floor), "an optional row is no floor");
        assert_eq!((of("build").1, of("build").3), (true, Permission::Forbidden), "it cannot be completed");
        assert_eq!(of("extra").3, Permission::Allowed, "not being named is not being forbidden");
        assert_eq!((of("spell").1, of("spell").2), (false, Origin::Allowed), "it may run, and need not");
        assert_eq!((of("deploy").1, of("deploy").2), (false, Origin::Forbidden));
    }

    #[test]
    fn a_requirement_may_only_use_what_is_allowed() {
        let rows = r#""requirements": [{"id": "r", "text": "x", "verifier": "unit"}]"#;
        assert_eq!(shown_clauses(&contract_with(rows), &[], &[])[0].3, Permission::Allowed);
        let other = format!(r#""verification": {{"allowed": ["lint"]}}, {rows}"#);
        if let Ok(contract) = Contract::parse_document(
            format!(r#"{{"taskId": "t", "goal": "g", "writeScope": ["**"], "allowedTools": [], {other}}}"#)
                .as_bytes(),
        ) {
            assert_eq!(shown_clauses(&contract, &[], &[])[0].3, Permission::NotNamed);
        }
    }

    #[test]
    fn two_rows_never_share_an_id() {
        let contract = contract_with(
            r#""verification": {"allowed": ["unit", "lint"], "forbidden": ["x"]},
               "requirements": [{"id": "x", "text": "x", "verifier": "unit"}, {"id": "lint", "text": "x", "verifier": "unit"}]"#,
        );
        let ids: Vec<String> =
            shown_clauses(&contract, &["lint"], &[]).into_iter().map(|row| row.0).collect();
        assert_eq!(ids, ["x", "lint", "+lint", "+x"]);
    }
}
