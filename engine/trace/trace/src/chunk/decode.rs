//! A chunk into events. Nothing in it is trusted.

use std::sync::Arc;

use etude_calls::Call;
use smallvec::SmallVec;

use super::{Dictionary, Head, LONGEST_TEXT, Places, Predictor, take, unzigzag};
use crate::event::{Event, Text};

/// Reads chunks; keeps what it needs for that.
pub struct Decoder {
    zstd: zstd::bulk::Decompressor<'static>,
    predictor: Predictor,
    places: Places,
    raw: Vec<u8>,
    calls: Vec<Call>,
    groups: Vec<Group>,
    /// The numbers of all groups.
    values: Vec<u64>,
    masks: Vec<u8>,
    gaps: Vec<u64>,
    durations: Vec<u64>,
}

/// The events of one call.
#[derive(Clone, Copy)]
struct Group {
    events: usize,
    /// How many are done.
    next: usize,
    /// Where its masks begin.
    masks: usize,
    /// Where the next of its texts stands among the values.
    texts: usize,
    /// Where its arguments begin there: a column each, then the results.
    arguments: usize,
}

const SHORT: &str = "a chunk of events is shorter than it says";

impl Decoder {
    pub fn new() -> std::io::Result<Decoder> {
        Ok(Decoder {
            zstd: zstd::bulk::Decompressor::new()?,
            predictor: Predictor::new(),
            places: Places::new(),
            raw: Vec::new(),
            calls: Vec::new(),
            groups: Vec::new(),
            values: Vec::new(),
            masks: Vec::new(),
            gaps: Vec::new(),
            durations: Vec::new(),
        })
    }

    /// The same of a chunk that can be read without those before it.
    pub fn decode_alone(&mut self, payload: &[u8], events: &mut Vec<Event>) -> Result<Head, String> {
        self.decode(payload, &mut Dictionary::default(), events)
    }

    /// Puts a payload's events into `events`, in place of those that are there. The error says what is wrong.
    pub fn decode(
        &mut self,
        payload: &[u8],
        dictionary: &mut Dictionary,
        events: &mut Vec<Event>,
    ) -> Result<Head, String> {
        events.clear();
        let head = Head::from_bytes(payload).ok_or("a chunk of events begins with nonsense")?;
        if head.anew {
            dictionary.clear();
        }
        if dictionary.is_impossible() {
            return Err("a chunk of events has more texts than a trace can have".into());
        }
        let mut raw = std::mem::take(&mut self.raw);
        raw.resize(head.raw as usize, 0);
        let length = self.zstd.decompress_to_buffer(&payload[Head::BYTES..], &mut raw[..]);
        let length = length.map_err(|error| format!("a chunk of events cannot be decompressed ({error})"))?;
        let rest = &mut &raw[..length];
        let result = self
            .columns(rest, head.events as usize)
            .and_then(|()| self.build(rest, &head, dictionary, events));
        self.raw = raw;
        result.map(|()| head)
    }

    /// Takes all columns but the new texts.
    fn columns(&mut self, rest: &mut &[u8], events: usize) -> Result<(), String> {
        self.calls.clear();
        for _ in 0..events {
            let code = take(rest).ok_or(SHORT)?;
            let call = u16::try_from(code).ok().and_then(Call::from_code);
            self.calls.push(call.ok_or_else(|| format!("call {code} is not known to this version"))?);
        }
        self.places.set(self.calls.iter().copied());
        self.groups.clear();
        self.values.clear();
        self.masks.clear();
        for (code, count) in self.places.codes.iter().zip(&self.places.counts) {
            let many = *count as usize;
            let masks = rest.split_off(..many).ok_or(SHORT)?;
            let texts = self.values.len();
            for _ in 0..masks.iter().map(|mask| mask.count_ones()).sum() {
                self.values.push(take(rest).ok_or(SHORT)?);
            }
            let arguments = self.values.len();
            self.groups.push(Group { events: many, next: 0, masks: self.masks.len(), texts, arguments });
            self.masks.extend_from_slice(masks);
            let call = Call::from_code(*code).expect("codes are those of calls");
            self.values.reserve(many * (call.row().arguments.len() + 1));
            for _ in 0..many * (call.row().arguments.len() + 1) {
                self.values.push(take(rest).ok_or(SHORT)?);
            }
        }
        for times in [&mut self.gaps, &mut self.durations] {
            times.clear();
            times.resize(events, 0);
            let bytes = rest.split_off_first().ok_or(SHORT)?;
            if *bytes > 8 {
                return Err("times of a chunk of events have more than 64 bits".into());
            }
            for plane in 0..*bytes {
                let plane_bytes = rest.split_off(..events).ok_or(SHORT)?;
                for (time, byte) in times.iter_mut().zip(plane_bytes) {
                    *time |= u64::from(*byte) << (8 * plane);
                }
            }
        }
        Ok(())
    }

    fn build(
        &mut self,
        rest: &mut &[u8],
        head: &Head,
        dictionary: &mut Dictionary,
        events: &mut Vec<Event>,
    ) -> Result<(), String> {
        let mut texts = NewTexts::take(rest, self.new_texts())?;
        if !rest.is_empty() {
            return Err("a chunk of events is longer than it says".into());
        }
        self.predictor.clear();
        events.reserve(self.calls.len());
        let mut end = head.earliest_ns;
        for at in 0..self.calls.len() {
            let place = self.places.places[at] as usize;
            let start_ns = unzigzag(end, self.gaps[place]);
            let event = self.event(at, start_ns, self.durations[place], dictionary, &mut texts)?;
            end = event.end_ns();
            events.push(event);
        }
        Ok(())
    }

    /// How many texts stand in the dictionary for the first time.
    fn new_texts(&self) -> usize {
        let codes = |group: &Group| self.values[group.texts..group.arguments].iter();
        self.groups.iter().flat_map(codes).filter(|code| **code == 0).count()
    }

    fn event(
        &mut self,
        at: usize,
        start_ns: u64,
        duration_ns: u64,
        dictionary: &mut Dictionary,
        new: &mut NewTexts,
    ) -> Result<Event, String> {
        let call = self.calls[at];
        let used = call.row().arguments.len();
        let group = &mut self.groups[self.places.rank(call)];
        let column = |index: usize| self.values[group.arguments + index * group.events + group.next];
        let mut arguments = [0; 6];
        if used > 0 {
            arguments[0] = unzigzag(self.predictor.first(call), column(0));
        }
        let expected = self.predictor.rest(call, arguments[0]);
        for (index, argument) in arguments.iter_mut().enumerate().take(used).skip(1) {
            *argument = unzigzag(expected.arguments[index], column(index));
        }
        let result = unzigzag(expected.result(call, &arguments), column(used)) as i64;
        let mut mask = self.masks[group.masks + group.next];
        if mask > 0x3f {
            return Err("an event has more texts than arguments".into());
        }
        group.next += 1;
        let (mut texts, mut places) = (SmallVec::new(), expected.texts);
        while mask != 0 {
            let code = self.values[group.texts];
            group.texts += 1;
            let before = places.get(texts.len()).copied().unwrap_or(0) as usize;
            let place = match code {
                0 => {
                    dictionary.push(new.next());
                    Some(dictionary.len() - 1)
                }
                1 => before.checked_sub(1),
                back => dictionary
                    .len()
                    .checked_sub(1)
                    .and_then(|last| last.checked_sub(usize::try_from(back - 2).ok()?)),
            };
            let text = place.and_then(|place| Some((place, dictionary.get(place)?.clone())));
            let (place, bytes) = text.ok_or("an event has a text that was never written")?;
            if let Some(known) = places.get_mut(texts.len()) {
                *known = place as u32 + 1;
            }
            texts.push(Text { argument: mask.trailing_zeros() as u8, bytes });
            mask &= mask - 1;
        }
        self.predictor.learn(call, &arguments, result, places);
        Ok(Event { start_ns, duration_ns, call, result, arguments, texts })
    }
}

/// Texts that come for the first time.
struct NewTexts<'a> {
    lengths: Vec<u32>,
    next: usize,
    bytes: &'a [u8],
}

impl<'a> NewTexts<'a> {
    fn take(rest: &mut &'a [u8], many: usize) -> Result<Self, String> {
        let (mut lengths, mut all) = (Vec::with_capacity(many), 0);
        for _ in 0..many {
            let length = take(rest).filter(|length| *length <= LONGEST_TEXT as u64).ok_or(SHORT)?;
            all += length as usize;
            lengths.push(length as u32);
        }
        let bytes = rest.split_off(..all).ok_or(SHORT)?;
        Ok(NewTexts { lengths, next: 0, bytes })
    }

    /// The next: there are as many as were counted.
    fn next(&mut self) -> Arc<[u8]> {
        let (text, rest) = self.bytes.split_at(self.lengths[self.next] as usize);
        (self.bytes, self.next) = (rest, self.next + 1);
        text.into()
    }
}
