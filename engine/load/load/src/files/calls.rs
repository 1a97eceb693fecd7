//! Load by system calls: threads that make them, and one that watches (`state.rs` says who does what).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

use etude_clock::monotonic_ns;
use etude_launch::sys;
use etude_options::Failed;
use etude_workload::{Kind, Stream};

use crate::exit::machine;
use crate::file_set::gate::Numbers;
use crate::files::call::{Caller, Place};
use crate::files::leader_follower::Thread;
use crate::files::state::{State, Step};
use crate::files::wait::Waiter;
use crate::report::summary::Summary;
use crate::report::tally::Tally;
use crate::run::plan::{Plan, Wait};
use crate::run::run_loop::{Closed, Generator, Signals};

/// How often the watcher looks while calls are made: with what counts as overstaying, lateness after a stall is 1 ms at most.
const LOOK_NS: u64 = 700_000;

/// Threads need little: requests' buffers are not on the stack.
const STACK_BYTES: usize = 256 << 10;

/// What threads and watcher share.
struct Shared {
    state: Mutex<State>,
    place: Arc<Place>,
    wait: Wait,
    /// Nothing is waited for any more.
    stop: AtomicBool,
    seats: RwLock<Vec<Arc<Seat>>>,
    bell: OwnedFd,
}

/// Where a thread sleeps that has nothing to do.
struct Seat {
    woken: AtomicBool,
    thread: Mutex<Option<thread::Thread>>,
}

impl Seat {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }

    fn sleep(&self) {
        while !self.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, thread: Thread) {
        let seats = self.seats.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.get(thread) {
            seat.wake();
        }
    }

    fn ring(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes that live through the call; a full counter rings, too.
        unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// One thread's run.
    fn work(&self, number: Thread, seat: &Seat) {
        let mut caller = Caller::new(self.place.clone(), number as u64);
        let mut waiter = Waiter::new(self.wait);
        let mut ended = None;
        let mut now_ns = monotonic_ns();
        loop {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(_) => {
                    let state = self.lock();
                    now_ns = monotonic_ns();
                    state
                }
            };
            if let Some((end_ns, result)) = ended.take() {
                state.end(number, end_ns, result);
            }
            state.spun_ns += std::mem::take(&mut waiter.spun_ns);
            let step = state.next(number, now_ns);
            drop(state);
            match step {
                Step::Call { job, wake, ring } => {
                    wake.into_iter().flatten().for_each(|thread| self.wake(thread));
                    if ring {
                        self.ring();
                    }
                    let result = caller.perform(&job.operation);
                    now_ns = monotonic_ns();
                    ended = Some((now_ns, result));
                }
                Step::Await(due_ns) => now_ns = waiter.until(due_ns, &self.stop),
                Step::Park => {
                    seat.sleep();
                    now_ns = monotonic_ns();
                }
                Step::Leave => return,
            }
        }
    }
}

/// A run, from the outside: the watcher's view.
pub(crate) struct Calls<'a> {
    plan: &'a Plan,
    shared: Arc<Shared>,
    /// The first window's beginning, while it is to come.
    warm_until_ns: Option<u64>,
    /// When to look again.
    look_ns: u64,
    /// Calls begun when it looked last.
    seen: u64,
}

impl Generator for Calls<'_> {
    fn kinds(&self) -> Vec<&'static str> {
        Kind::ALL.map(Kind::name).to_vec()
    }

    fn begin(&mut self) -> Result<u64, Failed> {
        // All sit before the first request is due; the last that sat down gets up first, and leads.
        let mut state = self.shared.lock();
        (0..self.plan.outstanding).try_for_each(|_| self.add_thread(&mut state)).map_err(machine)?;
        let start_ns = monotonic_ns();
        state.begin(self.plan, start_ns);
        self.warm_until_ns = Some(state.began_ns);
        Ok(start_ns)
    }

    /// Does what others have no time for.
    fn step(&mut self, now_ns: u64) -> Result<Option<Closed>, Failed> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if self.warm_until_ns.is_some_and(|began_ns| now_ns >= began_ns) {
            state.begin_counting();
            self.warm_until_ns = None;
        }
        state.turn_window(now_ns);
        if let Some(closed) = state.closed.pop_front() {
            return Ok(Some(closed));
        }
        state.give_up(now_ns);
        let wake = state.watch(now_ns);
        let short = state.written_off() > 0 && state.threads() < 2 * self.plan.outstanding;
        if short && state.threads() < self.plan.outstanding + state.written_off() {
            // A machine that has no more threads: the place stays empty.
            let _ = self.add_thread(&mut state);
        }
        if state.fresh.is_none() {
            state.fresh = Some(Box::new(Tally::new(Kind::ALL.len())));
        }
        let quiet = state.begun == self.seen && state.owed() == 0;
        self.seen = state.begun;
        state.dozing = quiet;
        let ends_ns = if state.offering { state.window_ends_ns() } else { u64::MAX };
        drop(state);
        if let Some(thread) = wake {
            self.shared.wake(thread);
        }
        self.look_ns = if quiet { ends_ns } else { ends_ns.min(now_ns + LOOK_NS) };
        Ok(None)
    }

    fn ended_ns(&self) -> Option<u64> {
        let state = self.shared.lock();
        (!state.offering && state.closed.is_empty()).then(|| state.window_ends_ns())
    }

    fn stop(&mut self, now_ns: u64) -> Option<Closed> {
        let mut state = self.shared.lock();
        state.stop(now_ns);
        state.closed.pop_front()
    }

    /// Until that instant, a signal, or the bell.
    fn wait(&mut self, until_ns: u64, signals: &mut Signals) -> Result<(), Failed> {
        let until_ns = until_ns.min(self.look_ns).min(self.warm_until_ns.unwrap_or(u64::MAX));
        let bell = self.shared.bell.as_raw_fd();
        if signals.wait(Some(bell), until_ns) {
            let mut count = 0_u64;
            // SAFETY: eight bytes with room for the count; it does not block.
            unsafe { libc::read(bell, (&raw mut count).cast(), 8) };
        }
        Ok(())
    }

    fn owes(&self) -> bool {
        self.shared.lock().owed() > 0
    }

    fn busy(&self, used_ns: u64, span_ns: f64) -> f64 {
        let processors = thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        used_ns.saturating_sub(self.shared.lock().spun_ns) as f64 / span_ns / processors
    }

    fn rest(&mut self, owed: bool, _summary: &mut Summary) -> Result<Option<Box<Tally>>, Failed> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut state = self.shared.lock();
        state.leaving = true;
        let tally = state.next_tally();
        // What ended between the last window's end and the look at what is owed belongs here, too.
        Ok((owed || tally.completed + tally.failed > 0).then_some(tally))
    }
}

impl<'a> Calls<'a> {
    /// # Errors
    /// No descriptors.
    pub fn new(plan: &'a Plan, place: Place, stream: Stream, numbers: Numbers) -> io::Result<Calls<'a>> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(plan, stream, numbers)),
            place: Arc::new(place),
            wait: plan.wait,
            stop: AtomicBool::new(false),
            seats: RwLock::new(Vec::new()),
            bell: sys::eventfd()?,
        });
        Ok(Calls { plan, shared, warm_until_ns: None, look_ns: 0, seen: 0 })
    }

    fn add_thread(&self, state: &mut State) -> io::Result<()> {
        let number = state.add_thread();
        let seat = Arc::new(Seat { woken: AtomicBool::new(false), thread: Mutex::new(None) });
        self.shared.seats.write().unwrap_or_else(PoisonError::into_inner).push(seat.clone());
        let (shared, own) = (self.shared.clone(), seat.clone());
        let builder = thread::Builder::new().name("load".to_owned()).stack_size(STACK_BYTES);
        let handle = builder.spawn(move || {
            own.sleep();
            shared.work(number, &own);
        })?;
        *seat.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.thread().clone());
        state.turn.park(number);
        Ok(())
    }
}

impl Drop for Calls<'_> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.lock().leaving = true;
        let threads = self.shared.lock().threads();
        (0..threads).for_each(|thread| self.shared.wake(thread));
    }
}
