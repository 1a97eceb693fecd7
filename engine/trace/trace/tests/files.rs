//! The file of each event in the columns, and the window of a replay.

mod common;

use std::fs::File;

use common::{Scratch, event};
use etude_trace::{Event, Footer, Header, Meta, Text, Writer};
use serde_json::Value;

/// Columns as they were written.
struct Columns {
    bytes: Vec<u8>,
    index: Value,
}

impl Columns {
    fn of(notes: &[Meta], chunks: &[(u32, Vec<Event>)], replayed: bool) -> Columns {
        let (file, out) = (Scratch::new("trace"), Scratch::new("columns"));
        let mut writer = Writer::create(File::create(&file.0).unwrap(), &Header::default()).unwrap();
        notes.iter().for_each(|note| writer.meta(note).unwrap());
        chunks.iter().for_each(|(thread, events)| writer.events(*thread, events).unwrap());
        writer.finish(&Footer::default()).unwrap();
        etude_trace::columns(&file.0, File::create(&out.0).unwrap(), replayed).unwrap();
        let bytes = std::fs::read(&out.0).unwrap();
        let at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let index = serde_json::from_slice(&bytes[at(16)..at(16) + at(24)]).unwrap();
        Columns { bytes, index }
    }

    fn rows(&self) -> usize {
        self.index["events"].as_u64().unwrap() as usize
    }

    fn values(&self, name: &str, many: usize) -> Vec<u64> {
        let columns = self.index["columns"].as_array().unwrap();
        let column = columns.iter().find(|column| column["name"] == name).unwrap();
        let at = column["at"].as_u64().unwrap() as usize;
        let width = column["kind"].as_str().unwrap()[1..].parse::<usize>().unwrap();
        let value = |row: usize| {
            let mut value = [0; 8];
            value[..width].copy_from_slice(&self.bytes[at + row * width..][..width]);
            u64::from_ne_bytes(value)
        };
        (0..many).map(value).collect()
    }

    /// Names of files by row, from `file` or `source`.
    fn names(&self, column: &str) -> Vec<String> {
        let many = self.index["names"].as_u64().unwrap() as usize;
        let ends = self.values("names_at", many + 1);
        let names = self.values("names", ends[many] as usize);
        let name = |number: u64| {
            let [from, to] = [ends[number as usize], ends[number as usize + 1]];
            names[from as usize..to as usize].iter().map(|byte| *byte as u8 as char).collect()
        };
        self.values(column, self.rows()).into_iter().map(name).collect()
    }
}

fn open(start_ns: u64, path: &str, descriptor: i64) -> Event {
    event("openat", start_ns, [-100_i64 as u64, 0, 2, 0, 0, 0], descriptor, Some((1, path)))
}

fn read(start_ns: u64, descriptor: u64) -> Event {
    event("read", start_ns, [descriptor, 0, 10, 0, 0, 0], 10, None)
}

fn process(process: u32, parent: Option<u32>, at_ns: u64) -> Meta {
    let (executable, argv, cwd) = ("/bin/x".into(), vec!["x".into()], "/home".into());
    Meta::Process { process, parent, pid: 1, executable, argv, cwd, at_ns }
}

fn thread(thread: u32, process: u32) -> Meta {
    Meta::Thread { thread, process, tid: 1, at_ns: 0 }
}

#[test]
fn chunks_of_threads_are_followed_in_order_of_time_and_not_in_that_of_the_file() {
    let notes = [process(0, None, 0), thread(0, 0), thread(1, 0)];
    let chunks = [
        (1, vec![read(500, 3), read(2500, 3)]),
        (0, vec![open(100, "a", 3), open(2000, "/b", 3), read(9000, 3)]),
    ];
    let found = Columns::of(&notes, &chunks, false);
    assert_eq!(found.names("file"), ["/home/a", "/b", "/home/a", "/b", "/b"]);
    assert_eq!(found.values("place", 5), [1, 1, 0, 0, 11]);
}

#[test]
fn a_request_is_about_what_its_descriptor_was_when_it_was_made() {
    let close = event("close", 1000, [3, 0, 0, 0, 0, 0], 0, None);
    let mut request = event("sqe_read", 500, [3, 0, 10, 0, 0, 0], 10, None);
    request.duration_ns = 5000;
    let notes = [process(0, None, 0), thread(0, 0)];
    let found = Columns::of(&notes, &[(0, vec![open(100, "/a", 3), close, request])], false);
    assert_eq!(found.names("file"), ["/a", "/a", "/a"]);
}

#[test]
fn a_path_that_was_not_recorded_is_that_of_the_directory() {
    let stat = event("newfstatat", 500, [3, 0, 0, 0x1000, 0, 0], 0, None);
    let of_pipe = event("newfstatat", 700, [0, 0, 0, 0x1000, 0, 0], 0, Some((1, "")));
    let notes = [process(0, None, 0), thread(0, 0)];
    let found = Columns::of(&notes, &[(0, vec![open(100, "/a", 3), stat, of_pipe])], false);
    assert_eq!(found.names("file"), ["/a", "/a", "(standard input)"]);
}

#[test]
fn numbers_of_threads_and_processes_may_be_as_high_as_they_can_be() {
    let notes = [process(u32::MAX, None, 0), thread(u32::MAX, u32::MAX)];
    let found = Columns::of(&notes, &[(u32::MAX, vec![open(100, "a", 3), read(500, 3)])], false);
    assert_eq!(found.names("file"), ["/home/a", "/home/a"]);
    assert_eq!(found.values("process", 2), [u64::from(u32::MAX); 2]);
}

#[test]
fn a_process_that_ran_before_has_its_descriptors_with_their_positions() {
    let had = |descriptor, path: &str, flags| etude_trace::Open {
        descriptor,
        path: path.into(),
        flags,
        offset: 40,
    };
    let open = vec![had(3, "/a", 2), had(4, "pipe:[7]", 0), had(5, "/b", 0o2001)];
    let notes = [process(0, None, 0), thread(0, 0), Meta::Descriptors { process: 0, open, at_ns: 0 }];
    let write = event("write", 900, [5, 0, 10, 0, 0, 0], 10, None);
    let found = Columns::of(&notes, &[(0, vec![read(100, 3), read(500, 4), write])], false);
    assert_eq!(found.names("file"), ["/a", "(pipe)", "/b"]);
    assert_eq!(found.values("place", 3), [41, 0, 41]);
    assert_eq!(found.values("appends", 3), [0, 0, 1]);
}

#[test]
fn data_between_descriptors_have_a_source() {
    let both = event("sendfile", 900, [4, 3, 0, 10, 0, 0], 10, None);
    let offset = Text { argument: 2, bytes: 50_u64.to_le_bytes()[..].into() };
    let mut placed = event("sendfile", 1100, [4, 3, 0, 10, 0, 0], 10, None);
    placed.texts.push(offset);
    let notes = [process(0, None, 0), thread(0, 0)];
    let events = vec![open(100, "/a", 3), open(300, "/b", 4), both, placed, read(1300, 3)];
    let found = Columns::of(&notes, &[(0, events)], false);
    assert_eq!(found.names("file")[2..], ["/b", "/b", "/a"]);
    assert_eq!(found.names("source")[2..], ["/a", "/a", "/a"]);
    // The first one moved the source's position, the other one did not.
    assert_eq!(found.values("place", 5), [0, 0, 0, 0, 11]);
}

#[test]
fn a_replay_begins_where_its_process_closes_the_mark() {
    let mark = event("close", 1000, [-0x4554_5544_i64 as u64, 0, 0, 0, 0, 0], -9, None);
    let notes = [
        process(0, None, 0),
        thread(0, 0),
        thread(1, 0),
        process(1, Some(0), 200),
        thread(2, 1),
        thread(3, 1),
        Meta::Dropped { thread: 0, events: 1 },
        Meta::Ended { process: 1, status: Some(0), signal: None, at_ns: 4100 },
    ];
    let chunks = [
        (0, vec![open(100, "/roll", 3), read(2000, 3)]),
        (2, vec![open(300, "before", 3), mark, open(1100, "a", 3)]),
        (3, vec![read(2000, 3), read(4000, 3)]),
    ];
    let whole = Columns::of(&notes, &chunks, false);
    assert_eq!(whole.rows(), 7);
    let found = Columns::of(&notes, &chunks, true);
    assert_eq!(found.names("file"), ["/a", "/a", "/a"]);
    assert_eq!(found.values("start_ns", 3), [0, 900, 2900]);
    let meta: Vec<&str> =
        found.index["meta"].as_array().unwrap().iter().map(|meta| meta["what"].as_str().unwrap()).collect();
    assert_eq!(meta, ["process", "thread", "thread", "ended"]);
    assert_eq!(
        (&found.index["header"]["cwd"], &found.index["footer"]["end_ns"]),
        (&"/".into(), &3000.into())
    );
    // Without a mark it is the whole.
    let found = Columns::of(&notes, &[(3, vec![read(2000, 3)])], true);
    assert_eq!(found.values("start_ns", found.rows()), [2000]);
}
