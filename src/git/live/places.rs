//! What lies at a path and on the way to it: found from the top's descriptor, one component after the other,
//! no link followed.

use super::LiveBytes;
use super::index::fold_name;
use crate::domain::delivery::ParentProblem;
use crate::domain::value::digest::Sha256;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Barred, DeepVisit, Folder, FolderEntry, TreeTop, or_absent, walk_at_any_depth};
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::rc::Rc;

/// The largest file that is read into memory to be compared, in bytes.
const LARGEST: u64 = 4 << 30;
/// How much memory the size that a file claims is trusted with.
const RESERVED_AT_ONCE: usize = 64 << 20;

/// What was seen at one path.
pub(in crate::git) struct SeenPlace {
    pub parent: Option<ParentProblem>,
    pub nested_repository: bool,
    pub file: Option<(FolderEntry, LiveBytes)>,
    pub other: OtherKind,
    pub owner_kept: bool,
}

/// What is no regular file.
pub(in crate::git) enum OtherKind {
    Missing,
    Link(Vec<u8>),
    Directory { strangers: bool },
    Other,
}

/// Looks at places; remembers what holds for many of them.
pub(in crate::git) struct LivePlaces<'a> {
    top: &'a TreeTop,
    deleted: &'a HashSet<&'a RepoPath>,
    nested: HashMap<RepoPath, bool>,
    names: HashMap<Option<RepoPath>, Rc<Names>>,
    me: Me,
}

/// The names of a directory by their folded form.
type Names = HashMap<Vec<u8>, Vec<Vec<u8>>>;

impl<'a> LivePlaces<'a> {
    pub(in crate::git) fn new(top: &'a TreeTop, deleted: &'a HashSet<&'a RepoPath>) -> Self {
        Self { top, deleted, nested: HashMap::new(), names: HashMap::new(), me: Me::of_process() }
    }

    /// What lies at a path now.
    pub(in crate::git) fn look_at(&mut self, path: &RepoPath) -> Result<SeenPlace> {
        let mut seen = SeenPlace {
            parent: None,
            nested_repository: false,
            file: None,
            other: OtherKind::Missing,
            owner_kept: true,
        };
        for above in path.ancestors() {
            seen.nested_repository |= self.is_nested(&above)?;
        }
        let folder = match self.top.open_folder(path.parent().as_ref()) {
            Ok(folder) => folder,
            Err(Barred::Missing) => return Ok(seen),
            Err(Barred::Link(at)) => {
                seen.parent = Some(ParentProblem::Link(at));
                return Ok(seen);
            }
            Err(Barred::NotFolder(at)) => {
                seen.parent = Some(ParentProblem::File(at));
                return Ok(seen);
            }
            Err(Barred::Error(e)) => return Err(live_operation_failed("open the directory of", path, &e)),
        };
        // The user may be saving just now: what was a file is looked at again if it is gone when it is
        // opened.
        for _ in 0..16 {
            if self.look_once(&folder, path, &mut seen)? {
                return Ok(seen);
            }
        }
        Err(live_operation_failed("read", path, &std::io::ErrorKind::ResourceBusy.into()))
    }

    fn look_once(&self, folder: &Rc<Folder>, path: &RepoPath, seen: &mut SeenPlace) -> Result<bool> {
        let name = path.file_name();
        let entry = folder.look_up(name).map_err(|e| live_operation_failed("look at", path, &e))?;
        let Some(entry) = entry else {
            seen.other = OtherKind::Missing;
            return Ok(true);
        };
        seen.other = match entry.kind {
            FileType::RegularFile => {
                let Some((entry, bytes)) = read_live_file(folder, path)? else { return Ok(false) };
                seen.owner_kept = self.me.keeps_owner(&entry, folder)?;
                seen.file = Some((entry, bytes));
                return Ok(true);
            }
            FileType::Symlink => match folder.read_link(name) {
                Ok(target) => OtherKind::Link(target),
                Err(_) => return Ok(false),
            },
            FileType::Directory => match folder.open_subfolder(name) {
                Ok(inner) => OtherKind::Directory { strangers: self.has_strangers(&inner, path)? },
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                    return Err(live_operation_failed("open", path, &e));
                }
                Err(_) => return Ok(false),
            },
            _ => OtherKind::Other,
        };
        Ok(true)
    }

    /// True where a directory holds anything but directories and files that the patch deletes.
    fn has_strangers(&self, folder: &Folder, path: &RepoPath) -> Result<bool> {
        let visit = &mut |folder: &Folder, name: &[u8], inner: &[u8]| {
            let Ok(inner) = RepoPath::new([path.as_bytes(), b"/", inner].concat()) else {
                return Ok(DeepVisit::Stop);
            };
            Ok(match folder.look_up(name)?.map(|e| e.kind) {
                None => DeepVisit::Pass,
                Some(FileType::Directory) if folder.enter_if_folder(name)?.is_some() => DeepVisit::Enter,
                Some(FileType::Directory) => DeepVisit::Stop,
                Some(_) if self.deleted.contains(&inner) => DeepVisit::Pass,
                Some(_) => DeepVisit::Stop,
            })
        };
        let gone_through = walk_at_any_depth(folder, visit, &mut |_, _| Ok(()));
        gone_through.map(|all| !all).map_err(|e| live_operation_failed("look into", path, &e))
    }

    /// True where the directory holds a `.git`.
    fn is_nested(&mut self, path: &RepoPath) -> Result<bool> {
        if let Some(known) = self.nested.get(path) {
            return Ok(*known);
        }
        let fail = |e: std::io::Error| live_operation_failed("look into", path, &e);
        let nested = match or_absent(self.top.open_folder(Some(path))).map_err(fail)? {
            Some(folder) => folder.look_up(b".git").map_err(fail)?.is_some(),
            None => false,
        };
        self.nested.insert(path.clone(), nested);
        Ok(nested)
    }

    /// True where a name beside the path, or beside the first directory that has to be made for it, differs
    /// in case or Unicode form only, and the patch does not take it away.
    pub(in crate::git) fn find_collision(&mut self, path: &RepoPath) -> Result<Option<RepoPath>> {
        let mut made: Vec<RepoPath> = path.ancestors();
        made.push(path.clone());
        for at in made {
            let folder = or_absent(self.top.open_folder(at.parent().as_ref()))
                .map_err(|e| live_operation_failed("look into", path, &e))?;
            let Some(folder) = folder else { return Ok(None) };
            let names = self.folded_names(at.parent(), &folder, path)?;
            let same = names.get(&fold_name(at.file_name())).map(Vec::as_slice).unwrap_or_default();
            if same.iter().any(|name| name == at.file_name()) {
                continue;
            }
            for name in same {
                if !self.is_taken_away(&folder, &at, name)? {
                    let above = at.parent().map(|p| [p.as_bytes(), b"/"].concat()).unwrap_or_default();
                    // A name that no path of ours can have is shown as the one that is wanted.
                    return Ok(Some(RepoPath::new([&above, name.as_slice()].concat()).unwrap_or(at)));
                }
            }
        }
        Ok(None)
    }

    /// True where the patch takes the sibling away, with everything in it.
    fn is_taken_away(&self, folder: &Folder, beside: &RepoPath, name: &[u8]) -> Result<bool> {
        let prefix = beside.parent().map(|p| [p.as_bytes(), b"/"].concat()).unwrap_or_default();
        let Ok(path) = RepoPath::new([&prefix, name].concat()) else { return Ok(false) };
        if self.deleted.contains(&path) {
            return Ok(true);
        }
        match folder.enter_if_folder(name).map_err(|e| live_operation_failed("look into", &path, &e))? {
            Some(inner) => Ok(!self.has_strangers(&inner, &path)?),
            None => Ok(false),
        }
    }

    fn folded_names(&mut self, key: Option<RepoPath>, folder: &Folder, path: &RepoPath) -> Result<Rc<Names>> {
        if let Some(names) = self.names.get(&key) {
            return Ok(Rc::clone(names));
        }
        let mut names = Names::new();
        for name in
            folder.sorted_names().map_err(|e| live_operation_failed("list the directory of", path, &e))?
        {
            names.entry(fold_name(&name)).or_default().push(name);
        }
        let names = Rc::new(names);
        self.names.insert(key, Rc::clone(&names));
        Ok(names)
    }
}

/// Reads a regular file; `None` where it was replaced by something else meanwhile.
fn read_live_file(folder: &Folder, path: &RepoPath) -> Result<Option<(FolderEntry, LiveBytes)>> {
    let file = match folder.open_file(path.file_name()) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(live_operation_failed("read", path, &e));
        }
        Err(_) => return Ok(None),
    };
    let stat = rustix::fs::fstat(&file).map_err(|e| live_operation_failed("look at", path, &e.into()))?;
    let entry = FolderEntry::from_stat(&stat);
    if entry.kind != FileType::RegularFile {
        return Ok(None);
    }
    // A file with holes can name more than there is memory.
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > LARGEST {
        let message = format!("{path} has {size} bytes; the largest file that can be compared has {LARGEST}");
        return Err(Failure::new(Code::NotSupported, message)
            .subject(path.to_string())
            .expected(LARGEST, size));
    }
    let expected = usize::try_from(size).unwrap_or(usize::MAX).min(RESERVED_AT_ONCE);
    let mut bytes = Vec::with_capacity(expected);
    file.take(LARGEST).read_to_end(&mut bytes).map_err(|e| live_operation_failed("read", path, &e))?;
    let sha256 = Sha256::of(&bytes);
    Ok(Some((entry, LiveBytes { bytes, sha256 })))
}

/// An operation on a path of the live tree failed.
pub(in crate::git) fn live_operation_failed(doing: &str, path: &RepoPath, error: &std::io::Error) -> Failure {
    Failure::io(doing, path.as_path(), error)
}

/// Whose files can be given their owner back.
struct Me {
    user: u32,
    groups: Vec<u32>,
}

impl Me {
    fn of_process() -> Self {
        let mut groups: Vec<u32> =
            rustix::process::getgroups().unwrap_or_default().iter().map(|g| g.as_raw()).collect();
        groups.push(rustix::process::getegid().as_raw());
        Self { user: rustix::process::geteuid().as_raw(), groups }
    }

    /// True where a new file in that directory can have the owner and group of the old one.
    fn keeps_owner(&self, entry: &FolderEntry, folder: &Folder) -> Result<bool> {
        let (user, group) = entry.owner;
        let inherited = folder.look_up(b".").ok().flatten().filter(|f| f.permissions & 0o2000 != 0);
        let group_kept = self.groups.contains(&group) || inherited.is_some_and(|f| f.owner.1 == group);
        Ok(self.user == 0 || (self.user == user && group_kept))
    }
}
