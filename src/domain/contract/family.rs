//! Sub-tasks: what a contract may ask for that is a part of another one. Nothing beyond that one.

use crate::domain::contract::budget::{Amounts, Limits};
use crate::domain::contract::{Contract, SandboxWish};
use crate::domain::value::scope::{Fit, Scope};
use crate::error::{Code, Failure};
use serde::Serialize;

/// Everything in which a contract goes beyond its parent's, whose limits are `limits` by now. Where a glob
/// may name something outside, it does.
pub fn find_excess(child: &Contract, parent: &Contract, limits: &Limits) -> Vec<Failure> {
    let mut found = Vec::new();
    check_scope(&mut found, "writeScope", &child.write_scope, &parent.write_scope, &parent.task_id);
    match (&child.read_scope, &parent.read_scope) {
        (_, None) => {}
        (Some(own), Some(ceiling)) => check_scope(&mut found, "readScope", own, ceiling, &parent.task_id),
        (None, Some(ceiling)) => {
            let why = format!("is the whole tree, but {} may read less", parent.task_id);
            found.push(excess_at("readScope", &why, ceiling.patterns(), "the whole tree"));
        }
    }
    let more: Vec<&String> =
        child.allowed_tools.iter().filter(|tool| !parent.allowed_tools.contains(tool)).collect();
    if let Some(first) = more.first() {
        let why = format!("holds {first}, which {} does not allow", parent.task_id);
        found.push(excess_at("allowedTools", &why, &parent.allowed_tools, &child.allowed_tools));
    }
    if child.network != parent.network {
        let why = format!("goes beyond what {} may reach", parent.task_id);
        found.push(excess_at("network", &why, parent.network, child.network));
    }
    if (child.sandbox, parent.sandbox) == (SandboxWish::Optional, SandboxWish::Required) {
        let why = format!("is optional, but {} requires it", parent.task_id);
        found.push(excess_at("sandbox", &why, parent.sandbox, child.sandbox));
    }
    if child.commit_allowed && !parent.commit_allowed {
        let why = format!("is true, but not for {}", parent.task_id);
        found.push(excess_at("commitAllowed", &why, false, true));
    }
    check_budget(&mut found, &child.budget, limits, &parent.task_id);
    found
}

fn check_scope(found: &mut Vec<Failure>, field: &str, own: &Scope, ceiling: &Scope, parent: &str) {
    for (pattern, fit) in own.fit_patterns(ceiling) {
        let how = match fit {
            Fit::Within => continue,
            Fit::Partly => "may name something outside",
            Fit::Outside => "is outside",
        };
        let why = format!("holds {pattern}, which {how} of what {parent} may do");
        found.push(excess_at(field, &why, ceiling.patterns(), pattern));
    }
}

fn check_budget(found: &mut Vec<Failure>, asked: &Amounts, limits: &Limits, parent: &str) {
    for (key, asked) in asked.iter().filter(|(key, asked)| **asked > limits.limit_of(**key)) {
        let why = format!("is {asked}, but {parent} has {}", limits.limit_of(*key));
        found.push(excess_at(&format!("budget.{}", key.as_str()), &why, limits.limit_of(*key), asked));
    }
}

fn excess_at(field: &str, why: &str, expected: impl Serialize, actual: impl Serialize) -> Failure {
    Failure::new(Code::ContractInvalid, format!("{field} of the contract {why}"))
        .subject(field)
        .expected(expected, actual)
}

#[cfg(test)]
mod tests {
    use crate::domain::contract::Kind;
    use crate::domain::contract::family::*;
    use serde_json::{Value, json};

    fn contract_with(more: Value) -> Contract {
        let mut document = json!({"taskId": "p", "goal": "g", "writeScope": ["docs/", "src/*.rs"], "allowedTools": ["read_file"]});
        for (key, value) in more.as_object().expect("an object") {
            document[key] = value.clone();
        }
        Contract::parse_document(document.to_string().as_bytes()).expect("a contract")
    }

    fn beyond_of(child: Value, parent: Value) -> Vec<String> {
        let parent = contract_with(parent);
        let (limits, _) = Limits::within_ceiling(Kind::Edit, &parent.budget, &Amounts::new());
        let found = find_excess(&contract_with(child), &parent, &limits);
        found.iter().map(|failure| failure.subject_text().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn what_is_within_is_taken_and_what_is_beyond_is_named() {
        let none: [&str; 0] = [];
        assert_eq!(beyond_of(json!({}), json!({})), none);
        let inner = json!({"writeScope": ["docs/a/", "docs/b.md"], "allowedTools": [], "budget": {"wallSeconds": 3600}});
        assert_eq!(beyond_of(inner, json!({})), none);
        for (child, parent, subject) in [
            (json!({"writeScope": ["src/"]}), json!({}), "writeScope"),
            (json!({"writeScope": ["**"]}), json!({}), "writeScope"),
            (json!({"writeScope": ["docs-evil/"]}), json!({}), "writeScope"),
            (json!({}), json!({"readScope": ["docs/"]}), "readScope"),
            (json!({"readScope": ["src/"]}), json!({"readScope": ["docs/"]}), "readScope"),
            (json!({"allowedTools": ["read_file", "shell"]}), json!({}), "allowedTools"),
            (json!({"sandbox": "optional"}), json!({}), "sandbox"),
            (json!({"commitAllowed": true}), json!({}), "commitAllowed"),
            (
                json!({"budget": {"wallSeconds": 11}}),
                json!({"budget": {"wallSeconds": 10}}),
                "budget.wallSeconds",
            ),
            (json!({"budget": {"turns": 1}}), json!({"budget": {"turns": 0}}), "budget.turns"),
        ] {
            assert_eq!(beyond_of(child.clone(), parent), [subject], "{child}");
        }
    }
}
