//! `etude script import` and `etude script export`: scripts from other programs, and for them.

use std::ffi::OsString;

use etude_quantity::counted;
use etude_terminal::complain;
use lexopt::prelude::*;

use super::{Failed, files, usage};

struct Options {
    input: OsString,
    output: Option<OsString>,
    quiet: bool,
}

/// Makes a script of a text.
pub fn import(words: Vec<OsString>) -> Result<(), Failed> {
    let options = options(words).map_err(|error| usage(&format!("import: {error}")))?;
    let shown = files::shown(&options.input);
    let text = files::bytes(&options.input)?;
    let imported = crate::import(&text).map_err(|what| (format!("{shown}:{what}"), 3))?;
    files::write(&imported.script, options.output.as_ref())?;
    if !options.quiet {
        let (steps, left_out) = (imported.script.steps.len() as u64, imported.left_out);
        complain!(
            "etude script: {shown}: {}: {}, {left_out} requests left out",
            imported.format,
            counted(steps, "step")
        );
    }
    Ok(())
}

/// Writes what fio plays of a script.
pub fn export(words: Vec<OsString>) -> Result<(), Failed> {
    let options = options(words).map_err(|error| usage(&format!("export: {error}")))?;
    let script = files::read(&options.input)?.script;
    let mut done = crate::Exported::default();
    files::put(options.output.as_ref(), |out| {
        done = crate::iolog(&script, out)?;
        Ok(())
    })?;
    if !options.quiet {
        complain!(
            "etude script: {}: {}, {}, {} of {}; {} left out",
            files::shown(&options.input),
            counted(done.reads, "read"),
            counted(done.writes, "write"),
            counted(done.syncs, "sync"),
            counted(done.files, "file"),
            counted(done.left_out, "call")
        );
    }
    Ok(())
}

fn options(words: Vec<OsString>) -> Result<Options, lexopt::Error> {
    let (mut input, mut output, mut quiet) = (None, None, false);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('o') | Long("output") => output = Some(parser.value()?),
            Short('q') | Long("quiet") => quiet = true,
            Value(word) if input.is_none() => input = Some(word),
            _ => return Err(argument.unexpected()),
        }
    }
    let input = input.ok_or("expected a file")?;
    Ok(Options { input, output, quiet })
}
