//! What a process may take, and where it writes.

use std::fs::File;
use std::os::fd::IntoRawFd;
use std::path::Path;

/// From now on no more memory than this, and no longer file.
pub fn limit(memory: u64, file: u64) {
    // SAFETY: plain values; a file that grows too long is an error and no signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        for (what, most) in [(libc::RLIMIT_AS, memory), (libc::RLIMIT_FSIZE, file), (libc::RLIMIT_CORE, 0)] {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            assert_eq!(libc::getrlimit(what, &mut limit), 0);
            limit.rlim_cur = limit.rlim_max.min(most);
            assert_eq!(libc::setrlimit(what, &limit), 0);
        }
    }
}

/// What is said goes into a file, what is put out nowhere.
pub fn silent(said: &Path) {
    let nowhere = File::options().write(true).open("/dev/null").expect("a machine with /dev/null");
    let said = File::options().append(true).create(true).open(said).expect("a file to write");
    // SAFETY: two descriptors that are open.
    unsafe {
        libc::dup2(nowhere.into_raw_fd(), 1);
        libc::dup2(said.into_raw_fd(), 2);
    }
}
