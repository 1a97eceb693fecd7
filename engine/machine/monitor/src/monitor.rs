//! One run of the monitor, from its head to its end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use etude_clock::{monotonic_ns, own_cpu_ns, realtime_ns};

use crate::Failed;
use crate::cost::Walls;
use crate::kept::Root;
use crate::lines::{self, Cost, Head};
use crate::messages::Messages;
use crate::output::Output;
use crate::sampler::Sampler;
use crate::ticks::Ticks;
use crate::top::Top;
use crate::wait::{Came, Wait};

/// Less is left of the last interval than this: there is no sample of it, ns.
const TOO_SHORT: u64 = 1_000_000;

/// Shorter than any suspension, and longer than what lies between two readings of clocks, ns.
const LEAST_SLEEP: u64 = 100_000_000;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub output: PathBuf,
    pub every_ns: u64,
    pub top: usize,
    pub root: PathBuf,
}

/// A run that has begun.
struct Monitor {
    start_ns: u64,
    sampler: Sampler,
    top: Option<Top>,
    messages: Result<Messages, String>,
    lines: Vec<u8>,
    walls: Walls,
    samples: u64,
    /// The last reading: since the start, and for how long the machine was suspended until then, ns.
    read_ns: u64,
    suspended_ns: u64,
}

/// Samples until it is told to end.
///
/// # Errors
/// The file cannot be written, or there is nothing to sample (5).
pub fn monitor(wish: &Wish) -> Result<(), Failed> {
    let wait = Wait::new().map_err(|error| (format!("signals: {error}"), 5))?;
    let root = Root::new(&wish.root);
    let unwritten = |error: io::Error| (unwritten(&wish.output, &error), 5);
    let mut monitor = Monitor::begin(&root, wish)?;
    let mut output = Output::create(&wish.output).map_err(unwritten)?;
    monitor.head(&root, wish);
    output.append(&monitor.lines).map_err(unwritten)?;
    // Whoever started it may have gone already, and its input then ends.
    let _ = io::stdout().write_all(b"monitoring\n").and_then(|()| io::stdout().flush());
    let (cpu_ns, began_ns) = (own_cpu_ns(), monotonic_ns());
    let ticks = Ticks { start_ns: monitor.start_ns, every_ns: wish.every_ns };
    loop {
        let came =
            wait.until(ticks.next(monotonic_ns())).map_err(|error| (format!("waiting: {error}"), 5))?;
        let now_ns = monotonic_ns();
        let ns = now_ns - monitor.start_ns;
        if came == Came::Time || ns >= monitor.read_ns + TOO_SHORT {
            monitor.sample(ns);
            output.append(&monitor.lines).map_err(unwritten)?;
            monitor.walls.add(monotonic_ns() - now_ns);
        }
        if came == Came::End {
            break;
        }
    }
    let (cpu_ns, elapsed_ns) = (own_cpu_ns() - cpu_ns, monotonic_ns() - began_ns);
    monitor.end(cpu_ns, elapsed_ns);
    output.append(&monitor.lines).map_err(unwritten)
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{path}: is there already; give a name that is not"),
        io::ErrorKind::StorageFull => {
            format!("{path}: no space left: monitoring ends here, what was written is whole")
        }
        _ => format!("{path}: cannot be written: {error}"),
    }
}

impl Monitor {
    /// Opens all that is read, and reads it for the first time.
    fn begin(root: &Root, wish: &Wish) -> Result<Monitor, Failed> {
        let nothing = |error: io::Error| {
            let place = root.path("proc/stat");
            (
                format!(
                    "{}: {error}; the monitor needs the kernel's /proc, or a --root with one",
                    place.display()
                ),
                5,
            )
        };
        let messages = Messages::open(root);
        let mut sampler = Sampler::open(root).map_err(nothing)?;
        let top = match wish.top {
            0 => None,
            most => Some(
                Top::open(root, most, sampler.forks(), etude_clock::read(libc::CLOCK_BOOTTIME))
                    .map_err(nothing)?,
            ),
        };
        // To open all that took milliseconds, which are not of the first interval.
        let start_ns = monotonic_ns();
        sampler.read();
        let mut monitor = Monitor {
            start_ns,
            sampler,
            top,
            messages,
            lines: Vec::with_capacity(64 << 10),
            walls: Walls::default(),
            samples: 0,
            read_ns: 0,
            suspended_ns: etude_clock::read(libc::CLOCK_BOOTTIME).saturating_sub(monotonic_ns()),
        };
        if let Some(top) = &mut monitor.top {
            top.list(monitor.sampler.forks(), etude_clock::read(libc::CLOCK_BOOTTIME), None);
        }
        Ok(monitor)
    }

    fn head(&mut self, root: &Root, wish: &Wish) {
        let since_start_ns = monotonic_ns() - self.start_ns;
        let boot_id = root.text("proc/sys/kernel/random/boot_id");
        let boot_id = boot_id.map(|text| crate::text::name(text.trim_ascii()));
        let head = Head {
            start: &etude_launch::time_of_day::utc(realtime_ns() - since_start_ns),
            start_ns: self.start_ns,
            boot_id: boot_id.as_deref(),
            every_ns: wish.every_ns,
            top: wish.top,
            cpus: self.sampler.cpus(),
        };
        lines::head(&mut self.lines, &head);
        self.columns();
    }

    fn columns(&mut self) {
        let mut absent = self.sampler.absent();
        absent.extend(self.messages.as_ref().err().map(|why| ("kernel".to_owned(), why.clone())));
        let cpus = self.sampler.cpus_changed().then(|| self.sampler.cpus());
        lines::columns(&mut self.lines, self.sampler.columns(), &absent, cpus);
    }

    /// Reads all; the lines are what is to be written.
    fn sample(&mut self, ns: u64) {
        self.lines.clear();
        let suspended_ns = etude_clock::read(libc::CLOCK_BOOTTIME).saturating_sub(monotonic_ns());
        if self.sampler.read() {
            self.columns();
        }
        let (forks, busy_s) = (self.sampler.forks(), self.sampler.busy_s());
        let top =
            self.top.as_mut().map(|top| top.list(forks, etude_clock::read(libc::CLOCK_BOOTTIME), busy_s));
        self.said(ns);
        let slept_ns = suspended_ns.saturating_sub(self.suspended_ns);
        // The two clocks are not read at once: a little is that, and no sleep.
        let slept_ns = if slept_ns < LEAST_SLEEP { 0 } else { slept_ns };
        lines::sample(&mut self.lines, ns, slept_ns, self.sampler.values(), top.as_ref());
        if slept_ns > 0 {
            self.suspended_ns = suspended_ns;
        }
        self.samples += 1;
        self.read_ns = ns;
    }

    /// What the kernel said within the interval. Its own clock drifts from the monotonic one, by seconds after weeks.
    fn said(&mut self, ns: u64) {
        let Ok(messages) = &mut self.messages else { return };
        let (kept, dropped) = messages.read();
        // Later messages of the same sample may be younger than its first reading.
        let now_ns = ns.max(monotonic_ns() - self.start_ns);
        for message in kept {
            let at_ns = message.us.unsigned_abs().saturating_mul(1000).saturating_sub(self.start_ns);
            lines::message(&mut self.lines, at_ns.clamp(self.read_ns, now_ns), &message);
        }
        if dropped > 0 {
            lines::dropped(&mut self.lines, now_ns, dropped);
        }
    }

    fn end(&mut self, cpu_ns: u64, elapsed_ns: u64) {
        self.lines.clear();
        let (wall_ns_median, wall_ns_max) = (self.walls.median(), self.walls.most());
        let cost = Cost { cpu_ns, elapsed_ns, wall_ns_median, wall_ns_max };
        lines::end(&mut self.lines, monotonic_ns() - self.start_ns, self.samples, &cost);
    }
}
