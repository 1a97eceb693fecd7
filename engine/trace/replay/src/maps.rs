//! A process's recorded mappings and the live ones that stand for them.

use std::collections::BTreeMap;

use etude_trace::Event;

use crate::clock::now_ns;

/// A recorded stretch of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    end: u64,
    /// Where its beginning is now.
    live: u64,
    /// No file's, and writable: it can be touched.
    touchable: bool,
}

/// By their recorded beginnings.
#[derive(Debug, Clone, Default)]
pub struct Maps {
    stretches: BTreeMap<u64, Stretch>,
    /// The recorded end of the heap.
    heap: Option<u64>,
    /// Up to where memory was touched, as recorded.
    touched: u64,
}

const WRITE: u64 = libc::PROT_WRITE as u64;
const EXEC: u64 = libc::PROT_EXEC as u64;
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;
const FIXED: u64 = libc::MAP_FIXED as u64;
/// What else may stand in a mapping's flags.
const ALLOWED: u64 =
    (libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
/// What may be said of memory: how it will be used, not needed, free, of huge pages. Other advice is about the machine.
const ADVICE: [u64; 8] = [0, 1, 2, 3, 4, 8, 14, 15];
const PAGE: u64 = 4096;
/// Where a program's memory can be.
const PLACES: std::ops::Range<u64> = PAGE..1 << 47;
/// The most that a heap grows at once.
const MOST_GROWN: u64 = 1 << 34;
/// The paper's stride (section 4.1), bytes.
const STRIDE: u64 = 1024;
/// Touches between two looks at the clock.
const TOUCHES: u64 = 256;

impl Maps {
    /// The number's arguments of a live call that stands for a recorded one; None where it is not played. Nothing is ever
    /// mapped over memory that is not of these maps, and nothing becomes code.
    pub fn translated(
        &self,
        event: &Event,
        footprint: bool,
        live: impl Fn(i64) -> Option<i32>,
    ) -> Option<[u64; 6]> {
        if (-4095..0).contains(&event.result) {
            return None;
        }
        let mut arguments = event.arguments;
        let [at, length, ..] = arguments;
        match event.call.name() {
            "mmap" => {
                // What a roll says of addresses is believed only where it can be true.
                let (result, fixed) = (event.result as u64, arguments[3] & FIXED != 0);
                if !result.is_multiple_of(PAGE) || !PLACES.contains(&result) || fixed && result != at {
                    return None;
                }
                if arguments[3] & ANONYMOUS == 0 {
                    arguments[4] = live(i64::from(arguments[4] as i32))? as u64;
                } else if !footprint {
                    return None;
                }
                // A place that was asked for counts only within memory that the same program had mapped before.
                let within = self.live(at, length).filter(|_| arguments[3] & FIXED != 0);
                arguments[0] = within.unwrap_or(0);
                arguments[2] &= !EXEC;
                arguments[3] = arguments[3] & ALLOWED | if within.is_some() { FIXED } else { 0 };
            }
            "madvise" if !ADVICE.contains(&arguments[2]) => return None,
            "munmap" | "msync" | "madvise" => arguments[0] = self.live(at, length)?,
            "mprotect" => {
                arguments[0] = self.live(at, length)?;
                arguments[2] &= !EXEC;
            }
            _ => return None,
        }
        Some(arguments)
    }

    /// Where recorded memory is now, if it is all there, in one piece.
    fn live(&self, at: u64, length: u64) -> Option<u64> {
        let to = at.checked_add(length)?.checked_next_multiple_of(PAGE)?;
        let (start, first) = self.stretches.range(..=at).next_back()?;
        let live = first.live + (at - start);
        let (mut end, offset) = (first.end, live.wrapping_sub(at));
        for (start, stretch) in self.stretches.range(at + 1..to.max(at + 1)) {
            if *start != end || stretch.live.wrapping_sub(*start) != offset {
                return None;
            }
            end = stretch.end;
        }
        (end >= to).then_some(live)
    }

    /// A live call was made.
    pub fn made(&mut self, event: &Event, result: i64) {
        if (-4095..0).contains(&result) {
            return;
        }
        let [at, length, protection, flags, ..] = event.arguments;
        match event.call.name() {
            "mmap" => {
                let touchable = flags & ANONYMOUS != 0 && protection & WRITE != 0;
                self.insert(event.result as u64, length, result as u64, touchable);
            }
            "munmap" => self.remove(at, at.saturating_add(length)),
            "mprotect" if protection & WRITE == 0 => {
                let (from, to) = (at, at.saturating_add(length));
                self.cut(from);
                self.cut(to);
                self.stretches.range_mut(from..to).for_each(|(_, stretch)| stretch.touchable = false);
            }
            _ => {}
        }
    }

    fn insert(&mut self, start: u64, length: u64, live: u64, touchable: bool) {
        let end = start.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        self.remove(start, end);
        self.stretches.insert(start, Stretch { end, live, touchable });
    }

    fn remove(&mut self, from: u64, to: u64) {
        let to = to.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        self.cut(from);
        self.cut(to);
        self.stretches.retain(|start, _| !(from..to).contains(start));
    }

    /// Makes a boundary there.
    fn cut(&mut self, at: u64) {
        if let Some((start, stretch)) = self.stretches.range_mut(..at).next_back()
            && stretch.end > at
        {
            let behind = Stretch { live: stretch.live + (at - start), ..*stretch };
            stretch.end = at;
            self.stretches.insert(at, behind);
        }
    }

    /// How much memory a recorded `brk` adds to the heap, bytes; what it gives back is not given back here.
    pub fn grown(&mut self, event: &Event) -> Option<u64> {
        let end = (event.result as u64).checked_next_multiple_of(PAGE).filter(|end| PLACES.contains(end))?;
        let before = self.heap.replace(end)?;
        (end > before).then_some(end - before).filter(|grown| *grown < MOST_GROWN)
    }

    /// The heap has grown, by memory that is somewhere else.
    pub fn grow(&mut self, event: &Event, grown: u64, live: u64) {
        let end = (event.result as u64).next_multiple_of(PAGE);
        self.insert(end.wrapping_sub(grown), grown, live, true);
    }

    /// Touches memory, going round and round, until a time.
    pub fn touch(&mut self, until: i64) {
        let mut next = self.stretches.range(self.touched..).find(|(_, stretch)| stretch.touchable);
        if next.is_none() {
            next = self.stretches.iter().find(|(_, stretch)| stretch.touchable);
        }
        let Some((start, stretch)) = next.map(|(start, stretch)| (*start, *stretch)) else { return };
        let mut at = start;
        while at < stretch.end && now_ns() < until {
            let end = stretch.end.min(at.saturating_add(TOUCHES * STRIDE));
            for place in (at..end).step_by(STRIDE as usize) {
                let byte = (stretch.live + (place - start)) as *mut u8;
                // SAFETY: anonymous memory that is mapped for this, writable, and used by nobody.
                unsafe { byte.write_volatile(1) };
            }
            at = end;
        }
        // The rest is a stretch of its own from now on, so that the next gap goes on there.
        self.cut(at);
        self.touched = at;
    }

    /// The program is another one; what was mapped stays until the process ends, and is no longer found.
    pub fn clear(&mut self) {
        self.stretches.clear();
        self.heap = None;
    }
}
