//! `scope`: every path that the candidate changes may be changed.
//!
//! Submit has refused what is out of scope already; this says it again of the frozen manifest under the
//! contract and the policy of now, which an amendment may have narrowed since.

use super::{BuiltinOutcome, finding};
use crate::domain::change::patch::Change;
use crate::domain::contract::policy::Effective;
use crate::domain::value::digest::Mode;

/// Judges the paths of a manifest. The manifest knows no renames, so that both ends of one are among them.
pub fn judge(changes: &[Change], effective: &Effective) -> BuiltinOutcome {
    let mut findings = Vec::new();
    for change in changes {
        let path = &change.path;
        if !effective.write_allows(path) {
            findings.push(finding(path, None, "write-scope", "is outside of what the task may change"));
        }
        let states = [&change.old, &change.new];
        if states.into_iter().flatten().any(|state| state.mode == Mode::Gitlink) {
            findings.push(finding(path, None, "gitlink", "is a submodule, which no task can change"));
        }
        let link = change.new.as_ref().is_some_and(|state| state.mode == Mode::Symlink);
        if let Some(rule) = path.refused_as_link().filter(|_| link) {
            findings.push(finding(path, None, "link", rule));
        }
    }
    BuiltinOutcome::by(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::Contract;
    use crate::domain::contract::policy::{Config, effective_contract};
    use crate::domain::proof::verdict::Verdict;
    use crate::domain::value::digest::{FileState, ObjectFormat, Sha256};
    use crate::domain::value::repo_path::RepoPath;

    fn state(mode: Mode) -> Option<FileState> {
        let git_blob = ObjectFormat::Sha1.blob_id(b"x").expect("an id");
        Some(FileState { mode, git_blob, sha256: Sha256::of(b"x") })
    }

    fn change(path: &str, old: Option<Mode>, new: Option<Mode>) -> Change {
        Change::new(RepoPath::new(path).expect("a path"), old.and_then(state), new.and_then(state))
    }

    fn rules(changes: &[Change]) -> Vec<String> {
        let contract = br#"{"taskId":"t","goal":"g","allowedTools":[],"writeScope":["docs/","src/"]}"#;
        let policy = b"[policy]\nwrite = [\"docs/\"]\n";
        let contract = Contract::parse_document(contract).expect("a contract");
        let policy = Config::parse_config(policy).expect("a policy").policy;
        let (effective, _) = effective_contract(&contract, &policy).expect("in force");
        let judged = judge(changes, &effective);
        assert_eq!(judged.outcome == Verdict::Passed, judged.findings.is_empty());
        judged
            .findings
            .into_iter()
            .map(|f| format!("{} {}", f.path.unwrap_or_default(), f.rule.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn each_changed_path_is_judged_by_contract_and_policy() {
        let file = Some(Mode::File);
        assert_eq!(rules(&[]), Vec::<String>::new());
        assert_eq!(
            rules(&[change("docs/a", None, file), change("docs/b/c", file, None)]),
            Vec::<String>::new()
        );
        let outside =
            [change("src/a", file, file), change("docs-evil/x", None, file), change("a", file, None)];
        assert_eq!(rules(&outside), ["src/a write-scope", "docs-evil/x write-scope", "a write-scope"]);
    }

    #[test]
    fn submodules_and_misleading_links_are_refused_within_the_scope() {
        let (file, gitlink) = (Some(Mode::File), Some(Mode::Gitlink));
        for change in [
            change("docs/m", None, gitlink),
            change("docs/m", gitlink, file),
            change("docs/m", gitlink, None),
        ] {
            assert_eq!(rules(&[change]), ["docs/m gitlink"]);
        }
        assert_eq!(
            rules(&[change("docs/.gitmodules", None, Some(Mode::Symlink))]),
            ["docs/.gitmodules link"]
        );
        assert_eq!(rules(&[change("docs/link", None, Some(Mode::Symlink))]), Vec::<String>::new());
    }
}
