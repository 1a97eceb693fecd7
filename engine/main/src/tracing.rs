//! The verbs of traces: `record`, and `trace` for what stands in one.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use etude_terminal::complain;

const HELP: &str = "\
What stands in a trace that etude record wrote.

usage: etude-engine trace events TRACE        each call as a line: interval, call, result, duration
       etude-engine trace columns TRACE       the calls as columns into standard output, which must be a file
       etude-engine trace import TEXT TRACE   a new trace from what strace -f -ttt -T wrote
";

/// Reads or makes a trace; the exit status.
pub fn trace(arguments: impl Iterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = arguments.collect();
    let paths: Vec<PathBuf> = words.iter().skip(1).map(PathBuf::from).collect();
    match (words.first().and_then(|word| word.to_str()), &paths[..]) {
        (Some("events"), [trace]) => answer(etude_script::events(trace)),
        (Some("columns"), [trace]) => answer(columns(trace)),
        (Some("import"), [text, trace]) => answer(import(text, trace)),
        (Some("-h" | "--help"), _) => {
            print!("{HELP}");
            0
        }
        _ => complain("expected events, columns or import, and a path; see etude-engine trace --help", 2),
    }
}

/// A wrong input, or a machine that does not allow it, with its exit status.
type Refused = (String, u8);

fn answer(done: Result<(), Refused>) -> u8 {
    done.map_or_else(|(line, code)| complain(&line, code), |()| 0)
}

fn columns(path: &Path) -> Result<(), Refused> {
    let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let out = out.map_err(|error| (error.to_string(), 5))?;
    etude_trace::columns(path, out).map_err(|error| (format!("{}: {error}", path.display()), 3))
}

fn import(text: &Path, trace: &Path) -> Result<(), Refused> {
    let wrong = |error: io::Error| (format!("{}: {error}", text.display()), 3);
    let input = BufReader::new(etude_trace::ordinary::open(text).map_err(wrong)?);
    let made = OpenOptions::new().write(true).create_new(true).open(trace);
    let out = made.map_err(|error| (format!("{}: cannot be made: {error}", trace.display()), 5))?;
    let found = etude_trace::import::strace(input, out).map_err(|error| {
        let _ = std::fs::remove_file(trace);
        (format!("{}: {error}", text.display()), 3)
    })?;
    complain!(
        "etude trace: {}: {} calls; not understood: {} lines, {} arguments; without an end: {}",
        trace.display(),
        found.events,
        found.strange,
        found.strange_arguments,
        found.unfinished
    );
    Ok(())
}

fn complain(line: &str, code: u8) -> u8 {
    complain!("etude trace: {line}");
    code
}
