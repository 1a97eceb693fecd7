//! Locks of files: of `flock`, and of ranges.

use etude_calls::{Range, RangeKind, RangeLock};
use etude_trace::{Event, words};

use super::{Made, Performer};

const REFUSED: i64 = -(libc::EAGAIN as i64);

/// Whether a call that is about locks may wait for one.
pub fn may_wait(event: &Event) -> bool {
    event.call.name() == "flock" || RangeLock::of(event.call, &event.arguments).is_some_and(|lock| lock.waits)
}

/// Whether it is a lock of a range, which is known.
pub fn is_of_range(event: &Event) -> bool {
    RangeLock::of(event.call, &event.arguments).is_some() && event.arguments[2] != 0
}

impl Performer {
    /// A lock that the original did not get is not kept: nobody would give it back.
    pub(super) fn lock(&mut self, event: &Event, number: u16) -> Made {
        let made = self.ordinary(event, number);
        let live = self.process.table.get(event.arguments[0] as i64);
        if let (REFUSED, Made::Done { result: 0, .. }, Some(live)) = (event.result, made, live) {
            self.range.l_type = libc::F_UNLCK as i16;
            // SAFETY: a descriptor of this replay, and a range that lives through the call.
            unsafe {
                match event.call.name() {
                    "flock" => libc::flock(live, libc::LOCK_UN),
                    _ => libc::fcntl(live, event.arguments[1] as i32, &raw const *self.range),
                };
            }
        }
        made
    }

    /// Where a range stands; a value is the number of its words among the names.
    pub(super) fn range(&mut self, value: u64) -> Option<u64> {
        let name = self.names.get(usize::try_from(value).ok()?.checked_sub(1)?)?;
        let Range { kind, whence, start, length } = words::range_from(name.as_bytes())?;
        let l_type = match kind {
            RangeKind::Read => libc::F_RDLCK,
            RangeKind::Write => libc::F_WRLCK,
            RangeKind::Unlock => libc::F_UNLCK,
        };
        let (l_type, l_whence) = (l_type as i16, whence.into());
        *self.range = libc::flock { l_type, l_whence, l_start: start, l_len: length, l_pid: 0 };
        Some(&raw const *self.range as u64)
    }
}
