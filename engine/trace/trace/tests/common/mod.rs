//! Traces to test with.
#![allow(dead_code, reason = "each test uses some of it")]

use std::fs::File;
use std::path::{Path, PathBuf};

use etude_calls::{Call, Processor};
use etude_trace::{Ending, Event, Footer, Frame, Header, Meta, Reader, Text, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

/// A file that is removed with it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("x").replace("::", "-");
        Scratch(std::env::temp_dir().join(format!("etude-trace-{}-{thread}-{name}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn event(name: &str, start_ns: u64, arguments: [u64; 6], result: i64, text: Option<(u8, &str)>) -> Event {
    let mut event = Event {
        start_ns,
        duration_ns: 100,
        call: Call::named(name).unwrap(),
        result,
        arguments,
        texts: Default::default(),
    };
    event.texts.extend(text.map(|(argument, text)| Text { argument, bytes: text.as_bytes().into() }));
    event
}

/// Any event, normalised; texts are few, so that they come again.
pub fn any_event() -> impl Strategy<Value = Event> {
    let number = || prop_oneof![0_u64..10, any::<u64>(), Just(u64::MAX)];
    let text = prop_oneof![
        "[a-c]{0,2}",
        vec(any::<u8>(), 0..300).prop_map(|bytes| { bytes.into_iter().map(char::from).collect::<String>() })
    ];
    let numbers = (number(), number(), prop_oneof![-40_i64..10, any::<i64>()]);
    (numbers, 1..=Call::MANY, [(); 6].map(|()| number()), vec((0..6_u8, text), 0..4)).prop_map(
        |((start_ns, duration_ns, result), code, arguments, mut texts)| {
            texts.sort_by_key(|(argument, _)| *argument);
            texts.dedup_by_key(|(argument, _)| *argument);
            let texts = texts
                .into_iter()
                .map(|(argument, text)| Text { argument, bytes: text.into_bytes().into() })
                .collect();
            let call = Call::from_code(code).unwrap();
            let mut event = Event { start_ns, duration_ns, call, result, arguments, texts };
            event.normalise(Processor::X86_64);
            event
        },
    )
}

pub type Chunks = Vec<(u32, Vec<Event>)>;

pub fn write(path: &Path, chunks: &Chunks) {
    let mut writer = Writer::create(File::create(path).unwrap(), &Header::default()).unwrap();
    for (thread, events) in chunks {
        writer.events(*thread, events).unwrap();
    }
    assert_eq!(writer.bytes(), std::fs::metadata(path).unwrap().len());
    writer.finish(&Footer::default()).unwrap();
}

/// All that can be read: chunks, what is noted, the footer, and the end or what is wrong.
pub fn read(path: &Path) -> (Chunks, Vec<Meta>, Option<Footer>, Result<Ending, String>) {
    let (mut chunks, mut metas, mut last) = (Vec::new(), Vec::new(), None);
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => return (chunks, metas, None, Err(error.to_string())),
    };
    let ending = loop {
        match reader.next() {
            Ok(Some(Frame::Events { thread, events })) => chunks.push((thread, events.to_vec())),
            Ok(Some(Frame::Meta(meta))) => metas.push(meta),
            Ok(Some(Frame::Footer(footer))) => last = Some(footer),
            Ok(None) => break Ok(reader.ending().unwrap()),
            Err(error) => break Err(error.to_string()),
        }
    };
    (chunks, metas, last, ending)
}
