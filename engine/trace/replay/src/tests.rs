use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use etude_calls::Call;
use etude_script::{Action, Called, Dropped, Needed, Script, Step, What};
use etude_trace::{Policy, Scheduling, Text};

use crate::compile::compile;
use crate::perform::Wishes;
use crate::player::{Manner, Timing};
use crate::replay::{Refused, replay};
use crate::report::Report;
use crate::roll::{Marked, Roll};

mod requests;
mod rolls;
mod sockets;

const CWD: u64 = -100_i64 as u64;
pub(crate) const O_RDWR_CREAT: u64 = 0o102;

pub(crate) fn called(name: &str, arguments: &[u64], result: i64, text: Option<(u8, &[u8])>) -> Action {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let texts = text.into_iter().map(|(argument, bytes)| Text { argument, bytes: bytes.into() }).collect();
    let call = Call::named(name).unwrap();
    Action::Call(Called { call, arguments: all, texts, result, duration_ns: Some(2_000) })
}

pub(crate) fn open(path: &str, flags: u64, result: i64) -> Action {
    called("openat", &[CWD, 0, flags, 0o644], result, Some((1, path.as_bytes())))
}

pub(crate) fn script(steps: Vec<(u32, Action)>) -> Script {
    let steps = steps.into_iter().map(|(thread, action)| Step { thread, action }).collect();
    Script { notes: vec!["a note".into()], steps, ..Script::default() }
}

pub(crate) fn compiled(script: &Script) -> Vec<u8> {
    compile(script, Vec::new()).unwrap().0
}

/// A directory that goes away with its end.
pub(crate) struct Place(pub std::path::PathBuf);

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("etude-replay-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn play_with(script: &Script, at: &Path, timing: Timing, wishes: Wishes) -> Result<Report, Refused> {
    let roll = Roll::read(compiled(script)).unwrap();
    replay(roll, at, Manner { timing, speed: 1.0, realtime: false, class: None }, wishes, |_, _| {})
}

fn play(script: &Script, at: &Path, timing: Timing) -> Report {
    play_with(script, at, timing, Wishes::default()).unwrap()
}

fn one_file() -> Script {
    script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Compute(20_000)),
        (0, called("write", &[3, 0, 5000], 5000, None)),
        (0, called("lseek", &[3, 100, 0], 100, None)),
        (0, called("read", &[3, 0, 8192], 4900, None)),
        (0, called("fstat", &[3], 0, None)),
        (0, called("dup", &[3], 7, None)),
        (0, called("pwrite64", &[7, 0, 10, 6000], 10, None)),
        (0, called("close", &[3], 0, None)),
        (0, called("close", &[7], 0, None)),
        (0, open("missing", 0, -2)),
        (0, called("rename", &[0, 0], 0, Some((0, b"a")))),
    ])
}

#[test]
fn calls_are_made_with_their_results() {
    let place = Place::new();
    let mut script = one_file();
    let Some(Step { action: Action::Call(rename), .. }) = script.steps.last_mut() else { unreachable!() };
    rename.texts.push(Text { argument: 1, bytes: b"b"[..].into() });
    for timing in [Timing::Gap, Timing::Absolute, Timing::None] {
        let report = play(&script, &place.0, timing);
        assert_eq!((report.calls, report.skipped, report.mismatches), (11, 0, 0), "{report:?}");
        assert_eq!(std::fs::metadata(place.0.join("b")).unwrap().len(), 6010);
        assert_eq!((report.read_bytes, report.written_bytes), (4900, 5010));
        std::fs::remove_file(place.0.join("b")).unwrap();
    }
}

#[test]
fn threads_run_in_the_class_of_the_recording_where_they_may() {
    let class = |policy| Scheduling { policy, priority: 0, nice: 19 };
    // The kernel takes no thread as `deadline` without more.
    for (class, refused) in [(class(Policy::Batch), false), (class(Policy::Deadline), true)] {
        let place = Place::new();
        let script = Script { scheduling: Some(class), ..one_file() };
        let roll = Roll::read(compiled(&script)).unwrap();
        assert_eq!(roll.head.scheduling, Some(class));
        let manner = Manner { timing: Timing::None, speed: 1.0, realtime: true, class: Some(class) };
        let report = replay(roll, &place.0, manner, Wishes::default(), |_, _| {}).unwrap();
        assert_eq!((report.scheduling, report.scheduling_refused), (Some(class), refused));
        assert_eq!((report.calls, report.realtime), (11, false));
    }
}

#[test]
fn another_result_is_counted() {
    let place = Place::new();
    let other = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, called("read", &[3, 0, 10], 10, None)),
        (0, open("there-in-the-original", 0, 4)),
        (0, called("read", &[4, 0, 10], 10, None)),
    ]);
    let report = play(&other, &place.0, Timing::Gap);
    assert_eq!((report.calls, report.mismatches, report.skipped), (3, 2, 1));
    let found: Vec<_> = report
        .other_results
        .iter()
        .map(|other| (other.thread, other.step, other.line.as_str(), other.expected, other.got))
        .collect();
    let open = "openat(AT_FDCWD, \"there-in-the-original\", O_RDONLY) = 4";
    assert_eq!(found, [(0, 2, "read(3, 10) = 10", 10, 0), (0, 3, open, 4, -2)]);
}

#[test]
fn what_the_script_has_not_is_known_to_its_replay() {
    let place = Place::new();
    let mut with = one_file();
    let pipe =
        Dropped { call: "write".into(), why: "pipe".into(), calls: 2, bytes: 4955, requests: 0, ns: 4_000 };
    with.dropped.push(pipe);
    let report = play(&with, &place.0, Timing::Gap);
    assert_eq!((report.unplayed.bytes, report.unplayed.bytes_share), (4955, 4955.0 / (4955.0 + 9910.0)));
    assert_eq!(report.unplayed.dropped.len(), 1);
}

#[test]
fn data_that_cannot_be_played_counts_as_not_played() {
    let place = Place::new();
    let other = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, called("write", &[3, 0, 10], 10, None)),
        (0, open("there-in-the-original", 0, 4)),
        (0, called("read", &[4, 0, 30], 30, None)),
    ]);
    let report = play(&other, &place.0, Timing::Gap);
    assert_eq!((report.unplayed.bytes, report.unplayed.bytes_share), (30, 0.75));
}

#[test]
fn a_gap_lasts_as_long_as_it_did_and_its_error_does_not_add_up() {
    let place = Place::new();
    let mut steps = vec![(0, open("a", O_RDWR_CREAT, 3))];
    for _ in 0..100 {
        steps.push((0, Action::Compute(1_000_300)));
        steps.push((0, called("pwrite64", &[3, 0, 10, 0], 10, None)));
    }
    let report = play(&script(steps), &place.0, Timing::Gap);
    // The clock is virtual: computing and the calls themselves, and what the last was late by.
    let computed = 100.0 * 1_000_300e-9;
    let late = report.lateness_s.as_ref().unwrap().max;
    assert!(report.run_s >= computed + report.calls_s - 1e-6, "{report:?}");
    assert!(report.run_s <= computed + report.calls_s + late + 0.05, "{report:?}");
    assert!((report.original.run_s - (computed + 101.0 * 2e-6)).abs() < 1e-9);
}

#[test]
fn threads_and_processes_wait_for_what_they_share() {
    let place = Place::new();
    // A process writes what its parent's thread reads; the thread reads with a descriptor that the first one opens.
    let shared = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Fork(1)),
        (0, Action::Start(2)),
        (1, Action::Compute(30_000_000)),
        (1, called("write", &[3, 0, 1000], 1000, None)),
        (1, called("close", &[3], 0, None)),
        (2, called("pread64", &[3, 0, 1000, 0], 1000, None)),
        (2, called("unlink", &[0], 0, Some((0, b"a")))),
        (2, open("b", O_RDWR_CREAT, 4)),
        (0, called("write", &[4, 0, 10], 10, None)),
        (0, Action::Wait(1)),
        (0, called("close", &[4], 0, None)),
        (0, called("close", &[3], 0, None)),
    ]);
    for timing in [Timing::None, Timing::Gap] {
        for _ in 0..20 {
            let report = play(&shared, &place.0, timing);
            assert_eq!((report.calls, report.mismatches, report.skipped), (9, 0, 0), "{report:?}");
            std::fs::remove_file(place.0.join("b")).unwrap();
        }
    }
}

#[test]
fn who_waits_for_a_process_does_not_wait_for_those_that_it_has_started() {
    // A server, say: its starter is waited for at once, and it ends when whoever waited for that says so.
    let place = Place::new();
    let server = script(vec![
        (0, Action::Fork(1)),
        (1, Action::Fork(2)),
        (0, Action::Wait(1)),
        (0, open("a", O_RDWR_CREAT, 3)),
        (2, open("a", 0, 3)),
    ]);
    for timing in [Timing::None, Timing::Gap] {
        let report = play(&server, &place.0, timing);
        assert_eq!((report.calls, report.mismatches), (2, 0), "{report:?}");
        std::fs::remove_file(place.0.join("a")).unwrap();
    }
}

#[test]
fn only_what_is_shared_makes_threads_wait() {
    let lanes = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Start(1)),
        (1, open("b", O_RDWR_CREAT, 4)),
        (0, called("pwrite64", &[3, 0, 10, 0], 10, None)),
        (1, called("pwrite64", &[4, 0, 10, 0], 10, None)),
        (0, called("pwrite64", &[3, 0, 10, 10], 10, None)),
        (1, called("close", &[4], 0, None)),
        (0, called("close", &[3], 0, None)),
    ]);
    let roll = Roll::read(compiled(&lanes)).unwrap();
    let waits = roll.marks.iter().flatten().filter(|mark| matches!(mark.what, Marked::After { .. })).count();
    assert_eq!(waits, 0);
    let overlapping = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Start(1)),
        (1, open("a", 2, 4)),
        (0, called("pwrite64", &[3, 0, 10, 0], 10, None)),
        (1, called("pread64", &[4, 0, 10, 5], 10, None)),
        (1, called("pread64", &[4, 0, 10, 500], 0, None)),
    ]);
    let roll = Roll::read(compiled(&overlapping)).unwrap();
    let waits = roll.marks[1].iter().filter(|mark| matches!(mark.what, Marked::After { .. })).count();
    assert_eq!(waits, 1);
}

#[test]
fn nothing_outside_the_directory_is_touched() {
    let place = Place::new();
    let (inside, outside) = (place.0.join("in"), place.0.join("out"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("planted")).unwrap();
    std::os::unix::fs::symlink("../out", inside.join("relative")).unwrap();
    let absolute = outside.join("absolute").display().to_string();
    let paths = ["../out/dots", "/../out/dots", &absolute, "planted/x", "relative/x", "a/../../out/y"];
    let steps = paths.iter().map(|path| (0, open(path, O_RDWR_CREAT, 3)));
    let more = ["mkdir", "unlink", "rmdir"].map(|name| (0, called(name, &[0], 0, Some((0, b"../out")))));
    let report = play(&script(steps.chain(more).collect()), &inside, Timing::None);
    assert_eq!(report.calls, 9);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(outside.is_dir());
}

#[test]
fn what_the_machine_itself_is_made_of_is_not_played() {
    let place = Place::new();
    let (disk, nobody) = (u64::from(libc::S_IFBLK | 0o600), 1_234_567);
    let (private, anywhere) = (2, 0x7f00_0000_0000);
    let asked = [
        called("mknod", &[0, disk, 0x0800], 0, Some((0, b"disk"))),
        called("sync", &[], 0, None),
        called("fcntl", &[3, libc::F_SETOWN as u64, nobody], 0, None),
        called("ioctl", &[3, 0x1234, 0], 0, None),
        called("madvise", &[anywhere, 4096, libc::MADV_HWPOISON as u64], 0, None),
    ];
    let mut steps = vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, called("ftruncate", &[3, 4096], 0, None)),
        (0, called("mmap", &[0, 4096, 1, private, 3, 0], anywhere as i64, None)),
    ];
    steps.extend(asked.map(|action| (0, action)));
    let report = play(&script(steps), &place.0, Timing::None);
    assert_eq!((report.calls, report.skipped, report.mismatches), (3, 5, 0), "{report:?}");
}

#[test]
fn what_is_needed_has_to_be_there() {
    let place = Place::new();
    let mut with = one_file();
    with.needed
        .push(Needed { path: b"in"[..].into(), what: What::File { bytes: 10, allocated: None, seen: true } });
    let line = |with: &Script| play_with(with, &place.0, Timing::None, Wishes::default()).unwrap_err().0;
    assert_eq!(line(&with), "in: is needed and not there; etude prepare makes what a roll needs");
    std::fs::write(place.0.join("in"), b"123").unwrap();
    assert_eq!(line(&with), "in: has 3 bytes, and 10 are needed; etude prepare makes what a roll needs");
}

#[test]
fn threads_that_wait_for_each_other_are_given_up() {
    let place = Place::new();
    let knot = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Fork(1)),
        (0, Action::Wait(1)),
        (0, called("write", &[3, 0, 10], 10, None)),
        (1, called("read", &[3, 0, 10], 0, None)),
    ]);
    let Refused(line, code) = play_with(&knot, &place.0, Timing::None, Wishes::default()).unwrap_err();
    assert_eq!((code, line.contains("wait for each other")), (3, true), "{line}");
}

#[test]
fn memory_is_taken_and_touched_only_when_asked_for() {
    let place = Place::new();
    std::fs::write(place.0.join("f"), [7; 8192]).unwrap();
    let (both, private) = (3, 2);
    let mmap = |at: u64, length: u64, flags: u64, fd: i64, result: i64| {
        called("mmap", &[at, length, both, flags, fd as u64, 0], result, None)
    };
    let map = script(vec![
        (0, open("f", 2, 3)),
        (0, called("brk", &[0], 0x100_0000, None)),
        (0, called("brk", &[0x140_0000], 0x140_0000, None)),
        (0, mmap(0, 1 << 20, private | 0x20, -1, 0x7f00_0000_0000)),
        (0, called("mprotect", &[0x7f00_0000_0000, 4096, 0], 0, None)),
        (0, mmap(0, 8192, private, 3, 0x7e00_0000_0000)),
        (0, mmap(0x7e00_0000_1000, 4096, private | 0x10, 3, 0x7e00_0000_1000)),
        (0, Action::Compute(20_000_000)),
        (0, called("munmap", &[0x7e00_0000_0000, 8192], 0, None)),
        (0, called("munmap", &[0x5000, 4096], 0, None)),
    ]);
    let report = play(&map, &place.0, Timing::Gap);
    // Without: the file's mappings alone. Memory that the program never had mapped is nobody's to give back.
    assert_eq!((report.calls, report.skipped, report.mismatches), (4, 5, 0), "{report:?}");
    let report =
        play_with(&map, &place.0, Timing::Gap, Wishes { footprint: true, ..Wishes::default() }).unwrap();
    assert_eq!((report.calls, report.skipped, report.mismatches), (7, 2, 0), "{report:?}");
}

#[test]
fn nobody_becomes_another_user_by_what_is_played() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let with = script(vec![
        (0, called("openat", &[CWD, 0, O_RDWR_CREAT, 0o6755], 3, Some((1, b"a")))),
        (0, called("fchmod", &[3, 0o4755], 0, None)),
        (0, called("fsetxattr", &[3, 0, 0, 20, 0], 0, Some((1, b"security.capability")))),
    ]);
    let report = play(&with, &place.0, Timing::None);
    assert_eq!((report.calls, report.skipped), (2, 1));
    assert_eq!(std::fs::metadata(place.0.join("a")).unwrap().mode() & 0o6000, 0);
}

#[test]
fn addresses_that_no_program_has_are_not_played() {
    let place = Place::new();
    std::fs::write(place.0.join("f"), [7; 8192]).unwrap();
    let mmap = |result: i64| called("mmap", &[0, 4096, 3, 2, 3, 0], result, None);
    let with = script(vec![
        (0, open("f", 2, 3)),
        (0, mmap(0x1001)),
        (0, mmap(-131_072)),
        (0, mmap(i64::MAX - 4094)),
    ]);
    let report =
        play_with(&with, &place.0, Timing::None, Wishes { footprint: true, ..Wishes::default() }).unwrap();
    assert_eq!((report.calls, report.skipped), (1, 3));
}

#[test]
fn copies_of_all_there_is_need_no_buffer_and_offsets_are_kept() {
    let place = Place::new();
    std::fs::write(place.0.join("f"), [7; 5000]).unwrap();
    let Action::Call(mut sent) = called("sendfile", &[4, 3, 0, 8192], 4000, None) else { unreachable!() };
    sent.texts.push(Text { argument: 2, bytes: 1000_u64.to_le_bytes()[..].into() });
    let with = script(vec![
        (0, open("f", 2, 3)),
        (0, open("g", O_RDWR_CREAT, 4)),
        (0, Action::Call(sent)),
        (0, called("copy_file_range", &[3, 0, 4, 0, 0x7fff_ffff_c000_0000, 0], 5000, None)),
    ]);
    let roll = Roll::read(compiled(&with)).unwrap();
    assert_eq!(roll.head.largest, 0);
    let report = play(&with, &place.0, Timing::None);
    assert_eq!((report.calls, report.mismatches), (4, 0), "{report:?}");
    assert_eq!(std::fs::metadata(place.0.join("g")).unwrap().len(), 9000);
}

#[test]
fn a_script_of_other_sizes_is_played_without_other_results() {
    use etude_script::ops::{Sizes, scale_sizes};
    let text = "etude script 1
file \"in\" 10000
openat(AT_FDCWD, \"in\", O_RDONLY) = 3
read(3, 4096) = 4096
read(3, 4096) = 4096
read(3, 4096) = 1808
read(3, 4096) = 0
lseek(3, -1808, SEEK_END) = 8192
pread64(3, 8000, 3000) = 7000
openat(AT_FDCWD, \"out\", O_RDWR|O_CREAT, 0644) = 4
lseek(3, 0, SEEK_SET) = 0
sendfile(4, 3, NULL, 20000) = 10000
lseek(4, 0, SEEK_END) = 10000
write(4, 700) = 700
lseek(4, -700, SEEK_CUR) = 10000
read(4, 1000) = 700
";
    let script = etude_script::parse("s", text.as_bytes()).unwrap().script;
    for (factor, align) in [(1.0, 1), (0.3, 512), (0.3, 1), (0.01, 512), (2.5, 4096), (7.0, 1)] {
        let place = Place::new();
        let scaled = scale_sizes(&script, Sizes { factor, align }).unwrap();
        let inside = place.0.join("in here");
        etude_script::prepare(&scaled.needed, &inside, etude_script::Preparation::default()).unwrap();
        let report = play(&scaled, &inside, Timing::None);
        assert_eq!(report.other_results, [], "{factor} {align}");
        assert_eq!(report.calls, 14);
    }
}

/// One thread wakes another after `delay`; both have something to do behind that.
fn woken(delay: u64) -> Script {
    script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, Action::Start(1)),
        (1, Action::Compute(delay)),
        (1, called("futex", &[1, 129, 1], 1, None)),
        (0, called("futex", &[1, 128, 2], 0, None)),
        (0, called("write", &[3, 0, 100], 100, None)),
        (1, called("fstat", &[3], 0, None)),
    ])
}

#[test]
fn who_waits_for_a_thread_follows_it_when_it_is_late() {
    const DELAY_S: f64 = 0.05;
    let place = Place::new();
    let at_once = play(&woken(0), &place.0, Timing::Gap);
    let late = play(&woken(50_000_000), &place.0, Timing::Gap);
    assert_eq!((at_once.mismatches, late.mismatches, late.skipped), (0, 0, 0));
    assert!(late.waits >= 1 && late.waited_s > 0.9 * DELAY_S, "{} {}", late.waits, late.waited_s);
    assert!(late.run_s > 0.9 * DELAY_S, "the one that is woken ends behind it");
    // A wait is no time within calls.
    assert!(late.original.calls_s < 0.001 && late.calls_s < DELAY_S, "{late:?}");
}
