//! Mappings, and memory that is no file's.

use etude_trace::Event;

use super::{Made, Performer, Process, same, timed};
use crate::clock::now_ns;
use crate::maps::Maps;

impl Performer {
    pub(super) fn memory(&mut self, event: &Event, number: u16) -> Made {
        let process = self.process.clone();
        if event.call.name() == "brk" {
            let mut maps = process.maps.lock().expect("no thread panics");
            return if self.wishes.footprint { heap(&mut maps, event) } else { Made::Skipped };
        }
        mapped(&process, event, self.wishes.footprint, |arguments| {
            timed(number, arguments, |result| same(event, result))
        })
    }

    /// Touches memory that was taken for its size, until a time.
    pub fn touch(&self, until: i64) {
        if self.wishes.footprint {
            self.process.maps.lock().expect("no thread panics").touch(until);
        }
    }
}

/// Makes a call about mappings. Nobody else changes these meanwhile, but for a call that only writes them back: other threads
/// do not wait for a disk.
fn mapped(process: &Process, event: &Event, footprint: bool, make: impl FnOnce([u64; 6]) -> Made) -> Made {
    let mut maps = process.maps.lock().expect("no thread panics");
    let Some(arguments) = maps.translated(event, footprint, |fd| process.table.get(fd)) else {
        return Made::Skipped;
    };
    if event.call.name() == "msync" {
        drop(maps);
        return make(arguments);
    }
    let made = make(arguments);
    if let Made::Done { result, .. } = made {
        maps.made(event, result);
    }
    made
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

#[cfg(test)]
mod tests {
    use etude_calls::Call;
    use smallvec::SmallVec;

    use super::*;

    fn event(name: &str, arguments: [u64; 6], result: i64) -> Event {
        let call = Call::named(name).unwrap();
        Event { start_ns: 0, duration_ns: 0, call, result, arguments, texts: SmallVec::new() }
    }

    #[test]
    fn others_map_memory_while_a_file_is_written_back() {
        let process = Process::default();
        let done = Made::Done { result: 0x10000, begun: 0, ended: 0, same: true };
        let at = 0x7f00_0000_0000;
        let map = event("mmap", [0, 4096, 3, 0x22, u64::MAX, 0], at);
        let free = |call: &Event| {
            let mut free = None;
            let made = mapped(&process, call, true, |_| {
                free = Some(process.maps.try_lock().is_ok());
                done
            });
            assert_eq!(made, done, "{call:?}");
            free.unwrap()
        };
        assert!(!free(&map));
        assert!(free(&event("msync", [at as u64, 4096, libc::MS_SYNC as u64, 0, 0, 0], 0)));
        assert!(!free(&event("munmap", [at as u64, 4096, 0, 0, 0, 0], 0)));
    }
}
