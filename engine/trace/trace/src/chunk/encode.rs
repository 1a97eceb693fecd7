//! Events into a chunk.

use std::io;

use super::{Head, Known, LONGEST_TEXT, MOST_EVENTS, Places, Predictor, put, zigzag};
use crate::event::Event;

/// Makes chunks; keeps what it needs for that.
pub struct Encoder {
    zstd: zstd::bulk::Compressor<'static>,
    predictor: Predictor,
    places: Places,
    /// By rank of a call: its columns of arguments, then that of results.
    columns: Vec<[Vec<u8>; 7]>,
    /// By rank: which arguments have texts, and which texts.
    masks: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
    new_lengths: Vec<u8>,
    new_texts: Vec<u8>,
    gaps: Vec<u64>,
    durations: Vec<u64>,
    raw: Vec<u8>,
}

impl Encoder {
    pub fn new(level: i32) -> io::Result<Encoder> {
        Ok(Encoder {
            zstd: zstd::bulk::Compressor::new(level)?,
            predictor: Predictor::new(),
            places: Places::new(),
            columns: Vec::new(),
            masks: Vec::new(),
            texts: Vec::new(),
            new_lengths: Vec::new(),
            new_texts: Vec::new(),
            gaps: Vec::new(),
            durations: Vec::new(),
            raw: Vec::new(),
        })
    }

    /// The same for a chunk that can be read without those before it.
    pub fn encode_alone(&mut self, thread: u32, events: &[Event], out: &mut Vec<u8>) -> io::Result<()> {
        self.encode(thread, events, true, &mut Known::default(), out)
    }

    /// Appends a frame's payload to `out`. Events are at most [`MOST_EVENTS`], their arguments normalised.
    pub fn encode(
        &mut self,
        thread: u32,
        events: &[Event],
        anew: bool,
        known: &mut Known,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        assert!(events.len() <= MOST_EVENTS, "the writer cuts them");
        self.places.set(events.iter().map(|event| event.call));
        self.clear(events.len());
        let earliest_ns = events.iter().map(|event| event.start_ns).min().unwrap_or(0);
        let latest_ns = events.iter().map(Event::end_ns).max().unwrap_or(0);
        let mut end = earliest_ns;
        for (event, place) in events.iter().zip(&self.places.places) {
            self.gaps[*place as usize] = zigzag(end, event.start_ns);
            self.durations[*place as usize] = event.duration_ns;
            end = event.end_ns();
        }
        for event in events {
            self.add(event, known)?;
        }
        self.gather(events);
        let raw = self.raw.len() as u32;
        let events = events.len() as u32;
        out.extend(Head { thread, events, earliest_ns, latest_ns, anew, raw }.to_bytes());
        let before = out.len();
        out.resize(before + zstd::zstd_safe::compress_bound(self.raw.len()), 0);
        let length = self.zstd.compress_to_buffer(&self.raw, &mut out[before..])?;
        out.truncate(before + length);
        Ok(())
    }

    fn clear(&mut self, events: usize) {
        self.predictor.clear();
        let many = self.places.codes.len();
        let most = many.max(self.columns.len());
        self.columns.resize_with(most, Default::default);
        self.masks.resize_with(most, Vec::new);
        self.texts.resize_with(most, Vec::new);
        self.columns.iter_mut().flatten().for_each(Vec::clear);
        self.masks.iter_mut().chain(&mut self.texts).for_each(Vec::clear);
        for bytes in [&mut self.new_lengths, &mut self.new_texts, &mut self.raw] {
            bytes.clear();
        }
        for times in [&mut self.gaps, &mut self.durations] {
            times.clear();
            times.resize(events, 0);
        }
    }

    /// All of an event but its times.
    fn add(&mut self, event: &Event, known: &mut Known) -> io::Result<()> {
        let (call, arguments) = (event.call, &event.arguments);
        let rank = self.places.rank(call);
        let columns = &mut self.columns[rank];
        let used = call.row().arguments.len();
        let expected = self.predictor.rest(call, arguments[0]);
        if used > 0 {
            put(&mut columns[0], zigzag(self.predictor.first(call), arguments[0]));
        }
        for index in 1..used {
            put(&mut columns[index], zigzag(expected.arguments[index], arguments[index]));
        }
        put(&mut columns[6], zigzag(expected.result(call, arguments), event.result as u64));
        let (mut mask, mut texts) = (0, expected.texts);
        for (at, text) in event.texts.iter().enumerate() {
            if text.bytes.len() > LONGEST_TEXT {
                return Err(io::Error::other(format!("a text is longer than {LONGEST_TEXT} bytes")));
            }
            // Bits in order of arguments: the order of texts is theirs.
            if text.argument > 5 || u32::from(mask) >> text.argument != 0 {
                return Err(io::Error::other("an event's texts are not in order of its arguments"));
            }
            mask |= 1 << text.argument;
            let before = texts.get(at).copied().unwrap_or(0);
            let place = match known.place(&text.bytes) {
                None => {
                    put(&mut self.texts[rank], 0);
                    put(&mut self.new_lengths, text.bytes.len() as u64);
                    self.new_texts.extend_from_slice(&text.bytes);
                    known.all.len() - 1
                }
                Some(place) if place + 1 == before as usize => {
                    put(&mut self.texts[rank], 1);
                    place
                }
                Some(place) => {
                    put(&mut self.texts[rank], (known.all.len() - 1 - place) as u64 + 2);
                    place
                }
            };
            if let Some(text) = texts.get_mut(at) {
                *text = place as u32 + 1;
            }
        }
        self.masks[rank].push(mask);
        self.predictor.learn(call, arguments, event.result, texts);
        Ok(())
    }

    /// The columns one after the other.
    fn gather(&mut self, events: &[Event]) {
        let raw = &mut self.raw;
        events.iter().for_each(|event| put(raw, u64::from(event.call.code())));
        for rank in 0..self.places.codes.len() {
            raw.extend_from_slice(&self.masks[rank]);
            raw.extend_from_slice(&self.texts[rank]);
            self.columns[rank].iter().for_each(|column| raw.extend_from_slice(column));
        }
        for times in [&self.gaps, &self.durations] {
            let all = times.iter().fold(0, |all, time| all | time);
            let bytes = (64 - all.leading_zeros()).div_ceil(8);
            raw.push(bytes as u8);
            for plane in 0..bytes {
                raw.extend(times.iter().map(|time| (time >> (8 * plane)) as u8));
            }
        }
        raw.extend_from_slice(&self.new_lengths);
        raw.extend_from_slice(&self.new_texts);
    }
}
