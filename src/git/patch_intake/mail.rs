//! Mails with patches in them, taken apart by git: several in one file, encoded bodies, signatures.

use crate::error::{Code, Failure, Result};
use crate::git::private_index::PrivateIndex;

/// The patches of the input, in their order: its mails, or the input itself where it is none.
pub(super) fn patches(index: &PrivateIndex, input: &[u8]) -> Result<Vec<Vec<u8>>> {
    if !is_mail(input) {
        return Ok(vec![input.to_vec()]);
    }
    if input.windows(2).any(|w| w == b"\r\n") && header_lines(input).all(|line| line.ends_with(b"\r")) {
        return Err(Failure::new(
            Code::PatchInvalid,
            "the mail's line ends were converted to CRLF, so what the patch changes cannot be told",
        )
        .remedy("Send it as it was made, as a file or an attachment.", ["git", "format-patch", "--stdout"]));
    }
    let folder = index.folder().join("mail");
    let failed = |e: std::io::Error| Failure::io("use the directory", &folder, &e);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut option = std::ffi::OsString::from("-o");
    option.push(&folder);
    // `-b` takes a single mail without its `From ` line, too.
    let split = index.git().args(["mailsplit", "--keep-cr", "-b"]).arg(option).stdin(input.to_vec()).run()?;
    let count: usize = split.line().trim().parse().unwrap_or(0);
    if !split.success() || count == 0 {
        return Err(split.failure());
    }
    let mut found = Vec::new();
    for number in 1..=count {
        let mail = std::fs::read(folder.join(format!("{number:04}"))).map_err(failed)?;
        let patch = folder.join("patch");
        let info = index.git().arg("mailinfo").arg(folder.join("message")).arg(&patch).stdin(mail).run()?;
        if !info.success() {
            return Err(Failure::new(
                Code::PatchInvalid,
                format!("mail {number} cannot be read: {}", info.stderr.trim()),
            ));
        }
        let text = std::fs::read(&patch).map_err(failed)?;
        // A cover letter brings no patch.
        let letter =
            !text.split(|b| *b == b'\n').any(|l| l.starts_with(b"diff --git ") || l.starts_with(b"--- "));
        if !(letter && count > 1) {
            found.push(text);
        }
    }
    Ok(found)
}

fn header_lines(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.split(|b| *b == b'\n').take_while(|line| !line.trim_ascii().is_empty())
}

/// A mailbox line or mail headers before anything else.
fn is_mail(input: &[u8]) -> bool {
    let start = input.trim_ascii_start();
    if start.starts_with(b"From ") {
        return true;
    }
    let mut headers = header_lines(start).map(|line| line.trim_ascii_end().to_ascii_lowercase());
    let known = |line: &[u8]| {
        [
            &b"from:"[..],
            b"subject:",
            b"date:",
            b"message-id:",
            b"mime-version:",
            b"content-type:",
            b"to:",
            b"return-path:",
        ]
        .iter()
        .any(|name| line.starts_with(name))
    };
    headers.next().is_some_and(|line| known(&line))
}
