//! What happened in a window, and how it is told: one JSON object a line (docs/formats.md, "Windows"; docs/load.md).

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

/// Of response times.
const DIGITS: u8 = 3;
/// Longer ones count as this, an hour.
const HIGHEST_NS: u64 = 3600 * etude_clock::SECOND;

/// Why a request has no good answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection.
    Connect,
    /// The connection ended before the answer did.
    Closed,
    /// An answer with another status than 2xx or 3xx.
    Status,
    /// No answer of HTTP.
    Malformed,
    /// Not within its time.
    Timeout,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Failures {
    pub connect: u64,
    pub closed: u64,
    pub status: u64,
    pub malformed: u64,
    pub timeout: u64,
}

impl Failures {
    pub fn count(&mut self, why: Failure) {
        *match why {
            Failure::Connect => &mut self.connect,
            Failure::Closed => &mut self.closed,
            Failure::Status => &mut self.status,
            Failure::Malformed => &mut self.malformed,
            Failure::Timeout => &mut self.timeout,
        } += 1;
    }
}

/// Of one window.
pub(crate) struct Tally {
    pub offered: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    latency: Histogram<u64>,
    latency_s: f64,
    lateness: Histogram<u64>,
}

impl Tally {
    pub fn new() -> Tally {
        let empty = |digits| Histogram::new_with_bounds(1, HIGHEST_NS, digits).expect("good bounds");
        Tally {
            offered: 0,
            started: 0,
            completed: 0,
            failed: 0,
            latency: empty(DIGITS),
            latency_s: 0.0,
            lateness: empty(2),
        }
    }

    pub fn answered(&mut self, ns: u64) {
        self.completed += 1;
        self.latency.saturating_record(ns);
        self.latency_s += ns as f64 / 1e9;
    }

    /// A request that could go at its time went so much later.
    pub fn late(&mut self, ns: u64) {
        self.lateness.saturating_record(ns);
    }

    #[cfg(test)]
    pub fn add(&mut self, other: &Tally) {
        self.completed += other.completed;
        self.latency.add(&other.latency).expect("of the same bounds");
    }

    /// How many took longer.
    #[cfg(test)]
    pub fn slower_than(&self, ns: u64) -> u64 {
        self.latency.len() - self.latency.count_between(0, ns)
    }

    fn shown(&self, serializer: &mut V2DeflateSerializer, duration_s: f64) -> Shown {
        let some = self.completed > 0;
        Shown {
            duration_s,
            offered: self.offered,
            started: self.started,
            completed: self.completed,
            failed: self.failed,
            mean_s: some.then(|| self.latency_s / self.completed as f64),
            latency: some.then(|| {
                let mut bytes = Vec::new();
                serializer.serialize(&self.latency, &mut bytes).expect("memory takes it");
                STANDARD.encode(bytes)
            }),
        }
    }
}

/// The members of every workload's windows.
#[derive(Serialize)]
struct Shown {
    duration_s: f64,
    offered: u64,
    started: u64,
    completed: u64,
    failed: u64,
    mean_s: Option<f64>,
    latency: Option<String>,
}

/// The generator's own figures.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Own {
    /// Of one CPU.
    pub cpu: f64,
    /// Sent and not answered, at the end.
    pub outstanding: usize,
    /// Due and not sent, at the end.
    pub waiting: usize,
}

/// What is told.
pub(crate) enum Line {
    Window { duration_s: f64, tally: Box<Tally>, own: Own },
    Summary { summary: Summary, drained: Option<(f64, Box<Tally>)> },
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Summary {
    /// `whole` or `early`.
    pub ended: &'static str,
    pub asked_rate: f64,
    pub duration_s: f64,
    pub offered: u64,
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    /// Without an answer when draining ended.
    pub abandoned: u64,
    pub failures: Failures,
    pub cpu: f64,
    pub drained_s: f64,
}

#[derive(Serialize)]
struct ShownWindow {
    #[serde(flatten)]
    of_all: Shown,
    lateness_p99_s: Option<f64>,
    #[serde(flatten)]
    own: Own,
}

#[derive(Serialize)]
struct ShownSummary {
    summary: Summary,
    lateness_p99_s: Option<f64>,
    drained: Option<Shown>,
}

/// Writes lines as they come, each at once; a thread of its own, so that whoever reads slowly delays no request.
///
/// # Errors
/// Nobody reads.
pub(crate) fn write(lines: &Receiver<Line>, mut out: impl Write) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut lateness = Tally::new().lateness;
    for line in lines {
        let mut text = match line {
            Line::Window { duration_s, tally, own } => {
                lateness.add(&tally.lateness).expect("of the same bounds");
                let of_all = tally.shown(&mut serializer, duration_s);
                serde_json::to_string(&ShownWindow { of_all, lateness_p99_s: p99_s(&tally.lateness), own })?
            }
            Line::Summary { summary, drained } => {
                let drained = drained.map(|(duration_s, tally)| tally.shown(&mut serializer, duration_s));
                let lateness_p99_s = p99_s(&lateness);
                serde_json::to_string(&ShownSummary { summary, lateness_p99_s, drained })?
            }
        };
        text.push('\n');
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

fn p99_s(of: &Histogram<u64>) -> Option<f64> {
    (!of.is_empty()).then(|| of.value_at_quantile(0.99) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_window_is_told_with_its_histogram_and_the_exact_mean() {
        let mut tally = Tally::new();
        for ns in [1_000_000, 3_000_001] {
            tally.answered(ns);
        }
        (0..98).for_each(|_| tally.late(10_000));
        (0..2).for_each(|_| tally.late(50_000));
        (tally.offered, tally.started, tally.failed) = (4, 3, 1);
        let (sender, receiver) = std::sync::mpsc::channel();
        let own = Own { cpu: 0.125, outstanding: 1, waiting: 0 };
        sender.send(Line::Window { duration_s: 1.0, tally: Box::new(tally), own }).unwrap();
        let own = Own { cpu: 0.0, outstanding: 0, waiting: 0 };
        sender.send(Line::Window { duration_s: 0.5, tally: Box::new(Tally::new()), own }).unwrap();
        drop(sender);
        let mut out = Vec::new();
        write(&receiver, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let histogram: Histogram<u64> = {
            let bytes = STANDARD.decode(lines[0]["latency"].as_str().unwrap()).unwrap();
            Deserializer::new().deserialize(&mut &bytes[..]).unwrap()
        };
        assert_eq!((histogram.len(), histogram.equivalent(histogram.max(), 3_000_001)), (2, true));
        assert!((lines[0]["mean_s"].as_f64().unwrap() - 0.002_000_000_5).abs() < 1e-12);
        assert!((lines[0]["lateness_p99_s"].as_f64().unwrap() / 50e-6 - 1.0).abs() < 0.01);
        assert_eq!((&lines[0]["offered"], &lines[0]["failed"]), (&4.into(), &1.into()));
        assert_eq!((&lines[0]["cpu"], &lines[0]["outstanding"]), (&0.125.into(), &1.into()));
        assert_eq!((&lines[1]["mean_s"], &lines[1]["latency"]), (&Value::Null, &Value::Null));
    }
}
