// Copyright 1994 Ada Björk
//! Moves boats by oars. It knows nothing of sails.
//!
//! A boat floats.

use std::collections::HashMap;
pub use crate::oars::{Oar, Blade};
extern crate rivers;

mod sails;

/// What floats.
#[derive(Debug)]
pub struct Boat<'a> {
    name: &'a str,
}

pub(crate) enum Kind { Rowing, Sailing }
pub unsafe trait Floating {
    fn floats(&self) -> bool;
}

impl<'a> Boat<'a> {
    /// Rows so many strokes.
    pub async fn row(&self, strokes: u32) -> Result<(), char> {
        let words = r#"fn not_this() "quoted" {"#;
        let more = "
fn nor_this() {";
        Err('"')
    }
}

macro_rules! stroke {
    () => {};
}
