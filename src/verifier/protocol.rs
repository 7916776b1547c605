//! Protocol 1: one JSON line to the verifier, one `result.json` from it.
//!
//! The answer is only a claim: it can make a run worse and never better, since the exit code, the counts and the rest
//! of the AND are asked as well. The nonce ties it to this run.

use super::formats::Counted;
use super::outcome::Said;
use super::{Subject, manifest::OUT, view};
use crate::domain::clause::Clause;
use crate::domain::evidence::{Finding, MOST_FINDINGS};
use crate::domain::patch::Change;
use crate::domain::verdict::{Checks, On, Verdict};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The file that holds the answer, in the run's output directory.
pub(super) const RESULT: &str = "result.json";
/// The largest answer in bytes.
pub(super) const LARGEST: u64 = 16 << 20;

/// More cases than this are no count.
const MOST_CHECKS: u64 = 1 << 40;

/// One run as the verifier hears of it.
pub(super) struct Call<'a> {
    pub(super) run: &'a str,
    pub(super) nonce: &'a str,
    pub(super) clauses: Vec<&'a Clause>,
    pub(super) root: &'a Path,
    pub(super) out: &'a Path,
    pub(super) deadline: String,
}

/// What a run is told of the change beside the files that its slot shows. A verifier may judge by any of it, so the
/// key holds all of it.
///
/// On the base `changed` is the case of a repair and nothing else of the candidate; there is no tree of the base with
/// the case on top, so `gitTree` is null where there is a case.
pub(super) fn told(subject: &Subject<'_>, on: On) -> Value {
    let candidate = subject.candidate;
    let changes: Vec<&Change> = match on {
        On::Candidate => candidate.changes.iter().collect(),
        On::Base => view::case_of(&candidate.changes, &subject.contract.case).collect(),
    };
    let tree = match on {
        On::Candidate => Some(&candidate.tree),
        On::Base => Some(&candidate.base_tree).filter(|_| changes.is_empty()),
    };
    let changed: Vec<_> = changes.iter().map(|c| json!({"path": c.path, "status": c.status})).collect();
    json!({"gitTree": tree, "baseTree": candidate.base_tree, "changed": changed})
}

/// The line for standard input.
pub(super) fn request(subject: &Subject<'_>, on: On, call: &Call<'_>) -> Vec<u8> {
    let told = told(subject, on);
    let requirements: Vec<_> = call.clauses.iter().map(|c| json!({"id": c.id, "text": c.text})).collect();
    let message = json!({
        "protocol": 1,
        "op": "verify",
        "run": call.run,
        "nonce": call.nonce,
        "task": {"id": subject.task, "contractSha256": subject.contract_sha256},
        "requirements": requirements,
        "subject": {
            "gitTree": told["gitTree"],
            "gitCommit": null,
            "baseTree": told["baseTree"],
            "root": call.root.to_string_lossy(),
        },
        "changed": told["changed"],
        "out": call.out.to_string_lossy(),
        "deadline": call.deadline,
        "params": {},
    });
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// What an answer says.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The cases of all requirements.
    pub(super) counted: Counted,
    /// True where any requirement counted.
    pub(super) counts: bool,
    /// What it says of each requirement.
    pub(super) said: BTreeMap<String, Said>,
}

#[derive(Deserialize)]
struct Wire {
    nonce: String,
    results: Vec<WireResult>,
    #[serde(default)]
    findings: Vec<WireFinding>,
}

#[derive(Deserialize)]
struct WireResult {
    requirement: String,
    status: String,
    checks: Option<WireChecks>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct WireChecks {
    ran: u64,
    passed: u64,
    failed: u64,
    #[serde(default)]
    skipped: u64,
    #[serde(default)]
    flaky: u64,
}

#[derive(Deserialize)]
struct WireFinding {
    path: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    level: Option<String>,
    rule: Option<String>,
    #[serde(default)]
    message: String,
}

/// Reads an answer, or says what is wrong with it. Fields that are not known are passed over.
pub(super) fn answer(bytes: &[u8], call: &Call<'_>) -> Result<Answer, String> {
    let version: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| format!("{RESULT} is not JSON: {e}"))?;
    match version.get("protocol").and_then(serde_json::Value::as_u64) {
        Some(1) => {}
        Some(other) => return Err(format!("{RESULT} speaks protocol {other}, this git-tender speaks 1")),
        None => return Err(format!("{RESULT} does not name its protocol")),
    }
    let wire: Wire =
        serde_json::from_value(version).map_err(|e| format!("{RESULT} does not fit protocol 1: {e}"))?;
    if wire.nonce != call.nonce {
        return Err(format!("the nonce in {RESULT} is not this run's"));
    }
    let mut answer = Answer::default();
    for result in wire.results {
        let Some(clause) = call.clauses.iter().find(|clause| clause.id == result.requirement) else {
            return Err(format!("{RESULT} speaks of {:?}, which was not asked", result.requirement));
        };
        let said = said(&result, &mut answer)?;
        if answer.said.insert(clause.id.clone(), said).is_some() {
            return Err(format!("{RESULT} speaks of {:?} twice", clause.id));
        }
    }
    if let Some(clause) = call.clauses.iter().find(|clause| !answer.said.contains_key(&clause.id)) {
        return Err(format!("{RESULT} says nothing of {:?}", clause.id));
    }
    answer.counted.findings.extend(wire.findings.into_iter().take(MOST_FINDINGS).map(finding));
    Ok(answer)
}

fn said(result: &WireResult, answer: &mut Answer) -> Result<Said, String> {
    let mut failing = 0;
    if let Some(c) = &result.checks {
        let huge = [c.ran, c.skipped].into_iter().any(|n| n > MOST_CHECKS);
        if huge || c.passed.checked_add(c.failed) != Some(c.ran) || c.flaky > c.passed {
            return Err(format!(
                "the counts of {:?} do not add up: ran {}, passed {}, failed {}",
                result.requirement, c.ran, c.passed, c.failed
            ));
        }
        let checks =
            Checks { ran: c.ran, passed: c.passed, failed: c.failed, skipped: c.skipped, flaky: c.flaky };
        answer.counted.add(Counted { checks, findings: Vec::new() });
        answer.counts = true;
        failing = c.failed;
    }
    let message = |otherwise: &str| {
        Some(result.message.clone().filter(|m| !m.trim().is_empty()).unwrap_or(otherwise.to_owned()))
    };
    match result.status.as_str() {
        "pass" if failing > 0 => {
            Err(format!("{:?} passes, but {failing} of its checks failed", result.requirement))
        }
        "pass" => Ok((Verdict::Passed, None)),
        "fail" => Ok((Verdict::Failed, message("the verifier says no"))),
        "skip" => Ok((Verdict::NotRun, message("the verifier skipped it"))),
        "error" => Ok((Verdict::Error, message("the verifier reports an error"))),
        other => Err(format!("{other:?} is no status: pass, fail, skip or error")),
    }
}

fn finding(wire: WireFinding) -> Finding {
    let level = wire.level.unwrap_or_else(|| "error".to_owned());
    let message = wire.message.chars().take(2000).collect();
    Finding { path: wire.path, line: wire.line, column: wire.column, level, rule: wire.rule, message }
}

/// The argument with the output directory put in.
pub(super) fn expand(argument: &str, out: &Path) -> std::ffi::OsString {
    let mut expanded = std::ffi::OsString::new();
    for (at, part) in argument.split(OUT).enumerate() {
        if at > 0 {
            expanded.push(out);
        }
        expanded.push(part);
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clause::{Origin, Permission};

    fn read(text: &str) -> Result<Answer, String> {
        let clause = Clause {
            id: "unit".to_owned(),
            text: "x".to_owned(),
            verifier: "v".to_owned(),
            required: true,
            origin: Origin::Requirement,
            permission: Permission::Allowed,
        };
        let call = Call {
            run: "r",
            nonce: "n1",
            clauses: vec![&clause],
            root: Path::new("/r"),
            out: Path::new("/o"),
            deadline: String::new(),
        };
        answer(text.as_bytes(), &call)
    }

    #[test]
    fn a_whole_answer_is_read_and_unknown_fields_are_passed_over() {
        let text = r#"{"protocol":1,"nonce":"n1","new":[],"results":[{"requirement":"unit","status":"pass","checks":{"ran":3,"passed":3,"failed":0,"more":1}}],
            "findings":[{"path":"a","line":3,"level":"warning","message":"m","x":1}]}"#;
        let answer = read(text).expect("reads");
        assert_eq!(answer.counted.checks.ran, 3);
        assert_eq!(answer.said["unit"], (Verdict::Passed, None));
        assert_eq!(answer.counted.findings[0].line, Some(3));
    }

    #[test]
    fn every_way_to_break_it_is_named() {
        let whole = r#"{"protocol":1,"nonce":"n1","results":[{"requirement":"unit","status":"pass","checks":{"ran":2,"passed":2,"failed":0}}]}"#;
        assert!(read(whole).is_ok());
        for (from, to) in [
            ("\"protocol\":1", "\"protocol\":2"),
            ("\"protocol\":1,", ""),
            ("n1", "n2"),
            ("\"unit\"", "\"other\""),
            ("\"ran\":2", "\"ran\":3"),
            ("\"passed\":2,\"failed\":0", "\"passed\":1,\"failed\":1"),
            ("\"pass\"", "\"passed\""),
            ("}]}", "}]"),
            ("[{", "[],\"x\":[{"),
            ("\"ran\":2,", "\"ran\":-1,"),
        ] {
            assert!(read(&whole.replacen(from, to, 1)).is_err(), "{from} -> {to}");
        }
        let twice = whole.replace("[{", "[{\"requirement\":\"unit\",\"status\":\"pass\"},{");
        assert!(read(&twice).is_err());
    }

    #[test]
    fn arguments_are_expanded_within_words() {
        assert_eq!(expand("--junit={out}/a.xml", Path::new("/o")), "--junit=/o/a.xml");
        assert_eq!(expand("plain", Path::new("/o")), "plain");
    }
}
