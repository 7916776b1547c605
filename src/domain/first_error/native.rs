//! Compilers that write `path:row:column: error:` (gcc, clang, javac, mypy and more), and linkers.

use super::log::{Line, Lines};
use super::place::Place;
use super::{Found, Kind, Sign};

pub(super) fn read(line: &Line, rest: &Lines<'_>) -> Option<Found> {
    let text = line.text.as_str();
    if let Some((place, said)) = Place::in_front(text) {
        if said.starts_with("error:") || said.starts_with("fatal error:") {
            let mut lines = vec![text.to_owned()];
            lines.extend(rest.ahead_while(4, |next| next.starts_with(' ')));
            return Some(Found { sign: Sign::Sure, kind: Kind::Compiler, text: lines, place: Some(place) });
        }
    }
    let linker = text.contains(": undefined reference to ") || text.contains(": multiple definition of ");
    let path = text.split(":(").next().filter(|path| *path != text && !path.contains(' '));
    linker.then(|| Found {
        sign: Sign::Sure,
        kind: Kind::Linker,
        text: vec![text.to_owned()],
        place: path.map(|path| Place { path: path.to_owned(), row: None, column: None }),
    })
}
