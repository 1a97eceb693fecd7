//! Requests of io_uring and aio.

use super::*;

/// Writes two blocks by requests of each interface, and reads what is there.
fn requests() -> Script {
    script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, called("sqe_write", &[3, 5, 4096, 0, 0, 0], 4096, None)),
        (0, called("sqe_write", &[3, 5, 4096, 4096, 1, 4], 4096, None)),
        (0, called("sqe_fsync", &[3, 5, 2, 0], 0, None)),
        (0, called("io_uring_enter", &[5, 3, 3, 1], 3, None)),
        (0, called("cqe", &[5, 2], 0, None)),
        (0, called("cqe", &[5, 0], 0, None)),
        (0, called("cqe", &[5, 1], 0, None)),
        (0, called("iocb_write", &[3, 0, 100, 8192, 0, 0], 100, None)),
        (0, called("iocb_read", &[3, 0, 4096, 0, 1, 0], 4096, None)),
        (0, called("io_submit", &[0, 2], 2, None)),
        (0, called("io_getevents", &[0, 2, 2], 2, None)),
        (0, called("io_event", &[0, 1], 0, None)),
        (0, called("io_event", &[0, 0], 0, None)),
        (0, called("close", &[3], 0, None)),
    ])
}

#[test]
fn requests_are_made_and_their_completions_taken() {
    for timing in [Timing::Gap, Timing::Absolute, Timing::None] {
        let place = Place::new();
        let report = play(&requests(), &place.0, timing);
        assert_eq!((report.calls, report.skipped, report.mismatches), (15, 0, 0), "{report:?}");
        assert_eq!(std::fs::metadata(place.0.join("a")).unwrap().len(), 8292);
        assert_eq!((report.read_bytes, report.written_bytes), (4096, 8292));
        let original = report.original;
        assert_eq!((original.read_bytes, original.written_bytes), (4096, 8292));
        assert!(report.by_call["sqe_write"].count == 2 && report.by_call["cqe"].count == 3);
    }
}

#[test]
fn a_request_with_another_result_is_told_where_it_stands() {
    let place = Place::new();
    let mut script = requests();
    let Action::Call(short) = &mut script.steps[9].action else { unreachable!() };
    short.arguments[3] = 8200;
    let report = play(&script, &place.0, Timing::Gap);
    let found: Vec<_> = report
        .other_results
        .iter()
        .map(|other| (other.thread, other.step, other.call, other.expected, other.got))
        .collect();
    assert_eq!(found, [(0, 10, "iocb_read", 4096, 92)]);
}

#[test]
fn what_no_call_hands_over_or_takes_is_made_at_the_end() {
    let place = Place::new();
    let left = script(vec![
        (0, open("a", O_RDWR_CREAT, 3)),
        (0, called("sqe_write", &[3, 5, 4096, 0, 0, 0], 4096, None)),
        (0, called("io_uring_enter", &[5, 1, 0, 0], 1, None)),
        (0, called("iocb_write", &[3, 0, 100, 4096, 0, 0], 100, None)),
        // Of requests that were never made.
        (0, called("cqe", &[5, 9], 0, None)),
        (0, called("io_submit", &[7, 1], 1, None)),
        // What is no file may keep the kernel waiting.
        (0, called("pipe2", &[0, 0], 0, Some((0, &[10, 0, 0, 0, 11, 0, 0, 0])))),
        (0, called("sqe_read", &[10, 5, 1, 0, 1, 0], 1, None)),
        (0, called("io_uring_enter", &[5, 1, 1, 1], 1, None)),
    ]);
    let report = play(&left, &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (6, 3, 0), "{report:?}");
    assert_eq!(std::fs::metadata(place.0.join("a")).unwrap().len(), 4196);
}

#[test]
fn threads_and_processes_have_requests_of_their_own() {
    let place = Place::new();
    let mut steps = vec![(0, open("a", O_RDWR_CREAT, 3)), (0, Action::Fork(1)), (0, Action::Start(2))];
    for thread in [0, 1, 2_u64] {
        for number in 0..50 {
            let (tag, at) = (number + 100 * (thread / 2), (number + 50 * thread) * 10);
            steps.push((thread as u32, called("sqe_write", &[3, 5, 10, at, tag, 0], 10, None)));
            steps.push((thread as u32, called("io_uring_enter", &[5, 1, number % 2, 1], 1, None)));
        }
        for number in 0..50 {
            steps.push((thread as u32, called("cqe", &[5, number + 100 * (thread / 2)], 0, None)));
        }
    }
    steps.push((0, Action::Wait(1)));
    let report = play(&script(steps), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (451, 0, 0));
    assert_eq!(std::fs::metadata(place.0.join("a")).unwrap().len(), 1500);
}
