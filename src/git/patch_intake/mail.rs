//! A mailbox taken apart by git: one text per mail, decoded, without the message. Anything else is one text as it stands.

use super::super::isolated::Isolated;
use crate::error::{Code, Failure, Result};
use std::borrow::Cow;

/// One text with diffs in it.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// Which mail of the mailbox, from 1; `None` for a text that is no mail.
    pub mail: Option<usize>,
    /// The text.
    pub text: Cow<'a, [u8]>,
}

/// Headers that a mail may begin with. Another first word is no mail.
const HEADERS: &[&str] = &[
    "from:",
    "subject:",
    "date:",
    "to:",
    "cc:",
    "message-id:",
    "received:",
    "return-path:",
    "mime-version:",
    "content-type:",
    "delivered-to:",
    "in-reply-to:",
    "references:",
    "list-id:",
    "x-mailer:",
    "reply-to:",
    "sender:",
];

/// The texts of a patch as it came.
pub(super) fn parts<'a>(isolated: &Isolated, patch: &'a [u8]) -> Result<Vec<Part<'a>>> {
    let content = patch.trim_ascii_start();
    let first = content.split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
    if !is_mail(content, first) {
        return Ok(vec![Part { mail: None, text: Cow::Borrowed(patch) }]);
    }
    let folder = isolated.folder();
    let mut out = std::ffi::OsString::from("-o");
    out.push(&folder);
    let git = isolated.git().args(["mailsplit", "-d8"]);
    // Line ends that the whole mailbox has belong to its transport, others to the files.
    let git = if first.ends_with(b"\r\n") { git } else { git.arg("--keep-cr") };
    // Without its first line, git would take the whole mailbox for one mail.
    let envelope: &[u8] =
        if first.starts_with(b"From ") { b"" } else { b"From none Thu Jan  1 00:00:00 1970\n" };
    let split = git.arg(&out).stdin([envelope, content].concat()).run()?;
    if !split.success() {
        return Err(unreadable(&split.stderr));
    }
    let count: usize = split.line().trim().parse().map_err(|_| unreadable(&split.line()))?;
    (1..=count).map(|number| one(isolated, number)).collect()
}

fn is_mail(content: &[u8], first: &[u8]) -> bool {
    if first.starts_with(b"From ") {
        return true;
    }
    let word = first.split_inclusive(|b| *b == b':').next().unwrap_or_default().to_ascii_lowercase();
    let head = content.split(|b| *b == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    let known = |line: &[u8]| {
        let lower = line.to_ascii_lowercase();
        lower.starts_with(b"subject:") || lower.starts_with(b"from:") || lower.starts_with(b"content-type:")
    };
    HEADERS.iter().any(|header| header.as_bytes() == word) && head.into_iter().any(known)
}

fn one(isolated: &Isolated, number: usize) -> Result<Part<'static>> {
    let place = |name: String| isolated.folder().join(name);
    let failed =
        |e: std::io::Error| Failure::new(Code::Io, format!("cannot read mail {number} of the mailbox: {e}"));
    let mail = std::fs::read(place(format!("{number:08}"))).map_err(failed)?;
    let (message, diff) = (place(format!("{number:08}.message")), place(format!("{number:08}.diff")));
    let git = isolated.git().args(["mailinfo", "-n", "--no-scissors", "--quoted-cr=nowarn"]);
    let output = git.arg(message).arg(&diff).stdin(mail).run()?;
    if !output.success() {
        return Err(unreadable(&output.stderr).detail("mail", number));
    }
    let text = std::fs::read(diff).map_err(failed)?;
    Ok(Part { mail: Some(number), text: Cow::Owned(text) })
}

fn unreadable(said: &str) -> Failure {
    Failure::new(Code::PatchInvalid, format!("the mailbox cannot be read: {}", said.trim()))
        .detail("git", said.trim())
}
