//! `submit --patch-mode`: a person at a terminal takes hunks of what the worktree changes, as `git add -p`
//! lets them.

use super::super::Session;
use crate::domain::change::hunks::{TextHunk, TextPair};
use crate::domain::change::patch::Change;
use crate::domain::ledger::report::CandidateObject;
use crate::domain::value::digest::{FileState, Sha256};
use crate::domain::value::outside::{plain_line, readable_text};
use crate::error::{Code, Failure, Result};
use crate::git::Objects;
use crate::task::budget;
use crate::task::candidate::candidate_object;
use crate::task::part::{Taken, require_same_tree, whole_change};
use crate::task::session::Person;
use crate::task::submission::capture_chosen;
use serde_json::json;

/// How many lines of one piece are shown.
const MOST_LINES: usize = 200;

const HELP: [&str; 6] = [
    "y - take this",
    "n - leave this in the worktree",
    "a - take this and the rest of the file",
    "d - leave this and the rest of the file",
    "q - leave this and all that follows",
    "? - print this help",
];

/// Captures what a person takes. Nobody waits for the answers: the task is free meanwhile, and where its
/// worktree changes until they are given, nothing is captured.
pub fn submit_hunks(session: &Session, named: Option<&str>) -> Result<CandidateObject> {
    let task = session.write(named)?;
    task.require_active()?;
    budget::require_left(&task)?;
    let id = task.view.id.clone();
    if !session.person.is_at_terminal() {
        return Err(Failure::new(
            Code::NotSupported,
            "--patch-mode asks a person at a terminal, and there is none",
        )
        .subject("--patch-mode")
        .expected("a terminal", "none")
        .remedy("Name the paths to take.", ["git", "tender", "submit", &id, "--only", "PATH"]));
    }
    let whole = whole_change(&task)?;
    let objects = session.repository.object_reader(Some(&session.quarantine(&id)))?;
    drop(task);
    let taken =
        Asking { person: session.person.as_ref(), objects: &objects, over: false }.ask_all(&whole.changes)?;
    if taken.iter().all(|taken| *taken == Taken::Nothing) {
        return Err(Failure::new(Code::Cancelled, "nothing was taken, so nothing was captured")
            .subject(id.clone())
            .remedy("Choose again, or take all of it.", ["git", "tender", "submit", &id]));
    }
    let mut task = session.write(Some(&id))?;
    task.require_active()?;
    require_same_tree(&whole_change(&task)?, &whole.tree)?;
    let asked = json!({ "patchSha256": null, "hunks": digest_of(&taken) });
    let choose = |_: &[Change], _: &Objects| Ok(taken.clone());
    let (candidate, left) = capture_chosen(&mut task, &asked, &whole, &choose)?;
    Ok(CandidateObject { left: Some(left), ..candidate_object(session, &id, &candidate) })
}

fn digest_of(taken: &[Taken]) -> Vec<String> {
    let word = |taken: &Taken| match taken {
        Taken::Nothing => "nothing".to_owned(),
        Taken::Whole => "whole".to_owned(),
        Taken::Version { bytes, mode } => format!("{mode} {}", Sha256::of(bytes)),
    };
    taken.iter().map(word).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkAnswer {
    Yes,
    No,
    All,
    Done,
    Quit,
}

struct Asking<'a> {
    person: &'a dyn Person,
    objects: &'a Objects,
    /// Nothing more is asked, and nothing more is taken.
    over: bool,
}

impl Asking<'_> {
    fn ask_all(mut self, changes: &[Change]) -> Result<Vec<Taken>> {
        changes
            .iter()
            .map(|change| if self.over { Ok(Taken::Nothing) } else { self.ask_change(change) })
            .collect()
    }

    fn ask_change(&mut self, change: &Change) -> Result<Taken> {
        let (Some(old), Some(new)) = (&change.old, &change.new) else {
            let what = if change.old.is_none() { "the new file" } else { "the deletion of" };
            let text = match &change.new {
                Some(new) => self.text_of(new)?,
                None => Vec::new(),
            };
            return self.ask_whole(change, what, &text);
        };
        if !(old.mode.is_regular() && new.mode.is_regular()) {
            return self.ask_whole(change, "the change of", &[]);
        }
        let (before, after) =
            (self.objects.read_blob(&old.git_blob)?, self.objects.read_blob(&new.git_blob)?);
        let Some(pair) = TextPair::split_lines(&before, &after) else {
            return self.ask_whole(change, "the new content of the binary file", &[]);
        };
        let mut mode = old.mode;
        if old.mode != new.mode {
            let what = format!("the mode {} in place of {} of", new.mode, old.mode);
            match self.ask(&[], &format!("Take {what} {}", change.path))? {
                HunkAnswer::All => return Ok(Taken::Whole),
                HunkAnswer::Yes => mode = new.mode,
                HunkAnswer::No => {}
                HunkAnswer::Done | HunkAnswer::Quit => return Ok(Taken::Nothing),
            }
        }
        let hunks = pair.list_hunks();
        let taken = self.ask_hunks(change, &pair, &hunks)?;
        Ok(match (taken.len() == hunks.len(), taken.is_empty()) {
            (true, _) if mode == new.mode => Taken::Whole,
            (_, true) if mode == old.mode => Taken::Nothing,
            _ => Taken::Version { bytes: pair.with_hunks(&taken), mode },
        })
    }

    fn ask_hunks(
        &mut self,
        change: &Change,
        pair: &TextPair<'_>,
        hunks: &[TextHunk],
    ) -> Result<Vec<TextHunk>> {
        let mut taken = Vec::new();
        for (at, hunk) in hunks.iter().enumerate() {
            let question = format!("Take this hunk of {} ({} of {})", change.path, at + 1, hunks.len());
            match self.ask(&pair.show_hunk(hunk), &question)? {
                HunkAnswer::Yes => taken.push(hunk.clone()),
                HunkAnswer::No => {}
                HunkAnswer::All => {
                    taken.extend_from_slice(&hunks[at..]);
                    break;
                }
                HunkAnswer::Done | HunkAnswer::Quit => break,
            }
        }
        Ok(taken)
    }

    fn ask_whole(&mut self, change: &Change, what: &str, lines: &[String]) -> Result<Taken> {
        Ok(match self.ask(lines, &format!("Take {what} {}", change.path))? {
            HunkAnswer::Yes | HunkAnswer::All => Taken::Whole,
            HunkAnswer::No | HunkAnswer::Done | HunkAnswer::Quit => Taken::Nothing,
        })
    }

    fn text_of(&self, state: &FileState) -> Result<Vec<String>> {
        if !state.mode.is_regular() {
            return Ok(Vec::new());
        }
        let bytes = self.objects.read_blob(&state.git_blob)?;
        let shown = TextPair::split_lines(b"", &bytes)
            .map(|pair| pair.list_hunks().iter().flat_map(|hunk| pair.show_hunk(hunk)).collect());
        Ok(shown.unwrap_or_default())
    }

    /// What a worker wrote is shown without what a terminal would take for a command.
    fn ask(&mut self, lines: &[String], question: &str) -> Result<HunkAnswer> {
        let mut shown: Vec<String> = lines.iter().take(MOST_LINES).map(|line| readable_text(line)).collect();
        shown.extend(
            (lines.len() > MOST_LINES).then(|| format!("… and {} lines more", lines.len() - MOST_LINES)),
        );
        let question = format!("{} [y,n,a,d,q,?]?", plain_line(question, usize::MAX));
        loop {
            let answer = self.person.choose(&shown, &question).ok_or_else(gone)?;
            match answer.chars().next() {
                Some('y') => return Ok(HunkAnswer::Yes),
                Some('n') => return Ok(HunkAnswer::No),
                Some('a') => return Ok(HunkAnswer::All),
                Some('d') => return Ok(HunkAnswer::Done),
                Some('q') => {
                    self.over = true;
                    return Ok(HunkAnswer::Quit);
                }
                _ => shown = HELP.map(str::to_owned).to_vec(),
            }
        }
    }
}

fn gone() -> Failure {
    Failure::new(Code::Cancelled, "nobody answers any more; nothing was captured")
}
