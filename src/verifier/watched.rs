//! Says what a change tells a verifier otherwise: what its manifest watches, the settings of the runners that
//! its command starts, and the scripts that all these have run. They may rightly change with the work, so a
//! run sees the candidate's, and a person confirms the difference.
//!
//! A file that the run does not see tells it nothing, and what the closure names is the base's.

use super::command_line::{executed_paths, place_in_tree, shell_text};
use super::folders::{FolderMemory, Wanted};
use super::load::Verifier;
use super::runners::{
    RunnerFile, RunnerSettings, files_given_by, files_read_by, has_targets, included_files,
    is_read_by_runners, runner_files_id, starts_make, words_of,
};
use super::scripts::{
    RunScripts, RunText, is_glob, is_shell_script, started_blocks, target_names, with_values,
};
use super::settings::{Settings, read_settings};
use super::shadows::FirstFolders;
use super::view::is_input;
use crate::domain::change::patch::Change;
use crate::domain::value::digest::{FileState, Mode, Sha256};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use crate::git::Objects;
use crate::git::laid_tree::LaidTree;
use crate::git::tree::TreeFile;
use std::collections::BTreeSet;

/// How many bytes of a text are looked through for the runners that it starts.
const LONGEST_TEXT: u64 = 1 << 20;

/// Something by which a change has a verifier judge otherwise.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct ChangedJudge {
    pub(super) path: RepoPath,
    /// For people: what of the file changed.
    pub(super) what: String,
}

/// A change between two trees.
pub(super) struct TreeChange<'a> {
    pub(super) memory: &'a FolderMemory,
    pub(super) base: &'a LaidTree<'a, 'a>,
    pub(super) candidate: &'a LaidTree<'a, 'a>,
    pub(super) changes: &'a [Change],
    /// Where the case of a repair lies, which stays an input.
    pub(super) case: &'a Scope,
}

/// What tells a verifier what to run.
#[derive(Default)]
struct Told {
    /// All words that were read.
    words: BTreeSet<String>,
    /// Those of what is run for certain: only they start a target of a Makefile.
    called: BTreeSet<String>,
    scripts: RunScripts,
    /// What make takes for made where it lies there.
    targets: BTreeSet<String>,
    first_folders: FirstFolders,
}

impl Told {
    fn add_words(&mut self, text: &str, is_run: bool) {
        let words: Vec<String> = words_of(text).map(str::to_owned).collect();
        self.called.extend(words.iter().filter(|_| is_run).cloned());
        self.words.extend(words);
    }

    fn count_all(&self) -> (usize, usize) {
        (self.words.len(), self.called.len())
    }
}

/// True where one of these files is another one after a change, or lies beneath a new link.
fn is_executed(scripts: &RunScripts, change: &Change) -> bool {
    let states = || change.old.iter().chain(&change.new);
    let is_link = change.new.as_ref().is_some_and(|state| !state.mode.is_regular());
    let is_executable = is_link || states().any(|state| state.mode == Mode::Executable);
    scripts.runs_file(&change.path, is_executable) || (is_link && scripts.runs_beneath(&change.path))
}

/// The files that a verifier's commands give to their programs by an option.
fn files_given_to(verifier: &Verifier) -> Vec<RepoPath> {
    let setup = verifier.manifest.setup.as_ref().map(|setup| setup.command.as_slice());
    let commands = [verifier.manifest.command.as_slice(), setup.unwrap_or_default()];
    let words = commands.into_iter().flat_map(files_given_by);
    words.filter_map(place_in_tree).collect()
}

/// True for a file that a text may run, by its mode and its name; it spares reading the texts.
fn may_be_script(change: &Change) -> bool {
    const ENDS: &[&[u8]] = &[
        b"sh", b"bash", b"zsh", b"ksh", b"dash", b"py", b"js", b"mjs", b"cjs", b"ts", b"mts", b"cts", b"tsx",
        b"jsx", b"rb", b"pl", b"php", b"lua", b"R", b"r", b"so",
    ];
    let mut states = change.old.iter().chain(&change.new);
    let end = change.path.file_name().rsplit(|b| *b == b'.').next().unwrap_or_default();
    ENDS.contains(&end)
        || end == change.path.file_name()
        || states.any(|state| state.mode == Mode::Executable)
}

/// The Makefiles, by their names.
fn makefiles() -> Wanted<'static> {
    fn is_makefile(path: &RepoPath) -> bool {
        path.file_name().to_ascii_lowercase().ends_with(b"makefile")
    }
    Wanted { id: Sha256::of(b"makefiles"), fits: &is_makefile, may_hold: &|_| true }
}

impl TreeChange<'_> {
    /// Finds what the change tells a verifier otherwise, in the order of the paths.
    pub(super) fn find_changed_judges(&self, verifier: &Verifier) -> Result<Vec<ChangedJudge>> {
        let watch = &verifier.manifest.watch;
        let with_make = self.memory.has_any(self.base, &makefiles())?;
        let given = files_given_to(verifier);
        let included = self.included_by_make(&given)?;
        let concerns = |change: &&Change| {
            let is_link = change.new.as_ref().is_some_and(|state| state.mode == Mode::Symlink);
            is_input(&change.path, verifier)
                && (is_link
                    || (with_make && change.old.is_none())
                    || included.matches_path(&change.path)
                    || may_be_script(change)
                    || given.contains(&change.path)
                    || watch.touches_path(&change.path)
                    || is_read_by_runners(&change.path))
        };
        let changes: Vec<&Change> = self.changes.iter().filter(concerns).collect();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let Told { words, scripts, targets, first_folders, .. } = self.read_told(verifier, &included)?;
        let mut found = Vec::new();
        for change in changes {
            let path = &change.path;
            let mut what = BTreeSet::new();
            let is_included = starts_make(&words) && included.matches_path(path);
            let is_shadow = change.old.is_none()
                && first_folders
                    .have_shadow(path, change.new.as_ref().is_some_and(|new| new.mode == Mode::Symlink));
            let is_given = given.contains(path) && !is_read_by_runners(path);
            let is_run = !self.case.matches_path(path) && is_executed(&scripts, change);
            if is_included
                || is_given
                || is_run
                || is_shadow
                || watch.touches_path(path)
                || self.leads_to(change, watch)
            {
                what.insert(path.to_string());
            } else if starts_make(&words)
                && let Some(target) = self.up_to_date_target(change, &targets)?
            {
                what.insert(format!("{target}, which make would find up to date"));
            }
            for (file, scope) in files_read_by(&words) {
                if scope.matches_path(path) {
                    what.extend(self.changed_settings(change, file, &words)?);
                } else if self.leads_to(change, scope) {
                    what.insert(path.to_string());
                }
            }
            found.extend(what.into_iter().map(|what| ChangedJudge { path: path.clone(), what }));
        }
        Ok(found)
    }

    /// The new file or folder by which make would take a target for made.
    fn up_to_date_target(&self, change: &Change, targets: &BTreeSet<String>) -> Result<Option<RepoPath>> {
        if change.old.is_some() {
            return Ok(None);
        }
        for place in change.path.ancestors().into_iter().chain([change.path.clone()]) {
            if self.base.find(&place)?.is_none() {
                let is_target =
                    std::str::from_utf8(place.file_name()).is_ok_and(|name| targets.contains(name));
                return Ok(is_target.then_some(place));
            }
        }
        Ok(None)
    }

    /// True for a new link that is no link to a file, where one of these files may come to lie beneath it.
    fn leads_to(&self, change: &Change, scope: &Scope) -> bool {
        let Some(link) = change.new.as_ref().filter(|state| state.mode == Mode::Symlink) else {
            return false;
        };
        if scope.is_empty() || !scope.may_hold(&change.path) {
            return false;
        }
        let target = self.objects().read_blob(&link.git_blob).unwrap_or_default();
        let target = plain_target(&change.path, &target);
        let file = target.and_then(|target| self.candidate.file_at(&target).ok()?);
        !file.is_some_and(|file| file.mode.is_regular())
    }

    /// What a change makes of a file's settings, each as people name it.
    fn changed_settings(
        &self,
        change: &Change,
        file: &RunnerFile,
        words: &BTreeSet<String>,
    ) -> Result<Vec<String>> {
        let path = &change.path;
        let modes = (change.old.as_ref().map(|old| old.mode), change.new.as_ref().map(|new| new.mode));
        let is_link = [modes.0, modes.1].into_iter().flatten().any(|mode| !mode.is_regular());
        if is_link || matches!(file.settings, RunnerSettings::WholeFile | RunnerSettings::Code) {
            return Ok(vec![path.to_string()]);
        }
        let read = |state: &Option<FileState>| -> Result<Option<Settings>> {
            let Some(state) = state else { return Ok(Some(Settings::new())) };
            Ok(read_settings(file.settings, &self.objects().read_blob(&state.git_blob)?, words))
        };
        let (Some(old), Some(new)) = (read(&change.old)?, read(&change.new)?) else {
            return Ok(vec![format!("{path}, which cannot be read")]);
        };
        let places: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let differs = places.into_iter().filter(|place| old.get(*place) != new.get(*place));
        Ok(differs.map(|place| format!("{path}: {place}")).collect())
    }

    /// What of the base tells a verifier what to run: the words of its commands, of the scripts that they
    /// execute, and of the files that tell their runners what to run; and the files that all these execute.
    fn read_told(&self, verifier: &Verifier, included: &Scope) -> Result<Told> {
        let mut told = Told::default();
        let setup = verifier.manifest.setup.as_ref().map(|setup| setup.command.as_slice());
        for argv in [verifier.manifest.command.as_slice(), setup.unwrap_or_default()] {
            argv.iter().for_each(|text| told.add_words(text, true));
            told.first_folders.add_command(argv);
            let scripts = executed_paths(argv);
            self.add_scripts(&mut told, scripts)?;
            let text = shell_text(argv).unwrap_or_default();
            self.add_text(&mut told, RunText { folder: None, text })?;
        }
        // One runner starts another one, of which the files tell more.
        let given = files_given_to(verifier);
        let is_seen = |path: &RepoPath| verifier.manifest.sees(path) || verifier.scope.matches_path(path);
        let runners = Wanted { id: runner_files_id(), fits: &is_read_by_runners, may_hold: &|_| true };
        let mut readable = self.memory.find_all(self.base, &runners)?;
        readable.retain(|file| is_seen(&file.path));
        loop {
            let known = told.count_all();
            let words = told.words.clone();
            let given = given.iter().filter_map(|path| self.base_file(path));
            let included = if starts_make(&words) { self.base_files(included)? } else { Vec::new() };
            for at in given.chain(included).filter(|_| has_targets(&words)) {
                let text = self.text_of(&at).unwrap_or_default();
                told.add_words(&text, false);
                self.add_targets(&mut told, &at, &text)?;
            }
            let kinds = files_read_by(&words).filter(|(file, _)| file.settings != RunnerSettings::Code);
            for (file, scope) in kinds {
                for at in readable.iter().filter(|at| scope.matches_path(&at.path)) {
                    self.add_settings(&mut told, file, at)?;
                }
            }
            if told.count_all() == known {
                told.first_folders.add_words(&told.called);
                return Ok(told);
            }
        }
    }

    /// Adds what a runner's file says.
    fn add_settings(&self, told: &mut Told, file: &RunnerFile, at: &TreeFile) -> Result<()> {
        let text = self.text_of(at).unwrap_or_default();
        let said = read_settings(file.settings, text.as_bytes(), &told.words).unwrap_or_default();
        for value in said.values() {
            let text = match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string().replace("\",\"", " "),
            };
            told.add_words(&text, false);
            match file.has_targets {
                true => self.add_targets(told, at, &text)?,
                false => self.add_text(told, RunText { folder: at.path.parent(), text })?,
            }
        }
        Ok(())
    }

    fn add_targets(&self, told: &mut Told, at: &TreeFile, text: &str) -> Result<()> {
        told.targets.extend(target_names(text));
        let text = started_blocks(text, &told.called);
        self.add_text(told, RunText { folder: at.path.parent(), text })
    }

    fn add_text(&self, told: &mut Told, text: RunText) -> Result<()> {
        told.called.extend(words_of(&text.text).map(str::to_owned));
        let scripts = told.scripts.add_text(&text);
        scripts.iter().for_each(|script| told.first_folders.add_script(script));
        self.add_scripts(told, scripts)
    }

    /// Adds what scripts of the base say; what a shell reads may execute others.
    fn add_scripts(&self, told: &mut Told, mut pending: Vec<RepoPath>) -> Result<()> {
        while let Some(path) = pending.pop() {
            if let Some(glob) = is_glob(&path).then(|| Scope::new(vec![path.to_string()]).ok()).flatten() {
                pending.extend(self.base_files(&glob)?.into_iter().map(|file| file.path));
                continue;
            }
            let Some(text) = self.base_file(&path).and_then(|file| self.text_of(&file)) else { continue };
            told.add_words(&text, true);
            if is_shell_script(&path, &text) {
                let scripts = told.scripts.add_text(&RunText { folder: path.parent(), text });
                scripts.iter().for_each(|script| told.first_folders.add_script(script));
                pending.extend(scripts);
            }
        }
        Ok(())
    }

    /// What the Makefiles of the base, and the ones that a command is given, include: there or not.
    fn included_by_make(&self, given: &[RepoPath]) -> Result<Scope> {
        let mut included = Scope::default();
        let mut known: BTreeSet<RepoPath> = BTreeSet::new();
        let mut fresh = self.memory.find_all(self.base, &makefiles())?;
        fresh.extend(given.iter().filter_map(|path| self.base_file(path)));
        while !fresh.is_empty() {
            let mut patterns = Vec::new();
            for file in &fresh {
                let names = included_files(&with_values(&self.text_of(file).unwrap_or_default()));
                let folder = file.path.parent();
                let beside =
                    names.iter().filter_map(|name| folder.as_ref().map(|folder| format!("{folder}/{name}")));
                patterns.extend(beside);
                patterns.extend(names);
            }
            known.extend(fresh.into_iter().map(|file| file.path));
            // A name that is no pattern of ours is no plain name either.
            for pattern in patterns {
                included = Scope::new(vec![pattern]).map_or(included.clone(), |one| included.union(&one));
            }
            fresh = self.base_files(&included)?;
            fresh.retain(|file| !known.contains(&file.path));
        }
        Ok(included)
    }

    /// The files of the base that a scope names.
    fn base_files(&self, scope: &Scope) -> Result<Vec<TreeFile>> {
        let may_hold = |folder: Option<&RepoPath>| match folder {
            Some(folder) => scope.may_hold(folder),
            None => !scope.is_empty(),
        };
        let id = Sha256::of_json(&scope.patterns());
        let fits = |path: &RepoPath| scope.matches_path(path);
        self.memory.find_all(self.base, &Wanted { id, fits: &fits, may_hold: &may_hold })
    }

    fn base_file(&self, path: &RepoPath) -> Option<TreeFile> {
        self.base.file_at(path).ok()?
    }

    fn objects(&self) -> &Objects {
        self.base.objects()
    }

    fn text_of(&self, file: &TreeFile) -> Option<String> {
        let is_small =
            file.mode.is_regular() && self.objects().blob_size(&file.id).is_ok_and(|n| n <= LONGEST_TEXT);
        String::from_utf8(self.objects().read_blob(&file.id).ok().filter(|_| is_small)?).ok()
    }
}

/// The place that a link names by names alone; `None` where the way to it may lead through another link, or
/// out of the tree.
fn plain_target(link: &RepoPath, target: &[u8]) -> Option<RepoPath> {
    let mut at: Vec<&[u8]> = link.components().collect();
    at.pop();
    let mut names = target.split(|b| *b == b'/').filter(|name| *name != b".").peekable();
    while names.next_if(|name| *name == b"..").is_some() {
        at.pop()?;
    }
    at.extend(names);
    let is_plain = at.iter().all(|name| !name.is_empty() && *name != b"..");
    RepoPath::new(at.join(&b'/')).ok().filter(|_| is_plain)
}
