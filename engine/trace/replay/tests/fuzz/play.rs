//! Playing an altered roll for real: in a directory, with limits, and with something beside it that must not change.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::limits::{limit, silent};

/// What a replay may take, bytes.
const MEMORY: u64 = 6 << 30;
/// The longest file that it may make.
const FILE: u64 = 1 << 24;
/// It may wait without end, for a pipe that nobody opens. Then it is ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of it.
pub enum Played {
    /// It came to its end.
    Whole,
    /// It was refused, or given up, with a line.
    Refused,
    /// It went on for longer than anybody waits here.
    Ended,
}

/// Prepares and plays a roll below this directory.
pub fn play(roll: &[u8], scratch: &Path) -> Played {
    let outer = scratch.join("outer");
    let (file, inside, said) = (outer.join("roll"), outer.join("in"), scratch.join("said"));
    fs::create_dir(&outer).expect("a directory");
    fs::write(&file, roll).expect("room for a roll");
    fs::write(outer.join("planted"), b"as it was").expect("room for a file");
    let status = in_child(&said, || {
        let words = |first: &[&str]| -> Vec<_> {
            first.iter().map(Into::into).chain([file.clone().into(), inside.clone().into()]).collect()
        };
        if etude_script::prepare_main(words(&["-q"]).into_iter(), etude_replay::needed_by) != 0 {
            let _ = fs::create_dir(&inside);
        }
        fs::write(&said, b"").expect("it is there");
        etude_replay::replay_main(words(&["--timing", "none", "--no-fifo", "-q", "--json"]).into_iter())
    });
    let line = fs::read_to_string(&said).expect("text");
    let mut left: Vec<_> =
        fs::read_dir(&outer).expect("it is there").map(|each| each.expect("it is").file_name()).collect();
    left.sort();
    assert_eq!(left, ["in", "planted", "roll"], "{line}");
    assert_eq!(fs::read(outer.join("planted")).expect("it is there"), b"as it was", "{line}");
    fs::remove_dir_all(&outer).expect("it is this process's");
    assert!(line.lines().count() <= 1 && !line.contains("panicked"), "{line}");
    match status {
        None => Played::Ended,
        Some(0) => Played::Whole,
        Some(3 | 5) if !line.contains("was killed") => Played::Refused,
        Some(status) => panic!("exit status {status}: {line}"),
    }
}

/// The exit status of what is done in a process of its own; None where that had to be ended.
fn in_child(said: &Path, done: impl FnOnce() -> u8) -> Option<i32> {
    // SAFETY: this process has one thread; the child ends by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: plain values.
        unsafe { libc::setpgid(0, 0) };
        limit(MEMORY, FILE);
        silent(said);
        let status = done();
        // SAFETY: nothing is left to be done.
        unsafe { libc::_exit(status.into()) }
    }
    let (begun, mut status) = (Instant::now(), 0);
    loop {
        // SAFETY: a child of this process.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
            0 if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(2)),
            0 => {
                // SAFETY: the child, which leads a group of its own, and those that it has started.
                unsafe {
                    libc::kill(-pid, libc::SIGKILL);
                    libc::waitpid(pid, &mut status, 0);
                }
                return None;
            }
            _ => break,
        }
    }
    assert!(
        libc::WIFEXITED(status),
        "wait status {status:#x}: {}",
        fs::read_to_string(said).unwrap_or_default()
    );
    Some(libc::WEXITSTATUS(status))
}
