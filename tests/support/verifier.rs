//! Builds verifiers: a manifest and a shell script beneath `.tender/verifiers/<id>/`.

use super::Repo;
use std::fmt::Write as _;

/// How a verifier counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    Nothing,
    Libtest,
    Junit,
}

/// A verifier in the making. Unless said otherwise it passes and counts one case.
#[derive(Clone)]
pub struct Verifier {
    id: String,
    script: String,
    inputs: Vec<String>,
    extra: String,
    counts: Counts,
}

/// Shell functions that every script may use: `case_ok NAME`, `case_bad NAME`, `case_skip NAME`, `finish`.
/// The header announces no case: how many come is not known there, and only fewer cases than announced are
/// refused.
const LIBTEST: &str = r#"
ok=0; bad=0; skip=0
case_ok() { ok=$((ok+1)); echo "test $1 ... ok"; }
case_bad() { bad=$((bad+1)); echo "test $1 ... FAILED"; }
case_skip() { skip=$((skip+1)); echo "test $1 ... ignored"; }
finish() {
  word=ok; [ "$bad" = 0 ] || word=FAILED
  echo; echo "test result: $word. $ok passed; $bad failed; $skip ignored; 0 measured; 0 filtered out; finished in 0.00s"
  [ "$bad" = 0 ] || exit 101
  exit 0
}
echo; echo "running 0 tests"
"#;

const JUNIT: &str = r#"
ok=0; bad=0; skip=0; cases=""
case_ok() { ok=$((ok+1)); cases="$cases<testcase name=\"$1\" classname=\"c\"/>"; }
case_bad() { bad=$((bad+1)); cases="$cases<testcase name=\"$1\" classname=\"c\"><failure message=\"no\">no</failure></testcase>"; }
case_skip() { skip=$((skip+1)); cases="$cases<testcase name=\"$1\" classname=\"c\"><skipped/></testcase>"; }
finish() {
  echo "<?xml version=\"1.0\"?><testsuites><testsuite name=\"s\" tests=\"$((ok+bad+skip))\" failures=\"$bad\" errors=\"0\" skipped=\"$skip\">$cases</testsuite></testsuites>" > "$TENDER_OUT/junit.xml"
  [ "$bad" = 0 ] || exit 1
  exit 0
}
"#;

impl Verifier {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            script: "case_ok works\nfinish\n".to_owned(),
            inputs: vec!["src/**".to_owned()],
            extra: String::new(),
            counts: Counts::Libtest,
        }
    }

    /// The body of the script. It runs at the root of the slot.
    pub fn script(mut self, body: &str) -> Self {
        body.clone_into(&mut self.script);
        self
    }

    pub fn inputs(mut self, globs: &[&str]) -> Self {
        self.inputs = globs.iter().map(|g| (*g).to_owned()).collect();
        self
    }

    pub fn counts(mut self, counts: Counts) -> Self {
        self.counts = counts;
        self
    }

    /// Further lines of the manifest.
    pub fn key(mut self, line: &str) -> Self {
        writeln!(self.extra, "{line}").expect("writes");
        self
    }

    pub fn script_path(&self) -> String {
        format!(".tender/verifiers/{}/run.sh", self.id)
    }

    pub fn manifest_path(&self) -> String {
        format!(".tender/verifiers/{}/verifier.toml", self.id)
    }

    /// The whole script, with the counting functions in front.
    pub fn script_text(&self) -> String {
        let counting = match self.counts {
            Counts::Nothing => "finish() { exit 0; }\ncase_ok() { :; }\n",
            Counts::Libtest => LIBTEST,
            Counts::Junit => JUNIT,
        };
        format!("#!/bin/sh\n{counting}\n{}", self.script)
    }

    pub fn manifest(&self) -> String {
        let script = self.script_path();
        let mut text = format!("protocol = 1\nid = \"{}\"\n", self.id);
        if !self.extra.lines().any(|line| line.starts_with("command = ")) {
            writeln!(text, "command = [\"sh\", \"{script}\"]").expect("writes");
        }
        writeln!(text, "inputs = {:?}\nclosure = [\"{script}\"]", self.inputs).expect("writes");
        text.push_str(match self.counts {
            _ if self.extra.contains("outputs = ") => "",
            Counts::Nothing => "",
            Counts::Libtest => "outputs = [{ format = \"libtest\", required = true }]\n",
            Counts::Junit => {
                "outputs = [{ path = \"{out}/junit.xml\", format = \"junit\", required = true }]\n"
            }
        });
        text.push_str(&self.extra);
        text
    }

    /// Writes manifest and script into the live tree.
    pub fn write(&self, repo: &Repo<'_>) {
        repo.write(self.manifest_path(), self.manifest());
        repo.write(self.script_path(), self.script_text());
    }

    /// Writes and commits it.
    pub fn commit(&self, repo: &Repo<'_>) {
        self.write(repo);
        repo.commit(&format!("verifier {}", self.id));
    }
}

/// A script line that counts its runs in a file outside the slot.
pub fn counting(file: &std::path::Path) -> String {
    format!("echo run >> '{}'\n", file.display())
}

/// How often a script with [`counting`] ran.
pub fn runs(file: &std::path::Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}
