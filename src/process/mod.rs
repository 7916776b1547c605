//! Starting other programs: one launcher, one supervisor, one way of capturing what they print.
//!
//! What holds here:
//! - `launch` is the only place that starts a program other than git, and it starts none directly: the binary
//!   runs itself again as a supervisor (`helper`), which starts the program. So the supervisor, not the
//!   harness, is the parent; it can become child subreaper for this one run and outlives a killed harness
//!   long enough to end everything that the run left behind (`supervise`).
//! - A program sees exactly the environment, the working directory and the standard input that it was given;
//!   every other descriptor is closed at exec. `environment` makes the fixed part, `home` the private `HOME`.
//! - What a program prints goes through `redact`, then through the cap of `output`; the raw bytes are stored
//!   nowhere, and a flood costs no more memory than the cap.
//!
//! - What a program is confined to is a value (`command`), carried out by bubblewrap around the supervisor
//!   (`mounts`) and by the thread that starts the program (`confine`). Where it cannot be had, nothing is
//!   started. What the machine has is tried by `sandbox`.

pub mod command;
mod confine;
pub mod environment;
pub mod helper;
pub mod home;
pub mod launch;
mod mounts;
pub mod output;
pub mod redact;
pub mod sandbox;
mod supervise;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wire;

pub use command::{Confinement, FinishedRun, Invocation, ProgramEnd, SandboxLayer};
pub use environment::{base_environment, network_variables};
pub use helper::find_program;
pub use home::PrivateHome;
pub use launch::{confinement_refused, run_program};
pub use redact::{Secrets, secret_values, secret_values_of_settings};
pub use sandbox::{SandboxGrant, SandboxOffer};
