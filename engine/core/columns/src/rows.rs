//! Rows of measurements as columns: of a chunk of lines, with codes of the worker that parsed them.

/// Columns of whole numbers; null is -1.
pub const WHOLE: [&str; 8] = ["trial", "block", "order", "worker", "sitting", "start_ns", "inner", "status"];
/// Columns of texts' codes; null is 0.
pub const CODED: [&str; 6] = ["test", "host", "boot", "command", "why", "error"];
/// The dictionary of reasons why a metric has no value, after those of `CODED`.
pub const REASON: usize = CODED.len();

pub mod flag {
    //! Bits of the column `flags`.
    pub const KEPT: u8 = 1;
    pub const TIMED_OUT: u8 = 2;
    pub const CANCELLED: u8 = 4;
    /// `status` is 128 + a signal.
    pub const SIGNALLED: u8 = 8;
    pub const WINDOWS: u8 = 16;
    /// The line has members that no column holds.
    pub const UNCOMMON: u8 = 32;
}

/// What the members of one line say.
#[derive(Clone, Copy, Default)]
pub struct Row {
    pub whole: [i64; WHOLE.len()],
    pub codes: [u32; CODED.len()],
    pub flags: u8,
    /// How many lines its trial has, if it says so.
    pub lines: Option<u64>,
}

/// One metric in one unit, joined in one way.
pub struct Metric {
    pub name: String,
    /// Of the name, among those of the worker.
    pub code: u32,
    pub unit: String,
    /// How workers and commands are to be joined; empty where the line does not say.
    pub join: String,
    /// NaN where there is none; shorter than the rows where the last ones have none.
    pub values: Vec<f64>,
}

/// The rows of a chunk.
#[derive(Default)]
pub struct Rows {
    pub count: usize,
    pub whole: [Vec<i64>; WHOLE.len()],
    pub codes: [Vec<u32>; CODED.len()],
    pub flags: Vec<u8>,
    pub end: End,
}

/// The trial that the last lines are of.
#[derive(Clone, Copy, Default)]
pub struct End {
    pub trial: i64,
    /// How many of the last lines are of it.
    pub lines: u64,
    /// How many it has, by its last line.
    pub expected: Option<u64>,
}

impl End {
    /// The end after one more line.
    pub fn take(&mut self, trial: i64, expected: Option<u64>) {
        self.lines = if self.trial == trial { self.lines + 1 } else { 1 };
        (self.trial, self.expected) = (trial, expected);
    }

    /// The end after more lines, `count` in number, of which `next` is the end.
    pub fn join(&mut self, next: &End, count: usize) {
        let all = next.lines == count as u64;
        let before = if all && self.trial == next.trial { self.lines } else { 0 };
        *self = End { lines: before + next.lines, ..*next };
    }

    /// How many lines at the end are of a trial that lacks some; `workers` is how many it has unless it says so.
    pub fn partial(&self, workers: Option<u64>) -> u64 {
        match self.expected.or(workers) {
            Some(expected) if expected > 0 => self.lines % expected,
            _ => 0,
        }
    }
}

impl Rows {
    /// Adds a row.
    pub fn push(&mut self, row: &Row) {
        for (column, value) in self.whole.iter_mut().zip(row.whole) {
            column.push(value);
        }
        for (column, code) in self.codes.iter_mut().zip(row.codes) {
            column.push(code);
        }
        self.flags.push(row.flags);
        self.end.take(row.whole[0], row.lines);
        self.count += 1;
    }

    /// Forgets all rows, and keeps their memory.
    pub fn clear(&mut self) {
        self.whole.iter_mut().for_each(Vec::clear);
        self.codes.iter_mut().for_each(Vec::clear);
        self.flags.clear();
        (self.count, self.end) = (0, End::default());
    }
}
