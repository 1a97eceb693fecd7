//! How far a file set is, on a terminal.

use std::io::{self, Write};

use etude_clock::{SECOND, monotonic_ns};
use etude_terminal::Screen;

const EVERY_NS: u64 = SECOND / 10;

/// Silent where standard error is no terminal.
pub(crate) struct Progress {
    terminal: bool,
    told_ns: u64,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { terminal: Screen::of(&io::stderr()).obeys, told_ns: 0 }
    }

    /// So many of so many files, directories and links are as they should be.
    pub fn tell(&mut self, done: usize, all: usize) {
        let now = monotonic_ns();
        if self.terminal && now >= self.told_ns + EVERY_NS {
            self.told_ns = now;
            let _ = write!(io::stderr(), "\r\x1b[Kfile set: {done} of {all}");
        }
    }

    /// Nothing of it stays.
    pub fn end(&mut self) {
        if self.terminal && self.told_ns > 0 {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
