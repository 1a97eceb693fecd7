//! `etude script`: from traces, and from scripts to scripts.

mod change;
mod files;
mod foreign;
mod trace;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use etude_quantity::counted;
use etude_terminal::{Escaping, complain, escaped};

use crate::model::Action;
use crate::world::World;

const HELP: &str = "\
A recorded program's I/O as a script that can be read, changed and replayed.

usage: etude script TRACE [-o SCRIPT] [options]      a script of a trace
       etude script --events TRACE                   each call of a trace as a line, as it was
       etude script check SCRIPT                     whether it is one, and how much is in it
       etude script cut [--from S] [--to S] [--files GLOB ...] SCRIPT
       etude script filter [--calls NAME,...] [--classes CLASS,...] SCRIPT
       etude script repeat N [--own] SCRIPT
       etude script merge [--shared] SCRIPT SCRIPT ...
       etude script clone K SCRIPT
       etude script scale [--sizes F [--align BYTES]] [--gaps F] SCRIPT
       etude script import TEXT                      a script of what fio (iolog), blkparse or Darshan (DXT) recorded
       etude script export SCRIPT                    an iolog, which fio --read_iolog plays

  -o, --output FILE   where the new script goes (default, and -: standard output); SCRIPT can be - as well
  -h, --help

of a trace: --keep-names        what the program made keeps its names
            --map /FROM=TO      files below FROM are below TO in the replay; may be given again
            --hash-names        every name is replaced by a hash with a key that nobody knows
            --pipes KIND        which pipes and Unix sockets are replayed: whole (default; those both of whose ends
                                are in the program), all, none
            --waits infer|none  a process that does nothing while one that it started ends waited for that (default)
            --without-run-delay gaps are shorter by what threads waited for a CPU while others had it
            --partial           a trace that is cut short is no error: the script has what is there
            --report FILE       all that was renamed, left out or is not known, a line each
        -q, --quiet             say nothing but what is wrong

cut:     --from S, --to S     keep what began between these times of the original, in seconds since its beginning; what
                              was open then is opened anew
         --files GLOB         keep calls on files with such a name, at any time, and what these need; ** goes through
                              directories; may be given again
filter:  --calls NAME,...     keep these calls, and what opens and closes their descriptors
         --classes CLASS,...  data, metadata, descriptors, memory, other
repeat:  N rounds, one after the other; between them, files that a round made are removed, and sizes are put back
         --own                each round has files of its own in 1/, 2/ ...
merge:   side by side as processes, in a/, b/ ...; --shared: in one directory
clone:   K times at once, as processes in 1/ ... K/
scale:   --sizes F            transfers, places in files and files are F times as large
         --align BYTES        and become multiples of this
         --gaps F             the times between calls are F times as long; 0 leaves them out

Times of calls that are left out become gaps. More, with examples: docs/scripts.md.

exit status: 0 done; 1 check: a call uses a descriptor that is not open; 2 usage; 3 an input is wrong; 5 the output cannot
be written; 9 the trace is cut short, and the script has what is there
";

/// What ends the verb: one or more lines, and the exit status.
type Failed = (String, u8);

/// Runs the verb; its exit status.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = arguments.collect();
    let rest = || words[1..].to_vec();
    let done = match words.first().and_then(|word| word.to_str()) {
        Some("-h" | "--help") => {
            print!("{HELP}");
            Ok(())
        }
        Some("--events") => match &words[1..] {
            [trace] => events(Path::new(trace)),
            _ => Err(usage("--events: expected one trace")),
        },
        Some(word) if word.starts_with("--events=") && words.len() == 1 => events(Path::new(&word[9..])),
        Some("check") => check(rest()),
        Some("import") => foreign::import(rest()),
        Some("export") => foreign::export(rest()),
        Some(verb) if change::VERBS.contains(&verb) => change::change(verb, rest()),
        Some(_) => trace::script(words),
        None if words.is_empty() => {
            Err(usage("expected a trace, --events and a trace, or what is to be done with a script"))
        }
        None => trace::script(words),
    };
    match done {
        Ok(()) => 0,
        Err((line, code)) => {
            complain!("etude script: {line}");
            code
        }
    }
}

fn usage(line: &str) -> Failed {
    (format!("{line}; see etude script --help"), 2)
}

/// Prints the calls of a trace.
pub fn events(path: &Path) -> Result<(), Failed> {
    let mut out = Escaping(BufWriter::with_capacity(1 << 16, io::stdout().lock()));
    let printed = etude_trace::print(path, &mut out).map_err(|error| error.to_string()).and_then(|ending| {
        out.flush().map_err(|error| error.to_string())?;
        Ok(ending)
    });
    match printed {
        Ok(ending) => {
            if let Some(why) = ending.warning() {
                complain!("etude script: {}: {why}", path.display());
            }
            Ok(())
        }
        Err(error) if error.contains("Broken pipe") => Ok(()),
        Err(error) => Err((format!("{}: {error}", path.display()), 3)),
    }
}

/// The most lines that are said of one script.
const MOST_LINES: usize = 10;

fn check(words: Vec<OsString>) -> Result<(), Failed> {
    let [name] = &words[..] else { return Err(usage("check: expected one script")) };
    let parsed = files::read(name)?;
    let (script, name) = (&parsed.script, name.to_string_lossy());
    let mut world = World::new(script);
    let (mut calls, mut untimed, mut closed) = (0, 0, Vec::new());
    for (step, line) in script.steps.iter().zip(&parsed.lines) {
        let effect = world.step(step);
        if let Action::Call(called) = &step.action {
            calls += 1;
            untimed += u64::from(called.duration_ns.is_none());
            if let Some(descriptor) = effect.closed.filter(|_| !called.failed()) {
                closed.push(format!("{name}:{line}: descriptor {descriptor} is not open here"));
            }
        }
    }
    let length_ns = crate::times::times(script).iter().map(|span| span.end_ns).max().unwrap_or(0);
    let said = format!(
        "{name}: {}, {}, {} in {}, {} needed; {}.{:09} s{}\n",
        counted(script.steps.len() as u64, "step"),
        counted(calls, "call"),
        counted(world.threads.len() as u64, "thread"),
        counted(world.processes.len() as u64, "process"),
        script.needed.len(),
        length_ns / 1_000_000_000,
        length_ns % 1_000_000_000,
        match untimed {
            0 => String::new(),
            many => format!(" without {} whose times are not known", counted(many, "call")),
        }
    );
    io::stdout()
        .write_all(escaped(&said).as_bytes())
        .map_err(|error| (format!("standard output: {error}"), 5))?;
    if closed.is_empty() {
        return Ok(());
    }
    let more = closed.len().saturating_sub(MOST_LINES);
    closed.truncate(MOST_LINES);
    if more > 0 {
        closed.push(format!("{name}: and {more} more"));
    }
    Err((closed.join("\netude script: "), 1))
}
