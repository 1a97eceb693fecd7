//! HTTP as a target: a request has a connection to itself until its answer is whole; connections are kept and used again.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpStream};

use etude_clock::monotonic_ns;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use socket2::{Domain, Protocol, Socket, Type};

use crate::http::message::Answer;
use crate::http::wire::{Filled, Wire};
use crate::poller::Poller;
use crate::run::target::{Ended, Failure, Target, Ticket};

struct Connection {
    wire: Wire,
    asked: Option<Asked>,
}

/// A request that was sent.
struct Asked {
    ticket: Ticket,
    answer: Answer,
}

pub(crate) struct Http {
    address: SocketAddr,
    /// As it is sent.
    request: Vec<u8>,
    poller: Poller,
    connections: SlotMap<DefaultKey, Connection>,
    /// Without a request; the last used first. Some have ended meanwhile.
    idle: Vec<DefaultKey>,
    asked: HashMap<Ticket, DefaultKey>,
    /// Not told yet.
    ended: Vec<Ended>,
}

impl Http {
    /// # Errors
    /// No descriptors, or a kernel that is too old.
    pub fn new(address: SocketAddr, request: Vec<u8>) -> io::Result<Http> {
        Ok(Http {
            address,
            request,
            poller: Poller::new()?,
            connections: SlotMap::new(),
            idle: Vec::new(),
            asked: HashMap::new(),
            ended: Vec::new(),
        })
    }

    /// A connection that is already there.
    ///
    /// # Errors
    /// The socket refuses.
    pub fn take(&mut self, stream: TcpStream) -> io::Result<()> {
        let key = self.keep(Wire::new(stream)?)?;
        self.idle.push(key);
        Ok(())
    }

    /// An idle one, or a new one.
    fn connection(&mut self) -> io::Result<DefaultKey> {
        while let Some(key) = self.idle.pop() {
            if self.connections.contains_key(key) {
                return Ok(key);
            }
        }
        let address = self.address;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => self.keep(Wire::new(socket.into())?),
        }
    }

    fn keep(&mut self, wire: Wire) -> io::Result<DefaultKey> {
        let key = self.connections.insert(Connection { wire, asked: None });
        self.poller.watch_edges(&self.connections[key].wire.stream, key.data().as_ffi())?;
        Ok(key)
    }

    /// Something came, or there is room.
    fn hear(&mut self, key: DefaultKey) {
        let Some(Connection { wire, asked }) = self.connections.get_mut(key) else { return };
        let mut filled = wire.flush().and_then(|()| wire.fill());
        let Some(request) = asked else {
            // An idle connection has nothing to say but its end.
            if !matches!(filled, Ok(Filled::All)) || !wire.input.is_empty() {
                self.connections.remove(key);
            }
            return;
        };
        let whole = request.answer.feed(&mut wire.input);
        if matches!((&whole, &filled), (Ok(true), Ok(Filled::Part))) {
            filled = wire.fill();
        }
        match (whole, filled) {
            (Err(_), _) => self.lose(key, Failure::Malformed),
            (Ok(true), filled) => self.answered(key, matches!(filled, Ok(Filled::All))),
            (Ok(false), Ok(Filled::Ended)) if request.answer.closed() => self.answered(key, false),
            (Ok(false), Ok(Filled::Ended)) => self.lose(key, Failure::Closed),
            (Ok(false), Err(error)) => self.lose(key, broken(&error)),
            (Ok(false), Ok(Filled::All)) => {}
            (Ok(false), Ok(Filled::Part)) => {
                if let Err(error) = self.poller.tell_again(&wire.stream, key.data().as_ffi()) {
                    self.lose(key, broken(&error));
                }
            }
        }
    }

    /// `open`: the connection is.
    fn answered(&mut self, key: DefaultKey, open: bool) {
        let connection = &mut self.connections[key];
        let Some(Asked { ticket, answer }) = connection.asked.take() else { return };
        if answer.keep && open && connection.wire.input.is_empty() {
            self.idle.push(key);
        } else {
            self.connections.remove(key);
        }
        let good = (200..400).contains(&answer.status);
        self.end(ticket, if good { Ok(()) } else { Err(Failure::Status(name(answer.status))) });
    }

    /// A request's connection is of no use any more.
    fn lose(&mut self, key: DefaultKey, why: Failure) {
        if let Some(asked) = self.connections.remove(key).and_then(|connection| connection.asked) {
            self.end(asked.ticket, Err(why));
        }
    }

    fn end(&mut self, ticket: Ticket, result: Result<(), Failure>) {
        self.asked.remove(&ticket);
        self.ended.push(Ended { ticket, at_ns: monotonic_ns(), kind: 0, result });
    }
}

impl Target for Http {
    fn kinds(&self) -> &[&'static str] {
        &["get"]
    }

    fn send(&mut self, ticket: Ticket) -> io::Result<()> {
        let Ok(key) = self.connection() else {
            self.end(ticket, Err(Failure::Connect));
            return Ok(());
        };
        self.asked.insert(ticket, key);
        let connection = &mut self.connections[key];
        connection.asked = Some(Asked { ticket, answer: Answer::new() });
        if let Err(error) = connection.wire.send(&self.request) {
            self.lose(key, broken(&error));
        }
        Ok(())
    }

    fn listen(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> io::Result<()> {
        let until_ns = if self.ended.is_empty() { until_ns } else { 0 };
        for at in 0..self.poller.wait(Some(until_ns))? {
            self.hear(KeyData::from_ffi(self.poller.token(at)).into());
        }
        ended.append(&mut self.ended);
        Ok(())
    }

    fn give_up(&mut self, ticket: Ticket) {
        if let Some(key) = self.asked.remove(&ticket) {
            self.connections.remove(key);
        }
        self.ended.retain(|ended| ended.ticket != ticket);
    }
}

fn broken(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(
            libc::ECONNREFUSED | libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENOTCONN,
        ) => Failure::Connect,
        _ => Failure::Closed,
    }
}

/// Of a status that says that it failed (RFC 9110, section 15); those that no list knows, by their class.
fn name(status: u16) -> &'static str {
    const KNOWN: [(u16, &str); 22] = [
        (400, "400"),
        (401, "401"),
        (403, "403"),
        (404, "404"),
        (405, "405"),
        (406, "406"),
        (408, "408"),
        (409, "409"),
        (410, "410"),
        (413, "413"),
        (414, "414"),
        (415, "415"),
        (421, "421"),
        (429, "429"),
        (431, "431"),
        (500, "500"),
        (501, "501"),
        (502, "502"),
        (503, "503"),
        (504, "504"),
        (505, "505"),
        (507, "507"),
    ];
    match KNOWN.iter().find(|(code, _)| *code == status) {
        Some((_, name)) => name,
        None if (400..500).contains(&status) => "4xx",
        None if (500..600).contains(&status) => "5xx",
        None => "other",
    }
}
