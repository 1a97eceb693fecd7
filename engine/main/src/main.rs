//! `etude-engine`: launches and measures.

use std::process::ExitCode;

use clap::Command;
use etude_terminal::complain;

const PROGRAM: &str = "etude-engine";
const SIGPIPE: i32 = 13;

/// Runs a verb with its arguments; the exit status.
type Run = fn(std::iter::Skip<std::env::ArgsOs>) -> u8;

const VERBS: [(&str, &str, Run); 22] = [
    ("serve", "Answer requests on standard input, one JSON object a line", |words| {
        etude_engine::serve(words)
    }),
    ("columns", "Write the measurements of results files into a file of columns", |words| {
        etude_engine::columns(words)
    }),
    ("flame-graph", "Draw stacks with their times as a flame graph", |words| {
        etude_engine::flame_graph(words)
    }),
    ("io", "The lab's benchmark of files", |words| etude_io::main("etude io", words)),
    ("ipc", "The lab's benchmark of pipes and sockets", |words| etude_ipc::main("etude ipc", words)),
    ("capture", "Record a program, ready for replay", |words| etude_engine::capture(words)),
    ("record", "Record a program's I/O", |words| etude_engine::record(words)),
    ("script", "A record as a script, and scripts changed", |words| etude_script::main(words)),
    ("prepare", "Build the files that a script needs", |words| {
        etude_script::prepare_main(words, etude_replay::needed_by)
    }),
    ("trace", "Print the contents of a recording", |words| etude_engine::trace(words)),
    ("compile", "Compile a script of I/O into a roll", |words| etude_replay::compile_main(words)),
    ("replay", "Play a capture or a roll", |words| etude_replay::replay_main(words)),
    ("load", "Offer requests at a rate", |words| etude_load::load_main(words)),
    ("known-server", "A server of known capacity", |words| etude_load::known_server_main(words)),
    ("chill", "Take memory until caches are evicted", |words| etude_memory::chill_main(words)),
    ("residency", "Show which part of a data set is cached", |words| etude_memory::residency_main(words)),
    ("monitor", "Sample what the machine does", |words| etude_monitor::monitor_main(words)),
    ("age", "Age a file system by a history of files", |words| etude_disk::age_main(words)),
    ("fill", "Fill a file system to a level", |words| etude_disk::fill_main(words)),
    ("fragments", "In how many pieces files lie", |words| etude_disk::fragments_main(words)),
    ("precondition", "Write a device until it is steady", |words| etude_disk::precondition_main(words)),
    ("measure", "Run one command and append its measurement to the results", |words| {
        etude_engine::measure("etude-engine measure", words)
    }),
];

fn main() -> ExitCode {
    end_where_output_cannot_be_written();
    let word = std::env::args_os().nth(1);
    let known = VERBS.iter().find(|(name, ..)| word.as_ref().is_some_and(|word| word == name));
    ExitCode::from(match known {
        // Its options alone are read: none of the other verbs costs time at its start.
        Some((_, _, run)) => run(std::env::args_os().skip(2)),
        None => etude_options::matches(PROGRAM, command(), std::env::args_os().skip(1))
            .map_or_else(|ended| etude_options::end(PROGRAM, ended), |_| 0),
    })
}

fn command() -> Command {
    Command::new(PROGRAM)
        .about("Launches and measures programs for Étude")
        .version(env!("CARGO_PKG_VERSION"))
        .override_usage("VERB [options]")
        .after_help("etude-engine VERB --help has the options of a verb.")
        .subcommand_required(true)
        .subcommands(VERBS.iter().map(|(name, about, _)| Command::new(*name).about(*about)))
}

/// `print!` panics there. It ends as all of Étude does: silently where nobody reads any more (docs/reference/exit-codes.md).
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
