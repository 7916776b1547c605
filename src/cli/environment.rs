//! The process environment, read once and here only. Everything else gets what it needs from
//! [`Surroundings`].

use crate::error::{Failure, Result};
use crate::git::{Caller, Environment};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the process was started with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    pub vars: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// This program's own file, for starting the helper.
    pub program: PathBuf,
}

impl Surroundings {
    pub fn read() -> Result<Self> {
        let here = Path::new(".");
        Ok(Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().map_err(|e| Failure::io("find the current folder", here, &e))?,
            program: std::env::current_exe()
                .map_err(|e| Failure::io("find the program's own file", here, &e))?,
        })
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&OsString> {
        self.vars
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    /// The index that git names to a hook, where it is not the working tree's own; none of it counts where a
    /// folder was named.
    pub fn index_file(&self, folder: Option<&Path>) -> Option<PathBuf> {
        let named = self.get("GIT_INDEX_FILE").filter(|_| folder.is_none())?;
        Some(self.cwd.join(named))
    }

    /// The folder that a call works from, by `-C`, `GIT_DIR` and the current folder in this order.
    pub fn caller(&self, folder: Option<&Path>) -> Caller {
        let named = folder.is_some();
        let variable = |name: &str| if named { None } else { self.get(name).map(PathBuf::from) };
        Caller {
            cwd: folder.map_or_else(|| self.cwd.clone(), |folder| self.cwd.join(folder)),
            git_dir: variable("GIT_DIR"),
            work_tree: variable("GIT_WORK_TREE"),
            environment: Environment::scrub_variables(self.vars.iter().cloned()),
        }
    }
}
