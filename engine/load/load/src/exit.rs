//! How a command ends: the signals that ask for it, and what the machine does not allow.

use std::io;
use std::os::fd::OwnedFd;

use etude_launch::sys;
use etude_options::Failed;

/// A descriptor that becomes readable when somebody wants the end.
pub(crate) fn signals() -> Result<OwnedFd, Failed> {
    sys::signalfd(&[libc::SIGTERM, libc::SIGINT]).map_err(machine)
}

pub(crate) fn machine(error: io::Error) -> Failed {
    (format!("the machine does not allow it: {error}"), 5)
}
