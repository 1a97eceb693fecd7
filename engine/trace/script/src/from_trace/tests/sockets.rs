use super::*;
use crate::from_trace::Kept;

const STREAM: u64 = 1;
const S: &[u8] = b"\x01\x00s\x00";
const SAME: &[u8] = b"\x01\x00/w/x/../s";
const ABSTRACT: &[u8] = b"\x01\x00\x00s";
const OTHERS: &str = "pair of sockets from or to what is not recorded";

/// A server (thread 0) that listens with 3, and clients: (thread, name, from, until, arguments, result, address).
type Call<'a> = (u32, &'a str, u64, u64, &'a [u64], i64, &'a [u8]);

fn events(address: &[u8], calls: &[Call]) -> Vec<(u32, Event)> {
    let listens = [
        (0, event("socket", (1, 2), &[1, STREAM, 0], 3, &[])),
        (0, event("bind", (3, 4), &[3, 99, 110], 0, &[(1, address)])),
    ];
    let call = |(thread, name, from, until, arguments, result, address): &Call| {
        let texts: &[(u8, &[u8])] = if address.is_empty() { &[] } else { &[(1, address)] };
        (*thread, event(name, (*from, *until), arguments, *result, texts))
    };
    listens.into_iter().chain(calls.iter().map(call)).collect()
}

/// The server and three clients, threads 1 to 3.
fn processes() -> Vec<Meta> {
    let client = |number: u32| [process(number, Some(0), 5), thread(number, number, 100 + number, 5)];
    one().into_iter().chain((1..4).flat_map(client)).collect()
}

/// The steps that are calls, without what is about the name of the socket; why others are dropped.
fn played(address: &[u8], calls: &[Call], pipes: Kept) -> (Vec<String>, BTreeSet<&'static str>) {
    let options = Options { pipes, keep_names: true, ..Options::default() };
    let (script, report) = made(&processes(), &events(address, calls), &options);
    let steps = lines(&script).into_iter().filter(|line| line.contains(") = ") && !line.contains("mknodat"));
    (steps.collect(), report.dropped.keys().map(|(_, why)| *why).collect())
}

/// A client with 7 asks for 10 bytes and gets 20; the server has it as 4.
fn one_client<'a>(address: &'a [u8]) -> Vec<Call<'a>> {
    vec![
        (1, "socket", 10, 11, &[1, STREAM, 0], 7, b""),
        (1, "connect", 20, 22, &[7, 99, 110], 0, address),
        (0, "accept4", 15, 25, &[3, 0, 0, 0], 4, b""),
        (1, "sendto", 30, 31, &[7, 0, 10], 10, b""),
        (0, "recvfrom", 28, 35, &[4, 0, 99], 10, b""),
        (0, "sendto", 40, 41, &[4, 0, 20], 20, b""),
        (1, "read", 38, 45, &[7, 0, 99], 20, b""),
        (1, "close", 50, 51, &[7], 0, b""),
        (0, "read", 48, 55, &[4, 0, 99], 0, b""),
        (0, "close", 60, 61, &[4], 0, b""),
    ]
}

#[test]
fn a_connection_by_name_is_played_where_all_that_was_read_was_written() {
    for (bound, connected) in [(S, S), (S, SAME), (ABSTRACT, ABSTRACT)] {
        let (steps, why) = played(bound, &one_client(connected), Kept::Whole);
        let begins = [
            "1: socket(AF_UNIX, SOCK_STREAM, 0) = 7",
            "1: connect(7, \"1\", 0) = 0",
            "0: accept4(-1, \"1\", 0) = 4",
        ];
        assert_eq!((&steps[..3], steps.len()), (&begins.map(String::from)[..], 10), "{steps:?}");
        assert_eq!(why, BTreeSet::from(["socket"]), "what is about the listener");
    }
    assert_eq!(played(S, &one_client(S), Kept::None), (vec![], BTreeSet::from(["socket"])));
}

#[test]
fn a_connection_from_or_to_another_is_not_played() {
    let why = BTreeSet::from([OTHERS, "socket"]);
    assert_eq!(played(S, &one_client(ABSTRACT), Kept::Whole), (vec![], why.clone()), "another name");
    assert_eq!(played(S, &one_client(S)[..2], Kept::Whole), (vec![], why.clone()), "nobody accepts");
    let mut more = one_client(S);
    more[4].5 = 11;
    assert_eq!(played(S, &more, Kept::Whole), (vec![], why.clone()), "more than was written");
    assert_eq!(played(S, &more, Kept::All).0.len(), 0, "nobody else can have been it");
    let mut early = one_client(S);
    (early[4].2, early[4].3) = (26, 29);
    assert_eq!(played(S, &early, Kept::Whole), (vec![], why.clone()), "before it was written");
    let stranger: Call = (0, "accept4", 8, 9, &[3, 0, 0, 0], 5, b"");
    let all = [&[stranger][..], &one_client(S)].concat();
    assert_eq!(played(S, &all, Kept::Whole), (vec![], why), "somebody else has connected, too");
    let old = played(S, &one_client(b""), Kept::Whole);
    assert_eq!(old, (vec![], BTreeSet::from([OTHERS, "socket"])), "a trace without addresses");
    let datagrams = one_client(S).into_iter().map(|call| match call.1 {
        "socket" => (call.0, call.1, call.2, call.3, &[1_u64, 2, 0][..], call.5, call.6),
        _ => call,
    });
    let datagrams: Vec<_> = datagrams.collect();
    assert_eq!(played(S, &datagrams, Kept::Whole).0.len(), 0);
}

/// Clients that connect at such times and write so many bytes; the server accepts at such times and reads so many. The
/// connection that each accepted socket gets, by its number, 0 for none.
fn who(connects: &[(u64, u64, i64)], accepts: &[(u64, u64, i64)]) -> Vec<u32> {
    let mut all: Vec<(u32, Event)> = Vec::new();
    for ((thread, (from, until, bytes)), descriptor) in (1..).zip(connects).zip(20..) {
        all.extend([
            (thread, event("socket", (10, 11), &[1, STREAM, 0], descriptor, &[])),
            (thread, event("connect", (*from, *until), &[descriptor as u64, 9, 110], 0, &[(1, S)])),
            (thread, event("write", (until + 100, until + 101), &[descriptor as u64, 0, 99], *bytes, &[])),
        ]);
    }
    for ((from, until, bytes), descriptor) in accepts.iter().zip(4..) {
        let number = descriptor as u64;
        all.push((0, event("accept", (*from, *until), &[3, 0, 0], descriptor, &[])));
        all.push((0, event("read", (500 + 10 * number, 501 + 10 * number), &[number, 0, 99], *bytes, &[])));
    }
    let all = [events(S, &[]), all].concat();
    let (script, _) = made(&processes(), &all, &Options::default());
    let labels = |name: &str| -> Vec<(u32, i64, String)> {
        let mut found = Vec::new();
        for step in &script.steps {
            if let Action::Call(called) = &step.action
                && called.call.name() == name
            {
                let label = String::from_utf8_lossy(called.text(1).unwrap()).into_owned();
                found.push((step.thread, called.result, label));
            }
        }
        found
    };
    let clients = labels("connect");
    let client = |label: &String| clients.iter().find(|client| client.2 == *label).unwrap().0;
    let accepted = labels("accept");
    let of = |descriptor: i64| accepted.iter().find(|accept| accept.1 == descriptor);
    (0..).zip(accepts).map(|(at, _)| of(4 + at).map_or(0, |(_, _, label)| client(label))).collect()
}

#[test]
fn who_is_connected_to_whom_follows_from_the_order_and_from_the_bytes_where_calls_overlap() {
    let accepts = |one, other| [(40, 50, one), (60, 70, other)];
    assert_eq!(who(&[(20, 22, 5), (24, 26, 5)], &accepts(5, 5)), [1, 2], "in turn");
    assert_eq!(who(&[(24, 26, 5), (20, 22, 5)], &accepts(5, 5)), [2, 1]);
    assert_eq!(who(&[(20, 26, 7), (22, 28, 5)], &accepts(5, 7)), [2, 1], "at once: by bytes");
    assert_eq!(who(&[(20, 22, 7), (24, 26, 5)], &accepts(5, 7)), [1, 0], "not against the order");
    assert_eq!(who(&[(20, 22, 5), (55, 56, 7)], &[(40, 62, 7), (40, 63, 5)]), [2, 1], "two who accept");
    assert_eq!(
        who(&[(20, 22, 5), (24, 26, 7), (28, 29, 9)], &accepts(5, 7)),
        [1, 2],
        "one is never accepted"
    );
}
