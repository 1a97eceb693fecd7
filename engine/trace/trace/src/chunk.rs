//! Up to 64 Ki events of one thread as a few bytes each: columns of differences to what was to be expected, then zstd.
//!
//! `predict.rs` says what is to be expected; `encode.rs` and `decode.rs` are each other's mirror.

mod decode;
mod encode;
mod predict;

pub use decode::Decoder;
pub use encode::Encoder;

use etude_calls::Call;

/// Events of a chunk.
pub const MOST_EVENTS: usize = 1 << 16;
/// Bytes of a chunk before it is compressed.
const MOST_RAW: usize = 1 << 26;
/// The longest text.
pub const LONGEST_TEXT: usize = 1 << 16;
/// New texts of a chunk, bytes; a chunk that reaches it ends there.
pub const MOST_TEXT: usize = 1 << 23;

/// What stands before the columns, and can be read without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub thread: u32,
    pub events: u32,
    /// Of all events, since the beginning of the trace, ns.
    pub earliest_ns: u64,
    pub latest_ns: u64,
    /// Whether the dictionary begins anew with this chunk.
    pub anew: bool,
    /// Bytes of the columns.
    raw: u32,
}

impl Head {
    pub const BYTES: usize = 32;

    /// Bytes of its columns.
    pub fn raw_bytes(&self) -> usize {
        self.raw as usize
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.thread.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.events.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.earliest_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.latest_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&u32::from(self.anew).to_le_bytes());
        bytes[28..].copy_from_slice(&self.raw.to_le_bytes());
        bytes
    }

    /// None where it says what cannot be.
    pub fn from_bytes(bytes: &[u8]) -> Option<Head> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let flags = word(24)?;
        let head = Head {
            thread: word(0)?,
            events: word(4)?,
            earliest_ns: long(8)?,
            latest_ns: long(16)?,
            anew: flags & 1 != 0,
            raw: word(28)?,
        };
        let fits = head.events as usize <= MOST_EVENTS && head.raw as usize <= MOST_RAW && flags < 2;
        fits.then_some(head)
    }
}

/// Where each event's times stand among those of all: sorted by the call and the one before it, since how long a call
/// takes, and how long it is after another, depends on which they are.
struct Places {
    /// Of each call's code, its rank among those that occur, plus 1; 0 for one that does not.
    ranks: Vec<u16>,
    /// Codes that occur, ascending.
    codes: Vec<u16>,
    /// By rank: how many events.
    counts: Vec<u32>,
    /// By event.
    places: Vec<u32>,
    starts: Vec<u32>,
}

impl Places {
    fn new() -> Places {
        let ranks = vec![0; usize::from(Call::MANY) + 1];
        Places { ranks, codes: Vec::new(), counts: Vec::new(), places: Vec::new(), starts: Vec::new() }
    }

    fn rank(&self, call: Call) -> usize {
        usize::from(self.ranks[usize::from(call.code())]) - 1
    }

    fn set(&mut self, calls: impl Iterator<Item = Call> + Clone) {
        self.ranks.fill(0);
        self.codes.clear();
        calls.clone().for_each(|call| self.ranks[usize::from(call.code())] = 1);
        for (code, rank) in self.ranks.iter_mut().enumerate().filter(|(_, rank)| **rank > 0) {
            self.codes.push(code as u16);
            *rank = self.codes.len() as u16;
        }
        let many = self.codes.len();
        self.counts.clear();
        self.counts.resize(many, 0);
        self.starts.clear();
        self.starts.resize(many * (many + 1) + 1, 0);
        self.places.clear();
        // The first event comes after nothing, which has a rank of its own.
        let mut before = 0;
        for call in calls {
            let rank = usize::from(self.ranks[usize::from(call.code())]) - 1;
            self.counts[rank] += 1;
            let key = rank * (many + 1) + before;
            self.places.push(key as u32);
            self.starts[key + 1] += 1;
            before = rank + 1;
        }
        for key in 1..self.starts.len() {
            self.starts[key] += self.starts[key - 1];
        }
        for place in &mut self.places {
            let next = &mut self.starts[*place as usize];
            *place = *next;
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests;
