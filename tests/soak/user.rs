//! The user, who goes on working: saves by rename and in place, removes, moves, commits. Every save has words
//! of its own.

use crate::independent::sha256;
use crate::support::Dice;
use crate::world::{Deed, FILES, PLACES, What, World};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub fn work(world: &World<'_>, seed: u64, end: Instant) {
    let mut dice = Dice::new(seed ^ 0x5eed);
    let mut number = 0;
    while Instant::now() < end && !world.stop.load(Ordering::SeqCst) {
        number += 1;
        {
            let _hand = world.hand.lock().expect("whole");
            let begin = Instant::now();
            for what in deed(world, &mut dice, number) {
                world.deeds.lock().expect("whole").push(Deed { begin, end: Instant::now(), what });
            }
        }
        std::thread::sleep(Duration::from_millis(dice.below(200)));
    }
}

/// Saves one of these paths, at some moment of the time that a delivery of them usually takes.
pub fn interfere(world: &World<'_>, dice: &mut Dice, paths: &[String], usual: Duration) {
    let path = paths[usize::try_from(dice.below(paths.len() as u64)).expect("fits")].clone();
    let number = dice.next();
    let micros = u64::try_from(usual.as_micros()).expect("fits");
    std::thread::sleep(Duration::from_micros(micros / 4 + dice.below(micros * 3 / 4)));
    let _hand = world.hand.lock().expect("whole");
    let begin = Instant::now();
    let text = format!("the user's save {number:x} of {path}, in between\n");
    if let Some(sha256) = save(&world.repo.join(&path), dice.below(3), text) {
        let what = What::Wrote { path, sha256 };
        world.deeds.lock().expect("whole").push(Deed { begin, end: Instant::now(), what });
    }
}

fn deed(world: &World<'_>, dice: &mut Dice, number: u64) -> Vec<What> {
    let path = any_path(dice);
    let file = world.repo.join(&path);
    match dice.below(20) {
        0 => commit(world),
        1 => match std::fs::remove_file(&file) {
            Ok(()) => vec![What::Removed { path }],
            Err(_) => Vec::new(),
        },
        2 => {
            let to = any_path(dice);
            match std::fs::rename(&file, world.repo.join(&to)) {
                Ok(()) if to != path => vec![What::Moved { from: path, to }],
                _ => Vec::new(),
            }
        }
        kind => save(
            &file,
            kind % 3,
            format!("the user's save {number} of {path}\n").repeat(1 + usize::from(kind == 3) * 400),
        )
        .map(|sha256| What::Wrote { path, sha256 })
        .into_iter()
        .collect(),
    }
}

fn any_path(dice: &mut Dice) -> String {
    // Mostly in two places, so that in the others tasks have a chance to be delivered.
    let places = if dice.below(4) > 0 { &["own", "p0"][..] } else { PLACES };
    let place = dice.pick(places);
    format!("{place}/f{}.txt", dice.below(FILES as u64 + 3))
}

/// What was saved; nothing where the path could not be had.
fn save(file: &Path, kind: u64, text: String) -> Option<String> {
    let bytes = text.into_bytes();
    let done = match kind {
        0 => {
            let swap = file.with_extension("swap");
            std::fs::write(&swap, &bytes).and_then(|()| std::fs::rename(&swap, file))
        }
        1 => std::fs::write(file, &bytes),
        _ => slowly(file, &bytes),
    };
    done.ok().map(|()| sha256(&bytes))
}

/// Through one descriptor, in parts, while anything may happen to the name.
fn slowly(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut open = std::fs::File::create(file)?;
    for part in bytes.chunks(bytes.len() / 4 + 1) {
        open.write_all(part)?;
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn commit(world: &World<'_>) -> Vec<What> {
    world.repo.git_out(&["add", "--", "p0/*.txt", "p1/*.txt", "p2/*.txt", "p3/*.txt", "own/*.txt"]);
    // A temporary lock of another git process is no reason to fail.
    match world.repo.git_out(&["commit", "-q", "-m", "work of the user's"]).code {
        0 => vec![What::Committed],
        _ => Vec::new(),
    }
}
