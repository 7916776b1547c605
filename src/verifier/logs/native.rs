//! Compilers that write `path:row:column: error:` (gcc, clang, javac, mypy and more), and linkers.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{Line, Lines};
use crate::verifier::logs::place::Place;
use crate::verifier::logs::{Found, Sign};

pub(super) fn read(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    compiler(line, rest).or_else(|| undefined(line)).or_else(|| linker(line))
}

fn compiler(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let (place, said) = Place::in_front(&line.text)?;
    // rustc in its short form writes the code of the error, too.
    let rustc = said.starts_with("error[") || (said.starts_with("error: ") && place.path.ends_with(".rs"));
    let kind = if rustc { Kind::Rustc } else { Kind::Compiler };
    (rustc || said.starts_with("error:") || said.starts_with("fatal error:")).then_some(())?;
    let mut text = vec![line.text.clone()];
    text.extend(rest.ahead_while(4, |next| next.starts_with(' ')));
    Some(Found { sign: Sign::Sure, kind, text, place: Some(place), from: None })
}

/// `path:(.text+0x1): undefined reference to …`
fn undefined(line: &Line) -> Option<Found> {
    let text = line.text.as_str();
    let linker = text.contains(": undefined reference to ") || text.contains(": multiple definition of ");
    let path = text.split(":(").next().filter(|path| *path != text);
    let path = path.and_then(|path| path.rsplit(": ").next()).filter(|path| !path.contains(' '));
    linker.then(|| of_linker(text, Sign::Sure, path))
}

/// `/usr/bin/ld: cannot find -lx`; what it says about where it is at comes before, and of warnings it has
/// many.
fn linker(line: &Line) -> Option<Found> {
    let (program, said) = line.text.split_once(": ")?;
    let name = program.rsplit('/').next()?;
    let is_linker =
        ["ld", "lld", "ld.lld", "ld64.lld", "rust-lld", "ld.gold", "ld.bfd", "mold"].contains(&name);
    let fails =
        ["cannot ", "error: ", "undefined symbol", "fatal: "].iter().any(|word| said.starts_with(word))
            || said.contains(": file not recognized")
            || said.contains(": error: ");
    (is_linker && fails).then(|| of_linker(&line.text, Sign::Sure, None))
}

fn of_linker(text: &str, sign: Sign, path: Option<&str>) -> Found {
    let place = path.map(|path| Place { path: path.to_owned(), row: None, column: None });
    Found { sign, kind: Kind::Linker, text: vec![text.to_owned()], place, from: None }
}
