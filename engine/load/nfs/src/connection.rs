//! Many calls under way on one connection that never blocks.
//!
//! What is called is kept until [`Connection::flush`], so that all that are due at once leave with one system call.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use crate::call::Call;
use crate::failure::Failure;
use crate::record::Records;
use crate::rpc::{Credentials, result_of, xid_of};
use crate::socket;

/// What one read takes at most; about what a socket holds.
const READ_BYTES: usize = 256 << 10;
/// Reads at a time: others wait.
const READS: usize = 16;

pub struct Connection {
    stream: TcpStream,
    who: Credentials,
    output: Vec<u8>,
    /// Of `output`.
    sent: usize,
    records: Records,
    /// The number of the first of `calls`; the others follow.
    first: u32,
    /// Whose call each is; None: it is over.
    calls: VecDeque<Option<u64>>,
    under_way: usize,
    /// Calls that nobody waits for, and whose answers may still come.
    given_up: u64,
    /// Something came: it is a server.
    pub answered: bool,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    /// Begins to connect. Calls can be made at once; whether somebody is there shows when they are sent.
    ///
    /// # Errors
    /// There is no way there, or no socket.
    pub fn begin(address: SocketAddr, who: &Credentials) -> io::Result<Connection> {
        Ok(Connection {
            stream: socket::begin(address)?,
            who: who.clone(),
            output: Vec::new(),
            sent: 0,
            records: Records::default(),
            // Servers remember answers by number: those of an earlier run must not be taken for these.
            first: first_xid(),
            calls: VecDeque::new(),
            under_way: 0,
            given_up: 0,
            answered: false,
        })
    }

    /// Keeps a call for [`Connection::flush`]; its number, for [`Connection::give_up`].
    pub fn call(&mut self, tag: u64, call: &Call<'_>) -> u32 {
        let xid = self.first.wrapping_add(self.calls.len() as u32);
        call.put(&mut self.output, xid, &self.who);
        self.calls.push_back(Some(tag));
        self.under_way += 1;
        xid
    }

    /// Nobody waits for it any more: its answer will be thrown away.
    pub fn give_up(&mut self, xid: u32) {
        if self.take(xid).is_some() {
            self.given_up += 1;
        }
    }

    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Sends what goes at once; whether that is all.
    ///
    /// # Errors
    /// The connection is over, or could not be made.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Takes what has come, and tells of each call that is over with it: whose it is, and the body of its answer.
    ///
    /// # Errors
    /// The connection is of no use any more: why. Calls that are not over are [`Connection::left`].
    pub fn receive(&mut self, mut tell: impl FnMut(u64, Result<&[u8], Failure>)) -> Result<(), Failure> {
        for _ in 0..READS {
            let room = self.records.room(READ_BYTES);
            let (wanted, found) = (room.len(), self.stream.read(room));
            let bytes = match found {
                Ok(0) => return Err(Failure::Closed),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Err(if self.answered { Failure::Closed } else { Failure::Connect }),
            };
            self.answered = true;
            self.records.came(bytes);
            self.read_records(&mut tell)?;
            if bytes < wanted {
                return Ok(());
            }
        }
        Ok(())
    }

    fn read_records(&mut self, tell: &mut impl FnMut(u64, Result<&[u8], Failure>)) -> Result<(), Failure> {
        // The record is lent by `records`: what else is needed must not be all of `self`.
        let Connection { records, first, calls, under_way, given_up, .. } = self;
        while let Some(record) = records.next_record()? {
            match taken(first, calls, xid_of(record)?) {
                Some(tag) => {
                    *under_way -= 1;
                    tell(tag, result_of(record));
                }
                None if *given_up > 0 => *given_up -= 1,
                None => return Err(Failure::Malformed("it answers no call")),
            }
        }
        Ok(())
    }

    fn take(&mut self, xid: u32) -> Option<u64> {
        let tag = taken(&mut self.first, &mut self.calls, xid)?;
        self.under_way -= 1;
        Some(tag)
    }

    /// Whose calls are not over.
    pub fn left(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().copied().flatten()
    }
}

/// The call of that number is over; those that are, at the front, are forgotten.
fn taken(first: &mut u32, calls: &mut VecDeque<Option<u64>>, xid: u32) -> Option<u64> {
    let tag = calls.get_mut(xid.wrapping_sub(*first) as usize)?.take()?;
    while let Some(None) = calls.front() {
        calls.pop_front();
        *first = first.wrapping_add(1);
    }
    Some(tag)
}

/// Differs between runs and connections.
pub(crate) fn first_xid() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    // Random per process, and another value each time.
    RandomState::new().hash_one(etude_clock::realtime_ns()) as u32
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
