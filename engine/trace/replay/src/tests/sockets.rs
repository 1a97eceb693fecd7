//! Pairs of sockets, and sockets that are connected by a name.

use super::*;

const ENDS: &[u8] = &[10, 0, 0, 0, 11, 0, 0, 0];

#[test]
fn both_directions_of_a_pair_of_sockets_are_played_by_their_bytes() {
    const STREAM_THAT_DOES_NOT_WAIT: u64 = 0o4001;
    const EPIPE: i64 = -32;
    let (place, mib) = (Place::new(), 1 << 20);
    let call = |name, arguments: &[u64], result| called(name, arguments, result, None);
    let report = play(
        &script(vec![
            (0, called("socketpair", &[1, STREAM_THAT_DOES_NOT_WAIT, 0, 0], 0, Some((3, ENDS)))),
            (0, Action::Fork(1)),
            (0, call("close", &[11], 0)),
            (1, call("close", &[10], 0)),
            // More than it holds.
            (0, call("sendto", &[10, 0, mib, 0, 0, 0], mib as i64)),
            (0, call("sendmsg", &[10, 0, 0], 1000)),
            (1, Action::Compute(2_000_000)),
            (1, call("recvmsg", &[11, 0, 0], mib as i64)),
            (1, call("recvfrom", &[11, 0, 5000, 0x40, 0, 0], 1000)),
            (1, call("writev", &[11, 0, 2], 10)),
            (0, call("read", &[10, 0, 100], 10)),
            (0, Action::Compute(2_000_000)),
            (0, call("shutdown", &[10, 1], 0)),
            (0, call("write", &[10, 0, 5], EPIPE)),
            (1, call("recvfrom", &[11, 0, 5000, 0, 0, 0], 0)),
            (1, call("close", &[11], 0)),
            (0, call("recvmsg", &[10, 0, 0], 0)),
            (0, Action::Wait(1)),
        ]),
        &place.0,
        Timing::Gap,
    );
    assert_eq!((report.calls, report.skipped, report.mismatches), (14, 0, 0), "{report:?}");
}

#[test]
fn sockets_that_another_could_reach_are_not_played() {
    const DATAGRAMS: u64 = 2;
    let place = Place::new();
    let report = play(
        &script(vec![
            (0, called("socketpair", &[1, DATAGRAMS, 0, 0], 0, Some((3, ENDS)))),
            (0, called("sendto", &[10, 0, 5, 0, 0, 0], 5, None)),
            (0, called("socket", &[2, 1, 0], 12, None)),
            (0, called("connect", &[12, 0, 16], 0, None)),
            (0, called("accept", &[12, 0, 0], 13, None)),
            (0, called("bind", &[12, 0, 16], 0, None)),
            (0, open("a", O_RDWR_CREAT, 3)),
            (0, called("recvfrom", &[3, 0, 5, 0, 0, 0], 5, None)),
        ]),
        &place.0,
        Timing::Gap,
    );
    assert_eq!((report.calls, report.skipped), (1, 7), "{report:?}");
}

const STREAM: u64 = 1;
const NONE: u64 = -1_i64 as u64;

fn call(name: &str, arguments: &[u64], result: i64) -> Action {
    called(name, arguments, result, None)
}

fn connect(descriptor: u64, connection: &str) -> Action {
    called("connect", &[descriptor, 0, 0], 0, Some((1, connection.as_bytes())))
}

fn accept(connection: &str, flags: u64, result: i64) -> Action {
    called("accept4", &[NONE, 0, 0, flags], result, Some((1, connection.as_bytes())))
}

/// A process with 7 asks a server for so many bytes, and reads until its end.
fn asked(thread: u32, connection: &str, bytes: u64, server: i64) -> Vec<(u32, Action)> {
    let (own, answer) = (server as u64, bytes + 1);
    vec![
        (thread, call("socket", &[1, STREAM, 0], 7)),
        (thread, connect(7, connection)),
        (thread, call("sendto", &[7, 0, bytes, 0, 0, 0], bytes as i64)),
        (0, accept(connection, 0o2004000, server)),
        (0, call("recvfrom", &[own, 0, 9000, 0, 0, 0], bytes as i64)),
        (0, call("write", &[own, 0, answer], answer as i64)),
        (thread, call("read", &[7, 0, 5000], answer as i64)),
        (0, call("close", &[own], 0)),
        (thread, call("read", &[7, 0, 5000], 0)),
        (thread, call("close", &[7], 0)),
    ]
}

#[test]
fn who_accepts_gets_the_connection_of_its_number_whoever_comes_first() {
    let place = Place::new();
    let forks = vec![(0, Action::Fork(1)), (0, Action::Fork(2)), (1, Action::Compute(5_000_000))];
    let waits = vec![(0, Action::Wait(1)), (0, Action::Wait(2))];
    let steps = [forks, asked(1, "one", 10, 4), asked(2, "two", 300, 4), waits];
    let report = play(&script(steps.concat()), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (20, 0, 0), "{report:?}");
}

#[test]
fn a_connection_that_is_made_late_is_waited_for() {
    const DELAY_S: f64 = 0.05;
    let place = Place::new();
    let late = vec![(0, Action::Fork(1)), (1, Action::Compute(50_000_000))];
    let steps = [late, asked(1, "one", 10, 4), vec![(0, Action::Wait(1))]];
    let report = play(&script(steps.concat()), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (10, 0, 0), "{report:?}");
    assert!(report.run_s > 0.9 * DELAY_S, "{report:?}");
}

#[test]
fn a_thread_that_accepts_what_it_has_connected_itself_does_not_wait() {
    let place = Place::new();
    let steps = vec![
        (0, call("socket", &[1, STREAM, 0], 7)),
        (0, connect(7, "own")),
        (0, call("write", &[7, 0, 10], 10)),
        (0, accept("own", 0, 8)),
        (0, call("read", &[8, 0, 100], 10)),
    ];
    let report = play(&script(steps), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (5, 0, 0), "{report:?}");
}

#[test]
fn a_fork_does_not_have_what_its_parent_has_not_accepted_yet() {
    let place = Place::new();
    let steps = vec![
        (0, Action::Fork(1)),
        (0, Action::Fork(2)),
        (1, Action::Compute(200_000_000)),
        (2, call("socket", &[1, STREAM, 0], 7)),
        (2, connect(7, "two")),
        (1, call("socket", &[1, STREAM, 0], 7)),
        (1, connect(7, "one")),
        (0, accept("one", 0, 4)),
        (0, Action::Fork(3)),
        (0, accept("two", 0, 5)),
        (0, call("close", &[5], 0)),
        // Not before all have closed the other end.
        (2, call("read", &[7, 0, 5000], 0)),
        (2, call("futex", &[1, 1, 1], 1)),
        (3, call("futex", &[1, 0, 2], 0)),
    ];
    let report = play(&script(steps), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped, report.mismatches), (10, 0, 0), "{report:?}");
}

#[test]
fn half_a_connection_is_not_played() {
    let place = Place::new();
    let steps =
        vec![(0, call("socket", &[1, STREAM, 0], 7)), (0, connect(7, "one")), (0, accept("two", 0, 8))];
    let report = play(&script(steps), &place.0, Timing::Gap);
    assert_eq!((report.calls, report.skipped), (1, 2), "{report:?}");
}
