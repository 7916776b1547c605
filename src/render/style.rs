//! What the views share: colours, words, and how a list, an id and a command are written. Styles are escape
//! codes that the output strips where they are not wanted.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const OPEN: Style = AnsiColor::Yellow.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();

/// How many paths of a list are shown before the rest is only counted.
pub(super) const SHOWN: usize = 10;

pub(super) fn style_text(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The text of a serialized word (`needs_confirmation` → `needs confirmation`).
pub(super) fn spaced_word(value: &impl Serialize) -> String {
    crate::domain::ledger::report::word_of(value).replace('_', " ")
}

pub(super) fn short_id(id: &str) -> String {
    id.chars().take(12).collect()
}

/// An argument vector as one line that a shell takes.
pub fn shell_line(argv: &[String]) -> String {
    let plain =
        |arg: &str| !arg.is_empty() && arg.chars().all(|c| c.is_alphanumeric() || "-_./=:@,+%".contains(c));
    let quoted: Vec<String> = argv
        .iter()
        .map(|arg| if plain(arg) { arg.clone() } else { format!("'{}'", arg.replace('\'', "'\\''")) })
        .collect();
    quoted.join(" ")
}
