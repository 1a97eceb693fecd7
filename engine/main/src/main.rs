//! `etude-engine`: launches and measures.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use etude_cgroup::Wanted;

fn main() -> ExitCode {
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("serve", options)) => serve(options),
        Some(("measure", options)) => ExitCode::from(etude_engine::measure(options)),
        _ => unreachable!("clap requires a known subcommand"),
    }
}

fn command() -> Command {
    let serve = Command::new("serve").about("Answer requests on standard input, one JSON object a line").arg(
        Arg::new("cgroup")
            .long("cgroup")
            .value_name("VERSION")
            .value_parser(["auto", "1", "2"])
            .default_value("auto")
            .help("Control groups to use"),
    );
    Command::new("etude-engine")
        .about("Launches and measures programs for Étude")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommand(serve)
        .subcommand(etude_engine::measure_options(Command::new("measure")))
}

fn serve(options: &ArgMatches) -> ExitCode {
    let wanted = match options.get_one::<String>("cgroup").map(String::as_str) {
        Some("1") => Wanted::V1,
        Some("2") => Wanted::V2,
        _ => Wanted::Auto,
    };
    match etude_serve::serve(env!("CARGO_PKG_VERSION"), wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("etude-engine serve: {error}");
            ExitCode::from(5)
        }
    }
}
