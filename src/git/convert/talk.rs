//! The conversation with git while it converts: one request, one answer, and what its complaints mean.

use crate::domain::value::digest::ObjectId;
use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, DetailKey, Failure, Result};
use crate::git::command::{Conversation, GitOutput};
use std::io::BufRead;

/// What git said when it could not convert a path: told from all other failures by being there.
pub const COMPLAINT: DetailKey<String> = DetailKey::new("git");

pub(super) fn ensure_started(
    slot: &mut Option<Conversation>,
    start: impl FnOnce() -> Result<Conversation>,
) -> Result<&mut Conversation> {
    match slot {
        Some(git) => Ok(git),
        None => Ok(slot.insert(start()?)),
    }
}

pub(super) fn hash_staged(git: &mut Conversation, path: &RepoPath) -> Result<ObjectId> {
    let mut request = quote_path(path.as_bytes());
    request.push(b'\n');
    let sent = git.send_request(&request);
    let mut answer = String::new();
    let read = sent.and_then(|()| git.output.read_line(&mut answer));
    complain_of_driver(&git.take_complaints(), path)?;
    read.map_err(|e| broke_off(path, &e.to_string()))?;
    answer.trim_end().parse().map_err(|_| broke_off(path, &git.take_complaints()))
}

/// One blob through `cat-file --batch --filters`. Its header tells the size before conversion only, so the
/// end is found by the answer to a second question, for a name that no content can hold by chance.
pub(super) fn read_filtered(git: &mut Conversation, path: &RepoPath, id: &ObjectId) -> Result<Vec<u8>> {
    let mark = format!("end-{:032x}", rand_mark());
    let request = [id.as_str().as_bytes(), b" ", path.as_bytes(), b"\0", mark.as_bytes(), b"\0"].concat();
    let end = format!("\n{mark} missing\n");
    let sent = git.send_request(&request);
    let mut header = String::new();
    let read = sent.and_then(|()| git.output.read_line(&mut header));
    let mut bytes = Vec::new();
    let read = read.and_then(|_| read_until(&mut git.output, end.as_bytes(), &mut bytes));
    complain_of_driver(&git.take_complaints(), path)?;
    read.map_err(|e| broke_off(path, &e.to_string()))?;
    if !header.trim_end().contains(" blob ") {
        return Err(Failure::new(Code::NotFound, format!("the repository has no blob {id} for {path}"))
            .subject(path.to_string())
            .detail("gitBlob", id.as_str()));
    }
    Ok(bytes)
}

pub(super) fn read_until(from: &mut impl BufRead, end: &[u8], into: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        // The mark ends in a newline, so whole lines are enough to look at.
        if from.by_ref().read_until(b'\n', into)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if into.ends_with(end) {
            into.truncate(into.len() - end.len());
            return Ok(());
        }
    }
}

pub(super) fn rand_mark() -> u128 {
    use std::hash::{BuildHasher, Hasher};
    let word = || u128::from(std::collections::hash_map::RandomState::new().build_hasher().finish());
    (word() << 64) | word()
}

/// Git goes on with the unconverted bytes where a driver that is not `required` fails; here that is a
/// failure.
pub(super) fn complain_of_driver(stderr: &str, path: &RepoPath) -> Result<()> {
    const TELLING: &[&str] = &[
        "external filter",
        "failed to encode",
        "BOM is",
        "cannot fork to run",
        "unexpected filter type",
        "filter '",
    ];
    let line = stderr.lines().find(|l| {
        (l.starts_with("error: ") || l.starts_with("fatal: ")) && TELLING.iter().any(|t| l.contains(t))
    });
    match line {
        None => Ok(()),
        Some(line) => Err(Failure::new(Code::Io, format!("git cannot convert {path}: {line}"))
            .subject(path.to_string())
            .with_detail(&COMPLAINT, stderr.trim())
            .remedy(
                "Check the filter driver and the attributes of this path.",
                ["git", "check-attr", "-a", "--", &path.to_string()],
            )),
    }
}

pub(super) fn conversion_failed(output: &GitOutput, path: &RepoPath) -> Failure {
    broke_off(path, output.stderr.trim())
}

pub(super) fn broke_off(path: &RepoPath, said: &str) -> Failure {
    Failure::new(Code::Io, format!("git broke off while it converted {path}: {said}"))
        .subject(path.to_string())
        .remedy(
            "Install what the filter of this path runs, or take the path out of it.",
            ["git", "check-attr", "filter", "--", &path.to_string()],
        )
}

/// A path as one line that git reads: quoted the way C does, which covers newlines and carriage returns.
pub fn quote_path(path: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            0x20..=0x7e => out.push(*byte),
            _ => out.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    out.push(b'"');
    out
}
