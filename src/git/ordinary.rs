//! Finds an ordinary repository and reads its refs where git itself would look, without starting it.
//!
//! Ordinary is: files for refs, SHA-1, no extension, a work tree above `.git` (or a linked one), everything
//! the user's own. Whatever is otherwise, or cannot be read, is git's to answer: then nothing is said here.

use super::command::Environment;
use crate::domain::value::digest::{ObjectFormat, ObjectId};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where an ordinary repository and its working tree lie.
pub(super) struct OrdinaryPlaces {
    pub git_dir: PathBuf,
    pub common_dir: PathBuf,
    pub top: PathBuf,
}

/// The format of its objects.
pub(super) const FORMAT: ObjectFormat = ObjectFormat::Sha1;

/// From a folder upwards; `None` where git has to be asked.
pub(super) fn find_above(environment: &Environment, folder: &Path) -> Option<OrdinaryPlaces> {
    // Where the search ends is said by variables that git knows better.
    if environment.get("GIT_CEILING_DIRECTORIES").is_some() {
        return None;
    }
    let start = folder.canonicalize().ok()?;
    let device = std::fs::metadata(&start).ok()?.dev();
    for top in start.ancestors() {
        let known = std::fs::metadata(top).ok()?;
        // Git asks no file system above the first, nor takes a git directory for a folder above one.
        if known.dev() != device || is_git_dir(top) {
            return None;
        }
        let dot_git = top.join(".git");
        let Ok(found) = std::fs::symlink_metadata(&dot_git) else { continue };
        let git_dir = if found.is_dir() { dot_git } else { linked_git_dir(&dot_git, &found)? };
        return is_own(&known).then(|| places_of(&git_dir, top)).flatten();
    }
    None
}

/// Of a git directory and a working tree that are known; `None` where git has to be asked.
pub(super) fn places_of(git_dir: &Path, top: &Path) -> Option<OrdinaryPlaces> {
    let same = |path: &Path| path.canonicalize().ok().filter(|real| real == path);
    let (git_dir, top) = (same(git_dir)?, same(top)?);
    let common_dir = match std::fs::read(git_dir.join("commondir")) {
        Ok(link) => git_dir.join(OsStr::from_bytes(link.trim_ascii_end())).canonicalize().ok()?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => git_dir.clone(),
        Err(_) => return None,
    };
    let is_plain = |path: &Path| !path.as_os_str().as_bytes().contains(&b'\n');
    let own = [&git_dir, &common_dir, &top].into_iter().all(|path| {
        is_plain(path) && std::fs::metadata(path).is_ok_and(|known| known.is_dir() && is_own(&known))
    });
    let ordinary = own
        && !top.starts_with(&common_dir)
        && !top.starts_with(&git_dir)
        && is_git_dir(&common_dir)
        && has_ordinary_head(&git_dir)
        && has_ordinary_settings(&common_dir.join("config"));
    ordinary.then_some(OrdinaryPlaces { git_dir, common_dir, top })
}

/// A linked worktree's git directory, from the file that stands in its place.
fn linked_git_dir(dot_git: &Path, found: &std::fs::Metadata) -> Option<PathBuf> {
    if !found.is_file() || !is_own(found) {
        return None;
    }
    let text = std::fs::read(dot_git).ok()?;
    let named = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    dot_git.parent()?.join(OsStr::from_bytes(named)).canonicalize().ok()
}

/// Another user's repository may name programs to run: git decides whether it is trusted.
fn is_own(known: &std::fs::Metadata) -> bool {
    known.uid() == rustix::process::geteuid().as_raw()
}

fn is_git_dir(folder: &Path) -> bool {
    folder.join("HEAD").symlink_metadata().is_ok()
        && folder.join("objects").is_dir()
        && folder.join("refs").is_dir()
}

/// What HEAD says: a ref or an id.
enum Head {
    Branch(String),
    Detached(ObjectId),
}

fn read_head(git_dir: &Path) -> Option<Head> {
    let path = git_dir.join("HEAD");
    // As a link it is a way of old to name a branch.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    match text.strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim();
            name.starts_with("refs/").then(|| Head::Branch(name.to_owned()))
        }
        None => text.trim_end().parse().ok().map(Head::Detached),
    }
}

fn has_ordinary_head(git_dir: &Path) -> bool {
    read_head(git_dir).is_some()
}

/// The keys and values of a file of configuration; `None` where it includes others, or cannot be read.
pub(super) fn config_entries(file: &Path) -> Option<Vec<(String, Option<Vec<u8>>)>> {
    let config = git2::Config::open(file).ok()?;
    let mut entries = config.entries(None).ok()?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.name().ok()?.to_owned();
        if name.starts_with("include.") || name.starts_with("includeif.") {
            return None;
        }
        found.push((name, entry.has_value().then(|| entry.value_bytes().to_vec())));
    }
    Some(found)
}

/// True where nothing in the repository's own file changes what or where the repository is.
fn has_ordinary_settings(file: &Path) -> bool {
    let Some(entries) = config_entries(file) else { return false };
    entries.iter().all(|(name, value)| match name.as_str() {
        "core.bare" => value.as_deref() == Some(b"false"),
        "core.repositoryformatversion" => matches!(value.as_deref(), Some(b"0" | b"1")),
        "core.worktree" => false,
        name => !name.starts_with("extensions."),
    })
}

/// A reader of the refs of an ordinary repository.
pub(super) struct OrdinaryRefs<'a> {
    pub git_dir: &'a Path,
    pub common_dir: &'a Path,
}

impl OrdinaryRefs<'_> {
    /// The full name of the branch that is checked out. The outer `None`: git has to be asked.
    pub fn current_branch(&self) -> Option<Option<String>> {
        Some(match read_head(self.git_dir)? {
            Head::Branch(name) => Some(name),
            Head::Detached(_) => None,
        })
    }

    /// The id that HEAD stands for. `None`: git has to be asked.
    pub fn head_id(&self) -> Option<ObjectId> {
        match read_head(self.git_dir)? {
            Head::Branch(name) => self.id_of(&name),
            Head::Detached(id) => Some(id),
        }
    }

    /// The id of a ref that all worktrees share, from its file or the packed ones.
    fn id_of(&self, name: &str) -> Option<ObjectId> {
        let is_shared =
            name.starts_with("refs/heads/") && !name.split('/').any(|part| part == ".." || part == ".");
        if !is_shared {
            return None;
        }
        match std::fs::read_to_string(self.common_dir.join(name)) {
            Ok(text) => text.trim_end().parse().ok(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let packed = std::fs::read_to_string(self.common_dir.join("packed-refs")).ok()?;
                let line = packed
                    .lines()
                    .find(|line| line.split_once(' ').is_some_and(|(_, known)| known == name))?;
                line.split_once(' ')?.0.parse().ok()
            }
            Err(_) => None,
        }
    }

    /// Every branch and the stash with their ids. `None`: git has to be asked.
    pub fn branches_and_stash(&self) -> Option<Vec<(String, String)>> {
        let repository = git2::Repository::open(self.git_dir).ok()?;
        let mut found = Vec::new();
        for glob in ["refs/heads/*", "refs/stash"] {
            for reference in repository.references_glob(glob).ok()? {
                let reference = reference.ok()?;
                let id = reference.resolve().ok()?.target()?;
                found.push((reference.name().ok()?.to_owned(), id.to_string()));
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use crate::git::{Caller, Git, Repository};
    use std::os::unix::fs::symlink;

    /// What git says of a folder: its directories, top, branch, the commit and tree of HEAD.
    fn asked(home: &TestRepository, folder: &Path) -> Vec<String> {
        let line = |words: &[&str]| {
            let git = Git::new(home.environment(), None).cwd(folder).args(words.iter().copied());
            git.run()
                .map(|output| if output.success() { output.first_text() } else { String::new() })
                .expect("git starts")
        };
        vec![
            line(&["rev-parse", "--path-format=absolute", "--git-dir"]),
            line(&["rev-parse", "--path-format=absolute", "--git-common-dir"]),
            line(&["rev-parse", "--show-toplevel"]),
            line(&["rev-parse", "--show-object-format"]),
            line(&["symbolic-ref", "--quiet", "HEAD"]),
            line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]),
            line(&["rev-parse", "--verify", "--quiet", "HEAD^{tree}"]),
        ]
    }

    fn known(home: &TestRepository, folder: &Path) -> (Vec<String>, bool) {
        let environment = home.environment().clone();
        let caller = Caller { cwd: folder.to_path_buf(), git_dir: None, work_tree: None, environment };
        let repository = Repository::discover(&caller).expect("a repository");
        let path = |path: &Path| path.display().to_string();
        let id =
            |kind: &str| repository.resolve_revision("HEAD", kind).expect("asks").map(|id| id.to_string());
        let told = vec![
            path(repository.git_dir()),
            path(repository.common_dir()),
            repository.top().map(path).unwrap_or_default(),
            format!("{:?}", repository.format()).to_lowercase(),
            repository.current_branch().expect("asks").unwrap_or_default(),
            id("commit").unwrap_or_default(),
            id("tree").unwrap_or_default(),
        ];
        (told, repository.refs_in_process().is_some())
    }

    /// Says the same as git of every kind of repository, and which of them need no git.
    #[track_caller]
    fn agrees(home: &TestRepository, folder: &Path, in_process: bool) {
        let (told, without_git) = known(home, folder);
        assert_eq!(told, asked(home, folder));
        assert_eq!(without_git, in_process, "{}", folder.display());
    }

    #[test]
    fn a_repository_is_found_as_git_finds_it() {
        let home = TestRepository::new();
        agrees(&home, &home.top(), true);
        home.write_file("sub/deep/a", b"1\n");
        home.commit_all("first");
        agrees(&home, &home.top().join("sub/deep"), true);
        symlink(home.top().join("sub/deep"), home.outside().join("link")).expect("a link");
        agrees(&home, &home.outside().join("link"), true);
        home.run_git(["pack-refs", "--all"]);
        agrees(&home, &home.top(), true);
        home.run_git(["checkout", "-q", "-b", "topic/one"]);
        home.write_file("sub/deep/a", b"2\n");
        home.commit_all("second");
        agrees(&home, &home.top(), true);
        home.run_git(["checkout", "-q", "--detach"]);
        agrees(&home, &home.top(), true);
        home.run_git(["worktree", "add", "-q", "-b", "linked", "../linked"]);
        agrees(&home, &home.outside().join("linked"), true);
        home.run_git(["symbolic-ref", "HEAD", "refs/elsewhere/x"]);
        agrees(&home, &home.top(), true);
        // Ours names the tree that belongs to it; git names none.
        assert!(!known(&home, &home.top().join(".git")).1);
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_left_to_git() {
        let home = TestRepository::new();
        home.write_file("a", b"1\n");
        home.commit_all("first");
        let beside = |name: &str, options: &[&str]| {
            let path = home.outside().join(name);
            home.init_at(&path, options);
            path
        };
        agrees(&home, &beside("other-format", &["--object-format=sha256"]), false);
        let elsewhere = home.outside().join("elsewhere.git");
        let separate = beside("separate", &["--separate-git-dir", elsewhere.to_str().expect("text")]);
        agrees(&home, &separate, true);
        home.run_git(["config", "extensions.worktreeConfig", "true"]);
        agrees(&home, &home.top(), false);
        home.run_git(["config", "--unset", "extensions.worktreeConfig"]);
        home.run_git(["config", "include.path", "other"]);
        agrees(&home, &home.top(), false);
        home.run_git(["config", "--unset", "include.path"]);
        agrees(&home, &home.top(), true);
        home.run_git(["config", "core.worktree", home.outside().to_str().expect("text")]);
        agrees(&home, &home.top(), false);
    }

    #[test]
    fn branches_and_the_stash_are_listed_as_git_lists_them() {
        let home = TestRepository::new();
        home.write_file("a", b"1\n");
        home.commit_all("first");
        for branch in ["b", "deep/er/c", "packed"] {
            home.run_git(["branch", branch]);
        }
        home.run_git(["pack-refs", "--all"]);
        home.run_git(["tag", "-a", "-m", "no branch", "v1"]);
        home.write_file("a", b"2\n");
        home.run_git(["stash", "-q"]);
        home.run_git(["symbolic-ref", "refs/heads/alias", "refs/heads/b"]);
        let format = "--format=%(refname) %(objectname)";
        let asked = home.run_git(["for-each-ref", format, "refs/heads", "refs/stash"]);
        let repository = home.repository();
        let mut told =
            repository.refs_in_process().and_then(|refs| refs.branches_and_stash()).expect("in process");
        told.sort();
        let told: Vec<String> = told.into_iter().map(|(name, id)| format!("{name} {id}")).collect();
        assert_eq!(told, asked.lines().collect::<Vec<_>>());
    }
}
