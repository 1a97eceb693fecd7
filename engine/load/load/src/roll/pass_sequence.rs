//! One pass after the other, without a gap in the schedule, and what came of them, window by window.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;

use etude_clock::{monotonic_ns, own_cpu_ns};
use etude_launch::sys;
use etude_options::Failed;
use etude_replay::{Ended, Offered, Pass, Played, Refused};

use super::pass_results::{Telling, Whole};
use super::places::Places;
use super::scored_roll::Piece;
use crate::report::Line;
use crate::report::summary::RollAbout;
use crate::run::plan::Plan;
use crate::run::window::Window;

/// A pass's processes are made so long before it begins.
const AHEAD_NS: u64 = 300_000_000;
/// How often is looked which passes have ended.
const LOOK_NS: u64 = 20_000_000;
/// Passes under way: a system that falls behind must not take all processes of the machine. Further ones begin late.
const MOST_PASSES: usize = 64;
/// What was killed is waited for so long.
const LEAVE_NS: u64 = 1_000_000_000;

pub(super) struct Course<'a> {
    piece: &'a Piece,
    places: &'a Places,
    signals: &'a OwnedFd,
    plan: &'a Plan,
    telling: Telling<'a>,
    begin_ns: u64,
    /// The first window's beginning; what was due before is warm-up.
    from_ns: u64,
    /// Nothing is due any more.
    until_ns: u64,
    /// Passes that were started.
    started: u64,
    under_way: Vec<Pass>,
    /// Sum of those that have ended.
    over: Played,
    told: u32,
    cpu_ns: u64,
}

impl<'a> Course<'a> {
    pub fn new(
        piece: &'a Piece,
        plan: &'a Plan,
        places: &'a Places,
        signals: &'a OwnedFd,
        lines: &'a Sender<Line>,
    ) -> Self {
        let begin_ns = monotonic_ns() + AHEAD_NS;
        let from_ns = begin_ns + plan.warm_up_ns;
        Course {
            piece,
            places,
            signals,
            plan,
            telling: Telling::new(piece, plan, lines),
            begin_ns,
            from_ns,
            until_ns: from_ns + plan.duration_ns,
            started: 0,
            under_way: Vec::new(),
            over: Played::default(),
            told: u32::from(places.interrupted),
            cpu_ns: 0,
        }
    }

    /// # Errors
    /// A pass cannot be played.
    pub fn run(mut self) -> Result<(), Failed> {
        let (ended, cpu, cpu_ns) = match self.play() {
            Ok(done) => done,
            Err(wrong) => {
                let _ = self.leave();
                return Err(wrong);
            }
        };
        let drained_ns = monotonic_ns().saturating_sub(self.until_ns);
        let played = self.played();
        self.leave()?;
        let offered = self.offered(self.until_ns, &played);
        let duration_ns = self.until_ns.saturating_sub(self.from_ns);
        let about = RollAbout {
            natural_rate: self.piece.natural_rate,
            multiple: self.piece.multiple,
            calls: self.piece.score.requests,
            run_s: self.piece.run_s,
            passes: self.started,
            places: self.places.many,
            prepared_s: self.places.prepared_s,
            own_bytes: self.places.own.bytes,
            shared_files: self.places.shared.many,
            shared_bytes: self.places.shared.bytes,
            left_out: self.piece.left_out,
            not_played: played.unplayed,
        };
        let whole = Whole { ended, duration_ns, cpu, cpu_ns, drained_ns };
        self.telling.end(played, offered, about, whole);
        Ok(())
    }

    /// How it ended, and the CPU time that it took: of one CPU, and ns.
    fn play(&mut self) -> Result<(&'static str, f64, u64), Failed> {
        let cpu_ns = self.cpu_so_far_ns();
        self.cpu_ns = cpu_ns;
        let ended = self.offer()?;
        let spent_ns = self.cpu_so_far_ns().saturating_sub(cpu_ns);
        let span_ns = monotonic_ns().saturating_sub(self.begin_ns).max(1);
        self.drain()?;
        Ok((ended, spent_ns as f64 / span_ns as f64, spent_ns))
    }

    /// Until all is offered, or a signal; how it ended.
    fn offer(&mut self) -> Result<&'static str, Failed> {
        let end_ns = self.until_ns;
        let mut window = Window::new(self.from_ns, self.plan.window_ns, end_ns);
        loop {
            let now = monotonic_ns();
            if self.told > 0 {
                self.stop(now);
                if now > window.begin_ns {
                    self.tell(window.begin_ns, now.min(end_ns));
                }
                return Ok("early");
            }
            self.start_due(now)?;
            self.reap()?;
            if window.end_ns <= monotonic_ns() {
                let heard = self.tell(window.begin_ns, window.end_ns);
                if window.end_ns == end_ns {
                    return Ok("whole");
                }
                window = window.next();
                if !heard {
                    self.stop(window.begin_ns);
                    return Ok("early");
                }
                continue;
            }
            self.wait(window.end_ns);
        }
    }

    /// Nothing more is due from that instant on.
    fn stop(&mut self, at_ns: u64) {
        self.until_ns = self.until_ns.min(at_ns.max(self.from_ns));
        self.under_way.iter().for_each(|pass| pass.stop(at_ns));
    }

    /// Waits for what was due and has not ended, up to the bound or a further signal.
    fn drain(&mut self) -> Result<(), Failed> {
        let (told, until_ns) = (self.told, self.until_ns.saturating_add(self.plan.drain_ns));
        loop {
            let now = monotonic_ns();
            self.start_due(now)?;
            self.reap()?;
            if self.under_way.is_empty() && !self.more() || now >= until_ns || self.told != told {
                return Ok(());
            }
            self.wait(until_ns);
        }
    }

    /// Starts the passes whose time is near.
    fn start_due(&mut self, now: u64) -> Result<(), Failed> {
        while self.more()
            && self.begins_ns(self.started) <= now + AHEAD_NS
            && self.under_way.len() < MOST_PASSES
        {
            let offered = Offered {
                speed: self.piece.multiple,
                begin_ns: self.begins_ns(self.started),
                from_ns: self.from_ns,
                until_ns: self.until_ns,
            };
            let place = self.places.of(self.started);
            let pass = Pass::start(&self.piece.roll, &place, offered).map_err(|wrong| self.refused(wrong))?;
            self.under_way.push(pass);
            self.started += 1;
        }
        Ok(())
    }

    fn begins_ns(&self, pass: u64) -> u64 {
        self.begin_ns.saturating_add(pass.saturating_mul(self.piece.score.length_ns))
    }

    /// Whether there is a pass that has something to offer, and was not started.
    fn more(&self) -> bool {
        self.begins_ns(self.started) < self.until_ns
    }

    /// Passes that have ended are counted, and their memory is given back.
    fn reap(&mut self) -> Result<(), Failed> {
        let mut at = 0;
        while at < self.under_way.len() {
            match self.under_way[at].ended().map_err(|wrong| self.refused(wrong))? {
                Ended::NotYet => at += 1,
                Ended::Whole => {
                    let pass = self.under_way.swap_remove(at);
                    self.over.add(&pass.played());
                }
            }
        }
        Ok(())
    }

    /// Until something is to be done, at most until then.
    fn wait(&mut self, until_ns: u64) {
        let now = monotonic_ns();
        let next_ns = if self.more() {
            self.begins_ns(self.started).saturating_sub(AHEAD_NS).max(now)
        } else {
            u64::MAX
        };
        let next_ns = if self.under_way.len() < MOST_PASSES { next_ns } else { u64::MAX };
        let wake_ns = until_ns.min(next_ns).min(now + LOOK_NS);
        let mut asked = [sys::wanted(self.signals.as_raw_fd())];
        // A poll that fails is only a look too early.
        let _ = sys::poll(&mut asked, Some(wake_ns.saturating_sub(now)));
        if asked[0].revents != 0 {
            self.told += u32::from(sys::take_signal(self.signals).is_some());
        }
    }

    fn played(&self) -> Played {
        let mut played = self.over.clone();
        self.under_way.iter().for_each(|pass| played.add(&pass.played()));
        played
    }

    /// Requests that were due in the time that counts, before then.
    fn offered(&self, at_ns: u64, played: &Played) -> u64 {
        let before = |ns: u64| self.piece.score.due_before_again(ns.saturating_sub(self.begin_ns));
        before(at_ns).saturating_sub(before(self.from_ns)).saturating_sub(played.unplayed)
    }

    /// Tells of a window; false: nobody listens.
    fn tell(&mut self, begin_ns: u64, end_ns: u64) -> bool {
        let played = self.played();
        let offered = self.offered(end_ns, &played);
        let cpu_ns = self.cpu_so_far_ns();
        let used_ns = cpu_ns.saturating_sub(self.cpu_ns);
        self.cpu_ns = cpu_ns.max(self.cpu_ns);
        self.telling.window(played, offered, end_ns.saturating_sub(begin_ns), used_ns)
    }

    /// Of this process and those that play, ns.
    fn cpu_so_far_ns(&self) -> u64 {
        let usage = sys::usage_of(libc::RUSAGE_CHILDREN);
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        let alive: u64 = self.under_way.iter().map(Pass::cpu_ns).sum();
        own_cpu_ns() + ns(usage.ru_utime) + ns(usage.ru_stime) + alive
    }

    fn refused(&self, Refused(line, code): Refused) -> Failed {
        (if code == 3 { format!("{}: {line}", self.piece.name) } else { line }, code)
    }

    /// Ends what is still under way: nobody waits for it.
    fn leave(&mut self) -> Result<(), Failed> {
        self.under_way.iter_mut().for_each(Pass::leave);
        let until_ns = monotonic_ns() + LEAVE_NS;
        while !self.under_way.is_empty() {
            if monotonic_ns() > until_ns {
                let pid = self.under_way[0].pid();
                return Err((
                    format!("process {pid}, which plays the roll, hangs in a call and cannot be ended"),
                    5,
                ));
            }
            self.under_way.retain_mut(|pass| matches!(pass.ended(), Ok(Ended::NotYet)));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        Ok(())
    }
}
