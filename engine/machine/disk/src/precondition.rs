//! A device written until its throughput is steady.
//!
//! As SNIA's PTS 2.0.2 prescribes: purge (here TRIM, when asked), then the capacity written sequentially so many times,
//! then rounds of the pattern until the last ones are steady. Its rounds last a minute; here that is for the user to say.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::os::unix::fs::FileExt;
use std::slice;

use etude_clock::{SECOND, monotonic_ns};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use crate::device::{Device, trim};
use crate::ending::ended;
use crate::grow::is_full;
use crate::steady::{Rule, Seen, is_steady, seen};

const ALIGNED: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    pub trim: bool,
    pub block: u64,
    pub random: bool,
    pub seed: u64,
    /// How often the capacity is written before rounds count.
    pub passes: f64,
    pub round_ns: u64,
    pub rule: Rule,
    pub most_bytes: u64,
    pub time_ns: u64,
}

/// What was done.
#[derive(Debug, Serialize)]
pub struct Done {
    pub steady: bool,
    /// `steady`, `time`, `bytes`, `full` or `signal N`.
    pub ended: String,
    pub capacity_bytes: u64,
    pub written_bytes: u64,
    pub trimmed: bool,
    pub why_not_trimmed: Option<String>,
    pub block_bytes: u64,
    pub pattern: &'static str,
    pub passes: f64,
    /// Rounds of the passes; they do not count.
    pub before: Vec<f64>,
    /// Throughput of each round, B/s.
    pub series: Vec<f64>,
    pub window: usize,
    pub last: Option<Seen>,
    pub seconds: f64,
}

/// # Errors
/// A write fails, for another reason than that there is no space.
pub fn precondition(device: &Device, wish: &Wish, tell: &mut dyn FnMut(&str, f64)) -> io::Result<Done> {
    let trimmed = if wish.trim { trim(device).map(|()| true) } else { Ok(false) };
    let mut writer = Writer::new(device, wish);
    let (mut before, mut series) = (Vec::new(), Vec::new());
    let prepared = (wish.passes * device.bytes as f64) as u64;
    let ended = loop {
        let passing = writer.written < prepared;
        let round =
            writer.round(if passing { prepared } else { wish.most_bytes }, !passing && wish.random)?;
        let rates = if passing { &mut before } else { &mut series };
        match round {
            Round::Whole(rate) => rates.push(rate),
            Round::Cut(why) => break why,
            Round::Enough if writer.written >= wish.most_bytes => break "bytes".to_owned(),
            Round::Enough => {}
        }
        if let Some(rate) = rates.last() {
            tell(if passing { "filling" } else { "round" }, *rate);
        }
        if is_steady(&series, &wish.rule) {
            break "steady".to_owned();
        }
    };
    device.file.sync_all()?;
    Ok(Done {
        steady: ended == "steady",
        ended,
        capacity_bytes: device.bytes,
        written_bytes: writer.written,
        why_not_trimmed: trimmed.as_ref().err().map(etude_micro::exit::said),
        trimmed: trimmed.unwrap_or(false),
        block_bytes: writer.block,
        pattern: if wish.random { "random" } else { "sequential" },
        passes: wish.passes,
        before,
        window: wish.rule.window,
        last: seen(&series, &wish.rule),
        series,
        seconds: (monotonic_ns() - writer.began_ns) as f64 / SECOND as f64,
    })
}

enum Round {
    /// Its throughput, B/s.
    Whole(f64),
    /// What was to be written has been.
    Enough,
    /// Why all ends.
    Cut(String),
}

struct Writer<'a> {
    device: &'a Device,
    wish: &'a Wish,
    random: Xoshiro256PlusPlus,
    buffer: Buffer,
    block: u64,
    blocks: u64,
    at: u64,
    written: u64,
    began_ns: u64,
}

impl<'a> Writer<'a> {
    fn new(device: &'a Device, wish: &'a Wish) -> Writer<'a> {
        let block = wish.block.min(device.bytes / ALIGNED as u64 * ALIGNED as u64);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(wish.seed);
        let mut buffer = Buffer::new(block as usize);
        random.fill_bytes(buffer.bytes());
        let blocks = device.bytes / block;
        Writer { device, wish, random, buffer, block, blocks, at: 0, written: 0, began_ns: monotonic_ns() }
    }

    /// Write for the time of a round, but not beyond so many bytes in all.
    fn round(&mut self, most: u64, scattered: bool) -> io::Result<Round> {
        let (began_ns, before) = (monotonic_ns(), self.written);
        loop {
            let now = monotonic_ns();
            if let Some(signal) = ended() {
                return Ok(Round::Cut(format!("signal {signal}")));
            }
            if now - self.began_ns >= self.wish.time_ns {
                return Ok(Round::Cut("time".to_owned()));
            }
            if self.written >= most {
                return Ok(Round::Enough);
            }
            if now - began_ns >= self.wish.round_ns {
                return Ok(Round::Whole(
                    (self.written - before) as f64 * SECOND as f64 / (now - began_ns) as f64,
                ));
            }
            match self.write(scattered) {
                Err(error) if is_full(&error) => return Ok(Round::Cut("full".to_owned())),
                done => done?,
            }
        }
    }

    fn write(&mut self, scattered: bool) -> io::Result<()> {
        if scattered {
            self.at = ((u128::from(self.random.next_u64()) * u128::from(self.blocks)) >> 64) as u64;
        }
        let mark = self.random.next_u64().to_le_bytes();
        let bytes = self.buffer.bytes();
        for page in bytes.chunks_mut(ALIGNED) {
            page[..8].copy_from_slice(&mark); // no two writes are the same: a device could join them
        }
        self.device.file.write_all_at(bytes, self.at * self.block)?;
        self.at = (self.at + 1) % self.blocks;
        self.written += self.block;
        Ok(())
    }
}

/// Memory that direct I/O takes.
struct Buffer {
    begin: *mut u8,
    layout: Layout,
}

impl Buffer {
    fn new(bytes: usize) -> Buffer {
        let layout = Layout::from_size_align(bytes.max(ALIGNED), ALIGNED).expect("a size");
        // SAFETY: the size is not 0.
        let begin = unsafe { alloc_zeroed(layout) };
        assert!(!begin.is_null(), "no memory for a buffer");
        Buffer { begin, layout }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as large as it was allocated, and borrowed from `self`.
        unsafe { slice::from_raw_parts_mut(self.begin, self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.begin, self.layout) };
    }
}
