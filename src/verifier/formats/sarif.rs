//! SARIF 2.1.0, what linters and analysers write: findings, and whether the tool came to an end.
//!
//! There are no cases to count: a log without a finding is the best there is, so it has to say that somebody
//! looked. Results that are absent, an invocation that did not succeed and a notification of level `error`
//! are errors. A finding of level `error` fails the run, unless it is suppressed or gone; others are shown.

mod log;

use super::{CasePlace, Counted, refuse_size};
use crate::domain::proof::evidence::{Finding, MOST_FINDINGS};
use log::{
    IN_INVOCATION, IN_LOG, IN_NOTIFICATION, IN_RESULT, IN_RUN, PhysicalLocation, SarifLog, SarifResult,
    SarifRule, SarifRun, ToolInvocation, refuse_unknown,
};
use percent_encoding::percent_decode_str;

/// The findings of a log, or why it cannot be read, in words.
pub fn read_findings(bytes: &[u8]) -> Result<Counted, String> {
    refuse_size(bytes)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let log: SarifLog = serde_json::from_slice(bytes).map_err(|error| format!("it is no SARIF: {error}"))?;
    if log.version != "2.1.0" {
        return Err(format!("its version is {:?}, where 2.1.0 is read", log.version));
    }
    let mut reading = SarifReading::default();
    reading.note(refuse_unknown("the log", &log.others, IN_LOG));
    let runs = log.runs.unwrap_or_default();
    if runs.is_empty() {
        return Err("it holds no run".to_owned());
    }
    for run in &runs {
        reading.take_run(run);
    }
    reading.finish()
}

#[derive(Default)]
struct SarifReading {
    counted: Counted,
    /// What is shown and fails nothing.
    remarks: Vec<Finding>,
    problem: Option<String>,
}

impl SarifReading {
    fn note(&mut self, said: Result<(), String>) {
        self.problem = self.problem.take().or(said.err());
    }

    fn take_run(&mut self, run: &SarifRun) {
        self.note(refuse_unknown("a run", &run.others, IN_RUN));
        for invocation in &run.invocations {
            self.note(check_invocation(invocation));
        }
        match &run.results {
            None => self.note(Err("a run has no results: nothing was looked at".to_owned())),
            Some(results) => results.iter().for_each(|result| {
                let taken = self.take_result(run, result);
                self.note(taken);
            }),
        }
    }

    fn take_result(&mut self, run: &SarifRun, result: &SarifResult) -> Result<(), String> {
        refuse_unknown("a result", &result.others, IN_RESULT)?;
        let level = level_of(run, result)?;
        let id = rule_id(result).unwrap_or("a finding");
        let message = &result.message;
        let message = message.text.as_deref().or(message.id.as_deref()).unwrap_or_default();
        let place = result.locations.first().map(|location| read_place(&location.physical_location));
        let place = place.unwrap_or_default();
        if level == "error" && !is_settled(result)? {
            self.counted.fail_outside(id, place, message);
        } else if level != "none" && !is_settled(result)? && self.remarks.len() < MOST_FINDINGS {
            let mut remark = Counted::default();
            remark.note_failure(id, place, message);
            self.remarks.extend(
                remark.findings.into_iter().map(|finding| Finding { level: level.to_owned(), ..finding }),
            );
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Counted, String> {
        let room = MOST_FINDINGS.saturating_sub(self.counted.findings.len());
        self.counted.findings.extend(self.remarks.into_iter().take(room));
        self.counted.unless_failed(self.problem)
    }
}

fn check_invocation(invocation: &ToolInvocation) -> Result<(), String> {
    refuse_unknown("an invocation", &invocation.others, IN_INVOCATION)?;
    let notifications =
        invocation.tool_execution_notifications.iter().chain(&invocation.tool_configuration_notifications);
    for notification in notifications {
        refuse_unknown("a notification", &notification.others, IN_NOTIFICATION)?;
        match notification.level.as_deref() {
            None | Some("none" | "note" | "warning") => {}
            Some("error") => {
                let text = notification.message.text.as_deref().unwrap_or("no text");
                return Err(format!("its tool says that something went wrong: {text}"));
            }
            Some(other) => return Err(format!("the level {other:?} of a notification is not understood")),
        }
    }
    match invocation.execution_successful {
        true => Ok(()),
        false => Err("its tool says that it did not succeed".to_owned()),
    }
}

fn rule_id(result: &SarifResult) -> Option<&str> {
    result.rule_id.as_deref().or(result.rule.id.as_deref())
}

/// The level of a result: its own, else that of its rule.
fn level_of<'a>(run: &'a SarifRun, result: &'a SarifResult) -> Result<&'a str, String> {
    match result.kind.as_deref() {
        None | Some("fail") => {}
        Some("pass" | "open" | "informational" | "notApplicable" | "review") if result.level.is_none() => {
            return Ok("none");
        }
        Some("pass" | "open" | "informational" | "notApplicable" | "review") => {}
        Some(other) => return Err(format!("the kind {other:?} of a result is not understood")),
    }
    let level = match &result.level {
        Some(level) => level,
        None => {
            if run.invocations.iter().any(|invocation| !invocation.rule_configuration_overrides.is_empty()) {
                return Err("a result has no level, and levels are overridden elsewhere".to_owned());
            }
            let rule =
                find_rule(run, result).ok_or("a result has neither a level nor a rule that is there")?;
            rule.default_configuration.level.as_deref().unwrap_or("warning")
        }
    };
    match level {
        "none" | "note" | "warning" | "error" => Ok(level),
        other => Err(format!("the level {other:?} of a result is not understood")),
    }
}

fn find_rule<'a>(run: &'a SarifRun, result: &SarifResult) -> Option<&'a SarifRule> {
    let tool = &run.tool;
    let Some(id) = rule_id(result) else {
        return tool.driver.rules.get(usize::try_from(result.rule_index?).ok()?);
    };
    // The id of a result may be that of its rule and a part of its own.
    let general = id.rsplit_once('/').map(|(general, _)| general);
    let mut rules =
        std::iter::once(&tool.driver).chain(&tool.extensions).flat_map(|component| &component.rules);
    rules.find(|rule| rule.id == id || Some(rule.id.as_str()) == general)
}

/// True where a finding fails nothing: somebody has accepted it, or it is there no longer.
fn is_settled(result: &SarifResult) -> Result<bool, String> {
    match result.baseline_state.as_deref() {
        None | Some("new" | "unchanged" | "updated") => {}
        Some("absent") => return Ok(true),
        Some(other) => return Err(format!("the baseline state {other:?} of a result is not understood")),
    }
    let suppressions = result.suppressions.as_deref().unwrap_or_default();
    let accepted =
        suppressions.iter().all(|one| one.status.as_deref().is_none_or(|status| status == "accepted"));
    Ok(!suppressions.is_empty() && accepted)
}

fn read_place(location: &PhysicalLocation) -> CasePlace {
    let path = location.artifact_location.uri.as_deref().map(|uri| {
        let path = uri.strip_prefix("file://").unwrap_or(uri);
        percent_decode_str(path).decode_utf8_lossy().into_owned()
    });
    CasePlace { path, line: location.region.start_line, column: location.region.start_column }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with these invocations and results, of a tool with the rules `e` (error) and `w` (no level).
    fn log(invocations: &str, results: &str) -> String {
        let rules = r#"[{"id":"w"},{"id":"e","defaultConfiguration":{"level":"error"}}]"#;
        format!(
            r#"{{"version":"2.1.0","runs":[{{"tool":{{"driver":{{"name":"x","rules":{rules}}}}},"invocations":{invocations},"results":{results}}}]}}"#
        )
    }

    fn count_errors(result: &str) -> Result<u64, String> {
        read_findings(log("[]", &format!("[{result}]")).as_bytes()).map(|counted| counted.outside)
    }

    #[test]
    fn a_finding_of_level_error_fails_and_the_level_may_be_its_rules() {
        for (result, errors) in [
            (r#"{"level":"error"}"#, 1),
            (r#"{"level":"warning"}"#, 0),
            (r#"{"level":"none"}"#, 0),
            (r#"{"ruleId":"e"}"#, 1),
            (r#"{"ruleId":"e/part"}"#, 1),
            (r#"{"rule":{"id":"e"}}"#, 1),
            (r#"{"ruleIndex":1}"#, 1),
            (r#"{"ruleId":"w"}"#, 0),
            (r#"{"ruleId":"e","kind":"pass"}"#, 0),
            (r#"{"level":"error","kind":"review"}"#, 1),
            (r#"{"level":"error","baselineState":"absent"}"#, 0),
            (r#"{"level":"error","baselineState":"unchanged"}"#, 1),
            (r#"{"level":"error","suppressions":[]}"#, 1),
            (r#"{"level":"error","suppressions":[{"kind":"inSource"}]}"#, 0),
            (r#"{"level":"error","suppressions":[{"status":"accepted"},{"status":"rejected"}]}"#, 1),
        ] {
            assert_eq!(count_errors(result), Ok(errors), "{result}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for result in [
            r#"{"level":"fatal"}"#,
            r#"{"level":"note","kind":"strange"}"#,
            r#"{"level":"error","baselineState":"strange"}"#,
            r#"{"ruleId":"unknown"}"#,
            r#"{"ruleIndex":-1}"#,
            r#"{"level":"note","levl":"error"}"#,
            r#"{"level":"note","level":"error"}"#,
        ] {
            assert!(count_errors(result).is_err(), "{result}");
            let failing = log("[]", &format!(r#"[{result},{{"level":"error"}}]"#));
            let read = read_findings(failing.as_bytes());
            assert!(read.is_err() || read.is_ok_and(|counted| counted.holds_failure()), "{result}");
        }
        for text in [
            "",
            "{}",
            r#"{"version":"2.1.0"}"#,
            r#"{"version":"2.1.0","runs":[]}"#,
            r#"{"version":"2.0.0","runs":[{"tool":{"driver":{}},"results":[]}]}"#,
            r#"{"version":"2.1.0","runs":[{"tool":{"driver":{}}}]}"#,
            r#"{"version":"2.1.0","runs":[{"tool":{"driver":{}},"results":null}]}"#,
            r#"{"version":"2.1.0","runs":[{"tool":{"driver":{}},"results":[],"externalPropertyFileReferences":{}}]}"#,
            r#"{"version":"2.1.0","runs":[{"tool":{"driver":{}},"results":[]}],"inlineExternalProperties":[]}"#,
        ] {
            assert!(read_findings(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tool_that_did_not_come_to_its_end_found_nothing() {
        for (invocation, fine) in [
            (r#"{"executionSuccessful":true}"#, true),
            (r#"{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"warning"}]}"#, true),
            (r#"{"executionSuccessful":false}"#, false),
            ("{}", false),
            (r#"{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"error"}]}"#, false),
            (r#"{"executionSuccessful":true,"toolConfigurationNotifications":[{"level":"error"}]}"#, false),
            (r#"{"executionSuccessful":true,"toolExecutionNotifications":[{"level":"strange"}]}"#, false),
            (r#"{"executionSuccessful":true,"strange":1}"#, false),
        ] {
            let read = |results: &str| read_findings(log(&format!("[{invocation}]"), results).as_bytes());
            assert_eq!(read("[]").is_ok(), fine, "{invocation}");
        }
        let overridden = r#"[{"executionSuccessful":true,"ruleConfigurationOverrides":[{}]}]"#;
        assert!(read_findings(log(overridden, r#"[{"ruleId":"w"}]"#).as_bytes()).is_err());
    }

    #[test]
    fn a_finding_says_what_and_where_and_errors_come_first() {
        let results = r#"[{"level":"note","ruleId":"w","message":{"text":"n"}},{"level":"error","ruleId":"e","message":{"text":"m"},
            "locations":[{"physicalLocation":{"artifactLocation":{"uri":"file:///tree/a%20b.js"},"region":{"startLine":3,"startColumn":5}}}]}]"#;
        let mut counted = read_findings(log("[]", results).as_bytes()).expect("reads");
        counted.name_relative_to(std::path::Path::new("/tree"));
        let told: Vec<_> =
            counted.findings.iter().map(|f| (f.level.as_str(), f.path.as_deref(), f.line)).collect();
        assert_eq!(told, [("error", Some("a b.js"), Some(3)), ("note", None, None)]);
    }
}
