//! Calls of fcntl(2) that lock a range of a file, and `struct flock`, which says what range.

use crate::Call;

/// To whom a lock of a range belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOwner {
    /// F_SETLK, F_SETLKW: to the process, until it closes any descriptor of the file.
    Process,
    /// F_OFD_SETLK, F_OFD_SETLKW: to what was opened, as locks of `flock` do.
    Description,
}

/// A call that sets, changes or gives back locks of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLock {
    pub owner: LockOwner,
    /// Whether it waits for others.
    pub waits: bool,
}

impl RangeLock {
    /// None where it is no such call. Argument 1 is the command.
    pub fn of(call: Call, arguments: &[u64; 6]) -> Option<RangeLock> {
        (call.name() == "fcntl").then(|| RangeLock::by_command(arguments[1] as u32))?
    }

    /// Whether the kernel has read the range: it does not where the descriptor is none, or a filter refuses the call.
    pub fn is_read(result: i64) -> bool {
        const EAGAIN: i64 = -11;
        const EDEADLK: i64 = -35;
        matches!(result, 0 | EAGAIN | EDEADLK)
    }

    pub(crate) const fn by_command(command: u32) -> Option<RangeLock> {
        use LockOwner::{Description, Process};
        match command {
            6 => Some(RangeLock { owner: Process, waits: false }),
            7 => Some(RangeLock { owner: Process, waits: true }),
            37 => Some(RangeLock { owner: Description, waits: false }),
            38 => Some(RangeLock { owner: Description, waits: true }),
            _ => None,
        }
    }
}

/// What `struct flock` holds, but for the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub kind: RangeKind,
    /// SEEK_SET, SEEK_CUR or SEEK_END.
    pub whence: u8,
    pub start: i64,
    /// 0: to the end of the file, wherever that will be.
    pub length: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    Read,
    Write,
    Unlock,
}

impl RangeKind {
    pub const NAMES: [(RangeKind, &'static str); 3] =
        [(RangeKind::Read, "F_RDLCK"), (RangeKind::Write, "F_WRLCK"), (RangeKind::Unlock, "F_UNLCK")];

    pub fn name(self) -> &'static str {
        RangeKind::NAMES[self as usize].1
    }
}

impl Range {
    /// Bytes of `struct flock` in front of its process; the same on all processors of 64 bits.
    pub const BYTES: usize = 24;

    /// None where the kernel would refuse it. Bytes 4 to 7 are padding, which programs leave as they find it.
    pub fn of(bytes: &[u8]) -> Option<Range> {
        let bytes: &[u8; Range::BYTES] = bytes.try_into().ok()?;
        let long = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let [kind, 0, whence @ 0..=2, 0, ..] = bytes[..8] else { return None };
        let (kind, _) = *RangeKind::NAMES.get(usize::from(kind))?;
        Some(Range { kind, whence, start: long(8), length: long(16) })
    }

    pub fn bytes(&self) -> [u8; Range::BYTES] {
        let mut bytes = [0; Range::BYTES];
        (bytes[0], bytes[2]) = (self.kind as u8, self.whence);
        bytes[8..16].copy_from_slice(&self.start.to_le_bytes());
        bytes[16..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// From which byte up to which (exclusive), where `whence` is at that byte.
    pub fn span(&self, whence: u64) -> (u64, u64) {
        let at = i128::from(whence) + i128::from(self.start);
        let (from, to) = match self.length {
            0 => (at, i128::from(u64::MAX)),
            length @ 1.. => (at, at + i128::from(length)),
            length => (at + i128::from(length), at),
        };
        let within = |place: i128| place.clamp(0, i128::from(u64::MAX)) as u64;
        (within(from), within(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_padding_does_not_matter() {
        let range = Range { kind: RangeKind::Write, whence: 0, start: 4096, length: 1 };
        let mut bytes = range.bytes();
        bytes[4..8].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
        assert_eq!(Range::of(&bytes), Some(range));
        bytes[3] = 1;
        assert_eq!(Range::of(&bytes), None);
    }

    #[test]
    fn a_range_is_that_of_the_kernels_structure() {
        use std::mem::offset_of;
        let mut bytes = [0; Range::BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(offset_of!(libc::flock, l_type), &(libc::F_UNLCK as i16).to_ne_bytes());
        put(offset_of!(libc::flock, l_whence), &(libc::SEEK_END as i16).to_ne_bytes());
        put(offset_of!(libc::flock, l_start), &(-7_i64).to_ne_bytes());
        put(offset_of!(libc::flock, l_len), &100_i64.to_ne_bytes());
        let range = Range { kind: RangeKind::Unlock, whence: 2, start: -7, length: 100 };
        assert_eq!((Range::of(&bytes), range.bytes()), (Some(range), bytes));
        assert!(RangeKind::NAMES.iter().all(|(kind, name)| kind.name() == *name));
        assert_eq!(Range::of(&bytes[1..]), None);
    }

    #[test]
    fn a_span_is_where_the_kernel_locks() {
        let span =
            |start, length, whence| Range { kind: RangeKind::Read, whence: 1, start, length }.span(whence);
        assert_eq!(span(10, 5, 100), (110, 115));
        assert_eq!(span(10, -5, 100), (105, 110));
        assert_eq!(span(10, 0, 0), (10, u64::MAX));
        assert_eq!(span(-200, 0, 100), (0, u64::MAX));
        assert_eq!(span(i64::MAX, i64::MAX, u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn commands_are_those_of_the_kernel() {
        let command =
            |command: i32| RangeLock::of(Call::named("fcntl").unwrap(), &[3, command as u64, 0, 0, 0, 0]);
        let set = |owner, waits| Some(RangeLock { owner, waits });
        assert_eq!(command(libc::F_SETLK), set(LockOwner::Process, false));
        assert_eq!(command(libc::F_SETLKW), set(LockOwner::Process, true));
        assert_eq!(command(libc::F_OFD_SETLK), set(LockOwner::Description, false));
        assert_eq!(command(libc::F_OFD_SETLKW), set(LockOwner::Description, true));
        assert_eq!(command(libc::F_GETLK), None);
    }
}
