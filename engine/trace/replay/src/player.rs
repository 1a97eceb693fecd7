//! Playing one thread of a roll, and what it starts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use etude_calls::Moves;
use etude_trace::{Event, Policy, Scheduling};

use crate::children::Children;
use crate::clock::{cost_ns, now_ns, schedule, wait_until};
use crate::feed::Feed;
use crate::perform::{Made, Performer, is_done_later, is_same};
use crate::requests::{Finished, Place};
use crate::roll::{Mark, Marked, Roll};
use crate::schedule::is_request;
use crate::shared::{GONE, LINGERS, Lane, Owed, Shared, add, sleep_on, wake};

/// When calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Timing {
    /// So long after the end of the one before as in the original: a slower device makes the replay longer.
    Gap,
    /// When the original made them: a slower device makes calls late.
    Absolute,
    /// As soon as possible.
    None,
}

/// How a roll is played.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub timing: Timing,
    /// 2: twice as fast.
    pub speed: f64,
    /// With real-time priority, where that is allowed and there is no `class`.
    pub realtime: bool,
    pub class: Option<Scheduling>,
}

/// A longer gap is a mistake: a century.
const LONGEST_NS: u64 = 1 << 61;
/// What a gap has to be longer for memory to be touched, ns; and what is left of it then.
const TOUCHING: i64 = 100_000;
/// A longer gap is slept through in parts, to see whether the replay goes on, ns.
const LONG: i64 = 200_000_000;
/// What a waiting thread spins before it sleeps.
const SPIN_NS: i64 = 50_000;
/// What a thread is stuck in, for whoever looks.
pub const STUCK: u32 = 1;

/// What all threads of a replay share.
pub struct Play {
    pub roll: Arc<Roll>,
    pub shared: Shared,
    pub manner: Manner,
    /// Of a load: calls that are due before this, `CLOCK_MONOTONIC`, count nowhere.
    counts_from: i64,
    /// What asking for the time takes, ns.
    clock_ns: i64,
    /// What was decoded before the beginning, by thread.
    feeds: Vec<Mutex<Option<Feed>>>,
}

impl Play {
    /// Decodes what comes first of each thread; the error says what is wrong with the roll.
    pub fn new(roll: impl Into<Arc<Roll>>, shared: Shared, manner: Manner) -> Result<Play, String> {
        let roll = roll.into();
        let feeds = Feed::begin(&roll)?.into_iter().map(|feed| Mutex::new(Some(feed))).collect();
        Ok(Play { roll, shared, manner, counts_from: 0, clock_ns: cost_ns(), feeds })
    }

    /// As a load, of which only calls count that are due then or later, `CLOCK_MONOTONIC`, ns.
    pub fn counting_from(self, counts_from: i64) -> Play {
        Play { counts_from, ..self }
    }

    /// A process was killed: what others wait for may not come any more.
    fn broke(&self) {
        let _ = self.shared.all().broken.compare_exchange(0, KILLED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// One thread.
pub struct Player {
    play: Arc<Play>,
    thread: usize,
    performer: Performer,
    feed: Feed,
    /// Where its own clock stands: what was computed and what calls really took. In absolute time, the original's.
    clock: i64,
    /// When its last call ended, in the roll's own time, ns.
    recorded: u64,
    /// When its last call ended, or it had waited for another thread: it could have made the next one since.
    free: i64,
    /// Calls that it has come by.
    step: u64,
    children: Children,
}

/// Why a thread cannot go on.
pub type Broken = u32;
/// The roll's calls cannot be decoded.
pub const DAMAGED: Broken = 1;
/// A process or thread could not be started.
pub const NO_MORE: Broken = 2;
/// Threads wait for each other.
pub const KNOT: Broken = 3;
/// A process of the replay was killed.
pub const KILLED: Broken = 4;
/// No memory.
pub const MEMORY: Broken = 5;
/// Nothing of it: what was to be offered of a load has been.
pub const OVER: Broken = 6;
/// Nothing of it: nobody waits for it any more.
pub const LEFT: Broken = 7;

/// Why a replay was given up, one line.
pub fn why(broken: Broken) -> &'static str {
    match broken {
        DAMAGED => "a chunk of calls in the middle cannot be decoded: compile the roll anew",
        NO_MORE => "no more processes or threads can be started here: see ulimit -u",
        KNOT => {
            "its threads wait for each other, and nothing has gone on for 5 s: one waits for what another does later, or for what nobody writes to a pipe or socket"
        }
        MEMORY => "no memory for the buffers of a thread",
        _ => "a process of the replay was killed",
    }
}

impl Player {
    pub fn new(play: Arc<Play>, thread: usize, mut performer: Performer, clock: i64) -> Player {
        performer.place.thread = thread;
        let feed = play.feeds[thread].lock().expect("no thread panics").take();
        let feed = feed.unwrap_or_else(|| Feed::new(thread));
        Player {
            feed,
            play,
            thread,
            performer,
            clock,
            recorded: 0,
            free: clock,
            step: 0,
            children: Children::default(),
        }
    }

    /// Sets the clock to now, or to a later instant.
    pub fn begin(&mut self, at: Option<i64>) {
        self.clock = at.unwrap_or_else(now_ns);
        self.free = self.clock;
        self.play.shared.all().began_ns.store(self.clock, Ordering::Relaxed);
    }

    /// Plays all of it; what went wrong is known to all then.
    pub fn run(mut self) {
        self.lane().pid.store(std::process::id(), Ordering::Relaxed);
        etude_clock::without_slack();
        self.schedule();
        match self.play_all() {
            Ok(()) => {}
            Err(OVER) => self.let_go(),
            Err(why) => self.play.shared.all().broken.store(why, Ordering::Relaxed),
        }
        self.end();
    }

    /// The recording's class, else real-time priority where that is allowed: then it keeps time best.
    fn schedule(&self) {
        let (all, manner) = (self.play.shared.all(), self.play.manner);
        let fifo = Scheduling { policy: Policy::Fifo, priority: 1, nice: 0 };
        let Some(class) = manner.class.or(manner.realtime.then_some(fifo)) else { return };
        let flag = match (schedule(class), manner.class) {
            (true, _) if class.policy.is_realtime() => &all.realtime,
            (false, Some(_)) => &all.class_refused,
            _ => return,
        };
        flag.store(1, Ordering::Relaxed);
    }

    fn play_all(&mut self) -> Result<(), Broken> {
        let play = self.play.clone();
        let (marks, mut next, mut done) = (&play.roll.marks[self.thread], 0, 0_u64);
        loop {
            while let Some(mark) = marks.get(next).filter(|mark| mark.at <= done) {
                self.mark(mark)?;
                next += 1;
            }
            let Some(events) = self.chunk()? else { return Ok(()) };
            let mut rest = &events[..];
            while !rest.is_empty() {
                let until = marks.get(next).map_or(rest.len() as u64, |mark| mark.at - done);
                let (now, later) = rest.split_at((until as usize).min(rest.len()));
                self.calls(now)?;
                (rest, done) = (later, done + now.len() as u64);
                while let Some(mark) = marks.get(next).filter(|mark| mark.at <= done && !rest.is_empty()) {
                    self.mark(mark)?;
                    next += 1;
                }
            }
            self.feed.give_back(events);
        }
    }

    /// The next calls; None where there are no more.
    fn chunk(&mut self) -> Result<Option<Vec<Event>>, Broken> {
        let (chunk, late) = self.feed.next(&self.play.roll).map_err(|_| DAMAGED)?;
        if late {
            self.lane().late_chunks.fetch_add(1, Ordering::Relaxed);
        }
        Ok(chunk)
    }

    /// Nobody is to wait for what it does not make any more.
    fn let_go(&self) {
        self.lane().told.store(u32::MAX, Ordering::SeqCst);
        wake(&self.lane().told);
    }

    fn lane(&self) -> &Lane {
        self.play.shared.lane(self.thread)
    }

    /// Lets so much computing go by, ns.
    fn compute(&mut self, ns: u64) {
        if self.play.manner.timing == Timing::None {
            return;
        }
        self.pass(ns);
        let now = now_ns();
        if self.clock > now {
            self.use_gap(now);
            while self.clock.saturating_sub(now_ns()) > LONG && self.broken() == 0 && !self.over() {
                wait_until(now_ns() + LONG / 2);
            }
            if self.broken() == 0 && !self.over() {
                wait_until(self.clock);
            }
        }
    }

    /// Whether what is due by its clock is not to be made any more.
    fn over(&self) -> bool {
        self.clock >= self.play.shared.all().until_ns.load(Ordering::Relaxed)
    }

    /// Why the replay has been given up; 0 where it has not.
    fn broken(&self) -> Broken {
        self.play.shared.all().broken.load(Ordering::Relaxed)
    }

    /// Its clock goes on by so much, at the speed that was asked for.
    fn pass(&mut self, ns: u64) {
        let ns = (ns.min(LONGEST_NS) as f64 / self.play.manner.speed) as i64;
        self.clock = self.clock.saturating_add(ns);
    }

    /// Decodes what is to come while there is time for it.
    fn use_gap(&mut self, now: i64) {
        let now = self.feed.use_gap(&self.play.roll, now, self.clock);
        if self.clock.saturating_sub(now) > TOUCHING {
            self.performer.touch(self.clock - TOUCHING);
        }
    }

    fn calls(&mut self, events: &[Event]) -> Result<(), Broken> {
        let play = self.play.clone();
        let lane = play.shared.lane(self.thread);
        let owed = play.shared.owed(self.thread);
        for event in events {
            let gap = event.start_ns.saturating_sub(self.recorded);
            self.recorded = event.end_ns();
            self.compute(gap);
            if self.broken() != 0 {
                break;
            }
            if self.over() {
                return Err(OVER);
            }
            let due = self.clock;
            let owed = owed.filter(|_| due >= play.counts_from && is_request(event));
            if let Some(owed) = owed {
                add(&owed.begun, 1);
            }
            let late = |begun: i64| begun.saturating_sub(due.max(self.free)).max(0) as u64;
            if is_done_later(event) {
                self.performer.place =
                    Place { thread: self.thread, step: self.step, due, late: late(now_ns()) };
            }
            let waits = self.performer.may_wait(event);
            if waits {
                lane.stuck.store(STUCK, Ordering::Relaxed);
            }
            let made = self.performer.make(event);
            if waits {
                lane.stuck.store(0, Ordering::Relaxed);
            }
            match made {
                Made::Done { result, begun, ended, same } => {
                    let (late, ended) = (late(begun), (ended - play.clock_ns).max(begun));
                    self.timed(lane, event, begun, ended);
                    if let Some(owed) = owed {
                        add(&owed.spent_ns, (ended - begun) as u64);
                        owed.note(event.call, result, late, (ended - due).max(0) as u64, same);
                    }
                    lane.note(event.call, result, (ended - begun) as u64, same);
                    if !same {
                        play.shared.keep_other(self.thread, self.step, result);
                    }
                    self.free = ended;
                }
                Made::Queued => {}
                Made::Taken { begun, ended, request } => {
                    let ended = (ended - play.clock_ns).max(begun);
                    self.timed(lane, event, begun, ended);
                    lane.note(event.call, 0, (ended - begun) as u64, true);
                    self.finished(&request);
                    self.free = ended;
                }
                Made::Skipped => {
                    add(&lane.skipped, 1);
                    if event.call.row().moves != Moves::Nothing {
                        add(&lane.skipped_bytes, event.result.max(0) as u64);
                        add(&lane.skipped_ns, event.duration_ns);
                    }
                    if let Some(owed) = owed {
                        add(&owed.unplayed, 1);
                    }
                    self.pass(event.duration_ns);
                }
            }
            self.step += 1;
        }
        match play.shared.all().broken.load(Ordering::Relaxed) {
            0 => Ok(()),
            why => Err(why),
        }
    }

    /// Counts a request that is done: it took none of a thread's time.
    fn finished(&self, request: &Finished) {
        let Finished { call, place, result, begun, ended, .. } = *request;
        let lane = self.lane();
        let same = is_same(call, request.expected, result);
        lane.note(call, result, 0, same);
        let counts = |_: &&Owed| place.due >= self.play.counts_from;
        if let Some(owed) = self.play.shared.owed(self.thread).filter(counts) {
            add(&owed.spent_ns, (ended - begun).max(0) as u64);
            owed.note(call, result, place.late, (ended - place.due).max(0) as u64, same);
        }
        if !same {
            self.play.shared.keep_other(place.thread, place.step, result);
        }
    }

    /// Moves the clock on by a call.
    fn timed(&mut self, lane: &Lane, event: &Event, begun: i64, ended: i64) {
        let late = begun.saturating_sub(self.clock).max(0) as u64;
        match self.play.manner.timing {
            Timing::Gap => self.clock = self.clock.saturating_add(ended - begun),
            Timing::Absolute => self.pass(event.duration_ns),
            Timing::None => {
                self.clock = ended;
                return;
            }
        }
        lane.lateness.add(late);
        if late > lane.most_late_ns.load(Ordering::Relaxed) {
            lane.most_late_ns.store(late, Ordering::Relaxed);
        }
    }

    fn mark(&mut self, mark: &Mark) -> Result<(), Broken> {
        self.compute_mark(mark);
        if self.over() && mark.what != Marked::End {
            return Err(OVER);
        }
        match mark.what {
            Marked::Tell => self.tell(),
            Marked::After { thread, told } => {
                let play = self.play.clone();
                let lane = play.shared.lane(thread as usize);
                let begun = now_ns();
                self.until(&lane.told, lane, |count| u64::from(count) >= told)?;
                add(&self.lane().waits, 1);
                add(&self.lane().waited_ns, (now_ns() - begun).max(0) as u64);
            }
            Marked::Wait(thread) => {
                let play = self.play.clone();
                let lane = play.shared.lane(thread as usize);
                self.until(&lane.ended, lane, |ended| ended != 0)?;
                if self.children.reap(thread as usize, &play.shared) {
                    play.broke();
                }
            }
            Marked::Start(thread) => self.start(thread as usize)?,
            Marked::Fork(thread) => self.fork(thread as usize)?,
            Marked::Exec => self.performer.exec(),
            Marked::End => {}
        }
        Ok(())
    }

    /// Time before a mark goes by on the clock; nobody waits for it, but at an end.
    fn compute_mark(&mut self, mark: &Mark) {
        let gap_ns = mark.gap_us.saturating_mul(1000);
        match mark.what {
            Marked::End | Marked::Start(_) | Marked::Fork(_) => self.compute(gap_ns),
            _ => self.pass(gap_ns),
        }
    }

    fn tell(&self) {
        let lane = self.lane();
        lane.clock_ns.store(self.clock, Ordering::Relaxed);
        lane.told.fetch_add(1, Ordering::SeqCst);
        if lane.awaited.load(Ordering::SeqCst) != 0 {
            wake(&lane.told);
        }
    }

    /// Waits for another thread; then this one's clock is not before the other's.
    fn until(&mut self, word: &AtomicU32, other: &Lane, reached: impl Fn(u32) -> bool) -> Result<(), Broken> {
        let begun = now_ns();
        let all = self.play.shared.all();
        while !reached(word.load(Ordering::Acquire)) {
            if now_ns() - begun < SPIN_NS {
                std::hint::spin_loop();
                continue;
            }
            self.lane().stuck.store(STUCK, Ordering::Relaxed);
            other.awaited.fetch_add(1, Ordering::SeqCst);
            let value = word.load(Ordering::SeqCst);
            if !reached(value) {
                sleep_on(word, value);
            }
            other.awaited.fetch_sub(1, Ordering::SeqCst);
            if all.broken.load(Ordering::Relaxed) != 0 {
                return Err(all.broken.load(Ordering::Relaxed));
            }
        }
        self.lane().stuck.store(0, Ordering::Relaxed);
        self.free = now_ns();
        if self.play.manner.timing == Timing::Gap {
            self.clock = self.clock.max(other.clock_ns.load(Ordering::Relaxed));
        }
        Ok(())
    }

    fn start(&mut self, thread: usize) -> Result<(), Broken> {
        let performer = self.performer.another(self.performer.process.clone()).map_err(|_| MEMORY)?;
        let player = Player::new(self.play.clone(), thread, performer, self.clock);
        let started = std::thread::Builder::new().stack_size(1 << 18).spawn(move || player.run());
        self.children.add_thread(started.map_err(|_| NO_MORE)?, thread);
        Ok(())
    }

    /// The lane of the first thread of this process.
    fn process_lane(&self) -> &Lane {
        self.play.shared.lane(self.play.roll.head.threads[self.thread].process as usize)
    }

    fn fork(&mut self, thread: usize) -> Result<(), Broken> {
        // Before the fork: a lock that another thread holds stays locked in the child.
        let (own, process) = (self.performer.process.clone(), Arc::new(self.performer.process.copy()));
        let mut early = own.early.lock().expect("no thread panics");
        // SAFETY: the child goes on in this function alone, and ends by _exit.
        match unsafe { libc::fork() } {
            -1 => Err(NO_MORE),
            0 => {
                // SAFETY: plain values; the child dies with whoever has forked it.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
                early.clear();
                match self.performer.another(process) {
                    Ok(performer) => Player::new(self.play.clone(), thread, performer, self.clock).run(),
                    Err(_) => self.play.shared.all().broken.store(MEMORY, Ordering::Relaxed),
                }
                // SAFETY: nothing is left to be done.
                unsafe { libc::_exit(0) }
            }
            child => {
                self.children.add_process(child, thread);
                Ok(())
            }
        }
    }

    /// Its last act; the first thread of a process ends when all others have.
    fn end(&mut self) {
        let (now, play) = (now_ns(), self.play.clone());
        let all = play.shared.all();
        all.ended_ns.fetch_max(now, Ordering::Relaxed);
        all.undirect.fetch_add(self.performer.undirect, Ordering::Relaxed);
        self.process_lane().clock_ns.fetch_max(self.clock, Ordering::Relaxed);
        self.lane().stuck.store(STUCK, Ordering::Relaxed);
        // A process has ended when its threads have.
        self.children.wait_for_threads(&play.shared);
        if play.roll.head.threads[self.thread].process as usize == self.thread {
            let queues = &self.performer.process.queues;
            all.by_threads.fetch_or(queues.by_threads().into(), Ordering::Relaxed);
            queues.finish().iter().for_each(|request| self.finished(request));
            self.performer.process.end();
            all.ended_ns.fetch_max(now_ns(), Ordering::Relaxed);
        }
        let ended = if self.children.are_gone(&play.shared) { GONE } else { LINGERS };
        self.lane().ended.store(ended, Ordering::SeqCst);
        wake(&self.lane().ended);
        std::mem::take(&mut self.children).outlast(|| play.broke());
    }
}
