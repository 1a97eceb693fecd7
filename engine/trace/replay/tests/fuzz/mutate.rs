//! Bytes and texts that are altered; frames with sums that are right again, so that what is altered is looked at.

use etude_trace::parts::{Kind, checked, head, put, take};

use crate::random::Random;

/// What stands before the first frame, of a trace and of a roll.
const START: usize = 16;
/// What stands before the columns of a chunk: thread, events, two times, flags, bytes of the columns.
const CHUNK_HEAD: usize = 32;
/// A part that is repeated until it is so long is longer than anything may be.
const BOMB: usize = 1 << 26;

type Frames = Vec<(Kind, Vec<u8>)>;

/// Alters a file of frames; `other` is one of the same kind.
pub fn file(random: &mut Random, whole: &[u8], other: &[u8]) -> Vec<u8> {
    if random.one_in(10) {
        let mut bytes = whole.to_vec();
        self::bytes(random, &mut bytes, other);
        return bytes;
    }
    let (mut frames, others) = (apart(whole), apart(other));
    for _ in 0..1 + random.below(3) {
        match random.below(12) {
            0 => drop(frames.remove(random.below(frames.len()))),
            1 => {
                let (one, two) = (random.below(frames.len()), random.below(frames.len()));
                frames.swap(one, two);
            }
            2 => frames.insert(random.below(frames.len()), random.of(&others).clone()),
            3 => {
                let frame = random.of(&frames).clone();
                let times = if random.one_in(8) { 1 + random.below(40) } else { 1 };
                let at = random.below(frames.len());
                frames.splice(at..at, std::iter::repeat_n(frame, times));
            }
            _ => {
                let (at, from) = (random.below(frames.len()), random.below(others.len()));
                payload(random, &mut frames[at], &others[from].1);
            }
        }
        if frames.is_empty() {
            break;
        }
    }
    let mut bytes = whole[..START].to_vec();
    for (kind, payload) in frames {
        bytes.extend_from_slice(&head(kind, &payload));
        bytes.extend_from_slice(&payload);
    }
    bytes
}

fn apart(whole: &[u8]) -> Frames {
    let (mut frames, mut rest) = (Vec::new(), &whole[START..]);
    while !rest.is_empty() {
        let (kind, payload, behind) = checked(rest).expect("a seed is whole");
        frames.push((kind, payload.to_vec()));
        rest = behind;
    }
    frames
}

fn payload(random: &mut Random, (kind, payload): &mut (Kind, Vec<u8>), other: &[u8]) {
    match &kind[..] {
        b"head" | b"meta" | b"foot" => text(random, payload, other),
        b"call" if payload.len() >= CHUNK_HEAD => chunk(random, payload, other),
        _ => {
            let Some(mut inner) = unpacked(payload) else { return bytes(random, payload, other) };
            let other = unpacked(other).unwrap_or_default();
            if &kind[..] == b"file" {
                text(random, &mut inner, &other);
            } else {
                bytes(random, &mut inner, &other);
            }
            *payload = packed(&inner);
        }
    }
}

fn chunk(random: &mut Random, payload: &mut Vec<u8>, other: &[u8]) {
    let mut start = payload[..CHUNK_HEAD].to_vec();
    if random.one_in(3) {
        let (at, number) = (4 * random.below(CHUNK_HEAD / 4), random.number());
        start[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
    }
    let mut columns = unpacked(&payload[CHUNK_HEAD..]).unwrap_or_default();
    let other = other.get(CHUNK_HEAD..).and_then(unpacked).unwrap_or_default();
    if !random.one_in(6) {
        bytes(random, &mut columns, &other);
        let length = u32::try_from(columns.len()).unwrap_or(u32::MAX);
        start[CHUNK_HEAD - 4..].copy_from_slice(&length.to_le_bytes());
    }
    start.extend_from_slice(&packed(&columns));
    *payload = start;
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(bytes, 1 << 20).ok()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).expect("memory to compress")
}

/// A part of so many.
fn part(random: &mut Random, length: usize) -> std::ops::Range<usize> {
    let from = random.below(length + 1);
    let most = if random.one_in(4) { length } else { 16 };
    from..(from + random.below(most + 1)).min(length)
}

/// Alters bytes in which numbers are varints.
pub fn bytes(random: &mut Random, all: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(all.len());
        let here = part(random, all.len());
        match random.below(10) {
            0 if !all.is_empty() => all[at] ^= 1 << random.below(8),
            1 if !all.is_empty() => all[at] = random.any() as u8,
            2..=4 if !all.is_empty() => {
                let mut rest = &all[at..];
                let _ = take(&mut rest);
                let (end, mut number) = (all.len() - rest.len(), Vec::new());
                put(&mut number, random.number());
                all.splice(at..end, number);
            }
            5 => drop(all.drain(here)),
            6 if all.len() < BOMB / 2 => {
                let again = all[here].to_vec();
                let bomb = random.one_in(300) && !again.is_empty();
                let most = BOMB / again.len().max(1);
                let times = if bomb { most } else { (1 + random.below(16)).min(most) };
                all.splice(at..at, again.repeat(times));
            }
            7 => {
                let theirs = other[part(random, other.len())].to_vec();
                all.splice(here, theirs);
            }
            8 if random.one_in(4) => all.truncate(at),
            _ if !all.is_empty() => {
                let other = random.below(all.len());
                all.swap(at, other);
            }
            _ => {}
        }
    }
}

/// Bytes from which on a line is not repeated.
const LONG_LINE: usize = 1 << 20;

/// Alters a text: numbers, words, lines; now and then any byte.
pub fn text(random: &mut Random, all: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + random.below(4) {
        match random.below(10) {
            0 => bytes(random, all, other),
            1..=5 => {
                let ends = if random.one_in(3) { u8::is_ascii_alphabetic } else { u8::is_ascii_digit };
                let here = run(random, all, ends);
                let word = match random.below(3) {
                    0 => other[run(random, other, ends)].to_vec(),
                    1 => format!("-{}", random.number()).into_bytes(),
                    _ => random.number().to_string().into_bytes(),
                };
                all.splice(here, word);
            }
            6 => drop(all.drain(line(random, all))),
            _ => {
                let from: &[u8] = if random.one_in(2) { other } else { all };
                let more = &from[line(random, from)];
                // A line may be long already.
                let times = if random.one_in(20) && more.len() < LONG_LINE { 50 } else { 1 };
                let more = more.repeat(times);
                let at = line(random, all).start;
                all.splice(at..at, more);
            }
        }
    }
}

/// Where some bytes stand that are all of one sort.
fn run(random: &mut Random, all: &[u8], sort: fn(&u8) -> bool) -> std::ops::Range<usize> {
    let near = random.below(all.len());
    let from = all.iter().skip(near).position(sort).map_or(all.len(), |more| near + more);
    let length = all[from..].iter().take_while(|byte| sort(byte)).count();
    from..from + length
}

fn line(random: &mut Random, all: &[u8]) -> std::ops::Range<usize> {
    let near = random.below(all.len());
    let from = all[..near].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let length = all[from..].iter().position(|byte| *byte == b'\n');
    from..length.map_or(all.len(), |length| from + length + 1)
}
