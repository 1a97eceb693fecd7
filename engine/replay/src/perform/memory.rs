//! Mappings, and memory that is no file's.

use etude_trace::Event;

use super::{Made, Performer, same, timed};
use crate::clock::now_ns;
use crate::maps::Maps;

impl Performer {
    pub(super) fn memory(&mut self, event: &Event, number: u16) -> Made {
        let process = self.process.clone();
        let mut maps = process.maps.lock().expect("no thread panics");
        if event.call.name() == "brk" {
            return if self.wishes.footprint { heap(&mut maps, event) } else { Made::Skipped };
        }
        let Some(arguments) = maps.translated(event, self.wishes.footprint, |fd| process.table.get(fd))
        else {
            return Made::Skipped;
        };
        let made = timed(number, arguments, |result| same(event, result));
        if let Made::Done { result, .. } = made {
            maps.made(event, result);
        }
        made
    }

    /// Touches memory that was taken for its size, until a time.
    pub fn touch(&self, until: i64) {
        if self.wishes.footprint {
            self.process.maps.lock().expect("no thread panics").touch(until);
        }
    }
}

/// A larger heap: memory of its own, since the replayer has a heap itself.
fn heap(maps: &mut Maps, event: &Event) -> Made {
    let Some(grown) = maps.grown(event) else { return Made::Skipped };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let begun = now_ns();
    // SAFETY: a fresh mapping.
    let live = unsafe { libc::mmap(std::ptr::null_mut(), grown as usize, protection, flags, -1, 0) };
    let ended = now_ns();
    if live == libc::MAP_FAILED {
        return Made::Skipped;
    }
    maps.grow(event, grown, live as u64);
    Made::Done { result: event.result, begun, ended, same: true }
}
