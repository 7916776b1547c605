//! Everything beneath a directory: to be visited, or to be removed.
//!
//! A worker may make directories as deep as it likes, and each level of a walk keeps one open. So a walk goes
//! only [`DEEPEST`] levels down, which is far beyond any path that git takes part in; a removal brings what
//! lies deeper up to the top, and so has no bound.

use super::resolve::is_not_a_folder;
use super::{Folder, file_type, path_operation_failed};
use crate::error::Result;
use rustix::fs::{FileType, Stat};
use std::io;

/// How many levels of directories a walk enters.
const DEEPEST: usize = 500;
/// How many levels a removal has open at once.
const OPEN_LEVELS: usize = 50;

/// [`walk_folder()`] calls it for each entry with its directory, its path from the top, what it is. True: go
/// in.
pub type VisitEntry<'a> = dyn FnMut(&Folder, &[u8], &Stat) -> Result<bool> + 'a;

/// Visits everything beneath a directory, top down, by sorted names. The visitor says of a directory whether
/// to go in.
pub fn walk_folder(root: &Folder, visit: &mut VisitEntry<'_>) -> Result<()> {
    walk_in(root, &mut Vec::new(), visit, &mut |doing, path, e| Err(path_operation_failed(doing, path, e)))
}

/// Likewise, for whoever only wants to see: what cannot be looked at is left out, and what was replaced
/// meanwhile is gone. Gives how many directories and files were left out; names of them are not told, since
/// not everything here may be known to everyone.
pub fn walk_what_can_be_seen(root: &Folder, visit: &mut VisitEntry<'_>) -> Result<u64> {
    let mut left_out = 0;
    walk_in(root, &mut Vec::new(), visit, &mut |_, _, e| {
        left_out += u64::from(!is_not_a_folder(&e));
        Ok(())
    })?;
    Ok(left_out)
}

/// Called with something that could not be done: what it was, the path, and why not. Where it returns no
/// failure, the walk goes on without that.
type WalkFault<'a> = dyn FnMut(&str, &[u8], io::Error) -> Result<()> + 'a;

fn walk_in(
    dir: &Folder,
    path: &mut Vec<u8>,
    visit: &mut VisitEntry<'_>,
    fault: &mut WalkFault<'_>,
) -> Result<()> {
    let length = path.len();
    let names = match dir.sorted_names() {
        Ok(names) => names,
        Err(e) => return fault("list", path, e),
    };
    for name in names {
        if length > 0 {
            path.push(b'/');
        }
        path.extend(&name);
        match dir.stat(&name) {
            Ok(stat) => {
                if visit(dir, path, &stat)? && file_type(&stat) == FileType::Directory {
                    match enter_folder(dir, &name, path) {
                        Ok(child) => walk_in(&child, path, visit, fault)?,
                        Err(e) => fault("open the directory", path, e)?,
                    }
                }
            }
            // Someone removed it between the listing and the look.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => fault("look at", path, e)?,
        }
        path.truncate(length);
    }
    Ok(())
}

/// A directory of the walk, as long as it is not too deep.
fn enter_folder(dir: &Folder, name: &[u8], path: &[u8]) -> io::Result<Folder> {
    if path.iter().filter(|b| **b == b'/').count() >= DEEPEST {
        return Err(io::Error::other(format!("it lies more than {DEEPEST} directories deep")));
    }
    dir.open_subfolder(name)
}

/// Removes a directory's content: links are unlinked and never followed, another file system stays and is an
/// error.
pub fn remove_content(top: &Folder) -> Result<()> {
    let mut lifted = 0;
    loop {
        let before = lifted;
        remove_in(top, (top, &mut lifted), &mut Vec::new(), OPEN_LEVELS)?;
        if lifted == before {
            return Ok(());
        }
    }
}

/// Likewise, as far as `levels` down. What lies deeper is moved to the top, and counted: it remains to be
/// removed from there.
fn remove_in(
    dir: &Folder,
    (top, lifted): (&Folder, &mut u64),
    path: &mut Vec<u8>,
    levels: usize,
) -> Result<()> {
    let length = path.len();
    for name in dir.sorted_names().map_err(|e| path_operation_failed("list", path, e))? {
        if length > 0 {
            path.push(b'/');
        }
        path.extend(&name);
        let stat = dir.stat(&name).map_err(|e| path_operation_failed("look at", path, e))?;
        if file_type(&stat) == FileType::Directory {
            if stat.st_dev != top.inode.dev {
                let mounted = rustix::io::Errno::XDEV.into();
                return Err(path_operation_failed(
                    "remove, because another file system is mounted there,",
                    path,
                    mounted,
                ));
            }
            let child = dir
                .open_subfolder(&name)
                .map_err(|e| path_operation_failed("open the directory", path, e))?;
            // What a worker made unreadable for itself is still ours to remove.
            let _ = child.let_owner_in();
            if levels == 0 {
                lift_folder(dir, &name, (top, lifted))
                    .map_err(|e| path_operation_failed("move to the top", path, e))?;
            } else {
                remove_in(&child, (top, lifted), path, levels - 1)?;
                dir.remove_folder(&name)
                    .map_err(|e| path_operation_failed("remove the directory", path, e))?;
            }
        } else {
            dir.unlink(&name).map_err(|e| path_operation_failed("remove", path, e))?;
        }
        path.truncate(length);
    }
    Ok(())
}

/// Moves a directory to the top, under a name that is free there.
fn lift_folder(dir: &Folder, name: &[u8], (top, lifted): (&Folder, &mut u64)) -> io::Result<()> {
    loop {
        *lifted += 1;
        match dir.move_to(name, top, format!(".tender-lifted-{lifted}").as_bytes()) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FolderCursor;
    use super::*;
    use crate::domain::value::repo_path::{RepoPath, display_bytes};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the worker")]
    fn what_cannot_be_seen_is_left_out_and_counted_and_breaks_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        for name in ["a", "closed", "swapped", "z"] {
            std::fs::create_dir(home.path().join(name)).expect("made");
            std::fs::write(home.path().join(name).join("file"), "x").expect("written");
        }
        let closed = home.path().join("closed");
        let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&closed, mode(0o000)).expect("closed");
        let root = Folder::open_path(home.path()).expect("opens");
        let see = || {
            let mut seen = Vec::new();
            let left_out = walk_what_can_be_seen(&root, &mut |_, path, _| {
                seen.push(display_bytes(path));
                if path == b"swapped" && home.path().join("swapped").is_dir() {
                    std::fs::rename(home.path().join("swapped"), home.path().join("b")).expect("moved");
                    std::os::unix::fs::symlink("b", home.path().join("swapped")).expect("linked");
                }
                Ok(true)
            });
            (left_out.expect("walks"), seen)
        };
        let (left_out, seen) = see();
        let strict = walk_folder(&root, &mut |_, _, _| Ok(true));
        // Nothing is closed to root.
        if rustix::process::geteuid().is_root() {
            assert_eq!(
                (left_out, seen.join(" ").as_str()),
                (0, "a a/file closed closed/file swapped z z/file")
            );
        } else {
            assert_eq!((left_out, seen.join(" ").as_str()), (1, "a a/file closed swapped z z/file"));
            assert_eq!(strict.expect_err("who captures must see all").subject_text(), Some("closed"));
        }
        std::fs::set_permissions(&closed, mode(0o700)).expect("opened");
    }

    #[test]
    fn a_link_is_never_entered() {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join("real")).expect("made");
        std::fs::create_dir(home.path().join("top")).expect("made");
        std::os::unix::fs::symlink("../real", home.path().join("top/link")).expect("made");
        let mut cursor = FolderCursor::new(&home.path().join("top")).expect("opens");
        let path = RepoPath::new("link/file").expect("a path");
        assert!(cursor.folder_of(&path).expect("looks").is_none());
        cursor.made_folder(&path).expect_err("a link is in the way");
        remove_content(&Folder::open_path(&home.path().join("top")).expect("opens")).expect("removes");
        assert!(home.path().join("real").is_dir() && !home.path().join("top/link").is_symlink());
    }

    /// A directory with `depth` directories in one another, and a file in the innermost one.
    fn deep_folder(depth: usize) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        let mut at = Folder::open_path(home.path()).expect("opens");
        for _ in 0..depth {
            at = at.make_subfolder(b"d").expect("made");
        }
        at.create_file(b"file", 0o600).expect("made");
        home
    }

    #[test]
    fn directories_of_any_depth_are_removed() {
        let home = deep_folder(3000);
        let mut all = Folder::open_path(home.path()).expect("opens");
        all.create_file(b".tender-lifted-1", 0o600).expect("a name that is taken");
        remove_content(&all).expect("removes");
        all = Folder::open_path(home.path()).expect("opens");
        assert!(all.sorted_names().expect("lists").is_empty());
    }

    #[test]
    fn a_walk_ends_before_it_is_too_deep() {
        let home = deep_folder(DEEPEST + 1);
        let root = Folder::open_path(home.path()).expect("opens");
        let failure = walk_folder(&root, &mut |_, _, _| Ok(true)).expect_err("too deep");
        assert!(failure.to_string().contains("500 directories deep"), "{failure}");
        let mut entries = 0;
        let mut count = |_: &Folder, _: &[u8], _: &Stat| {
            entries += 1;
            Ok(true)
        };
        assert_eq!(walk_what_can_be_seen(&root, &mut count).expect("walks"), 1);
        assert_eq!(entries, DEEPEST + 1);
        remove_content(&root).expect("removes");
    }
}
