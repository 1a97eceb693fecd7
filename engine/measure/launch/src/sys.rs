//! The few system calls that libc offers only in the raw, with Rust's types and errors.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The error of the last system call.
pub fn last_error() -> io::Error {
    io::Error::last_os_error()
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(last_error()) } else { Ok(result) }
}

/// Makes this process the new parent of orphaned descendants.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes integers only.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

/// Closes inherited directories on exec: the lock of a results directory, which is this process's to hold, would stay
/// with whatever a program leaves running.
pub fn close_directories_on_exec() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")?.flatten() {
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if fd > 2 && entry.path().is_dir() {
            // SAFETY: takes integers only; the descriptor that lists this directory is closed on exec already.
            checked(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
        }
    }
    Ok(())
}

/// A pipe, both ends closed on exec: (read, write). The read end does not block.
pub fn pipe() -> io::Result<(File, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors, which nobody else owns yet.
    let (read, write) = unsafe {
        checked(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        (File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // SAFETY: takes integers only.
    checked(unsafe { libc::fcntl(read.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok((read, write))
}

/// Asks for a bigger pipe; a refusal is no error, the pipe only stays smaller.
pub fn grow_pipe(pipe: &OwnedFd, bytes: libc::c_int) {
    // SAFETY: takes integers only.
    unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}

/// An event counter, closed on exec, that does not block.
pub fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the new descriptor is owned by nobody else.
    unsafe {
        let fd = checked(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A file in memory of `bytes` zeroes, closed on exec, whose length nobody can change.
pub fn memory_file(bytes: usize) -> io::Result<File> {
    /// Linux 6.3, which may insist on it; unknown before.
    const MFD_NOEXEC_SEAL: libc::c_uint = 8;
    let name = c"etude-barrier";
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string; the new descriptor is owned by nobody else.
    let file = unsafe {
        let fd = checked(libc::memfd_create(name.as_ptr(), flags | MFD_NOEXEC_SEAL))
            .or_else(|_| checked(libc::memfd_create(name.as_ptr(), flags)))?;
        File::from_raw_fd(fd)
    };
    file.set_len(bytes as u64)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: takes integers only.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Locks one byte of a file until `file` is closed, also by the death of its holders. False: another has it.
pub fn lock_byte(file: &File, byte: usize) -> bool {
    let lock = byte_lock(byte);
    // SAFETY: `lock` lives through the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) == 0 }
}

/// Whether somebody else has locked that byte.
pub fn is_byte_locked(file: &File, byte: usize) -> bool {
    let mut lock = byte_lock(byte);
    // SAFETY: `lock` is a valid question and place for the answer.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
    asked == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
}

fn byte_lock(byte: usize) -> libc::flock {
    // SAFETY: flock is plain old data.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte as libc::off_t;
    lock.l_len = 1;
    lock
}

/// Blocks `signals` for this thread and returns a descriptor that becomes readable when one arrives.
pub fn signalfd(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: `set` is initialised by sigemptyset before use; the new descriptor is owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        checked(libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))?;
        let fd = checked(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The signal mask of this thread.
pub fn signal_mask() -> libc::sigset_t {
    // SAFETY: sigset_t is plain old data and a valid place for the answer; with no new mask, the call only reads.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        mask
    }
}

/// Takes one signal from a descriptor made by [`signalfd`].
pub fn take_signal(signals: &OwnedFd) -> Option<libc::c_int> {
    // SAFETY: signalfd_siginfo is plain old data and a valid place for the answer.
    unsafe {
        let mut signal: libc::signalfd_siginfo = std::mem::zeroed();
        let bytes = size_of::<libc::signalfd_siginfo>();
        let length = libc::read(signals.as_raw_fd(), (&raw mut signal).cast(), bytes);
        (length == bytes as isize).then_some(signal.ssi_signo as libc::c_int)
    }
}

/// Peak resident memory of this process's present memory, B.
///
/// That is where `ru_maxrss` of its children starts. Its own `ru_maxrss` also remembers who started it.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))?;
    Some(peak.parse::<u64>().ok()? * 1024)
}

/// Waits until a descriptor is ready or `timeout_ns` are over (None: for ever). An interruption is no error.
pub fn poll(fds: &mut [libc::pollfd], timeout_ns: Option<u64>) -> io::Result<usize> {
    let time = timeout_ns.map(crate::clock::timespec);
    let pointer = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `fds` and `time` live through the call; a null mask leaves the mask alone.
    let ready =
        unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, pointer, std::ptr::null()) };
    match checked(ready) {
        Ok(ready) => Ok(ready as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// A request to hear of input on `fd`.
pub fn wanted(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// What `wait4` tells of a child that ended.
pub struct Reaped {
    /// The child.
    pub pid: libc::pid_t,
    /// Its wait status.
    pub status: libc::c_int,
    /// What it and the children it waited for used.
    pub usage: libc::rusage,
}

/// What a look for ended children found.
pub enum Wait {
    /// One has ended and is reaped.
    Reaped(Box<Reaped>),
    /// There are some, but none has ended.
    Running,
    /// There is none.
    Childless,
}

/// Looks for an ended child (`pid` or, for -1, any) without waiting.
pub fn reap(pid: libc::pid_t) -> Wait {
    wait(pid, libc::WNOHANG)
}

/// Waits for a child to end.
pub fn wait(pid: libc::pid_t, flags: libc::c_int) -> Wait {
    loop {
        let mut status = 0;
        // SAFETY: rusage is plain old data; `status` and `usage` are valid places for the answer.
        let (found, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &mut status, flags, &mut usage), usage)
        };
        match found {
            0 => return Wait::Running,
            found if found > 0 => return Wait::Reaped(Box::new(Reaped { pid: found, status, usage })),
            _ if last_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Wait::Childless,
        }
    }
}

/// Sends a signal; that the target has gone is no error.
pub fn kill(pid: libc::pid_t, signal: libc::c_int) {
    // SAFETY: takes integers only.
    unsafe { libc::kill(pid, signal) };
}

/// Process group of `pid`, or -1.
pub fn group_of(pid: libc::pid_t) -> libc::pid_t {
    // SAFETY: takes integers only.
    unsafe { libc::getpgid(pid) }
}

/// What this process and, with `RUSAGE_CHILDREN`, its reaped children used.
pub fn usage_of(who: libc::c_int) -> libc::rusage {
    // SAFETY: rusage is plain old data and a valid place for the answer.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    }
}

/// CPUs this process may run on.
pub fn allowed_cpus() -> Vec<u32> {
    let mut mask = [0u64; 128];
    let bytes = std::mem::size_of_val(&mask);
    // SAFETY: `mask` is a valid place for `bytes` bytes of answer.
    if unsafe { libc::sched_getaffinity(0, bytes, mask.as_mut_ptr().cast()) } != 0 {
        return Vec::new();
    }
    (0..128 * 64).filter(|cpu| mask[(cpu / 64) as usize] >> (cpu % 64) & 1 == 1).collect()
}

/// Signals that are ignored in this process, and so would be in its children.
pub fn ignored_signals() -> Vec<libc::c_int> {
    let ignored = |signal: &libc::c_int| {
        // SAFETY: sigaction is plain old data; with no new action, the call only reads.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(*signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
        }
    };
    (1..=64).filter(ignored).collect()
}

/// Raises the limit of open files as far as allowed; returns the limit that stood before, if it was changed.
pub fn raise_open_files() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer and then a valid argument.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 || limit.rlim_cur >= limit.rlim_max {
            return None;
        }
        let higher = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        (libc::setrlimit(libc::RLIMIT_NOFILE, &higher) == 0).then_some(limit)
    }
}

/// As many open files as this process may have, after asking for all that are allowed.
pub fn most_open_files() -> usize {
    raise_open_files();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}
