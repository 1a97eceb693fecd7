//! The I/O benchmark: a file is read or written with one buffer size, and only that is timed.
//!
//! It follows the program of lab 1 of Cambridge's L41 course, of 2015 and of 2021. `docs/howto/io.md` is its reference. Read
//! `run.rs` first: it is one run from its preparation to its samples; `timed.rs` is the part that is timed.

mod blocks;
mod configuration;
mod cool;
mod create;
mod direct;
mod file;
mod methods;
mod options;
mod run;
mod timed;

use std::ffi::OsString;

use etude_micro::exit::{Fail, status};
use etude_micro::report::{Style, print};

use crate::options::{Operation, Options, Words};

/// Does what the arguments say, the program's name not among them; the exit status, one of sysexits(3). `program` is
/// what messages tell the user to call.
pub fn main(program: &str, arguments: impl Iterator<Item = OsString>) -> u8 {
    status(etude_micro::options::read(program, arguments).and_then(|words: Option<Words>| match words {
        None => Ok(()),
        Some(words) => perform(&words.meaning(program)?),
    }))
}

fn perform(options: &Options) -> Result<(), Fail> {
    match options.operation {
        Operation::Create => create::create(options),
        Operation::Describe => {
            let style = if options.style == Style::Json { Style::Json } else { Style::Verbose };
            print(&configuration::all(options, None), None, style)
        }
        Operation::Read | Operation::Write => {
            let outcome = run::run(options)?;
            print(&configuration::wanted(options, outcome.cooled_by), Some(&outcome.samples), options.style)
        }
    }
}
