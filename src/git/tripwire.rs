//! Looking at what lies around a task: shared configuration, hooks, `info/`, branches, the stash, HEAD and
//! index of the live tree.
//!
//! Nothing is written, and nothing of it is run. The cost grows with the number of branches and hooks, not
//! with that of files: a file that is as it was when it was looked at before is not read by git again, and an
//! index that was not written is not read at all.

use super::address::redact_address;
use super::command::Quarantine;
use super::ordinary::config_entries;
use super::repository::Repository;
use super::user_index;
use crate::domain::delivery::IndexState;
use crate::domain::proof::tripwire::Sight;
use crate::domain::value::digest::{ObjectId, Sha256};
use crate::error::{Failure, Result};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where to look, and what the index is compared with.
#[derive(Debug, Clone, Copy)]
pub struct WatchedPlace<'a> {
    /// The repository as seen from the live tree.
    pub home: &'a Repository,
    /// Where the base's objects may lie.
    pub quarantine: &'a Quarantine,
    pub base: &'a ObjectId,
}

/// Longest part of a hook or an `info/` file that is digested, in bytes; its length counts in any case.
const MOST_DIGESTED: u64 = 1 << 20;
/// How many files of a directory are looked at, by name: somebody may have named a huge one as that of the
/// hooks.
const MOST_FILES: usize = 500;

/// Looks. What is told by `before` to be the same is taken from there.
pub fn take_sight(place: &WatchedPlace<'_>, before: Option<&Sight>) -> Result<Sight> {
    let home = place.home;
    let common = home.common_dir();
    let mut sight = Sight { config_files: config_files(home)?, ..Sight::default() };
    match before.filter(|before| before.config_files == sight.config_files) {
        Some(before) => {
            sight.config.clone_from(&before.config);
            sight.hooks_at.clone_from(&before.hooks_at);
        }
        None => {
            sight.config = config_keys(home, &sight.config_files)?;
            sight.hooks_at = hooks_at(home)?.display().to_string();
        }
    }
    sight.hooks = list_folder(Path::new(&sight.hooks_at))?;
    sight.info = list_folder(&common.join("info"))?;
    // What servers of the dumb protocol need; git's own housekeeping writes it.
    sight.info.remove("refs");
    record_refs(home, &mut sight)?;
    sight.index_stamp = index_stamp(&home.git_dir().join("index"))?;
    sight.index = match before.filter(|before| before.index_stamp == sight.index_stamp) {
        Some(before) => before.index.clone(),
        None => index_states(place)?,
    };
    Ok(sight)
}

fn config_files(home: &Repository) -> Result<BTreeMap<String, Sha256>> {
    let (common, own) = (home.common_dir(), home.git_dir());
    let mut files =
        vec![("config", common.join("config")), ("config.worktree", common.join("config.worktree"))];
    if own != common {
        files.push(("config.worktree of the live tree", own.join("config.worktree")));
    }
    let mut found = BTreeMap::new();
    for (name, path) in files {
        match std::fs::read(&path) {
            Ok(bytes) => drop(found.insert(name.to_owned(), Sha256::of(&bytes))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Failure::io("read", &path, &e)),
        }
    }
    Ok(found)
}

/// The keys of the files with the digests of their values. A file that git cannot read has no keys.
fn config_keys(home: &Repository, files: &BTreeMap<String, Sha256>) -> Result<BTreeMap<String, Sha256>> {
    let mut values: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for name in files.keys() {
        let (folder, file) = match name.split_once(" of ") {
            Some((file, _)) => (home.git_dir(), file),
            None => (home.common_dir(), name.as_str()),
        };
        for (key, value) in entries_of_file(home, &folder.join(file))? {
            values.entry(key).or_default().extend_from_slice(&value);
        }
    }
    Ok(values.into_iter().map(|(key, value)| (key, Sha256::of(&value))).collect())
}

/// The keys of a file, each with a line end and its value.
fn entries_of_file(home: &Repository, file: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    if let Some(entries) = config_entries(file) {
        let line =
            |value: Option<Vec<u8>>| value.map(|value| [&b"\n"[..], &value].concat()).unwrap_or_default();
        return Ok(entries.into_iter().map(|(key, value)| (redact_address(&key), line(value))).collect());
    }
    let git = home.git_call().args(["config", "--list", "-z", "--no-includes", "--file"]);
    let listed = git.arg(file).run()?.stdout;
    let entry = |entry: &[u8]| {
        let end = entry.iter().position(|b| *b == b'\n').unwrap_or(entry.len());
        // An address in a key may hold a password.
        (redact_address(&String::from_utf8_lossy(&entry[..end])), entry[end..].to_vec())
    };
    Ok(listed.split(|b| *b == 0).filter(|entry| !entry.is_empty()).map(entry).collect())
}

/// The directory that the user's own git takes hooks from. Ours are switched off on the command line, which
/// does not count here.
fn hooks_at(home: &Repository) -> Result<PathBuf> {
    let Some(named) = home.configuration()?.get("core.hooksPath") else {
        return Ok(home.common_dir().join("hooks"));
    };
    let named = match named.strip_prefix("~/") {
        Some(below) => home.environment().get("HOME").map(Path::new).unwrap_or(Path::new("~")).join(below),
        None => PathBuf::from(named),
    };
    Ok(home.top().map_or_else(|_| named.clone(), |top| top.join(&named)))
}

/// Mode and digest of everything in a directory; links are not followed.
fn list_folder(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(found) };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries.into_iter().take(MOST_FILES) {
        let name = String::from_utf8_lossy(entry.file_name().as_bytes()).into_owned();
        let Ok(meta) = entry.metadata() else { continue };
        let what = if meta.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            format!("link {}", Sha256::of(target.as_os_str().as_bytes()))
        } else if meta.is_file() {
            let mut bytes = meta.len().to_be_bytes().to_vec();
            let read =
                std::fs::File::open(entry.path()).and_then(|f| f.take(MOST_DIGESTED).read_to_end(&mut bytes));
            // One that may not be read is told by its length alone.
            drop(read);
            format!("{:o} {}", meta.mode(), Sha256::of(&bytes))
        } else {
            format!("{:o} no file", meta.mode())
        };
        found.insert(name, what);
    }
    Ok(found)
}

fn record_refs(home: &Repository, sight: &mut Sight) -> Result<()> {
    if let Some((refs, head)) = refs_in_process(home) {
        sight.refs = refs;
        sight.head = head;
        return Ok(());
    }
    let listed = home
        .git_call()
        .args(["for-each-ref", "--format=%(refname)%00%(objectname)%00%(HEAD)", "refs/heads", "refs/stash"])
        .run_for_stdout()?;
    for line in listed.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let fields: Vec<String> =
            line.split(|b| *b == 0).map(|field| String::from_utf8_lossy(field).into_owned()).collect();
        let [name, id, head] = fields.as_slice() else { continue };
        if head == "*" {
            sight.head.clone_from(name);
        }
        sight.refs.insert(name.clone(), id.clone());
    }
    if sight.head.is_empty() {
        let id = home.resolve_revision("HEAD", "commit")?.map(|id| id.to_string());
        sight.head = id.or(home.current_branch()?).unwrap_or_default();
    }
    Ok(())
}

/// The same without git, where the repository is an ordinary one.
fn refs_in_process(home: &Repository) -> Option<(BTreeMap<String, String>, String)> {
    let refs = home.refs_in_process()?;
    let found: BTreeMap<String, String> = refs.branches_and_stash()?.into_iter().collect();
    let head = match refs.current_branch()? {
        Some(branch) => branch,
        None => refs.head_id()?.to_string(),
    };
    Some((found, head))
}

/// Length, time and last bytes (git's own checksum) of the index.
fn index_stamp(path: &Path) -> Result<String> {
    let failed = |e: std::io::Error| Failure::io("read", path, &e);
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(e) => return Err(failed(e)),
    };
    let meta = file.metadata().map_err(failed)?;
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(meta.len().saturating_sub(32))).map_err(failed)?;
    file.read_to_end(&mut tail).map_err(failed)?;
    Ok(format!("{} {}.{} {}", meta.len(), meta.mtime(), meta.mtime_nsec(), Sha256::of(&tail)))
}

fn index_states(place: &WatchedPlace<'_>) -> Result<BTreeMap<String, String>> {
    let state = |state: IndexState| match state {
        IndexState::Absent => "absent".to_owned(),
        IndexState::Unmerged => "unmerged".to_owned(),
        IndexState::IntentToAdd => "only intended to be added".to_owned(),
        IndexState::Entry { mode, git_blob } => format!("{mode} {git_blob}"),
    };
    let found = user_index::index_differences(place.home, place.quarantine, place.base)?;
    Ok(found.into_iter().map(|one| (one.path.to_string(), state(one.state))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    #[test]
    fn a_file_of_configuration_is_read_as_git_reads_it() {
        let home = TestRepository::new();
        home.write_file(
            "settings",
            b"[a]\n\tone = 1\n\tOne = two words # no\n\tflag\n\tempty =\n[b \"Sub.Part\"]\n\tKey = \"q\\\"x\\n\"\n[a]\n\tone = 3\n",
        );
        let file = home.top().join("settings");
        let known = entries_of_file(&home.repository(), &file).expect("reads");
        assert!(config_entries(&file).is_some(), "in process");
        home.write_file("including", b"[include]\n\tpath = settings\n");
        assert!(config_entries(&home.top().join("including")).is_none());
        let listed = home.git_call().args(["config", "--list", "-z", "--no-includes", "--file", "settings"]);
        let listed = listed.run_for_stdout().expect("asks git");
        let lines: Vec<u8> =
            known.iter().flat_map(|(key, value)| [key.as_bytes(), value, b"\0"].concat()).collect();
        assert_eq!(String::from_utf8_lossy(&lines), String::from_utf8_lossy(&listed));
    }
}
