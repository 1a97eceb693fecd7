//! Perf events of all that a trial runs.
//!
//! Each event is opened once, on the launcher itself: inherited by what it starts, and enabled there on exec. The
//! launcher never executes anything, so that its own work is not counted. A trial's count is the difference of two
//! readings; the kernel adds a child's count to its parent's before the parent can reap it.
//!
//! [`Around`] counts otherwise: what this thread itself does, and what it starts, between two points of it.

mod around;
mod event;

pub use around::{Around, SETS};

use std::fs::File;

use event::{EVENTS, Event, Opened, open, open_anchor};

/// What one event counted in a trial, or why it could not be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// Name of the metric.
    pub name: &'static str,
    /// Its unit: `s` for the task clock, else `1`.
    pub unit: &'static str,
    /// The count, scaled to the whole trial if the event shared its hardware with others.
    pub value: Result<f64, String>,
}

/// All counts of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counts {
    /// In the order in which they are reported.
    pub counts: Vec<Count>,
    /// What a reader should know of them.
    pub notes: Vec<&'static str>,
}

/// Open events of this thread's descendants.
pub struct Counters {
    opened: Vec<Result<Running, String>>,
    user_only: bool,
    _anchor: Result<File, String>,
}

struct Running {
    file: File,
    before: Result<Raw, String>,
}

/// What the kernel gives on reading an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Raw {
    count: u64,
    /// ns
    enabled: u64,
    /// ns
    running: u64,
}

/// For each event, null if it can be counted here, else why not.
pub fn availability() -> Vec<(&'static str, Option<String>)> {
    EVENTS.iter().map(|event| (event.name, open(event).err())).collect()
}

impl Counters {
    /// Opens all events that can be counted here, or none where that would be software events alone: the resource
    /// usage of a reaped process has most of what they count, at no cost. `EVENTS` begins with the hardware's.
    pub fn open_with_hardware() -> Counters {
        let counters = Counters::open();
        let has_hardware =
            EVENTS.iter().zip(&counters.opened).any(|(event, opened)| event.hardware() && opened.is_ok());
        if has_hardware { counters } else { counters.without_software() }
    }

    /// Only the hardware events, each with the reason why it is not counted.
    fn without_software(mut self) -> Counters {
        let hardware = EVENTS.iter().filter(|event| event.hardware()).count();
        self.opened.truncate(hardware);
        Counters { _anchor: Err(String::new()), user_only: false, ..self }
    }

    /// Opens all events that can be counted here.
    pub fn open() -> Counters {
        let mut user_only = false;
        let running = |event: &Event| {
            let Opened { file, user_only: only } = open(event)?;
            user_only |= only;
            Ok(Running { file, before: Err("not started".to_owned()) })
        };
        let mut opened: Vec<_> = EVENTS.iter().map(running).collect();
        let anchor = open_anchor().map_err(|error| format!("the events' anchor cannot be opened: {error}"));
        if let Err(why) = &anchor {
            // Without it, counts would become 0 without notice.
            opened.iter_mut().filter(|event| event.is_ok()).for_each(|event| *event = Err(why.clone()));
        }
        Counters { opened, user_only, _anchor: anchor }
    }

    /// Reads all events before a trial.
    pub fn start(&mut self) {
        for running in self.opened.iter_mut().flatten() {
            running.before = Raw::read(&running.file);
        }
    }

    /// Reads all events after a trial, when all its processes are reaped. The reading is also the one before the next
    /// trial, if that follows at once: then [`start`](Self::start) can be left out.
    pub fn stop(&mut self) -> Counts {
        let mut result = Counts::default();
        let mut scaled = false;
        for (event, running) in EVENTS.iter().zip(&mut self.opened) {
            let raw = running.as_mut().map_err(|why| why.clone()).and_then(|running| {
                let after = Raw::read(&running.file);
                let before = std::mem::replace(&mut running.before, after.clone());
                Ok(after?.since(&before?))
            });
            scaled |= raw.as_ref().is_ok_and(|raw| raw.running < raw.enabled);
            let value = raw.and_then(Raw::scaled).map(|count| count * event.scale);
            result.counts.push(Count { name: event.name, unit: event.unit, value });
        }
        result.notes = notes(scaled, self.user_only);
        result
    }
}

/// What a reader should know of counts that were scaled, or are of user mode alone.
fn notes(scaled: bool, user_only: bool) -> Vec<&'static str> {
    let multiplexed = scaled.then_some("counters scaled, multiplexed");
    let user = user_only.then_some("some counters count user mode only (kernel.perf_event_paranoid)");
    multiplexed.into_iter().chain(user).collect()
}

impl Raw {
    fn read(mut file: &File) -> Result<Raw, String> {
        use std::io::Read;
        let mut bytes = [0; 24];
        file.read_exact(&mut bytes).map_err(|error| format!("event could not be read: {error}"))?;
        let field =
            |index: usize| bytes[8 * index..].first_chunk().map_or(0, |field| u64::from_ne_bytes(*field));
        Ok(Raw { count: field(0), enabled: field(1), running: field(2) })
    }

    fn since(self, before: &Raw) -> Raw {
        Raw {
            count: self.count.wrapping_sub(before.count),
            enabled: self.enabled.wrapping_sub(before.enabled),
            running: self.running.wrapping_sub(before.running),
        }
    }

    /// The count extrapolated to the time in which it should have run.
    fn scaled(self) -> Result<f64, String> {
        match (self.enabled, self.running) {
            (0, _) => Ok(self.count as f64),
            (_, 0) => Err("event never ran: others used its hardware all the time".to_owned()),
            (enabled, running) if running < enabled => {
                Ok(self.count as f64 * (enabled as f64 / running as f64))
            }
            _ => Ok(self.count as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_scaled_to_the_time_it_missed() {
        assert_eq!(Raw { count: 10, enabled: 100, running: 100 }.scaled(), Ok(10.0));
        assert_eq!(Raw { count: 10, enabled: 100, running: 25 }.scaled(), Ok(40.0));
        assert_eq!(Raw { count: 0, enabled: 0, running: 0 }.scaled(), Ok(0.0));
        assert!(Raw { count: 0, enabled: 100, running: 0 }.scaled().is_err());
    }

    #[test]
    fn descendants_are_counted_and_we_are_not() {
        let mut counters = Counters::open();
        counters.start();
        let mut idle = 0u64;
        (0..2_000_000u64).for_each(|step| idle = std::hint::black_box(idle ^ step));
        let nothing = counters.stop();
        counters.start();
        let status = std::process::Command::new("sh").args(["-c", "sh -c :; :"]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let something = counters.stop();
        for (nothing, something) in nothing.counts.iter().zip(&something.counts) {
            match &nothing.value {
                Ok(count) => assert_eq!(*count, 0.0, "{}", nothing.name),
                Err(why) => assert_eq!(something.value, Err(why.clone())),
            }
        }
        let task_clock =
            something.counts.iter().find(|count| count.name == "task_clock").map(|count| &count.value);
        assert!(
            matches!(task_clock, Some(Ok(seconds)) if (1e-5..10.0).contains(seconds))
                || !can_count("task_clock")
        );
    }

    #[test]
    fn counting_does_not_stop_after_some_trials() {
        let mut counters = Counters::open();
        for trial in 0..100 {
            counters.start();
            let commands = [0; 2].map(|_| std::process::Command::new("true").spawn());
            commands.into_iter().flatten().for_each(|mut command| drop(command.wait()));
            let faults = counters.stop().counts.into_iter().find(|count| count.name == "page_faults");
            let value = faults.map(|count| count.value);
            assert!(
                matches!(value, Some(Ok(count)) if count > 10.0) || !can_count("page_faults"),
                "{trial}: {value:?}"
            );
        }
    }

    fn can_count(name: &str) -> bool {
        availability().contains(&(name, None))
    }
}
