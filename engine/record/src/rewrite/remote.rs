//! Another process: ptrace, and its memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub type Pid = libc::pid_t;

pub fn ptrace(request: u32, pid: Pid, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: what a request writes goes to a place that the caller has made for it.
    let answer = unsafe { libc::ptrace(request as _, pid, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// What `/proc/PID/status` says of it by that name.
pub fn status_of(pid: Pid, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned())
}

pub struct Memory(File);

impl Memory {
    pub fn of(pid: Pid) -> io::Result<Memory> {
        Ok(Memory(File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?))
    }

    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    #[cfg(target_arch = "x86_64")]
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }
}
