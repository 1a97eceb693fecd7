//! `etude compile SCRIPT -o ROLL`, `etude replay CAPTURE` and `etude replay ROLL DIRECTORY`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use etude_options::{Failed, values};
use etude_quantity::counted;
use etude_script::{Needed, Preparation, UNCOUNTED};
use etude_terminal::{Screen, clear_line, escaped, say, tell};
use etude_trace::{Scheduling, ordinary};

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

const REPLAY: &str = "etude replay";

/// Compile a script of I/O into a roll, which etude replay plays
#[derive(Parser)]
#[command(
    after_help = "More: docs/howto/replay.md.\n\nexit status: 0; 2 usage; 3 the script is wrong; 5 the roll cannot be written"
)]
struct CompileOptions {
    /// The roll (default: the script's name with .roll); one that is there is not overwritten
    #[arg(short, long, value_name = "ROLL")]
    output: Option<PathBuf>,
    /// Why threads wait for each other: all (default), none, or some of names, descriptors, data, sizes, locks, pipes,
    /// requests and threads, with commas between them
    #[arg(long, value_name = "KINDS", value_parser = Edges::option, default_value = "all")]
    order: Edges,
    /// Print only errors and warnings
    #[arg(short, long)]
    quiet: bool,
    script: PathBuf,
}

/// `etude compile`; the exit status.
pub fn compile_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude compile", arguments, compile_verb)
}

fn compile_verb(options: CompileOptions) -> Result<u8, Failed> {
    let CompileOptions { output, order, quiet, script } = options;
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
    let (out, done) = compile_with(&parsed.script, order, BufWriter::new(file)).map_err(|error| {
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

/// Replay recorded I/O in time: a capture in a temporary place, or a roll in a directory that etude prepare has made
#[derive(Parser)]
#[command(
    override_usage = "[options] [--in DIRECTORY] CAPTURE\n[options] ROLL DIRECTORY",
    after_help = "The replay cannot leave its directory, whatever the roll contains. More: docs/howto/replay.md.\n\nexit status: 0; 1 \
                  not faithful (--judge); 2 usage; 3 the capture or roll is wrong; 5 it cannot be played here, or FILE \
                  cannot be written; 128+n ended by signal n"
)]
struct Options {
    /// With a capture: create the temporary directory there (default: in CAPTURE), and remove it at the end
    #[arg(long = "in", value_name = "DIRECTORY", conflicts_with = "directory")]
    within: Option<PathBuf>,
    /// gap (default): as long after the call before as in the original; absolute: when the original made it; none: as
    /// soon as possible
    #[arg(long, value_name = "WAY", default_value = "gap")]
    timing: Timing,
    /// Gaps are F times shorter
    #[arg(long, value_name = "F", value_parser = values::number(1e-6..=1e6), default_value = "1")]
    speed: f64,
    /// Files are opened with O_DIRECT; transfers that it refuses are made without, and counted
    #[arg(long)]
    direct: bool,
    /// Sync written data when its descriptor is closed
    #[arg(long)]
    fsync: bool,
    /// Also allocate anonymous memory, and touch it in gaps
    #[arg(long)]
    footprint: bool,
    /// recorded (default): in the scheduling class and with the nice value of the recorded program, where they are not
    /// the usual ones (SCHED_OTHER, 0) and this user may; as-is: not
    #[arg(long, value_name = "CLASS", value_parser = ["recorded", "as-is"], default_value = "recorded")]
    sched: String,
    /// Without real-time priority, also where it is allowed
    #[arg(long)]
    no_fifo: bool,
    /// Play in a directory that etude prepare did not make: any file in it may be changed or removed
    #[arg(long)]
    force: bool,
    /// Exit with 1 unless the replay was faithful
    #[arg(long)]
    judge: bool,
    /// Maximum lateness of 99 % of calls in a faithful replay, s
    #[arg(long, value_name = "S", value_parser = values::duration(1..=MOST_NS), default_value = "0.001")]
    late: u64,
    /// Maximum share of calls with another result in a faithful replay, % (default 0.1; 0: none)
    #[arg(long, value_name = "P", value_parser = values::percent, default_value = "0.1")]
    mismatches: f64,
    /// The most of the program's bytes, and of its time in reads and writes, that a faithful replay may leave out, %
    #[arg(long, value_name = "P", value_parser = values::percent, default_value = "1")]
    unplayed: f64,
    /// Print all measurements as one JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Response times over time, a line of JSON a window, are appended to FILE (default: $ETUDE_WINDOWS, if set)
    #[arg(long, value_name = "FILE")]
    windows: Option<PathBuf>,
    /// Length of a window, s (default 1, at least 0.1)
    #[arg(long, value_name = "S", value_parser = values::duration(100_000_000..=MOST_NS), default_value = "1")]
    window: u64,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    #[arg(value_name = "CAPTURE|ROLL")]
    source: PathBuf,
    directory: Option<PathBuf>,
}

const MOST_NS: u64 = 1_000_000_000_000_000;

/// `etude replay`; the exit status.
pub fn replay_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(REPLAY, arguments, replay_verb)
}

fn replay_verb(options: Options) -> Result<u8, Failed> {
    if options.judge && options.timing == Timing::None {
        let what = "--judge with --timing none: expected a schedule, by which a replay is judged";
        return Err(etude_options::usage(REPLAY, what));
    }
    let source = &options.source;
    if let Some(directory) = &options.directory {
        return played(&options, roll(source)?, source, directory);
    }
    if source.is_file() {
        let what = format!("{}: expected also the directory in which this roll is played", source.display());
        return Err(etude_options::usage(REPLAY, what));
    }
    let refuse = |Refused(line, code)| (line, code);
    let path = capture::roll_of(source).map_err(refuse)?;
    let roll = roll(&path)?;
    let work = |place: &Path| {
        let done = prepared(&roll.needed, place, options.quiet);
        etude_options::answer(REPLAY, done.and_then(|()| played(&options, roll, &path, place)))
    };
    capture::in_temporary_place(options.within.as_ref().unwrap_or(source), work).map_err(refuse)
}

fn roll(path: &Path) -> Result<Roll, Failed> {
    Roll::open(path).map_err(|what| (format!("{}: {what}", path.display()), 3))
}

/// Builds what a roll needs, on disk.
fn prepared(needed: &[Needed], place: &Path, quiet: bool) -> Result<(), Failed> {
    let how = Preparation { sync: true, progress: !quiet && Screen::of(&std::io::stderr()).obeys };
    etude_script::prepare(needed, place, how).map(drop).map_err(|refused| (refused.line, refused.code))
}

/// Plays a roll in a directory; the exit status.
fn played(options: &Options, roll: Roll, path: &Path, directory: &Path) -> Result<u8, Failed> {
    let shown = path.display();
    if options.timing == Timing::Absolute && !roll.head.original.timed {
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
    let windows = options.windows.clone().or_else(windows::asked_for);
    let windows = windows.map(|path| Windows::new(path, options.window as f64 / 1e9));
    let mut windows = windows.transpose().map_err(unwritten)?;
    let mut progress = Progress::new(roll.head.calls, options.quiet);
    let manner = Manner {
        timing: options.timing,
        speed: options.speed,
        realtime: !options.no_fifo,
        class: class_of(options, &roll),
    };
    let Options { direct, fsync, footprint, .. } = *options;
    let done = replay(roll, directory, manner, Wishes { direct, fsync, footprint }, |shared, ended| {
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
    let class = roll.head.scheduling.filter(|class| options.sched == "recorded" && !class.is_default())?;
    (!options.no_fifo || !class.policy.is_realtime()).then_some(class)
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
    let bound_s = options.late as f64 / 1e9;
    if late > bound_s {
        return Some(format!(
            "1 % of calls were more than {} late, and {} is the bound",
            time(late),
            time(bound_s)
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
        let percent = done as f64 / self.calls.max(1) as f64 * 100.0;
        tell(&format!("\r{done} of {} calls ({percent:.0} %)\x1b[K", self.calls));
        (self.shown, self.next) = (true, Instant::now() + Duration::from_millis(500));
    }

    fn clear(&self) {
        if self.shown {
            clear_line();
        }
    }
}

/// The files that a roll needs, of its bytes; the error says what is wrong with it.
pub fn needed_by(bytes: Vec<u8>) -> Result<Vec<Needed>, String> {
    Roll::read(bytes).map(|roll| roll.needed)
}
