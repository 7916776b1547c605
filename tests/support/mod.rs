//! The harness: a hermetic laboratory, builders for contracts and verifiers, and what tests compare.

pub mod answer;
pub mod contract;
pub mod deadly;
pub mod http;
pub mod lab;
pub mod mcp;
pub mod remote;
pub mod repo;
pub mod shape;
pub mod snapshot;
pub mod verifier;
pub mod worker;

pub use answer::{Answer, Out};
pub use contract::Contract;
pub use lab::Lab;
pub use repo::{Repo, Task};
pub use snapshot::Snapshot;
pub use verifier::Verifier;

/// Small deterministic random numbers, so that a failing trial can be run again from its seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 16) % bound.max(1)
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let bound = u64::try_from(all.len()).expect("fits");
        all[usize::try_from(self.below(bound)).expect("fits")]
    }
}

/// A number from the environment, or the default.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether the tests run as root, where permission bits stop nothing.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says that a test could not be made here. In CI that is a failure: there nothing may be missing.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "this must not be skipped in CI: {why}");
    say(&format!("SKIPPED: {why}"));
}

/// A line that is to be seen although the test passes: the harness keeps only what is printed by the macros.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
