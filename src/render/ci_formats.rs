//! A verification for other programs: GitHub's workflow commands, SARIF 2.1.0, and JUnit's XML as GitLab and
//! others read it. Every cut says how much it left out.

use crate::domain::ledger::report::VerificationObject;
use crate::domain::proof::judge::is_not_concerned;
use crate::domain::proof::run::Run;
use crate::domain::proof::verdict::{Row, Verdict};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::fmt::Write;

/// How many commands of a level GitHub shows of one step.
const SHOWN_BY_GITHUB: usize = 10;

/// What a path does not say in plain letters where it stands as a relative reference.
const ESCAPED_IN_PATHS: AsciiSet =
    NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Something to tell of a row, at a place where there is one.
struct Remark {
    level: &'static str,
    row: String,
    path: Option<String>,
    line: Option<u64>,
    column: Option<u64>,
    message: String,
}

/// What is to be told of all rows that are no pass: each finding of their runs, else the first error, else
/// the reason.
fn list_remarks(object: &VerificationObject) -> Vec<Remark> {
    let is_told = |row: &&Row| row.verdict != Verdict::Passed && !is_not_concerned(row);
    let rows = object.requirements.iter().filter(is_told);
    rows.flat_map(|row| remarks_of_row(row, &object.runs)).collect()
}

fn remarks_of_row(row: &Row, runs: &[Run]) -> Vec<Remark> {
    let level = if row.required { "error" } else { "notice" };
    let remark = |path: Option<String>, line, column, message: String| Remark {
        level,
        row: row.id.clone(),
        path,
        line,
        column,
        message,
    };
    let mut found = Vec::new();
    for run in runs.iter().filter(|run| run.requirements.contains(&row.id)) {
        for finding in &run.findings {
            let text = |key: &str| finding.get(key).and_then(Value::as_str).map(str::to_owned);
            let number = |key: &str| finding.get(key).and_then(Value::as_u64);
            let message = text("message").unwrap_or_default();
            found.push(remark(text("path"), number("line"), number("column"), message));
        }
        if let (true, Some(first)) = (run.findings.is_empty(), &run.first_error) {
            let error = &first.error;
            let (line, column) = (error.row.map(u64::from), error.column.map(u64::from));
            found.push(remark(error.path.clone(), line, column, error.text.clone()));
        }
    }
    if found.is_empty() {
        let reason = row.reason.clone().unwrap_or_else(|| "it has not passed".to_owned());
        found.push(remark(None, None, None, reason));
    }
    found
}

/// Workflow commands: annotations at files and lines.
pub fn github_text(object: &VerificationObject) -> String {
    let remarks = list_remarks(object);
    let mut out = String::new();
    for level in ["error", "notice"] {
        let own: Vec<&Remark> = remarks.iter().filter(|remark| remark.level == level).collect();
        // The last one that is shown counts the rest.
        let most = if own.len() > SHOWN_BY_GITHUB { SHOWN_BY_GITHUB - 1 } else { own.len() };
        for remark in &own[..most] {
            let place = [
                remark.path.as_ref().map(|path| format!("file={}", github_value(path))),
                remark.line.map(|line| format!("line={line}")),
                remark.column.map(|column| format!("col={column}")),
                Some(format!("title={}", github_value(&remark.row))),
            ];
            let place: Vec<String> = place.into_iter().flatten().collect();
            let _ = writeln!(out, "::{level} {}::{}", place.join(","), github_data(&remark.message));
        }
        if own.len() > most {
            let _ = writeln!(out, "::{level} title=git-tender::{} more are not shown here", own.len() - most);
        }
    }
    out
}

fn github_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn github_value(text: &str) -> String {
    github_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// One run of git-tender, a result for each remark.
pub fn sarif_text(object: &VerificationObject) -> String {
    let remarks = list_remarks(object);
    let mut rules: Vec<&str> = remarks.iter().map(|remark| remark.row.as_str()).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({ "id": id })).collect();
    let results: Vec<Value> = remarks.iter().map(sarif_result).collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "git-tender",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "invocations": [{ "executionSuccessful": true }],
            "results": results,
        }],
    });
    format!("{document:#}\n")
}

fn sarif_result(remark: &Remark) -> Value {
    let level = if remark.level == "error" { "error" } else { "note" };
    let mut result = json!({ "ruleId": remark.row, "level": level, "message": { "text": remark.message } });
    if let Some(path) = &remark.path {
        let mut place = json!({ "artifactLocation": { "uri": utf8_percent_encode(path, &ESCAPED_IN_PATHS).to_string() } });
        if let Some(line) = remark.line.filter(|line| *line > 0) {
            place["region"] = json!({ "startLine": line });
            if let Some(column) = remark.column.filter(|column| *column > 0) {
                place["region"]["startColumn"] = json!(column);
            }
        }
        result["locations"] = json!([{ "physicalLocation": place }]);
    }
    result
}

/// One suite, a case for each row.
pub fn junit_text(object: &VerificationObject) -> String {
    let rows = &object.requirements;
    let is_failure =
        |row: &&Row| row.required && row.verdict != Verdict::Error && row.verdict != Verdict::Passed;
    let is_error = |row: &&Row| row.required && row.verdict == Verdict::Error;
    let is_skipped = |row: &&Row| !row.required && row.verdict != Verdict::Passed;
    let numbers = [
        rows.iter().filter(is_failure).count(),
        rows.iter().filter(is_error).count(),
        rows.iter().filter(is_skipped).count(),
    ];
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        rows.len(),
        numbers[0],
        numbers[1],
        numbers[2]
    );
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"git-tender\" {counts}>\n"
    );
    for row in rows {
        let reason = xml_text(row.reason.as_deref().unwrap_or_default());
        let _ = write!(out, "<testcase classname=\"git-tender\" name=\"{}\"", xml_text(&row.id));
        let said: Vec<String> =
            remarks_of_row(row, &object.runs).into_iter().map(|remark| remark.message).collect();
        let said = xml_text(&said.join("\n"));
        let _ = match () {
            () if row.verdict == Verdict::Passed => writeln!(out, "/>"),
            () if is_skipped(&row) => writeln!(out, "><skipped message=\"{reason}\"/></testcase>"),
            () if is_error(&row) => writeln!(out, "><error message=\"{reason}\">{said}</error></testcase>"),
            () => writeln!(out, "><failure message=\"{reason}\">{said}</failure></testcase>"),
        };
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// Text that may stand in an element and in an attribute; XML has no way to write most control characters.
fn xml_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push_str(&format!("&#{};", u32::from(c))),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::value::outside::Origin;

    fn row(id: &str, required: bool, verdict: Verdict) -> Row {
        let reason = (verdict != Verdict::Passed).then(|| "exit <1>\u{7}".to_owned());
        Row { required, ..Row::without_run(id, id, verdict, reason) }
    }

    fn verification(findings: usize) -> VerificationObject {
        let finding = |n: usize| json!({ "path": "src/a b,c.rs", "line": n + 1, "column": 2, "level": "error", "message": "50%\nworse" });
        let findings = (0..findings).filter_map(|n| finding(n).as_object().cloned()).collect();
        let rows = vec![
            row("unit", true, Verdict::Failed),
            row("lint", true, Verdict::Passed),
            row("late", false, Verdict::NotRun),
            row("wild", true, Verdict::Error),
        ];
        let run = Run {
            verifier: "unit".to_owned(),
            requirements: vec!["unit".to_owned()],
            end: "exit 1".to_owned(),
            first_error: None,
            findings,
            logs: Vec::new(),
            origin: Origin::new("verifier", "unit"),
        };
        VerificationObject::of_rows(rows, vec![run])
    }

    #[test]
    fn github_is_shown_as_much_as_it_shows_and_told_of_the_rest() {
        let text = github_text(&verification(2));
        let first = "::error file=src/a b%2Cc.rs,line=1,col=2,title=unit::50%25%0Aworse";
        assert_eq!(text.lines().next(), Some(first));
        assert!(text.contains("::notice title=late::exit <1>"), "{text}");
        let text = github_text(&verification(30));
        assert_eq!(text.lines().filter(|line| line.starts_with("::error")).count(), SHOWN_BY_GITHUB);
        assert!(text.contains("::error title=git-tender::22 more are not shown here"), "{text}");
    }

    #[test]
    fn sarif_and_junit_say_the_same() {
        let sarif: Value = serde_json::from_str(&sarif_text(&verification(1))).expect("JSON");
        let results = sarif["runs"][0]["results"].as_array().expect("a list");
        assert_eq!(results.len(), 3);
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "src/a%20b%2Cc.rs");
        assert_eq!(place["region"], json!({ "startLine": 1, "startColumn": 2 }));
        assert_eq!((&results[2]["level"], &results[1]["level"]), (&json!("error"), &json!("note")));
        let junit = junit_text(&verification(1));
        assert!(junit.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{junit}");
        assert!(
            junit.contains("<failure message=\"exit &lt;1&gt;\u{fffd}\">50%&#10;worse</failure>"),
            "{junit}"
        );
        assert!(junit.contains("name=\"lint\"/>") && junit.contains("<skipped message="), "{junit}");
    }
}
