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

    /// The manifests of all hooks that this configuration has for a commit, by their ids; and the hooks that
    /// run at other times, each with these.
    pub(super) fn list_manifests(&self, config: &str) -> (Vec<(String, String)>, Vec<HookElsewhere>) {
        let Some(hooks) = list_hooks(config) else {
            return (vec![self.manifest(ALL, "All hooks", &[])], Vec::new());
        };
        let manifest = |hook: &ListedHook| {
            let others = hooks.iter().filter(|other| other.id != hook.id);
            let others: Vec<&str> = others.map(|other| other.id.as_str()).collect();
            self.manifest(&format!("hook.{}", hook.id), &format!("The hook {}", hook.id), &others)
        };
        let (here, elsewhere): (Vec<_>, Vec<_>) = hooks.iter().partition(|hook| hook.is_for_commits());
        let elsewhere = elsewhere.into_iter().map(|hook| HookElsewhere {
            id: format!("hook.{}", hook.id),
            stages: hook.stages.clone().unwrap_or_default().join(", "),
        });
        (here.into_iter().map(manifest).collect(), elsewhere.collect())
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

/// A hook that does not run before a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookElsewhere {
    /// `hook.ID`
    pub id: String,
    /// When it does, as the configuration says.
    pub stages: String,
}

/// A hook as the lines tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ListedHook {
    id: String,
    /// It calls git-tender itself.
    is_ours: bool,
    /// When it runs, where the configuration says so.
    stages: Option<Vec<String>>,
}

impl ListedHook {
    /// What says nothing runs before a commit; `commit` is the old word for that.
    fn is_for_commits(&self) -> bool {
        let is_commit = |stage: &String| matches!(stage.as_str(), "pre-commit" | "commit");
        self.stages.as_ref().is_none_or(|stages| stages.iter().any(is_commit))
    }
}

/// A list of words on one line: `[a, b]`, or one word. `None` where it does not end there.
fn words_of_list(value: &str) -> Option<Vec<String>> {
    let inner = match value.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']')?,
        None => value,
    };
    Some(inner.split(',').map(|word| plain_value(word).to_owned()).filter(|word| !word.is_empty()).collect())
}

/// The hooks, each once, in their order, but for a hook that calls git-tender itself. `None` where that
/// cannot be told from the lines alone.
fn list_hooks(config: &str) -> Option<Vec<ListedHook>> {
    let mut found: Vec<ListedHook> = Vec::new();
    let mut usual: Option<Vec<String>> = None;
    // The list of stages that the lines below go on with: how far its key is indented, and whether it is the
    // one for all hooks.
    let mut stages_below: Option<(usize, bool)> = None;
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
        let Some((key, value)) = inner.split_once(':') else {
            if let Some((at, for_all)) = stages_below.filter(|(at, _)| line.len() - text.len() >= *at) {
                let stages = if for_all { usual.as_mut() } else { found.last_mut()?.stages.as_mut() };
                stages?.push(plain_value(inner).to_owned());
                stages_below = Some((at, for_all));
            }
            continue;
        };
        stages_below = None;
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
                let is_ours = value == "git-tender";
                found.push(ListedHook { id: value.to_owned(), is_ours, stages: None });
            }
            "entry" if value.contains("git-tender") || value.contains("git tender") => {
                found.last_mut()?.is_ours = true;
            }
            "default_stages" if indent == 0 => {
                usual = Some(words_of_list(value)?);
                stages_below = value.is_empty().then_some((indent, true));
            }
            "stages" if hooks_at.is_some_and(|at| indent > at) => {
                found.last_mut()?.stages = Some(words_of_list(value)?);
                stages_below = value.is_empty().then_some((indent, false));
            }
            _ if hooks_at.is_some_and(|at| indent <= at) => hooks_at = None,
            _ => {}
        }
    }
    let mut hooks: Vec<ListedHook> = Vec::new();
    for mut hook in found.into_iter().filter(|hook| !hook.is_ours) {
        hook.stages = hook.stages.or_else(|| usual.clone());
        match hooks.iter_mut().find(|known| known.id == hook.id) {
            // One that runs before a commit as well has a row.
            Some(known) if hook.is_for_commits() => known.stages = hook.stages,
            Some(_) => {}
            None => hooks.push(hook),
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
        let ids_of = |text: &str| -> Vec<String> {
            list_hooks(text).expect("the usual form").into_iter().map(|hook| hook.id).collect()
        };
        let ids = ids_of(&usual);
        assert_eq!(ids, ["trailing-whitespace", "end-of-file-fixer", "no-bad", "last"]);
        for doubtful in [
            USUAL.to_owned(),
            "repos:\n- repo: local\n  hooks: [{id: a}]\n".to_owned(),
            "repos:\n- repo: local\n  hooks:\n  - id: a b\n".to_owned(),
        ] {
            assert_eq!(list_hooks(&doubtful), None, "{doubtful}");
        }
        let text = "repos:\n- repo: local\n  hooks:\n  - id: a\n    exclude: |\n      id: b\n  - id: c\n";
        assert_eq!(ids_of(text), ["a", "c"]);
        assert_eq!(list_hooks("repos: # none\n"), Some(Vec::new()));
    }

    #[test]
    fn hooks_of_other_times_are_told_and_not_run() {
        let config = "default_stages: [pre-push]\nrepos:\n- repo: local\n  hooks:\n  - id: usual\n  - id: message\n    \
                      stages: [commit-msg, 'prepare-commit-msg']\n  - id: both\n    stages:\n    - commit-msg\n    - pre-commit # and \
                      here\n    name: x\n  - id: old\n    stages: [commit]\n  - id: later\n    stages:\n      - manual\n";
        let (here, elsewhere) = HookPlan { tool: "prek", files: None }.list_manifests(config);
        let ids: Vec<&str> = here.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["hook.both", "hook.old"]);
        let told: Vec<String> = elsewhere.iter().map(|hook| format!("{} {}", hook.id, hook.stages)).collect();
        let wanted =
            ["hook.usual pre-push", "hook.message commit-msg, prepare-commit-msg", "hook.later manual"];
        assert_eq!(told, wanted);
        let open = "repos:\n- repo: local\n  hooks:\n  - id: a\n    stages: [commit-msg,\n      manual]\n";
        assert_eq!(list_hooks(open), None, "where a list goes on below, that is doubt");
    }

    #[test]
    fn each_manifest_is_one_and_leaves_the_other_hooks_out() {
        let config = "repos:\n- repo: local\n  hooks:\n  - id: a\n  - id: b\n";
        let paths = ["x \"y\".py", "z"].map(|path| Some(path.to_owned()));
        let plan = HookPlan::for_files("prek", paths.into_iter());
        let (manifests, _) = plan.list_manifests(config);
        let (id, text) = &manifests[0];
        let read = Manifest::parse(CONFIG, id, text.as_bytes()).expect("a manifest");
        let expected = ["env", "SKIP=b", "prek", "run", "--color", "never", "--files", "x \"y\".py", "z"];
        assert_eq!((id.as_str(), read.command), ("hook.a", expected.map(str::to_owned).to_vec()));
        assert_eq!(read.stores, ["~/.cache/prek"]);
        let whole = HookPlan::for_files("pre-commit", std::iter::once(Some("-x".to_owned())));
        let (_, text) = &whole.list_manifests("repos: [ ]\n").0[0];
        assert!(text.contains("\"--all-files\"") && text.contains("probe"), "{text}");
        assert_eq!(HookPlan::for_files("prek", std::iter::once(None)).files, None);
    }
}
