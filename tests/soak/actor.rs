//! An actor: opens tasks, edits in their worktrees, and takes them through the commands in any order; a part
//! of the commands is killed.

use crate::independent::sha256;
use crate::support::{Contract, Dice, setting};
use crate::world::{Command, FILES, PLACES, SHARED, Wanted, World};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

pub fn work(world: &World<'_>, actor: u64, seed: u64, end: Instant) {
    let mut dice = Dice::new(seed.wrapping_add(actor * 7919 + 1));
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        let id = format!("w{actor}-{number}");
        task(world, &mut dice, &id, end);
        match dice.below(12) {
            0 => drop(run(world, &mut dice, &["gc"])),
            1 | 2 => drop(run(world, &mut dice, &["recover"])),
            3 => drop(run(world, &mut dice, &["status"])),
            // Somebody else's task, at any moment of its life.
            4..=6 => {
                let known: Vec<String> = world.tasks.lock().expect("whole").keys().cloned().collect();
                let other = known[usize::try_from(dice.below(known.len() as u64)).expect("fits")].clone();
                let command = dice.pick(&["deliver", "undo", "submit", "verify", "report", "deliver"]);
                run(world, &mut dice, &[command, &other]);
            }
            _ => {}
        }
    }
}

/// Runs a command; about every fifth is killed, of those that write to the live tree every third, and in the
/// part of them in which they do.
fn run(world: &World<'_>, dice: &mut Dice, args: &[&str]) -> Command {
    let writes = ["deliver", "undo", "ship"].contains(&args[0]);
    let usual = world.usual(args[0]);
    let (share, from) = if writes { (34, usual / 2) } else { (16, Duration::ZERO) };
    let kill = dice.below(100) < setting("TENDER_SOAK_KILLS", share);
    let range = u64::try_from(usual.saturating_sub(from).as_micros()).expect("fits");
    let delay = from + Duration::from_micros(dice.below(range));
    let kill = kill.then_some(delay);
    // Every third delivery meets a user who saves just one of its paths.
    let paths = match args {
        ["deliver" | "undo" | "ship", id] => {
            world.tasks.lock().expect("whole").get(*id).map(|task| task.changed.clone())
        }
        _ => None,
    };
    match paths.filter(|paths| !paths.is_empty() && dice.below(3) == 0) {
        None => world.tender(args, kill),
        Some(paths) => {
            let mut own = Dice::new(dice.next());
            std::thread::scope(|scope| {
                scope.spawn(move || crate::user::interfere(world, &mut own, &paths, usual));
                world.tender(args, kill)
            })
        }
    }
}

fn task(world: &World<'_>, dice: &mut Dice, id: &str, end: Instant) {
    let Some(worktree) = open(world, dice, id) else { return };
    for round in 0..=dice.below(2) {
        if Instant::now() >= end {
            return;
        }
        edit(world, dice, id, Path::new(&worktree), round);
        match dice.below(2) {
            0 => drop(run(world, dice, &["ship", id])),
            _ => {
                run(world, dice, &["submit", id]);
                run(world, dice, &["verify", id]);
                run(world, dice, &["deliver", id]);
            }
        }
        if dice.below(3) == 0 {
            run(world, dice, &["deliver", id]);
        }
    }
    match dice.below(8) {
        0 | 1 => drop(run(world, dice, &["undo", id])),
        2 => drop(run(world, dice, &["cancel", id])),
        _ => {}
    }
}

/// The worktree, if the task could be opened; where the command was killed it is tried once more.
fn open(world: &World<'_>, dice: &mut Dice, id: &str) -> Option<String> {
    let places = &PLACES[..SHARED];
    let mut scope: Vec<String> = (0..=dice.below(2)).map(|_| format!("{}/", dice.pick(places))).collect();
    scope.sort();
    scope.dedup();
    let required = match dice.below(4) {
        0 => vec!["moody"],
        1 => vec!["fine", "clean"],
        _ => vec!["clean"],
    };
    let rows: Vec<_> = required.iter().map(|v| json!({"id": v, "text": "it holds", "verifier": v})).collect();
    let base = if dice.below(5) == 0 { "HEAD" } else { "live" };
    let named: Vec<&str> = scope.iter().map(String::as_str).collect();
    let contract = Contract::new(id).scope(&named).allowed(&required).set("requirements", json!(rows));
    let file = contract.set("base", base.into()).file(world.lab);
    let required = required.iter().map(|v| (*v).to_owned()).collect();
    world.tasks.lock().expect("whole").insert(id.to_owned(), Wanted { scope, required, changed: Vec::new() });
    let args = ["open", crate::support::repo::path_text(&file)];
    let mut answer = run(world, dice, &args);
    if answer.killed {
        answer = world.tender(&args, None);
    }
    answer.json["worktree"].as_str().map(str::to_owned)
}

fn edit(world: &World<'_>, dice: &mut Dice, id: &str, worktree: &Path, round: u64) {
    let scope = world.tasks.lock().expect("whole")[id].scope.clone();
    let outside = dice.below(7) == 0;
    let flavour = match dice.below(8) {
        0 => "BAD ",
        1 => "MOODY ",
        _ => "",
    };
    for n in 0..=dice.below(4) {
        let place = match (outside && n == 0, dice.below(scope.len() as u64)) {
            (true, _) => dice.pick(PLACES).to_owned(),
            (_, at) => scope[usize::try_from(at).expect("fits")].trim_end_matches('/').to_owned(),
        };
        let name = format!("{place}/f{}.txt", dice.below(FILES as u64 + 3));
        let path = worktree.join(&name);
        if let Some(task) = world.tasks.lock().expect("whole").get_mut(id) {
            task.changed.push(name);
        }
        if dice.below(6) == 0 {
            let _ = std::fs::remove_file(&path);
            continue;
        }
        let text = format!("{flavour}change {n} of round {round} by {id}\n");
        if flavour == "BAD " {
            world.bad.lock().expect("whole").insert(sha256(text.as_bytes()));
        }
        // A gc or a cancel of somebody's may have taken the folder away.
        let _ = std::fs::write(&path, text);
    }
}
