//! Where verifiers come from: the base commit's tree, or the user's private layer. Never the candidate, never
//! the live tree: a manifest that is only there is named as such, and does not count.

use super::builtin;
use super::command_line::executed_paths;
use super::hook_config::{CONFIG, HookElsewhere, HookPlan};
use super::manifest::{Manifest, VerifierKind};
use crate::domain::proof::listing::InputFile;
use crate::domain::value::digest::{Mode, ObjectId, Sha256, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result};
use crate::git::beneath::{Folder, file_type, walk_folder};
use crate::git::tree::{self, TreeFile};
use crate::git::{Objects, Repository};
use rustix::fs::FileType;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where verifiers lie in a tree.
pub const FOLDER: &str = ".tender/verifiers";
const MANIFEST: &str = "verifier.toml";

/// Where the manifest of an id lies in a tree.
pub fn manifest_place(id: &str) -> String {
    format!("{FOLDER}/{id}/{MANIFEST}")
}

/// The largest private file that belongs to a verifier, in bytes.
const LARGEST_PRIVATE: u64 = 64 << 20;

/// A file of a verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosureFile {
    /// Where it is shown, with its digests.
    pub file: InputFile,
    /// Its bytes where they are in no tree.
    pub bytes: Option<Vec<u8>>,
}

/// A verifier with everything that belongs to it.
#[derive(Debug, Clone)]
pub struct Verifier {
    pub manifest: Manifest,
    /// The digest of the manifest's bytes.
    pub manifest_sha256: Sha256,
    /// Its directory and its closure, sorted by path, from where the manifest comes from.
    pub closure: Vec<ClosureFile>,
    /// The same as a scope: what no candidate can put in the place of it.
    pub scope: Scope,
    /// True where it comes from the user's private layer.
    pub private: bool,
}

/// The verifiers of a repository, as of one base commit.
#[derive(Debug, Default)]
pub struct Verifiers {
    known: BTreeMap<String, Verifier>,
    /// Manifests that cannot be read, or that exist twice. They only matter to who asks for them.
    broken: BTreeMap<String, Failure>,
    /// Ids of the live tree.
    live: BTreeSet<String>,
    case: Scope,
}

/// The base commit's tree, opened as far as it is needed.
struct BaseTree<'a> {
    objects: &'a Objects,
    tree: &'a ObjectId,
    all: OnceCell<Vec<TreeFile>>,
}

impl BaseTree<'_> {
    fn files(&self) -> Result<&[TreeFile]> {
        if let Some(files) = self.all.get() {
            return Ok(files);
        }
        let files = tree::list_files(self.objects, self.tree)?;
        Ok(self.all.get_or_init(|| files))
    }

    /// The files beneath a directory, with their full paths.
    fn beneath(&self, folder: &RepoPath) -> Result<Vec<TreeFile>> {
        let mut at = self.tree.clone();
        for name in folder.components() {
            let entries = self.objects.read_tree(&at)?;
            match entries.into_iter().find(|entry| entry.name == name && entry.mode.is_none()) {
                Some(entry) => at = entry.id,
                None => return Ok(Vec::new()),
            }
        }
        tree::list_files(self.objects, &at)?
            .into_iter()
            .map(|file| Ok(TreeFile { path: folder.join_below(file.path.as_bytes())?, ..file }))
            .collect()
    }

    /// The files that one pattern names.
    fn matching(&self, pattern: &str) -> Result<Vec<ClosureFile>> {
        let literal = !pattern.ends_with('/') && !pattern.contains(['*', '?', '[', '{']);
        let found = if literal {
            let path = RepoPath::new(pattern.as_bytes())?;
            let entry = tree::find_entry(self.objects, self.tree, &path)?;
            entry.map(|TreeObject { mode, id }| TreeFile { path, mode, id }).into_iter().collect()
        } else {
            let scope = Scope::parse_field("closure", Code::ConfigInvalid, vec![pattern.to_owned()])?;
            self.files()?.iter().filter(|file| scope.matches_path(&file.path)).cloned().collect::<Vec<_>>()
        };
        found.into_iter().map(|file| self.closure_file(file)).collect()
    }

    fn closure_file(&self, file: TreeFile) -> Result<ClosureFile> {
        let sha256 = match file.mode {
            Mode::Gitlink => Sha256::of(file.id.as_str().as_bytes()),
            _ => Sha256::of(&self.objects.read_blob(&file.id)?),
        };
        let file = InputFile { git_blob: file.id, mode: file.mode, path: file.path, sha256 };
        Ok(ClosureFile { file, bytes: None })
    }
}

impl Verifiers {
    /// The verifiers of a base commit's tree and of the private layer (`private` is the directory that stands
    /// for `.tender`). A manifest that is wrong only fails for who asks for that verifier. A script in `case`
    /// is what a contract wants tried, so it stays an input.
    pub fn load(
        repository: &Repository,
        base_commit_tree: &ObjectId,
        private: &Path,
        case: &Scope,
    ) -> Result<Self> {
        let objects = repository.object_reader(None)?;
        let base = BaseTree { objects: &objects, tree: base_commit_tree, all: OnceCell::new() };
        let mut all = Self { live: live_ids(repository), case: case.clone(), ..Self::default() };
        let committed = base.beneath(&RepoPath::new(FOLDER.as_bytes())?)?;
        for (id, files) in by_id(committed, |file| &file.path) {
            let closure =
                files.into_iter().map(|file| base.closure_file(file)).collect::<Result<Vec<_>>>()?;
            let manifest = |file: &ClosureFile| objects.read_blob(&file.file.git_blob);
            all.read_verifier(&id, false, closure, &manifest, &|pattern| base.matching(pattern));
        }
        let local = private_files(repository, private)?;
        let below =
            |file: &&ClosureFile| file.file.path.as_bytes().starts_with(format!("{FOLDER}/").as_bytes());
        let own: Vec<ClosureFile> = local.iter().filter(below).cloned().collect();
        for (id, files) in by_id(own, |file| &file.file.path) {
            let manifest = |file: &ClosureFile| Ok(file.bytes.clone().unwrap_or_default());
            all.read_verifier(&id, true, files, &manifest, &|pattern| {
                matching_private(pattern, &local, &base)
            });
        }
        all.refuse_later();
        Ok(all)
    }

    /// What will be built in one day is asked for in vain today, and whoever asks for it hears that.
    fn refuse_later(&mut self) {
        for id in builtin::LATER {
            if self.known.contains_key(id) || self.live.contains(id) {
                continue;
            }
            let message = format!("the built-in verifier {id:?} is not in this version");
            let failure = Failure::new(Code::NotSupported, message).subject(id);
            self.broken.entry(id.to_owned()).or_insert(failure);
        }
    }

    /// Reads one verifier from the files of its directory.
    fn read_verifier(
        &mut self,
        id: &str,
        private: bool,
        files: Vec<ClosureFile>,
        bytes: &dyn Fn(&ClosureFile) -> Result<Vec<u8>>,
        matching: &FindFiles<'_>,
    ) {
        let place = manifest_place(id);
        let Some(manifest) = files.iter().find(|file| file.file.path.as_bytes() == place.as_bytes()) else {
            return;
        };
        if self.known.remove(id).is_some() || self.broken.contains_key(id) {
            let message =
                format!("the verifier {id:?} is there twice: in the base commit and in the private layer");
            let failure = Failure::new(Code::ConfigInvalid, message).subject(id).remedy(
                "Keep one of the two; the private one lies below `tender/local/verifiers` in the git directory.",
                ["git", "tender", "status"],
            );
            self.broken.insert(id.to_owned(), failure);
            return;
        }
        let name = if private { format!("{place} (private)") } else { place.clone() };
        match bytes(manifest)
            .and_then(|bytes| assemble(id, &name, private, files, &bytes, (&self.case, matching)))
        {
            Ok(verifier) => drop(self.known.insert(id.to_owned(), verifier)),
            Err(failure) => drop(self.broken.insert(id.to_owned(), failure)),
        }
    }

    /// Adds the hooks that the base has configured for a commit; gives how many, and those for other times. A
    /// verifier that has a hook's id already stands for it.
    pub fn add_hooks(
        &mut self,
        repository: &Repository,
        base_commit_tree: &ObjectId,
        plan: &HookPlan,
    ) -> Result<(usize, Vec<HookElsewhere>)> {
        let objects = repository.object_reader(None)?;
        let base = BaseTree { objects: &objects, tree: base_commit_tree, all: OnceCell::new() };
        let Some(config) = base.matching(CONFIG)?.into_iter().find(|found| found.file.mode.is_regular())
        else {
            return Ok((0, Vec::new()));
        };
        let text = objects.read_blob(&config.file.git_blob)?;
        let (manifests, elsewhere) = plan.list_manifests(&String::from_utf8_lossy(&text));
        // One that stands for all hooks is told hook by hook.
        self.known.retain(|_, verifier| !verifier.manifest.uses_hooks);
        let mut added = 0;
        for (id, manifest) in manifests {
            if self.known.contains_key(&id) || self.broken.contains_key(&id) {
                continue;
            }
            let matching = |pattern: &str| base.matching(pattern);
            let verifier =
                assemble(&id, CONFIG, false, Vec::new(), manifest.as_bytes(), (&self.case, &matching))?;
            self.known.insert(id, verifier);
            added += 1;
        }
        Ok((added, elsewhere))
    }

    /// The verifier of an id; `None` where no manifest counts for it. `config.invalid` or `not_supported`
    /// where its manifest cannot be used.
    pub fn get(&self, id: &str) -> Result<Option<&Verifier>> {
        match self.broken.get(id) {
            Some(failure) => Err(failure.clone()),
            None => Ok(self.known.get(id)),
        }
    }

    /// The title of a verifier; `None` where no manifest counts for it, or the manifest gives none.
    pub(super) fn title(&self, id: &str) -> Option<&str> {
        self.known.get(id)?.manifest.title.as_deref()
    }

    /// The verifiers of the repository by id, and those that cannot be used, with the reason.
    pub fn all(&self) -> impl Iterator<Item = (&str, std::result::Result<&Verifier, &Failure>)> {
        let known = self.known.iter().map(|(id, verifier)| (id.as_str(), Ok(verifier)));
        let broken = self.broken.iter().filter(|(id, _)| !builtin::LATER.contains(&id.as_str()));
        known.chain(broken.map(|(id, failure)| (id.as_str(), Err(failure))))
    }

    /// Likewise without those of the private layer.
    pub fn committed(&self) -> impl Iterator<Item = (&str, std::result::Result<&Verifier, &Failure>)> {
        self.all().filter(|(_, verifier)| verifier.as_ref().map_or(true, |verifier| !verifier.private))
    }

    /// The ids that have a manifest in the live tree and in nothing that counts.
    pub fn only_live(&self) -> impl Iterator<Item = &str> {
        let counts = |id: &&String| self.known.contains_key(*id) || self.broken.contains_key(*id);
        self.live.iter().filter(move |id| !counts(id)).map(String::as_str)
    }

    /// True where nobody but a person can show it.
    pub fn is_manual(&self, id: &str) -> bool {
        match self.known.get(id) {
            Some(verifier) => verifier.manifest.kind == VerifierKind::Manual,
            None => !builtin::NAMES.contains(&id) && !self.broken.contains_key(id) && !self.live.contains(id),
        }
    }

    /// The manifests and closures of all verifiers: whoever changes them changes who judges.
    pub fn closure_scope(&self) -> Scope {
        self.known.values().fold(Scope::default(), |all, verifier| all.union(&verifier.scope))
    }

    /// Where an id without a manifest that counts has one nevertheless, in words.
    pub(super) fn elsewhere(
        &self,
        id: &str,
        objects: &Objects,
        candidate: &ObjectId,
    ) -> Result<Option<String>> {
        let Ok(path) = RepoPath::new(manifest_place(id)) else { return Ok(None) };
        if tree::find_entry(objects, candidate, &path)?.is_some() {
            return Ok(Some("the candidate".to_owned()));
        }
        Ok(self.live.contains(id).then(|| "the live tree".to_owned()))
    }
}

/// Finds the files that a pattern names where a verifier's files come from.
type FindFiles<'a> = dyn Fn(&str) -> Result<Vec<ClosureFile>> + 'a;

/// One verifier: its manifest, and its closure completed by what the manifest names.
fn assemble(
    id: &str,
    name: &str,
    private: bool,
    own: Vec<ClosureFile>,
    manifest: &[u8],
    (case, matching): (&Scope, &FindFiles<'_>),
) -> Result<Verifier> {
    let parsed = Manifest::parse(name, id, manifest)?;
    let mut closure: BTreeMap<RepoPath, ClosureFile> =
        own.into_iter().map(|f| (f.file.path.clone(), f)).collect();
    for (at, pattern) in parsed.closure.patterns().iter().enumerate() {
        let files = matching(pattern)?;
        if files.is_empty() && !parsed.may_be_absent.contains(pattern) {
            let place = if private { "the private layer" } else { "the base commit" };
            let message = format!("{name}: `closure[{at}]` = {pattern:?} names nothing in {place}");
            return Err(Failure::new(Code::ConfigInvalid, message)
                .subject(format!("closure[{at}]"))
                .expected("a file that is there, or \"?pattern\" where it may not appear", pattern)
                .detail("file", name));
        }
        closure.extend(files.into_iter().map(|file| (file.file.path.clone(), file)));
    }
    let mut own = vec![format!("{FOLDER}/{id}/")];
    for path in executed_by(&parsed).filter(|path| !case.matches_path(path)) {
        let Some(pattern) =
            std::str::from_utf8(path.as_bytes()).ok().filter(|path| !path.contains(['*', '?', '[', '{']))
        else {
            continue;
        };
        let files = matching(pattern)?;
        let regular = files.into_iter().filter(|file| file.file.mode.is_regular());
        closure.extend(regular.map(|file| {
            own.push(pattern.to_owned());
            (file.file.path.clone(), file)
        }));
    }
    let own = Scope::parse_field("closure", Code::ConfigInvalid, own)?;
    Ok(Verifier {
        private,
        manifest_sha256: Sha256::of(manifest),
        closure: closure.into_values().collect(),
        scope: own.union(&parsed.closure),
        manifest: parsed,
    })
}

/// The files of the tree that a verifier's commands execute: they judge, whether `closure` names them or not.
fn executed_by(manifest: &Manifest) -> impl Iterator<Item = RepoPath> {
    let setup = manifest.setup.as_ref().map(|setup| setup.command.as_slice()).unwrap_or_default();
    executed_paths(&manifest.command).into_iter().chain(executed_paths(setup))
}

/// Groups the files below [`FOLDER`] by the directory that they lie in.
fn by_id<T>(files: Vec<T>, path: impl Fn(&T) -> &RepoPath) -> BTreeMap<String, Vec<T>> {
    let mut groups: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for file in files {
        let id = path(&file)
            .components()
            .nth(2)
            .and_then(|name| std::str::from_utf8(name).ok())
            .map(str::to_owned);
        if let Some(id) = id {
            groups.entry(id).or_default().push(file);
        }
    }
    groups
}

/// A private verifier's closure: what lies below `.tender` comes from the private layer, the rest from the
/// base.
fn matching_private(pattern: &str, local: &[ClosureFile], base: &BaseTree<'_>) -> Result<Vec<ClosureFile>> {
    if !pattern.starts_with(".tender/") {
        return base.matching(pattern);
    }
    let scope = Scope::parse_field("closure", Code::ConfigInvalid, vec![pattern.to_owned()])?;
    Ok(local.iter().filter(|file| scope.matches_path(&file.file.path)).cloned().collect())
}

/// Every file of the private layer, at the place below `.tender` that it stands for.
fn private_files(repository: &Repository, private: &Path) -> Result<Vec<ClosureFile>> {
    if !is_folder(private)? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    walk_folder(&Folder::open_path(private)?, &mut |folder, path, stat| {
        let mode = match file_type(stat) {
            FileType::Directory => return Ok(true),
            FileType::RegularFile if stat.st_mode & 0o100 != 0 => Mode::Executable,
            FileType::RegularFile => Mode::File,
            _ => return Ok(false),
        };
        let shown = RepoPath::new([b".tender/", path].concat())?;
        let place: PathBuf = private.join(RepoPath::new(path)?.as_path());
        let mut bytes = Vec::new();
        let file = folder.open_file(shown.file_name()).map_err(|e| Failure::io("open", &place, &e))?;
        file.take(LARGEST_PRIVATE + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Failure::io("read", &place, &e))?;
        if bytes.len() as u64 > LARGEST_PRIVATE {
            let message = format!("{} has more than {LARGEST_PRIVATE} bytes", place.display());
            return Err(Failure::new(Code::ConfigInvalid, message).subject(place.display().to_string()));
        }
        let git_blob = repository.format().blob_id(&bytes)?;
        let file = InputFile { git_blob, mode, path: shown, sha256: Sha256::of(&bytes) };
        found.push(ClosureFile { file, bytes: Some(bytes) });
        Ok(false)
    })?;
    Ok(found)
}

/// The ids that have a manifest in the live tree. It only serves to say so.
fn live_ids(repository: &Repository) -> BTreeSet<String> {
    let Ok(top) = repository.top() else { return BTreeSet::new() };
    let Ok(entries) = std::fs::read_dir(top.join(FOLDER)) else { return BTreeSet::new() };
    entries
        .flatten()
        .filter(|entry| entry.path().join(MANIFEST).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;

    const PLAIN: &str = "protocol = 1\nid = \"ID\"\ncommand = [\"true\"]\n";

    fn manifest(id: &str, more: &str) -> Vec<u8> {
        format!("{}{more}", PLAIN.replace("ID", id)).into_bytes()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test plays the user")]
    fn only_the_base_commit_and_the_private_layer_count() {
        let home = TestRepository::new();
        home.write_file(
            ".tender/verifiers/unit/verifier.toml",
            &manifest("unit", "closure = [\"run.sh\", \"lib/**\"]\n"),
        );
        home.write_file(".tender/verifiers/unit/helper.py", b"1");
        home.write_file(
            ".tender/verifiers/lost/verifier.toml",
            &manifest("lost", "closure = [\"gone.sh\"]\n"),
        );
        home.write_file(".tender/verifiers/bad/verifier.toml", &manifest("bad", "comand = 1\n"));
        home.write_file(".tender/verifiers/twice/verifier.toml", &manifest("twice", ""));
        home.write_file("run.sh", b"base\n");
        home.write_file("lib/a/b", b"base\n");
        let base = home.commit_all("base");
        home.write_file(".tender/verifiers/live/verifier.toml", &manifest("live", ""));
        home.write_file("run.sh", b"live\n");
        let private = home.outside().join("local");
        for id in ["own", "twice"] {
            std::fs::create_dir_all(private.join("verifiers").join(id)).expect("made");
            std::fs::write(
                private.join("verifiers").join(id).join(MANIFEST),
                manifest(id, "closure = [\".tender/bin/x\"]\n"),
            )
            .expect("written");
        }
        std::fs::create_dir(private.join("bin")).expect("made");
        std::fs::write(private.join("bin/x"), b"x").expect("written");
        let repository = home.repository();
        let all = Verifiers::load(&repository, &base, &private, &Scope::default()).expect("loads");
        let unit = all.get("unit").expect("reads").expect("there");
        let paths: Vec<String> = unit.closure.iter().map(|f| f.file.path.to_string()).collect();
        assert_eq!(
            paths,
            [".tender/verifiers/unit/helper.py", ".tender/verifiers/unit/verifier.toml", "lib/a/b", "run.sh"]
        );
        assert_eq!(unit.closure[3].file.sha256, Sha256::of(b"base\n"), "the base's bytes, not the live ones");
        let own = all.get("own").expect("reads").expect("there");
        assert!(own.closure.iter().any(|f| f.file.path.to_string() == ".tender/bin/x"));
        for id in ["lost", "bad", "twice"] {
            assert_eq!(all.get(id).expect_err(id).code(), Code::ConfigInvalid, "{id}");
        }
        assert_eq!(all.get("secrets").expect_err("of a later version").code(), Code::NotSupported);
        assert!(!all.is_manual("secrets"));
        assert!(all.get("live").expect("no manifest").is_none() && !all.is_manual("live"));
        assert!(all.is_manual("editorial_review") && !all.is_manual("scope") && !all.is_manual("unit"));
        let after = home.commit_all("candidate");
        let objects = repository.object_reader(None).expect("opens");
        assert_eq!(all.elsewhere("live", &objects, &after).expect("looks").as_deref(), Some("the candidate"));
        assert_eq!(all.elsewhere("live", &objects, &base).expect("looks").as_deref(), Some("the live tree"));
        assert_eq!(all.elsewhere("nowhere", &objects, &after).expect("looks"), None);
        let scope = all.closure_scope();
        for path in ["run.sh", "lib/new", ".tender/verifiers/unit/new", ".tender/bin/x"] {
            assert!(scope.matches_path(&RepoPath::new(path).expect("a path")), "{path}");
        }
    }
}
