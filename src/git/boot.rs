//! Which start of the machine this is: what was written before it and not waited for may be lost.

/// Names the time since the machine's last start; empty where that cannot be told.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
