//! Requests of io_uring and aio.

use super::*;

/// What requests become: a file is open as 3, a socket as 4, a ring as 5.
fn requests(rest: Vec<Event>) -> (Vec<String>, Report) {
    let before = [
        event("openat", (10, 11), &[CWD, 0, 0o102, 0o644], 3, &[(1, b"a")]),
        event("socket", (12, 13), &[1, 1, 0], 4, &[]),
        event("io_uring_setup", (14, 15), &[8, 0], 5, &[]),
    ];
    let events: Vec<_> = before.into_iter().chain(rest).map(|event| (0, event)).collect();
    let (script, report) = made(&one(), &events, &Options { keep_names: true, ..Options::default() });
    (lines(&script).into_iter().filter(|line| line.contains("= ")).skip(1).collect(), report)
}

#[test]
fn a_request_is_a_step_and_so_is_its_completion() {
    let (found, report) = requests(vec![
        event("sqe_write", (20, 20), &[3, 5, 4096, 0, 0xabc0, 0], 0, &[]),
        event("sqe_fsync", (20, 20), &[3, 5, 0xabc1, 0], 0, &[]),
        event("io_uring_enter", (20, 30), &[5, 2, 1, 1], 2, &[]),
        event("cqe", (31, 31), &[5, 0xabc1], 0, &[]),
        // The lowest number that is free, as of descriptors; the same tag again.
        event("sqe_read", (40, 40), &[3, 5, 100, 4000, 0xabc1, 4], 0, &[]),
        event("io_uring_enter", (40, 50), &[5, 1, 2, 1], 1, &[]),
        event("cqe", (51, 51), &[5, 0xabc1], 96, &[]),
        event("cqe", (51, 51), &[5, 0xabc0], 4096, &[]),
    ]);
    assert_eq!(
        found,
        [
            "sqe_write(3, 5, 4096, 0, 0x1, 0) = 4096",
            "sqe_fsync(3, 5, 0x2, 0) = 0",
            "io_uring_enter(5, 2, 1, IORING_ENTER_GETEVENTS, 0) = 2",
            "cqe(5, 0x2) = 0",
            "sqe_read(3, 5, 100, 4000, 0x2, IOSQE_IO_LINK) = 96",
            "io_uring_enter(5, 1, 2, IORING_ENTER_GETEVENTS, 0) = 1",
            "cqe(5, 0x2) = 0",
            "cqe(5, 0x1) = 0",
        ]
    );
    let dropped: Vec<_> = report.dropped.keys().map(|(name, _)| *name).collect();
    assert_eq!(dropped, ["io_uring_setup", "socket"]);
    assert_eq!(report.missing, []);
}

#[test]
fn contexts_of_aio_are_numbered() {
    let (found, _) = requests(vec![
        event("iocb_write", (20, 20), &[3, 0x7f01, 512, 0, 0x100, 0], 0, &[]),
        event("io_submit", (20, 30), &[0x7f01, 1, 1], 1, &[]),
        event("iocb_read", (31, 31), &[3, 0x7f02, 512, 0, 0x100, 0], 0, &[]),
        event("io_submit", (31, 32), &[0x7f02, 1, 1], 1, &[]),
        event("io_getevents", (33, 34), &[0x7f01, 1, 8, 1], 1, &[]),
        event("io_event", (34, 34), &[0x7f01, 0x100], 512, &[]),
    ]);
    assert_eq!(
        found,
        [
            "iocb_write(3, 0x1, 512, 0, 0x1, 0) = 512",
            "io_submit(0x1, 1) = 1",
            "iocb_read(3, 0x2, 512, 0, 0x1, 0) = -9223372036854775808",
            "io_submit(0x2, 1) = 1",
            "io_getevents(0x1, 1, 8) = 1",
            "io_event(0x1, 0x1) = 0",
        ],
        "what came of a request that nobody took is not known"
    );
}

#[test]
fn requests_that_are_not_played_are_counted_with_their_bytes() {
    let (found, report) = requests(vec![
        event("sqe_write", (20, 20), &[4, 5, 100, 0, 1, 0], 0, &[]),
        event("sqe_other", (20, 20), &[26, 5, 2, 0], 0, &[]),
        event("sqe_other", (20, 20), &[6, 5, 3, 0], 0, &[]),
        event("io_uring_enter", (20, 30), &[5, 3, 3, 1], 3, &[]),
        event("cqe", (31, 31), &[5, 1], 90, &[]),
        event("cqe", (31, 31), &[5, 3], 1, &[]),
        // Of a ring whose requests a thread of the kernel takes nothing is told.
        event("io_uring_enter", (40, 41), &[6, 0, 0, 2], 4, &[]),
    ]);
    assert_eq!(found, Vec::<String>::new());
    let dropped: Vec<_> = report
        .dropped
        .values()
        .map(|each| (each.call.as_str(), each.why.as_str(), each.calls, each.bytes, each.requests))
        .filter(|each| !matches!(each.0, "socket" | "io_uring_setup"))
        .collect();
    let (not_played, not_recorded) = (
        "asynchronous I/O, whose requests are not played",
        "asynchronous I/O, whose requests are not recorded",
    );
    assert_eq!(
        dropped,
        [
            ("cqe", not_played, 2, 0, 0),
            ("io_uring_enter", not_played, 1, 0, 0),
            ("io_uring_enter", not_recorded, 1, 0, 4),
            ("sqe_other", "IORING_OP_POLL_ADD", 1, 0, 0),
            ("sqe_other", "IORING_OP_SEND", 1, 0, 1),
            ("sqe_write", "socket", 1, 90, 0),
        ]
    );
}

#[test]
fn a_file_is_as_long_as_requests_have_found_it() {
    let trace = [
        event("openat", (10, 11), &[CWD, 0, 0, 0], 3, &[(1, b"a")]),
        event("sqe_read", (20, 20), &[3, 5, 4096, 8192, 1, 0], 0, &[]),
        event("io_uring_enter", (20, 30), &[5, 1, 1, 1], 1, &[]),
        event("close", (31, 32), &[3], 0, &[]),
        event("cqe", (33, 33), &[5, 1], 100, &[]),
    ]
    .map(|event| (0, event));
    let (script, _) = made(&one(), &trace, &Options::default());
    assert_eq!(script.needed[0].what, What::File { bytes: 8292, allocated: None, seen: true });
}

#[test]
fn a_ring_whose_requests_the_kernel_takes_by_itself_is_one_that_is_not_known() {
    let (_, report) = requests(vec![
        event("io_uring_setup", (20, 21), &[8, 2], 6, &[]),
        event("io_uring_setup", (22, 23), &[8, 0x7ffc_0000_0002], 7, &[]),
    ]);
    let rings: Vec<_> = report.dropped.values().filter(|each| each.call == "io_uring_setup").collect();
    assert_eq!((rings[0].calls, rings[0].requests, rings[0].moves()), (3, UNCOUNTED, true));
}
