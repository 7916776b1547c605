//! The manual pages that were written.

use crate::domain::ledger::objects::ManualPages;

pub fn manual_text(written: &ManualPages) -> String {
    format!(
        "{} pages in {}; `git tender --help` finds them there if `man` does\n",
        written.pages.len(),
        written.dir
    )
}
