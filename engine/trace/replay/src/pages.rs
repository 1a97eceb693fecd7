//! Memory that calls read into and write from.

pub const PAGE: usize = 4096;

/// Memory at a page's boundary.
pub struct Pages {
    pub at: *mut u8,
    pub length: usize,
}

// SAFETY: raw memory; its users do not care who else writes to it.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Zeros, which take no memory until they are written.
    pub fn new(length: usize) -> std::io::Result<Pages> {
        let length = length.next_multiple_of(PAGE);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh mapping.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if at == libc::MAP_FAILED {
            Err(std::io::Error::last_os_error())
        } else {
            Ok(Pages { at: at.cast(), length })
        }
    }

    /// Random numbers (xorshift; Marsaglia 2003), which no file system makes smaller.
    pub fn random(length: usize) -> std::io::Result<Pages> {
        let pages = Pages::new(length)?;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for at in (0..pages.length).step_by(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // SAFETY: within the mapping, aligned.
            unsafe { pages.at.add(at).cast::<u64>().write(state) };
        }
        Ok(pages)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length; whoever has it does so no longer.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}
