//! One recording, from the file's creation to its last frame.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use etude_calls::Call;
#[cfg(target_arch = "x86_64")]
use etude_calls::Kind;
use etude_trace::{Clock as StoredClock, Header, Writer};

use crate::PROCESSOR;
use crate::queue::{self, Queue, Rings};
use crate::rewrite::clock::{Calibration, Clock};
#[cfg(target_arch = "x86_64")]
use crate::rewrite::code::Known;
#[cfg(target_arch = "x86_64")]
use crate::rewrite::hook::Entry;
use crate::rewrite::method::{Technique, Way};
#[cfg(target_arch = "x86_64")]
use crate::rewrite::queues::is_about_requests;
use crate::rewrite::remote::Pid;
use crate::rewrite::ring::Segment;
use crate::rewrite::signals::Signals;
use crate::rewrite::tracer::{Ending, Tracer};
use crate::sink::{self, Summary, text_arguments};

/// What is to be recorded, and how.
pub struct Recording {
    pub target: Target,
    pub clock: Clock,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // no call finds a ring full there
    pub drop_when_full: bool,
    pub technique: Technique,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // no code is changed there
    pub stop_left: bool,
    /// Whether to look at the files that the program named when it has ended.
    pub snapshot: bool,
}

/// Whose calls.
pub enum Target {
    /// A program that is started.
    Command(Vec<CString>),
    /// A process that runs already.
    Process(Pid),
}

/// How the program ended (as `waitpid` tells), and the summary of the trace.
pub struct Outcome {
    pub status: i32,
    /// Processes that were let go, and run on.
    pub run_on: usize,
    pub summary: Summary,
}

/// Runs the program to its end, or follows the process until that or a signal, and writes the trace.
///
/// # Errors
/// It could not be started, or not be traced.
pub fn record(recording: &Recording, file: File) -> io::Result<Outcome> {
    let segment = Arc::new(Segment::new()?);
    let mut calibration = Calibration::new(recording.clock);
    let own = own_cost(recording, &segment)?;
    calibration.again();
    let header = header(recording, &calibration, &own);
    let again = recording.snapshot.then(|| file.try_clone()).transpose()?;
    let writer = Writer::create(file, &header)?;
    // Before any other thread is there, which would get them.
    let signals = matches!(recording.target, Target::Process(_)).then(Signals::block);
    let origin = calibration.origin();
    let queue = Queue::new(sink::File::new(writer, calibration, again), origin)?;
    let rings = Arc::new(Mutex::new(Rings::new(queue)));
    let over = Arc::new(AtomicBool::new(false));
    let drainer = Rings::drainer(rings.clone(), segment.clone(), over.clone())?;
    let way = Way {
        clock: recording.clock,
        technique: recording.technique,
        texts,
        #[cfg(target_arch = "x86_64")]
        entry,
        #[cfg(target_arch = "x86_64")]
        known: Known::of_user(),
        #[cfg(target_arch = "x86_64")]
        drop_when_full: recording.drop_when_full,
        #[cfg(target_arch = "x86_64")]
        stop_left: recording.stop_left,
    };
    let tracer = Tracer::new(segment, rings.clone(), way);
    let ending = match (&recording.target, &signals) {
        (Target::Process(pid), Some(signals)) => tracer.run_attached(*pid, signals),
        (Target::Command(argv), _) => tracer.run(argv),
        _ => unreachable!("signals are blocked for a process"),
    };
    over.store(true, Ordering::Relaxed);
    let _ = drainer.join();
    let rings = Arc::into_inner(rings).expect("the drainer is gone").into_inner().expect("no thread panics");
    let Ending { status, run_on } = ending?;
    let note = format!("recording ended before {run_on} processes did");
    let summary = rings.finish((run_on > 0).then_some(note).into_iter().collect());
    Ok(Outcome { status, run_on, summary })
}

/// What recording adds to a call, ns, by the call's name; of stops it is not known.
#[cfg(target_arch = "x86_64")]
fn own_cost(recording: &Recording, segment: &Segment) -> io::Result<Vec<(&'static str, f64)>> {
    use crate::rewrite::{hook_cost, layout::RINGS};
    if recording.technique == Technique::Ptrace {
        return Ok(Vec::new());
    }
    let own = hook_cost::measure(recording.clock, segment, RINGS - 1)?;
    Ok(vec![("*", own.plain_ns), ("openat", own.path_ns)])
}

#[cfg(not(target_arch = "x86_64"))]
fn own_cost(_recording: &Recording, _segment: &Segment) -> io::Result<Vec<(&'static str, f64)>> {
    Ok(Vec::new())
}

/// Which arguments of a call are texts, by its number; None for one that is not recorded.
fn texts(number: u32) -> Option<Vec<u8>> {
    Call::from_number(PROCESSOR, number.into()).map(|call| text_arguments(call).to_vec())
}

/// Which entry of the hook a call takes.
#[cfg(target_arch = "x86_64")]
pub fn entry(number: u32) -> Entry {
    const MMAP: u32 = 9;
    const MPROTECT: u32 = 10;
    const PKEY_MPROTECT: u32 = 329;
    const PRCTL: u32 = 157;
    const SECCOMP: u32 = 317;
    let Some(call) = Call::from_number(PROCESSOR, number.into()) else {
        return match number {
            PKEY_MPROTECT => Entry::Map,
            PRCTL | SECCOMP => Entry::Quiet,
            _ => Entry::Raw,
        };
    };
    match (number, &text_arguments(call)[..]) {
        (number, _) if is_about_requests(number) => Entry::Stop,
        (MMAP | MPROTECT, _) => Entry::Map,
        (_, [0]) if call.row().arguments[0] == Kind::Pair => Entry::Pair1,
        (_, [3]) if call.row().arguments[3] == Kind::Pair => Entry::Pair4,
        (_, [2]) if call.row().arguments[2] == Kind::Command => Entry::Range3,
        (_, [2]) if call.row().arguments[2] == Kind::OffsetAt => Entry::Offset3,
        (_, [1, 3]) if call.row().arguments[1] == Kind::OffsetAt => Entry::Offset24,
        _ if call.address().is_some() => Entry::Address2,
        (_, [0]) => Entry::Path1,
        (_, [1]) => Entry::Path2,
        (_, [0, 1]) => Entry::Path12,
        (_, [1, 3]) => Entry::Path24,
        (_, [0, 2]) => Entry::Path13,
        _ if call.row().arguments.len() > 4 => Entry::Wide,
        _ => Entry::Plain,
    }
}

fn header(recording: &Recording, calibration: &Calibration, own: &[(&str, f64)]) -> Header {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let (argv, cwd) = match &recording.target {
        Target::Command(argv) => {
            let cwd = std::env::current_dir().unwrap_or_default();
            (
                argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
                cwd.to_string_lossy().into_owned(),
            )
        }
        Target::Process(pid) => {
            let (_, argv, cwd) = queue::described(*pid);
            (argv, cwd)
        }
    };
    Header {
        argv,
        cwd,
        start: calibration.start(),
        host: text("/proc/sys/kernel/hostname"),
        kernel: text("/proc/sys/kernel/osrelease"),
        processor: PROCESSOR.name().to_owned(),
        technique: recording.technique.name().to_owned(),
        clock: StoredClock {
            kind: if recording.clock == Clock::Tsc { "tsc" } else { "monotonic" }.to_owned(),
            ns_per_tick: calibration.rate(),
        },
        own_cost_ns: own.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect(),
        ..Header::default()
    }
}

/// The path of a program as the shell would find it.
///
/// # Errors
/// It is nowhere (`NotFound`), or cannot be executed (`PermissionDenied`).
pub fn resolve(program: &std::ffi::OsStr) -> io::Result<PathBuf> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        std::env::split_paths(&path).map(|directory| directory.join(program)).collect()
    };
    let mut refused = io::ErrorKind::NotFound;
    for path in candidates {
        let Ok(found) = std::fs::metadata(&path) else { continue };
        let text = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: a text that ends with a zero byte.
        if found.is_file() && unsafe { libc::access(text.as_ptr(), libc::X_OK) } == 0 {
            return Ok(path);
        }
        refused = io::ErrorKind::PermissionDenied;
    }
    Err(refused.into())
}
