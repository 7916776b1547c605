//! The hooks of a `.pre-commit-config.yaml` as verifiers, one each, without a file of ours. The tool that the
//! file is for reads it and runs them; here only their names are read, so that each gets a row of its own.
//! Where the file is written in a way that leaves doubt, one row stands for all of them.

use crate::domain::value::document::is_id;
use serde_json::Value;

/// Where the hooks are configured.
pub const CONFIG: &str = ".pre-commit-config.yaml";

/// Runs all hooks, by whichever tool is there.
pub(super) const RUN_ALL: [&str; 8] = [
    "sh",
    "-c",
    "if command -v prek >/dev/null; then exec prek \"$@\"; fi; exec pre-commit \"$@\"",
    "hooks",
    "run",
    "--color",
    "never",
    "--all-files",
];

/// Where the tools keep what hooks need.
pub(super) const STORES: [&str; 2] = ["~/.cache/prek", "~/.cache/pre-commit"];

/// What all hooks are called together.
const ALL: &str = "hooks";

/// The files that may stand in a command line; for more, hooks look at all.
const MOST_FILES: usize = 400;

/// How hooks are run.
#[derive(Debug, Clone)]
pub struct HookPlan {
    /// `prek` or `pre-commit`.
    pub tool: &'static str,
    /// The files that a commit's hooks would be given; `None` for all.
    pub files: Option<Vec<String>>,
}

impl HookPlan {
    /// For the changed files of these paths; `None` among them is a name that no text can hold.
    pub fn for_files(tool: &'static str, paths: impl Iterator<Item = Option<String>>) -> Self {
        let files: Option<Vec<String>> = paths.collect();
        let fits = |files: &Vec<String>| {
            files.len() <= MOST_FILES && !files.iter().any(|file| file.starts_with('-'))
        };
        Self { tool, files: files.filter(fits) }
    }

    /// The manifests of all hooks in this configuration, by their ids.
    pub(super) fn list_manifests(&self, config: &str) -> Vec<(String, String)> {
        let Some(hooks) = list_hooks(config) else { return vec![self.manifest(ALL, "All hooks", &[])] };
        let manifest = |hook: &String| {
            let others: Vec<&str> = hooks.iter().filter(|other| *other != hook).map(String::as_str).collect();
            self.manifest(&format!("hook.{hook}"), &format!("The hook {hook}"), &others)
        };
        hooks.iter().map(manifest).collect()
    }

    fn manifest(&self, id: &str, title: &str, skipped: &[&str]) -> (String, String) {
        let text = |text: &str| Value::from(text).to_string();
        let mut command = vec!["env".to_owned(), format!("SKIP={}", skipped.join(","))];
        command.extend([self.tool, "run", "--color", "never"].map(str::to_owned));
        match &self.files {
            None => command.push("--all-files".to_owned()),
            Some(files) => command.extend(std::iter::once("--files".to_owned()).chain(files.iter().cloned())),
        }
        // What pre-commit's own file says does not change with its version.
        let probe = if self.tool == "prek" { "" } else { ", probe = [\"pre-commit\", \"--version\"]" };
        let manifest = format!(
            "protocol = 1\nid = {}\ntitle = {}\nuses = \"pre-commit\"\ncommand = {}\nclosure = [\"{CONFIG}\"]\n\
             tools = [{{ name = {}{probe} }}]\nread = [{{ path = {}, cache = true }}]\n",
            text(id),
            text(title),
            Value::from(command),
            text(self.tool),
            text(&format!("~/.cache/{}", self.tool)),
        );
        (id.to_owned(), manifest)
    }
}

/// The ids of the hooks, each once, in their order, but for a hook that calls git-tender itself. `None` where
/// that cannot be told from the lines alone.
fn list_hooks(config: &str) -> Option<Vec<String>> {
    let mut found: Vec<(String, bool)> = Vec::new();
    // How far `hooks:` is indented, once it was met.
    let mut hooks_at = None;
    // A text of several lines is deeper than its key.
    let mut text_below: Option<usize> = None;
    for line in config.lines() {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with('#') || text == "---" {
            continue;
        }
        if line[..line.len() - text.len()].contains('\t') {
            return None;
        }
        if text_below.is_some_and(|key| line.len() - text.len() > key) {
            continue;
        }
        text_below = None;
        let inner = text.trim_start_matches("- ").trim_start();
        let indent = line.len() - inner.len();
        let Some((key, value)) = inner.split_once(':') else { continue };
        let value = plain_value(value);
        if value.starts_with(['&', '*', '{']) || key == "<<" {
            return None;
        }
        text_below = value.starts_with(['|', '>']).then_some(indent);
        match key {
            "hooks" if value.is_empty() => hooks_at = Some(indent),
            "hooks" | "repos" if !value.is_empty() => return None,
            "id" if hooks_at.is_some_and(|at| indent > at) => {
                if !is_id(&format!("hook.{value}")) {
                    return None;
                }
                found.push((value.to_owned(), value == "git-tender"));
            }
            "entry" if value.contains("git-tender") || value.contains("git tender") => {
                found.last_mut()?.1 = true;
            }
            _ if hooks_at.is_some_and(|at| indent <= at) => hooks_at = None,
            _ => {}
        }
    }
    let mut hooks: Vec<String> = Vec::new();
    for (id, _) in found.into_iter().filter(|(_, is_ours)| !is_ours) {
        if !hooks.contains(&id) {
            hooks.push(id);
        }
    }
    Some(hooks)
}

/// A scalar without its quotes and without a comment behind it.
fn plain_value(value: &str) -> &str {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some((inner, _)) = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return inner;
        }
    }
    if value.starts_with('#') {
        return "";
    }
    value.split(" #").next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::manifest::Manifest;

    const USUAL: &str = "\
# See https://pre-commit.com for more information
default_language_version: { }
repos:
-   repo: https://github.com/pre-commit/pre-commit-hooks
    rev: v3.2.0
    hooks:
    -   id: trailing-whitespace
        args: [--markdown-linebreak-ext=md]
    -   id: 'end-of-file-fixer'  # the last line
- repo: local
  hooks:
    - name: no bad words
      id: no-bad
      entry: sh -c 'grep'
    - id: own
      entry: git-tender check --staged
- repo: https://example.org/other
  rev: \"1\"
  hooks: # none of ours
  - id: trailing-whitespace
  - id: last
    id_of: nothing
";

    #[test]
    fn the_ids_of_the_usual_form_are_read_and_doubt_is_said() {
        let usual = USUAL.replace("default_language_version: { }\n", "");
        let ids = list_hooks(&usual).expect("the usual form");
        assert_eq!(ids, ["trailing-whitespace", "end-of-file-fixer", "no-bad", "last"]);
        for doubtful in [
            USUAL.to_owned(),
            "repos:\n- repo: local\n  hooks: [{id: a}]\n".to_owned(),
            "repos:\n- repo: local\n  hooks:\n  - id: a b\n".to_owned(),
        ] {
            assert_eq!(list_hooks(&doubtful), None, "{doubtful}");
        }
        let text = "repos:\n- repo: local\n  hooks:\n  - id: a\n    exclude: |\n      id: b\n  - id: c\n";
        assert_eq!(list_hooks(text).expect("the usual form"), ["a", "c"]);
        assert_eq!(list_hooks("repos: # none\n"), Some(Vec::new()));
    }

    #[test]
    fn each_manifest_is_one_and_leaves_the_other_hooks_out() {
        let config = "repos:\n- repo: local\n  hooks:\n  - id: a\n  - id: b\n";
        let paths = ["x \"y\".py", "z"].map(|path| Some(path.to_owned()));
        let plan = HookPlan::for_files("prek", paths.into_iter());
        let manifests = plan.list_manifests(config);
        let (id, text) = &manifests[0];
        let read = Manifest::parse(CONFIG, id, text.as_bytes()).expect("a manifest");
        let expected = ["env", "SKIP=b", "prek", "run", "--color", "never", "--files", "x \"y\".py", "z"];
        assert_eq!((id.as_str(), read.command), ("hook.a", expected.map(str::to_owned).to_vec()));
        assert_eq!(read.stores, ["~/.cache/prek"]);
        let whole = HookPlan::for_files("pre-commit", std::iter::once(Some("-x".to_owned())));
        let (_, text) = &whole.list_manifests("repos: [ ]\n")[0];
        assert!(text.contains("\"--all-files\"") && text.contains("probe"), "{text}");
        assert_eq!(HookPlan::for_files("prek", std::iter::once(None)).files, None);
    }
}
