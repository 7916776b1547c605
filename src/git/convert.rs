//! Git's own conversions between a blob and the bytes of a checkout, in both directions.
//!
//! Git decides what applies (attributes and configuration) and git converts: nothing of its rules is
//! imitated. What no rule can change is recognised here and skips git, so that thousands of plain files cost
//! one `check-attr` and no more. "Nothing applies" is only claimed where it follows from git's documentation:
//! no filter driver, no encoding, no `$Id` in an `ident` file, no carriage return on the way in, no line end
//! to convert on the way out.
//!
//! Git runs in an empty private directory, so neither a driver nor git itself meets a file of the tree by a
//! relative name. What a driver reads comes through a pipe; only built-in conversions read a staged file,
//! with every driver switched off.

mod rules;
mod talk;

pub use talk::COMPLAINT;

use super::attributes::outside_attributes;
use super::command::Quarantine;
use super::command::{Conversation, Git};
use super::drivers::configured_drivers;
use super::object_store::{MOST_FILES, ObjectStore};
use super::repository::Repository;
use super::tree;
use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use rules::{Rules, Way};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use talk::{complain_of_driver, conversion_failed, ensure_started, hash_staged, read_filtered};

/// Which filter drivers may run.
#[derive(Debug, Clone, Copy)]
pub enum Drivers<'a> {
    /// Those that the attributes of this tree select for the same path.
    SelectedBy(&'a ObjectId),
    Named(&'a [String]),
}

/// What the attributes say of one path. `Some("set")` and `Some("unset")` stand for `attr` and `-attr`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversionAttributes {
    /// `text`
    pub text: Option<String>,
    /// `crlf`, the old name of `text`
    pub crlf: Option<String>,
    /// `eol`
    pub eol: Option<String>,
    /// `ident`
    pub ident: bool,
    /// `working-tree-encoding`
    pub encoding: Option<String>,
    /// `filter`, the name of a driver that need not be configured
    pub filter: Option<String>,
}

/// The conversions of a repository. Blobs may lie in the quarantine; written ones go there.
#[derive(Debug, Clone, Copy)]
pub struct Conversions<'a> {
    pub repository: &'a Repository,
    pub quarantine: Option<&'a Quarantine>,
}

impl Conversions<'_> {
    /// The ids of the blobs that git makes of these bytes at these paths. `write` stores the blobs in the
    /// quarantine.
    ///
    /// Fails with `io` where a driver fails or an encoding does not fit, even where git would go on with the
    /// unconverted bytes.
    pub fn clean_blobs(
        &self,
        attributes: &ObjectId,
        drivers: &Drivers,
        items: &[(RepoPath, Vec<u8>)],
        write: bool,
    ) -> Result<Vec<ObjectId>> {
        let paths: Vec<&RepoPath> = items.iter().map(|(path, _)| path).collect();
        let rules = self.conversion_rules(attributes, drivers, &paths)?;
        let ways: Vec<Way> =
            items.iter().enumerate().map(|(at, (_, bytes))| rules.inward_way(at, bytes)).collect();
        let mut ids: Vec<Option<ObjectId>> = vec![None; items.len()];
        let folder = self.private_folder()?;
        let mut store = write.then(|| Store::for_blobs(self, items.len()));
        for (at, (path, bytes)) in items.iter().enumerate() {
            ids[at] = match ways[at] {
                Way::Plain => {
                    let id = self.repository.format().blob_id(bytes)?;
                    if let Some(store) = &mut store {
                        store.add_blob(bytes)?;
                    }
                    Some(id)
                }
                Way::Driver => {
                    Some(self.clean_through_driver(attributes, folder.path(), path, bytes, write)?)
                }
                Way::BuiltIn => None,
            };
        }
        if let Some(store) = store {
            store.finish_storing()?;
        }
        if ways.contains(&Way::BuiltIn) {
            let mut stage = ConversionStage::new(folder.path());
            let git = rules.silence_drivers(self.call_with_attributes(attributes, folder.path())?);
            let git = if write { git.args(["hash-object", "-w"]) } else { git.arg("hash-object") };
            let mut git = git.arg("--stdin-paths").start_conversation()?;
            for (at, (path, bytes)) in items.iter().enumerate().filter(|(at, _)| ways[*at] == Way::BuiltIn) {
                stage.put_file(path, bytes)?;
                ids[at] = Some(hash_staged(&mut git, path)?);
                stage.clear_stage()?;
            }
            git.finish_conversation()?.into_stdout()?;
        }
        ids.into_iter()
            .map(|id| id.ok_or_else(|| Failure::new(Code::Io, "git left out a path that it was to convert")))
            .collect()
    }

    /// The bytes that a checkout would write for these blobs, one by one and in order.
    ///
    /// Fails with `io` as [`Conversions::clean_blobs`] does.
    pub fn smudge_blobs(
        &self,
        attributes: &ObjectId,
        drivers: &Drivers,
        items: &[(RepoPath, ObjectId)],
        each: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let paths: Vec<&RepoPath> = items.iter().map(|(path, _)| path).collect();
        let rules = self.conversion_rules(attributes, drivers, &paths)?;
        self.smudge_by(&rules, attributes, items, each)
    }

    fn smudge_by(
        &self,
        rules: &Rules,
        attributes: &ObjectId,
        items: &[(RepoPath, ObjectId)],
        each: &mut dyn FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let folder = self.private_folder()?;
        let objects = self.repository.object_reader(self.quarantine)?;
        let start = |silent: bool| -> Result<Conversation> {
            let git = self.call_with_attributes(attributes, folder.path())?;
            let git = if silent { rules.silence_drivers(git) } else { git };
            git.args(["cat-file", "--batch", "--filters", "-z"]).start_conversation()
        };
        let (mut built_in, mut driven) = (None, None);
        for (at, (path, id)) in items.iter().enumerate() {
            let driven_path = rules.is_driven(at, |d| d.has_smudge());
            let raw = if driven_path { Vec::new() } else { objects.read_blob(id)? };
            let bytes = match rules.outward_way(at, &raw) {
                Way::Plain => raw,
                Way::BuiltIn => read_filtered(ensure_started(&mut built_in, || start(true))?, path, id)?,
                Way::Driver => read_filtered(ensure_started(&mut driven, || start(false))?, path, id)?,
            };
            each(at, bytes)?;
        }
        for git in built_in.into_iter().chain(driven) {
            git.finish_conversation()?.into_stdout()?;
        }
        Ok(())
    }

    /// What the attributes of a tree say of paths.
    pub fn attributes_of_paths(
        &self,
        tree: &ObjectId,
        paths: &[RepoPath],
    ) -> Result<Vec<ConversionAttributes>> {
        self.attributes_of(tree, &paths.iter().collect::<Vec<_>>())
    }

    /// Of each path, whether its lines must not be merged: `-merge`, `binary`, or a way of merging that is
    /// not git's own for texts.
    pub fn unmergeable_paths(&self, tree: &ObjectId, paths: &[RepoPath]) -> Result<Vec<bool>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let plain = |value: &[u8]| matches!(value, b"unspecified" | b"set" | b"text");
        let found = self.check_attr(tree, &paths.iter().collect::<Vec<_>>(), &["merge"], |answer| {
            answer.iter().all(|(_, value)| plain(value))
        })?;
        Ok(found.into_iter().map(|mergeable| !mergeable).collect())
    }

    /// What the conversion from blob to checkout depends on, per path, as one text: the empty text where
    /// nothing can apply. Two equal texts for one blob mean the same bytes, as long as the driver's program
    /// is the same.
    pub fn conversion_kinds(
        &self,
        attributes: &ObjectId,
        drivers: &Drivers,
        paths: &[&RepoPath],
    ) -> Result<Vec<String>> {
        let rules = self.conversion_rules(attributes, drivers, paths)?;
        Ok((0..paths.len()).map(|at| rules.conversion_kind(at)).collect())
    }

    /// Whether the driver of this name, as configured, may run here only by way of a file of the tree.
    pub fn relative_driver(&self, name: &str, trees: &[&ObjectId]) -> Result<bool> {
        match configured_drivers(self.repository)?.get(name) {
            None => Ok(false),
            Some(driver) => driver.is_relative(&self.repository.object_reader(self.quarantine)?, trees),
        }
    }

    fn conversion_rules(
        &self,
        attributes: &ObjectId,
        drivers: &Drivers,
        paths: &[&RepoPath],
    ) -> Result<Rules> {
        let configured = configured_drivers(self.repository)?;
        let found = self.attributes_of(attributes, paths)?;
        let base = match drivers {
            Drivers::SelectedBy(base) if *base != attributes && !configured.is_empty() => {
                Some(self.attributes_of(base, paths)?)
            }
            _ => None,
        };
        let trees: Vec<&ObjectId> = match drivers {
            Drivers::SelectedBy(base) => vec![attributes, base],
            _ => vec![attributes],
        };
        let objects = self.repository.object_reader(self.quarantine)?;
        let mut relative = BTreeMap::new();
        for (name, driver) in &configured {
            if found.iter().any(|a| a.filter.as_ref() == Some(name)) {
                relative.insert(name.clone(), driver.is_relative(&objects, &trees)?);
            }
        }
        let permitted = |at: usize, name: &String| {
            relative.get(name) == Some(&false)
                && match drivers {
                    Drivers::Named(names) => names.contains(name),
                    Drivers::SelectedBy(_) => {
                        base.as_ref().is_none_or(|b| b[at].filter.as_ref() == Some(name))
                    }
                }
        };
        let allowed: Vec<bool> = found
            .iter()
            .enumerate()
            .map(|(at, a)| a.filter.as_ref().is_some_and(|name| permitted(at, name)))
            .collect();
        let config = self.repository.configuration()?;
        let said = |key: &str, word: &str| config.get(key).is_some_and(|v| v.eq_ignore_ascii_case(word));
        let on = config.bool_value("core.autocrlf").unwrap_or(false);
        Ok(Rules {
            autocrlf: on || said("core.autocrlf", "input"),
            crlf_out: on || said("core.eol", "crlf"),
            drivers: configured,
            paths: found.into_iter().zip(allowed).collect(),
        })
    }

    fn attributes_of(&self, tree: &ObjectId, paths: &[&RepoPath]) -> Result<Vec<ConversionAttributes>> {
        let names = ["text", "crlf", "eol", "ident", "working-tree-encoding", "filter"];
        self.check_attr(tree, paths, &names, |answer| {
            let mut found = ConversionAttributes::default();
            answer.iter().for_each(|(name, value)| found.take_attribute(name, value));
            found
        })
    }

    /// Asks git for attributes by a tree; `read` gets the names and values of one path.
    fn check_attr<T>(
        &self,
        tree: &ObjectId,
        paths: &[&RepoPath],
        names: &[&str],
        read: impl Fn(&[(&[u8], &[u8])]) -> T,
    ) -> Result<Vec<T>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        if self.has_no_attributes(tree, paths)? {
            let nothing: Vec<(&[u8], &[u8])> =
                names.iter().map(|name| (name.as_bytes(), &b"unspecified"[..])).collect();
            return Ok(paths.iter().map(|_| read(&nothing)).collect());
        }
        let folder = self.private_folder()?;
        let input: Vec<u8> = paths.iter().flat_map(|p| p.as_bytes().iter().copied().chain([0])).collect();
        let call =
            self.call_with_attributes(tree, folder.path())?.args(["check-attr", "-z", "--stdin"]).args(names);
        let answer = call.stdin(input).run_for_stdout()?;
        // Path, name, value, each with a NUL behind it.
        let fields: Vec<&[u8]> = answer.split(|b| *b == 0).collect();
        let pairs: Vec<(&[u8], &[u8])> = fields.chunks_exact(3).map(|one| (one[1], one[2])).collect();
        let all: Vec<T> = pairs.chunks_exact(names.len()).map(read).collect();
        if all.len() == paths.len() {
            Ok(all)
        } else {
            Err(Failure::new(Code::Io, "git check-attr left out a path"))
        }
    }

    /// True where no file exists that could say anything of these paths: none outside of the tree, and no
    /// `.gitattributes` in a folder above one of them.
    fn has_no_attributes(&self, tree: &ObjectId, paths: &[&RepoPath]) -> Result<bool> {
        if !outside_attributes(self.repository)?.is_empty() {
            return Ok(false);
        }
        let objects = self.repository.object_reader(self.quarantine)?;
        Ok(!tree::is_on_the_way(&objects, tree, b".gitattributes", paths)?)
    }

    /// A call with the attributes of a tree, in a private directory that plays the work tree.
    fn call_with_attributes(&self, attributes: &ObjectId, folder: &Path) -> Result<Git> {
        let mut git = self.repository.git_call().work_tree(folder).attributes_from(attributes.as_str());
        git = git.with_setting("core.safecrlf=false").with_index(&folder.join(".no-index"));
        if let Some(quarantine) = self.quarantine {
            git = git.with_quarantine(quarantine);
        }
        Ok(git)
    }

    fn private_folder(&self) -> Result<tempfile::TempDir> {
        let folder = self.quarantine.and_then(|q| q.objects.parent()).filter(|p| p.is_dir());
        let mut builder = tempfile::Builder::new();
        builder.prefix("convert-");
        let made = match folder {
            Some(folder) => builder.tempdir_in(folder),
            None => builder.tempdir(),
        };
        made.map_err(|e| Failure::new(Code::Io, format!("cannot make a temporary directory: {e}")))
    }

    fn clean_through_driver(
        &self,
        attributes: &ObjectId,
        folder: &Path,
        path: &RepoPath,
        bytes: &[u8],
        write: bool,
    ) -> Result<ObjectId> {
        let git = self.call_with_attributes(attributes, folder)?.arg("hash-object");
        let git = if write { git.arg("-w") } else { git };
        let mut option = std::ffi::OsString::from("--path=");
        option.push(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let output = git.arg("--stdin").arg(option).stdin(bytes.to_vec()).run()?;
        complain_of_driver(&output.stderr, path)?;
        if !output.success() {
            return Err(conversion_failed(&output, path));
        }
        output.first_text().parse()
    }
}

impl ConversionAttributes {
    fn take_attribute(&mut self, name: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        let value = (value != "unspecified").then_some(value);
        let named = |value: Option<String>| value.filter(|v| v != "set" && v != "unset");
        match name {
            b"text" => self.text = value,
            b"crlf" => self.crlf = value,
            b"eol" => self.eol = value,
            b"ident" => self.ident = value.as_deref() == Some("set"),
            b"working-tree-encoding" => self.encoding = value.filter(|v| v != "unset"),
            b"filter" => self.filter = named(value),
            _ => {}
        }
    }

    /// Whether line ends may be converted at all; in doubt yes.
    fn line_ends(&self, autocrlf: bool) -> bool {
        match (self.text.as_deref(), self.crlf.as_deref()) {
            (Some("unset"), _) | (None, Some("unset")) => false,
            (Some(_), _) | (None, Some(_)) => true,
            (None, None) => self.eol.is_some() || autocrlf,
        }
    }
}

/// The private directory in which one file at a time stands for git to read.
struct ConversionStage {
    folder: PathBuf,
    placed: Option<PathBuf>,
}

impl ConversionStage {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), placed: None }
    }

    fn put_file(&mut self, path: &RepoPath, bytes: &[u8]) -> Result<()> {
        use std::io::Write;
        let place = self.folder.join(path.as_path());
        let failed = |e: std::io::Error| Failure::io("stage", &place, &e);
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = std::fs::File::options().write(true).create_new(true).open(&place);
        file.and_then(|mut file| file.write_all(bytes)).map_err(failed)?;
        self.placed = Some(place);
        Ok(())
    }

    fn clear_stage(&mut self) -> Result<()> {
        let Some(place) = self.placed.take() else { return Ok(()) };
        std::fs::remove_file(&place).map_err(|e| Failure::io("remove", &place, &e))?;
        // Folders go too, or a later path that is a file where this one had a folder could not be staged.
        for folder in place.ancestors().skip(1).take_while(|f| *f != self.folder) {
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// Stores one blob in the quarantine as it is, without any conversion.
pub fn write_blob(conversions: &Conversions, bytes: Vec<u8>) -> Result<ObjectId> {
    let ids = write_blobs(conversions, &[bytes])?;
    ids.into_iter().next().ok_or_else(|| Failure::new(Code::Io, "git wrote no blob"))
}

/// Stores blobs in the quarantine as they are, without any conversion.
pub fn write_blobs(conversions: &Conversions, blobs: &[Vec<u8>]) -> Result<Vec<ObjectId>> {
    let mut store = Store::for_blobs(conversions, blobs.len());
    for bytes in blobs {
        store.add_blob(bytes)?;
    }
    store.finish_storing()?;
    blobs.iter().map(|bytes| conversions.repository.format().blob_id(bytes)).collect()
}

/// Blobs on their way into the quarantine, through one `git fast-import` for all.
struct Store<'a> {
    conversions: &'a Conversions<'a>,
    in_process: Option<ObjectStore>,
    git: Option<Conversation>,
}

impl<'a> Store<'a> {
    /// For so many blobs: few get a file each, many are git's to pack.
    fn for_blobs(conversions: &'a Conversions<'a>, count: usize) -> Self {
        let open = |quarantine| conversions.repository.object_store(quarantine);
        let few = conversions.quarantine.filter(|_| count <= MOST_FILES);
        Self { conversions, in_process: few.and_then(open), git: None }
    }

    fn add_blob(&mut self, bytes: &[u8]) -> Result<()> {
        if self.in_process.as_ref().and_then(|store| store.write_blob(bytes)).is_some() {
            return Ok(());
        }
        let conversions = self.conversions;
        let git = ensure_started(&mut self.git, || {
            let quarantine =
                conversions.quarantine.ok_or_else(|| Failure::internal("no quarantine to write to"))?;
            conversions
                .repository
                .git_call()
                .with_quarantine(quarantine)
                .args(["fast-import", "--quiet"])
                .start_conversation()
        })?;
        let header = format!("blob\ndata {}\n", bytes.len());
        let sent = git
            .send_request(header.as_bytes())
            .and_then(|()| git.send_request(bytes))
            .and_then(|()| git.send_request(b"\n"));
        sent.map_err(|e| {
            Failure::new(Code::Io, format!("git fast-import broke off: {e}: {}", git.take_complaints()))
        })
    }

    fn finish_storing(self) -> Result<()> {
        if self.in_process.is_some_and(|store| store.store_written().is_none()) {
            return Err(Failure::new(Code::Io, "the objects of a candidate cannot be stored"));
        }
        match self.git {
            None => Ok(()),
            Some(git) => git.finish_conversation()?.into_stdout().map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::testing::TestRepository;
    use proptest::prelude::*;

    const RULES: &[&str] = &[
        "",
        "text",
        "-text",
        "text=auto",
        "eol=crlf",
        "eol=lf",
        "text eol=crlf",
        "text=auto eol=crlf",
        "-text eol=crlf",
        "crlf",
        "-crlf",
        "crlf=input",
        "ident",
        "ident eol=crlf",
        "text working-tree-encoding=UTF-16LE",
        "working-tree-encoding=UTF-16",
        "filter=upper",
        "filter=upper ident text=auto",
        "filter=nobody",
        "binary",
    ];

    fn any_settings() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
        prop::sample::select(vec![
            vec![],
            vec![("core.autocrlf", "true")],
            vec![("core.autocrlf", "input")],
            vec![("core.eol", "crlf")],
        ])
    }

    fn any_content() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"a"[..],
            b"line\n",
            b"line\r\n",
            b"\r",
            b"\n",
            b"\0",
            b"$Id$\n",
            b"$Id: 1234 $\r\n",
            b"\xc3\xa4\n",
            b"",
        ]);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    /// The repository, its attribute tree, and the files with the rule of each.
    fn check_conversions(format: &str, settings: &[(&str, &str)], files: &[(&'static str, Vec<u8>)]) {
        let home = TestRepository::with_format(format);
        home.set_config("filter.upper.clean", "tr a-z A-Z");
        home.set_config("filter.upper.smudge", "tr A-Z a-z");
        settings.iter().for_each(|(key, value)| home.set_config(key, value));
        let mut rules = String::new();
        let mut items = Vec::new();
        for (at, (rule, bytes)) in files.iter().enumerate() {
            let name = format!("d{}/f {at}\n", at % 2);
            rules.push_str(&format!("d*/f?{at}? {rule}\n"));
            items.push((RepoPath::new(name.as_bytes()).expect("a path"), bytes.clone()));
        }
        home.write_file(".gitattributes", rules.as_bytes());
        let tree = home.commit_all("rules");
        let repository = home.repository();
        let quarantine = home.quarantine();
        let conversions = Conversions { repository: &repository, quarantine: Some(&quarantine) };
        let drivers = Drivers::SelectedBy(&tree);
        for (path, bytes) in &items {
            home.write_bytes(path.as_bytes(), bytes);
        }
        // Git refuses what cannot be encoded only when it writes, and so do we.
        let wanted: Vec<Option<String>> =
            items.iter().map(|(path, _)| home.hash_file(path.as_bytes())).collect();
        for write in [false, true] {
            let one_by_one: Vec<_> = items
                .iter()
                .map(|item| conversions.clean_blobs(&tree, &drivers, std::slice::from_ref(item), write).ok())
                .map(|ids| ids.map(|ids| ids[0].to_string()))
                .collect();
            assert_eq!(one_by_one, wanted, "{files:?} {settings:?}");
        }
        let good: Vec<_> =
            items.iter().zip(&wanted).filter(|(_, id)| id.is_some()).map(|(item, _)| item.clone()).collect();
        let ids = conversions.clean_blobs(&tree, &drivers, &good, true).expect("converts");
        let blobs: Vec<_> = good.iter().zip(&ids).map(|((path, _), id)| (path.clone(), id.clone())).collect();
        let mut seen = 0;
        conversions
            .smudge_blobs(&tree, &drivers, &blobs, &mut |at, bytes| {
                assert_eq!(at, seen);
                seen += 1;
                let (path, id) = &blobs[at];
                let checkout = home.checkout_blob(path.as_bytes(), id.as_str(), &quarantine);
                assert_eq!(
                    bytes.escape_ascii().to_string(),
                    checkout.escape_ascii().to_string(),
                    "{path} {rules}"
                );
                Ok(())
            })
            .expect("converts");
        assert_eq!(seen, blobs.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 20, ..ProptestConfig::default() })]
        #[test]
        fn ids_and_bytes_are_those_of_git(
            settings in any_settings(),
            files in prop::collection::vec((prop::sample::select(RULES), any_content()), 1..12),
        ) {
            check_conversions("sha1", &settings, &files);
        }
    }

    #[test]
    fn a_sha256_repository_is_converted_likewise() {
        let files: Vec<_> =
            RULES.iter().map(|rule| (*rule, b"A line\r\nand $Id$\n\xc3\xa4".to_vec())).collect();
        check_conversions("sha256", &[], &files);
    }

    #[test]
    fn a_driver_runs_only_where_the_base_selects_it_and_its_program_is_not_of_the_tree() {
        let home = TestRepository::new();
        home.set_config("filter.upper.clean", "tr a-z A-Z");
        home.set_config("filter.upper.required", "true");
        home.set_config("filter.own.clean", "./evil");
        home.write_file(".gitattributes", b"yes filter=upper\nown filter=own\n");
        home.write_file("evil", b"#!/bin/sh\ntouch /tmp/evil-was-here\n");
        let base = home.commit_all("base");
        home.write_file(".gitattributes", b"yes filter=upper\nno filter=upper\nown filter=own\n");
        let candidate = home.commit_all("candidate");
        let repository = home.repository();
        let conversions = Conversions { repository: &repository, quarantine: None };
        let items: Vec<_> = ["yes", "no", "own"]
            .iter()
            .map(|p| (RepoPath::new(*p).expect("a path"), b"abc".to_vec()))
            .collect();
        let id = |bytes: &[u8]| repository.format().blob_id(bytes).expect("hashes");
        let (raw, upper) = (id(b"abc"), id(b"ABC"));
        let ids = |drivers: Drivers| {
            conversions.clean_blobs(&candidate, &drivers, &items, false).expect("converts")
        };
        assert_eq!(ids(Drivers::SelectedBy(&base)), [upper.clone(), raw.clone(), raw.clone()]);
        assert_eq!(ids(Drivers::Named(&[])), [raw.clone(), raw.clone(), raw.clone()]);
        let named = ["upper".to_owned(), "own".to_owned()];
        assert_eq!(ids(Drivers::Named(&named)), [upper.clone(), upper, raw]);
        assert!(conversions.relative_driver("own", &[&base]).expect("known"));
        assert!(!conversions.relative_driver("upper", &[&base]).expect("known"));
    }

    #[test]
    fn a_failing_driver_is_a_failure_though_git_goes_on() {
        let home = TestRepository::new();
        home.set_config("filter.bad.clean", "false");
        home.set_config("filter.bad.smudge", "false");
        home.write_file(".gitattributes", b"x filter=bad\n");
        let tree = home.commit_all("base");
        let repository = home.repository();
        let conversions = Conversions { repository: &repository, quarantine: None };
        let path = RepoPath::new("x").expect("a path");
        let items = [(path.clone(), b"abc".to_vec())];
        let refused = conversions
            .clean_blobs(&tree, &Drivers::SelectedBy(&tree), &items, false)
            .expect_err("the driver fails");
        assert_eq!((refused.code(), refused.subject_text()), (Code::Io, Some("x")));
        let blob = crate::git::tree::find_entry(
            &repository.object_reader(None).expect("opens"),
            &tree,
            &RepoPath::new(".gitattributes").expect("a path"),
        );
        let items = [(path, blob.expect("reads").expect("is there").id)];
        conversions
            .smudge_blobs(&tree, &Drivers::SelectedBy(&tree), &items, &mut |_, _| Ok(()))
            .expect_err("the driver fails");
    }

    #[test]
    fn quoting_is_what_git_reads() {
        assert_eq!(talk::quote_path(b"a\n\"\\\xff"), b"\"a\\012\\\"\\\\\\377\"");
    }
}
