//! Counters of events.

use super::*;

const DUPFD: u64 = 0;

fn counter(thread: u32, name: &str, at: (u64, u64), result: i64) -> (u32, Event) {
    (thread, event(name, at, &[3, 0x7f00, 8], result, &[]))
}

/// The steps of futexes, and what was dropped, where the first thread makes the counter.
fn shown(metas: &[Meta], events: &[(u32, Event)]) -> (Vec<String>, Vec<(&'static str, u64)>) {
    let first = (0, event("eventfd2", (10, 20), &[0, 0], 3, &[]));
    let (script, report) = made(metas, &[&[first], events].concat(), &Options::default());
    let steps = lines(&script).into_iter().filter(|line| line.contains("futex")).collect();
    let dropped = report.dropped.iter().map(|((name, _), each)| (*name, each.calls));
    (steps, dropped.filter(|(name, _)| *name != "eventfd2").collect())
}

fn three() -> Vec<Meta> {
    vec![process(0, None, 0), thread(0, 0, 100, 0), thread(1, 0, 101, 5), thread(2, 0, 102, 5)]
}

fn wake(thread: u32, word: u32) -> String {
    format!("{thread}: futex({word:#x}, FUTEX_WAKE, 1) = 1")
}

fn wait(thread: u32, word: u32) -> String {
    format!("{thread}: futex({word:#x}, FUTEX_WAIT, 0) = 0")
}

#[test]
fn a_read_waits_for_all_who_wrote_since_the_one_before() {
    let (steps, dropped) = shown(
        &three(),
        &[
            counter(0, "read", (100, 400), 8),
            counter(1, "write", (300, 310), 8),
            counter(1, "write", (500, 510), 8),
            counter(2, "write", (520, 530), 8),
            counter(0, "read", (600, 610), 8),
            // One more of a semaphore.
            counter(0, "read", (620, 630), 8),
            counter(2, "write", (700, 710), 8),
            counter(0, "read", (720, 730), 8),
        ],
    );
    let second = [wait(0, 1), wait(0, 2)];
    let expected =
        [&[wake(1, 1), wait(0, 1), wake(1, 1), wake(2, 2)][..], &second, &second, &[wake(2, 2), wait(0, 2)]];
    assert_eq!((steps, dropped), (expected.concat(), vec![]));
}

#[test]
fn what_found_nothing_or_what_nobody_is_known_to_have_written_is_time() {
    let (steps, dropped) = shown(
        &three(),
        &[
            counter(0, "read", (100, 110), 8),
            counter(0, "read", (200, 210), -11),
            counter(1, "write", (300, 310), -11),
            // Its own.
            counter(0, "write", (400, 410), 8),
            counter(0, "read", (500, 510), 8),
        ],
    );
    let own = "futex(0x1, FUTEX_WAKE, 1) = 1".to_owned();
    assert_eq!((steps, dropped), (vec![own], vec![("read", 3), ("write", 1)]));
}

#[test]
fn copies_of_a_counter_are_that_counter_also_in_another_process() {
    let metas = [process(0, None, 0), thread(0, 0, 100, 0), process(1, Some(0), 60), thread(1, 1, 101, 61)];
    let (steps, _) = shown(
        &metas,
        &[
            (0, event("fcntl", (30, 40), &[3, DUPFD, 0], 7, &[])),
            (0, event("close", (50, 55), &[3], 0, &[])),
            (0, event("read", (100, 900), &[7, 0, 8], 8, &[])),
            (1, event("write", (800, 810), &[7, 0, 8], 8, &[])),
            (1, event("close", (950, 960), &[7], 0, &[])),
        ],
    );
    assert_eq!(steps, [wake(1, 1), wait(0, 1)]);
}

#[test]
fn who_reads_starts_no_thread() {
    let metas = [&three()[..3], &[thread(2, 0, 102, 500)]].concat();
    let events = [
        (0, event("eventfd2", (10, 20), &[0, 0], 3, &[])),
        counter(0, "read", (100, 900), 8),
        (1, event("sync", (300, 310), &[], 0, &[])),
        counter(2, "write", (800, 810), 8),
    ];
    let (script, _) = made(&metas, &events, &Options::default());
    assert!(lines(&script).contains(&"1: start(2)".to_owned()), "{:?}", lines(&script));
}
