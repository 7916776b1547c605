//! Attributes that no tree has: git reads them from the machine and from the git directory, and they decide
//! how bytes are checked out. Whoever keeps what was made of such bytes has to know when they are other ones.

use super::repository::Repository;
use crate::domain::value::digest::Sha256;
use crate::error::Result;
use std::path::PathBuf;

/// Where git looks for the machine's attributes where it cannot tell (before 2.42).
const USUAL_SYSTEM_FILE: &str = "/etc/gitattributes";

/// The digests of those attribute files, each with a word for whose it is. A file that is not there, or that
/// git cannot read either, is left out.
pub fn outside_attributes(repository: &Repository) -> Result<Vec<(&'static str, Sha256)>> {
    let places = [
        ("system", Some(system_file(repository)?)),
        ("user", user_file(repository)?),
        ("repository", Some(repository.common_dir().join("info/attributes"))),
    ];
    let digest = |place: PathBuf| std::fs::read(place).ok().map(|bytes| Sha256::of(&bytes));
    Ok(places.into_iter().filter_map(|(whose, place)| Some((whose, digest(place?)?))).collect())
}

fn system_file(repository: &Repository) -> Result<PathBuf> {
    let place = repository.ask_git_once("system attributes", &[], || {
        let told = repository.git_call().args(["var", "GIT_ATTR_SYSTEM"]).run()?;
        Ok(if told.success() { told.first_text() } else { USUAL_SYSTEM_FILE.to_owned() })
    })?;
    Ok(place.into())
}

fn user_file(repository: &Repository) -> Result<Option<PathBuf>> {
    if repository.config_value("core.attributesFile")?.is_some() {
        // Git itself puts the home directory in the place of `~`.
        let told =
            repository.git_call().args(["config", "--type=path", "--get", "core.attributesFile"]).run()?;
        return Ok(told.success().then(|| told.first_text().into()));
    }
    let variable = |name: &str| repository.environment().get(name).filter(|value| !value.is_empty());
    let folder = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".config")));
    Ok(folder.map(|folder| folder.join("git/attributes")))
}
