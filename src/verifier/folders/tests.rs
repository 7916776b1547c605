//! Compares looks at folders with plain walks over all files, and counts what they read.

use super::*;
use crate::domain::change::patch::Change;
use crate::domain::proof::listing::{Listing, listing_digest};
use crate::domain::proof::records::On;
use crate::domain::value::digest::FileState;
use crate::git::laid_tree::ReadTrees;
use crate::git::testing::TestRepository;
use crate::git::tree::{changes_between, list_files};
use crate::store::{Blobs, Layout};
use crate::verifier::listings::Listings;
use crate::verifier::manifest::Manifest;
use crate::verifier::view;
use proptest::prelude::*;

fn repo_path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn scope_of(patterns: &[String]) -> Scope {
    Scope::new(patterns.to_vec()).expect("patterns")
}

/// A verifier that sees these files and has these of its own.
fn verifier(inputs: &[String], watch: &[String], own: &[String]) -> Verifier {
    let list = |patterns: &[String]| serde_json::to_string(patterns).expect("serializes");
    let text = format!(
        "protocol = 1\nid = \"unit\"\ncommand = [\"true\"]\ninputs = {}\nwatch = {}\n",
        list(inputs),
        list(watch)
    );
    Verifier {
        manifest: Manifest::parse("verifier.toml", "unit", text.as_bytes()).expect("a manifest"),
        manifest_sha256: Sha256::of(text.as_bytes()),
        closure: Vec::new(),
        scope: scope_of(own),
        private: false,
    }
}

fn side(state: &Option<FileState>) -> Option<crate::domain::value::digest::TreeObject> {
    state.as_ref().map(FileState::tree_object)
}

type Files = Vec<(RepoPath, Mode, Vec<u8>)>;

/// Drops what lies beneath a file.
fn tree_of(files: &std::collections::BTreeMap<String, u8>) -> Files {
    let known: Vec<RepoPath> = files.keys().map(|path| repo_path(path)).collect();
    let is_free = |path: &RepoPath| !path.ancestors().iter().any(|above| known.contains(above));
    let modes = [Mode::File, Mode::Executable, Mode::Symlink];
    let file =
        |(path, bytes): (&String, &u8)| (repo_path(path), modes[usize::from(*bytes) % 3], vec![b'x', *bytes]);
    files.iter().map(file).filter(|(path, _, _)| is_free(path)).collect()
}

fn some_files() -> impl Strategy<Value = std::collections::BTreeMap<String, u8>> {
    let name = "(a|b|a-b|c\\.mk|\\.gitattributes|Makefile)";
    let path = proptest::string::string_regex(&format!("{name}(/{name}){{0,3}}")).expect("a pattern");
    prop::collection::btree_map(path, 0u8..4, 0..14)
}

fn some_patterns(least: usize) -> impl Strategy<Value = Vec<String>> {
    let pattern = prop_oneof![
        Just("**".to_owned()),
        "(a|b|a-b)/".prop_map(|text| text),
        "(a|b)/(a|b)/",
        "(a|b)/\\*\\*/a",
        "\\*\\*/(b|\\*\\.mk)",
        "(a|\\*)/(b|\\?)",
        "(a|b|a/b)",
    ];
    prop::collection::vec(pattern, least..3)
}

/// Everything that is asked of two trees, from the folders and from lists of all files.
fn compare(
    home: &TestRepository,
    memory: &FolderMemory,
    (base, candidate): (&Files, &Files),
    verifier: &Verifier,
    case: &Scope,
) {
    let objects = home.repository().object_reader(None).expect("opens");
    let (base, tree) = (home.write_tree(base), home.write_tree(candidate));
    let changes = changes_between(&objects, &base, &tree).expect("compares");
    let trees = ReadTrees::new(&objects);
    let laid = |over: Vec<_>| LaidTree::new(&trees, &tree, over.into_iter());
    let back = |change: &Change| (change.path.clone(), side(&change.old));
    let on_base = laid(changes.iter().map(back).collect());
    let with_case = laid(
        changes
            .iter()
            .map(|change| match case.matches_path(&change.path) {
                true => (change.path.clone(), side(&change.new)),
                false => back(change),
            })
            .collect(),
    );
    let plain = InputView::new(verifier, None);
    let without = InputView::new(verifier, Some(case));
    let flat = list_files(&objects, &base).expect("lists");
    let listed = |files: &[TreeFile], view: &InputView<'_>| -> Vec<InputFile> {
        let taken = files.iter().filter(|file| view.takes(&file.path)).cloned();
        taken.map(|file| memory.input_file(&objects, file).expect("digests")).collect()
    };
    let digest = |tree: &LaidTree<'_, '_>, view| memory.tree_digest(tree, view).expect("digests");
    let now = list_files(&objects, &tree).expect("lists");
    assert_eq!(digest(&laid(Vec::new()), &plain), listing_digest(&listed(&now, &plain)));
    assert_eq!(digest(&on_base, &plain), listing_digest(&listed(&flat, &plain)));
    let shown = view::on_base(&flat, &changes, case, On::BaseWithCase);
    assert_eq!(digest(&with_case, &plain), listing_digest(&listed(&shown, &plain)));
    let shown = view::on_base(&flat, &changes, case, On::BaseWithoutCase);
    let expected: Vec<InputFile> = listed(&shown, &plain);
    assert_eq!(digest(&on_base, &without), listing_digest(&expected));

    let wanted = Wanted {
        id: Sha256::of_json(case),
        fits: &|path| case.matches_path(path),
        may_hold: &|folder| folder.is_none_or(|folder| case.may_hold(folder)),
    };
    let fitting: Vec<TreeFile> = flat.iter().filter(|file| case.matches_path(&file.path)).cloned().collect();
    assert_eq!(memory.find_all(&on_base, &wanted).expect("looks"), fitting);
    assert_eq!(memory.has_any(&on_base, &wanted).expect("looks"), !fitting.is_empty());
    for file in flat.iter().chain(&now) {
        let there = flat.iter().find(|known| known.path == file.path);
        assert_eq!(on_base.file_at(&file.path).expect("looks").as_ref(), there);
        for folder in file.path.ancestors() {
            let is_there =
                flat.iter().any(|known| known.path == folder || known.path.ancestors().contains(&folder));
            assert_eq!(on_base.find(&folder).expect("looks").is_some(), is_there, "{folder}");
        }
    }

    let layout = Layout::new(home.repository().common_dir());
    layout.create().expect("creates");
    let blobs = Blobs::new(&layout);
    let stored = Listings { memory, trees: &trees, blobs: &blobs, view: &plain };
    let stored = stored.store(&tree, &base).expect("stores");
    assert_eq!(resolve(&blobs, &stored), listed(&now, &plain));
}

fn resolve(blobs: &Blobs, digest: &Sha256) -> Vec<InputFile> {
    let stored: Listing = serde_json::from_slice(&blobs.get(digest).expect("stored")).expect("a listing");
    let other = stored.differs_from.map(|other| resolve(blobs, &other)).unwrap_or_default();
    stored.resolve_with(other)
}

#[test]
fn folders_show_what_a_walk_over_all_files_shows() {
    let home = TestRepository::new();
    let layout = Layout::new(home.repository().common_dir());
    // One memory for all, so that what is remembered of one tree must not tell lies of another one.
    let memory = FolderMemory::new(Memo::of_layout(&layout));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(400));
    let some =
        (some_files(), some_files(), some_patterns(1), some_patterns(0), some_patterns(0), some_patterns(0));
    let compared = runner.run(&some, |(base, more, inputs, watch, own, case)| {
        let mut candidate = base.clone();
        candidate.retain(|path, _| !more.contains_key(path));
        candidate.extend(more);
        let verifier = verifier(&inputs, &watch, &own);
        compare(&home, &memory, (&tree_of(&base), &tree_of(&candidate)), &verifier, &scope_of(&case));
        Ok(())
    });
    compared.expect("the same");
    memory.save();
}

#[test]
fn a_change_costs_the_folders_that_it_lies_in() {
    let home = TestRepository::new();
    let mut files: Files = Vec::new();
    for at in 0..600u32 {
        let path = format!("src/d{}/e{}/f{at}.txt", at / 60, at / 6);
        files.push((repo_path(&path), Mode::File, at.to_string().into_bytes()));
    }
    let base = home.write_tree(&files);
    files[77].2 = b"changed".to_vec();
    let tree = home.write_tree(&files);
    let objects = home.repository().object_reader(None).expect("opens");
    let layout = Layout::new(home.repository().common_dir());
    layout.create().expect("creates");
    let all = [vec!["**".to_owned()], vec!["src/d1/**/*.txt".to_owned()], vec!["src/*/**".to_owned()]];
    let look = |tree: &ObjectId| {
        let memory = FolderMemory::new(Memo::of_layout(&layout));
        let trees = ReadTrees::new(&objects);
        let laid = LaidTree::new(&trees, tree, std::iter::empty());
        for inputs in &all {
            let verifier = verifier(inputs, &[], &[".tender/verifiers/unit/".to_owned()]);
            let view = InputView::new(&verifier, None);
            memory.tree_digest(&laid, &view).expect("digests");
            let blobs = Blobs::new(&layout);
            let listings = Listings { memory: &memory, trees: &trees, blobs: &blobs, view: &view };
            listings.store(tree, &base).expect("stores");
        }
        let makefiles = Wanted {
            id: Sha256::of(b"none"),
            fits: &|path| path.file_name() == b"Makefile",
            may_hold: &|_| true,
        };
        assert!(!memory.has_any(&laid, &makefiles).expect("looks"));
        memory.save();
        trees.count()
    };
    assert_eq!(look(&base), 1 + 1 + 10 + 100, "each folder once");
    assert_eq!(look(&tree), 4, "the top, src, d1 and e12");
    assert_eq!(look(&tree), 0, "all of it is known");
}
