//! The user takes everybody's right to read a file, while it is being delivered to; or to enter a folder,
//! before a delivery that was cut off is put in order.

use super::crash::{count_operations, dead_at, silence_panics};
use super::world::World;
use crate::git::apply::recover::Recovered;
use crate::git::beneath::fault;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;

/// Root reads whatever it wants, unless its thread gives that right away.
fn as_anybody<T>(run: impl FnOnce() -> T) -> T {
    let all = capabilities(None).expect("can be asked for");
    let reading = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    let fewer = CapabilitySets { effective: all.effective - reading, ..all };
    set_capabilities(None, fewer).expect("can be given away");
    let result = run();
    set_capabilities(None, all).expect("can be had again");
    result
}

#[test]
fn a_file_that_cannot_be_read_any_more_goes_back_and_stops_nothing() {
    let world = World::new(&[("t", "base\n"), ("u", "base\n")]);
    let before = world.live_tree();
    let changes = world.edit_candidate(|w| {
        w.write_file("t", "delivered\n");
        w.write_file("u", "delivered\n");
    });
    let (mut refused, mut at) = (0, 0);
    loop {
        world.reset_live(&before);
        let ready = world.prepare_delivery(&changes).expect("no conflict yet");
        let passed = Rc::new(Cell::new(0));
        let (hooked, path) = (Rc::clone(&passed), world.path("t"));
        fault::set_hook(Some(Box::new(move |_| {
            if hooked.get() == at {
                let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000));
            }
            hooked.set(hooked.get() + 1);
        })));
        let result = as_anybody(|| world.execute_ready(ready));
        fault::set_hook(None);
        if passed.get() <= at {
            assert!(result.is_ok());
            break;
        }
        let shown = format!("at {at}: {result:#?}");
        let tree = world.live_tree();
        assert_eq!(tree.len(), 2, "{shown}: {tree:?}");
        if result.is_ok() {
            assert!(tree.values().all(|(_, bytes)| bytes == b"delivered\n"), "{shown}");
        } else {
            assert_eq!(world.journal_ends(), "taken_back", "{shown}");
            assert_eq!(tree["u"].1, b"base\n", "{shown}");
            // Ours, where it was made unreadable after it had been put there: the user's latest is left, and
            // theirs before it is stored.
            assert!(tree["t"].1 == b"base\n" || world.is_stored(b"base\n"), "{shown}");
            refused += 1;
        }
        at += 1;
    }
    assert!(refused > 3, "{refused}");
}

/// What lies in a folder that cannot be entered is not taken for gone, nor for the user's: recovery says so,
/// touches nothing, and comes to a whole end once the folder can be entered.
#[test]
fn a_folder_that_cannot_be_entered_says_nothing_of_what_is_in_it() {
    silence_panics();
    let world = World::new(&[("a", "base\n"), ("d/x", "base\n"), ("d/y", "base\n"), ("z", "base\n")]);
    let before = world.live_tree();
    let changes = world.edit_candidate(|w| {
        for path in ["a", "d/x", "d/new", "z"] {
            w.write_file(path, "delivered\n");
        }
        w.remove_path("d/y");
    });
    let total = count_operations(|| world.deliver_changes(&changes).map(|_| ()));
    let after = world.live_tree();
    let mut waited = 0;
    for at in 1..=total {
        let unfinished = dead_at(&world, &before, &changes, at);
        let dead = world.live_tree();
        world.set_mode("d", 0o000);
        let barred = as_anybody(|| world.recover_unfinished(&unfinished));
        world.set_mode("d", 0o755);
        if let Err(failure) = &barred {
            assert_eq!(world.live_tree(), dead, "{at}: {failure:?}");
            assert!(failure.message().contains("ermission denied"), "{at}: {failure:?}");
            waited += 1;
        }
        let whole = match barred.or_else(|_| world.recover_unfinished(&unfinished)).expect("recovers") {
            Recovered::Completed { .. } => &after,
            Recovered::TakenBack { .. } => &before,
        };
        assert_eq!(world.live_tree(), *whole, "{at}");
    }
    assert!(waited > 10, "{waited} of {total}");
}
