//! Unix sockets that a program connected by a name: which `accept` took which `connect`.
//!
//! The kernel hands connections of a listener over in the order in which they came. Where calls overlap that order is not in a
//! trace, and the bytes say more: nobody has read what the other end had not begun to write by then.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use etude_calls::Address;
use etude_fsmodel::flags::AT_FDCWD;
use etude_trace::{Event, Text};

use crate::from_trace::Walk;
use crate::from_trace::calls::called;
use crate::from_trace::pipes::{COPIED, Kept, OTHERS, Pipes, Unfit, makes_streams};
use crate::from_trace::stream::Survey;
use crate::from_trace::tables::{Behind, Opening};
use crate::from_trace::tree::{Node, Path};
use crate::model::Called;

const SOCKET: &str = "socket";

/// Calls that overlap so far are looked at for what belongs together.
const AHEAD: usize = 64;

/// Who is connected to whom, as a walk before has found: by the first stream of an end, the number of its connection.
pub(crate) type Pairs = HashMap<u32, u32>;

/// Sockets with names. Each is known by the first of its streams.
#[derive(Default)]
pub(crate) struct Sockets {
    pub pairs: Pairs,
    /// Those that were bound: by the file, and by the name that is in no file system.
    files: HashMap<Node, u32>,
    names: HashMap<Vec<u8>, u32>,
    /// The connections that came to each bound socket.
    queues: HashMap<u32, Queue>,
    /// Those that were connected, to whatever it was.
    connected: HashSet<u32>,
}

#[derive(Default)]
struct Queue {
    connects: Vec<Came>,
    accepts: Vec<Came>,
}

/// A call that went well, and the end that it made.
#[derive(Clone, Copy)]
struct Came {
    end: u32,
    from_ns: u64,
    until_ns: u64,
}

impl Came {
    fn of(end: u32, event: &Event) -> Came {
        Came { end, from_ns: event.start_ns, until_ns: event.end_ns() }
    }
}

impl Sockets {
    /// All connections between recorded processes that can be played, and why other ends cannot.
    pub fn judged(&self, pipes: &Pipes, survey: &Survey, kept: Kept) -> (Unfit, Pairs) {
        let (mut unfit, mut pairs, mut number) = (Unfit::new(), Pairs::new(), 0);
        for end in pipes.ends() {
            unfit.insert(end, if self.connected.contains(&end) { OTHERS[1] } else { SOCKET });
        }
        let mut queues: Vec<_> = self.queues.iter().collect();
        queues.sort_unstable_by_key(|(listener, _)| **listener);
        for (one, other) in queues.into_iter().flat_map(|(_, queue)| queue.matched(pipes)) {
            match pipes.why_not(one, other, survey).filter(|_| kept != Kept::All) {
                Some(why) => unfit.extend([(one, why), (other, why)]),
                None => {
                    number += 1;
                    for end in [one, other] {
                        unfit.remove(&end);
                        pairs.insert(end, number);
                    }
                }
            }
        }
        (unfit, pairs)
    }
}

impl Queue {
    /// The ends that belong together, that of the `connect` first.
    fn matched(&self, pipes: &Pipes) -> Vec<(u32, u32)> {
        // Others than recorded processes have connected, too: which of them was whose is not known.
        if self.accepts.len() > self.connects.len() {
            return Vec::new();
        }
        let by_end = |calls: &[Came]| {
            let mut calls = calls.to_vec();
            calls.sort_by_key(|call| call.until_ns);
            calls
        };
        let accepts = by_end(&self.accepts);
        let mut waiting = VecDeque::from(by_end(&self.connects));
        let (mut pairs, mut unmatched) = (Vec::new(), 0);
        for (at, accept) in accepts.iter().enumerate() {
            let others = accepts[at + 1..].iter().take(AHEAD);
            let overlap = others.filter(|other| other.from_ns < accept.until_ns).count();
            let passed_over = |call: &Came| {
                waiting.iter().take(AHEAD).filter(|other| other.until_ns < call.from_ns).count()
            };
            let may_be = |call: &Came| {
                call.from_ns <= accept.until_ns
                    && passed_over(call) <= overlap + unmatched
                    && pipes.fit(call.end, accept.end)
            };
            let possible = || (0..waiting.len().min(AHEAD)).filter(|place| may_be(&waiting[*place]));
            let exact = possible().find(|place| pipes.fit_exactly(waiting[*place].end, accept.end));
            match exact.or_else(|| possible().next()).and_then(|place| waiting.remove(place)) {
                Some(connect) => pairs.push((connect.end, accept.end)),
                None => unmatched += 1,
            }
        }
        pairs
    }
}

impl Walk<'_> {
    /// A call that makes, names or connects a socket; None for all others.
    pub(crate) fn socket(&mut self, process: u32, event: &Event) -> Option<Result<Called, &'static str>> {
        Some(match event.call.name() {
            "socket" => self.makes_socket(process, event),
            "accept" | "accept4" => self.accepts(process, event),
            "connect" => self.connects(process, event).ok_or(SOCKET),
            "bind" => {
                self.binds(process, event);
                Err(SOCKET)
            }
            _ => return None,
        })
    }

    fn makes_socket(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        if event.result < 0 || !makes_streams(event) || self.options.pipes == Kept::None {
            return Err(SOCKET);
        }
        let mut made = called(event, &[]);
        made.arguments[2] = 0; // for these another protocol is none
        self.has_end(process, event)?;
        Ok(made)
    }

    /// Notes every socket that is accepted: those of listeners that are not replayed have a number, too.
    fn accepts(&mut self, process: u32, event: &Event) -> Result<Called, &'static str> {
        if event.result < 0 || self.options.pipes == Kept::None {
            return Err(SOCKET);
        }
        let listener = self.socket_of(process, event.arguments[0] as i32);
        let end = self.has_end(process, event)?;
        if let Some(listener) = listener {
            self.sockets.connected.insert(end);
            let queue = self.sockets.queues.entry(listener).or_default();
            queue.accepts.push(Came::of(end, event));
        }
        const NONE: u64 = -1_i64 as u64; // the listener is not replayed
        Ok(self
            .joins(end, Called { arguments: [NONE, 0, 0, event.arguments[3], 0, 0], ..called(event, &[]) }))
    }

    fn connects(&mut self, process: u32, event: &Event) -> Option<Called> {
        let address = event.text(1).filter(|_| event.result == 0).cloned()?;
        let end = self.socket_of(process, event.arguments[0] as i32)?;
        let listener = match Address::of(&address)? {
            Address::Abstract(name) => self.sockets.names.get(name),
            Address::Path(path) => {
                let path = self.socket_path(process, path, true)?;
                self.tree.at(&path).and_then(|node| self.sockets.files.get(&node))
            }
        };
        let listener = listener.copied();
        self.sockets.connected.insert(end);
        if let Some(listener) = listener {
            let queue = self.sockets.queues.entry(listener).or_default();
            queue.connects.push(Came::of(end, event));
        }
        let opening = self.tables.get(process, event.arguments[0] as i32)?;
        if Rc::strong_count(opening) > 1 {
            self.pipes.refuse(end, COPIED);
        }
        self.sockets.pairs.contains_key(&end).then(|| {
            self.joins(end, Called { arguments: [event.arguments[0], 0, 0, 0, 0, 0], ..called(event, &[]) })
        })
    }

    /// With the number of the connection in place of an address.
    fn joins(&self, end: u32, made: Called) -> Called {
        let number = self.sockets.pairs.get(&end).copied().unwrap_or(0);
        let text = Text { argument: 1, bytes: number.to_string().into_bytes().into() };
        Called { texts: [text].into_iter().collect(), ..made }
    }

    fn binds(&mut self, process: u32, event: &Event) {
        if event.result != 0 {
            return;
        }
        let own = self.socket_of(process, event.arguments[0] as i32);
        match event.text(1).cloned().as_deref().and_then(Address::of) {
            Some(Address::Abstract(name)) => {
                self.sockets.names.extend(own.map(|own| (name.to_vec(), own)));
            }
            Some(Address::Path(path)) => {
                let Some(path) = self.socket_path(process, path, false) else { return };
                if self.tree.at(&path).is_none() {
                    self.places_socket(&path);
                }
                let node = self.tree.at(&path);
                self.sockets.files.extend(node.zip(own));
            }
            // Perhaps to a name: what stands there then no other call has made.
            None => self.bound += 1,
        }
    }

    fn socket_path(&mut self, process: u32, path: &[u8], follows: bool) -> Option<Path> {
        let (base, text) = self.begins(process, AT_FDCWD, &path.into(), follows).ok()?;
        Some(self.tree.resolve(&base, &text, follows))
    }

    /// The first stream of a socket that may be connected.
    fn socket_of(&self, process: u32, descriptor: i32) -> Option<u32> {
        match self.tables.get(process, descriptor)?.behind {
            Behind::Pipe(Some(end)) => self.pipes.is_end(end.reads).then_some(end.reads),
            _ => None,
        }
    }

    /// A new one stands behind the descriptor that a call has made.
    fn has_end(&mut self, process: u32, event: &Event) -> Result<u32, &'static str> {
        let (first, end) = self.pipes.end()?;
        let opening = Rc::new(Opening::new(Behind::Pipe(Some(end)), None, None));
        self.tables.apply(process, event, &[opening]);
        Ok(first)
    }
}
