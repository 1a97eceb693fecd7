use std::sync::Arc;

use etude_calls::Call;
use proptest::collection::vec;
use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::event::{Event, Text};

fn payload(events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(1).unwrap().encode(3, events, false, &mut Known::default(), &mut out).unwrap();
    out
}

fn decode(payload: &[u8]) -> Result<(Head, Vec<Event>), String> {
    let mut events = Vec::new();
    let head = Decoder::new().unwrap().decode(payload, &mut Dictionary::default(), &mut events)?;
    Ok((head, events))
}

fn event() -> impl Strategy<Value = Event> {
    let texts = vec("[ab]{0,2}", 0..3);
    (1..=Call::MANY, vec(0..300_u64, 6), any::<i16>(), texts, 0..9_u64).prop_map(
        |(code, numbers, result, texts, at)| {
            let call = Call::from_code(code).unwrap();
            let mut arguments: [u64; 6] = numbers.try_into().unwrap();
            arguments[call.row().arguments.len()..].fill(0);
            let text =
                |(at, text): (usize, &String)| Text { argument: at as u8, bytes: text.as_bytes().into() };
            let texts = texts.iter().enumerate().map(text).collect();
            Event { start_ns: at, duration_ns: at, call, result: result.into(), arguments, texts }
        },
    )
}

proptest! {
    /// The checksum keeps such a chunk from being decoded; who writes one with a checksum may not harm anybody.
    #[test]
    fn no_columns_make_a_decoder_panic(
        events in vec(event(), 1..20),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        more in 0..40_u32,
    ) {
        let whole = payload(&events);
        let head = Head::from_bytes(&whole).unwrap();
        let mut raw = zstd::bulk::decompress(&whole[Head::BYTES..], head.raw as usize).unwrap();
        for (place, byte) in &changes {
            let place = place.index(raw.len());
            raw[place] = *byte;
        }
        if more > 30 {
            raw.truncate(cut.index(raw.len()));
        }
        let head = Head { raw: raw.len() as u32, events: head.events + more % 3, ..head };
        let changed = [&head.to_bytes()[..], &zstd::bulk::compress(&raw, 1).unwrap()].concat();
        if let Ok((_, found)) = decode(&changed) {
            prop_assert_eq!(found.len(), head.events as usize);
        }
    }

    #[test]
    fn no_payload_makes_a_decoder_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }
}

#[test]
fn a_head_tells_the_thread_the_number_and_the_times() {
    let event = |start_ns, duration_ns| Event {
        start_ns,
        duration_ns,
        call: Call::named("sync").unwrap(),
        result: 0,
        arguments: [0; 6],
        texts: smallvec![],
    };
    // The second began within the first, as one of a signal's handler may.
    let head = Head::from_bytes(&payload(&[event(50, 100), event(20, 10)])).unwrap();
    assert_eq!(
        (head.thread, head.events, head.earliest_ns, head.latest_ns, head.anew),
        (3, 2, 20, 150, false)
    );
    assert_eq!(
        decode(&payload(&[event(50, 100), event(20, 10)])).unwrap().1,
        [event(50, 100), event(20, 10)]
    );
}

#[test]
fn an_argument_that_no_call_has_has_no_text() {
    let event = |texts| Event {
        start_ns: 0,
        duration_ns: 0,
        call: Call::named("unlink").unwrap(),
        result: 0,
        arguments: [0; 6],
        texts,
    };
    let whole = payload(&[event(smallvec![Text { argument: 0, bytes: b"a"[..].into() }])]);
    let mut raw = zstd::bulk::decompress(&whole[Head::BYTES..], 1000).unwrap();
    // Behind the call's code stands the mask.
    assert_eq!(raw[1], 1);
    raw[1] = 1 << 6;
    let changed = [&whole[..Head::BYTES], &zstd::bulk::compress(&raw, 1).unwrap()].concat();
    assert_eq!(decode(&changed).unwrap_err(), "an event has more texts than arguments");
    raw[1] = 1 << 5;
    let changed = [&whole[..Head::BYTES], &zstd::bulk::compress(&raw, 1).unwrap()].concat();
    assert_eq!(decode(&changed).unwrap().1[0].texts[0].argument, 5);
}

#[test]
fn a_dictionary_that_begins_anew_forgets() {
    let mut dictionary = Dictionary::default();
    dictionary.push(b"old"[..].into());
    let mut bytes = Vec::new();
    Encoder::new(1).unwrap().encode(0, &[], true, &mut Known::default(), &mut bytes).unwrap();
    Decoder::new().unwrap().decode(&bytes, &mut dictionary, &mut Vec::new()).unwrap();
    assert_eq!(dictionary.len(), 0);
}

#[test]
fn a_text_that_comes_again_is_written_once_and_shared() {
    let text: Arc<[u8]> = (0..=255).collect::<Vec<u8>>().into();
    let event = |at: u64| Event {
        start_ns: at,
        duration_ns: 1,
        call: Call::named("unlink").unwrap(),
        result: 0,
        arguments: [0; 6],
        texts: smallvec![Text { argument: 0, bytes: text.clone() }],
    };
    let events: Vec<_> = (0..1000).map(event).collect();
    let bytes = payload(&events);
    assert!(bytes.len() < 600, "{}", bytes.len());
    let (_, found) = decode(&bytes).unwrap();
    assert_eq!(found, events);
    assert!(Arc::ptr_eq(&found[0].texts[0].bytes, &found[999].texts[0].bytes));
}

proptest! {
    #[test]
    fn a_number_is_read_as_it_was_written(value: u64, shift in 0..64) {
        let (value, mut bytes) = (value >> shift, Vec::new());
        put(&mut bytes, value);
        let mut rest = &bytes[..];
        prop_assert_eq!(take(&mut rest), Some(value));
        prop_assert!(rest.is_empty());
        for cut in 0..bytes.len() {
            prop_assert_eq!(take(&mut &bytes[..cut]), None);
        }
    }

    #[test]
    fn a_difference_leads_back(from: u64, to: u64) {
        prop_assert_eq!(unzigzag(from, zigzag(from, to)), to);
    }
}

#[test]
fn more_than_64_bits_are_no_number() {
    assert_eq!(take(&mut &[0xff; 9][..]), None);
    assert_eq!(take(&mut &[[0xff; 9].as_slice(), &[1]].concat()[..]), Some(u64::MAX));
    assert_eq!(take(&mut &[[0xff; 9].as_slice(), &[2]].concat()[..]), None);
    assert_eq!(take(&mut &[0xff; 11][..]), None);
}
