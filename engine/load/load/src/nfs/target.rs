//! NFS as a target: the operations of a stream, each sent when it is due unless its object is being made or removed.

use std::collections::HashMap;
use std::io;

use etude_clock::monotonic_ns;
use etude_nfs::{Failure as Wrong, Handle, answers};
use etude_workload::{Kind, Object, Operation, Stream};

use crate::file_set::gate::{Gate, renamed};
use crate::file_set::incompressible_data::Pieces;
use crate::nfs::objects::Objects;
use crate::nfs::operation_calls::{Asked, Found, Limits, ask, find, read};
use crate::nfs::pool::{Place, Pool};
use crate::nfs::populate::Prepared;
use crate::run::target::{Ended, Failure, Target, Ticket};

/// Where a request stands.
enum State {
    /// Its object is another's turn.
    Held,
    /// The handle of that is looked up first.
    Finding(Place, Object),
    Asked(Place),
}

struct Request {
    operation: Operation,
    state: State,
}

pub(crate) struct NfsTarget {
    stream: Stream,
    pool: Pool,
    work: Work,
    kinds: Vec<&'static str>,
    _mounted: etude_nfs::Mounted,
}

/// All but the connections: an answer is taken while they are read.
struct Work {
    objects: Objects,
    data: Pieces,
    limits: Limits,
    gate: Gate<Ticket>,
    requests: HashMap<Ticket, Request>,
    /// Over, and not told yet.
    ended: Vec<Ended>,
    /// To be asked (again) now.
    ready: Vec<Ticket>,
}

impl NfsTarget {
    pub fn new(prepared: Prepared, stream: Stream) -> NfsTarget {
        let Prepared { objects, pool, data, limits, mounted } = prepared;
        let gate = Gate::new(objects.population.numbers.len());
        let requests = HashMap::new();
        let work = Work { objects, data, limits, gate, requests, ended: Vec::new(), ready: Vec::new() };
        let kinds = Kind::ALL.map(Kind::name).to_vec();
        NfsTarget { stream, pool, work, kinds, _mounted: mounted }
    }
}

impl Target for NfsTarget {
    fn kinds(&self) -> &[&'static str] {
        &self.kinds
    }

    fn send(&mut self, ticket: Ticket) -> io::Result<()> {
        let operation = self.stream.next();
        let claim = self.work.objects.population.numbers.claim(&operation);
        self.work.requests.insert(ticket, Request { operation, state: State::Held });
        if let Some(ticket) = self.work.gate.admit(ticket, claim, ticket) {
            self.work.dispatch(&mut self.pool, ticket);
        }
        Ok(())
    }

    fn listen(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> io::Result<()> {
        let until_ns = if self.work.ended.is_empty() { until_ns } else { 0 };
        let mut at_ns = 0;
        let NfsTarget { pool, work, .. } = self;
        pool.listen(until_ns, &mut |ticket, body| {
            // Once for all that came together: they were there before the first of them is looked at.
            at_ns = if at_ns == 0 { monotonic_ns() } else { at_ns };
            work.answered(ticket, body, at_ns);
        })?;
        work.dispatch_ready(pool);
        ended.append(&mut work.ended);
        Ok(())
    }

    fn give_up(&mut self, ticket: Ticket) {
        let Some(request) = self.work.requests.remove(&ticket) else { return };
        match request.state {
            State::Held => {
                let Work { gate, ready, .. } = &mut self.work;
                gate.leave(ticket, |freed| ready.push(freed));
            }
            State::Finding(place, _) | State::Asked(place) => {
                self.pool.give_up(place);
                self.work.forget(&request.operation);
                self.work.release(&request.operation);
            }
        }
        self.work.dispatch_ready(&mut self.pool);
    }
}

impl Work {
    fn dispatch_ready(&mut self, pool: &mut Pool) {
        while !self.ready.is_empty() {
            // What fails at once makes others ready.
            for ticket in std::mem::take(&mut self.ready) {
                self.dispatch(pool, ticket);
            }
        }
    }

    fn dispatch(&mut self, pool: &mut Pool, ticket: Ticket) {
        let Some(Request { operation, .. }) = self.requests.get(&ticket) else { return };
        let operation = *operation;
        let asked = ask(pool, &self.objects, &mut self.data, self.limits, ticket, &operation);
        let state = match asked {
            Asked::At(place) => State::Asked(place),
            Asked::Away => return self.over(ticket, Err(Failure::Connect), monotonic_ns()),
            Asked::Needs(object) => match find(pool, &self.objects, ticket, object) {
                Some(place) => State::Finding(place, object),
                // Its directory is not known either: one that could not be made.
                None => return self.over(ticket, Err(Failure::Status("NFS3ERR_NOENT")), monotonic_ns()),
            },
        };
        if let Some(request) = self.requests.get_mut(&ticket) {
            request.state = state;
        }
    }

    fn answered(&mut self, ticket: Ticket, body: Result<&[u8], Wrong>, at_ns: u64) {
        let Some(Request { operation, state }) = self.requests.get(&ticket) else { return };
        let operation = *operation;
        if let State::Finding(_, object) = *state {
            match body.and_then(answers::looked_up) {
                Ok((handle, _)) => {
                    self.objects.know(object, Some(handle));
                    self.ready.push(ticket);
                }
                Err(wrong) => self.over(ticket, Err(failure(&wrong)), at_ns),
            }
            return;
        }
        match body.and_then(|body| read(&operation, self.limits, body)) {
            Ok(found) => {
                self.learn(&operation, found);
                self.over(ticket, Ok(()), at_ns);
            }
            Err(wrong) => {
                if operation.ordered || stale(&wrong) {
                    self.forget(&operation);
                }
                self.over(ticket, Err(failure(&wrong)), at_ns);
            }
        }
    }

    /// Where things are after an operation that has gone well.
    fn learn(&mut self, operation: &Operation, found: Found) {
        match operation.kind {
            Kind::Create | Kind::Mkdir | Kind::Symlink => self.objects.know(operation.object, found),
            Kind::Lookup if found.is_some() => self.objects.know(operation.object, found),
            Kind::Remove | Kind::Rmdir => self.objects.know(operation.object, None),
            Kind::Rename => {
                let handle: Option<Handle> = self.objects.handle(operation.object);
                self.objects.know(operation.object, None);
                self.objects.know(renamed(operation), handle);
            }
            _ => {}
        }
    }

    /// Whether and where its object is, nobody knows: the next operation looks. The set's own directories stay.
    fn forget(&mut self, operation: &Operation) {
        let fixed = matches!(operation.object, Object::Directory(index) if index < self.objects.population.set.directories());
        if !fixed {
            self.objects.know(operation.object, None);
        }
        if operation.kind == Kind::Rename {
            self.objects.know(renamed(operation), None);
        }
    }

    fn over(&mut self, ticket: Ticket, result: Result<(), Failure>, at_ns: u64) {
        let Some(request) = self.requests.remove(&ticket) else { return };
        self.release(&request.operation);
        self.ended.push(Ended { ticket, at_ns, kind: request.operation.kind.index(), result });
    }

    fn release(&mut self, operation: &Operation) {
        let claim = self.objects.population.numbers.claim(operation);
        self.gate.end(claim, |freed| self.ready.push(freed));
    }
}

/// The server does not know the handle any more.
fn stale(wrong: &Wrong) -> bool {
    matches!(wrong, Wrong::Status("NFS3ERR_STALE" | "NFS3ERR_BADHANDLE"))
}

fn failure(wrong: &Wrong) -> Failure {
    match wrong {
        Wrong::Connect => Failure::Connect,
        Wrong::Closed => Failure::Closed,
        Wrong::Status(name) => Failure::Status(name),
        Wrong::Malformed(_) => Failure::Malformed,
        Wrong::Timeout => Failure::Timeout,
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
