//! Another process: ptrace, its memory, and what /proc says of it.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

pub type Pid = libc::pid_t;

pub fn ptrace(request: u32, pid: Pid, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: what a request writes goes to a place that the caller has made for it.
    let answer = unsafe { libc::ptrace(request as _, pid, address, data) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A file of /proc that the kernel makes in one piece, so that a read that does not fill its buffer has reached the
/// end: three system calls, where `std::fs::read` makes up to a dozen.
///
/// # Errors
/// The process is gone, or the file may not be read.
pub fn read_whole(path: &str) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut length) = (vec![0; 8192], 0);
    loop {
        let read = match file.read(&mut bytes[length..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        length += read;
        if length < bytes.len() {
            bytes.truncate(length);
            return Ok(bytes);
        }
        bytes.resize(2 * length, 0);
    }
}

/// The same as text; what is not UTF-8 (names of programs) is replaced.
///
/// # Errors
/// As `read_whole`.
pub fn read_text(path: &str) -> io::Result<String> {
    read_whole(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// `/proc/PID/status`, read once.
pub struct Status(String);

impl Status {
    /// # Errors
    /// The thread is gone.
    pub fn of(pid: Pid) -> io::Result<Status> {
        read_text(&format!("/proc/{pid}/status")).map(Status)
    }

    /// The value of a field, such as `Tgid:`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    /// The set of signals that the thread blocks.
    #[cfg(target_arch = "x86_64")]
    pub fn blocked(&self) -> Option<u64> {
        u64::from_str_radix(self.field("SigBlk:")?, 16).ok()
    }
}

/// What `/proc/PID/status` says of it by that name.
pub fn status_of(pid: Pid, name: &str) -> Option<String> {
    Status::of(pid).ok()?.field(name).map(str::to_owned)
}

/// Memory of another process. It is read by `process_vm_readv`, and by `/proc/PID/mem` where that fails: the file
/// passes the protection of pages, but takes two calls more.
pub struct Memory {
    pid: Pid,
    file: OnceCell<File>,
}

impl Memory {
    /// # Errors
    /// It may not be opened.
    pub fn of(pid: Pid) -> io::Result<Memory> {
        let memory = Memory::unopened(pid);
        memory.file()?;
        Ok(memory)
    }

    /// The same, opened when it is needed.
    pub fn unopened(pid: Pid) -> Memory {
        Memory { pid, file: OnceCell::new() }
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::options().read(true).write(true).open(format!("/proc/{}/mem", self.pid))?;
        Ok(self.file.get_or_init(|| file))
    }

    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        if !read_vectors(self.pid, &mut [(at, &mut bytes)]) {
            self.file()?.read_exact_at(&mut bytes, at)?;
        }
        Ok(bytes)
    }

    /// Several pieces in one call; None where not all of them can be read so.
    pub fn read_pieces(&self, places: &[(u64, usize)]) -> Option<Vec<Vec<u8>>> {
        let mut pieces: Vec<Vec<u8>> = places.iter().map(|(_, length)| vec![0; *length]).collect();
        let mut wanted: Vec<_> =
            places.iter().map(|(at, _)| *at).zip(pieces.iter_mut().map(Vec::as_mut_slice)).collect();
        read_vectors(self.pid, &mut wanted).then_some(pieces)
    }

    /// Writes also where the process itself may not.
    #[cfg(target_arch = "x86_64")]
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(bytes, at)
    }
}

/// Whether `process_vm_readv` has read all these pieces, from where they are.
fn read_vectors(pid: Pid, pieces: &mut [(u64, &mut [u8])]) -> bool {
    let vector = |base: *mut libc::c_void, length| libc::iovec { iov_base: base, iov_len: length };
    let local: Vec<_> =
        pieces.iter_mut().map(|(_, bytes)| vector(bytes.as_mut_ptr().cast(), bytes.len())).collect();
    let remote: Vec<_> = pieces.iter().map(|(at, bytes)| vector(*at as *mut _, bytes.len())).collect();
    let many = pieces.len() as libc::c_ulong;
    // SAFETY: it writes to the pieces alone, to each at most as many bytes as it has.
    let read = unsafe { libc::process_vm_readv(pid, local.as_ptr(), many, remote.as_ptr(), many, 0) };
    usize::try_from(read) == Ok(pieces.iter().map(|(_, bytes)| bytes.len()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_proc_is_read_whole() {
        let own = std::process::id() as Pid;
        let status = Status::of(own).unwrap();
        assert_eq!(status.field("Pid:"), Some(own.to_string().as_str()));
        assert_eq!(status_of(own, "Tgid:"), Some(own.to_string()));
        assert_eq!(read_whole("/proc/self/cmdline").unwrap(), std::fs::read("/proc/self/cmdline").unwrap());
        assert!(status_of(-1, "Tgid:").is_none());
    }

    #[test]
    fn memory_is_read_in_pieces_and_also_where_the_process_itself_may_not() {
        // SAFETY: a fresh mapping of a page.
        let page = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(std::ptr::null_mut(), 4096, both, private, -1, 0);
            std::ptr::copy_nonoverlapping(b"some".as_ptr(), page.cast(), 4);
            libc::mprotect(page, 4096, libc::PROT_NONE);
            page as u64
        };
        let memory = Memory::unopened(std::process::id() as Pid);
        assert_eq!(memory.read(page, 4).unwrap(), b"some");
        assert!(memory.read(8, 1).is_err());
        let own = *b"other";
        let at = own.as_ptr() as u64;
        assert_eq!(memory.read_pieces(&[(at + 1, 2), (at, 1)]), Some(vec![b"th".to_vec(), b"o".to_vec()]));
        assert_eq!(memory.read_pieces(&[(at, 1), (page, 4)]), None);
        // SAFETY: the mapping from above.
        unsafe { libc::munmap(page as *mut libc::c_void, 4096) };
    }
}
