//! One pass after the other, without a gap in the schedule, and what came of them, window by window.

use etude_clock::{monotonic_ns, own_cpu_ns, timeval_ns};
use etude_launch::sys;
use etude_options::Failed;
use etude_replay::{Ended, Offered, Pass, Played, Refused};

use super::pass_results::Told;
use super::places::Places;
use super::scored_roll::Piece;
use crate::report::summary::{RollAbout, Summary};
use crate::report::tally::Tally;
use crate::run::plan::Plan;
use crate::run::run_loop::{Closed, Generator, Signals};
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
    plan: &'a Plan,
    told: Told<'a>,
    begin_ns: u64,
    /// The first window's beginning; what was due before is warm-up.
    from_ns: u64,
    window: Window,
    ended: bool,
    /// Nothing is due any more.
    until_ns: u64,
    /// Passes that were started.
    started: u64,
    under_way: Vec<Pass>,
    /// Sum of those that have ended.
    over: Played,
    cpu_ns: u64,
}

impl Generator for Course<'_> {
    fn kinds(&self) -> Vec<&'static str> {
        self.piece.score.names.clone()
    }

    fn begin(&mut self) -> Result<u64, Failed> {
        self.begin_ns = monotonic_ns() + AHEAD_NS;
        self.from_ns = self.begin_ns + self.plan.warm_up_ns;
        self.until_ns = self.from_ns + self.plan.duration_ns;
        self.window = Window::of(self.plan, self.from_ns);
        self.cpu_ns = self.cpu_ns();
        Ok(self.begin_ns)
    }

    fn step(&mut self, now_ns: u64) -> Result<Option<Closed>, Failed> {
        if self.places.interrupted && !self.ended {
            return Ok(None);
        }
        self.start_due(now_ns)?;
        self.reap()?;
        if self.ended || monotonic_ns() < self.window.end_ns {
            return Ok(None);
        }
        let closed = self.close(self.window.end_ns);
        self.ended = self.window.is_last();
        self.window = self.window.next();
        Ok(Some(closed))
    }

    fn ended_ns(&self) -> Option<u64> {
        self.ended.then_some(self.until_ns)
    }

    fn stop(&mut self, now_ns: u64) -> Option<Closed> {
        self.ended = true;
        self.until_ns = self.until_ns.min(now_ns.max(self.from_ns));
        self.under_way.iter().for_each(|pass| pass.stop(now_ns));
        (now_ns > self.window.begin_ns).then(|| self.close(self.until_ns))
    }

    fn wait(&mut self, until_ns: u64, signals: &mut Signals) -> Result<(), Failed> {
        let now = monotonic_ns();
        let next_ns = if self.more() && self.under_way.len() < MOST_PASSES {
            self.begins_ns(self.started).saturating_sub(AHEAD_NS).max(now)
        } else {
            u64::MAX
        };
        let end_ns = if self.ended { until_ns } else { self.window.end_ns };
        signals.wait(None, end_ns.min(next_ns).min(now + LOOK_NS));
        Ok(())
    }

    /// Processes: they end soon after their last request.
    fn owes(&self) -> bool {
        !self.under_way.is_empty() || self.more()
    }

    /// CPU time of this process and of those that play.
    fn cpu_ns(&self) -> u64 {
        let usage = sys::usage_of(libc::RUSAGE_CHILDREN);
        let alive: u64 = self.under_way.iter().map(Pass::cpu_ns).sum();
        own_cpu_ns() + timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime) + alive
    }

    fn busy(&self, _used_ns: u64, _span_ns: f64) -> f64 {
        0.0 // known at the end: `rest`
    }

    fn rest(&mut self, _owed: bool, summary: &mut Summary) -> Result<Option<Box<Tally>>, Failed> {
        let played = self.played();
        self.leave()?;
        let offered = self.offered(self.until_ns, &played);
        summary.about.roll = Some(RollAbout {
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
        });
        Ok(self.told.end(played, offered, summary))
    }
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}

impl<'a> Course<'a> {
    pub fn new(piece: &'a Piece, plan: &'a Plan, places: &'a Places) -> Self {
        Course {
            piece,
            places,
            plan,
            told: Told::new(&piece.score.names),
            begin_ns: 0,
            from_ns: 0,
            window: Window::of(plan, 0),
            ended: false,
            until_ns: 0,
            started: 0,
            under_way: Vec::new(),
            over: Played::default(),
            cpu_ns: 0,
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

    /// The window under way, which ends at that instant.
    fn close(&mut self, end_ns: u64) -> Closed {
        let played = self.played();
        let offered = self.offered(end_ns, &played);
        let now_ns = self.cpu_ns().max(self.cpu_ns);
        let cpu_ns = now_ns - std::mem::replace(&mut self.cpu_ns, now_ns);
        Closed {
            duration_ns: end_ns.saturating_sub(self.window.begin_ns),
            cpu_ns,
            outstanding: played.begun.saturating_sub(played.ended()) as usize,
            waiting: offered.saturating_sub(played.begun) as usize,
            tally: Box::new(self.told.newly(played, offered)),
            waited_s: None,
            multiple: Some(self.piece.multiple),
        }
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
