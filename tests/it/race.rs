//! An editor that saves while we deliver. It runs free in a thread of its own and saves once a trial, at a
//! moment of its own choosing; whatever happens, what it saved last is what the file holds afterwards, and
//! the other files are all old or all new. The test counts how many saves really fell into a delivery and
//! fails where too few did, because then it would prove nothing.
//!
//! `TENDER_RACE_TRIALS` sets the number of trials (default 24 for each kind of save), `TENDER_SEED` the dice.

use crate::support::{Dice, Lab, Repo, setting};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
enum Save {
    ByRename,
    InPlace,
    Slowly,
    Appending,
}

/// Saves `content` and returns when it began and when it was done.
fn save(path: &Path, content: &[u8], how: Save) -> (Instant, Instant) {
    let begin = Instant::now();
    match how {
        Save::ByRename => {
            let temporary = path.with_extension("editor~");
            std::fs::write(&temporary, content).expect("writes");
            std::fs::rename(&temporary, path).expect("renames");
        }
        Save::InPlace => std::fs::write(path, content).expect("writes"),
        Save::Slowly => {
            let mut file = std::fs::OpenOptions::new().write(true).truncate(true).open(path).expect("opens");
            for part in content.chunks(content.len() / 6 + 1) {
                std::thread::sleep(Duration::from_millis(4));
                file.write_all(part).expect("writes");
            }
        }
        Save::Appending => {
            // Opened early, nothing truncated, everything rewritten through the descriptor at the end.
            let mut file = std::fs::OpenOptions::new().write(true).open(path).expect("opens");
            std::thread::sleep(Duration::from_millis(20));
            file.write_all(content).expect("writes");
            file.set_len(u64::try_from(content.len()).expect("fits")).expect("sets the length");
        }
    }
    (begin, Instant::now())
}

const FILES: usize = 40;

fn names() -> Vec<String> {
    (0..FILES).map(|n| format!("many/f{n:02}.txt")).collect()
}

fn prepared(lab: &Lab) -> (Repo<'_>, Vec<u8>) {
    let repo = lab.repo("app");
    names().iter().for_each(|name| repo.write(name, format!("old {name}\n")));
    repo.commit("many");
    let patch =
        repo.patch_of(|copy| names().iter().for_each(|name| copy.write(name, format!("new {name}\n"))));
    (repo, patch)
}

struct Trial {
    overlapped: bool,
    delivered: bool,
    took: Duration,
}

/// One delivery with one save at a random moment around it.
fn trial(repo: &Repo<'_>, number: u64, how: Save, dice: &mut Dice, usual: Duration) -> Trial {
    let id = format!("{how:?}-{number}");
    let victim = dice.pick(&names().iter().map(String::as_str).collect::<Vec<_>>()).to_owned();
    let path: PathBuf = repo.join(&victim);
    let content = format!("saved by the editor in trial {number}\n").repeat(20).into_bytes();
    let delay = Duration::from_micros(dice.below(u64::try_from(usual.as_micros()).expect("fits") + 1));
    let editor = {
        let content = content.clone();
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            save(&path, &content, how)
        })
    };
    let begin = Instant::now();
    let answer = repo.json(&["deliver", &id]);
    let end = Instant::now();
    let (saved, done) = editor.join().expect("the editor does not fail");
    assert_eq!(repo.read(&victim), content, "{id}: the editor's bytes are lost ({:#})", answer.json);
    let others: Vec<String> = names().into_iter().filter(|name| *name != victim).collect();
    let new = others.iter().filter(|name| repo.text(name) == format!("new {name}\n")).count();
    let delivered = answer.code == 0;
    if delivered {
        assert_eq!(new, others.len(), "{id}: delivered, but only {new} are new");
    } else {
        assert_eq!(answer.conflicts()[0].0, victim, "{id}");
        assert_eq!(new, 0, "{id}: refused, but {new} are new");
    }
    assert_eq!(
        std::fs::read_dir(repo.join("many")).expect("lists").count(),
        FILES,
        "{id}: a temporary file is left"
    );
    Trial { overlapped: saved < end && done > begin, delivered, took: end - begin }
}

fn race(how: Save) {
    let lab = Lab::new();
    let (repo, patch) = prepared(&lab);
    let trials = setting("TENDER_RACE_TRIALS", 24).max(5);
    let seed = setting("TENDER_SEED", 7);
    let mut dice = Dice::new(seed);
    let (mut overlaps, mut delivered) = (0, 0);
    let mut usual = Duration::from_millis(40);
    for number in 0..trials {
        let id = format!("{how:?}-{number}");
        repo.open(&crate::support::Contract::new(&id));
        repo.submit_patch(&id, &patch).ok();
        let done = trial(&repo, number, how, &mut dice, usual);
        overlaps += u64::from(done.overlapped);
        delivered += u64::from(done.delivered);
        usual = (usual * 3 + done.took) / 4;
        repo.git(&["checkout", "-q", "--", "many"]);
    }
    let share = overlaps * 100 / trials;
    crate::support::say(&format!(
        "{how:?}: {trials} trials (seed {seed}), {overlaps} saves overlapped a delivery ({share} %), {delivered} delivered"
    ));
    assert!(share >= 20, "only {share} % of the saves overlapped a delivery: the test proves nothing");
}

#[test]
fn an_editor_that_saves_by_rename_loses_nothing() {
    race(Save::ByRename);
}

#[test]
fn an_editor_that_saves_in_place_loses_nothing() {
    race(Save::InPlace);
}

#[test]
fn an_editor_that_writes_slowly_through_an_open_descriptor_loses_nothing() {
    race(Save::Slowly);
}

#[test]
fn an_editor_that_opens_early_and_writes_late_loses_nothing() {
    race(Save::Appending);
}

#[test]
fn an_editor_that_never_stops_loses_nothing() {
    let lab = Lab::new();
    let (repo, patch) = prepared(&lab);
    let trials = setting("TENDER_RACE_TRIALS", 24) / 4 + 2;
    let (mut saves, mut overlaps) = (0u64, 0u64);
    for number in 0..trials {
        let id = format!("free-{number}");
        repo.open(&crate::support::Contract::new(&id));
        repo.submit_patch(&id, &patch).ok();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let victim = repo.join("many/f20.txt");
        let (window, log) = std::thread::scope(|scope| {
            let editor = scope.spawn(|| {
                let mut log = Vec::new();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let content = format!("save {} of trial {number}\n", log.len());
                    let how = if log.len().is_multiple_of(2) { Save::ByRename } else { Save::InPlace };
                    let (begin, end) = save(&victim, content.as_bytes(), how);
                    log.push((begin, end, content));
                    std::thread::sleep(Duration::from_millis(3));
                }
                log
            });
            let begin = Instant::now();
            let answer = repo.json(&["deliver", &id]);
            let window = (begin, Instant::now());
            if answer.code != 0 {
                answer.fails("delivery.conflict");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            (window, editor.join().expect("the editor does not fail"))
        });
        saves += log.len() as u64;
        overlaps += log.iter().filter(|(begin, end, _)| *begin < window.1 && *end > window.0).count() as u64;
        let last = &log.last().expect("it saved at least once").2;
        assert_eq!(&repo.text("many/f20.txt"), last, "{id}: the last save is lost");
        repo.git(&["checkout", "-q", "--", "many"]);
    }
    let share = overlaps * 100 / saves.max(1);
    crate::support::say(&format!(
        "free-running: {saves} saves, {overlaps} overlapped a delivery ({share} %)"
    ));
    assert!(share >= 20);
}

#[test]
fn an_editor_that_creates_or_deletes_meanwhile_loses_nothing() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    let patch = repo.patch_of(|copy| {
        (0..30).for_each(|n| copy.write(format!("fresh/n{n:02}.txt"), "from the patch\n"));
        copy.rm("src/b.txt");
    });
    let trials = setting("TENDER_RACE_TRIALS", 24) / 2 + 2;
    let mut dice = Dice::new(setting("TENDER_SEED", 7));
    for number in 0..trials {
        let id = format!("create-{number}");
        repo.open(&crate::support::Contract::new(&id));
        repo.submit_patch(&id, &patch).ok();
        let delay = Duration::from_micros(dice.below(60_000));
        let (fresh, edited) = (repo.join("fresh/n15.txt"), repo.join("src/b.txt"));
        let created = std::thread::scope(|scope| {
            let editor = scope.spawn(|| {
                std::thread::sleep(delay);
                std::fs::create_dir_all(fresh.parent().expect("parent")).expect("creates");
                let new = std::fs::OpenOptions::new().write(true).create_new(true).open(&fresh);
                let created = new.and_then(|mut file| file.write_all(b"the editor's own\n")).is_ok();
                save(&edited, b"the editor's own\n", Save::ByRename);
                created
            });
            let answer = repo.json(&["deliver", &id]);
            if answer.code != 0 {
                answer.fails("delivery.conflict");
                assert!(!repo.exists("fresh/n03.txt"), "{id}: refused, but a file was created");
            }
            editor.join().expect("the editor does not fail")
        });
        assert_eq!(repo.text("src/b.txt"), "the editor's own\n", "{id}");
        if created {
            assert_eq!(repo.text("fresh/n15.txt"), "the editor's own\n", "{id}");
        }
        repo.git(&["checkout", "-q", "--", "src"]);
        if repo.exists("fresh") {
            repo.rm("fresh");
        }
    }
}

#[test]
fn a_directory_moved_away_meanwhile_loses_nothing() {
    let lab = Lab::new();
    let (repo, patch) = prepared(&lab);
    let trials = setting("TENDER_RACE_TRIALS", 24) / 2 + 2;
    let mut dice = Dice::new(setting("TENDER_SEED", 7));
    for number in 0..trials {
        let id = format!("move-{number}");
        repo.open(&crate::support::Contract::new(&id));
        repo.submit_patch(&id, &patch).ok();
        let delay = Duration::from_micros(dice.below(60_000));
        let (from, to, outside) = (repo.join("many"), repo.join("moved"), lab.path("outside"));
        std::fs::create_dir_all(&outside).expect("creates");
        let answer = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(delay);
                std::fs::rename(&from, &to).expect("moves");
                std::os::unix::fs::symlink(&outside, &from).expect("links");
            });
            repo.json(&["deliver", &id])
        });
        assert_eq!(std::fs::read_dir(&outside).expect("lists").count(), 0, "{id}: written through the link");
        let moved: Vec<String> =
            names().iter().map(|name| repo.text(name.replace("many", "moved"))).collect();
        let new = moved.iter().filter(|text| text.starts_with("new")).count();
        if answer.code == 0 {
            assert_eq!(new, FILES, "{id}");
        } else {
            answer.fails_one_of(&["delivery.conflict", "outcome.unknown"]);
            assert_eq!(new, 0, "{id}: refused, but {new} are new");
        }
        assert_eq!(
            std::fs::read_dir(repo.join("moved")).expect("lists").count(),
            FILES,
            "{id}: a temporary file is left"
        );
        repo.rm("many");
        repo.rm("moved");
        repo.git(&["checkout", "-q", "--", "many"]);
    }
}
