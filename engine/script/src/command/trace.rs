//! `etude script TRACE`: a script of a trace.

use std::ffi::OsString;

use super::{Failed, usage};

/// HOOK: what makes scripts of traces is called here. `words` are all arguments: the trace, `-o FILE`, and the options
/// of that module; `super::files::write` writes the script.
pub fn script(words: Vec<OsString>) -> Result<(), Failed> {
    let first = words[0].to_string_lossy();
    Err(usage(&format!(
        "{first}: expected check, cut, filter, repeat, merge, clone or scale and a script, or --events and a trace"
    )))
}
