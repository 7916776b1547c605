//! Results as text. Pure: values in, text out. `--format json` needs nothing of this: there the values are
//! what is shown.

pub mod agent;
pub mod text;
