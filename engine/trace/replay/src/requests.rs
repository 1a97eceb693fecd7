//! Requests that are handed over now and done later: by the interface that the program used, else by threads.
//!
//! A queue is made when the first request for it comes. `ring.rs`, `context.rs` and `pool.rs` are what takes requests.

mod context;
mod pool;
mod ring;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use etude_calls::{Call, Interface, Moves};

use crate::clock::now_ns;
use crate::pages::{PAGE, Pages};

/// Queues of a process; a program has one or a few a thread.
const MOST_QUEUES: usize = 256;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Read,
    Write,
    Fsync,
    Fdatasync,
}

/// A request as it is handed over. Its memory lives as long as its queue.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    pub id: u64,
    pub deed: Deed,
    pub fd: RawFd,
    pub at: u64,
    pub length: u32,
    /// -1: the position of the file.
    pub offset: i64,
    pub flags: Flags,
}

/// Flags of a request, as a trace has them (`IOSQE_*`, `IOCB_*`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    /// It begins when all before it are done, and none behind it before it is.
    pub fn drains(self) -> bool {
        self.0 & 2 != 0
    }

    /// The next one begins when it is done; if it fails, that does, too, unless the link is a hard one.
    pub fn links(self) -> bool {
        self.0 & (4 | 8) != 0
    }

    pub fn links_hard(self) -> bool {
        self.0 & 8 != 0
    }

    /// RWF_DSYNC, RWF_SYNC.
    pub fn of_transfer(self) -> i32 {
        (self.0 >> 8) as i32 & 6
    }
}

/// What takes requests. `submit` and `take` are called by one thread at a time, and `wait` by one beside it.
trait Taker: Send + Sync {
    /// Takes them in their order. What cannot be taken is done, with its error. If `waits`, a `wait` follows at once,
    /// which may do it.
    fn submit(&self, those: &[Ready], done: &mut Vec<Done>, waits: bool);
    /// What is done.
    fn take(&self, done: &mut Vec<Done>);
    /// Waits until so many are done that nobody has taken, at most for `LONGEST_WAIT`; they may be taken at once.
    fn wait(&self, many: usize, done: &mut Vec<Done>);
}

/// What was done while another thread looked is found after this.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// A request that is done, by its number here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Done {
    id: u64,
    result: i64,
}

/// Where a request stands in the roll, and when it was due: what its thread needs to know when it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub thread: usize,
    pub step: u64,
    pub due: i64,
    pub late: u64,
}

/// A request and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    pub call: Call,
    pub place: Place,
    pub expected: i64,
    pub result: i64,
    /// `CLOCK_MONOTONIC`, ns: when it was handed over, and when it was found done.
    pub begun: i64,
    pub ended: i64,
}

/// A request of a roll.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub call: Call,
    pub place: Place,
    pub expected: i64,
    /// What its completion is known by.
    pub number: u64,
}

/// A request that nobody has taken.
struct Open {
    asked: Asked,
    /// When it was handed over.
    begun: i64,
    /// Its result, and when it was found done.
    done: Option<(i64, i64)>,
    /// A thread is about to take it, or waits for it.
    awaited: bool,
}

#[derive(Default)]
struct State {
    /// Not handed over yet.
    told: Vec<Ready>,
    /// By `Ready::id`.
    open: Vec<Option<Open>>,
    free: Vec<u64>,
    /// The id of the last one of each `Asked::number`.
    numbers: HashMap<u64, u64>,
    /// Handed over, and not known to be done.
    under_way: usize,
    /// Done, and not taken.
    done: usize,
    /// A thread waits in the kernel; others wait for it.
    waits: bool,
}

/// A ring or a context.
pub struct Queue {
    taker: Box<dyn Taker>,
    by_threads: bool,
    state: Mutex<State>,
    bell: Condvar,
    /// Where reads go, and what writes take.
    room: Pages,
    _data: Arc<Pages>,
}

impl Queue {
    /// `largest`: bytes of the longest transfer.
    fn new(interface: Interface, largest: usize, data: Arc<Pages>) -> std::io::Result<Queue> {
        let own: std::io::Result<Box<dyn Taker>> = match interface {
            Interface::Uring => ring::Ring::new().map(|ring| Box::new(ring) as _),
            Interface::Aio => context::Context::new().map(|context| Box::new(context) as _),
        };
        let by_threads = own.is_err();
        Queue::of(own.unwrap_or_else(|_| Box::new(pool::Pool::default())), by_threads, largest, data)
    }

    fn of(
        taker: Box<dyn Taker>,
        by_threads: bool,
        largest: usize,
        data: Arc<Pages>,
    ) -> std::io::Result<Queue> {
        let state = State::default();
        let room = Pages::new(largest.max(PAGE))?;
        Ok(Queue { taker, by_threads, state: state.into(), bell: Condvar::new(), room, _data: data })
    }

    /// Where a read of at most so many bytes goes.
    pub fn room(&self, length: usize) -> Option<u64> {
        (length <= self.room.length).then_some(self.room.at as u64)
    }

    /// Notes a request; the next call that hands over takes it along.
    pub fn ask(&self, asked: Asked, ready: Ready) {
        let mut state = self.lock();
        let id = state.free.pop().unwrap_or(state.open.len() as u64);
        state.numbers.insert(asked.number, id);
        let open = Some(Open { asked, begun: 0, done: None, awaited: false });
        match state.open.get_mut(id as usize) {
            Some(place) => *place = open,
            None => state.open.push(open),
        }
        state.told.push(Ready { id, ..ready });
    }

    /// Hands over what was noted, and waits until `many` are done that nobody has taken, or all are.
    pub fn hand_over(&self, many: usize) {
        let mut state = self.lock();
        let first = many.saturating_sub(state.done).min(state.under_way + state.told.len());
        let alone = first > 0 && !state.waits;
        self.submit(&mut state, alone);
        if alone {
            state = self.wait(state, first);
        }
        drop(self.until(state, |state| state.done >= many));
    }

    /// Takes a request that is done, or waits for it. None: there is none of that number.
    pub fn take(&self, number: u64) -> Option<Finished> {
        let mut state = self.lock();
        let id = state.numbers.remove(&number)?;
        // Those that no call has handed over.
        if state.told.iter().any(|ready| ready.id == id) {
            self.submit(&mut state, false);
        }
        if let Some(open) = &mut state.open[id as usize] {
            open.awaited = true;
        }
        if state.reads(id) {
            // A program takes what is done: another read may have been quicker here.
            let mut state = self.until(state, |state| state.is_done(id) || state.done_read().is_some());
            if !state.is_done(id)
                && let Some(other) = state.done_read()
            {
                state.swap(id, other);
                return state.take(other);
            }
            return state.take(id);
        }
        self.until(state, |state| state.is_done(id)).take(id)
    }

    /// All that is left, when it is done.
    pub fn finish(&self) -> Vec<Finished> {
        let mut state = self.lock();
        self.submit(&mut state, false);
        let mut state = self.until(state, |_| false);
        (0..state.open.len() as u64).filter_map(|id| state.take(id)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics")
    }

    fn submit(&self, state: &mut State, waits: bool) {
        let those = std::mem::take(&mut state.told);
        if those.is_empty() {
            return;
        }
        let begun = now_ns();
        for ready in &those {
            if let Some(open) = &mut state.open[ready.id as usize] {
                open.begun = begun;
            }
        }
        state.under_way += those.len();
        let mut done = Vec::new();
        self.taker.submit(&those, &mut done, waits);
        state.ended(&done);
    }

    /// Looks and waits, until enough is done or nothing is under way.
    fn until<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        enough: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        loop {
            let mut done = Vec::new();
            // Whoever waits finds what is done; nobody takes it away meanwhile.
            if !state.waits {
                self.taker.take(&mut done);
                state.ended(&done);
            }
            if enough(&state) || state.under_way == 0 {
                return state;
            }
            if state.waits {
                state = self.bell.wait(state).expect("no thread panics");
                continue;
            }
            state = self.wait(state, 1);
        }
    }

    /// Waits in the kernel, while others may hand over.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>, many: usize) -> MutexGuard<'a, State> {
        state.waits = true;
        drop(state);
        let mut done = Vec::new();
        self.taker.wait(many, &mut done);
        state = self.lock();
        state.waits = false;
        state.ended(&done);
        self.bell.notify_all();
        state
    }
}

impl State {
    fn is_done(&self, id: u64) -> bool {
        matches!(&self.open[id as usize], Some(Open { done: Some(_), .. }))
    }

    fn ended(&mut self, those: &[Done]) {
        if those.is_empty() {
            return;
        }
        let now = now_ns();
        for each in those {
            if let Some(Some(open)) = self.open.get_mut(each.id as usize)
                && open.done.replace((each.result, now)).is_none()
            {
                self.under_way -= 1;
                self.done += 1;
            }
        }
    }

    fn reads(&self, id: u64) -> bool {
        matches!(&self.open[id as usize], Some(open) if open.asked.call.row().moves == Moves::Reads)
    }

    /// A read that is done, and that nobody waits for.
    fn done_read(&self) -> Option<u64> {
        if self.done == 0 {
            return None;
        }
        let found = |open: &Option<Open>| {
            open.as_ref().is_some_and(|open| {
                open.done.is_some() && !open.awaited && open.asked.call.row().moves == Moves::Reads
            })
        };
        self.open.iter().position(found).map(|id| id as u64)
    }

    /// What the one is known by the other is now.
    fn swap(&mut self, taken: u64, other: u64) {
        let number = self.open[other as usize].as_ref().map(|open| open.asked.number);
        if let (Some(open), Some(number)) = (&mut self.open[taken as usize], number) {
            (open.asked.number, open.awaited) = (number, false);
            self.numbers.insert(number, taken);
        }
    }

    /// One that is done.
    fn take(&mut self, id: u64) -> Option<Finished> {
        let place = &mut self.open[id as usize];
        let Open { asked: Asked { call, place, expected, .. }, begun, done: Some((result, ended)), .. } =
            place.take_if(|open| open.done.is_some())?
        else {
            return None;
        };
        self.done -= 1;
        self.free.push(id);
        Some(Finished { call, place, expected, result, begun, ended })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // The kernel may still fill its memory.
        self.finish();
    }
}

/// Those of a process.
#[derive(Default)]
pub struct Queues(Mutex<HashMap<(Interface, u64), Arc<Queue>>>);

impl Queues {
    /// A queue that has had requests.
    pub fn known(&self, interface: Interface, number: u64) -> Option<Arc<Queue>> {
        self.0.lock().expect("no thread panics").get(&(interface, number)).cloned()
    }

    /// A queue, made where it is not there; None where it cannot be.
    pub fn get(
        &self,
        interface: Interface,
        number: u64,
        largest: usize,
        data: &Arc<Pages>,
    ) -> Option<Arc<Queue>> {
        let mut queues = self.0.lock().expect("no thread panics");
        if let Some(queue) = queues.get(&(interface, number)) {
            return Some(queue.clone());
        }
        if queues.len() >= MOST_QUEUES {
            return None;
        }
        let queue = Arc::new(Queue::new(interface, largest, data.clone()).ok()?);
        queues.insert((interface, number), queue.clone());
        Some(queue)
    }

    /// Whether threads have to do what an interface of the kernel is not there for.
    pub fn by_threads(&self) -> bool {
        self.0.lock().expect("no thread panics").values().any(|queue| queue.by_threads)
    }

    /// What nobody has taken, when it is done.
    pub fn finish(&self) -> Vec<Finished> {
        let queues: Vec<_> =
            self.0.lock().expect("no thread panics").drain().map(|(_, queue)| queue).collect();
        queues.iter().flat_map(|queue| queue.finish()).collect()
    }
}
