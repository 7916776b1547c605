//! The files that `init` wrote.

use super::style::spaced_word;
use crate::domain::ledger::objects::{HookState, Initialised};

pub fn init_text(done: &Initialised) -> String {
    let mut out = String::new();
    if let Some(hook) = &done.hook {
        let word = spaced_word(&hook.state);
        out.push_str(&format!("hook {word}: {}\n", hook.path));
        if matches!(hook.state, HookState::Removed | HookState::Absent) {
            return out;
        }
    }
    out.push_str(&format!("{} ({})\n", done.dir, done.layer));
    for name in &done.written {
        out.push_str(&format!("  wrote {name}\n"));
    }
    for name in &done.kept {
        out.push_str(&format!("  kept  {name}\n"));
    }
    if done.verifiers.is_empty() {
        out.push_str(
            "  no tools were recognised; write verifiers of your own under verifiers/ID/verifier.toml\n",
        );
    }
    if done.layer == "committed" && !done.written.is_empty() {
        out.push_str("Commit it: only what the base commit holds counts.\n");
    }
    out
}
