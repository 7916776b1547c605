//! Protocol 1: one JSON line to the verifier, one `result.json` from it.
//!
//! The answer is only a claim: it can make a run worse and never better, since the exit code, the counts and
//! the rest of the AND are asked as well. Where outputs count, its counts have to be theirs. The nonce ties
//! it to this run.

use super::formats::Counted;
use super::manifest::OUT;
use super::{VerificationSubject, view};
use crate::domain::change::patch::Change;
use crate::domain::contract::clause::Clause;
use crate::domain::proof::evidence::{Finding, MOST_FINDINGS};
use crate::domain::proof::records::On;
use crate::domain::proof::verdict::{Checks, Said, Verdict};
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
pub(super) struct ProtocolCall<'a> {
    pub(super) run: &'a str,
    pub(super) nonce: &'a str,
    pub(super) clauses: Vec<&'a Clause>,
    pub(super) root: &'a Path,
    pub(super) out: &'a Path,
    pub(super) deadline: String,
}

/// What a run is told of the change beside the files that its slot shows. A verifier may judge by any of it,
/// so the key holds all of it.
///
/// On the base `changed` is the case of a repair and nothing else of the candidate; there is no tree of the
/// base with the case on top, so `gitTree` is null where there is a case.
pub(super) fn told_to_verifier(subject: &VerificationSubject<'_>, on: On) -> Value {
    let candidate = subject.candidate;
    let changes: Vec<&Change> = match on {
        On::Candidate => candidate.changes.iter().collect(),
        On::BaseWithCase => view::case_of(&candidate.changes, &subject.contract.case).collect(),
        On::Base | On::BaseWithoutCase => Vec::new(),
    };
    let tree = match on {
        On::Candidate => Some(&candidate.tree),
        On::Base => Some(&candidate.base_tree),
        On::BaseWithCase => Some(&candidate.base_tree).filter(|_| changes.is_empty()),
        On::BaseWithoutCase => None,
    };
    let changed: Vec<_> = changes.iter().map(|c| json!({"path": c.path, "status": c.status})).collect();
    json!({"gitTree": tree, "baseTree": candidate.base_tree, "changed": changed})
}

/// The line for standard input.
pub(super) fn request(subject: &VerificationSubject<'_>, on: On, call: &ProtocolCall<'_>) -> Vec<u8> {
    let told = told_to_verifier(subject, on);
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

#[derive(Debug, Default)]
pub(super) struct ProtocolAnswer {
    /// What it says of each requirement.
    pub(super) said: BTreeMap<String, Said>,
    /// The cases that it claims, by requirement; those that it counts nothing for are missing.
    claims: BTreeMap<String, Checks>,
    /// What it found, in the whole run.
    pub(super) findings: Vec<Finding>,
}

impl ProtocolAnswer {
    /// The cases that it claims for all requirements; `None` where it claims nothing.
    pub(super) fn claimed(&self) -> Option<Checks> {
        let sum = |total: Checks, more: &Checks| Checks {
            ran: total.ran + more.ran,
            passed: total.passed + more.passed,
            failed: total.failed + more.failed,
            skipped: total.skipped + more.skipped,
            flaky: total.flaky + more.flaky,
        };
        (!self.claims.is_empty()).then(|| self.claims.values().fold(Checks::default(), sum))
    }

    /// The cases of one requirement: those that it claims for it, where the outputs hold as many for all.
    /// Where it claims nothing at all, the outputs speak for every requirement; where they hold a failed case
    /// that it does not own up to, they do as well.
    pub(super) fn counted(
        &self,
        requirement: &str,
        outputs: &Result<Option<Counted>, String>,
    ) -> Result<Option<Counted>, String> {
        let outside = outputs.as_ref().is_ok_and(|held| held.as_ref().is_some_and(|held| held.outside > 0));
        let Some(claimed) = self.claimed().filter(|_| !outside) else { return outputs.clone() };
        let held = match outputs {
            Ok(Some(held)) => Some(held),
            Ok(None) => None,
            Err(why) => return Err(why.clone()),
        };
        if let Some(Counted { checks, .. }) = held
            && (checks.passed, checks.failed, checks.skipped)
                != (claimed.passed, claimed.failed, claimed.skipped)
        {
            if checks.failed > 0 {
                return outputs.clone();
            }
            return Err(format!(
                "{RESULT} claims {} passed, {} failed and {} skipped, but the outputs hold {}, {} and {}",
                claimed.passed, claimed.failed, claimed.skipped, checks.passed, checks.failed, checks.skipped
            ));
        }
        let Some(own) = self.claims.get(requirement) else { return Ok(None) };
        // Nobody says whose the flaky cases are that only the outputs show.
        let unclaimed = held.map_or(0, |held| held.checks.flaky.saturating_sub(claimed.flaky));
        let checks = Checks { flaky: own.passed.min(own.flaky + unclaimed), ..*own };
        let lacking = held.and_then(|held| held.lacking.as_ref());
        // Nor does a case or a finding say which requirement it is about.
        let held = held.filter(|_| self.said.len() == 1);
        let findings = match self.said.len() {
            1 => held.map_or(&self.findings, |held| &held.findings).clone(),
            _ => Vec::new(),
        };
        let (cases, unnamed) = held.map(|held| (held.cases.clone(), held.unnamed)).unwrap_or_default();
        let lacking = lacking.cloned();
        Ok(Some(Counted { checks, cases, unnamed, lacking, findings, ..Counted::default() }))
    }
}

#[derive(Deserialize)]
struct RawAnswer {
    nonce: String,
    results: Vec<RawResult>,
    #[serde(default)]
    findings: Vec<RawFinding>,
}

#[derive(Deserialize)]
struct RawResult {
    requirement: String,
    status: String,
    checks: Option<RawChecks>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct RawChecks {
    ran: u64,
    passed: u64,
    failed: u64,
    #[serde(default)]
    skipped: u64,
    #[serde(default)]
    flaky: u64,
}

#[derive(Deserialize)]
struct RawFinding {
    path: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    level: Option<String>,
    rule: Option<String>,
    #[serde(default)]
    message: String,
}

/// Reads an answer, or says what is wrong with it. Fields that are not known are passed over.
pub(super) fn answer(bytes: &[u8], call: &ProtocolCall<'_>) -> Result<ProtocolAnswer, String> {
    let version: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| format!("{RESULT} is not JSON: {e}"))?;
    match version.get("protocol").and_then(serde_json::Value::as_u64) {
        Some(1) => {}
        Some(other) => return Err(format!("{RESULT} speaks protocol {other}, this git-tender speaks 1")),
        None => return Err(format!("{RESULT} does not name its protocol")),
    }
    let wire: RawAnswer =
        serde_json::from_value(version).map_err(|e| format!("{RESULT} does not fit protocol 1: {e}"))?;
    if wire.nonce != call.nonce {
        return Err(format!("the nonce in {RESULT} is not this run's"));
    }
    let mut answer = ProtocolAnswer::default();
    for result in wire.results {
        let Some(clause) = call.clauses.iter().find(|clause| clause.id == result.requirement) else {
            return Err(format!("{RESULT} speaks of {:?}, which was not asked", result.requirement));
        };
        let said = said_of_row(&result)?;
        if let Some(c) = result.checks {
            let (ran, passed, failed) = (c.ran, c.passed, c.failed);
            let checks = Checks { ran, passed, failed, skipped: c.skipped, flaky: c.flaky };
            answer.claims.insert(clause.id.clone(), checks);
        }
        if answer.said.insert(clause.id.clone(), said).is_some() {
            return Err(format!("{RESULT} speaks of {:?} twice", clause.id));
        }
    }
    if let Some(clause) = call.clauses.iter().find(|clause| !answer.said.contains_key(&clause.id)) {
        return Err(format!("{RESULT} says nothing of {:?}", clause.id));
    }
    answer.findings = wire.findings.into_iter().take(MOST_FINDINGS).map(finding).collect();
    Ok(answer)
}

fn said_of_row(result: &RawResult) -> Result<Said, String> {
    let mut failing = 0;
    if let Some(c) = &result.checks {
        let huge = [c.ran, c.skipped].into_iter().any(|n| n > MOST_CHECKS);
        if huge || c.passed.checked_add(c.failed) != Some(c.ran) || c.flaky > c.passed {
            return Err(format!(
                "the counts of {:?} do not add up: ran {}, passed {}, failed {}",
                result.requirement, c.ran, c.passed, c.failed
            ));
        }
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

fn finding(wire: RawFinding) -> Finding {
    let level = wire.level.unwrap_or_else(|| "error".to_owned());
    let RawFinding { path, line, column, rule, message, .. } = wire;
    Finding { path, line, column, level, rule, message }
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

/// What an answer says of one row; what is wrong with it where it says nothing.
pub(super) fn said_of(
    answer: &std::result::Result<ProtocolAnswer, String>,
    row: &str,
) -> std::result::Result<Said, String> {
    match answer {
        Err(why) => Err(why.clone()),
        Ok(answer) => answer.said.get(row).cloned().ok_or_else(|| format!("nothing was said of {row:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::clause::{Origin, Permission};

    fn read(text: &str) -> Result<ProtocolAnswer, String> {
        let clause = Clause {
            id: "unit".to_owned(),
            text: "x".to_owned(),
            verifier: "v".to_owned(),
            required: true,
            origin: Origin::Requirement,
            permission: Permission::Allowed,
        };
        let call = ProtocolCall {
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
        assert_eq!(answer.claimed().map(|checks| checks.ran), Some(3));
        assert_eq!(answer.said["unit"], (Verdict::Passed, None));
        assert_eq!(answer.findings[0].line, Some(3));
    }

    fn checks(passed: u64, failed: u64, flaky: u64) -> Checks {
        Checks { ran: passed + failed, passed, failed, skipped: 0, flaky }
    }

    /// What stands for `a`, of these claims and outputs.
    fn counted(claims: &[(&str, Checks)], outputs: Option<Checks>) -> Result<Option<Checks>, String> {
        let passed = || (Verdict::Passed, None);
        let answer = ProtocolAnswer {
            said: ["a", "b"].map(|id| (id.to_owned(), passed())).into(),
            claims: claims.iter().map(|(id, checks)| ((*id).to_owned(), *checks)).collect(),
            findings: Vec::new(),
        };
        let outputs = Ok(outputs.map(|checks| Counted { checks, ..Counted::default() }));
        answer.counted("a", &outputs).map(|counted| counted.map(|counted| counted.checks))
    }

    #[test]
    fn claims_are_held_against_the_outputs_and_never_added_to_them() {
        let five = checks(5, 0, 0);
        assert_eq!(counted(&[("a", five)], Some(five)), Ok(Some(five)));
        assert_eq!(counted(&[], Some(five)), Ok(Some(five)));
        let why = counted(&[("a", five)], Some(checks(4, 0, 0))).expect_err("they disagree");
        assert!(why.contains("claims 5 passed") && why.contains("hold 4"), "{why}");
        let failed = checks(4, 1, 0);
        assert_eq!(
            counted(&[("a", five)], Some(failed)),
            Ok(Some(failed)),
            "a failed case counts in any case"
        );
        let both = [("a", checks(2, 0, 0)), ("b", checks(3, 1, 0))];
        assert_eq!(counted(&both, Some(checks(5, 1, 0))), Ok(Some(checks(2, 0, 0))));
        assert_eq!(counted(&both, Some(checks(5, 1, 1))), Ok(Some(checks(2, 0, 1))), "it may be this one");
    }

    #[test]
    fn every_requirement_has_its_own_cases() {
        let (none, five) = (checks(0, 0, 0), checks(5, 0, 0));
        assert_eq!(counted(&[("a", none), ("b", five)], None), Ok(Some(none)));
        assert_eq!(counted(&[("a", five), ("b", checks(0, 1, 0))], None), Ok(Some(five)));
        assert_eq!(counted(&[("b", five)], None), Ok(None));
        assert_eq!(counted(&[("b", five)], Some(five)), Ok(None));
        assert_eq!(counted(&[], None), Ok(None));
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

    #[test]
    fn fuzz_the_answer_of_a_verifier() {
        const ANSWER: &[u8] = br#"{"protocol": 1, "nonce": "n1", "results": [{"requirement": "unit", "status": "passed", "checks": {"ran": 3, "passed": 2, "failed": 1, "skipped": 1, "flaky": 1}, "message": "m"}], "findings": [{"path": "a", "line": 3, "column": 1, "level": "error", "rule": "r", "message": "x"}]}"#;
        let words: &[&[u8]] = &[
            b"{",
            b"}",
            b"[",
            b",",
            b"\"",
            b"null",
            b"18446744073709551615",
            b"-1",
            b"\"failed\"",
            b"\"not_run\"",
            b"\\u001b",
        ];
        crate::fuzz::holds(&[ANSWER], words, |bytes| {
            let Ok(answer) = read(&String::from_utf8_lossy(bytes)) else { return };
            let claimed = answer.claimed().unwrap_or_default();
            assert_eq!(claimed.ran, claimed.passed + claimed.failed);
            assert!(answer.findings.len() <= MOST_FINDINGS);
        });
    }
}
