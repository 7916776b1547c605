//! An editor saves, freely, while the same path is delivered again and again. No save may be lost: after
//! every delivery, refused or not, the path holds the editor's last save or something that was delivered over
//! a save that is in the store.

use super::world::World;
use crate::error::Code;
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug)]
enum Style {
    ByRename,
    InPlace,
    Slowly,
}

/// What the editor and the deliveries did at the same time.
#[derive(Default)]
struct Score {
    saves: AtomicUsize,
    delivering: AtomicBool,
    overlaps: AtomicUsize,
    stop: AtomicBool,
    written: Mutex<Vec<Vec<u8>>>,
}

fn save_file(path: &Path, style: Style, text: &[u8]) -> std::io::Result<()> {
    match style {
        Style::ByRename => {
            let swap = path.with_extension("editor-swap");
            std::fs::File::create(&swap)?.write_all(text)?;
            std::fs::rename(swap, path)
        }
        Style::InPlace => std::fs::File::create(path)?.write_all(text),
        Style::Slowly => {
            // Opened, and for a while nothing is to be seen of it.
            let mut file = std::fs::File::options().write(true).truncate(false).create(true).open(path)?;
            std::thread::sleep(std::time::Duration::from_millis(2));
            for part in text.chunks(8) {
                file.write_all(part)?;
                std::thread::sleep(std::time::Duration::from_micros(150));
            }
            file.set_len(text.len() as u64)
        }
    }
}

/// The editor: saves, waits a little, saves again. Every text is another.
fn edit_until_stopped(path: &Path, style: Style, score: &Score) {
    let mut number = 0;
    while !score.stop.load(Ordering::SeqCst) {
        number += 1;
        let text = format!("edit {number} of the user\n").into_bytes();
        let before = score.delivering.load(Ordering::SeqCst);
        save_file(path, style, &text).expect("saves");
        if before || score.delivering.load(Ordering::SeqCst) {
            score.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        score.written.lock().expect("one editor").push(text);
        score.saves.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_micros(300 + (number % 7) * 400));
    }
}

/// Rounds: the tree is put to its base between two saves, delivered, and looked at when the editor pauses.
fn race_editor(style: Style, rounds: usize) {
    let world = World::new(&[("a", "a\n"), ("t", "base\n"), ("z", "z\n")]);
    let changes = world.edit_candidate(|w| {
        w.write_file("a", "A\n");
        w.write_file("t", "delivered\n");
        w.write_file("z", "Z\n");
    });
    let base = world.live_tree();
    let (mut applied, mut refused, mut saves, mut overlaps) = (0, 0, 0, 0);
    for _ in 0..rounds {
        world.reset_live(&base);
        let ready = world.prepare_delivery(&changes).expect("no conflict yet");
        let score = Score::default();
        let (path, place) = (world.path("t"), &score);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| edit_until_stopped(&path, style, place));
            // Now and then the delivery begins first.
            if applied % 2 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
            score.delivering.store(true, Ordering::SeqCst);
            let result = world.execute_ready(ready);
            score.delivering.store(false, Ordering::SeqCst);
            score.stop.store(true, Ordering::SeqCst);
            result
        });
        saves += score.saves.load(Ordering::SeqCst);
        overlaps += score.overlaps.load(Ordering::SeqCst);
        let written = score.written.into_inner().expect("one editor");
        let now = std::fs::read(world.path("t")).expect("the path is there");
        match &result {
            Ok(_) => applied += 1,
            Err(e) => {
                assert_eq!(e.code(), Code::DeliveryConflict, "{style:?}: {e:?}");
                refused += 1;
                assert_eq!(std::fs::read(world.path("a")).expect("there"), b"a\n", "{style:?}");
                assert_eq!(std::fs::read(world.path("z")).expect("there"), b"z\n", "{style:?}");
            }
        }
        // The last save is on disk. Only a delivery that came after no save at all may be.
        let last = written.last().map_or(b"delivered\n".as_slice(), Vec::as_slice);
        let untouched = written.is_empty() && result.is_err() && now == b"base\n";
        assert!(
            now == last || untouched,
            "{style:?} {result:?}: {:?} after {} saves",
            lossy_text(&now),
            written.len()
        );
        let strange: HashSet<String> =
            world.live_tree().into_keys().filter(|n| !["a", "t", "z"].contains(&n.as_str())).collect();
        assert!(strange.is_empty(), "{strange:?}");
    }
    assert!(overlaps * 2 >= rounds, "{style:?}: only {overlaps} of {saves} saves overlapped a delivery");
    assert!(refused > 0, "{style:?}: {applied} {refused}");
}

fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn race_rounds() -> usize {
    std::option_env!("TENDER_RACE_ROUNDS").and_then(|n| n.parse().ok()).unwrap_or(150)
}

#[test]
fn an_editor_that_saves_by_rename_loses_nothing() {
    race_editor(Style::ByRename, race_rounds());
}

#[test]
fn an_editor_that_saves_in_place_loses_nothing() {
    race_editor(Style::InPlace, race_rounds());
}

#[test]
fn an_editor_that_writes_slowly_loses_nothing() {
    race_editor(Style::Slowly, race_rounds());
}
