//! A server whose service is a timed wait, so that what it bears can be computed (docs/howto/load.md).
//!
//! One thread keeps all sockets and all instants: workers are places in a [`Station`], not threads, because a thread that
//! sleeps does nothing that a place does not, and costs a switch more.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use etude_clock::{monotonic_ns, seconds};
use etude_launch::sys;
use serde_json::json;
use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use crate::http::message::{self, Request};
use crate::http::wire::{Filled, Wire};
use crate::known_server::mmc_queue::{Service, Station};
use crate::known_server::stalls::Stalls;
use crate::poller::{Poller, Token};
use crate::run::distribution::Services;

/// These are no keys of a connection: theirs have an odd upper half.
const LISTENER: Token = 0;
const SIGNALS: Token = 1;
const INPUT: Token = 2;

/// Input that is not understood, of one connection.
const MOST_INPUT_BYTES: usize = 2 << 20;

/// Somebody who asks.
struct Peer {
    wire: Wire,
    /// What it waits for, with or without a worker, and since when.
    asked: Option<(Request, u64)>,
}

/// What was done since the start.
#[derive(Default)]
struct Sums {
    served: u64,
    refused: u64,
    /// From the arrival to the instant at which the service was over, s.
    response_s: f64,
    /// From there to the answer, s.
    late_s: f64,
}

pub(crate) struct Server {
    poller: Poller,
    listener: TcpListener,
    signals: OwnedFd,
    peers: SlotMap<DefaultKey, Peer>,
    /// Its instants are of working time.
    station: Station<DefaultKey>,
    services: Services,
    stalls: Stalls,
    sums: Sums,
}

impl Server {
    /// # Errors
    /// No descriptors, or a kernel that is too old.
    pub fn new(
        listener: TcpListener,
        signals: OwnedFd,
        station: Station<DefaultKey>,
        services: Services,
        stalls: Stalls,
    ) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let poller = Poller::new()?;
        poller.watch(&listener, LISTENER)?;
        poller.watch(&signals, SIGNALS)?;
        let (peers, sums) = (SlotMap::new(), Sums::default());
        Ok(Server { poller, listener, signals, peers, station, services, stalls, sums })
    }

    /// The end of this input is the end of the server, too.
    ///
    /// # Errors
    /// It is a file, whose end is not waited for.
    pub fn end_with(&self, input: &impl AsFd) -> io::Result<()> {
        self.poller.watch(input, INPUT)
    }

    /// Serves until a signal, or the end of the input.
    ///
    /// # Errors
    /// No descriptor for a connection.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            let due_ns = self.station.due_ns().map(|due| self.stalls.clock_ns(due));
            for at in 0..self.poller.wait(due_ns)? {
                self.finish();
                match self.poller.token(at) {
                    LISTENER => self.accept()?,
                    SIGNALS if sys::take_signal(&self.signals).is_some() => return Ok(()),
                    SIGNALS => {}
                    INPUT if over(&io::stdin()) => return Ok(()),
                    INPUT => {}
                    peer => self.hear(KeyData::from_ffi(peer).into()),
                }
            }
            self.finish();
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let Ok(wire) = Wire::new(stream) else { continue };
            let key = self.peers.insert(Peer { wire, asked: None });
            self.poller.watch_edges(&self.peers[key].wire.stream, key.data().as_ffi())?;
        }
    }

    /// Something came from a peer, or it can be told more.
    fn hear(&mut self, key: DefaultKey) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let told = peer.wire.flush();
        let mut filled = told.and_then(|()| peer.wire.fill()).unwrap_or(Filled::Ended);
        if filled == Filled::Part && self.poller.tell_again(&peer.wire.stream, key.data().as_ffi()).is_err() {
            filled = Filled::Ended;
        }
        if filled == Filled::Ended || peer.wire.input.len() > MOST_INPUT_BYTES {
            self.part(key);
        } else {
            self.understand(key);
        }
    }

    /// Takes the requests that have come whole, one after the other.
    fn understand(&mut self, key: DefaultKey) {
        while let Some(peer) = self.peers.get_mut(key).filter(|peer| peer.asked.is_none()) {
            match message::request(&peer.wire.input) {
                Ok(None) => return,
                Ok(Some(asked)) => {
                    peer.wire.input.drain(..asked.bytes);
                    self.ask(key, asked);
                }
                Err(why) => {
                    let asked = Request { path: String::new(), head: false, keep: false, bytes: 0 };
                    self.tell(key, "400 Bad Request", &format!("{why}\n"), &asked);
                }
            }
        }
    }

    fn ask(&mut self, key: DefaultKey, asked: Request) {
        if asked.path == "/state" {
            let state = self.state();
            return self.tell(key, "200 OK", &state, &asked);
        }
        let service_ns = self.services.draw();
        let now = monotonic_ns();
        if self.station.arrive(self.stalls.worked_ns(now), key, service_ns) {
            self.peers[key].asked = Some((asked, now));
        } else {
            self.sums.refused += 1;
            self.tell(key, "503 Service Unavailable", "the queue is full\n", &asked);
        }
    }

    /// Answers all whose service is over.
    fn finish(&mut self) {
        while let Some(done) = self.station.finish(self.stalls.worked_ns(monotonic_ns())) {
            let Service { due_ns, id, .. } = done;
            let due_ns = self.stalls.clock_ns(due_ns);
            if let Some((asked, arrived_ns)) = self.peers.get_mut(id).and_then(|peer| peer.asked.take()) {
                self.tell(id, "200 OK", "served\n", &asked);
                self.sums.served += 1;
                self.sums.response_s += seconds(due_ns - arrived_ns);
                self.sums.late_s += seconds(monotonic_ns().saturating_sub(due_ns));
                self.understand(id);
            }
        }
    }

    fn tell(&mut self, key: DefaultKey, status: &str, body: &str, asked: &Request) {
        let sent = self.peers[key].wire.send(&message::answer(status, body, asked));
        if sent.is_err() || !asked.keep {
            self.part(key);
        }
    }

    fn part(&mut self, key: DefaultKey) {
        if self.peers.remove(key).is_some_and(|peer| peer.asked.is_some()) {
            self.station.forget(key);
        }
    }

    fn state(&self) -> String {
        let Sums { served, refused, response_s, late_s } = self.sums;
        let members = HashMap::from([
            ("waiting", json!(self.station.waiting())),
            ("busy", json!(self.station.busy())),
            ("served", json!(served)),
            ("refused", json!(refused)),
            ("response_s", json!(response_s)),
            ("late_s", json!(late_s)),
        ]);
        json!(members).to_string() + "\n"
    }
}

/// Whether an input that is ready has nothing but its end. What else comes is thrown away.
fn over(mut input: impl io::Read) -> bool {
    matches!(input.read(&mut [0; 4096]), Ok(0) | Err(_))
}
