//! Memory that is taken from the machine until it is dropped.

use std::io;
use std::ptr;

pub const PAGE: u64 = 4096;

/// Anonymous memory that is really there: each page has been written to.
#[derive(Default)]
pub struct Held {
    pieces: Vec<(*mut libc::c_void, usize)>,
    bytes: u64,
}

impl Held {
    /// Takes `bytes` more; `huge` in huge pages where the machine has them, which is quicker as long as many are free.
    ///
    /// # Errors
    /// The kernel does not give so much (a limit, or strict overcommit). What came before is kept.
    pub fn grow(&mut self, bytes: u64, huge: bool) -> io::Result<()> {
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory where the kernel likes, that nobody else knows of.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.pieces.push((start, length));
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the mapping of above. Without huge pages in the kernel it fails, and nothing is lost.
        unsafe { libc::madvise(start, length, advice) };
        populate(start, length)?;
        self.bytes += bytes;
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (start, length) in &self.pieces {
            // SAFETY: a mapping made above, used by nobody.
            unsafe { libc::munmap(*start, *length) };
        }
    }
}

/// Writes to all pages; before Linux 5.14 one by one.
fn populate(start: *mut libc::c_void, length: usize) -> io::Result<()> {
    loop {
        // SAFETY: a mapping of this length that may be written to.
        if unsafe { libc::madvise(start, length, libc::MADV_POPULATE_WRITE) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => {}
            Some(libc::EINVAL) => break,
            _ => return Err(error),
        }
    }
    for offset in (0..length).step_by(PAGE as usize) {
        // SAFETY: within the mapping; volatile, or the writes to memory that is never read would be left out.
        unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> u64 {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * PAGE
    }

    #[test]
    fn what_is_held_is_really_there_and_is_given_back() {
        let before = resident();
        let mut held = Held::default();
        held.grow(64 << 20, false).unwrap();
        assert_eq!(held.bytes(), 64 << 20);
        assert!(resident() >= before + (60 << 20));
        drop(held);
        assert!(resident() < before + (30 << 20));
    }

    #[test]
    fn what_the_kernel_does_not_give_is_an_error_and_not_held() {
        let mut held = Held::default();
        assert!(held.grow(1 << 50, false).is_err());
        assert_eq!(held.bytes(), 0);
    }
}
