//! Reads and writes of pipes: as many bytes as the original moved, in however many pieces they come here. Which those are is
//! a matter of time, and of how full the pipe is.

use etude_calls::Kind;
use etude_trace::Event;

use super::ways::{Waits, plans};
use super::{Made, Performer, answer, locks, same};
use crate::clock::now_ns;

const EAGAIN: i64 = -(libc::EAGAIN as i64);

impl Performer {
    /// Whether a call may have to wait in the kernel until another thread of the replay has done something.
    pub fn may_wait(&self, event: &Event) -> bool {
        let pipe =
            |(kind, word): (&Kind, &u64)| *kind == Kind::Fd && self.process.table.is_pipe(*word as i64);
        match plans()[usize::from(event.call.code()) - 1].waits {
            Waits::Never => false,
            Waits::Lock => locks::may_wait(event),
            _ => event.call.row().arguments.iter().zip(&event.arguments).any(pipe),
        }
    }

    /// None where it is no pipe, or the original moved nothing: the call is made as it was.
    pub(super) fn through_pipe(&mut self, event: &Event, waits: Waits) -> Option<Made> {
        let reads = match waits {
            Waits::Reads => true,
            Waits::Writes => false,
            _ => return None,
        };
        let size = usize::try_from(event.result).ok().filter(|size| *size > 0)?;
        let recorded = event.arguments[0] as i64;
        let live = self.process.table.get(recorded).filter(|_| self.process.table.is_pipe(recorded))?;
        let at = match reads {
            true => (size <= self.into.length).then_some(self.into.at as u64)?,
            false => self.piece(size)?,
        } as *mut libc::c_void;
        let (begun, mut moved) = (now_ns(), 0);
        let mut last = 1;
        while moved < size && (last > 0 || last == EAGAIN) {
            if last == EAGAIN {
                wait_for(live);
            }
            // SAFETY: a descriptor of this replay, and memory of `size` bytes from `at` on.
            let done = unsafe {
                match reads {
                    true => libc::read(live, at.byte_add(moved), size - moved),
                    false => libc::write(live, at.byte_add(moved), size - moved),
                }
            };
            last = answer(done as i64);
            moved += last.max(0) as usize;
        }
        let result = if moved > 0 { moved as i64 } else { last };
        Some(Made::Done { result, begun, ended: now_ns(), same: same(event, result) })
    }
}

/// Until it can be read or written, whichever it is for.
fn wait_for(live: i32) {
    let mut asked = libc::pollfd { fd: live, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&raw mut asked, 1, -1) };
}
