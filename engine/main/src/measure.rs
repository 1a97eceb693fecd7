//! `etude-engine measure` and `aptime`: one measured command.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use etude_measure::{BARRIER, Request};
use etude_options::values;

/// Run one command and append its measurement to the results
#[derive(Parser)]
#[command(
    version,
    override_usage = "[options] COMMAND [ARGUMENT ...]",
    after_help = "exit status: the command's; 128+n for signal n; 127 not found; 126 not executable; 2 usage; 125 the \
                  barrier was broken, mostly by the end of another worker; 5 results not writable, or no barrier there"
)]
struct Options {
    /// Append to FILE (default: $APLOG, else standard error)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object a line, not a block
    #[arg(long)]
    json: bool,
    /// First wait until all workers of the trial are here ($APIPCKEY); a worker alone goes on at once
    #[arg(long)]
    barrier: bool,
    /// The thread of this measurement (default: $APTHREAD, else 1)
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX))]
    thread: Option<u64>,
    /// The epoch of this measurement (default: $APEPOCH, else 1)
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX))]
    epoch: Option<u64>,
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// Runs the command of `program`'s arguments; the exit status.
pub fn measure(program: &str, arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(program, arguments, |options: Options| {
        let thread = number(options.thread, "thread", "APTHREAD");
        let epoch = number(options.epoch, "epoch", "APEPOCH");
        Ok(etude_measure::measure(&Request {
            argv: options.command,
            output: options.output.or_else(log_file),
            json: options.json,
            thread: thread.map_err(|why| (why, etude_options::USAGE))?,
            epoch: epoch.map_err(|why| (why, etude_options::USAGE))?,
            barrier: options.barrier.then(barrier).flatten(),
        }))
    })
}

fn barrier() -> Option<String> {
    let address = std::env::var_os(BARRIER).filter(|address| !address.is_empty())?;
    Some(address.to_string_lossy().into_owned())
}

fn log_file() -> Option<PathBuf> {
    std::env::var_os("APLOG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn number(given: Option<u64>, option: &str, variable: &str) -> Result<u64, String> {
    if let Some(number) = given {
        return Ok(number);
    }
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => text
            .parse()
            .map_err(|_| format!("{variable}={text}: expected a number; unset it, or give --{option}")),
        _ => Ok(1),
    }
}
