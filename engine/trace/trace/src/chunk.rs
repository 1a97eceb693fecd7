//! Up to 64 Ki events of one thread as a few bytes each: columns of differences to what was to be expected, then zstd.
//!
//! Here is what both sides share: the head, the places of times, what is to be expected, the texts that were met before,
//! and whole numbers in few bytes. `encode.rs` and `decode.rs` are each other's mirror.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;

use std::collections::HashMap;
use std::sync::Arc;

use etude_calls::{Call, Kind, Outcome};

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

/// The value last seen in a place.
#[derive(Clone, Copy, Default)]
struct Seen {
    arguments: [u64; 6],
    result: u64,
    /// Codes of the texts' places.
    texts: [u32; 2],
    is: bool,
}

const SLOTS: usize = 1024;

/// The expected values of an event after those before it: both sides compute it, and only the difference is written.
struct Predictor {
    /// The last event of each call.
    of_call: Vec<Seen>,
    /// The state of each call on each descriptor.
    of_descriptor: Vec<Seen>,
}

/// The expected values of one event, and the place where its real values are noted.
struct Expected {
    arguments: [u64; 6],
    result: u64,
    texts: [u32; 2],
}

impl Predictor {
    fn new() -> Predictor {
        let of_call = vec![Seen::default(); usize::from(Call::MANY) + 1];
        Predictor { of_call, of_descriptor: vec![Seen::default(); SLOTS] }
    }

    /// Forgets all: each chunk is by itself.
    fn clear(&mut self) {
        self.of_call.fill(Seen::default());
        self.of_descriptor.fill(Seen::default());
    }

    /// The expected first argument.
    #[inline]
    fn first(&self, call: Call) -> u64 {
        self.of_call[usize::from(call.code())].arguments[0]
    }

    /// All else, once the first argument is known.
    #[inline]
    fn rest(&self, call: Call, first: u64) -> Expected {
        let on = &self.of_descriptor[slot(call, first)];
        let seen = if on.is { on } else { &self.of_call[usize::from(call.code())] };
        Expected { arguments: seen.arguments, result: seen.result, texts: seen.texts }
    }

    /// Notes what is so.
    #[inline]
    fn learn(&mut self, call: Call, arguments: &[u64; 6], result: i64, texts: [u32; 2]) {
        let seen = Seen { arguments: *arguments, result: result as u64, texts, is: true };
        self.of_call[usize::from(call.code())] = seen;
        self.of_descriptor[slot(call, arguments[0])] = seen;
    }
}

/// Two that fall together are worth less, but not wrong.
#[inline]
fn slot(call: Call, first: u64) -> usize {
    let descriptor = match call.row().arguments.first() {
        Some(Kind::Fd | Kind::DirFd) => first,
        _ => 0,
    };
    (u64::from(call.code()).wrapping_mul(37).wrapping_add(descriptor) % SLOTS as u64) as usize
}

impl Expected {
    /// The expected result, once all arguments are known.
    #[inline]
    fn result(&self, call: Call, arguments: &[u64; 6]) -> u64 {
        let row = call.row();
        match row.outcome {
            Outcome::Bytes => match row.arguments.iter().position(|kind| *kind == Kind::Size) {
                Some(size) => arguments[size],
                None => self.result,
            },
            // To a place that is given.
            Outcome::Offset if arguments[2] == 0 => arguments[1],
            _ => self.result,
        }
    }
}

/// Above this many bytes, or texts, a dictionary begins anew.
const MOST_BYTES: usize = 1 << 24;
const MOST_TEXTS: usize = 1 << 18;

/// The most that a chunk may add to that: a dictionary that is larger was written by somebody else.
const ANY_BYTES: usize = 1 << 26;
const ANY_TEXTS: usize = 1 << 20;

/// The texts of a file, in the order in which they came.
#[derive(Default)]
pub struct Dictionary {
    texts: Vec<Arc<[u8]>>,
    bytes: usize,
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn get(&self, index: usize) -> Option<&Arc<[u8]>> {
        self.texts.get(index)
    }

    pub fn push(&mut self, text: Arc<[u8]>) {
        self.bytes += text.len();
        self.texts.push(text);
    }

    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES || self.texts.len() > MOST_TEXTS
    }

    /// True if no writer would have gone on with it.
    pub fn is_impossible(&self) -> bool {
        self.bytes > ANY_BYTES || self.texts.len() > ANY_TEXTS
    }

    pub fn clear(&mut self) {
        (self.texts, self.bytes) = (Vec::new(), 0);
    }
}

/// A dictionary that is being written.
#[derive(Default)]
pub struct Known {
    pub all: Dictionary,
    places: HashMap<Arc<[u8]>, u32>,
}

impl Known {
    /// Where a text stands; None if it is new, and then stands behind all others.
    pub fn place(&mut self, text: &Arc<[u8]>) -> Option<usize> {
        if let Some(place) = self.places.get(&text[..]) {
            return Some(*place as usize);
        }
        self.places.insert(text.clone(), self.all.len() as u32);
        self.all.push(text.clone());
        None
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.places.clear();
    }
}

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; None where it is cut short or needs more than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let mut value = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A difference, so that small ones of either sign are small numbers.
#[inline]
pub fn zigzag(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The value that `zigzag` was made of, from the same start.
#[inline]
pub fn unzigzag(from: u64, difference: u64) -> u64 {
    from.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}
