//! Says what a change tells a verifier otherwise: what its manifest watches, and the settings of the runners
//! that its command starts. Both may rightly change with the work, so a run sees the candidate's, and a
//! person confirms the difference.
//!
//! A file that the run does not see tells it nothing, and what the closure names is the base's.

use super::command_line::executed_paths;
use super::load::Verifier;
use super::runners::{
    RunnerFile, RunnerSettings, files_read_by, included_files, is_read_by_runners, starts_make, words_of,
};
use super::settings::{Settings, read_settings};
use super::view::is_input;
use crate::domain::change::patch::Change;
use crate::domain::value::digest::{FileState, Mode};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::Result;
use crate::git::Objects;
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

/// A change between two trees whose files are listed.
pub(super) struct ListedChange<'a> {
    pub(super) objects: &'a Objects,
    pub(super) base: &'a [TreeFile],
    pub(super) candidate: &'a [TreeFile],
    pub(super) changes: &'a [Change],
}

impl ListedChange<'_> {
    /// Finds what the change tells a verifier otherwise, in the order of the paths.
    pub(super) fn find_changed_judges(&self, verifier: &Verifier) -> Result<Vec<ChangedJudge>> {
        let watch = &verifier.manifest.watch;
        let is_makefile =
            |file: &&TreeFile| file.path.file_name().to_ascii_lowercase().ends_with(b"makefile");
        let with_make = self.base.iter().any(|file| is_makefile(&file));
        let top = self.base.iter().filter(is_makefile).filter(|file| file.path.parent().is_none());
        let included: BTreeSet<String> =
            top.filter_map(|file| self.text_of(file)).flat_map(|text| included_files(&text)).collect();
        let concerns = |change: &&Change| {
            let is_link = change.new.as_ref().is_some_and(|state| state.mode == Mode::Symlink);
            is_input(&change.path, verifier)
                && (is_link
                    || (with_make && change.old.is_none())
                    || included.contains(&change.path.to_string())
                    || watch.touches_path(&change.path)
                    || is_read_by_runners(&change.path))
        };
        let changes: Vec<&Change> = self.changes.iter().filter(concerns).collect();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let words = self.words_read_by(verifier)?;
        let mut found = Vec::new();
        for change in changes {
            let path = &change.path;
            let mut what = BTreeSet::new();
            let is_included = starts_make(&words) && included.contains(&path.to_string());
            if is_included || watch.touches_path(path) || self.leads_to(change, watch) {
                what.insert(path.to_string());
            } else if let Some(target) = self.up_to_date_target(change, &words) {
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
    fn up_to_date_target(&self, change: &Change, words: &BTreeSet<String>) -> Option<RepoPath> {
        let is_there = |folder: &RepoPath| {
            let after = self.base.partition_point(|file| file.path.as_bytes() < folder.as_bytes());
            self.base[after..]
                .iter()
                .take_while(|file| file.path.as_bytes().starts_with(folder.as_bytes()))
                .any(|file| file.path == *folder || file.path.ancestors().contains(folder))
        };
        let mut places = change.path.ancestors();
        places.push(change.path.clone());
        let first = places.into_iter().find(|place| !is_there(place)).filter(|_| change.old.is_none())?;
        let name = std::str::from_utf8(first.file_name()).ok()?;
        (starts_make(words) && words.contains(name)).then_some(first)
    }

    /// True for a new link that is no link to a file, where one of these files may come to lie beneath it.
    fn leads_to(&self, change: &Change, scope: &Scope) -> bool {
        let Some(link) = change.new.as_ref().filter(|state| state.mode == Mode::Symlink) else {
            return false;
        };
        if scope.is_empty() || !scope.may_hold(&change.path) {
            return false;
        }
        let target = self.objects.read_blob(&link.git_blob).unwrap_or_default();
        let target = plain_target(&change.path, &target);
        let is_target = |file: &TreeFile| Some(&file.path) == target.as_ref() && file.mode.is_regular();
        !self.candidate.iter().any(is_target)
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
            Ok(read_settings(file.settings, &self.objects.read_blob(&state.git_blob)?, words))
        };
        let (Some(old), Some(new)) = (read(&change.old)?, read(&change.new)?) else {
            return Ok(vec![format!("{path}, which cannot be read")]);
        };
        let places: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let differs = places.into_iter().filter(|place| old.get(*place) != new.get(*place));
        Ok(differs.map(|place| format!("{path}: {place}")).collect())
    }

    /// The words of a verifier's commands, of the scripts that they execute, and of the files that tell their
    /// runners what to run, all as they are in the base.
    fn words_read_by(&self, verifier: &Verifier) -> Result<BTreeSet<String>> {
        let setup =
            verifier.manifest.setup.as_ref().map(|setup| setup.command.as_slice()).unwrap_or_default();
        let mut texts = [verifier.manifest.command.as_slice(), setup].concat();
        for path in executed_paths(&verifier.manifest.command).into_iter().chain(executed_paths(setup)) {
            let script = self.base.iter().find(|file| file.path == path);
            texts.extend(script.and_then(|file| self.text_of(file)));
        }
        let mut words: BTreeSet<String> =
            texts.iter().flat_map(|text| words_of(text)).map(str::to_owned).collect();
        // One runner starts another one, of which the files tell more.
        loop {
            let mut more = BTreeSet::new();
            let told = files_read_by(&words).filter(|(file, _)| file.settings != RunnerSettings::Code);
            for (file, scope) in told {
                let seen = |at: &&TreeFile| scope.matches_path(&at.path) && verifier.manifest.sees(&at.path);
                for at in self.base.iter().filter(seen) {
                    let text = self.text_of(at).unwrap_or_default();
                    let said = read_settings(file.settings, text.as_bytes(), &words).unwrap_or_default();
                    let texts = said
                        .values()
                        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                    texts.for_each(|text| more.extend(words_of(&text).map(str::to_owned)));
                }
            }
            let known = words.len();
            words.extend(more);
            if words.len() == known {
                return Ok(words);
            }
        }
    }

    fn text_of(&self, file: &TreeFile) -> Option<String> {
        let is_small =
            file.mode.is_regular() && self.objects.blob_size(&file.id).is_ok_and(|n| n <= LONGEST_TEXT);
        String::from_utf8(self.objects.read_blob(&file.id).ok().filter(|_| is_small)?).ok()
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
