//! The command lines of the engine's programs.

mod capture;
mod tracing;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use etude_measure::{BARRIER, Request};

pub use capture::capture;
pub use etude_record::main as record;
pub use tracing::trace;

/// Adds the options of a measured command.
pub fn measure_options(command: Command) -> Command {
    let number = |name: &'static str, variable: &'static str| {
        let help = format!("The {name} of this measurement [default: ${variable}, else 1]");
        Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).help(help)
    };
    command
        .about("Run one command and append its measurement to the results")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Append to FILE [default: $APLOG, else standard error]"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("One JSON object a line, not a block"),
        )
        .arg(Arg::new("barrier").long("barrier").action(ArgAction::SetTrue).help(
            "First wait until all workers of the trial are here ($APIPCKEY); a worker alone goes on at once",
        ))
        .arg(number("thread", "APTHREAD"))
        .arg(number("epoch", "APEPOCH"))
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .help("The command and its arguments"),
        )
        .after_help(
            "Exit status: the command's; 128+n for signal n; 127 not found; 126 not executable; \
             125 the barrier was broken, mostly by the end of another worker; \
             5 results not writable, or no barrier there",
        )
}

/// Runs what such options ask for; the exit status.
pub fn measure(options: &ArgMatches) -> u8 {
    let request = number(options, "thread", "APTHREAD")
        .and_then(|thread| Ok((thread, number(options, "epoch", "APEPOCH")?)))
        .map(|(thread, epoch)| Request {
            argv: options.get_many::<String>("command").into_iter().flatten().cloned().collect(),
            output: options.get_one::<PathBuf>("output").cloned().or_else(log_file),
            json: options.get_flag("json"),
            thread,
            epoch,
            barrier: options.get_flag("barrier").then(barrier).flatten(),
        });
    match request {
        Ok(request) => etude_measure::measure(&request),
        Err(error) => {
            eprintln!("aptime: {error}");
            2
        }
    }
}

fn barrier() -> Option<String> {
    let address = std::env::var_os(BARRIER).filter(|address| !address.is_empty())?;
    Some(address.to_string_lossy().into_owned())
}

fn log_file() -> Option<PathBuf> {
    std::env::var_os("APLOG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn number(options: &ArgMatches, option: &str, variable: &str) -> Result<u64, String> {
    if let Some(number) = options.get_one::<u64>(option) {
        return Ok(*number);
    }
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => text
            .parse()
            .map_err(|_| format!("{variable}={text}: expected a number; unset it, or give --{option}")),
        _ => Ok(1),
    }
}
