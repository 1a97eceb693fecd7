//! The buffer of a benchmark: anonymous memory, mapped afresh, so that no allocator decides what is measured.

use std::ptr::{self, NonNull};
use std::slice;

use etude_quantity::size_text;

use crate::exit::{Fail, OSERR};

/// Size of the huge pages that `madvise` asks for on x86-64 and most other machines.
const HUGE_BYTES: usize = 2 << 20;

/// Above this, it is first asked how much memory there is: a page that is not there would end the process.
const LARGE_BYTES: u64 = 1 << 30;

/// Zeros until something is written. Its pages come into being when they are first written to.
#[derive(Debug)]
pub struct Buffer {
    data: NonNull<u8>,
    bytes: usize,
    mapped: NonNull<u8>,
    mapped_bytes: usize,
}

impl Buffer {
    /// Maps a buffer, at least aligned to a page. `huge` asks for huge pages (and then is aligned to 2 MiB), or for none;
    /// without it the machine decides (`/sys/kernel/mm/transparent_hugepage/enabled`).
    ///
    /// # Errors
    /// The machine has less memory than that, or does not give it, or has no huge pages.
    pub fn map(bytes: u64, huge: Option<bool>) -> Result<Buffer, Fail> {
        let refused = |why: String| {
            Fail::new(
                OSERR,
                format!("no buffer of {}: {why}; choose a smaller one with -b", size_text(bytes)),
            )
        };
        if bytes > LARGE_BYTES && bytes > physical_bytes() {
            return Err(refused(format!("this machine has {} bytes of memory", physical_bytes())));
        }
        // Whole huge pages, wherever the mapping begins: a part of one is made of small pages.
        let slack = if huge == Some(true) { HUGE_BYTES } else { 0 };
        let whole =
            usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_next_multiple_of(slack.max(1)));
        let wanted = whole.and_then(|bytes| bytes.checked_add(slack));
        let mapped_bytes = wanted.ok_or_else(|| refused("it is larger than the address space".to_owned()))?;
        let mapped = map(mapped_bytes).map_err(|error| refused(crate::exit::said(&error)))?;
        let skipped = if slack == 0 { 0 } else { mapped.align_offset(HUGE_BYTES) };
        // SAFETY: the mapping is `slack` larger than the buffer, which is more than is skipped.
        let data = unsafe { mapped.add(skipped) };
        let buffer = Buffer { data, bytes: bytes as usize, mapped, mapped_bytes };
        huge.map_or(Ok(()), |huge| buffer.advise(huge))?;
        Ok(buffer)
    }

    fn advise(&self, huge: bool) -> Result<(), Fail> {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is this mapping's own, and advice of these kinds keeps its contents.
        match unsafe { libc::madvise(self.mapped.as_ptr().cast(), self.mapped_bytes, advice) } {
            0 => Ok(()),
            // A kernel without huge pages gives none.
            _ if !huge => Ok(()),
            _ => {
                Err(Fail::last(OSERR, "--huge on: this kernel gives no transparent huge pages; leave it out"))
            }
        }
    }

    /// Writes to every page, so that all of them are there before the clock is read.
    pub fn touch(&mut self) {
        // SAFETY: sysconf takes any number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        for offset in (0..self.bytes).step_by(page) {
            // SAFETY: the offset lies within the buffer. Volatile, so that the write of a zero is done.
            unsafe { self.data.add(offset).write_volatile(0) };
        }
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has so many bytes, all of them initialised, and is borrowed through `self`.
        unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.bytes) }
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's own, and nothing borrows it any more.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

fn map(bytes: usize) -> std::io::Result<NonNull<u8>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing else.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    let mapped = (mapped != libc::MAP_FAILED).then(|| NonNull::new(mapped.cast())).flatten();
    mapped.ok_or_else(std::io::Error::last_os_error)
}

/// The machine's memory, bytes; without reading /proc.
pub(crate) fn physical_bytes() -> u64 {
    // SAFETY: `libc::sysinfo` is numbers alone, for which zeros are values; the place for the answer is valid.
    let info = unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        libc::sysinfo(&mut info);
        info
    };
    info.totalram * u64::from(info.mem_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_pages(buffer: &Buffer) -> usize {
        let mut pages = vec![0u8; buffer.len().div_ceil(4096)];
        // SAFETY: the range is the buffer's, which begins with a page; there is a byte for each page.
        let result = unsafe { libc::mincore(buffer.data.as_ptr().cast(), buffer.len(), pages.as_mut_ptr()) };
        assert_eq!(result, 0);
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn a_buffer_has_no_pages_until_it_is_touched() {
        let mut buffer = Buffer::map(64 << 10, Some(false)).expect("there is memory");
        assert_eq!(resident_pages(&buffer), 0);
        buffer.touch();
        assert_eq!(resident_pages(&buffer), 16);
        assert!(buffer.as_mut_slice().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_buffer_for_huge_pages_begins_with_one() {
        let Ok(mut buffer) = Buffer::map(3 << 20, Some(true)) else { return };
        assert_eq!(buffer.as_mut_ptr() as usize % HUGE_BYTES, 0);
        buffer.as_mut_slice().fill(1);
    }

    #[test]
    fn more_than_the_machine_has_is_refused() {
        for bytes in [2 * physical_bytes(), i64::MAX as u64] {
            let fail = Buffer::map(bytes, None).expect_err("nobody has that");
            assert_eq!(fail.code, OSERR);
            assert!(fail.line.contains("smaller one with -b"), "{}", fail.line);
        }
    }
}
