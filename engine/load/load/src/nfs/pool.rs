//! Several connections to one server: a call goes to that with the fewest under way. One that ends is made anew.

use std::io;
use std::net::SocketAddr;

use etude_clock::{SECOND, monotonic_ns};
use etude_nfs::{Call, Connection, Credentials, Failure};

use crate::poller::Poller;

/// Between attempts to connect: doubled each time, up to a second, so that a server that is away is not stormed.
const FIRST_PAUSE_NS: u64 = SECOND / 100;
const LONGEST_PAUSE_NS: u64 = SECOND;

/// Where a call is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    lane: usize,
    xid: u32,
}

/// A connection, or the time until the next attempt at one.
#[derive(Default)]
struct Lane {
    connection: Option<Connection>,
    /// Something has still to be sent.
    unsent: bool,
    /// Whether the poller tells of room.
    room: bool,
    again_ns: u64,
    pause_ns: u64,
}

pub(crate) struct Pool {
    address: SocketAddr,
    who: Credentials,
    poller: Poller,
    lanes: Vec<Lane>,
    /// Where the search for a connection begins: ties take turns.
    turn: usize,
}

/// Told of each call that is over: whose it is, and the body of its answer.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(u64, Result<&[u8], Failure>);

impl Pool {
    /// Begins to connect.
    ///
    /// # Errors
    /// No descriptors, or a kernel that is too old.
    pub fn new(address: SocketAddr, who: Credentials, connections: usize) -> io::Result<Pool> {
        let lanes = (0..connections.max(1)).map(|_| Lane::default()).collect();
        let mut pool = Pool { address, who, poller: Poller::new()?, lanes, turn: 0 };
        pool.connect(monotonic_ns());
        Ok(pool)
    }

    pub fn connections(&self) -> usize {
        self.lanes.len()
    }

    /// Keeps a call for the next [`Pool::listen`]; None: there is no connection.
    pub fn call(&mut self, tag: u64, call: &Call<'_>) -> Option<Place> {
        self.turn = (self.turn + 1) % self.lanes.len();
        let (before, from) = self.lanes.split_at(self.turn);
        let lanes = from.iter().chain(before).enumerate();
        let open = lanes.filter_map(|(at, lane)| Some((lane.connection.as_ref()?.under_way(), at)));
        let (_, at) = open.min()?;
        let lane = (self.turn + at) % self.lanes.len();
        let found = &mut self.lanes[lane];
        let xid = found.connection.as_mut()?.call(tag, call);
        found.unsent = true;
        Some(Place { lane, xid })
    }

    /// Its answer, if it comes, is thrown away.
    pub fn give_up(&mut self, place: Place) {
        if let Some(connection) = self.lanes[place.lane].connection.as_mut() {
            connection.give_up(place.xid);
        }
    }

    /// Sends what was called; waits until something is over or that instant, and tells of it.
    ///
    /// # Errors
    /// The machine's.
    pub fn listen(&mut self, until_ns: u64, tell: Tell<'_>) -> io::Result<()> {
        let now = monotonic_ns();
        let told = self.send(tell);
        self.connect(now);
        let again =
            self.lanes.iter().filter(|lane| lane.connection.is_none()).map(|lane| lane.again_ns).min();
        // What failed while it was sent is not to wait.
        let until_ns = if told { now } else { until_ns.min(again.unwrap_or(u64::MAX)) };
        for at in 0..self.poller.wait(Some(until_ns))? {
            self.hear(self.poller.token(at) as usize, tell);
        }
        Ok(())
    }

    /// Whether something was told.
    fn send(&mut self, tell: Tell<'_>) -> bool {
        let mut told = false;
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].unsent {
                told |= self.flush(lane, tell);
            }
        }
        told
    }

    /// Whether the connection was lost.
    fn flush(&mut self, at: usize, tell: Tell<'_>) -> bool {
        let lane = &mut self.lanes[at];
        let Some(connection) = lane.connection.as_mut() else { return false };
        let sent = match connection.flush() {
            Ok(sent) => sent,
            Err(_) => {
                // What was answered before it ended stands in the socket still.
                let why = if connection.answered { Failure::Closed } else { Failure::Connect };
                let _ = connection.receive(&mut *tell);
                self.lose(at, &why, tell);
                return true;
            }
        };
        lane.unsent = !sent;
        if lane.room == sent && self.poller.watch_room(connection, at as u64, !sent).is_ok() {
            lane.room = !sent;
        }
        false
    }

    fn hear(&mut self, at: usize, tell: Tell<'_>) {
        if self.lanes[at].room && self.flush(at, tell) {
            return;
        }
        let lane = &mut self.lanes[at];
        let Some(connection) = lane.connection.as_mut() else { return };
        let heard = connection.receive(&mut *tell);
        if connection.answered {
            lane.pause_ns = 0;
        }
        if let Err(why) = heard {
            self.lose(at, &why, tell);
        }
    }

    /// Nothing more comes from it: what is under way there has failed.
    fn lose(&mut self, at: usize, why: &Failure, tell: Tell<'_>) {
        let lane = &mut self.lanes[at];
        let Some(connection) = lane.connection.take() else { return };
        lane.again_ns = monotonic_ns() + lane.pause_ns;
        lane.pause_ns = (2 * lane.pause_ns).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
        lane.unsent = false;
        connection.left().for_each(|tag| tell(tag, Err(why.clone())));
    }

    /// Begins anew where it is time to.
    fn connect(&mut self, now_ns: u64) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lane.connection.is_some() || lane.again_ns > now_ns {
                continue;
            }
            let made = Connection::begin(self.address, &self.who).and_then(|made| {
                self.poller.watch(&made, at as u64)?;
                self.poller.watch_room(&made, at as u64, true)?;
                Ok(made)
            });
            lane.connection = made.ok();
            lane.room = true;
            if lane.connection.is_none() {
                lane.pause_ns = (2 * lane.pause_ns).clamp(FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
                lane.again_ns = now_ns + lane.pause_ns;
            }
        }
    }
}
