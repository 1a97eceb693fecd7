use super::*;
use crate::from_trace::Kept;

const ENDS: &[u8] = &[3, 0, 0, 0, 4, 0, 0, 0];
const EPIPE: i64 = -32;
const EAGAIN: i64 = -11;

/// A program that makes a pipe, and what it does with it: (name, descriptor, result), one after the other.
fn uses(calls: &[(&str, u64, i64)]) -> Vec<(u32, Event)> {
    let pipe = (0, event("pipe2", (10, 11), &[0, 0], 0, &[(0, ENDS)]));
    let call = |(place, (name, descriptor, result)): (u64, &(&str, u64, i64))| {
        let at = 20 + 10 * place;
        (0, event(name, (at, at + 1), &[*descriptor, 0, 1 << 20], *result, &[]))
    };
    std::iter::once(pipe).chain((0..).zip(calls).map(call)).collect()
}

/// How many calls are steps, and why others are not.
fn kept(calls: &[(&str, u64, i64)], pipes: Kept, more: &[Meta]) -> (usize, BTreeSet<&'static str>) {
    let (metas, options) = ([&one()[..], more].concat(), Options { pipes, ..Options::default() });
    let (script, report) = made(&metas, &uses(calls), &options);
    let calls = script.steps.iter().filter(|step| matches!(step.action, Action::Call(_))).count();
    (calls, report.dropped.keys().map(|(_, why)| *why).collect())
}

#[test]
fn a_pipe_is_played_where_all_that_was_read_was_written() {
    let calls = [("write", 4, 100), ("read", 3, 60), ("read", 3, 40), ("close", 4, 0), ("read", 3, 0)];
    assert_eq!(kept(&calls, Kept::Whole, &[]), (6, BTreeSet::new()));
    assert_eq!(kept(&calls, Kept::None, &[]), (0, BTreeSet::from(["pipe"])));
    let from_elsewhere = [("write", 4, 100), ("read", 3, 101)];
    let others = BTreeSet::from(["pipe from or to what is not recorded"]);
    assert_eq!(kept(&from_elsewhere, Kept::Whole, &[]), (0, others.clone()));
    assert_eq!(kept(&from_elsewhere, Kept::All, &[]), (3, BTreeSet::new()));
    // More than a pipe holds: somebody has read it.
    assert_eq!(kept(&[("write", 4, 65537)], Kept::Whole, &[]), (0, others));
}

#[test]
fn what_is_left_in_a_pipe_may_be_others_where_not_all_is_recorded() {
    let left = [("write", 4, 100), ("read", 3, 60), ("close", 3, 0), ("write", 4, EPIPE)];
    assert_eq!(kept(&left, Kept::Whole, &[]).0, 5);
    let unrecorded = Meta::Unrecorded { process: 7, why: "it is another user's".into() };
    assert_eq!(kept(&left, Kept::Whole, std::slice::from_ref(&unrecorded)).0, 0);
    assert_eq!(kept(&[("write", 4, 100), ("read", 3, 100)], Kept::Whole, &[unrecorded]).0, 3);
}

#[test]
fn a_look_at_a_pipe_that_found_nothing_is_left_out_alone() {
    let why = BTreeSet::from(["pipe or socket that was looked at, and not waited for"]);
    let calls = [("read", 3, EAGAIN), ("write", 4, 10), ("write", 4, EAGAIN), ("read", 3, 10)];
    for pipes in [Kept::Whole, Kept::All] {
        assert_eq!(kept(&calls, pipes, &[]), (3, why.clone()));
    }
}

/// The same of a pair of Unix sockets of a type, with (name, arguments, result).
fn kept_sockets(kind: u64, calls: &[(&str, &[u64], i64)]) -> (usize, BTreeSet<&'static str>) {
    let pair = (0, event("socketpair", (10, 11), &[1, kind, 0, 0], 0, &[(3, ENDS)]));
    let call = |(place, (name, arguments, result)): (u64, &(&str, &[u64], i64))| {
        (0, event(name, (20 + 10 * place, 21 + 10 * place), arguments, *result, &[]))
    };
    let events: Vec<_> = std::iter::once(pair).chain((0..).zip(calls).map(call)).collect();
    let (script, report) = made(&one(), &events, &Options::default());
    let calls = script.steps.iter().filter(|step| matches!(step.action, Action::Call(_))).count();
    (calls, report.dropped.keys().map(|(_, why)| *why).collect())
}

const STREAM: u64 = 1;
const PEEK: u64 = 2;
const DONTWAIT: u64 = 0x40;

#[test]
fn a_pair_of_sockets_is_played_where_all_that_was_read_at_an_end_was_written_at_the_other() {
    let both: [(&str, &[u64], i64); 8] = [
        ("sendto", &[3, 0, 100, 0, 0, 0], 100),
        ("recvfrom", &[4, 0, 500, DONTWAIT, 0, 0], 100),
        ("sendmsg", &[4, 0, 0], 70),
        ("recvmsg", &[3, 0, DONTWAIT], 70),
        ("write", &[4, 0, 5], 5),
        ("readv", &[3, 0, 2], 5),
        ("shutdown", &[3, 1], 0),
        ("read", &[4, 0, 10], 0),
    ];
    assert_eq!(kept_sockets(STREAM, &both), (9, BTreeSet::new()));
    let look: (&str, &[u64], i64) = ("recvfrom", &[3, 0, 10, DONTWAIT, 0, 0], EAGAIN);
    let why = BTreeSet::from(["pipe or socket that was looked at, and not waited for"]);
    assert_eq!(kept_sockets(STREAM, &[look, both[0], both[1]]), (3, why));
    let others = BTreeSet::from(["pair of sockets from or to what is not recorded"]);
    let own: (&str, &[u64], i64) = ("read", &[3, 0, 100], 100);
    assert_eq!(kept_sockets(STREAM, &[both[0], own]), (0, others), "what an end wrote is not read there");
}

#[test]
fn a_pair_of_sockets_in_calls_that_are_not_understood_is_not_played() {
    let written: (&str, &[u64], i64) = ("write", &[3, 0, 100], 100);
    let read: (&str, &[u64], i64) = ("read", &[4, 0, 100], 100);
    let otherwise = BTreeSet::from(["pair of sockets in calls that are not replayed"]);
    let calls: [(&str, &[u64], i64); 3] = [
        ("recvfrom", &[4, 0, 100, PEEK, 0, 0], 100),
        ("write", &[3, 0, 10], -104),
        ("sendfile", &[3, 4, 0, 10], 10),
    ];
    for call in calls {
        assert_eq!(kept_sockets(STREAM, &[written, call, read]), (0, otherwise.clone()), "{call:?}");
    }
    assert_eq!(kept_sockets(2, &[written, read]), (0, BTreeSet::from(["socket"])), "datagrams");
}

#[test]
fn a_pair_of_sockets_is_not_played_where_a_descriptor_may_have_come_through_it() {
    let calls: [(&str, &[u64], i64); 3] =
        [("sendmsg", &[3, 0, 0], 1), ("recvmsg", &[4, 0, 0], 1), ("write", &[9, 0, 10], 10)];
    let why = [
        "descriptor that is not known, or was there before",
        "pair of sockets that descriptors may have come through",
    ];
    assert_eq!(kept_sockets(STREAM, &calls), (0, BTreeSet::from(why)));
}

#[test]
fn a_pipe_that_several_threads_read_in_turns_is_not_played() {
    let reads =
        |reads: &[(u32, u64, u64)]| {
            let mut events = uses(&[("write", 4, 30)]);
            events.extend(reads.iter().map(|(reader, from, until)| {
                (*reader, event("read", (*from, *until), &[3, 0, 10], 10, &[]))
            }));
            let threads = [&one()[..], &[thread(1, 0, 101, 5)]].concat();
            let (_, report) = made(&threads, &events, &Options::default());
            report.dropped.keys().map(|(_, why)| *why).collect::<BTreeSet<_>>()
        };
    let several = BTreeSet::from(["pipe that several threads read in turns"]);
    assert_eq!(reads(&[(0, 40, 41), (1, 50, 51), (1, 60, 61)]), BTreeSet::new(), "one after the other");
    assert_eq!(reads(&[(0, 40, 41), (1, 50, 51), (0, 60, 61)]), several);
    assert_eq!(reads(&[(0, 40, 55), (1, 50, 60)]), several, "at once");
}

#[test]
fn a_pipe_in_calls_that_are_not_played_is_not_either() {
    let events = [
        (0, event("pipe2", (10, 11), &[0, 0], 0, &[(0, ENDS)])),
        (0, event("write", (20, 21), &[4, 0, 10], 10, &[])),
        (0, event("vmsplice", (30, 31), &[4, 0, 1, 0], 10, &[])),
        (0, event("read", (40, 41), &[3, 0, 10], 10, &[])),
    ];
    let (script, _) = made(&one(), &events, &Options::default());
    assert_eq!(lines(&script).iter().filter(|line| !line.starts_with("compute")).count(), 0);
}

#[test]
fn one_pipe_is_played_and_another_is_not() {
    let other: &[u8] = &[5, 0, 0, 0, 6, 0, 0, 0];
    let mut events = uses(&[("write", 4, 5), ("read", 3, 6)]);
    events.push((0, event("pipe2", (100, 101), &[0, 0], 0, &[(0, other)])));
    events.push((0, event("write", (110, 111), &[6, 0, 7], 7, &[])));
    events.push((0, event("read", (120, 121), &[5, 0, 7], 7, &[])));
    let (script, report) = made(&one(), &events, &Options::default());
    let shown: Vec<String> = lines(&script).into_iter().filter(|line| !line.starts_with("compute")).collect();
    assert_eq!(shown, ["pipe2([5, 6], 0) = 0", "write(6, 7) = 7", "read(5, 7) = 7"]);
    assert_eq!(report.dropped.values().map(|dropped| dropped.calls).sum::<u64>(), 3);
}

#[test]
fn a_flag_that_ioctl_sets_is_set_by_fcntl() {
    const FIOCLEX: u64 = 0x5451;
    let mut events = uses(&[]);
    events.push((0, event("ioctl", (50, 51), &[4, FIOCLEX, 0], 0, &[])));
    let (script, report) = made(&one(), &events, &Options::default());
    assert!(lines(&script).contains(&"fcntl(4, F_SETFD, 1) = 0".to_owned()), "{:?}", lines(&script));
    assert_eq!(report.replaced.values().sum::<u64>(), 1);
}

#[test]
fn of_what_the_kernel_makes_up_as_much_is_read_as_was() {
    let events = [
        (0, event("openat", (10, 11), &[CWD, 0, 0], 3, &[(1, b"/proc/meminfo")])),
        (0, event("read", (20, 21), &[3, 0, 8192], 4072, &[])),
        (0, event("read", (30, 31), &[3, 0, 8192], 525, &[])),
        (0, event("read", (40, 41), &[3, 0, 8192], 0, &[])),
    ];
    let (script, _) = made(&one(), &events, &Options::default());
    let reads: Vec<String> = lines(&script).into_iter().filter(|line| line.starts_with("read")).collect();
    assert_eq!(reads, ["read(3, 4072) = 4072", "read(3, 525) = 525", "read(3, 8192) = 0"]);
}
