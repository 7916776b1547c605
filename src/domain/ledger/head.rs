//! The last row of the ledger at some moment, by its place and its hash.
//!
//! Each row's hash covers all rows before it. Whoever keeps such a head outside the ledger can tell later
//! whether the ledger still has that history.

use crate::domain::value::digest::Sha256;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerHead {
    /// Position of the row, from 1.
    pub seq: i64,
    /// Its hash.
    pub sha256: Sha256,
}

/// A head that is kept outside the ledger, and that the ledger does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LostHead {
    /// The task in whose worktree's git directory it was found.
    pub task_id: String,
    pub worktree: String,
    #[serde(flatten)]
    pub head: LedgerHead,
}

impl LostHead {
    /// What was lost, as a clause.
    pub fn clause(&self) -> String {
        format!("row {} is missing, which the worktree of {} knows", self.head.seq, self.task_id)
    }
}

impl fmt::Display for LedgerHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.sha256)
    }
}

impl FromStr for LedgerHead {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (seq, sha256) = text.split_once(':').ok_or(())?;
        Ok(Self { seq: seq.parse().map_err(|_| ())?, sha256: sha256.parse().map_err(|_| ())? })
    }
}

/// Where heads are kept outside the ledger, and which start of the machine it is that writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadAnchor {
    pub path: PathBuf,
    /// Empty where that cannot be told.
    pub boot: String,
}

/// What is kept there: a head whose row is on the disk, and a later one whose row nobody waited for. Only
/// the end of the machine can take that row, and the next start has another name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptHeads {
    pub safe: Option<LedgerHead>,
    /// The later head, with the start of the machine in which it was written.
    pub late: Option<(LedgerHead, String)>,
}

impl KeptHeads {
    /// The heads that the ledger must have in this start of the machine, the later one first.
    pub fn due_heads(&self, boot: &str) -> impl Iterator<Item = LedgerHead> {
        let late = self.late.as_ref().filter(|(_, of)| of == boot && !boot.is_empty()).map(|(head, _)| *head);
        late.into_iter().chain(self.safe)
    }
}

impl fmt::Display for KeptHeads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(safe) = &self.safe {
            writeln!(f, "{safe}")?;
        }
        match &self.late {
            Some((late, boot)) => writeln!(f, "late {late} {boot}"),
            None => Ok(()),
        }
    }
}

impl FromStr for KeptHeads {
    type Err = ();

    /// A file that a power cut left empty, or short, says nothing.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut kept = Self::default();
        for line in text.strip_suffix('\n').ok_or(())?.split('\n') {
            match line.strip_prefix("late ").map(|late| late.split_once(' ').ok_or(())) {
                None => kept.safe = Some(line.parse()?),
                Some(late) => {
                    let (head, boot) = late?;
                    kept.late = Some((head.parse()?, boot.to_owned()));
                }
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_is_written_and_nothing_else_is_one() {
        let head = LedgerHead { seq: 12, sha256: Sha256::of(b"row") };
        let text = head.to_string();
        assert_eq!(text.parse(), Ok(head));
        for other in ["", "12", &text[1..text.len() - 1], &text.replace(':', ""), &format!("{text}\n")] {
            assert_eq!(other.parse::<LedgerHead>(), Err(()), "{other:?}");
        }
    }

    #[test]
    fn a_late_head_is_due_in_the_start_of_the_machine_that_wrote_it() {
        let [safe, late] = [1, 2].map(|seq| LedgerHead { seq, sha256: Sha256::of(b"row") });
        for kept in [
            KeptHeads { safe: Some(safe), late: None },
            KeptHeads { safe: Some(safe), late: Some((late, "boot-1".to_owned())) },
            KeptHeads { safe: None, late: Some((late, "boot-1".to_owned())) },
        ] {
            assert_eq!(kept.to_string().parse(), Ok(kept));
        }
        let kept = KeptHeads { safe: Some(safe), late: Some((late, "boot-1".to_owned())) };
        let due = |boot: &str| kept.due_heads(boot).collect::<Vec<_>>();
        assert_eq!(due("boot-1"), [late, safe]);
        assert_eq!((due("boot-2"), due("")), (vec![safe], vec![safe]));
        let nameless = KeptHeads { late: Some((late, String::new())), ..kept.clone() };
        assert_eq!(nameless.due_heads("").collect::<Vec<_>>(), [safe]);
        for cut in ["", "\n", "1:", &kept.to_string()[..20], kept.to_string().trim_end()] {
            assert_eq!(cut.parse::<KeptHeads>(), Err(()), "{cut:?}");
        }
    }
}
