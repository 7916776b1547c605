//! The files that `init` wrote.

use crate::domain::ledger::objects::Initialised;

pub fn init_text(done: &Initialised) -> String {
    let mut out = format!("{} ({})\n", done.dir, done.layer);
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
