//! What the chunks of all workers become together: they take their turns in the order of the lines.

use std::collections::HashMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::chunks::{Chunk, Source};
use crate::file::{Dictionary, FileEnd, Index, MetricPlace, Out, Place, WrongLine};
use crate::line::Lines;
use crate::rows::{CODED, End, REASON, WHOLE};
use crate::texts::Texts;

/// More metrics, or more values, than a table can hold.
pub const MOST_METRICS: usize = 10_000;
pub const MOST_CELLS: u64 = 1_000_000_000;
/// Columns before those of metrics: whole numbers, codes, flags.
const FIRST_METRIC: usize = WHOLE.len() + CODED.len() + 1;

/// A chunk that was parsed, or what was wrong.
pub enum Parsed {
    /// Whether the file's last line was cut short.
    Rows {
        torn: bool,
    },
    /// A line of the chunk, from 1; where it begins in the file; what is wrong with it.
    Wrong {
        line: u64,
        at: u64,
        reason: String,
    },
    Unreadable(io::Error),
}

pub struct Store<'a> {
    sources: &'a [Source],
    pub out: Out,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The chunk whose turn it is.
    turn: usize,
    /// How many have been written.
    written: usize,
    rows: u64,
    texts: [Texts; CODED.len() + 1],
    metrics: Vec<Metric>,
    known: HashMap<(String, String, String), u32>,
    files: Vec<FileEnd>,
    /// Of the file whose turn it is: its lines so far, where they end, and whether its last was cut short.
    lines: u64,
    end: End,
    torn: bool,
    wrong: Option<WrongLine>,
    failed: Option<io::Error>,
}

struct Metric {
    name: String,
    unit: String,
    join: String,
    /// The row from which on the column was written.
    first: u64,
    reasons: HashMap<u32, u32>,
}

/// What a worker's codes are called in the store.
#[derive(Default)]
pub struct Translation {
    texts: [Vec<u32>; CODED.len() + 1],
    metrics: Vec<u32>,
}

/// Where a chunk's rows go.
pub struct Turn {
    row: u64,
    /// Fewer than were parsed where the last trial of a file lacks some.
    rows: usize,
    metrics: usize,
}

impl<'a> Store<'a> {
    pub fn new(sources: &'a [Source], out: Out) -> Self {
        let state = State { files: vec![FileEnd::default(); sources.len()], ..State::default() };
        Store { sources, out, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no worker panics")
    }

    /// Waits until it is this chunk's turn, and makes room for its rows. None where all is over.
    pub fn take(
        &self,
        number: usize,
        chunk: &Chunk,
        parsed: Parsed,
        lines: &Lines,
        known: &mut Translation,
    ) -> Option<Turn> {
        let waiting = |state: &mut State| state.turn != number && !state.is_over();
        let mut state = self.changed.wait_while(self.lock(), waiting).expect("no worker panics");
        if state.is_over() {
            return None;
        }
        let torn = match parsed {
            Parsed::Rows { torn } => torn,
            Parsed::Wrong { line, at, reason } => {
                let line = state.lines + line;
                state.wrong = Some(WrongLine { file: chunk.file, line, at, reason, errno: None });
                self.changed.notify_all();
                return None;
            }
            Parsed::Unreadable(error) => {
                let errno = error.raw_os_error();
                let reason = error.to_string();
                state.wrong = Some(WrongLine { file: chunk.file, line: 0, at: 0, reason, errno });
                self.changed.notify_all();
                return None;
            }
        };
        state.torn |= torn;
        let mut turn = state.add(lines, known);
        if state.is_too_much(chunk.file) {
            self.changed.notify_all();
            return None;
        }
        if chunk.is_last() {
            let partial = state.end_file(chunk.file, self.sources[chunk.file].workers);
            let own = (turn.rows as u64).min(partial);
            turn.rows -= own as usize;
            if partial > own {
                // Rows of chunks before are written over: not before those have been written.
                let writing = |state: &mut State| state.written < number && !state.is_over();
                state = self.changed.wait_while(state, writing).expect("no worker panics");
            }
        }
        state.turn += 1;
        drop(state);
        self.changed.notify_all();
        Some(turn)
    }

    /// Writes a chunk's rows to where its turn says.
    pub fn write(&self, turn: &Turn, lines: &Lines, known: &Translation, bytes: &mut Vec<u8>) {
        let result = self.write_columns(turn, lines, known, bytes);
        let mut state = self.lock();
        state.written += 1;
        if let Err(error) = result {
            state.failed = Some(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn write_columns(
        &self,
        turn: &Turn,
        lines: &Lines,
        known: &Translation,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        let rows = &lines.rows;
        for (column, values) in rows.whole.iter().enumerate() {
            fill(bytes, values[..turn.rows].iter().map(|value| value.to_ne_bytes()));
            self.out.write(column, turn.row, 8, bytes)?;
        }
        for (index, codes) in rows.codes.iter().enumerate() {
            let names = &known.texts[index];
            fill(bytes, codes[..turn.rows].iter().map(|&code| names[code as usize].to_ne_bytes()));
            self.out.write(WHOLE.len() + index, turn.row, 4, bytes)?;
        }
        self.out.write(FIRST_METRIC - 1, turn.row, 1, &rows.flags[..turn.rows])?;
        let mut there = vec![false; turn.metrics];
        for (metric, &name) in lines.metrics.found.iter().zip(&known.metrics) {
            fill(bytes, metric.values[..turn.rows].iter().map(|value| value.to_ne_bytes()));
            self.out.write(FIRST_METRIC + name as usize, turn.row, 8, bytes)?;
            there[name as usize] = true;
        }
        for (name, _) in there.iter().enumerate().filter(|(_, there)| !**there) {
            self.out.write_nulls(FIRST_METRIC + name, turn.row, turn.rows as u64)?;
        }
        Ok(())
    }

    /// Writes what is not of one chunk. `wrong`: why there was nothing to read.
    pub fn finish(self, wrong: Option<WrongLine>) -> io::Result<()> {
        let state = self.state.into_inner().expect("no worker panics");
        if let Some(error) = state.failed {
            return Err(error);
        }
        for (number, metric) in state.metrics.iter().enumerate() {
            self.out.write_nulls(FIRST_METRIC + number, 0, metric.first)?;
        }
        let columns = FIRST_METRIC + state.metrics.len();
        self.out.finish(columns, &state.index(&self.out, wrong))
    }
}

/// The bytes of values, one after the other.
fn fill<const WIDTH: usize>(bytes: &mut Vec<u8>, values: impl ExactSizeIterator<Item = [u8; WIDTH]>) {
    bytes.clear();
    bytes.reserve(WIDTH * values.len());
    values.for_each(|value| bytes.extend_from_slice(&value));
}

impl State {
    fn is_over(&self) -> bool {
        self.wrong.is_some() || self.failed.is_some()
    }

    /// Makes room for a worker's rows, and learns its new texts and metrics.
    fn add(&mut self, lines: &Lines, known: &mut Translation) -> Turn {
        for ((texts, names), all) in lines.texts.iter().zip(&mut known.texts).zip(&mut self.texts) {
            if names.is_empty() {
                names.push(0);
            }
            for text in &texts.all()[names.len() - 1..] {
                names.push(all.code(text));
            }
        }
        for metric in &lines.metrics.found[known.metrics.len()..] {
            let next = u32::try_from(self.metrics.len()).expect("fewer metrics than codes");
            let (name, unit, join) = (metric.name.clone(), metric.unit.clone(), metric.join.clone());
            let code = *self.known.entry((name.clone(), unit.clone(), join.clone())).or_insert(next);
            if code == next {
                self.metrics.push(Metric { name, unit, join, first: self.rows, reasons: HashMap::new() });
            }
            known.metrics.push(code);
        }
        for &(metric, test, reason) in &lines.reasons {
            let metric = &mut self.metrics[known.metrics[metric as usize] as usize];
            let test = known.texts[0][test as usize];
            metric.reasons.entry(test).or_insert(known.texts[REASON][reason as usize]);
        }
        let turn = Turn { row: self.rows, rows: lines.rows.count, metrics: self.metrics.len() };
        self.rows += turn.rows as u64;
        self.lines += turn.rows as u64;
        if turn.rows > 0 {
            self.end.join(&lines.rows.end, turn.rows);
        }
        turn
    }

    fn is_too_much(&mut self, file: usize) -> bool {
        let metrics = self.metrics.len();
        if metrics > MOST_METRICS || metrics as u64 * self.rows > MOST_CELLS {
            let reason = "too much".to_owned();
            self.wrong = Some(WrongLine { file, line: 0, at: 0, reason, errno: None });
        }
        self.wrong.is_some()
    }

    /// Takes back the rows of a last trial that lacks some; how many they are.
    fn end_file(&mut self, file: usize, workers: Option<u64>) -> u64 {
        let left_out = self.end.partial(workers);
        self.rows -= left_out;
        self.files[file] = FileEnd { rows: self.lines - left_out, torn: self.torn, left_out };
        (self.lines, self.end, self.torn) = (0, End::default(), false);
        left_out
    }

    fn index(self, out: &Out, wrong: Option<WrongLine>) -> Index {
        let names = WHOLE.iter().map(|name| (*name, "i8")).chain(CODED.iter().map(|name| (*name, "u4")));
        let place = |(column, (name, kind))| Place { name, kind, at: out.place(column) };
        let metric = |(number, metric): (usize, Metric)| {
            let mut reasons: Vec<_> = metric.reasons.into_iter().collect();
            reasons.sort_unstable();
            let at = out.place(FIRST_METRIC + number);
            MetricPlace { name: metric.name, unit: metric.unit, join: metric.join, at, reasons }
        };
        let called = CODED.into_iter().chain(["reason"]);
        Index {
            rows: self.rows,
            columns: names.chain([("flags", "u1")]).enumerate().map(place).collect(),
            metrics: self.metrics.into_iter().enumerate().map(metric).collect(),
            texts: called
                .zip(self.texts)
                .map(|(name, texts)| Dictionary { name, texts: texts.into_all() })
                .collect(),
            files: self.files,
            wrong: wrong.or(self.wrong),
        }
    }
}
