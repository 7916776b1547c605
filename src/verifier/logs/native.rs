//! Compilers that write `path:row:column: error:` (gcc, clang, javac, mypy and more), and linkers.

use crate::domain::proof::run::Kind;
use crate::verifier::logs::log::{LogLine, LogLines};
use crate::verifier::logs::place::SourcePlace;
use crate::verifier::logs::{FoundError, Sign};

pub(super) fn read_line(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    find_compiler_error(line, rest)
        .or_else(|| find_undefined_symbol(line))
        .or_else(|| find_linker_error(line))
}

fn find_compiler_error(line: &LogLine, rest: &LogLines<'_>) -> Option<FoundError> {
    let (place, said) = SourcePlace::in_front(&line.text)?;
    // rustc in its short form writes the code of the error, too.
    let rustc = said.starts_with("error[") || (said.starts_with("error: ") && place.path.ends_with(".rs"));
    let kind = if rustc { Kind::Rustc } else { Kind::Compiler };
    (rustc || said.starts_with("error:") || said.starts_with("fatal error:")).then_some(())?;
    let mut text = vec![line.text.clone()];
    text.extend(rest.ahead_while(4, |next| next.starts_with(' ')));
    Some(FoundError { sign: Sign::Sure, kind, text, place: Some(place), from: None })
}

/// `path:(.text+0x1): undefined reference to …`
fn find_undefined_symbol(line: &LogLine) -> Option<FoundError> {
    let text = line.text.as_str();
    let linker = text.contains(": undefined reference to ") || text.contains(": multiple definition of ");
    let path = text.split(":(").next().filter(|path| *path != text);
    let path = path.and_then(|path| path.rsplit(": ").next()).filter(|path| !path.contains(' '));
    linker.then(|| linker_error(text, Sign::Sure, path))
}

/// `/usr/bin/ld: cannot find -lx`; what it says about where it is at comes before, and of warnings it has
/// many.
fn find_linker_error(line: &LogLine) -> Option<FoundError> {
    let (program, said) = line.text.split_once(": ")?;
    let name = program.rsplit('/').next()?;
    let is_linker =
        ["ld", "lld", "ld.lld", "ld64.lld", "rust-lld", "ld.gold", "ld.bfd", "mold"].contains(&name);
    let fails =
        ["cannot ", "error: ", "undefined symbol", "fatal: "].iter().any(|word| said.starts_with(word))
            || said.contains(": file not recognized")
            || said.contains(": error: ");
    (is_linker && fails).then(|| linker_error(&line.text, Sign::Sure, None))
}

fn linker_error(text: &str, sign: Sign, path: Option<&str>) -> FoundError {
    let place = path.map(|path| SourcePlace { path: path.to_owned(), row: None, column: None });
    FoundError { sign, kind: Kind::Linker, text: vec![text.to_owned()], place, from: None }
}
