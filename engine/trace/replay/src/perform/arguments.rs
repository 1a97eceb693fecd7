//! What a recorded call's arguments are now.

use etude_calls::{Kind, Moves, Outcome, Processor, Set, canonical_open_flags};
use etude_trace::Event;

use super::{Performer, SCRATCH, VECTORS};
use crate::pages::{PAGE, Pages};

impl Performer {
    pub(super) fn argument(&mut self, event: &Event, index: usize) -> Option<u64> {
        let (call, value) = (event.call, event.arguments[index]);
        let pointer = |pages: &Pages| pages.at as u64;
        Some(match call.kind(&event.arguments, index) {
            Kind::Fd => self.process.table.get(value as i64)? as u64,
            Kind::DirFd => self.directory(event, index)?,
            Kind::Path | Kind::Name => match value {
                // Before Linux 6.11 no path is not the same.
                0 if is_about_its_descriptor(event) => c"".as_ptr() as u64,
                0 => 0,
                name => fetched(self.names.get(name as usize - 1)?.as_ptr()),
            },
            Kind::Buffer if call.row().moves == Moves::Writes => {
                let size = usize::try_from(event.arguments[index + 1]).ok()?;
                self.piece(size)?
            }
            Kind::Buffer => {
                let size = usize::try_from(event.arguments[index + 1]).ok()?;
                (size <= self.into.length).then(|| pointer(&self.into))?
            }
            Kind::Iovec => self.vectors(event, index)?,
            Kind::Pointer if call.name().starts_with("utim") || call.name() == "futimesat" => 0,
            Kind::Pointer => {
                let size = event.arguments.get(index + 1).copied().unwrap_or(0);
                let sized = call.row().arguments.get(index + 1) == Some(&Kind::Size);
                (!sized || size <= SCRATCH as u64).then(|| pointer(&self.scratch))?
            }
            Kind::OffsetAt => self.offset(index, value),
            Kind::Range => self.range(value)?,
            // Nobody becomes another user by what a roll makes.
            Kind::Mode => value & if call.name().starts_with("mknod") { 0o170777 } else { 0o1777 },
            Kind::Flags(Set::Open) => {
                let value = value & !SIGNALS;
                let direct = if self.wishes.direct
                    && call.row().outcome == Outcome::Descriptor
                    && value & DIRECTORY == 0
                {
                    0o40000
                } else {
                    0
                };
                canonical_open_flags(Processor::own()?, value | direct)
            }
            _ => value,
        })
    }

    /// Where an offset stands, if there is one: a value is one more than it.
    fn offset(&mut self, index: usize, value: u64) -> u64 {
        let Some(offset) = value.checked_sub(1) else { return 0 };
        let cell = &mut self.offsets[index / 2 % 2];
        *cell = offset;
        cell as *mut u64 as u64
    }

    /// Of a path that begins at the root it does not matter.
    fn directory(&self, event: &Event, index: usize) -> Option<u64> {
        let recorded = event.arguments[index] as i64;
        if recorded == i64::from(libc::AT_FDCWD) {
            return Some(recorded as u64);
        }
        if let Some(live) = self.process.table.get(recorded) {
            return Some(live as u64);
        }
        let name = (event.arguments.get(index + 1).copied()? as usize).checked_sub(1)?;
        let absolute = self.names.get(name)?.as_bytes().first() == Some(&b'/');
        absolute.then_some(i64::from(libc::AT_FDCWD) as u64)
    }

    /// Where so many bytes to be written stand.
    pub(super) fn piece(&mut self, size: usize) -> Option<u64> {
        if size > self.data.length {
            return None;
        }
        self.piece += 7 * PAGE;
        if self.piece + size > self.data.length {
            self.piece %= (self.data.length - size).max(1).next_multiple_of(PAGE);
            self.piece = self.piece.min((self.data.length - size) / PAGE * PAGE);
        }
        Some(self.data.at as u64 + self.piece as u64)
    }

    /// Buffers of a vectored call: of how many bytes each is was not recorded, only what moved.
    fn vectors(&mut self, event: &Event, index: usize) -> Option<u64> {
        let (many, all) = (event.arguments[index + 1] as usize, event.result.max(0) as usize);
        if many == 0 || many > VECTORS {
            return None;
        }
        let base = if event.call.row().moves == Moves::Writes {
            self.piece(all)?
        } else {
            (all <= self.into.length).then_some(self.into.at as u64)?
        };
        let each = all / many;
        for (at, vector) in self.vectors[..many].iter_mut().enumerate() {
            let length = if at + 1 == many { all - each * at } else { each };
            *vector =
                libc::iovec { iov_base: (base + (each * at) as u64) as *mut libc::c_void, iov_len: length };
        }
        Some(self.vectors.as_ptr() as u64)
    }
}

/// Whether an empty path is the descriptor before it (AT_EMPTY_PATH).
fn is_about_its_descriptor(event: &Event) -> bool {
    const EMPTY_PATH: u64 = 0x1000;
    let mut kinds = event.call.row().arguments.iter().zip(event.arguments);
    kinds.any(|(kind, value)| matches!(kind, Kind::Flags(Set::At | Set::Eaccess)) && value & EMPTY_PATH != 0)
}

const DIRECTORY: u64 = 0o200000;
/// O_ASYNC: signals at I/O.
const SIGNALS: u64 = 0o20000;

/// Where a name stands. It is looked at, so that the kernel does not wait for memory as it would not for a program that
/// has just made it.
fn fetched(name: *const libc::c_char) -> u64 {
    // SAFETY: a name has a last byte at least.
    unsafe { name.read_volatile() };
    name as u64
}
