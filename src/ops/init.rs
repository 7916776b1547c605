//! `init`: a `.tender/` for this repository, with verifiers for the tools found in it. What exists is never
//! overwritten.

mod hook;

use super::Session;
use crate::domain::contract::policy::DEFAULT_PROTECTED;
use crate::domain::ledger::objects::Initialised;
use crate::error::{Failure, Result};
use crate::store::layout::{create_private_dir, write_shared};
use crate::verifier::load::manifest_place;
use crate::verifier::shipped;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Into the repository, for its owners to commit.
    Committed,
    /// Under the git directory, the user's own.
    Private,
}

/// Takes the hook away and writes nothing.
pub fn remove_hook(session: &Session) -> Result<Initialised> {
    Ok(Initialised {
        schema: "git-tender/init/v1",
        layer: "private",
        dir: session.layout.local().display().to_string(),
        written: Vec::new(),
        kept: Vec::new(),
        verifiers: Vec::new(),
        hook: Some(hook::remove_hook(&session.repository)?),
    })
}

/// Writes the configuration and the fitting verifiers into the private layer, so that they count at once, and
/// the hook.
pub fn init_hook(session: &Session) -> Result<Initialised> {
    let hook = hook::install_hook(&session.repository, &session.machine.program)?;
    Ok(Initialised { hook: Some(hook), ..init(session, Layer::Private)? })
}

/// Writes the configuration and the fitting verifiers.
pub fn init(session: &Session, layer: Layer) -> Result<Initialised> {
    let top = session.repository.top()?;
    let (dir, word) = match layer {
        Layer::Committed => (top.join(".tender"), "committed"),
        Layer::Private => (session.layout.local(), "private"),
    };
    let read = |path: &str| {
        let place = top.join(path);
        place.exists().then(|| std::fs::read_to_string(&place).unwrap_or_default())
    };
    let fitting = shipped::fitting(&read);
    let mut done = Initialised {
        schema: "git-tender/init/v1",
        layer: word,
        dir: dir.display().to_string(),
        written: Vec::new(),
        kept: Vec::new(),
        verifiers: fitting.iter().map(|verifier| verifier.id).collect(),
        hook: None,
    };
    put(&mut done, layer, &dir, Path::new("config.toml"), &config(top)?)?;
    for verifier in fitting {
        // Twice the same id would be none.
        let committed = manifest_place(verifier.id);
        if layer == Layer::Private && top.join(&committed).exists() {
            done.kept.push(committed);
            continue;
        }
        // A manifest of the owners' own is not to get our explanation beside it.
        let theirs = dir.join("verifiers").join(verifier.id).join("verifier.toml").exists();
        for (name, content) in verifier.files.iter().filter(|(name, _)| !theirs || *name == "verifier.toml") {
            let place: PathBuf = ["verifiers", verifier.id, name].iter().collect();
            put(&mut done, layer, &dir, &place, content)?;
        }
    }
    Ok(done)
}

fn put(done: &mut Initialised, layer: Layer, dir: &Path, name: &Path, content: &str) -> Result<()> {
    let path = dir.join(name);
    let shown = match layer {
        Layer::Committed => Path::new(".tender").join(name),
        Layer::Private => Path::new("tender").join("local").join(name),
    };
    if path.symlink_metadata().is_ok() {
        done.kept.push(shown.display().to_string());
        return Ok(());
    }
    let folder = path.parent().unwrap_or(dir);
    match layer {
        Layer::Private => create_private_dir(folder)?,
        Layer::Committed => std::fs::create_dir_all(folder).map_err(|e| Failure::io("create", folder, &e))?,
    }
    write_shared(&path, content.as_bytes())?;
    done.written.push(shown.display().to_string());
    Ok(())
}

/// A list as TOML has it.
fn list(items: &[impl Serialize]) -> String {
    serde_json::to_string(items).unwrap_or_default().replace("\",\"", "\", \"")
}

/// A configuration that sets no ceiling but shows which there are.
fn config(top: &Path) -> Result<String> {
    let mut folders: Vec<String> = std::fs::read_dir(top)
        .map_err(|e| Failure::io("read", top, &e))?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.') && name != "target" && name != "node_modules")
        .map(|name| format!("{name}/"))
        .collect();
    folders.sort();
    let (example, protected) = (list(&folders), list(&DEFAULT_PROTECTED));
    Ok(format!(
        "# The ceiling over every task in this repository, read from the commit that a task starts from.\n\
         # A key that is left out sets no ceiling.\n\
         [policy]\n\
         # Paths that tasks may change at all:\n\
         # write = {example}\n\
         # Paths whose change a person has to confirm; a list of your own takes the place of these:\n\
         # protected = {protected}\n\
         # Verifiers that a change needs, by what it touches:\n\
         # require = [{{ verifier = \"cargo-test\", when = [\"src/**\"] }}]\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::policy::Config;

    #[test]
    fn what_is_written_sets_nothing() {
        let top = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(top.path().join("src")).expect("made");
        let text = config(top.path()).expect("writes");
        assert_eq!(Config::parse_config(text.as_bytes()).expect("parses"), Config::default());
        // What it shows is what holds.
        let shown = text.lines().find_map(|line| line.strip_prefix("# protected = ")).expect("shown");
        let shown =
            Config::parse_config(format!("[policy]\nprotected = {shown}\n").as_bytes()).expect("parses");
        let (shown, holds) = (shown.policy.protected_scope(), Config::default().policy.protected_scope());
        assert_eq!(shown, holds);
    }
}
