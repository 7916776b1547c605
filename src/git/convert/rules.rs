//! What applies to which path: decided by git's attributes and configuration, recognised here so that plain
//! files skip git.

use super::{ConversionAttributes, Git};
use crate::git::drivers::Driver;
use std::collections::BTreeMap;

/// How a path gets from one form to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The bytes are the same.
    Plain,
    /// Git converts, no driver runs.
    BuiltIn,
    /// Git converts and may run the driver.
    Driver,
}

/// What configuration and attributes say of the paths at hand.
pub(super) struct Rules {
    pub(super) autocrlf: bool,
    pub(super) crlf_out: bool,
    pub(super) drivers: BTreeMap<String, Driver>,
    pub(super) paths: Vec<(ConversionAttributes, bool)>,
}

impl Rules {
    pub(super) fn is_driven(&self, at: usize, acts: impl Fn(&Driver) -> bool) -> bool {
        let (attributes, allowed) = &self.paths[at];
        let driver = attributes.filter.as_ref().and_then(|name| self.drivers.get(name));
        *allowed && driver.is_some_and(acts)
    }

    pub(super) fn inward_way(&self, at: usize, bytes: &[u8]) -> Way {
        let attributes = &self.paths[at].0;
        if self.is_driven(at, Driver::has_clean) {
            Way::Driver
        } else if attributes.encoding.is_some()
            || (attributes.ident && has_ident(bytes))
            || (attributes.line_ends(self.autocrlf) && bytes.contains(&b'\r'))
        {
            Way::BuiltIn
        } else {
            Way::Plain
        }
    }

    pub(super) fn outward_way(&self, at: usize, bytes: &[u8]) -> Way {
        let attributes = &self.paths[at].0;
        if self.is_driven(at, Driver::has_smudge) {
            Way::Driver
        } else if attributes.encoding.is_some()
            || (attributes.ident && has_ident(bytes))
            || (self.writes_crlf(attributes) && bytes.contains(&b'\n'))
        {
            Way::BuiltIn
        } else {
            Way::Plain
        }
    }

    pub(super) fn writes_crlf(&self, attributes: &ConversionAttributes) -> bool {
        let crlf = attributes.eol.as_deref().map_or(self.crlf_out, |eol| eol == "crlf");
        crlf && attributes.line_ends(self.autocrlf)
    }

    pub(super) fn conversion_kind(&self, at: usize) -> String {
        let attributes = &self.paths[at].0;
        let mut parts = Vec::new();
        if self.is_driven(at, Driver::has_smudge)
            && let Some((name, driver)) =
                attributes.filter.as_ref().and_then(|name| self.drivers.get_key_value(name))
        {
            parts.push(format!("filter={name} {}", driver.smudge_digest()));
        }
        if let Some(encoding) = &attributes.encoding {
            parts.push(format!("encoding={encoding}"));
        }
        if attributes.ident {
            parts.push("ident".to_owned());
        }
        if self.writes_crlf(attributes) {
            parts.push(format!("crlf,text={}", attributes.text.as_deref().unwrap_or("auto")));
        }
        parts.join(" ")
    }

    /// A call in which no driver runs.
    pub(super) fn silence_drivers(&self, mut git: Git) -> Git {
        for name in self.drivers.keys() {
            for key in ["clean", "smudge", "process", "required"] {
                git = git.empty_setting(&format!("filter.{name}.{key}"));
            }
        }
        git
    }
}

pub(super) fn has_ident(bytes: &[u8]) -> bool {
    bytes.windows(3).any(|w| w == b"$Id")
}
