//! `etude-engine`: launches and measures.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use etude_cgroup::Wanted;
use etude_columns::Reading;
use etude_terminal::complain;

const SIGPIPE: i32 = 13;

fn main() -> ExitCode {
    end_where_output_cannot_be_written();
    // The lab's programs have options and exit statuses of their own.
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(OsStr::to_str) {
        Some("io") => return ExitCode::from(etude_io::main("etude io", arguments)),
        Some("ipc") => return ExitCode::from(etude_ipc::main("etude ipc", arguments)),
        Some("capture") => return ExitCode::from(etude_engine::capture(arguments)),
        Some("record") => return ExitCode::from(etude_engine::record(arguments)),
        Some("script") => return ExitCode::from(etude_script::main(arguments)),
        Some("prepare") => {
            return ExitCode::from(etude_script::prepare_main(arguments, etude_replay::needed_by));
        }
        Some("trace") => return ExitCode::from(etude_engine::trace(arguments)),
        Some("compile") => return ExitCode::from(etude_replay::compile_main(arguments)),
        Some("replay") => return ExitCode::from(etude_replay::replay_main(arguments)),
        Some("load") => return ExitCode::from(etude_load::load_main(arguments)),
        Some("known-server") => return ExitCode::from(etude_load::known_server_main(arguments)),
        Some("chill") => return ExitCode::from(etude_memory::chill_main(arguments)),
        Some("residency") => return ExitCode::from(etude_memory::residency_main(arguments)),
        Some("monitor") => return ExitCode::from(etude_monitor::monitor_main(arguments)),
        Some("age") => return ExitCode::from(etude_disk::age_main(arguments)),
        Some("fill") => return ExitCode::from(etude_disk::fill_main(arguments)),
        Some("fragments") => return ExitCode::from(etude_disk::fragments_main(arguments)),
        Some("precondition") => return ExitCode::from(etude_disk::precondition_main(arguments)),
        _ => {}
    }
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("serve", options)) => serve(options),
        Some(("columns", options)) => columns(options),
        Some(("measure", options)) => ExitCode::from(etude_engine::measure(options)),
        _ => unreachable!("clap requires a known subcommand"),
    }
}

/// `print!` panics there. It ends as all of Étude does: silently where nobody reads any more (docs/exit-codes.md).
fn end_where_output_cannot_be_written() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let told = info.payload().downcast_ref::<String>();
        let Some(why) = told.and_then(|text| text.strip_prefix("failed printing to stdout: ")) else {
            return usual(info);
        };
        if why.starts_with("Broken pipe") {
            std::process::exit(128 + SIGPIPE);
        }
        let why = why.split(" (os error").next().unwrap_or(why);
        complain!("etude: standard output cannot be written: {why}");
        std::process::exit(5);
    }));
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
        .subcommand(columns_command())
        .subcommand(Command::new("io").about("The lab's benchmark of files; io --help"))
        .subcommand(Command::new("ipc").about("The lab's benchmark of pipes and sockets; ipc --help"))
        .subcommand(Command::new("capture").about("Record a program, ready for replay; capture --help"))
        .subcommand(Command::new("record").about("Record a program's I/O; record --help"))
        .subcommand(Command::new("script").about("A record as a script, and scripts changed; script --help"))
        .subcommand(Command::new("prepare").about("The files that a script needs; prepare --help"))
        .subcommand(Command::new("trace").about("What stands in such a record; trace --help"))
        .subcommand(Command::new("compile").about("Compile a script of I/O into a roll; compile --help"))
        .subcommand(Command::new("replay").about("Play a capture or a roll; replay --help"))
        .subcommand(Command::new("load").about("Offer requests at a rate; load --help"))
        .subcommand(Command::new("known-server").about("A server of known capacity; known-server --help"))
        .subcommand(Command::new("chill").about("Take memory until caches are evicted; chill --help"))
        .subcommand(Command::new("residency").about("What of a data set is cached; residency --help"))
        .subcommand(Command::new("monitor").about("Sample what the machine does; monitor --help"))
        .subcommand(Command::new("age").about("Age a file system by a history of files; age --help"))
        .subcommand(Command::new("fill").about("Fill a file system to a level; fill --help"))
        .subcommand(Command::new("fragments").about("In how many pieces files lie; fragments --help"))
        .subcommand(
            Command::new("precondition").about("Write a device until it is steady; precondition --help"),
        )
        .subcommand(etude_engine::measure_options(Command::new("measure")))
}

fn columns_command() -> Command {
    Command::new("columns")
        .about("Write the measurements of results files into a file of columns")
        .arg(
            Arg::new("metric")
                .long("metric")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Keep this metric [default: all]"),
        )
        .arg(
            Arg::new("chunk")
                .long("chunk")
                .value_name("BYTES")
                .value_parser(value_parser!(u64).range(1..))
                .hide(true)
                .help("Cut files into pieces of this size"),
        )
        .after_help(
            "Standard input lists the files: WORKERS PATH each, ended by a zero byte; `-` for WORKERS where it \
             is not known how many lines a trial has. Standard output must be a file.",
        )
}

fn columns(options: &ArgMatches) -> ExitCode {
    let reading = Reading {
        metrics: options.get_many::<String>("metric").map(|names| names.cloned().collect()),
        chunk: options.get_one("chunk").copied(),
        threads: None,
    };
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    match out.and_then(|out| etude_columns::columns(&reading, &mut io::stdin().lock(), out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("etude-engine columns: {error}");
            ExitCode::from(5)
        }
    }
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
            complain!("etude-engine serve: {error}");
            ExitCode::from(5)
        }
    }
}
