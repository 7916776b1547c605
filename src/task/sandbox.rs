//! Which confinement the runs of a task get: as its contract and the user's configuration ask for, and as
//! this machine can give.
//!
//! What the machine offers is tried once for each start of it, program and bubblewrap; the answer is kept, so
//! that a command that runs nothing starts nothing.

use super::session::Session;
use crate::domain::contract::{Contract, SandboxWish};
use crate::error::{Code, Failure, Result};
use crate::process::command::SandboxLayer;
use crate::process::sandbox::{find_bubblewrap, stamps_of_files};
use crate::process::{SandboxGrant, SandboxOffer};
use crate::store::layout::{create_private_dir, replace_private_unsynced};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The user's key for it, in git's configuration.
const KEY: &str = "tender.sandbox";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskedTier {
    Nothing,
    Best,
    Exactly(SandboxLayer),
}

/// The offer as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct KeptOffer {
    /// What it was tried with.
    key: String,
    offer: SandboxOffer,
}

/// What the runs of a task with this contract get.
///
/// # Errors
/// `config.invalid` where the configuration asks for what there is not.
pub fn grant_sandbox(session: &Session, contract: &Contract) -> Result<SandboxGrant> {
    if session.machine.no_sandbox && contract.sandbox == SandboxWish::Optional {
        return Ok(SandboxGrant::Unconfined);
    }
    let configured = session.repository.config_value(KEY)?;
    let asked = match configured.as_deref() {
        None | Some("none") if contract.sandbox_in_words && contract.sandbox == SandboxWish::Required => {
            AskedTier::Best
        }
        None | Some("none") => AskedTier::Nothing,
        Some("best") => AskedTier::Best,
        Some("partial") => AskedTier::Exactly(SandboxLayer::Partial),
        Some("full") => AskedTier::Exactly(SandboxLayer::Full),
        Some(other) => return Err(unknown_tier(other)),
    };
    if asked == AskedTier::Nothing {
        return Ok(SandboxGrant::Unconfined);
    }
    Ok(grant_of_offer(asked, kept_offer(session)))
}

fn grant_of_offer(asked: AskedTier, offer: SandboxOffer) -> SandboxGrant {
    let layer = match asked {
        AskedTier::Exactly(layer) if offer.layer >= layer => layer,
        AskedTier::Best if offer.layer > SandboxLayer::None => offer.layer,
        _ => return SandboxGrant::Refused(offer.lacks.join("; ")),
    };
    SandboxGrant::Confined { layer, bubblewrap: offer.bubblewrap }
}

fn unknown_tier(value: &str) -> Failure {
    Failure::new(Code::ConfigInvalid, format!("{KEY} is {value:?}, which is no tier"))
        .subject(KEY)
        .expected("best, full, partial or none", value)
        .remedy("Ask for the best that this machine has.", ["git", "config", KEY, "best"])
}

fn kept_offer(session: &Session) -> SandboxOffer {
    let machine = &session.machine;
    let path = machine.vars.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let bubblewrap = find_bubblewrap(path);
    let files: Vec<&Path> = std::iter::once(machine.program.as_path()).chain(bubblewrap.as_deref()).collect();
    let key = stamps_of_files(&files);
    let folder = session.layout.digests();
    let file = folder.join("sandbox.json");
    let kept = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<KeptOffer>(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| kept.key == key) {
        return kept.offer;
    }
    let offer = SandboxOffer::try_tiers(&machine.program, path);
    let kept = KeptOffer { key, offer };
    // Where it cannot be kept it is tried again.
    let bytes = serde_json::to_vec(&kept).unwrap_or_default();
    drop(create_private_dir(&folder).and_then(|()| replace_private_unsynced(&file, &bytes)));
    kept.offer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_refused_with_its_causes_and_never_less_is_given() {
        let offer = |layer| SandboxOffer {
            layer,
            lacks: vec!["full: no bwrap".to_owned()],
            ..SandboxOffer::default()
        };
        let (full, partial) = (SandboxLayer::Full, SandboxLayer::Partial);
        let word = |asked, has| grant_of_offer(asked, offer(has)).as_str();
        assert_eq!(word(AskedTier::Best, full), "full");
        assert_eq!(word(AskedTier::Best, partial), "partial");
        assert_eq!(word(AskedTier::Best, SandboxLayer::None), "unavailable");
        assert_eq!(word(AskedTier::Exactly(partial), full), "partial");
        assert_eq!(word(AskedTier::Exactly(full), partial), "unavailable");
        let SandboxGrant::Refused(why) = grant_of_offer(AskedTier::Exactly(full), offer(partial)) else {
            panic!("it is refused")
        };
        assert_eq!(why, "full: no bwrap");
    }
}
