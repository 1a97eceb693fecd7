//! What is written is read; what is damaged says so.

mod common;

use std::collections::BTreeMap;
use std::fs::File;

use common::{Scratch, any_event, event, read, write};
use etude_trace::{
    Ending, Event, Footer, Found, Header, Image, Left, MOST_EVENTS, Meta, Policy, Reader, Scheduling, Writer,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn events_are_read_as_they_were_written(chunks in vec((0..4_u32, vec(any_event(), 1..60)), 0..5)) {
        let file = Scratch::new("whole");
        write(&file.0, &chunks);
        let (found, _, footer, ending) = read(&file.0);
        prop_assert_eq!(ending, Ok(Ending::Whole));
        let events: usize = chunks.iter().map(|(_, events)| events.len()).sum();
        prop_assert_eq!(footer.unwrap().events, events as u64);
        prop_assert_eq!(found, chunks);
    }

    #[test]
    fn a_trace_cut_short_is_read_up_to_its_last_whole_frame(
        chunks in vec((0..4_u32, vec(any_event(), 1..10)), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = Scratch::new("cut");
        write(&file.0, &chunks);
        let bytes = std::fs::read(&file.0).unwrap();
        let length = cut.index(bytes.len());
        std::fs::write(&file.0, &bytes[..length]).unwrap();
        let (found, _, footer, ending) = read(&file.0);
        prop_assert!(footer.is_none());
        prop_assert_eq!(&found[..], &chunks[..found.len()]);
        match ending {
            Ok(Ending::CutShort { at }) => {
                prop_assert!(at <= length as u64);
                // What stands before that is whole.
                std::fs::write(&file.0, &bytes[..at as usize]).unwrap();
                prop_assert_eq!(read(&file.0).0, found);
            }
            Ok(Ending::Whole) => prop_assert!(false, "cut at {}", length),
            Err(line) => prop_assert!(found.is_empty() && !line.contains('\n'), "{}", line),
        }
    }

    #[test]
    fn a_changed_byte_is_found(
        chunks in vec((0..4_u32, vec(any_event(), 1..10)), 1..3),
        place in any::<prop::sample::Index>(),
        change in 1..=255_u8,
    ) {
        let file = Scratch::new("changed");
        write(&file.0, &chunks);
        let mut bytes = std::fs::read(&file.0).unwrap();
        let place = place.index(bytes.len());
        // Four bytes of the file's beginning mean nothing.
        prop_assume!(!(12..16).contains(&place));
        bytes[place] ^= change;
        std::fs::write(&file.0, &bytes).unwrap();
        let (found, _, _, ending) = read(&file.0);
        prop_assert_ne!(ending, Ok(Ending::Whole));
        prop_assert_eq!(&found[..], &chunks[..found.len()]);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200), begins in any::<bool>()) {
        let file = Scratch::new("any");
        write(&file.0, &Vec::new());
        let mut start = std::fs::read(&file.0).unwrap();
        start.truncate(start.windows(4).rposition(|bytes| bytes == b"foot").unwrap());
                let bytes = if begins { [start, bytes].concat() } else { bytes };
        std::fs::write(&file.0, bytes).unwrap();
        prop_assert_ne!(read(&file.0).3, Ok(Ending::Whole));
        let _ = etude_trace::print(&file.0, &mut Vec::new());
        let columns = Scratch::new("any-columns");
        let _ = etude_trace::columns(&file.0, File::create(&columns.0).unwrap(), true);
    }
}

#[test]
fn what_is_no_trace_says_so_in_one_line() {
    let file = Scratch::new("none");
    let mut trace = b"etudetrc\x02\0\0\0\0\0\0\0".to_vec();
    for (bytes, expected) in [
        (&b""[..], "is empty: nothing was recorded"),
        (b"{}", "is no trace of etude record: it begins with something else"),
        (&[7; 100], "is no trace of etude record: it begins with something else"),
        (&trace.clone(), "is a trace of version 2; this Étude reads version 1"),
        (
            {
                trace[8] = 1;
                &trace
            },
            "is cut short before its first event",
        ),
    ] {
        std::fs::write(&file.0, bytes).unwrap();
        assert_eq!(read(&file.0).3, Err(format!("{}: {expected}", file.0.display())));
    }
    let missing = read(&file.0.with_extension("missing")).3.unwrap_err();
    assert!(missing.contains("No such file"), "{missing}");
}

/// One of each kind, and one of a later version.
fn notes() -> Vec<Meta> {
    let counts = BTreeMap::from([("syscr".to_owned(), 7)]);
    let left = Left { offset: 4096, symbol: Some("read".into()), why: "a jump leads into it".into() };
    vec![
        Meta::Process {
            process: 1,
            parent: Some(0),
            pid: 7,
            executable: "/bin/tar".into(),
            argv: vec!["tar".into()],
            cwd: "/".into(),
            at_ns: u64::MAX,
        },
        Meta::Thread { thread: 3, process: 1, tid: 7, at_ns: 5 },
        Meta::Exec { process: 1, executable: "/bin/ls".into(), argv: vec![], at_ns: 5 },
        Meta::Image(Image { process: 1, path: "/lib/l".into(), build_id: None, sites: 9, left: vec![left] }),
        Meta::Counters { thread: 1, kernel: counts.clone(), recorded: counts },
        Meta::RunDelay { thread: 3, at_ns: 5, cpu_ns: 1 << 60, run_delay_ns: u64::MAX },
        Meta::Scheduling { process: 0, class: Scheduling { policy: Policy::Batch, priority: 0, nice: -20 } },
        Meta::Ended { process: 1, status: None, signal: Some(9), at_ns: 6 },
        Meta::Dropped { thread: 3, events: 1 },
        Meta::Unrecorded { process: 1, why: "it is setuid".into() },
        Meta::Held { thread: 1, spans: vec![(5_000_000, 700_000), (9_000_000, 1)] },
        Meta::ByStops { process: 1, why: "its address space is limited".into() },
        Meta::Files {
            files: vec![
                Found {
                    path: "/a".into(),
                    kind: "file".into(),
                    bytes: 7,
                    allocated: 4096,
                    ..Found::default()
                },
                Found {
                    path: "/l".into(),
                    kind: "link".into(),
                    target: Some("a".into()),
                    ..Found::default()
                },
                Found {
                    path: "/b".into(),
                    kind: "file".into(),
                    same_as: Some("/a".into()),
                    ..Found::default()
                },
            ],
        },
        Meta::Other(serde_json::json!({"what": "weather", "rain": true})),
    ]
}

#[test]
fn a_note_of_a_known_kind_that_is_not_understood_is_damage() {
    let file = Scratch::new("misunderstood");
    for note in notes().iter().filter(|note| !matches!(note, Meta::Other(_))) {
        let whole = serde_json::to_value(note).unwrap();
        for member in whole.as_object().unwrap().keys().filter(|member| *member != "what") {
            let mut wrong = whole.clone();
            wrong[member] = if member == "nice" { 127.into() } else { true.into() };
            let mut writer = Writer::create(File::create(&file.0).unwrap(), &Header::default()).unwrap();
            writer.meta(&Meta::Other(wrong)).unwrap();
            writer.finish(&Footer::default()).unwrap();
            assert!(read(&file.0).3.is_err(), "{member} of {whole}");
        }
    }
}

#[test]
fn what_is_noted_is_read_again_and_what_a_later_version_notes_is_kept() {
    let file = Scratch::new("meta");
    let metas = notes();
    let header = Header { argv: vec!["tar".into()], technique: "rewrite".into(), ..Header::default() };
    let mut writer = Writer::create(File::create(&file.0).unwrap(), &header).unwrap();
    metas.iter().for_each(|meta| writer.meta(meta).unwrap());
    let footer = Footer { threads: 2, recorder_cpu_s: Some(0.125), ..Footer::default() };
    writer.finish(&footer).unwrap();
    let (_, found, last, ending) = read(&file.0);
    assert_eq!((&found[..], last, ending), (&metas[..], Some(footer), Ok(Ending::Whole)));
    let expected = Header { format: "etude-trace".into(), version: 1, ..header };
    assert_eq!(*Reader::open(&file.0).unwrap().header(), expected);
}

#[test]
fn many_events_become_several_chunks_and_a_dictionary_that_is_full_begins_anew() {
    let file = Scratch::new("many");
    let path = |number: usize| format!("{number}{}", "x".repeat(50_000));
    let texts = (0..900).map(|number| {
        // The first again and again, also behind the new beginnings.
        let text = if number % 3 == 0 { path(0) } else { path(number) };
        event("unlink", number as u64, [0; 6], 0, Some((0, &text)))
    });
    let plain =
        (0..MOST_EVENTS as u64 + 10).map(|at| event("read", 900 + at, [3, 0, at % 7, 0, 0, 0], 5, None));
    let events: Vec<Event> = texts.chain(plain).collect();
    write(&file.0, &vec![(5, events.clone())]);
    let (found, _, _, ending) = read(&file.0);
    assert_eq!(ending, Ok(Ending::Whole));
    assert!(
        found.len() > 5 && found.iter().all(|(thread, events)| *thread == 5 && events.len() <= MOST_EVENTS)
    );
    let found: Vec<_> = found.into_iter().flat_map(|(_, events)| events).collect();
    assert!(found == events);
}

#[test]
fn a_text_that_is_too_long_or_out_of_order_is_refused() {
    let file = Scratch::new("refused");
    let mut writer = Writer::create(File::create(&file.0).unwrap(), &Header::default()).unwrap();
    let long = event("unlink", 0, [0; 6], 0, Some((0, &"x".repeat(70_000))));
    assert!(writer.events(0, &[long]).unwrap_err().to_string().contains("longer than 65536 bytes"));
    let mut twice = event("rename", 0, [0; 6], 0, Some((1, "b")));
    let again = twice.texts[0].clone();
    twice.texts.push(again);
    assert!(writer.events(0, &[twice]).unwrap_err().to_string().contains("not in order"));
}

/// What a copy of many small files does, with times as uneven as real ones: two bytes of chance in each.
#[test]
fn an_event_of_a_program_that_reads_files_needs_less_than_four_bytes() {
    let (mut events, mut now, mut chance) = (Vec::new(), 0, 88_172_645_463_325_252_u64);
    let mut random = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    for number in 0..10_000 {
        let (path, size) = (format!("file-{number:05}.txt"), random(20_000));
        for (name, arguments, result, text) in [
            ("newfstatat", [5, 0, 0x7fff_1000, 256, 0, 0], 0, Some((1, path.as_str()))),
            ("openat", [5, 0, 0o2400000, 0, 0, 0], 6, Some((1, path.as_str()))),
            ("newfstatat", [6, 0, 0x7fff_1000, 4096, 0, 0], 0, Some((1, ""))),
            ("read", [6, 0x5555_0000, 32_768, 0, 0, 0], size as i64, None),
            ("read", [6, 0x5555_0000, 32_768, 0, 0, 0], 0, None),
            ("write", [1, 0x5555_0000, size, 0, 0, 0], size as i64, None),
            ("close", [6, 0, 0, 0, 0, 0], 0, None),
        ] {
            now += 200 + random(300);
            let mut event = event(name, now, arguments, result, text);
            event.duration_ns = 400 + random(1000);
            now += event.duration_ns;
            events.push(event);
        }
    }
    let (file, many) = (Scratch::new("size"), events.len() as f64);
    write(&file.0, &vec![(0, events)]);
    let each = std::fs::metadata(&file.0).unwrap().len() as f64 / many;

    assert!(each < 3.5, "{each} bytes an event");
}

#[test]
fn frames_that_are_gathered_reach_the_file_at_a_flush_and_at_the_end() {
    let file = Scratch::new("gathered");
    let length = || std::fs::metadata(&file.0).unwrap().len();
    let mut writer = Writer::create(File::create(&file.0).unwrap(), &Header::default()).unwrap().gathering();
    let header = length();
    assert_eq!(header, writer.bytes());
    writer.meta(&Meta::Dropped { thread: 1, events: 2 }).unwrap();
    assert_eq!(length(), header);
    writer.flush().unwrap();
    assert_eq!((length(), writer.bytes() > header), (writer.bytes(), true));
    writer.meta(&Meta::Dropped { thread: 1, events: 3 }).unwrap();
    writer.finish(&Footer::default()).unwrap();
    let (_, metas, footer, ending) = read(&file.0);
    assert_eq!((metas.len(), footer.is_some(), ending), (2, true, Ok(Ending::Whole)));
}
