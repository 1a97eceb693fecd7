//! A small trace that would be large in memory is refused.

mod common;

use common::{Scratch, event, read, write};
use etude_trace::parts::{checked, head};

/// A trace whose frames have become others.
fn with_frames(name: &str, chunks: &common::Chunks, change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>) -> String {
    let scratch = Scratch::new(name);
    write(&scratch.0, chunks);
    let whole = std::fs::read(&scratch.0).unwrap();
    let (mut frames, mut rest) = (Vec::new(), &whole[16..]);
    while !rest.is_empty() {
        let (_, _, behind) = checked(rest).unwrap();
        frames.push(rest[..rest.len() - behind.len()].to_vec());
        rest = behind;
    }
    std::fs::write(&scratch.0, [&whole[..16], &change(frames).concat()].concat()).unwrap();
    read(&scratch.0).3.unwrap_err()
}

#[test]
fn texts_that_no_writer_would_keep_are_refused() {
    let text = |number: u64| format!("{number:065000}");
    let events = (0..100).map(|number| event("stat", number, [0; 6], 0, Some((0, &text(number)))));
    let chunks = vec![(0, events.collect())];
    let line = with_frames("texts", &chunks, |frames| {
        let again = vec![frames[1].clone(); 12];
        [&frames[..1], &again, &frames[2..]].concat()
    });
    assert!(line.contains("more texts than a trace can have"), "{line}");
}

#[test]
fn more_files_than_a_frame_can_have_are_refused() {
    let files = format!(r#"{{"what":"files","files":[{}{{}}]}}"#, "{},".repeat(1 << 20));
    let payload = zstd::bulk::compress(files.as_bytes(), 1).unwrap();
    let frame = [&head(*b"file", &payload)[..], &payload].concat();
    let line = with_frames("files", &Vec::new(), |frames| vec![frames[0].clone(), frame.clone()]);
    assert!(line.contains("more files than one frame can have"), "{line}");
}
