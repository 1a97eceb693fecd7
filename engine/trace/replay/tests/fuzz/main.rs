//! Altered traces, scripts and rolls are read, and rolls played, without harm: no panic, no abort, no memory without
//! bound, and one line that says what is wrong.
//!
//! `ETUDE_FUZZ_CASES=1000000 cargo test -p etude-replay --profile checks --test fuzz` does more than the usual;
//! `ETUDE_FUZZ_FROM=N ETUDE_FUZZ_CASES=1` one case again, `ETUDE_FUZZ_SEED=N` others. Cases are run in a process that may
//! take so much memory and time; one that ends it is told, and the next process goes on behind it.

mod altered;
mod drawn;
mod limits;
mod mutate;
mod play;
mod random;
mod seeds;
mod targets;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use limits::{limit, silent};
use play::Played;
use random::Random;
use seeds::{Seeds, seeds};
use targets::{Came, Place, TARGETS, run};

const CASES: u64 = 6_000;
/// What reading any of these may take, bytes.
const MEMORY: u64 = 1 << 30;
/// The longest file that a case may write: a trace, or its columns.
const FILE: u64 = 1 << 30;
/// What a case may take, s.
const TIME: u32 = 60;
/// One roll of so many is played.
const PLAY: usize = 12;
/// After so many failures the rest would say nothing new.
const FAILURES: usize = 20;

/// What all processes count together.
#[derive(Default)]
struct Counts {
    case: AtomicU64,
    /// By target: refused, taken, played to the end, not to the end, ended.
    came: [[AtomicU64; 5]; TARGETS.len()],
}

fn main() {
    let others = |word: String| !word.starts_with('-') && !"fuzz".contains(&word);
    if std::env::args().skip(1).any(others) {
        return;
    }
    let number = |name: &str, usual| match std::env::var(name) {
        Ok(word) => word.parse().unwrap_or_else(|_| panic!("{name}={word}: expected a number")),
        Err(_) => usual,
    };
    let (from, seed) = (number("ETUDE_FUZZ_FROM", 0), number("ETUDE_FUZZ_SEED", 1));
    let until = from + number("ETUDE_FUZZ_CASES", CASES);
    // Files are written over and over, which some file systems take for a reason to wait for the disk.
    let memory = Path::new("/dev/shm");
    let above = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
    let directory = above.join(format!("etude-fuzz-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory of its own");
    let seeds = seeds(&directory.join("seed"));
    let counts = shared();
    let (mut next, mut failures) = (from, 0);
    while next < until && failures < FAILURES {
        match in_child(&directory, || cases(seed, next..until, &seeds, &directory, counts)) {
            Ok(()) => break,
            Err(said) => {
                let case = counts.case.load(Ordering::Relaxed);
                let target = target(case).1;
                println!("case {case} of {target} (ETUDE_FUZZ_SEED={seed} ETUDE_FUZZ_FROM={case}): {said}");
                (next, failures) = (case + 1, failures + 1);
            }
        }
    }
    tell(counts);
    std::fs::remove_dir_all(&directory).expect("it is this process's");
    assert!(failures == 0, "{failures} failures");
}

fn target(case: u64) -> (targets::Target, &'static str) {
    TARGETS[(case % TARGETS.len() as u64) as usize]
}

fn cases(seed: u64, all: std::ops::Range<u64>, seeds: &Seeds, directory: &Path, counts: &Counts) {
    let place = Place { directory, play: PLAY };
    for case in all {
        counts.case.store(case, Ordering::Relaxed);
        // SAFETY: a plain value; the signal ends the process.
        unsafe { libc::alarm(TIME) };
        let came = match run(target(case).0, &mut Random::new(seed, case), seeds, &place) {
            Came::Refused => 0,
            Came::Taken => 1,
            Came::Played(Played::Whole) => 2,
            Came::Played(Played::Refused) => 3,
            Came::Played(Played::Ended) => 4,
        };
        counts.came[(case % TARGETS.len() as u64) as usize][came].fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts in memory that forked processes share.
fn shared() -> &'static Counts {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping of zeros, which counts are at the beginning, and which is never taken away.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), size_of::<Counts>(), access, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast::<Counts>()
    }
}

/// Does something in a process of its own; the error is how that ended and what it said last.
fn in_child(directory: &Path, done: impl FnOnce()) -> Result<(), String> {
    let said = directory.join("worker");
    std::fs::write(&said, b"").expect("room for a file");
    // SAFETY: this process has one thread; the child ends by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        limit(MEMORY, FILE);
        silent(&said);
        let unharmed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(done)).is_ok();
        // SAFETY: nothing is left to be done.
        unsafe { libc::_exit(if unharmed { 0 } else { 101 }) }
    }
    let mut status = 0;
    // SAFETY: a child of this process.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    if status == 0 {
        return Ok(());
    }
    let how = match libc::WIFSIGNALED(status) {
        true => format!("signal {}", libc::WTERMSIG(status)),
        false => format!("exit status {}", libc::WEXITSTATUS(status)),
    };
    let said = std::fs::read(&said).unwrap_or_default();
    let text = String::from_utf8_lossy(&said[..said.len().min(2000)]).into_owned();
    let _ = std::fs::remove_dir_all(directory.join("outer"));
    Err(format!("{how}\n{text}"))
}

fn tell(counts: &Counts) {
    for ((_, name), came) in TARGETS.iter().zip(&counts.came) {
        let [refused, taken, whole, given_up, ended] =
            came.each_ref().map(|each| each.load(Ordering::Relaxed));
        print!("{name}: {refused} refused, {taken} taken");
        if whole + given_up + ended > 0 {
            print!(
                ", {} played ({whole} to the end, {given_up} not, {ended} ended)",
                whole + given_up + ended
            );
        }
        println!();
    }
}
