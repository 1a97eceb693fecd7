//! What a load is offered to: something that takes requests, and says later what became of them.

use std::io;

/// A request under way, by a number that is never used twice.
pub(crate) type Ticket = u64;

/// Why a request has no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection.
    Connect,
    /// The connection ended before the answer did.
    Closed,
    /// An answer that says that it failed: of HTTP another status than 2xx or 3xx; else its name: NFS3ERR_NOSPC, ENOSPC.
    Status(&'static str),
    /// An answer that is none.
    Malformed,
    /// Not within its time.
    Timeout,
}

/// A request that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub ticket: Ticket,
    /// CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    /// Which of the target's kinds of request (`Target::kinds`) it was.
    pub kind: usize,
    pub result: Result<(), Failure>,
}

/// Whatever answers requests that are sent without waiting. It draws by itself what each request is (the next of its stream).
pub(crate) trait Target {
    /// Names of its kinds of request, for `by` in windows; one name alone means that `by` is left out.
    fn kinds(&self) -> &[&'static str];
    /// Sends the next request of the stream, of that ticket. What fails at once is among the ended of the next `listen`.
    ///
    /// # Errors
    /// Only what ends the run: the machine's fault, not the server's.
    fn send(&mut self, ticket: Ticket) -> io::Result<()>;
    /// Waits until something has ended, or that instant (CLOCK_MONOTONIC, ns; a past one: only looks); appends what has.
    ///
    /// # Errors
    /// Only what ends the run.
    fn listen(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> io::Result<()>;
    /// Nobody waits for that one any more: its answer, if it comes, is thrown away and is not among the ended.
    fn give_up(&mut self, ticket: Ticket);
}
