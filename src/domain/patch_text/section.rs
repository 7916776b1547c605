//! Reading one section: headers, hunks, binary data.

use super::{Binary, Hunk, Kind, Line, Moved, Name, Reader, Section, name};
use crate::error::Result;

/// A section that begins with `diff --git`.
pub(super) fn git(reader: &mut Reader) -> Result<Section> {
    let (start, line) = (reader.at, reader.line);
    let header = reader.header()?;
    let names = name::of_git_header(header.strip_prefix(b"diff --git ").unwrap_or_default());
    let named = |bytes: &Vec<u8>| Some(Name { bytes: bytes.clone(), prefixed: true });
    let mut section = Section { line, git: true, ..Section::default() };
    if let Some((old, new)) = &names {
        (section.old, section.new) = (named(old), named(new));
    }
    let (mut created, mut deleted) = (false, false);
    let mut told = names.is_some();
    while let Some(next) = reader.peek() {
        if next.starts_with(b"--- ") {
            let (old, new) = name_lines(reader)?;
            (section.old, section.new) = match section.moved {
                Some(_) => (section.old.or(old), section.new.or(new)),
                None => (old, new),
            };
            told = true;
            hunks(reader, &mut section)?;
            if section.hunks.is_empty() {
                return Err(reader.invalid("the file's hunks are missing: the patch may have been cut off"));
            }
            break;
        }
        if next.starts_with(b"@@ -") {
            hunks(reader, &mut section)?;
            break;
        }
        if next.starts_with(b"GIT binary patch") {
            section.binary = Binary::Data;
            binary(reader)?;
            break;
        }
        if next.starts_with(b"Binary files ") || next.starts_with(b"Files ") {
            section.binary = Binary::Missing;
            reader.skip();
            break;
        }
        if !extended(reader, &mut section, &mut created, &mut deleted)? {
            break;
        }
        told |= section.moved.is_some();
    }
    if !told {
        return Err(reader.invalid("the file's name cannot be told from its header"));
    }
    let changes_mode = section.index.is_none() && section.old_mode != section.new_mode;
    let empty = section.hunks.is_empty() && section.binary == Binary::No && section.moved.is_none();
    if empty && !created && !deleted && !changes_mode {
        return Err(reader.invalid("the file's change is missing: the patch may have been cut off"));
    }
    section.old = section.old.filter(|_| !created);
    section.new = section.new.filter(|_| !deleted);
    section.range = start..reader.at;
    Ok(section)
}

/// One extended header line; false where it is none.
fn extended(
    reader: &mut Reader,
    section: &mut Section,
    created: &mut bool,
    deleted: &mut bool,
) -> Result<bool> {
    let line = reader.peek().unwrap_or_default().to_vec();
    let value = |prefix: &str| line.strip_prefix(prefix.as_bytes()).map(<[u8]>::trim_ascii_end);
    let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
    let plain = |bytes: &[u8]| Some(Name { bytes: name::whole(bytes), prefixed: false });
    let exact =
        |prefix: &str| line.strip_prefix(prefix.as_bytes()).map(|v| v.strip_suffix(b"\n").unwrap_or(v));
    if let Some(mode) = value("old mode ") {
        section.old_mode = text(mode);
    } else if let Some(mode) = value("new mode ") {
        section.new_mode = text(mode);
    } else if let Some(mode) = value("new file mode ") {
        (section.new_mode, *created) = (text(mode), true);
    } else if let Some(mode) = value("deleted file mode ") {
        (section.old_mode, *deleted) = (text(mode), true);
    } else if let Some(path) = exact("rename from ").or_else(|| exact("rename old ")) {
        (section.old, section.moved) = (plain(path), Some(Moved::Renamed));
    } else if let Some(path) = exact("rename to ").or_else(|| exact("rename new ")) {
        (section.new, section.moved) = (plain(path), Some(Moved::Renamed));
    } else if let Some(path) = exact("copy from ") {
        (section.old, section.moved) = (plain(path), Some(Moved::Copied));
    } else if let Some(path) = exact("copy to ") {
        (section.new, section.moved) = (plain(path), Some(Moved::Copied));
    } else if let Some(ids) = value("index ") {
        index(reader, section, &String::from_utf8_lossy(ids))?;
    } else if value("similarity index ").or_else(|| value("dissimilarity index ")).is_none() {
        return Ok(false);
    }
    reader.header()?;
    Ok(true)
}

fn index(reader: &Reader, section: &mut Section, value: &str) -> Result<()> {
    let mut words = value.split(' ');
    let ids = words.next().and_then(|ids| ids.split_once(".."));
    let hex = |id: &str| (4..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
    let (old, new) = ids
        .filter(|(old, new)| hex(old) && hex(new))
        .ok_or_else(|| reader.invalid("its index line does not name two blobs"))?;
    section.index = Some((old.to_lowercase(), new.to_lowercase()));
    if let Some(mode) = words.next() {
        section.old_mode = Some(mode.to_owned());
        section.new_mode = Some(mode.to_owned());
    }
    Ok(())
}

/// A section that begins with `---`.
pub(super) fn plain(reader: &mut Reader) -> Result<Section> {
    let (start, line) = (reader.at, reader.line);
    let (old, new) = name_lines(reader)?;
    let mut section = Section { line, old, new, ..Section::default() };
    hunks(reader, &mut section)?;
    section.range = start..reader.at;
    Ok(section)
}

/// The two lines `---` and `+++`.
fn name_lines(reader: &mut Reader) -> Result<(Option<Name>, Option<Name>)> {
    let mut take = |prefix: &[u8]| -> Result<Option<Name>> {
        if !reader.peek().is_some_and(|line| line.starts_with(prefix)) {
            return Err(reader.invalid("a `---` line must be followed by a `+++` line"));
        }
        let (name, tail) = name::of_line(&reader.header()?[4..]);
        // `diff -N` writes a file that is not there with the time zero.
        let absent = tail.starts_with(b"1970-01-01 ") || tail.starts_with(b"1969-12-31 ");
        Ok(name.filter(|_| !absent).map(|bytes| Name { bytes, prefixed: true }))
    };
    let old = take(b"--- ")?;
    Ok((old, take(b"+++ ")?))
}

fn hunks(reader: &mut Reader, section: &mut Section) -> Result<()> {
    while reader.peek().is_some_and(|line| line.starts_with(b"@@ -")) {
        let hunk = hunk(reader)?;
        let overlap = section.hunks.last().is_some_and(|last| {
            let end = last.old_start + last.old_count;
            hunk.old_start < end || hunk.old_start < last.old_start
        });
        if overlap {
            return Err(reader.invalid("a hunk overlaps the one before it, or stands before it"));
        }
        section.hunks.push(hunk);
    }
    let Some(line) = reader.peek() else { return Ok(()) };
    let signature = line.trim_ascii_end() == b"--";
    let body = matches!(line.first(), Some(b'+' | b'-' | b' ' | b'\\'));
    if body && !signature && !reader.looks_plain() {
        return Err(reader.invalid("the hunk has more lines than its header says"));
    }
    Ok(())
}

fn hunk(reader: &mut Reader) -> Result<Hunk> {
    let line = reader.line;
    let broken = reader.invalid("the hunk's header is not of the form `@@ -1,2 +3,4 @@`");
    let text = reader.header()?;
    let Some((header, [(old_start, old_count), (new_start, new_count)])) = numbers(text) else {
        return Err(broken);
    };
    if (old_start == 0) != (old_start == 0 && old_count == 0) || (new_start == 0 && new_count != 0) {
        return Err(broken);
    }
    let mut hunk = Hunk { line, header, old_start, old_count, new_start, new_count, lines: Vec::new() };
    let (mut old, mut new) = (old_count, new_count);
    while old > 0 || new > 0 {
        let fewer = "the hunk has fewer lines than its header says";
        let Some(text) = reader.peek() else { return Err(reader.invalid(fewer)) };
        let kind = match text[0] {
            b' ' | b'\n' => Kind::Context,
            b'-' => Kind::Removed,
            b'+' => Kind::Added,
            b'\\' => {
                no_newline(reader, &mut hunk)?;
                continue;
            }
            _ => return Err(reader.invalid(fewer)),
        };
        let (from_old, from_new) = (usize::from(kind != Kind::Added), usize::from(kind != Kind::Removed));
        if from_old > old || from_new > new {
            return Err(reader.invalid("the hunk's lines do not fit the counts in its header"));
        }
        if !text.ends_with(b"\n") {
            return Err(reader.invalid("it ends in the middle of a line: its last bytes are missing"));
        }
        (old, new) = (old - from_old, new - from_new);
        let bytes = if text == b"\n" { text } else { &text[1..] };
        hunk.lines.push(Line { kind, bytes: bytes.to_vec() });
        reader.skip();
    }
    if reader.peek().is_some_and(|line| line.starts_with(b"\\ ")) {
        no_newline(reader, &mut hunk)?;
    }
    Ok(hunk)
}

/// `\ No newline at end of file` takes the newline off the line before it.
fn no_newline(reader: &mut Reader, hunk: &mut Hunk) -> Result<()> {
    match hunk.lines.last_mut() {
        Some(line) if line.bytes.ends_with(b"\n") => drop(line.bytes.pop()),
        _ => return Err(reader.invalid("there is no line whose newline could be missing")),
    }
    reader.header().map(|_| ())
}

/// `@@ -a,b +c,d @@`: the header up to the second `@@`, and the numbers.
fn numbers(line: &[u8]) -> Option<(String, [(usize, usize); 2])> {
    let rest = line.strip_prefix(b"@@ ")?;
    let end = rest.windows(3).position(|w| w == b" @@")?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u32>().ok()).flatten();
        Some((number(start)? as usize, number(count)? as usize))
    };
    let (old, new) = text.split_once(' ')?;
    let numbers = [range(old.strip_prefix('-')?)?, range(new.strip_prefix('+')?)?];
    Some((format!("@@ {text} @@"), numbers))
}

/// `GIT binary patch` with one or two blocks, each ended by an empty line.
fn binary(reader: &mut Reader) -> Result<()> {
    reader.header()?;
    let starts = |line: &[u8]| line.starts_with(b"literal ") || line.starts_with(b"delta ");
    if !reader.peek().is_some_and(starts) {
        return Err(reader.invalid("binary content is missing"));
    }
    while reader.peek().is_some_and(starts) {
        while reader.peek().is_some_and(|line| line != b"\n") {
            reader.header()?;
        }
        if reader.peek().is_none() {
            return Err(
                reader.invalid("binary content ends without its empty line: its last bytes are missing")
            );
        }
        reader.skip();
    }
    Ok(())
}
