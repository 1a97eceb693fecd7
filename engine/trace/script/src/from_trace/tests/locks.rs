//! Locks of ranges.

use etude_calls::{Range, RangeKind};

use super::*;

const SETLK: u64 = 6;
const SETLKW: u64 = 7;

fn range(kind: RangeKind) -> [u8; Range::BYTES] {
    Range { kind, whence: 0, start: 100, length: 5 }.bytes()
}

fn opened(thread: u32, at: u64) -> (u32, Event) {
    (thread, event("openat", (at, at + 10), &[CWD, 0, 2, 0], 3, &[(1, b"f")]))
}

#[test]
fn a_range_is_in_the_script_where_it_is_recorded_and_was_had() {
    let read = range(RangeKind::Read);
    let locks =
        |result, texts: &[(u8, &[u8])]| event("fcntl", (100, 110), &[3, SETLK, 0x7f00], result, texts);
    let shown = |lock: Event| {
        let (script, report) = made(&one(), &[opened(0, 10), (0, lock)], &Options::default());
        let dropped = report.dropped.keys().next().map(|(_, why)| *why);
        (lines(&script).pop().filter(|line| line.contains("fcntl")), dropped)
    };
    let line = "fcntl(3, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=100, l_len=5})";
    assert_eq!(shown(locks(0, &[(2, &read)])), (Some(format!("{line} = 0")), None));
    let unknown = "what its structure held is not recorded";
    for (lock, why) in [
        (locks(0, &[]), unknown),
        (locks(0, &[(2, &read[1..])]), unknown),
        (locks(-11, &[(2, &read)]), "lock that was refused, and not waited for"),
        (locks(-35, &[(2, &read)]), "lock for which it would have waited for ever"),
        (locks(-4, &[(2, &read)]), "interrupted"),
        (locks(-9, &[]), "failed"),
        (event("fcntl", (100, 110), &[3, 5, 0x7f00], 0, &[]), unknown),
    ] {
        assert_eq!(shown(lock), (None, Some(why)));
    }
}

#[test]
fn a_lock_that_was_had_at_once_stands_behind_what_gave_it_back() {
    let metas = [process(0, None, 0), thread(0, 0, 100, 0), process(1, None, 1), thread(1, 1, 101, 1)];
    let (write, none) = (range(RangeKind::Write), range(RangeKind::Unlock));
    let standing = |command: u64| {
        let events = [
            opened(0, 10),
            opened(1, 10),
            (0, event("fcntl", (100, 200), &[3, command, 0], 0, &[(2, &write)])),
            (1, event("fcntl", (150, 160), &[3, SETLK, 0], 0, &[(2, &none)])),
        ];
        let (script, _) = made(&metas, &events, &Options::default());
        let found: Vec<String> = lines(&script).into_iter().filter(|line| line.contains("fcntl")).collect();
        found[0].contains("F_UNLCK")
    };
    // Who waits stands where it began.
    assert_eq!((standing(SETLK), standing(SETLKW)), (true, false));
}
