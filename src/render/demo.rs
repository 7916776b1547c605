//! The end of the demo; its steps are shown as they happen.

use crate::domain::ledger::objects::Demo;

pub fn demo_text(demo: &Demo) -> String {
    format!(
        "The repository lies in {}\nLook around: git -C {} tender status\n",
        demo.repository, demo.repository
    )
}
