//! Sections that belong together, because they all speak of one state of the tree: applied by git and, on our
//! own, to the letter. The two results must be the same.

use super::super::objects::Objects;
use super::super::private_index::PrivateIndex;
use super::super::tree;
use super::read::{PatchItem, refuse_gitlink};
use super::view::{Found, TreeView};
use crate::domain::change::patch_text::exact::Misfit;
use crate::domain::change::patch_text::{Body, Hunk, Operation, Side, Strip, exact};
use crate::domain::value::digest::{Mode, ObjectId, TreeObject};
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};

/// How many of the first sections speak of the same state. A path that was written already begins a new
/// state; a rename or a copy reads the old one, as in git.
pub(super) fn first_group_length(view: &TreeView, items: &[PatchItem]) -> Result<usize> {
    let (mut consumed, mut written) = (HashSet::new(), HashSet::new());
    for (at, item) in items.iter().enumerate() {
        let other_text = !std::ptr::eq(item.text, items[0].text);
        let again = item.new.as_ref().is_some_and(|new| written.contains(new))
            || item.consumed_path().is_some_and(|old| consumed.contains(old));
        let moves = matches!(item.section.operation, Operation::Rename | Operation::Copy);
        let reads_new = match item.old.as_ref().filter(|old| written.contains(old)) {
            Some(old) => !moves || view.find_path(old.as_bytes())? == Found::Nothing,
            None => false,
        };
        if at > 0 && (other_text || again || reads_new) {
            return Ok(at);
        }
        consumed.extend(item.consumed_path());
        written.extend(&item.new);
    }
    Ok(items.len())
}

/// One state of the tree, and the sections that change it.
pub(super) struct Group<'a, 't> {
    index: &'a PrivateIndex<'a>,
    objects: &'a Objects,
    view: &'a TreeView<'a>,
    items: &'a [PatchItem<'t>],
    written: HashSet<&'a RepoPath>,
    consumed: HashSet<&'a RepoPath>,
    /// Contradictions between the `index` lines and the result, which are told last.
    pub late: Vec<Failure>,
}

impl<'a, 't> Group<'a, 't> {
    pub(super) fn new(
        index: &'a PrivateIndex<'a>,
        objects: &'a Objects,
        view: &'a TreeView<'a>,
        items: &'a [PatchItem<'t>],
    ) -> Self {
        let written = items.iter().filter_map(|item| item.new.as_ref()).collect();
        let consumed = items.iter().filter_map(PatchItem::consumed_path).collect();
        Self { index, objects, view, items, written, consumed, late: Vec::new() }
    }

    /// Checks and applies. The index must hold the tree of the view; it holds the result afterwards.
    pub(super) fn check_and_apply(&mut self) -> Result<ObjectId> {
        let mut failures = Vec::new();
        let mut before = Vec::new();
        for item in self.items {
            match self.through_links(item).and_then(|()| self.checked_preimage(item)) {
                Ok(state) => before.push(state),
                Err(failure) => failures.push(failure),
            }
        }
        if let Some(failure) = Failure::first_of(failures) {
            return Err(failure);
        }
        let expected = self.expected_result(&before)?;
        self.by_git()?;
        let after = self.index.write_tree()?;
        self.compare_result(&after, expected)?;
        Ok(after)
    }

    /// Whether the old file at a path goes, by a removal or a rename.
    fn is_consumed(&self, path: &RepoPath) -> bool {
        self.consumed.contains(path)
    }

    /// The file that a section starts from, held against everything that its header says of it.
    fn checked_preimage(&self, item: &PatchItem) -> Result<Option<TreeObject>> {
        let path = item
            .old
            .as_ref()
            .or(item.new.as_ref())
            .ok_or_else(|| Failure::internal("a section without a path"))?;
        let found = self.view.find_path(path.as_bytes())?;
        let index = item.section.index.as_ref();
        let creates = item.section.operation == Operation::Create;
        if creates || item.section.may_create() && found == Found::Nothing {
            if index.is_some_and(|index| !is_zero(&index.old)) {
                return Err(item.section_failure(
                    Code::PatchInvalid,
                    format!("{path} is new, but its `index` line names a preimage"),
                ));
            }
            return match found.file().filter(|_| !self.is_consumed(path)) {
                None => Ok(None),
                Some(TreeObject { id, .. }) => {
                    Err(preimage_conflict(item, path, "no file", Some(id.as_str())))
                }
            };
        }
        let Some(TreeObject { mode, id }) = found.file() else {
            return Err(preimage_conflict(item, path, index.map_or("a file", |index| &index.old), None));
        };
        if let Some(index) = index.filter(|index| !id.as_str().starts_with(&index.old)) {
            return Err(preimage_conflict(item, path, &index.old, Some(id.as_str())));
        }
        if *mode == Mode::Gitlink {
            return Err(refuse_gitlink(path));
        }
        if let Some(said) = item.modes.0.filter(|said| said != mode) {
            return Err(preimage_conflict(item, path, said.as_str(), Some(mode.as_str())));
        }
        self.refuse_moving_onto(item)?;
        Ok(Some(TreeObject { mode: *mode, id: id.clone() }))
    }

    /// Git looks for a file in the way only where the header says that it is a rename.
    fn refuse_moving_onto(&self, item: &PatchItem) -> Result<()> {
        if !matches!(item.section.operation, Operation::Rename | Operation::Copy) {
            return Ok(());
        }
        let Some(new) = item.new.as_ref().filter(|new| !self.is_consumed(new)) else { return Ok(()) };
        match self.view.find_path(new.as_bytes())?.file() {
            Some(there) => Err(preimage_conflict(item, new, "no file", Some(there.id.as_str()))),
            None => Ok(()),
        }
    }

    /// No directory above a written path may be a link, before or after.
    fn through_links(&self, item: &PatchItem) -> Result<()> {
        let Some(new) = &item.new else { return Ok(()) };
        for above in new.ancestors() {
            let before = self.view.find_path(above.as_bytes())?;
            let link_before = before.file().is_some_and(|object| object.mode == Mode::Symlink);
            let link_after = self.written.contains(&above);
            if link_before && !self.is_consumed(&above) || link_after {
                let message = format!("{new} would be written through {above}, which is a link or a file");
                return Err(item.section_failure(Code::ScopeViolation, message).detail("through", &above));
            }
        }
        Ok(())
    }

    /// What every path holds afterwards, by our own reading.
    fn expected_result(
        &mut self,
        before: &[Option<TreeObject>],
    ) -> Result<BTreeMap<RepoPath, Option<TreeObject>>> {
        let mut expected = BTreeMap::new();
        let mut failures = Vec::new();
        let items = self.items;
        for item in items {
            expected.extend(item.consumed_path().map(|old| (old.clone(), None)));
        }
        for (item, before) in items.iter().zip(before) {
            match self.expected_postimage(item, before.as_ref()) {
                Ok(Some(after)) => {
                    self.late.extend(contradiction_of_index(item, &after.id));
                    expected.extend(item.new.clone().map(|new| (new, Some(after))));
                }
                Ok(None) => {}
                Err(failure) => failures.push(failure),
            }
        }
        Failure::first_of(failures).map_or(Ok(expected), Err)
    }

    fn expected_postimage(
        &self,
        item: &PatchItem,
        before: Option<&TreeObject>,
    ) -> Result<Option<TreeObject>> {
        let mode = item.modes.1.or(before.map(|object| object.mode)).unwrap_or(Mode::File);
        let removes = item.section.operation == Operation::Delete;
        if let Some(rule) =
            item.new.as_ref().filter(|_| mode == Mode::Symlink).and_then(|new| new.refused_as_link())
        {
            return Err(item.section_failure(Code::ScopeViolation, rule));
        }
        let id = match (&item.section.body, before) {
            (Body::Binary(..), _) => return self.binary_postimage(item, before, mode),
            (Body::None, Some(TreeObject { id, .. })) => id.clone(),
            (Body::None, None) => self.objects.format().blob_id(b"")?,
            (Body::Text(hunks), _) => {
                let content = before.map_or(Ok(Vec::new()), |object| self.objects.read_blob(&object.id))?;
                let content = exact::apply_hunks(item.text, hunks, &content)
                    .map_err(|misfit| hunk_misfits(item, hunks, misfit))?;
                self.objects.format().blob_id(&content)?
            }
        };
        if !removes {
            return Ok(Some(TreeObject { mode, id }));
        }
        if id == self.objects.format().blob_id(b"")? {
            return Ok(None);
        }
        Err(item.section_failure(Code::PatchInvalid, "the patch removes the file, but not all of its lines"))
    }

    /// The full `index` line says what a binary patch leads to; git checks that it does.
    fn binary_postimage(
        &self,
        item: &PatchItem,
        before: Option<&TreeObject>,
        mode: Mode,
    ) -> Result<Option<TreeObject>> {
        let Body::Binary(_, reverse) = &item.section.body else { return Ok(None) };
        let length = self.objects.format().hex_len();
        let index = item.section.index.as_ref().filter(|i| i.old.len() == length && i.new.len() == length);
        let Some(index) = index else {
            let message = "a binary patch needs the full ids on its `index` line (--binary --full-index)";
            return Err(item.section_failure(Code::PatchInvalid, message));
        };
        if let Some(reverse) = reverse {
            let size = before.map_or(Ok(0), |object| self.objects.blob_size(&object.id))?;
            // The way back leads to the preimage: neither it nor its delta is larger.
            if reverse.size > size.saturating_add(4096) {
                let message = "the way back of the binary patch is larger than the file in the base";
                return Err(item.section_failure(Code::PatchInvalid, message).expected(size, reverse.size));
            }
        }
        Ok(match item.section.operation {
            Operation::Delete => None,
            _ => Some(TreeObject { mode, id: index.new.parse()? }),
        })
    }

    fn by_git(&self) -> Result<()> {
        let text: Vec<u8> =
            self.items.iter().flat_map(|item| &item.text[item.section.range.clone()]).copied().collect();
        let strip = if self.items[0].strip == Strip::None { "-p0" } else { "-p1" };
        let git = self.index.git_on_index()?.args([
            "apply",
            "--cached",
            "--binary",
            "--whitespace=nowarn",
            strip,
            "-",
        ]);
        let output = git.stdin(text).run()?;
        if output.success() {
            return Ok(());
        }
        let said = output.stderr.trim();
        let bare = |item: &&PatchItem| {
            let changes = item.section.operation == Operation::Modify;
            changes
                && item
                    .section
                    .hunks()
                    .iter()
                    .any(|hunk| hunk.body_lines(item.text).all(|(side, _)| side != Side::Both))
        };
        let hint = self
            .items
            .iter()
            .find(bare)
            .map_or("", |_| " (a hunk has no context lines; make the patch without -U0)");
        let one = self.items.iter().find(|item| {
            said.contains(&crate::domain::value::repo_path::display_bytes(item.section.shown_path()))
        });
        let first = said.lines().find(|line| line.starts_with("error: ")).unwrap_or(said);
        let message = format!("git does not apply the patch: {}{hint}", first.trim_start_matches("error: "));
        Err(one.unwrap_or(&self.items[0]).section_failure(Code::PatchInvalid, message).detail("git", said))
    }

    /// Git's result must be ours, path by path.
    fn compare_result(
        &self,
        after: &ObjectId,
        mut expected: BTreeMap<RepoPath, Option<TreeObject>>,
    ) -> Result<()> {
        let differ = |path: &RepoPath, ours: Option<&TreeObject>, gits: Option<&TreeObject>| {
            let text =
                |state: Option<&TreeObject>| state.map(|TreeObject { mode, id }| format!("{mode} {id}"));
            Failure::new(
                Code::PatchInvalid,
                format!("the patch can be read in two ways: git makes something else of {path}"),
            )
            .subject(path.to_string())
            .expected(text(ours), text(gits))
        };
        for change in tree::list_differences(self.objects, self.view.root(), after)? {
            let ours = expected.remove(&change.path);
            if ours.as_ref() != Some(&change.new) {
                return Err(differ(&change.path, ours.flatten().as_ref(), change.new.as_ref()));
            }
        }
        for (path, ours) in expected {
            let found = self.view.find_path(path.as_bytes())?.file().cloned();
            if found != ours {
                return Err(differ(&path, ours.as_ref(), found.as_ref()));
            }
        }
        Ok(())
    }
}

fn is_zero(id: &str) -> bool {
    id.bytes().all(|b| b == b'0')
}

/// The patch was made for another state of the path.
fn preimage_conflict(item: &PatchItem, path: &RepoPath, expected: &str, actual: Option<&str>) -> Failure {
    let shown = actual.unwrap_or("nothing");
    item.section_failure(
        Code::VersionConflict,
        format!(
            "the patch was made for another version of {path}: it expects {expected}, the base has {shown}"
        ),
    )
    .subject(path.to_string())
    .expected(expected, actual)
}

/// The `index` line names another result than the patch has: part of it was lost, or it was edited by hand.
fn contradiction_of_index(item: &PatchItem, after: &ObjectId) -> Option<Failure> {
    let index = item.section.index.as_ref().filter(|index| !after.as_str().starts_with(&index.new))?;
    let message = "the result is not what the `index` line of the patch names: the patch was cut or edited";
    Some(item.section_failure(Code::PatchInvalid, message).expected(&index.new, after))
}

fn hunk_misfits(item: &PatchItem, hunks: &[Hunk], misfit: Misfit) -> Failure {
    let hunk = &hunks[misfit.hunk];
    let header = crate::domain::value::repo_path::display_bytes(&item.text[hunk.header.clone()]);
    let place = match misfit.would_apply_at.as_slice() {
        [] => String::new(),
        lines => {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            format!(" (it would fit at line {})", lines.join(", "))
        }
    };
    let differs =
        misfit.differs.map(|(line, patch, base)| json!({"line": line, "patch": patch, "base": base}));
    let path = crate::domain::value::repo_path::display_bytes(item.section.shown_path());
    item.section_failure(
        Code::PatchInvalid,
        format!("the hunk `{header}` does not fit {path}: {}{place}", misfit.what),
    )
    .detail("line", hunk.line)
    .detail("hunk", header)
    .detail("wouldApplyAt", misfit.would_apply_at)
    .detail("firstDifference", differs)
}
