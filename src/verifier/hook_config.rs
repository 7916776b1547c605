//! The hooks of a `.pre-commit-config.yaml` as verifiers, one each, without a file of ours. The tool that the
//! file is for reads it and runs them; here only their names are read, so that each gets a row of its own.
//! Where the file cannot be read, or a hook has a name that no verifier can have, one row stands for all.

use crate::domain::value::document::is_id;
use serde::Deserialize;
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
            stages: hook.stages.as_ref().map(|stages| stages.words().join(", ")).unwrap_or_default(),
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

/// A hook as the file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ListedHook {
    id: String,
    #[serde(default)]
    entry: String,
    /// When it runs, where the configuration says so.
    #[serde(default)]
    stages: Option<Stages>,
}

/// One stage, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Stages {
    One(String),
    Many(Vec<String>),
}

/// As much of the file as is read here.
#[derive(Deserialize)]
struct HookFile {
    #[serde(default)]
    repos: Option<Vec<HookSource>>,
    #[serde(default)]
    default_stages: Option<Stages>,
}

#[derive(Deserialize)]
struct HookSource {
    #[serde(default)]
    hooks: Vec<ListedHook>,
}

impl Stages {
    fn words(&self) -> &[String] {
        match self {
            Self::One(stage) => std::slice::from_ref(stage),
            Self::Many(stages) => stages,
        }
    }
}

impl ListedHook {
    /// What says nothing runs before a commit; `commit` is the old word for that.
    fn is_for_commits(&self) -> bool {
        let is_commit = |stage: &String| matches!(stage.as_str(), "pre-commit" | "commit");
        self.stages.as_ref().is_none_or(|stages| stages.words().iter().any(is_commit))
    }

    /// It calls git-tender itself.
    fn is_ours(&self) -> bool {
        self.id == "git-tender" || self.entry.contains("git-tender") || self.entry.contains("git tender")
    }
}

/// The hooks, each once, in their order, but for a hook that calls git-tender itself. `None` where the file
/// is not read as one, or a name cannot be a verifier's.
fn list_hooks(config: &str) -> Option<Vec<ListedHook>> {
    let file: HookFile = serde_saphyr::from_str(config).ok()?;
    let mut hooks: Vec<ListedHook> = Vec::new();
    for mut hook in file.repos.unwrap_or_default().into_iter().flat_map(|source| source.hooks) {
        if !is_id(&format!("hook.{}", hook.id)) {
            return None;
        }
        if hook.is_ours() {
            continue;
        }
        hook.stages = hook.stages.or_else(|| file.default_stages.clone());
        match hooks.iter_mut().find(|known| known.id == hook.id) {
            // One that runs before a commit as well has a row.
            Some(known) if hook.is_for_commits() => known.stages = hook.stages,
            Some(_) => {}
            None => hooks.push(hook),
        }
    }
    Some(hooks)
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
        let ids_of = |text: &str| -> Vec<String> {
            list_hooks(text).expect("the usual form").into_iter().map(|hook| hook.id).collect()
        };
        let ids = ids_of(USUAL);
        assert_eq!(ids, ["trailing-whitespace", "end-of-file-fixer", "no-bad", "last"]);
        for doubtful in [
            "repos:\n- repo: local\n  hooks:\n  - id: a b\n",
            "repos: [\n",
            "repos:\n- hooks:\n  - name: a\n",
        ] {
            assert_eq!(list_hooks(doubtful), None, "{doubtful}");
        }
        assert_eq!(ids_of("repos:\n- repo: local\n  hooks: [{id: a}, &b {id: b}]\n"), ["a", "b"]);
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
        assert!(!list_hooks(open).expect("reads")[0].is_for_commits(), "a list that goes on below");
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
        let (_, text) = &whole.list_manifests("repos: [\n").0[0];
        assert!(text.contains("\"--all-files\"") && text.contains("probe"), "{text}");
        assert_eq!(HookPlan::for_files("prek", std::iter::once(None)).files, None);
    }
}
