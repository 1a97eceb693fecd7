//! `etude compile SCRIPT -o ROLL`, `etude replay CAPTURE` and `etude replay ROLL DIRECTORY`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use etude_quantity::counted;
use etude_script::{Needed, Preparation, UNCOUNTED};
use etude_terminal::{Screen, escaped, say};
use etude_trace::{Scheduling, ordinary};
use lexopt::prelude::*;

use crate::capture;
use crate::clock::now_ns;
use crate::compile::compile_with;
use crate::order::Edges;
use crate::perform::Wishes;
use crate::place;
use crate::player::{Manner, Timing};
use crate::replay::{Refused, replay};
use crate::report::Report;
use crate::report_text::time;
use crate::roll::Roll;
use crate::shared::Shared;
use crate::unplayed::Unplayed;
use crate::windows::{self, Windows};

const COMPILE: &str = "\
Compile a script of I/O into a roll, which etude replay plays.

usage: etude compile [options] SCRIPT

  -o, --output ROLL   the roll (default: the script's name with .roll); one that is there is not overwritten
      --order KINDS   why threads wait for each other: all (default), none, or some of names, descriptors, data, sizes,
                      locks, pipes, requests and threads, with commas between them
  -q, --quiet         say nothing but what is wrong
  -h, --help

More: docs/replay.md.

exit status: 0; 2 usage; 3 the script is wrong; 5 the roll cannot be written
";

const REPLAY: &str = "\
Replay recorded I/O in time: a capture in a temporary place, or a roll in a directory that etude prepare has made.

usage: etude replay [options] [--in DIRECTORY] CAPTURE
       etude replay [options] ROLL DIRECTORY

      --in DIRECTORY   of a capture: the temporary place is made there (default: in CAPTURE), and removed at the end
      --timing WAY     gap (default): as long after the call before as in the original; absolute: when the original made it;
                       none: as soon as possible
      --speed F        gaps are F times shorter (default 1)
      --direct         files are opened with O_DIRECT; transfers that it refuses are made without, and counted
      --fsync          what was written is made durable when its descriptor is closed
      --footprint      memory that is no file's is taken as well, and touched in gaps
      --sched CLASS    recorded (default): in the scheduling class and with the nice value of the recorded program, where
                       they are not the usual ones (SCHED_OTHER, 0) and this user may; as-is: not
      --no-fifo        without real-time priority, also where it is allowed
      --force          play in a directory that etude prepare did not make: any file in it may be changed or removed
      --judge          exit with 1 unless the replay was faithful
      --late S         the most that 99 % of calls may be late in a faithful replay, s (default 0.001)
      --mismatches P   the most calls with another result in a faithful replay, % (default 0.1; 0: none)
      --unplayed P     the most of the program's bytes, and of its time in reads and writes, that a faithful replay may
                       leave out, % (default 1)
      --json           all that was measured, as one JSON object on standard output
      --windows FILE   response times over time, a line of JSON a window, are appended to FILE (default: $ETUDE_WINDOWS, if set)
      --window S       how long a window is, s (default 1, at least 0.1)
  -q, --quiet          no progress
  -h, --help

The replay cannot leave its place, whatever stands in the roll. More: docs/replay.md.

exit status: 0; 1 not faithful (--judge); 2 usage; 3 the capture or roll is wrong; 5 it cannot be played here, or FILE
cannot be written; 128+n ended by signal n
";

/// A line for the user, and the exit status.
type Wrong = (String, u8);

fn usage(verb: &str, error: &dyn std::fmt::Display) -> Wrong {
    (format!("{error}; see etude {verb} --help"), 2)
}

fn answer(verb: &str, done: Result<u8, Wrong>) -> u8 {
    done.unwrap_or_else(|(line, code)| {
        say(&format!("etude {verb}: {line}"));
        code
    })
}

/// `etude compile`; the exit status.
pub fn compile_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("compile", compile_verb(arguments))
}

fn compile_verb(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let (mut script, mut output, mut quiet, mut wanted) = (None, None, false, Edges::ALL);
    let mut parser = lexopt::Parser::from_args(arguments);
    let wrong = |error: lexopt::Error| usage("compile", &error);
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Short('o') | Long("output") => output = Some(PathBuf::from(parser.value().map_err(wrong)?)),
            Short('q') | Long("quiet") => quiet = true,
            Long("order") => {
                wanted =
                    Edges::asked(&parser.value().map_err(wrong)?).map_err(|what| usage("compile", &what))?;
            }
            Short('h') | Long("help") => {
                print!("{COMPILE}");
                return Ok(0);
            }
            Value(path) if script.is_none() => script = Some(PathBuf::from(path)),
            _ => return Err(wrong(argument.unexpected())),
        }
    }
    let script = script.ok_or_else(|| usage("compile", &"no script"))?;
    let output = output.unwrap_or_else(|| script.with_extension("roll"));
    let shown = script.display().to_string();
    let text = ordinary::read(&script).map_err(|error| (format!("{shown}: {error}"), 3))?;
    let parsed = etude_script::parse(&shown, &text).map_err(|wrong| (wrong.to_string(), 3))?;
    parsed.playable(&shown).map_err(|what| (what, 3))?;
    let refuse = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidInput => (format!("{shown}: {error}"), 3),
        _ => (format!("{}: {error}; name another with -o", output.display()), 5),
    };
    let file = File::options().write(true).create_new(true).open(&output).map_err(refuse)?;
    let (out, done) = compile_with(&parsed.script, wanted, BufWriter::new(file)).map_err(|error| {
        let _ = std::fs::remove_file(&output);
        refuse(error)
    })?;
    let bytes = out.get_ref().metadata().map_or(0, |found| found.len());
    if !quiet {
        let each = bytes as f64 / done.calls.max(1) as f64;
        say(&format!(
            "etude compile: {}: {} of {}, {}; {bytes} bytes ({each:.2} a call, {:.1} times less than the text)",
            output.display(),
            counted(done.calls, "call"),
            counted(done.threads as u64, "thread"),
            done.waits_text(),
            text.len() as f64 / bytes.max(1) as f64
        ));
    }
    Ok(0)
}

struct Options {
    manner: Manner,
    wishes: Wishes,
    /// In the scheduling class of the recorded program.
    recorded_class: bool,
    /// Also where `etude prepare` has made nothing.
    force: bool,
    judge: bool,
    late_s: f64,
    mismatches: f64,
    unplayed: f64,
    json: bool,
    windows: Option<PathBuf>,
    window_s: f64,
    quiet: bool,
}

/// `etude replay`; the exit status.
pub fn replay_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("replay", replay_verb(arguments))
}

fn replay_verb(arguments: impl Iterator<Item = OsString>) -> Result<u8, Wrong> {
    let Some((options, what)) = options(arguments)? else {
        print!("{REPLAY}");
        return Ok(0);
    };
    match what {
        What::Roll(path, directory) => played(&options, roll(&path)?, &path, &directory),
        What::Capture(capture, within) => {
            let refuse = |Refused(line, code)| (line, code);
            let path = capture::roll_of(&capture).map_err(refuse)?;
            let roll = roll(&path)?;
            let work = |place: &Path| {
                answer(
                    "replay",
                    prepared(&roll.needed, place, options.quiet)
                        .and_then(|()| played(&options, roll, &path, place)),
                )
            };
            capture::in_temporary_place(&within.unwrap_or(capture), work).map_err(refuse)
        }
    }
}

fn roll(path: &Path) -> Result<Roll, Wrong> {
    Roll::open(path).map_err(|what| (format!("{}: {what}", path.display()), 3))
}

/// Builds what a roll needs, on disk.
fn prepared(needed: &[Needed], place: &Path, quiet: bool) -> Result<(), Wrong> {
    let how = Preparation { sync: true, progress: !quiet && Screen::of(&std::io::stderr()).obeys };
    etude_script::prepare(needed, place, how).map(drop).map_err(|refused| (refused.line, refused.code))
}

/// Plays a roll in a directory; the exit status.
fn played(options: &Options, roll: Roll, path: &Path, directory: &Path) -> Result<u8, Wrong> {
    let shown = path.display();
    if options.manner.timing == Timing::Absolute && !roll.head.original.timed {
        let what =
            "its script does not say how long calls took, so that the original's schedule is not known";
        return Err((format!("{shown}: {what}; play it with --timing gap"), 3));
    }
    let refused = |Refused(line, code)| match code {
        3 => (format!("{shown}: {line}"), code),
        _ => (line, code),
    };
    let taken = place::take(directory, &roll, options.force).map_err(refused)?;
    let unwritten = |what: String| (what, 5);
    let windows = options.windows.as_ref().map(|path| Windows::new(path.clone(), options.window_s));
    let mut windows = windows.transpose().map_err(unwritten)?;
    let mut progress = Progress::new(roll.head.calls, options.quiet);
    let manner = Manner { class: class_of(options, &roll), ..options.manner };
    let done = replay(roll, directory, manner, options.wishes, |shared, ended| {
        progress.show(shared);
        windows.iter_mut().for_each(|windows| windows.watch(shared, now_ns(), ended));
    });
    progress.clear();
    let report = Report { changed_before: taken.changed_before, ..done.map_err(refused)? };
    let unfaithful = unfaithful(&report, options);
    let text = if options.json {
        serde_json::to_string_pretty(&report).map_err(|error| (error.to_string(), 5))? + "\n"
    } else {
        Screen::of(&std::io::stdout()).wrapped(&crate::report_text::shown(&report, unfaithful.as_deref()), 2)
    };
    // Whoever reads no further has what he wants.
    let _ = std::io::stdout().write_all(escaped(&text).as_bytes());
    windows.map_or(Ok(()), Windows::end).map_err(unwritten)?;
    Ok(u8::from(options.judge && unfaithful.is_some()))
}

/// The class in which a roll is played, where that is another one than the usual.
fn class_of(options: &Options, roll: &Roll) -> Option<Scheduling> {
    let class = roll.head.scheduling.filter(|class| options.recorded_class && !class.is_default())?;
    (options.manner.realtime || !class.policy.is_realtime()).then_some(class)
}

/// Why a replay is not faithful; None where it is.
fn unfaithful(report: &Report, options: &Options) -> Option<String> {
    let late = report.lateness_s.as_ref().map_or(0.0, |lateness| lateness.p99);
    if report.calls == 0 {
        return Some("it played no call".into());
    }
    if report.lateness_s.is_none() {
        return Some("it had no schedule (--timing none)".into());
    }
    if late > options.late_s {
        return Some(format!(
            "1 % of calls were more than {} late, and {} is the bound",
            time(late),
            time(options.late_s)
        ));
    }
    let part = report.mismatches as f64 / report.calls.max(1) as f64;
    if part > options.mismatches {
        let bound = percent(options.mismatches);
        let why =
            if report.changed_before { ", and an earlier replay has changed the directory" } else { "" };
        let part = in_percent(part);
        return Some(format!("{part} of calls had another result, and {bound} % is the bound{why}"));
    }
    left_out(&report.unplayed, options.unplayed)
}

/// Why too much of the program's I/O is not played for a faithful replay.
fn left_out(unplayed: &Unplayed, bound: f64) -> Option<String> {
    if unplayed.requests >= UNCOUNTED {
        return Some("it is not known how many of the program's transfers are not played".into());
    }
    let of = [
        (Some(unplayed.bytes_share), "of the program's bytes"),
        (Some(unplayed.requests_share), "of its transfers, whose bytes are not recorded,"),
        (unplayed.time_share, "of its time in reads and writes"),
    ];
    let mut of = of.into_iter().filter_map(|(share, what)| Some((share?, what)));
    let (share, what) = of.find(|(share, _)| *share > bound)?;
    Some(format!("{} {what} are not played, and {} % is the bound", in_percent(share), percent(bound)))
}

/// With two decimals; what is there is never 0.
fn in_percent(share: f64) -> String {
    if share < 0.000_05 { "less than 0.01 %".into() } else { format!("{:.2} %", 100.0 * share) }
}

fn percent(share: f64) -> f64 {
    (1e8 * share).round() / 1e6
}

/// The source of a replay.
enum What {
    /// And where.
    Roll(PathBuf, PathBuf),
    /// And in which directory the temporary place is made.
    Capture(PathBuf, Option<PathBuf>),
}

fn options(arguments: impl Iterator<Item = OsString>) -> Result<Option<(Options, What)>, Wrong> {
    let mut found = Options {
        manner: Manner { timing: Timing::Gap, speed: 1.0, realtime: true, class: None },
        wishes: Wishes::default(),
        recorded_class: true,
        force: false,
        judge: false,
        late_s: 0.001,
        mismatches: 0.001,
        unplayed: 0.01,
        json: false,
        windows: windows::asked_for(),
        window_s: 1.0,
        quiet: false,
    };
    let (mut paths, mut within) = (Vec::new(), None);
    let mut parser = lexopt::Parser::from_args(arguments);
    let wrong = |error: lexopt::Error| usage("replay", &error);
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Long("timing") => {
                found.manner.timing = timing(&parser.value().and_then(|word| word.string()).map_err(wrong)?)?
            }
            Long("speed") => found.manner.speed = speed(&mut parser)?,
            Long("direct") => found.wishes.direct = true,
            Long("fsync") => found.wishes.fsync = true,
            Long("footprint") => found.wishes.footprint = true,
            Long("sched") => {
                found.recorded_class = match &*word(&mut parser)? {
                    "recorded" => true,
                    "as-is" => false,
                    other => {
                        return Err(usage("replay", &format!("--sched {other}: expected recorded or as-is")));
                    }
                }
            }
            Long("no-fifo") => found.manner.realtime = false,
            Long("force") => found.force = true,
            Long("judge") => found.judge = true,
            Long("late") => found.late_s = seconds("late", 1e-9, &mut parser)?,
            Long("mismatches") => found.mismatches = share_in_percent("mismatches", &mut parser)?,
            Long("unplayed") => found.unplayed = share_in_percent("unplayed", &mut parser)?,
            Long("json") => found.json = true,
            Long("in") => within = Some(PathBuf::from(parser.value().map_err(wrong)?)),
            Long("windows") => found.windows = Some(PathBuf::from(parser.value().map_err(wrong)?)),
            Long("window") => found.window_s = seconds("window", 0.1, &mut parser)?,
            Short('q') | Long("quiet") => found.quiet = true,
            Short('h') | Long("help") => return Ok(None),
            Value(path) if paths.len() < 2 => paths.push(PathBuf::from(path)),
            _ => return Err(wrong(argument.unexpected())),
        }
    }
    match (&paths[..], within) {
        ([roll, directory], None) => Ok(Some((found, What::Roll(roll.clone(), directory.clone())))),
        ([_, _], Some(_)) => {
            Err(usage("replay", &"--in: a roll is played in DIRECTORY itself; leave it out"))
        }
        ([file], _) if file.is_file() => Err(usage(
            "replay",
            &format!("{}: expected also the directory in which this roll is played", file.display()),
        )),
        ([capture], within) => Ok(Some((found, What::Capture(capture.clone(), within)))),
        _ => Err(usage("replay", &"expected a capture, or a roll and the directory in which it is played")),
    }
}

fn timing(word: &str) -> Result<Timing, Wrong> {
    match word {
        "gap" => Ok(Timing::Gap),
        "absolute" => Ok(Timing::Absolute),
        "none" => Ok(Timing::None),
        other => Err(usage("replay", &format!("--timing {other}: expected gap, absolute or none"))),
    }
}

/// A duration from `least` to 1e6 s.
fn seconds(name: &str, least: f64, parser: &mut lexopt::Parser) -> Result<f64, Wrong> {
    let word = word(parser)?;
    let read = etude_quantity::duration(&word, "s").map(|ns| ns as f64 / 1e9);
    let found = read.map_err(|why| usage("replay", &format!("--{name} {why}")))?;
    let wrong =
        || usage("replay", &format!("--{name} {word}: expected a duration from {least} s to 1000000 s"));
    if (least..=1e6).contains(&found) { Ok(found) } else { Err(wrong()) }
}

/// From 0, with which there may be none.
fn share_in_percent(name: &str, parser: &mut lexopt::Parser) -> Result<f64, Wrong> {
    let word = word(parser)?;
    etude_quantity::share(&word, "%").map_err(|why| usage("replay", &format!("--{name} {why}")))
}

fn word(parser: &mut lexopt::Parser) -> Result<String, Wrong> {
    parser.value().and_then(|word| word.string()).map_err(|error| usage("replay", &error))
}

/// A factor that leaves gaps of years within what a clock can count.
fn speed(parser: &mut lexopt::Parser) -> Result<f64, Wrong> {
    let word = word(parser)?;
    match word.parse::<f64>() {
        Ok(value) if (1e-6..=1e6).contains(&value) => Ok(value),
        _ => Err(usage("replay", &format!("--speed {word}: expected a number from 1e-6 to 1e6"))),
    }
}

/// A line on a terminal while it plays.
struct Progress {
    calls: u64,
    shown: bool,
    wanted: bool,
    next: Instant,
}

impl Progress {
    fn new(calls: u64, quiet: bool) -> Progress {
        let wanted = !quiet && Screen::of(&std::io::stderr()).obeys;
        Progress { calls, shown: false, wanted, next: Instant::now() + Duration::from_secs(1) }
    }

    fn show(&mut self, shared: &Shared) {
        if !self.wanted || Instant::now() < self.next {
            return;
        }
        let done: u64 = shared.lanes().map(|lane| lane.done.load(Ordering::Relaxed)).sum();
        eprint!(
            "\r{done} of {} calls ({:.0} %)\x1b[K",
            self.calls,
            done as f64 / self.calls.max(1) as f64 * 100.0
        );
        let _ = std::io::stderr().flush();
        (self.shown, self.next) = (true, Instant::now() + Duration::from_millis(500));
    }

    fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// The files that a roll needs, of its bytes; the error says what is wrong with it.
pub fn needed_by(bytes: Vec<u8>) -> Result<Vec<Needed>, String> {
    Roll::read(bytes).map(|roll| roll.needed)
}
