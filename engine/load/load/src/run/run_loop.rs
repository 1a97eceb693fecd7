//! One run, the same for every generator: what is due is offered, windows are reported as they end, a signal or the planned
//! time ends it, and what is outstanding is drained.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::Sender;

use etude_clock::{monotonic_ns, own_cpu_ns, seconds};
use etude_launch::sys;
use etude_options::Failed;

use crate::report::summary::Summary;
use crate::report::tally::Tally;
use crate::report::{Line, Own};
use crate::run::plan::Plan;

/// How often is looked for signals: a call of the kernel for each request would be part of what it costs.
const LOOK_NS: u64 = 100_000_000;

/// A window that is over.
pub(crate) struct Closed {
    pub duration_ns: u64,
    /// CPU time of the generator.
    pub cpu_ns: u64,
    pub tally: Box<Tally>,
    /// As in [`Own`].
    pub outstanding: usize,
    pub waiting: usize,
    pub waited_s: Option<f64>,
    pub multiple: Option<f64>,
}

/// Whatever makes requests when they are due. The methods are called by one thread, in this order.
pub(crate) trait Generator {
    /// Names of the kinds of request.
    fn kinds(&self) -> Vec<&'static str>;
    /// Makes ready; when the run begins (CLOCK_MONOTONIC, ns).
    fn begin(&mut self) -> Result<u64, Failed>;
    /// Does what is due at `now_ns`; the first window that is over and was not returned yet. It is called until there is none.
    fn step(&mut self, now_ns: u64) -> Result<Option<Closed>, Failed>;
    /// When the last window ended; None: more is offered.
    fn ended_ns(&self) -> Option<u64>;
    /// Ends the window under way: nothing more is offered.
    fn stop(&mut self, now_ns: u64) -> Option<Closed>;
    /// Waits until a step has something to do, or until that instant.
    fn wait(&mut self, until_ns: u64, signals: &mut Signals) -> Result<(), Failed>;
    /// Whether something that was due has not ended.
    fn owes(&self) -> bool;
    /// CPU time so far.
    fn cpu_ns(&self) -> u64 {
        own_cpu_ns()
    }
    /// The share of its capacity that it has worked since the beginning.
    fn busy(&self, used_ns: u64, span_ns: f64) -> f64;
    /// The counts after the last window, None if nothing could come (`owed`: something was outstanding then); adds to the
    /// summary what only this kind of generator has.
    fn rest(&mut self, owed: bool, summary: &mut Summary) -> Result<Option<Box<Tally>>, Failed>;
}

/// The signals that end a run.
pub(crate) struct Signals {
    descriptor: OwnedFd,
    count: u32,
    /// When to look again.
    pub look_ns: u64,
}

impl Signals {
    /// `count` have come already.
    pub fn new(descriptor: OwnedFd, count: u32) -> Signals {
        Signals { descriptor, count, look_ns: 0 }
    }

    fn look(&mut self, now_ns: u64) {
        if now_ns < self.look_ns {
            return;
        }
        self.look_ns = now_ns + LOOK_NS;
        while sys::take_signal(&self.descriptor).is_some() {
            self.count += 1;
        }
    }

    /// Waits for a signal, for input on `other`, or for that instant; true: there is input.
    pub fn wait(&mut self, other: Option<RawFd>, until_ns: u64) -> bool {
        // A negative descriptor is passed over.
        let mut watched = [sys::wanted(self.descriptor.as_raw_fd()), sys::wanted(other.unwrap_or(-1))];
        // A poll that fails is only a look too early.
        let _ = sys::poll(&mut watched, Some(until_ns.saturating_sub(monotonic_ns())));
        if watched[0].revents != 0 {
            self.look_ns = 0;
        }
        watched[1].revents != 0
    }
}

/// Offers the load, and reports each window, and the whole at the end.
///
/// # Errors
/// The generator's.
pub(crate) fn run(
    plan: &Plan,
    mut summary: Summary,
    mut signals: Signals,
    lines: &Sender<Line>,
    mut generator: impl Generator,
) -> Result<(), Failed> {
    let start_ns = generator.begin()?;
    let (began_ns, before_ns) = (start_ns + plan.warm_up_ns, generator.cpu_ns());
    let mut windows_cpu_ns = 0;
    let mut report = |closed: Closed| {
        summary.add(&closed.tally);
        summary.waited |= closed.waiting > 0;
        windows_cpu_ns += closed.cpu_ns;
        let Closed { duration_ns, cpu_ns, tally, outstanding, waiting, waited_s, multiple } = closed;
        let cpu = cpu_ns as f64 / duration_ns.max(1) as f64;
        let own = Own { cpu, outstanding, waiting, waited_s, multiple };
        lines.send(Line::Window { duration_s: seconds(duration_ns), tally, own }).is_ok()
    };
    let (mut ended, mut heard) = ("whole", true);
    let ended_ns = loop {
        let now = monotonic_ns();
        signals.look(now);
        while let Some(closed) = generator.step(now)? {
            heard &= report(closed);
            if generator.ended_ns().is_some() {
                break;
            }
        }
        if let Some(ended_ns) = generator.ended_ns() {
            break ended_ns;
        }
        if signals.count > 0 || !heard {
            ended = "early";
            generator.stop(now).map(&mut report);
            break generator.ended_ns().unwrap_or(now);
        }
        generator.wait(u64::MAX, &mut signals)?;
    };
    let span_ns = monotonic_ns().saturating_sub(start_ns).max(1) as f64;
    let used_ns = generator.cpu_ns().saturating_sub(before_ns);
    summary.ended = ended;
    summary.cpu = used_ns as f64 / span_ns;
    summary.busy = generator.busy(used_ns, span_ns);
    let sent = summary.started;
    summary.cpu_per_request_s = (sent > 0).then(|| seconds(windows_cpu_ns) / sent as f64);
    summary.duration_s = seconds(ended_ns.saturating_sub(began_ns));

    let until_ns = ended_ns.saturating_add(plan.drain_ns);
    let (owed, enough) = (generator.owes(), if signals.count > 0 { 2 } else { 1 });
    loop {
        let now = monotonic_ns();
        signals.look(now);
        if !generator.owes() || now >= until_ns || signals.count >= enough {
            break;
        }
        generator.step(now)?;
        generator.wait(until_ns, &mut signals)?;
    }
    summary.drained_s = seconds(monotonic_ns().saturating_sub(ended_ns));
    let rest = generator.rest(owed, &mut summary)?;
    rest.as_ref().inspect(|tally| summary.add(tally));
    summary.abandoned = summary.offered.saturating_sub(summary.completed + summary.failed);
    let drained = rest.map(|tally| (summary.drained_s, tally));
    let _ = lines.send(Line::Summary { summary: Box::new(summary), drained });
    Ok(())
}
