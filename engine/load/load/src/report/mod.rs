//! The reports of a load generator, one line each: a window as it ends, and the summary at the end.

pub(crate) mod progress;
pub(crate) mod summary;
pub(crate) mod tally;
pub(crate) mod text_report;
pub(crate) mod window_writer;

use etude_clock::seconds;
use serde::Serialize;

use crate::report::summary::Summary;
use crate::report::tally::Tally;

/// A line of the report.
pub(crate) enum Line {
    Window { duration_s: f64, tally: Box<Tally>, own: Own },
    Summary { summary: Box<Summary>, drained: Option<(f64, Box<Tally>)> },
}

/// The generator's own figures.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Own {
    /// CPU time of the generator, as a share of one CPU.
    pub cpu: f64,
    /// Sent and not answered, at the end.
    pub outstanding: usize,
    /// Due and not sent, at the end.
    pub waiting: usize,
    /// For how long these and the outstanding had been due by then, summed; None where single ones are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_s: Option<f64>,
    /// Speed that is asked of a roll, in speeds of its original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple: Option<f64>,
}

impl Own {
    /// `waited_s` of requests that were due at these instants.
    pub fn waited_s(due_ns: impl Iterator<Item = u64>, now_ns: u64) -> f64 {
        due_ns.map(|due_ns| seconds(now_ns.saturating_sub(due_ns))).sum()
    }
}
