//! `etude script import` and `etude script export`: scripts from other programs, and for them.

use std::ffi::OsString;

use clap::Args;
use etude_options::Failed;
use etude_quantity::counted;
use etude_terminal::complain;

use super::files;

#[derive(Args)]
pub struct Import {
    /// File of the script (default, and -: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    #[arg(value_name = "TEXT")]
    input: OsString,
}

#[derive(Args)]
pub struct Export {
    /// File of the iolog (default, and -: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<OsString>,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    #[arg(value_name = "SCRIPT")]
    input: OsString,
}

/// Makes a script of a text.
pub fn import(options: &Import) -> Result<(), Failed> {
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
pub fn export(options: &Export) -> Result<(), Failed> {
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
