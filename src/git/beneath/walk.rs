//! Everything beneath a directory: to be visited, or to be removed.
//!
//! A worker may make directories as deep as it likes, and each level of a walk keeps one open. So a walk goes
//! only [`DEEPEST`] levels down, which is far beyond any path that git takes part in; a removal brings what
//! lies deeper up to the top, and so has no bound. What is the user's can be as deep too, and must neither be
//! moved nor stop a delivery: [`walk_at_any_depth()`] has one directory open at a time.

use super::resolve::is_not_a_folder;
use super::{Folder, file_type, path_operation_failed};
use crate::domain::delivery::receipt::Inode;
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

/// What to do about a name that [`walk_at_any_depth()`] has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeepVisit {
    /// It is a directory: look at what is in it.
    Enter,
    Pass,
    /// End the walk.
    Stop,
}

/// Hears a directory, a name in it, and the path of that from the top.
pub type DeepVisitor<'a> = dyn FnMut(&Folder, &[u8], &[u8]) -> io::Result<DeepVisit> + 'a;

/// A directory above the one that is looked at.
struct LevelAbove {
    inode: Inode,
    /// The names in it that are still to come, the last one first.
    names: Vec<Vec<u8>>,
    /// The name in it that was entered.
    entered: Vec<u8>,
    /// The length of its path.
    length: usize,
}

/// Visits everything beneath a directory, by sorted names, however deep it goes: it goes up again by `..`,
/// and only where that is the directory that it came from. `left` hears each one that was gone through. False
/// where `visit` has ended it.
pub fn walk_at_any_depth(
    top: &Folder,
    visit: &mut DeepVisitor<'_>,
    left: &mut dyn FnMut(&Folder, &[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let (mut here, mut names) = (top.clone_handle()?, reversed_names(top)?);
    let (mut above, mut path): (Vec<LevelAbove>, Vec<u8>) = (Vec::new(), Vec::new());
    loop {
        let length = path.len();
        if let Some(name) = names.pop() {
            if length > 0 {
                path.push(b'/');
            }
            path.extend(&name);
            match visit(&here, &name, &path)? {
                DeepVisit::Pass => path.truncate(length),
                DeepVisit::Stop => return Ok(false),
                DeepVisit::Enter => {
                    let child = here.open_subfolder(&name)?;
                    let names = std::mem::replace(&mut names, reversed_names(&child)?);
                    above.push(LevelAbove { inode: here.inode, names, entered: name, length });
                    here = child;
                }
            }
        } else if let Some(level) = above.pop() {
            here = here.open_parent(level.inode)?;
            left(&here, &level.entered)?;
            names = level.names;
            path.truncate(level.length);
        } else {
            return Ok(true);
        }
    }
}

fn reversed_names(folder: &Folder) -> io::Result<Vec<Vec<u8>>> {
    let mut names = folder.sorted_names()?;
    names.reverse();
    Ok(names)
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
    fn what_only_looks_has_no_bound_and_one_directory_open() {
        let home = deep_folder(5000);
        let root = Folder::open_path(home.path()).expect("opens");
        root.create_file(b"z", 0o600).expect("made");
        let open_files = || std::fs::read_dir("/proc/self/fd").expect("lists").count();
        let (before, mut most, mut seen, mut gone_through) = (open_files(), 0, Vec::new(), 0);
        let ended = walk_at_any_depth(
            &root,
            &mut |folder, name, path| {
                if path.len() % 1000 == 1 {
                    most = most.max(open_files());
                }
                if folder.look_up(name)?.is_some_and(|entry| entry.kind == FileType::Directory) {
                    return Ok(DeepVisit::Enter);
                }
                seen.push(path.to_vec());
                Ok(DeepVisit::Pass)
            },
            &mut |_, _| {
                gone_through += 1;
                Ok(())
            },
        );
        assert!(ended.expect("walks"));
        assert_eq!((seen.len(), seen[0].len(), seen[1].as_slice()), (2, 5000 * 2 + 4, &b"z"[..]));
        assert_eq!(gone_through, 5000);
        // Other tests of this process open files too.
        assert!(most < before + 500, "{before} files were open before, and {most} in the walk");
        let stopped = walk_at_any_depth(&root, &mut |_, _, _| Ok(DeepVisit::Stop), &mut |_, _| Ok(()));
        assert!(!stopped.expect("walks"));
        remove_content(&root).expect("removes");
    }

    #[test]
    fn a_directory_that_is_moved_meanwhile_leads_nowhere() {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(home.path().join("top/a/b")).expect("made");
        let top = Folder::open_path(&home.path().join("top")).expect("opens");
        let walked = walk_at_any_depth(
            &top,
            &mut |_, name, _| {
                if name == b"b" {
                    std::fs::rename(home.path().join("top/a"), home.path().join("a")).expect("moved");
                    return Ok(DeepVisit::Pass);
                }
                Ok(DeepVisit::Enter)
            },
            &mut |_, _| panic!("went up into another directory"),
        );
        walked.expect_err("it is not beneath the top any more");
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
