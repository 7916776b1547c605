//! Where a completed change goes, with all that differs between the modes. Whoever needs to know something of
//! a mode asks here, so that a new mode is one row of this table and the code that carries it out.

use serde::{Deserialize, Serialize};

/// Where a completed change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// Into the files of the live tree.
    LocalFiles,
    /// Into the files and the index.
    Staged,
    Branch,
    Push,
    Bundle,
}

/// One row of the table.
struct ModeFacts {
    word: &'static str,
    /// Keys of the contract's `delivery` that go with it.
    keys: &'static [&'static str],
    writes_files: bool,
    index_follows: bool,
    publishes: bool,
    needs_remote: bool,
    /// False for a mode that a later version carries out.
    ready: bool,
}

/// Nothing holds; each row says what does.
const NONE: ModeFacts = ModeFacts {
    word: "",
    keys: &[],
    writes_files: false,
    index_follows: false,
    publishes: false,
    needs_remote: false,
    ready: true,
};

impl DeliveryMode {
    const fn mode_facts(self) -> ModeFacts {
        match self {
            Self::LocalFiles => ModeFacts { word: "local_files", writes_files: true, ..NONE },
            Self::Staged => ModeFacts { word: "staged", writes_files: true, index_follows: true, ..NONE },
            Self::Branch => {
                ModeFacts { word: "branch", keys: &["branch", "message"], publishes: true, ..NONE }
            }
            Self::Push => ModeFacts {
                word: "push",
                keys: &["branch", "remote", "pushOptions", "message"],
                publishes: true,
                needs_remote: true,
                ..NONE
            },
            Self::Bundle => {
                ModeFacts { word: "bundle", keys: &["path", "branch", "message"], ready: false, ..NONE }
            }
        }
    }

    /// Every mode with its word.
    pub const ALL: [(&'static str, Self); 5] = [
        Self::LocalFiles.with_word(),
        Self::Staged.with_word(),
        Self::Branch.with_word(),
        Self::Push.with_word(),
        Self::Bundle.with_word(),
    ];

    const fn with_word(self) -> (&'static str, Self) {
        (self.as_str(), self)
    }

    /// The word in contract, policy and objects.
    pub const fn as_str(self) -> &'static str {
        self.mode_facts().word
    }

    /// Keys of the contract's `delivery` object that go with it.
    pub fn delivery_keys(self) -> &'static [&'static str] {
        self.mode_facts().keys
    }

    /// True where files of the live tree are written.
    pub fn writes_files(self) -> bool {
        self.mode_facts().writes_files
    }

    /// True where the index changes together with the files.
    pub fn index_follows(self) -> bool {
        self.mode_facts().index_follows
    }

    /// True where a commit is made and a ref moved, and the live tree left alone.
    pub fn publishes(self) -> bool {
        self.mode_facts().publishes
    }

    /// True where the ref is one of a remote.
    pub fn needs_remote(self) -> bool {
        self.mode_facts().needs_remote
    }

    /// True where this version carries it out.
    pub fn is_ready(self) -> bool {
        self.mode_facts().ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_mode_under_the_word_that_the_ledger_holds() {
        for (word, mode) in DeliveryMode::ALL {
            assert_eq!(serde_json::to_value(mode).expect("writes"), word);
        }
        let unknown = serde_json::from_str::<DeliveryMode>("\"\"").expect_err("no mode").to_string();
        let words: Vec<String> = DeliveryMode::ALL.map(|(word, _)| format!("`{word}`")).to_vec();
        assert!(unknown.contains(&format!("expected one of {}", words.join(", "))), "{unknown}");
    }
}
