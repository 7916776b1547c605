//! Saves at every combination of places of a delivery, tried one after the other: what a free race meets once
//! in many thousand rounds is met here each time. After each the path holds the last save, whatever came
//! before it.

use super::crash::{run_with, silence_panics};
use super::world::{Tree, World};
use crate::domain::change::patch::Change;
use crate::error::Code;
use crate::git::beneath::fault::{self, InjectedFault};
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    ByRename,
    InPlace,
    /// First by rename, then in place, in turn.
    Mixed,
    /// First by rename, then away with it, in turn.
    Removing,
}

/// Counts the places that a delivery passes, and saves at the chosen ones.
struct Editor {
    path: PathBuf,
    /// Another path that is saved once, before anything is written.
    spoil: Option<PathBuf>,
    style: Style,
    at: Vec<usize>,
    passed: usize,
    last: Option<Vec<u8>>,
}

impl Editor {
    fn pass_place(&mut self) {
        if let Some(spoil) = self.spoil.take() {
            std::fs::File::create(spoil).and_then(|mut file| file.write_all(b"mine\n")).expect("writes");
        }
        if self.at.contains(&self.passed) {
            self.save_file();
        }
        self.passed += 1;
    }

    fn save_file(&mut self) {
        let text = format!("the user's save at place {}\n", self.passed).into_bytes();
        let odd = self.at.iter().position(|at| *at == self.passed).is_some_and(|n| n % 2 == 1);
        if self.style == Style::Removing && odd {
            let _ = std::fs::remove_file(&self.path);
            self.last = None;
            return;
        }
        let by_rename = self.style == Style::ByRename || (self.style != Style::InPlace && !odd);
        if by_rename {
            let swap = self.path.with_extension("swap");
            std::fs::File::create(&swap).and_then(|mut file| file.write_all(&text)).expect("writes");
            std::fs::rename(swap, &self.path).expect("renames");
        } else {
            std::fs::File::create(&self.path).and_then(|mut file| file.write_all(&text)).expect("writes");
        }
        self.last = Some(text);
    }
}

/// One delivery with saves at these places. Returns how many places it passed.
fn deliver_with_saves(
    world: &World,
    base: &Tree,
    changes: &[Change],
    path: &str,
    style: Style,
    at: &[usize],
) -> usize {
    world.reset_live(base);
    let ready = world.prepare_delivery(changes).expect("no conflict yet");
    let spoil = changes.iter().find(|change| change.path.as_bytes() == b"z").map(|_| world.path("z"));
    let spoiled = spoil.is_some();
    let editor = Editor { path: world.path(path), spoil, style, at: at.to_vec(), passed: 0, last: None };
    let editor = Rc::new(RefCell::new(editor));
    let hook = Rc::clone(&editor);
    fault::set_hook(Some(Box::new(move |_| hook.borrow_mut().pass_place())));
    let result = world.execute_ready(ready);
    fault::set_hook(None);
    let shown = format!("{path} {style:?} {at:?} {result:?}");
    if let Err(failure) = &result {
        assert_eq!(failure.code(), Code::DeliveryConflict, "{shown}");
        assert_eq!(world.journal_ends(), "taken_back", "{shown}");
    }
    assert!(!spoiled || result.is_err(), "{shown}");
    let mut now = world.live_tree();
    let editor = editor.borrow();
    if let Some(last) = &editor.last {
        let there = now.get(path).map(|(_, bytes)| String::from_utf8_lossy(bytes));
        assert_eq!(there, Some(String::from_utf8_lossy(last)), "{shown}");
    }
    if spoiled {
        assert_eq!(now.remove("z").expect("there").1, b"mine\n", "{shown}");
        assert!(!at.is_empty() || now.get(path) == base.get(path), "{shown}");
    }
    let strange: Vec<&String> =
        now.keys().filter(|name| *name != path && !base.contains_key(*name)).collect();
    assert!(strange.is_empty(), "{strange:?} {shown}");
    editor.passed
}

/// Where a delivery ended that was to die.
enum Ended {
    BeforeTheSave,
    AfterIt,
    /// It did not come to that operation; with the places that it passed.
    Alive(usize),
}

/// The same, and it dies at one of its file operations; then it is recovered.
fn deliver_and_die(
    world: &World,
    base: &Tree,
    (changes, path): (&[Change], &str),
    style: Style,
    at: &[usize],
    death: u32,
) -> Ended {
    world.reset_live(base);
    let ready = world.prepare_delivery(changes).expect("no conflict yet");
    let spoil = changes.iter().find(|change| change.path.as_bytes() == b"zz").map(|_| world.path("zz"));
    let editor = Editor { path: world.path(path), spoil, style, at: at.to_vec(), passed: 0, last: None };
    let editor = Rc::new(RefCell::new(editor));
    let hook = Rc::clone(&editor);
    fault::set_hook(Some(Box::new(move |_| hook.borrow_mut().pass_place())));
    let ended = run_with(InjectedFault::Die, death, || {
        let _ = world.execute_ready(ready);
        Ok(())
    });
    fault::set_hook(None);
    let mut shown = format!("{path} {style:?} {at:?}, died at {death}");
    if let Some(unfinished) = world.unfinished_delivery() {
        let recovered = world.recover_unfinished(&unfinished).expect("recovers");
        shown.push_str(&format!(", {recovered:?}"));
    }
    let now = world.live_tree();
    if let Some(last) = &editor.borrow().last {
        let there = now.get(path).is_some_and(|(_, bytes)| bytes == last);
        assert!(there || world.is_stored(last), "lost: {shown}: {now:#?}");
    }
    let strange: Vec<&String> =
        now.keys().filter(|name| *name != path && *name != "zz" && !base.contains_key(*name)).collect();
    assert!(strange.is_empty(), "{strange:?} {shown}");
    let editor = editor.borrow();
    match (ended, &editor.last) {
        (Some(_), _) => Ended::Alive(editor.passed),
        (None, Some(_)) => Ended::AfterIt,
        (None, None) => Ended::BeforeTheSave,
    }
}

/// A save at each place, and a death at each operation after it.
#[test]
fn no_save_is_lost_where_it_dies_afterwards() {
    type Edit = fn(&super::world::Editor);
    silence_panics();
    let world = World::new(&[("gone", "base\n"), ("t", "base\n")]);
    let base = world.live_tree();
    let delivered: [(&str, Edit); 3] = [
        ("t", |w| w.write_file("t", "delivered\n")),
        ("new", |w| w.write_file("new", "delivered\n")),
        ("gone", |w| w.remove_path("gone")),
    ];
    let mut died = 0;
    for ((path, edit), spoiled) in delivered.into_iter().flat_map(|one| [(one, false), (one, true)]) {
        let changes = world.edit_candidate(|w| {
            edit(w);
            // The last step: what came before it has to be taken back, for somebody else makes it first.
            if spoiled {
                w.write_file("zz", "delivered\n");
            }
        });
        for style in [Style::ByRename, Style::InPlace] {
            let (mut save, mut passed, mut first) = (0, 1, 1);
            while save < passed {
                for death in first.. {
                    let ended = deliver_and_die(&world, &base, (&changes, path), style, &[save], death);
                    match ended {
                        Ended::BeforeTheSave => first = death + 1,
                        Ended::AfterIt => died += 1,
                        Ended::Alive(places) => {
                            passed = places;
                            break;
                        }
                    }
                }
                save += 1;
            }
        }
    }
    assert!(died > 500, "{died}");
}

/// All choices of up to `saves` places. A save changes what the delivery does next, so each choice says anew
/// how many there are.
fn explore_saves(
    world: &World,
    base: &Tree,
    changes: &[Change],
    path: &str,
    style: Style,
    saves: usize,
) -> usize {
    let (mut tried, mut open) = (0, vec![Vec::new()]);
    while let Some(at) = open.pop() {
        let passed = deliver_with_saves(world, base, changes, path, style, &at);
        tried += 1;
        if at.len() < saves {
            let first = at.last().map_or(0, |last| last + 1);
            open.extend((first..passed).map(|next| [at.as_slice(), &[next]].concat()));
        }
    }
    tried
}

/// Each kind of change alone, with up to `saves` saves; and in a delivery that another path keeps from being
/// completed, so that all of it is taken back, with one. `TENDER_INTERLEAVED_SAVES` when this is built is the
/// number for all of them; 3 takes ten minutes.
fn explore_all(plain: bool, saves: usize) {
    type Edit = fn(&super::world::Editor);
    let chosen = std::option_env!("TENDER_INTERLEAVED_SAVES").and_then(|n| n.parse().ok());
    let world = World::new(&[("gone", "base\n"), ("t", "base\n"), ("z", "base\n")]);
    let base = world.live_tree();
    let delivered: [(&str, Edit); 3] = [
        ("t", |w| w.write_file("t", "delivered\n")),
        ("new", |w| w.write_file("new", "delivered\n")),
        ("gone", |w| w.remove_path("gone")),
    ];
    for (path, edit) in delivered {
        for spoiled in [false, true] {
            let saves = chosen.unwrap_or(if spoiled { 1 } else { saves });
            let changes = world.edit_candidate(|w| {
                edit(w);
                if spoiled {
                    w.write_file("z", "delivered\n");
                }
            });
            for style in [Style::ByRename, Style::InPlace, Style::Mixed, Style::Removing] {
                fault::plain_file_system(plain);
                let tried = explore_saves(&world, &base, &changes, path, style, saves);
                fault::plain_file_system(false);
                assert!(tried > 15, "{path} {style:?}: only {tried} orders");
            }
        }
    }
}

#[test]
fn no_order_of_saves_loses_the_last() {
    explore_all(false, 3);
}

#[test]
fn no_order_of_saves_loses_the_last_where_names_cannot_be_exchanged() {
    explore_all(true, 2);
}
