//! Threads that wait for each other.

use super::*;

const WAIT: u64 = 128;
const WAKE: u64 = 129;
const JOIN: u64 = 256 | 9;

fn two() -> Vec<Meta> {
    vec![process(0, None, 0), thread(0, 0, 100, 0), thread(1, 0, 101, 5)]
}

fn shown(events: &[(u32, Event)]) -> (Vec<String>, Report) {
    let (script, report) = made(&two(), events, &Options::default());
    (lines(&script).into_iter().filter(|line| !line.contains("start(")).collect(), report)
}

#[test]
fn who_was_woken_stands_behind_whoever_woke_it() {
    let (found, report) = shown(&[
        (0, event("futex", (1000, 5000), &[0x7f01, WAIT, 2], 0, &[])),
        (1, event("futex", (4000, 4100), &[0x7f01, WAKE, 1], 1, &[])),
        (0, event("sync", (5000, 5100), &[], 0, &[])),
    ]);
    let expected = [
        "1: compute(0.000003995)",
        "1: futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1",
        "0: compute(0.000000995)",
        "0: futex(0x1, FUTEX_WAIT_PRIVATE, 2) = 0",
        "0: sync() = 0",
    ];
    assert_eq!(found[found.len() - 5..], expected, "{found:?}");
    assert_eq!(report.dropped, BTreeMap::new());
}

#[test]
fn who_joins_a_thread_stands_behind_its_end() {
    let (found, report) = shown(&[
        (0, event("futex", (1000, 5000), &[0x7f01, JOIN, 101], 0, &[])),
        (1, event("sync", (2000, 3000), &[], 0, &[])),
    ]);
    let end = "1: futex(0x1, FUTEX_WAKE, 1) = 1";
    let join = format!("0: futex(0x1, {JOIN}, 101) = 0");
    let place = |wanted: &str| found.iter().position(|line| line == wanted);
    assert!(place(end).is_some_and(|end| place(&join).is_some_and(|join| join > end)), "{found:?}");
    // Until its end it did something else.
    assert!(found.contains(&"1: compute(0.000002000)".to_owned()), "{found:?}");
    assert_eq!(report.dropped, BTreeMap::new());
}

#[test]
fn waits_that_nobody_is_known_to_have_ended_are_time() {
    let (found, report) = shown(&[
        (1, event("futex", (100, 110), &[0x7f01, WAKE, 1], 1, &[])),
        (1, event("futex", (200, 210), &[0x7f02, WAKE, 1], 0, &[])),
        // Woken by what is not in the trace; timed out; another value; a request that no program makes.
        (0, event("futex", (1000, 5000), &[0x7f01, WAIT, 2], 0, &[])),
        (0, event("futex", (6000, 7000), &[0x7f01, WAIT, 2], -110, &[])),
        (0, event("futex", (7000, 7100), &[0x7f01, WAIT, 2], -11, &[])),
        (0, event("futex", (7200, 7300), &[0x7f01, 8, 2], 0, &[])),
        (0, event("sync", (9000, 9100), &[], 0, &[])),
    ]);
    assert_eq!(found[found.len() - 2..], ["0: compute(0.000008995)", "0: sync() = 0"], "{found:?}");
    let dropped: Vec<_> =
        report.dropped.iter().map(|((_, why), each)| (*why, each.calls, each.moves())).collect();
    assert_eq!(
        dropped,
        [
            ("a wait for whom is not known", 1, false),
            ("a wait that ended by itself", 2, false),
            ("neither a wait nor a wake", 1, false),
            ("woke nobody", 1, false),
        ]
    );
}

#[test]
fn a_word_that_processes_share_is_one_word() {
    let metas = [process(0, None, 0), thread(0, 0, 100, 0), process(1, Some(0), 5), thread(1, 1, 101, 6)];
    let of = |wake: u64, wait: u64| {
        let events = [
            (1, event("futex", (4000, 4100), &[0x7f01, wake, 1], 1, &[])),
            (0, event("futex", (1000, 5000), &[0x7f01, wait, 2], 0, &[])),
        ];
        made(&metas, &events, &Options::default()).1.dropped.len()
    };
    assert_eq!((of(1, 0), of(WAKE, WAIT)), (0, 1));
}
