//! How a micro-benchmark ends: one of sysexits(3), and one line that says why.

use std::fmt::Display;
use std::io;

/// Wrong options or arguments.
pub const USAGE: u8 = 64;
/// The file that should be read is not there, is no file, or is too short.
pub const NOINPUT: u8 = 66;
/// The system refuses: memory, descriptors, an alignment, a call that it does not have.
pub const OSERR: u8 = 71;
/// A file cannot be created or opened for writing.
pub const CANTCREAT: u8 = 73;
/// A transfer failed or was short.
pub const IOERR: u8 = 74;
/// Not permitted.
pub const NOPERM: u8 = 77;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fail {
    /// The exit status.
    pub code: u8,
    /// What, where, what was expected, what to do.
    pub line: String,
}

impl Fail {
    pub fn new(code: u8, line: impl Into<String>) -> Fail {
        Fail { code, line: line.into() }
    }

    pub fn usage(line: impl Into<String>) -> Fail {
        Fail::new(USAGE, line)
    }

    /// A call that failed. What is not permitted is told apart from all else, for which the status is `code`.
    pub fn call(code: u8, doing: impl Display, error: &io::Error) -> Fail {
        let code = if forbids(error) { NOPERM } else { code };
        Fail::new(code, format!("{doing}: {}", said(error)))
    }

    /// The last call of this thread, which failed.
    pub fn last(code: u8, doing: impl Display) -> Fail {
        Fail::call(code, doing, &io::Error::last_os_error())
    }
}

/// Whether an error is about permission.
pub fn forbids(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// What the system says, without Rust's number behind it.
pub fn said(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// Says on standard error what went wrong; the exit status.
pub fn status(result: Result<(), Fail>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(fail) => {
            etude_terminal::complain!("FAIL: {}", fail.line);
            fail.code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_permitted_has_a_status_of_its_own() {
        let denied = Fail::call(IOERR, "open x", &io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(denied, Fail::new(NOPERM, "open x: Permission denied"));
        let full = Fail::call(IOERR, "write x", &io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(full, Fail::new(IOERR, "write x: No space left on device"));
    }
}
