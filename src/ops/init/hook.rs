//! The hook of git's that checks what is staged before it becomes a commit: a file in the repository's own
//! folder of hooks. Who has a hook there already, or keeps hooks elsewhere, is told the line to add.

use crate::domain::ledger::objects::{HookChange, HookState};
use crate::error::presence::means_absent;
use crate::error::{Code, Failure, Result};
use crate::git::Repository;
use crate::store::layout::{create_private_dir, write_executable};
use std::path::{Path, PathBuf};

/// The second line of a hook of ours.
const MARK: &str = "# git-tender: shows what is staged before it becomes a commit.";

/// What a hook of somebody else's needs.
const LINE: &str = "git-tender check --staged || exit";

/// Puts the hook in place; one that is there already is brought up to date.
pub(super) fn install_hook(repository: &Repository, program: &Path) -> Result<HookChange> {
    let folder = own_folder(repository)?;
    let path = folder.join("pre-commit");
    let known = read_hook(&path)?;
    if known.as_ref().is_some_and(|known| !is_ours(known)) {
        return Err(refuse_other(&path, "there is a hook already"));
    }
    let text = hook_text(program)?;
    let state = match known {
        Some(known) if known == text.as_bytes() => HookState::Kept,
        _ => {
            create_private_dir(&folder)?;
            write_executable(&path, text.as_bytes())?;
            HookState::Installed
        }
    };
    Ok(HookChange { path: path.display().to_string(), state })
}

/// Takes the hook away, if it is ours.
pub(super) fn remove_hook(repository: &Repository) -> Result<HookChange> {
    let path = repository.common_dir().join("hooks").join("pre-commit");
    let state = match read_hook(&path)? {
        None => HookState::Absent,
        Some(known) if is_ours(&known) => {
            std::fs::remove_file(&path).map_err(|e| Failure::io("remove", &path, &e))?;
            HookState::Removed
        }
        Some(_) => {
            let text = format!("the hook {} is not one of git-tender's", path.display());
            return Err(Failure::new(Code::StateInvalid, text)
                .subject(path.display().to_string())
                .expected(MARK, "another hook")
                .remedy("Take the line out of it that calls git-tender.", ["git", "tender", "doctor"]));
        }
    };
    Ok(HookChange { path: path.display().to_string(), state })
}

/// The repository's own hooks, unless git is told to look elsewhere: what lies there belongs to others too.
fn own_folder(repository: &Repository) -> Result<PathBuf> {
    let own = repository.common_dir().join("hooks");
    let Some(named) = repository.config_value("core.hooksPath")?.filter(|named| !named.is_empty()) else {
        return Ok(own);
    };
    // A relative one counts from where hooks run.
    let there = repository.top()?.join(&named);
    let same = |one: &Path, other: &Path| one.canonicalize().ok().zip(other.canonicalize().ok());
    if same(&there, &own).is_some_and(|(one, other)| one == other) {
        return Ok(own);
    }
    Err(refuse_other(&Path::new(&named).join("pre-commit"), "core.hooksPath says that hooks lie elsewhere"))
}

fn refuse_other(path: &Path, why: &str) -> Failure {
    let shown = path.display().to_string();
    Failure::new(Code::StateInvalid, format!("{why}, and it is not overwritten: {shown}"))
        .subject(&shown)
        .expected("no hook, or one of git-tender's", "another one")
        .detail("line", LINE)
        .remedy(format!("Add this line to {shown}: {LINE}"), ["git", "tender", "check"])
}

fn read_hook(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        // A link that leads nowhere is somebody's.
        Err(e) if means_absent(&e) && path.symlink_metadata().is_ok() => Ok(Some(Vec::new())),
        Err(e) if means_absent(&e) => Ok(None),
        Err(e) => Err(Failure::io("read", path, &e)),
    }
}

fn is_ours(hook: &[u8]) -> bool {
    hook.split(|byte| *byte == b'\n').nth(1) == Some(MARK.as_bytes())
}

/// The program by its path, since hooks get another `PATH` from some clients; where it is gone, by its name.
fn hook_text(program: &Path) -> Result<String> {
    let named = program.to_str().ok_or_else(|| {
        Failure::new(Code::NotSupported, "the path of git-tender is not UTF-8, so no hook can name it")
            .subject(program.display().to_string())
    })?;
    let quoted = format!("'{}'", named.replace('\'', "'\\''"));
    Ok(format!(
        "#!/bin/sh\n{MARK}\n\
         # `git tender init --unhook` takes it away; `git commit --no-verify` goes past it once.\n\
         program={quoted}\n[ -x \"$program\" ] || program=git-tender\nexec \"$program\" check --staged\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_known_by_its_second_line() {
        let text = hook_text(Path::new("/it's here/git-tender")).expect("UTF-8");
        assert!(text.contains("program='/it'\\''s here/git-tender'\n"), "{text}");
        assert!(is_ours(text.as_bytes()));
        assert!(!is_ours(b"#!/bin/sh\ngit-tender check\n") && !is_ours(b""));
    }
}
