//! A mailbox taken apart by git: one text per mail, decoded, without the message. Anything else is one text
//! as it stands.

use super::super::private_index::PrivateIndex;
use crate::error::{Code, Failure, Result};
use std::borrow::Cow;
use std::path::PathBuf;

/// One text with diffs in it.
#[derive(Debug)]
pub(super) struct MailPart<'a> {
    /// Which mail of the mailbox, from 1; `None` for a text that is no mail.
    pub mail: Option<usize>,
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
pub(super) fn split_mails<'a>(index: &PrivateIndex, patch: &'a [u8]) -> Result<Vec<MailPart<'a>>> {
    let content = patch.trim_ascii_start();
    let first = content.split_inclusive(|b| *b == b'\n').next().unwrap_or_default();
    if !is_mail(content, first) {
        return Ok(vec![MailPart { mail: None, text: Cow::Borrowed(patch) }]);
    }
    let folder = mail_folder(index);
    std::fs::create_dir_all(&folder).map_err(|e| Failure::io("make the directory", &folder, &e))?;
    let mut out = std::ffi::OsString::from("-o");
    out.push(&folder);
    let git = index.git_on_index()?.args(["mailsplit", "-d8"]);
    // Line ends that the whole mailbox has belong to its transport, others to the files.
    let git = if first.ends_with(b"\r\n") { git } else { git.arg("--keep-cr") };
    // Without its first line, git would take the whole mailbox for one mail.
    let envelope: &[u8] = if is_envelope(first) { b"" } else { b"From none Thu Jan  1 00:00:00 1970\n" };
    let split = git.arg(&out).stdin([envelope, content].concat()).run()?;
    if !split.success() {
        return Err(mailbox_unreadable(&split.stderr));
    }
    let count: usize =
        split.first_text().trim().parse().map_err(|_| mailbox_unreadable(&split.first_text()))?;
    (1..=count).map(|number| read_mail(index, number)).collect()
}

/// Where git puts the mails.
fn mail_folder(index: &PrivateIndex) -> PathBuf {
    index.folder().join("mail")
}

/// The line between the mails of a mailbox, as git knows it: `From`, and a time and a year at its end.
fn is_envelope(line: &[u8]) -> bool {
    let Some(colon) = line.iter().rposition(|b| *b == b':').filter(|_| line.starts_with(b"From ")) else {
        return false;
    };
    let digit = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
    let clock =
        [colon.checked_sub(4), colon.checked_sub(2), colon.checked_sub(1), Some(colon + 1), Some(colon + 2)];
    let year = line.get(colon + 3..).map(<[u8]>::trim_ascii).and_then(|rest| std::str::from_utf8(rest).ok());
    let year = year.and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
    clock.into_iter().all(digit) && year.is_some_and(|year| year > 90)
}

fn is_mail(content: &[u8], first: &[u8]) -> bool {
    if is_envelope(first) {
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

fn read_mail(index: &PrivateIndex, number: usize) -> Result<MailPart<'static>> {
    let place = |name: String| mail_folder(index).join(name);
    let failed =
        |e: std::io::Error| Failure::new(Code::Io, format!("cannot read mail {number} of the mailbox: {e}"));
    let mail = std::fs::read(place(format!("{number:08}"))).map_err(failed)?;
    let (message, diff) = (place(format!("{number:08}.message")), place(format!("{number:08}.diff")));
    let git = index.git_on_index()?.args(["mailinfo", "-n", "--no-scissors", "--quoted-cr=nowarn"]);
    let output = git.arg(message).arg(&diff).stdin(mail).run()?;
    if !output.success() {
        return Err(mailbox_unreadable(&output.stderr).detail("mail", number));
    }
    let text = std::fs::read(diff).map_err(failed)?;
    Ok(MailPart { mail: Some(number), text: Cow::Owned(text) })
}

fn mailbox_unreadable(said: &str) -> Failure {
    Failure::new(Code::PatchInvalid, format!("the mailbox cannot be read: {}", said.trim()))
        .detail("git", said.trim())
}
