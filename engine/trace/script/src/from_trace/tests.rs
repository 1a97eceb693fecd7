use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use etude_calls::{Call, Kind, Processor};
use etude_trace::{Event, Footer, Found, Header, Meta, Policy, Scheduling, Text, Writer};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::from_trace::{Options, Report, from_trace};
use crate::model::{Action, Script, UNCOUNTED, What};

mod away;
mod events;
mod futexes;
mod gaps;
mod large;
mod locks;
mod names;
mod pipes;
mod requests;
mod sockets;

const CWD: u64 = -100_i64 as u64;

/// A trace that is removed with it.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn written(metas: &[Meta], events: &[(u32, Event)]) -> Made {
    static MANY: AtomicU32 = AtomicU32::new(0);
    let number = MANY.fetch_add(1, Ordering::Relaxed);
    let made = Made(std::env::temp_dir().join(format!("etude-script-{}-{number}", std::process::id())));
    let header = Header { cwd: "/w".into(), argv: vec!["tar".into(), "x\ny".into()], ..Header::default() };
    let mut writer = Writer::create(File::create(&made.0).unwrap(), &header).unwrap();
    for meta in metas {
        writer.meta(meta).unwrap();
    }
    let mut threads: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    for (thread, event) in events {
        threads.entry(*thread).or_default().push(event.clone());
    }
    for (thread, events) in threads {
        writer.events(thread, &events).unwrap();
    }
    writer.finish(&Footer::default()).unwrap();
    made
}

fn made(metas: &[Meta], events: &[(u32, Event)], options: &Options) -> (Script, Report) {
    let trace = written(metas, events);
    let (script, report) = from_trace(&trace.0, options).unwrap();
    sound(&script);
    (script, report)
}

fn event(name: &str, at: (u64, u64), arguments: &[u64], result: i64, texts: &[(u8, &[u8])]) -> Event {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let texts = texts.iter().map(|(argument, bytes)| Text { argument: *argument, bytes: (*bytes).into() });
    let (start_ns, duration_ns) = (at.0, at.1 - at.0);
    let call = Call::named(name).unwrap();
    let mut event = Event { start_ns, duration_ns, call, result, arguments: all, texts: texts.collect() };
    event.normalise(Processor::X86_64);
    event
}

fn process(process: u32, parent: Option<u32>, at_ns: u64) -> Meta {
    let (executable, argv) = (String::new(), Vec::new());
    Meta::Process { process, parent, pid: 100 + process, executable, argv, cwd: "/w".into(), at_ns }
}

fn thread(thread: u32, process: u32, tid: u32, at_ns: u64) -> Meta {
    Meta::Thread { thread, process, tid, at_ns }
}

fn ended(process: u32, at_ns: u64) -> Meta {
    Meta::Ended { process, status: Some(0), signal: None, at_ns }
}

fn one() -> Vec<Meta> {
    vec![process(0, None, 0), thread(0, 0, 100, 0)]
}

/// The steps as text, without what is the same for all.
fn lines(script: &Script) -> Vec<String> {
    let mut text = Vec::new();
    crate::write(script, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let steps = text.lines().skip(1).filter(|line| !line.starts_with('#') && !line.starts_with("dropped "));
    steps.map(|line| line.split(" <").next().unwrap().to_owned()).collect()
}

/// Whether a script is one: it can be written and read, and each descriptor is open where it is used.
fn sound(script: &Script) {
    crate::check(script).unwrap();
    let mut text = Vec::new();
    crate::write(script, &mut text).unwrap();
    assert_eq!(crate::parse("it", &text).unwrap().script, *script);
    let mut processes: HashMap<u32, u32> = HashMap::from([(0, 0)]);
    let mut tables: HashMap<u32, BTreeMap<i32, bool>> = HashMap::new();
    for (number, step) in script.steps.iter().enumerate() {
        let process = processes[&step.thread];
        match &step.action {
            Action::Start(thread) => drop(processes.insert(*thread, process)),
            Action::Fork(thread) => {
                processes.insert(*thread, *thread);
                let copy = tables.entry(process).or_default().clone();
                tables.insert(*thread, copy);
            }
            Action::Exec => tables.entry(process).or_default().retain(|_, at_exec| !*at_exec),
            Action::Compute(_) | Action::Wait(_) => {}
            Action::Call(called) => {
                let table = tables.entry(process).or_default();
                let (name, words) = (called.call.name(), &called.arguments);
                for (index, kind) in called.call.row().arguments.iter().enumerate() {
                    let free = matches!((name, index), ("dup2" | "dup3", 1))
                        || name == "mmap" && words[3] & 0x20 != 0
                        || *kind == Kind::DirFd && words[index] == CWD
                        || name.starts_with("accept");
                    let is_descriptor = matches!(kind, Kind::Fd | Kind::DirFd) && !free;
                    assert!(
                        !is_descriptor || table.contains_key(&(words[index] as i32)),
                        "step {number}: {called:?} {table:?}"
                    );
                }
                let result = called.result as i32;
                match name {
                    "close" => drop(table.remove(&(words[0] as i32))),
                    "close_range" => table.retain(|d, _| (*d as u64) < words[0] || *d as u64 > words[1]),
                    "open" | "openat" if result >= 0 => {
                        let flags = words[if name == "open" { 1 } else { 2 }];
                        table.insert(result, flags & 0o2000000 != 0);
                    }
                    "dup" | "dup2" if result >= 0 && words[0] as i32 != result => {
                        table.insert(result, false);
                    }
                    "socket" | "accept" | "accept4" => drop(table.insert(result, false)),
                    "pipe2" | "socketpair" => {
                        let text = &called.texts[0].bytes;
                        for at in [0, 4] {
                            table.insert(i32::from_le_bytes(text[at..at + 4].try_into().unwrap()), false);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn what_is_created_gets_another_name_and_gaps_are_less_by_what_recording_cost() {
    let trace = [
        event("openat", (1000, 1100), &[CWD, 0, 0o1101, 0o644], 3, &[(1, b"x.tar")]),
        event("write", (1500, 1600), &[3, 77, 24], 24, &[]),
        event("close", (1600, 1700), &[3], 0, &[]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&one(), &trace, &Options::default());
    let expected = [
        "compute(0.000001)",
        "openat(AT_FDCWD, \"etude_tmp1\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3",
        "compute(0.000000400)",
        "write(3, 24) = 24",
        "close(3) = 0",
    ];
    let shown = lines(&script);
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert_eq!(shown[1..5], expected[1..]);
    assert_eq!(script.steps[0].action, Action::Compute(1000));
    assert_eq!(script.notes, ["recorded: tar x y"]);
    assert_eq!(report.substitutions.len(), 1);
    let kept = Options { keep_names: true, ..Options::default() };
    assert!(lines(&made(&one(), &trace, &kept).0)[1].contains("\"x.tar\""));
}

#[test]
fn another_threads_close_that_began_first_does_not_close_what_is_opened_meanwhile() {
    let mut metas = one();
    metas.push(thread(1, 0, 101, 0));
    let trace = [
        (0, event("open", (10, 11), &[0, 0], 3, &[(0, b"a")])),
        (0, event("open", (20, 50), &[0, 0], 3, &[(0, b"b")])),
        (1, event("close", (30, 40), &[3], 0, &[])),
        (1, event("read", (60, 70), &[3, 0, 10], 10, &[])),
    ];
    let (script, report) = made(&metas, &trace, &Options::default());
    assert_eq!(report.dropped, BTreeMap::new());
    let calls: Vec<String> = lines(&script).into_iter().filter(|line| line.contains("= ")).collect();
    assert_eq!(
        calls,
        [
            "0: open(\"a\", O_RDONLY) = 3",
            "1: close(3) = 0",
            "0: open(\"b\", O_RDONLY) = 3",
            "1: read(3, 10) = 10"
        ]
    );
}

#[test]
fn what_is_dropped_stands_in_the_script_with_its_bytes_and_requests() {
    let shared = [0, 8192, 3, 1, 5, 0];
    let trace = [
        event("open", (10, 11), &[0, 2], 5, &[(0, b"in")]),
        event("socket", (20, 21), &[1, 1, 0], 3, &[]),
        event("write", (40, 43), &[3, 0, 10], 10, &[]),
        event("write", (44, 45), &[3, 0, 30], 30, &[]),
        event("write", (46, 47), &[3, 0, 30], -11, &[]),
        event("io_uring_enter", (50, 51), &[4, 8, 1], 8, &[]),
        event("io_uring_enter", (52, 54), &[4, 0, 1, 1], 0, &[]),
        event("io_submit", (55, 56), &[1, 3, 1], 3, &[]),
        event("mmap", (60, 61), &shared, 0x7f00_0000_0000, &[]),
        event("mmap", (62, 63), &[0, 4096, 1, 1, 5, 0], 0x7f00_0001_0000, &[]),
        event("mmap", (64, 65), &[0, 4096, 3, 2, 5, 0], 0x7f00_0002_0000, &[]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&one(), &trace, &Options::default());
    let found: Vec<_> = script
        .dropped
        .iter()
        .map(|each| (each.call.as_str(), each.calls, each.bytes, each.requests, each.ns, each.moves()))
        .collect();
    assert_eq!(
        found,
        [
            ("io_submit", 1, 0, 3, 1, true),
            ("io_uring_enter", 2, 0, 8, 3, true),
            ("socket", 1, 0, 0, 1, false),
            ("write", 3, 40, 0, 5, true),
            ("mmap", 1, 8192, 0, 0, true),
        ]
    );
    assert_eq!(script.dropped, report.left_out());
}

#[test]
fn a_parent_that_does_nothing_while_its_child_ends_waits_for_it() {
    let metas = [
        process(0, None, 0),
        thread(0, 0, 100, 0),
        process(1, Some(0), 1000),
        thread(1, 1, 101, 1200),
        ended(1, 5000),
        ended(0, 9000),
    ];
    let trace = [
        (0, event("open", (100, 200), &[0, 0], 3, &[(0, b"a")])),
        (1, event("read", (2000, 2100), &[3, 0, 10], 10, &[])),
        (0, event("read", (6000, 6100), &[3, 0, 10], 10, &[])),
    ];
    let shown = |waits| {
        let (script, _) = made(&metas, &trace, &Options { waits, ..Options::default() });
        script
            .steps
            .into_iter()
            .map(|step| (step.thread, step.action))
            .filter(|(_, action)| !matches!(action, Action::Call(_)))
            .collect::<Vec<_>>()
    };
    let before = [
        (0, Action::Compute(100)),
        (0, Action::Compute(800)),
        (0, Action::Fork(1)),
        (1, Action::Compute(800)),
        (1, Action::Compute(2900)),
    ];
    assert_eq!(shown(true)[..5], before);
    assert_eq!(
        shown(true)[5..],
        [(0, Action::Wait(1)), (0, Action::Compute(1000)), (0, Action::Compute(2900))]
    );
    assert_eq!(shown(false)[5..], [(0, Action::Compute(5000)), (0, Action::Compute(2900))]);
}

#[test]
fn sockets_are_dropped_and_what_a_copy_of_one_closes_is_closed() {
    let trace = [
        event("open", (10, 11), &[0, 1], 5, &[(0, b"out")]),
        event("socket", (20, 21), &[1, 1, 0], 3, &[]),
        event("dup2", (30, 31), &[3, 5], 5, &[]),
        event("write", (40, 43), &[5, 0, 10], 10, &[]),
        event("io_submit", (50, 51), &[1, 1, 1], 1, &[]),
        event("read", (60, 61), &[0, 0, 10], 10, &[]),
        event("openat", (70, 71), &[CWD, 0, 0], 6, &[(1, b"/dev/null")]),
        event("close", (80, 81), &[6], 0, &[]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&one(), &trace, &Options::default());
    let calls: Vec<String> = lines(&script).into_iter().filter(|line| line.contains("= ")).collect();
    assert_eq!(calls, ["open(\"out\", O_WRONLY) = 5", "close(5) = 0"]);
    let dropped: Vec<_> =
        report.dropped.iter().map(|((name, _), dropped)| (*name, dropped.calls, dropped.ns)).collect();
    assert_eq!(
        dropped,
        [
            ("close", 1, 1),
            ("io_submit", 1, 1),
            ("openat", 1, 1),
            ("read", 1, 1),
            ("socket", 1, 1),
            ("write", 1, 3)
        ]
    );
    assert_eq!(report.replaced.len(), 1);
}

#[test]
fn a_transfer_to_a_socket_is_a_read() {
    let trace = [
        event("open", (10, 11), &[0, 0], 3, &[(0, b"page")]),
        event("socket", (20, 21), &[1, 1, 0], 4, &[]),
        event("sendfile", (30, 31), &[4, 3, 0, 1000], 600, &[]),
    ]
    .map(|event| (0, event));
    let (script, _) = made(&one(), &trace, &Options::default());
    assert!(lines(&script).contains(&"read(3, 1000) = 600".to_owned()), "{:?}", lines(&script));
    assert_eq!(script.needed[0].what, What::File { bytes: 600, allocated: None, seen: true });
}

#[test]
fn a_transfer_that_failed_for_the_side_that_is_left_out_is_left_out_too() {
    let trace = [
        event("open", (10, 11), &[0, 2], 3, &[(0, b"page")]),
        event("socket", (20, 21), &[1, 1, 0], 4, &[]),
        event("splice", (30, 31), &[4, 0, 3, 0, 77777], -11, &[]),
        event("splice", (40, 41), &[3, 0, 4, 0, 77777], -32, &[]),
    ]
    .map(|event| (0, event));
    let (script, report) = made(&one(), &trace, &Options::default());
    assert!(!lines(&script).iter().any(|line| line.contains("77777")), "{:?}", lines(&script));
    assert_eq!(
        report.dropped.values().filter(|each| each.call == "splice").map(|each| each.calls).sum::<u64>(),
        2
    );
}

#[test]
fn of_a_thread_that_is_not_recorded_nobody_knows_what_it_transferred() {
    let lost = Meta::Unrecorded { process: 0, why: "a thread of it: all rings are in use".into() };
    let mut metas = one();
    metas.push(lost);
    let (_, report) = made(&metas, &[], &Options::default());
    assert!(report.left_out().iter().any(|each| each.moves() && each.requests >= UNCOUNTED));
}

#[test]
fn an_exec_closes_and_is_no_step_where_it_is_the_first() {
    let exec = |at_ns| Meta::Exec { process: 0, executable: String::new(), argv: Vec::new(), at_ns };
    let metas = [
        process(0, None, 0),
        thread(0, 0, 100, 0),
        thread(1, 0, 100, 5),
        exec(8),
        thread(2, 0, 100, 500),
        exec(700),
        ended(0, 1000),
    ];
    let trace = [
        (1, event("open", (10, 11), &[0, 0o2000000], 3, &[(0, b"a")])),
        (1, event("open", (20, 21), &[0, 0], 4, &[(0, b"a")])),
        (2, event("close", (800, 801), &[3], 0, &[])),
        (2, event("close", (900, 901), &[4], 0, &[])),
    ];
    let (script, report) = made(&metas, &trace, &Options::default());
    let execs: Vec<_> = script.steps.iter().filter(|step| step.action == Action::Exec).collect();
    assert_eq!(execs.len(), 1);
    assert_eq!(report.dropped.len(), 1);
    let all: u64 =
        script.steps.iter().map(|step| if let Action::Compute(ns) = step.action { ns } else { 0 }).sum();
    // Not the 200 ns in which the recorder looked at the new program.
    assert_eq!(all, 2 + 9 + 479 + 200 + 99);
}

#[test]
fn what_is_no_trace_is_told_in_one_line() {
    let trace = written(&one(), &[]);
    std::fs::write(&trace.0, b"etude script 1\n").unwrap();
    assert_eq!(from_trace(&trace.0, &Options::default()).unwrap_err().to_string().lines().count(), 1);
}

/// What a program may do next: which of its threads, what, and how long before and after it takes effect.
type Move = (u8, u8, u8, u8, u8);

/// A kernel as far as descriptors go, and a program that does nothing wrong.
fn played(moves: &[Move]) -> (Vec<Meta>, Vec<(u32, Event)>) {
    let mut metas = one();
    let (mut events, mut now) = (Vec::new(), 1000);
    // Of each thread: its process, and when it is free again.
    let mut threads: Vec<(u32, u64)> = vec![(0, 0)];
    let mut tables: Vec<BTreeSet<i32>> = vec![BTreeSet::from([0, 1, 2])];
    for &(who, what, which, before, after) in moves {
        now += 100;
        let number = usize::from(who) % threads.len();
        let (process_, free) = threads[number];
        let table = &mut tables[process_ as usize];
        let lowest = (0..).find(|descriptor| !table.contains(descriptor)).unwrap();
        let some = table.iter().nth(usize::from(which) % table.len().max(1)).copied().unwrap_or(99);
        let fd = some as u64;
        let at = (free.max(now - u64::from(before)).min(now), now + u64::from(after));
        let name = [b'a' + which % 4];
        let call = match what % 14 {
            0 | 1 => {
                event("openat", at, &[CWD, 0, 0o100 * u64::from(which & 1)], lowest.into(), &[(1, &name)])
            }
            2 => event("openat", at, &[fd, 0, 0], lowest.into(), &[(1, &name)]),
            3 | 4 => event("read", at, &[fd, 0, 100], 100, &[]),
            5 => event("close", at, &[fd], 0, &[]),
            6 => event("dup", at, &[fd], lowest.into(), &[]),
            7 => event("dup2", at, &[fd, u64::from(after % 8)], i64::from(after % 8), &[]),
            8 => event("socket", at, &[1, 1, 0], lowest.into(), &[]),
            9 => event("openat", at, &[CWD, 0, 0o2000000], lowest.into(), &[(1, b"/dev/tty")]),
            10 => event("rename", at, &[0, 0], 0, &[(0, &name), (1, b"b")]),
            11 => event("close_range", at, &[3, 5 + fd, 0], 0, &[]),
            12 if threads.len() < 6 => {
                let new = threads.len() as u32;
                metas.push(thread(new, process_, 1000 + new, now));
                threads.push((process_, now));
                continue;
            }
            13 if threads.len() < 6 && threads[number].1 <= now => {
                let (new, child) = (threads.len() as u32, tables.len() as u32);
                metas.push(process(child, Some(process_), now));
                metas.push(thread(new, child, 100 + child, now));
                let copy = tables[process_ as usize].clone();
                tables.push(copy);
                threads.push((child, now));
                continue;
            }
            _ => continue,
        };
        match call.call.name() {
            "close" => drop(table.remove(&some)),
            "close_range" => table.retain(|d| !(3..=5 + some).contains(d)),
            "read" | "rename" => {}
            _ => drop(table.insert(call.result as i32)),
        }
        threads[number].1 = at.1;
        events.push((number as u32, call));
    }
    (metas, events)
}

proptest! {
    #[test]
    fn descriptors_are_open_where_a_script_uses_them(moves in vec(any::<Move>(), 0..120), waits: bool, keep: bool) {
        let (metas, events) = played(&moves);
        let options = Options { waits, keep_names: keep, ..Options::default() };
        let (script, report) = made(&metas, &events, &options);
        let calls = script.steps.iter().filter(|step| matches!(step.action, Action::Call(_))).count() as u64;
        let dropped: u64 = report.dropped.values().map(|dropped| dropped.calls).sum();
        let closes: u64 = report.replaced.values().sum();
        prop_assert_eq!(calls + dropped, events.len() as u64);
        prop_assert!(closes <= calls);
    }
}

#[test]
fn the_name_of_a_bound_socket_is_there_for_the_calls_on_it() {
    let at = |turn: u64| (turn * 100, turn * 100 + 50);
    let events = [
        event("unlink", at(1), &[0], -2, &[(0, b"/w/s")]),
        event("socket", at(2), &[1, 1, 0], 3, &[]),
        event("bind", at(3), &[3, 0, 110], 0, &[]),
        event("chmod", at(4), &[0, 0o777], 0, &[(0, b"/w/s")]),
        event("unlink", at(5), &[0], 0, &[(0, b"/w/s")]),
        event("stat", at(6), &[0, 0], 0, &[(0, b"/w/other")]),
    ];
    let (script, _) = made(&[], &events.map(|event| (0, event)), &Options::default());
    let calls: Vec<String> = script
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Call(called) => {
                let text = called.texts.last().map(|text| String::from_utf8_lossy(&text.bytes).into_owned());
                Some(format!("{} {}", called.call.name(), text.unwrap_or_default()))
            }
            _ => None,
        })
        .collect();
    let name = "etude_tmp1";
    let expected = ["unlink", "mknodat", "chmod", "unlink"].map(|call| format!("{call} {name}"));
    assert_eq!(calls[..4], expected);
    let needed: Vec<_> = script.needed.iter().map(|each| String::from_utf8_lossy(&each.path)).collect();
    assert_eq!(needed, ["other"]);
}
