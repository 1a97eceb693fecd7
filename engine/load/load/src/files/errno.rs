//! Errors of system calls, by the names under which windows count them.

use std::io;

/// The name of an error's number; one for all that have none.
pub(crate) fn name(number: i32) -> &'static str {
    u16::try_from(number).ok().and_then(etude_calls::errors::name).unwrap_or("unknown")
}

/// Of the call that was made last on this thread.
pub(crate) fn last() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_names_and_what_has_none_is_unknown() {
        assert_eq!(
            [libc::ENOSPC, libc::EROFS, libc::ENOTCONN, 0, -3, 100_000].map(name),
            ["ENOSPC", "EROFS", "ENOTCONN", "unknown", "unknown", "unknown"]
        );
        // SAFETY: a descriptor that nobody has.
        unsafe { libc::close(-1) };
        assert_eq!(name(last()), "EBADF");
    }
}
