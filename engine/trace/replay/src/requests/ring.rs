//! io_uring.

use std::io;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Deed, Done, LONGEST_WAIT, Ready, Taker};

/// Requests that are handed over at once; more of them go in several calls.
const ENTRIES: u32 = 256;

pub struct Ring(IoUring);

impl Ring {
    /// # Errors
    /// The kernel has no io_uring, or does not allow it.
    pub fn new() -> io::Result<Ring> {
        let ring = IoUring::builder().setup_cqsize(ENTRIES * 16).build(ENTRIES)?;
        let fits = ring.params().is_feature_nodrop() && ring.params().is_feature_ext_arg();
        if fits { Ok(Ring(ring)) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// Hands over what stands in the queue.
    fn enter(&self, done: &mut Vec<Done>) -> Result<(), i64> {
        loop {
            match self.0.submit() {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error().unwrap_or(libc::EIO) {
                    libc::EINTR => {}
                    // Completions have to be taken first, or memory is short.
                    libc::EBUSY | libc::EAGAIN => {
                        self.take(done);
                        std::thread::yield_now();
                    }
                    other => return Err(other.into()),
                },
            }
        }
    }
}

impl Taker for Ring {
    fn submit(&self, those: &[Ready], done: &mut Vec<Done>, waits: bool) {
        for part in those.chunks(ENTRIES as usize) {
            for ready in part {
                // SAFETY: one thread at a time is here; what the entry points to lives as long as the queue, which
                // waits for all of it.
                while unsafe { self.0.submission_shared().push(&entry(ready)) }.is_err() {
                    // There are those of another thread, which has left them to its wait.
                    if let Err(error) = self.enter(done) {
                        return done.extend(those.iter().map(|ready| Done { id: ready.id, result: -error }));
                    }
                }
            }
            if waits && those.len() <= ENTRIES as usize {
                return;
            }
            if let Err(error) = self.enter(done) {
                done.extend(part.iter().map(|ready| Done { id: ready.id, result: -error }));
            }
        }
    }

    fn take(&self, done: &mut Vec<Done>) {
        // SAFETY: one thread at a time is here.
        let completions = unsafe { self.0.completion_shared() };
        done.extend(completions.map(|each| Done { id: each.user_data(), result: each.result().into() }));
    }

    fn wait(&self, many: usize, _done: &mut Vec<Done>) {
        let limit = types::Timespec::from(LONGEST_WAIT);
        // What ends it before is a signal, or that completions have to be taken first.
        let _ = self.0.submitter().submit_with_args(many, &types::SubmitArgs::new().timespec(&limit));
    }
}

fn entry(ready: &Ready) -> squeue::Entry {
    let fd = types::Fd(ready.fd);
    let (offset, flags) = (ready.offset as u64, ready.flags.of_transfer());
    let entry = match ready.deed {
        Deed::Read => {
            opcode::Read::new(fd, ready.at as *mut u8, ready.length).offset(offset).rw_flags(flags).build()
        }
        Deed::Write => {
            opcode::Write::new(fd, ready.at as *const u8, ready.length).offset(offset).rw_flags(flags).build()
        }
        Deed::Fsync => opcode::Fsync::new(fd).build(),
        Deed::Fdatasync => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
    };
    // Those that say which file or buffer is meant, or that no completion is wanted, are not for a replay.
    let kept =
        squeue::Flags::IO_DRAIN | squeue::Flags::IO_LINK | squeue::Flags::IO_HARDLINK | squeue::Flags::ASYNC;
    entry.flags(squeue::Flags::from_bits_truncate(ready.flags.0 as u8) & kept).user_data(ready.id)
}
