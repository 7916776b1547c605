//! Results as text. Pure: values in, text out.

pub mod text;
