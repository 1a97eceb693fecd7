//! How a command ends: the signals that ask for it, the line that says what went wrong, and the exit status.

use std::io;
use std::os::fd::OwnedFd;

use etude_launch::sys;
use etude_terminal::say;

/// A line for the user, and the exit status.
pub(crate) type Wrong = (String, u8);

/// `verb`: with the program's name.
pub(crate) fn usage(verb: &str, error: &dyn std::fmt::Display) -> Wrong {
    (format!("{error}; see {verb} --help"), 2)
}

pub(crate) fn answer(verb: &str, done: Result<(), Wrong>) -> u8 {
    done.map_or_else(
        |(line, code)| {
            say(&format!("{verb}: {line}"));
            code
        },
        |()| 0,
    )
}

/// A descriptor that becomes readable when somebody wants the end.
pub(crate) fn signals() -> Result<OwnedFd, Wrong> {
    sys::signalfd(&[libc::SIGTERM, libc::SIGINT]).map_err(machine)
}

pub(crate) fn machine(error: io::Error) -> Wrong {
    (format!("the machine does not allow it: {error}"), 5)
}
