//! A connection with servers that answer out of order, in pieces, too much, nothing, garbage, or go.

use std::net::TcpListener;

use super::*;
use crate::record::head;
use crate::reply::attributes;

/// The other end: what was called, as the server sees it.
struct Server {
    stream: TcpStream,
    records: Records,
}

fn pair() -> (Connection, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let who = Credentials::new(b"piano", 1, 2);
    let connection = Connection::begin(listener.local_addr().unwrap(), &who).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    (connection, Server { stream, records: Records::default() })
}

impl Server {
    /// The numbers of the next calls.
    fn numbers(&mut self, calls: usize) -> Vec<u32> {
        let mut found = Vec::new();
        while found.len() < calls {
            while let Some(record) = self.records.next_record().unwrap() {
                found.push(u32::from_be_bytes(*record.first_chunk().unwrap()));
            }
            if found.len() < calls {
                let bytes = self.stream.read(self.records.room(65536)).unwrap();
                self.records.came(bytes);
            }
        }
        found
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }
}

/// An answer to GETATTR of a file of that size.
fn answer(xid: u32, size: u64) -> Vec<u8> {
    let mut body: Vec<u8> =
        [xid, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
    body.extend_from_slice(&size.to_be_bytes());
    body.resize(body.len() + 56, 0);
    [&head(body.len())[..], &body].concat()
}

fn call(connection: &mut Connection, tag: u64) -> u32 {
    let object = crate::Handle::new(b"handle").unwrap();
    let xid = connection.call(tag, &Call::Getattr { object: &object });
    assert!(connection.flush().unwrap());
    xid
}

/// Receives until so many calls are over, or the connection is.
fn hear(connection: &mut Connection, calls: usize) -> (Vec<(u64, u64)>, Result<(), Failure>) {
    let mut found = Vec::new();
    loop {
        let done = connection.receive(|tag, body| {
            found.push((tag, body.and_then(attributes).map_or(0, |attributes| attributes.bytes)));
        });
        if done.is_err() || found.len() >= calls {
            return (found, done);
        }
        std::thread::yield_now();
    }
}

#[test]
fn answers_in_any_order_find_their_calls() {
    let (mut connection, mut server) = pair();
    for tag in 0..5 {
        call(&mut connection, tag);
    }
    let numbers = server.numbers(5);
    let order = [3, 0, 4, 2, 1];
    let all: Vec<u8> = order.iter().flat_map(|at| answer(numbers[*at], *at as u64 + 100)).collect();
    server.say(&all);
    let (found, done) = hear(&mut connection, 5);
    assert_eq!(found, order.map(|at| (at as u64, at as u64 + 100)));
    assert_eq!((done, connection.under_way(), connection.calls.len()), (Ok(()), 0, 0));
}

#[test]
fn an_answer_may_be_cut_anywhere() {
    let (mut connection, mut server) = pair();
    for cut in 0..=answer(0, 0).len() {
        call(&mut connection, cut as u64);
        let number = server.numbers(1)[0];
        let bytes = answer(number, 7);
        server.say(&bytes[..cut]);
        let before = if cut < bytes.len() { hear(&mut connection, 0).0 } else { Vec::new() };
        server.say(&bytes[cut..]);
        let (after, done) = hear(&mut connection, 1);
        assert_eq!((before.len(), after, done), (0, vec![(cut as u64, 7)], Ok(())));
    }
}

#[test]
fn a_late_answer_to_a_call_that_was_given_up_is_thrown_away() {
    let (mut connection, mut server) = pair();
    let first = call(&mut connection, 1);
    connection.give_up(first);
    connection.give_up(first);
    call(&mut connection, 2);
    assert_eq!(connection.under_way(), 1);
    let numbers = server.numbers(2);
    server.say(&[answer(numbers[0], 5), answer(numbers[1], 6)].concat());
    assert_eq!(hear(&mut connection, 1), (vec![(2, 6)], Ok(())));
    // Only as many as were given up: the next such answer is to no call.
    server.say(&answer(numbers[0], 5));
    assert_eq!(hear(&mut connection, 1).1, Err(Failure::Malformed("it answers no call")));
}

#[test]
fn garbage_ends_the_connection_and_tells_what_is_left() {
    for (bytes, wrong) in [
        (answer(0, 1), "it answers no call"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "a record is longer than 2 MiB"),
        ([&head(3)[..], &[1, 2, 3]].concat(), "it is too short"),
        ([&head(8)[..], &[0; 8]].concat(), "it is no answer"),
    ] {
        let (mut connection, mut server) = pair();
        connection.first = 77;
        call(&mut connection, 8);
        call(&mut connection, 9);
        server.numbers(2);
        server.say(&bytes);
        assert_eq!(hear(&mut connection, 1), (Vec::new(), Err(Failure::Malformed(wrong))));
        assert_eq!(connection.left().collect::<Vec<_>>(), [8, 9]);
    }
}

#[test]
fn a_server_that_goes_leaves_calls_that_are_not_over() {
    let (mut connection, mut server) = pair();
    call(&mut connection, 1);
    call(&mut connection, 2);
    let numbers = server.numbers(2);
    server.say(&answer(numbers[1], 3));
    drop(server);
    let (found, done) = hear(&mut connection, 2);
    assert_eq!((found, done), (vec![(2, 3)], Err(Failure::Closed)));
    assert_eq!(connection.left().collect::<Vec<_>>(), [1]);
}

#[test]
fn where_nobody_listens_there_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let who = Credentials::new(b"piano", 1, 2);
    let refused = Connection::begin(address, &who).map(|mut connection| hear(&mut connection, 1).1);
    assert!(matches!(refused, Err(_) | Ok(Err(Failure::Connect))));
}

#[test]
fn numbers_go_round_at_their_end() {
    let (mut connection, mut server) = pair();
    connection.first = u32::MAX - 1;
    for tag in 0..4 {
        call(&mut connection, tag);
    }
    let numbers = server.numbers(4);
    assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 0, 1]);
    server.say(&numbers.iter().rev().flat_map(|number| answer(*number, 1)).collect::<Vec<u8>>());
    assert_eq!(hear(&mut connection, 4).0.len(), 4);
}
