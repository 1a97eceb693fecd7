//! What becomes of a trace: lines, columns.

mod common;

use std::fs::File;

use common::{Scratch, any_event, event, write};
use etude_trace::{Ending, Event, Footer, Header, Meta, Ordered, Writer, in_order};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn all_events_come_in_order_of_time_and_those_of_a_thread_in_their_own(
        steps in vec((0..4_u32, vec(1..50_u64, 1..30)), 1..8),
    ) {
        // Each thread has a clock of its own; the result counts its events.
        let (mut clocks, mut counts, mut chunks) = ([0; 4], [0; 4], Vec::new());
        for (thread, gaps) in steps {
            let of = thread as usize;
            let events: Vec<Event> = gaps.into_iter().map(|gap| {
                clocks[of] += gap;
                counts[of] += 1;
                event("close", clocks[of], [3, 0, 0, 0, 0, 0], counts[of], None)
            }).collect();
            chunks.push((thread, events));
        }
        let file = Scratch::new("order");
        write(&file.0, &chunks);
        let (mut before, mut seen, mut all) = (0, [0; 4], 0);
        let mut late = false;
        let ending = in_order(&file.0, |next| {
            if let Ordered::Event { thread, event } = next {
                late |= event.start_ns < before || event.result != seen[thread as usize] + 1;
                (before, seen[thread as usize]) = (event.start_ns, event.result);
                all += 1;
            }
            Ok(())
        });
        prop_assert_eq!(ending.unwrap(), Ending::Whole);
        prop_assert!(!late);
        prop_assert_eq!(all, counts.iter().sum::<i64>());
    }

    #[test]
    fn columns_hold_what_the_events_hold(chunks in vec((0..4_u32, vec(any_event(), 1..60)), 0..4)) {
        let (file, out) = (Scratch::new("trace"), Scratch::new("columns"));
        write(&file.0, &chunks);
        etude_trace::columns(&file.0, File::create(&out.0).unwrap(), false).unwrap();
        let bytes = std::fs::read(&out.0).unwrap();
        let number = |at: u64, width: u64| {
            let place = at as usize..(at + width) as usize;
            let mut value = [0; 8];
            // A column whose last values are 0 may lie behind the end of what was written.
            if let Some(found) = bytes.get(place) {
                value[..width as usize].copy_from_slice(found);
            }
            u64::from_ne_bytes(value)
        };
        prop_assert_eq!(&bytes[..8], b"etudeevc");
        let (at, length) = (number(16, 8) as usize, number(24, 8) as usize);
        let index: Value = serde_json::from_slice(&bytes[at..at + length]).unwrap();
        let place = |name: &str| {
            let column = index["columns"].as_array().unwrap().iter().find(|column| column["name"] == name);
            column.unwrap()["at"].as_u64().unwrap()
        };
        let text = |code: u64| {
            let [from, to] = [code - 1, code].map(|at| number(place("texts_at") + 8 * at, 8));
            &bytes[(place("texts") + from) as usize..(place("texts") + to) as usize]
        };
        let events: Vec<_> =
            chunks.iter().flat_map(|(thread, events)| events.iter().map(move |event| (*thread, event))).collect();
        prop_assert_eq!(index["events"].as_u64().unwrap(), events.len() as u64);
        for (row, (thread, event)) in (0_u64..).zip(events) {
            let long = |name: &str| number(place(name) + 8 * row, 8);
            prop_assert_eq!(long("start_ns"), event.start_ns);
            prop_assert_eq!(long("duration_ns"), event.duration_ns);
            prop_assert_eq!(long("result") as i64, event.result);
            for (at, argument) in event.arguments.iter().enumerate() {
                prop_assert_eq!(long(&format!("argument{at}")), *argument);
            }
            prop_assert_eq!(number(place("thread") + 4 * row, 4), u64::from(thread));
            let code = number(place("call") + 2 * row, 2);
            prop_assert_eq!(&index["calls"][code as usize], event.call.name());
            for at in 0..2 {
                let code = number(place(&format!("text{at}")) + 4 * row, 4);
                match event.texts.get(at) {
                    Some(expected) => prop_assert_eq!(text(code), &expected.bytes[..]),
                    None => prop_assert_eq!(code, 0),
                }
            }
        }
    }
}

fn printed(file: &Scratch) -> String {
    let mut out = Vec::new();
    etude_trace::print(&file.0, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_say_which_thread_where_there_are_several() {
    let file = Scratch::new("lines");
    let open = event("openat", 1000, [3, 0, 0, 0, 0, 0], 4, Some((1, "a")));
    let close = event("close", 5000, [4, 0, 0, 0, 0, 0], 0, None);
    let read = event("read", 3000, [0, 0x10, 5, 0, 0, 0], -4, None);
    write(&file.0, &vec![(0, vec![open.clone(), close.clone()])]);
    assert_eq!(
        printed(&file),
        "0.000001000 openat(3, \"a\", O_RDONLY) = 4 <0.000000100>\n0.000004000 close(4) = 0 <0.000000100>\n"
    );
    let mut writer = Writer::create(File::create(&file.0).unwrap(), &Header::default()).unwrap();
    writer.meta(&Meta::Thread { thread: 0, process: 7, tid: 1, at_ns: 0 }).unwrap();
    writer.events(0, &[open, close]).unwrap();
    writer.events(12, &[read]).unwrap();
    writer.finish(&Footer::default()).unwrap();
    assert_eq!(
        printed(&file),
        "  7   0 0.000001000 openat(3, \"a\", O_RDONLY) = 4 <0.000000100>\n  \
         -  12 0.000003000 read(0, 0x10, 5) = -1 EINTR <0.000000100>\n  \
         7   0 0.000004000 close(4) = 0 <0.000000100>\n"
    );
}

#[test]
fn columns_of_a_trace_cut_short_say_where_and_those_of_a_damaged_one_what_is_wrong() {
    let (file, out) = (Scratch::new("trace"), Scratch::new("columns"));
    write(
        &file.0,
        &vec![(0, vec![event("sync", 1, [0; 6], 0, None)]), (0, vec![event("sync", 2, [0; 6], 0, None)])],
    );
    let whole = std::fs::read(&file.0).unwrap();
    let index = |bytes: &[u8]| {
        std::fs::write(&file.0, bytes).unwrap();
        etude_trace::columns(&file.0, File::create(&out.0).unwrap(), false).unwrap();
        let bytes = std::fs::read(&out.0).unwrap();
        let at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        serde_json::from_slice::<Value>(&bytes[at(16)..at(16) + at(24)]).unwrap()
    };
    let found = index(&whole);
    assert_eq!(
        (&found["events"], &found["cut_short_at"], &found["wrong"]),
        (&2.into(), &Value::Null, &Value::Null)
    );
    let footer = whole.windows(4).rposition(|bytes| bytes == b"foot").unwrap();
    let found = index(&whole[..footer]);
    assert_eq!((&found["events"], &found["cut_short_at"]), (&2.into(), &footer.into()));
    let mut damaged = whole.clone();
    damaged[footer - 1] ^= 1;
    let found = index(&damaged);
    assert_eq!(found["events"], 1);
    assert!(found["wrong"].as_str().unwrap().contains("is damaged at byte"), "{found}");
}
