//! Load by system calls: threads that make them, and one that watches (`state.rs` says who does what).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

use etude_clock::{SECOND, monotonic_ns, own_cpu_ns, seconds};
use etude_launch::sys;
use etude_workload::Stream;

use crate::file_set::gate::Numbers;
use crate::files::call::{Caller, Place};
use crate::files::leader_follower::Thread;
use crate::files::state::{State, Step};
use crate::files::wait::Waiter;
use crate::report::Line;
use crate::report::summary::{About, Summary};
use crate::report::tally::Tally;
use crate::run::plan::{Plan, Wait};

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
    lines: &'a Sender<Line>,
    signals: OwnedFd,
    shared: Arc<Shared>,
    summary: Summary,
    cpu_ns: u64,
    told: u32,
    /// Calls begun when it looked last.
    seen: u64,
}

impl<'a> Calls<'a> {
    /// # Errors
    /// No descriptors.
    pub fn new(
        plan: &'a Plan,
        about: About,
        lines: &'a Sender<Line>,
        signals: OwnedFd,
        place: Place,
        stream: Stream,
        numbers: Numbers,
    ) -> io::Result<Calls<'a>> {
        let shared = Shared {
            state: Mutex::new(State::new(plan, stream, numbers)),
            place: Arc::new(place),
            wait: plan.wait,
            stop: AtomicBool::new(false),
            seats: RwLock::new(Vec::new()),
            bell: sys::eventfd()?,
        };
        let summary = Summary::new(plan, about);
        Ok(Calls { plan, lines, signals, shared: Arc::new(shared), summary, cpu_ns: 0, told: 0, seen: 0 })
    }

    /// Offers the load, telling of each window, and of the whole at the end. Threads in calls that never return outlive it.
    ///
    /// # Errors
    /// Threads cannot be made.
    pub fn run(mut self) -> io::Result<()> {
        // All sit before the first request is due; the last that sat down gets up first, and leads.
        let mut state = self.shared.lock();
        let threads = (0..self.plan.outstanding).try_for_each(|_| self.add_thread(&mut state));
        drop(state);
        threads?;
        let (start_ns, cpu_ns) = (monotonic_ns(), own_cpu_ns());
        let began_ns = {
            let mut state = self.shared.lock();
            state.begin(self.plan, start_ns);
            state.began_ns
        };
        let ended_ns = self.offer(began_ns);
        let span_ns = (monotonic_ns() - start_ns).max(1) as f64;
        let used_ns = own_cpu_ns() - cpu_ns;
        let (processors, spun_ns) = (processors(), self.shared.lock().spun_ns);
        self.summary.cpu = used_ns as f64 / span_ns;
        self.summary.busy = used_ns.saturating_sub(spun_ns) as f64 / span_ns / processors;
        let sent = self.summary.started;
        self.summary.cpu_per_request_s = (sent > 0).then(|| seconds(self.cpu_ns) / sent as f64);
        self.summary.duration_s = seconds(ended_ns.saturating_sub(began_ns));
        let drained = self.drain(ended_ns);
        let _ = self.lines.send(Line::Summary { summary: Box::new(self.summary.clone()), drained });
        Ok(())
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

    /// Until all is offered, or a signal, or nobody reads; when that was.
    fn offer(&mut self, began_ns: u64) -> u64 {
        let mut warm = true;
        let shared = self.shared.clone();
        loop {
            let now = monotonic_ns();
            let mut state = shared.lock();
            if warm && now >= began_ns {
                state.begin_counting();
                warm = false;
            }
            state.turn_window(now);
            let until_ns = self.look(state, now);
            let heard = self.tell();
            let state = shared.lock();
            if !state.offering {
                return state.window_ends_ns();
            }
            drop(state);
            if self.told > 0 || !heard {
                self.summary.ended = "early";
                let now = monotonic_ns();
                self.shared.lock().stop(now);
                self.tell();
                return now;
            }
            let until_ns = if warm { until_ns.min(began_ns) } else { until_ns };
            self.listen(until_ns);
        }
    }

    /// Does what others have no time for; when to look again.
    fn look(&mut self, mut state: MutexGuard<'_, State>, now_ns: u64) -> u64 {
        state.give_up(now_ns);
        let wake = state.watch(now_ns);
        let short = state.written_off() > 0 && state.threads() < 2 * self.plan.outstanding;
        if short && state.threads() < self.plan.outstanding + state.written_off() {
            // A machine that has no more threads: the place stays empty.
            let _ = self.add_thread(&mut state);
        }
        if state.fresh.is_none() {
            state.fresh = Some(Box::new(Tally::new(etude_workload::Kind::ALL.len())));
        }
        let quiet = state.begun == self.seen && state.owed() == 0;
        self.seen = state.begun;
        state.dozing = quiet;
        let ends_ns = state.window_ends_ns();
        drop(state);
        if let Some(thread) = wake {
            self.shared.wake(thread);
        }
        if quiet { ends_ns } else { ends_ns.min(now_ns + LOOK_NS) }
    }

    /// Sends the windows that are over; false: nobody reads.
    fn tell(&mut self) -> bool {
        let closed = std::mem::take(&mut self.shared.lock().closed);
        closed.into_iter().all(|closed| {
            self.summary.add(&closed.tally);
            self.summary.waited |= closed.waiting > 0;
            self.cpu_ns += closed.cpu_ns;
            let (duration_s, own) = (seconds(closed.duration_ns), State::own(&closed));
            self.lines.send(Line::Window { duration_s, tally: closed.tally, own }).is_ok()
        })
    }

    /// Waits for what is outstanding, up to the bound or a further signal; what came meanwhile.
    fn drain(&mut self, from_ns: u64) -> Option<(f64, Box<Tally>)> {
        let until_ns = from_ns + self.plan.drain_ns;
        let enough = if self.told > 0 { 2 } else { 1 };
        let shared = self.shared.clone();
        let owed = shared.lock().owed() > 0;
        loop {
            let now = monotonic_ns();
            let state = shared.lock();
            if state.owed() == 0 || now >= until_ns || self.told >= enough {
                break;
            }
            self.look(state, now);
            self.listen(until_ns.min(now + LOOK_NS));
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut state = self.shared.lock();
        state.leaving = true;
        self.summary.drained_s = seconds(monotonic_ns().saturating_sub(from_ns));
        self.summary.abandoned = state.abandoned();
        let tally = state.next_tally();
        drop(state);
        self.summary.add(&tally);
        // What ended between the last window's end and the look at what is owed belongs here, too.
        let some = owed || tally.completed + tally.failed > 0;
        some.then_some((self.summary.drained_s, tally))
    }

    /// Until that instant, a signal, or the bell.
    fn listen(&mut self, until_ns: u64) {
        let rest = until_ns.saturating_sub(monotonic_ns());
        let time = libc::timespec {
            tv_sec: (rest / SECOND) as libc::time_t,
            tv_nsec: (rest % SECOND) as libc::c_long,
        };
        let mut watched = [self.signals.as_raw_fd(), self.shared.bell.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: descriptors and time live through the call; a null mask leaves the mask alone.
        unsafe { libc::ppoll(watched.as_mut_ptr(), 2, &time, std::ptr::null()) };
        if watched[0].revents != 0 {
            while sys::take_signal(&self.signals).is_some() {
                self.told += 1;
            }
        }
        if watched[1].revents != 0 {
            let mut count = 0_u64;
            // SAFETY: eight bytes with room for the count; it does not block.
            unsafe { libc::read(self.shared.bell.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
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

fn processors() -> f64 {
    thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}
