//! One launch request: one trial, or many.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::time::{Duration, Instant};

use etude_launch::{Control, Launcher, Options, Prepared, clock};
use etude_protocol::{Barrier, Launch, Leftovers, Line, Release, Repeat, Reply, Row, Stdio};

use crate::input::Input;
use crate::journal::Journal;
use crate::meters::Meters;
use crate::rows;

const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Trials of a repetition after which our own memory does not grow any more.
const SETTLED_TRIALS: u64 = 3;

/// Longest tail of a captured stream that is kept, B.
const MOST_CAPTURE_BYTES: usize = 64 << 20;

/// What starts trials, and what measures them.
pub(crate) struct Engine {
    pub launcher: Launcher,
    pub meters: Meters,
}

impl Engine {
    /// Answers one launch.
    pub fn launch(&mut self, launch: &Launch, input: &mut Input, output: &mut Output) -> io::Result<()> {
        let journal = check(launch).and_then(|()| {
            self.meters.prepare(launch)?;
            launch.repeat.as_ref().map(|repeat| Journal::open(&repeat.journal)).transpose()
        });
        let journal = match journal {
            Ok(journal) => journal,
            Err(error) => return output.send(&Reply::Error { id: launch.id.into(), error }),
        };
        let mut prepared = self.launcher.prepare(&launch.workers, options(launch));
        let sent = match (&launch.repeat, journal) {
            (Some(repeat), Some(journal)) => {
                let (done, stopped) = self.repeat(launch, repeat, journal, &mut prepared, input, output)?;
                output.send(&Reply::Done { id: launch.id, done, stopped })
            }
            _ => {
                let rows = self.trial(&mut prepared, false, &mut Requester { id: launch.id, input, output });
                output.send(&Reply::Rows { id: launch.id, rows })
            }
        };
        self.launcher.retire(prepared);
        sent
    }

    /// One trial. All that measures it as a whole is read just before and just after.
    fn trial(&mut self, prepared: &mut Prepared, follows: bool, control: &mut dyn Control) -> Vec<Row> {
        self.meters.start(follows);
        let outcome = self.launcher.run(prepared, control);
        let reading = self.meters.stop();
        rows::rows(outcome, &reading)
    }

    /// Trials until all are done, one fails, or somebody stops them: how many are on disk, and why no more.
    fn repeat(
        &mut self,
        launch: &Launch,
        repeat: &Repeat,
        mut journal: Journal,
        prepared: &mut Prepared,
        input: &mut Input,
        output: &mut Output,
    ) -> io::Result<(u64, Option<String>)> {
        let head = repeat.head.iter().filter(|(name, _)| !Line::OWN.contains(&name.as_str()));
        let head = head.map(|(name, value)| (name.clone(), value.clone())).collect();
        let began = Instant::now();
        let late = || repeat.within_s.is_some_and(|most| began.elapsed().as_secs_f64() >= most);
        let mut told = began;
        let mut lines = Vec::new();
        let mut done = 0;
        let mut stopped = None;
        while done < repeat.count && stopped.is_none() && (done == 0 || !late()) {
            if input.cancelled() {
                stopped = Some("cancelled".to_owned());
                break;
            }
            let rows = self.trial(prepared, done >= SETTLED_TRIALS, input);
            let kept = rows::succeeded(&rows, launch.accept);
            let why = (!kept).then(|| if input.cancelled() { "cancelled" } else { "failed" });
            lines.clear();
            for row in &rows {
                let (trial, block) = (repeat.trial.wrapping_add(done), repeat.block.wrapping_add(done));
                serde_json::to_writer(&mut lines, &Line { head: &head, trial, block, kept, why, row })?;
                lines.push(b'\n');
            }
            stopped = why.map(str::to_owned);
            match journal.append(&lines) {
                Ok(()) => done += 1,
                Err(error) => stopped = Some(error),
            }
            if told.elapsed() >= PROGRESS_EVERY && stopped.is_none() {
                output.send(&Reply::Progress { id: launch.id, progress: done })?;
                told = Instant::now();
            }
        }
        Ok((done, journal.sync().err().or(stopped)))
    }
}

/// Whoever asked for a launch, while it is under way.
struct Requester<'a> {
    id: u64,
    input: &'a mut Input,
    output: &'a mut Output,
}

impl Control for Requester<'_> {
    fn fds(&self) -> [RawFd; 2] {
        self.input.fds()
    }

    fn look(&mut self) {
        self.input.look();
    }

    fn cancelled(&self) -> bool {
        self.input.cancelled()
    }

    fn ready(&mut self, workers: usize) {
        // Nobody reads any more: the end of the input will say so.
        let _ = self.output.send(&Reply::Ready { id: self.id, ready: workers });
    }

    fn take_release(&mut self) -> Option<u64> {
        self.input.take_release(self.id)
    }
}

/// The engine's standard output, without the standard library's line buffer.
pub(crate) struct Output {
    stdout: ManuallyDrop<File>,
    line: Vec<u8>,
}

impl Output {
    pub fn new() -> Output {
        // SAFETY: descriptor 1 is open from the start of a Rust program, and ManuallyDrop leaves it so.
        let stdout = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
        Output { stdout, line: Vec::new() }
    }

    /// Sends one line.
    pub fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, reply)?;
        self.line.push(b'\n');
        self.stdout.write_all(&self.line)
    }
}

fn options(launch: &Launch) -> Options {
    Options {
        timeout_ns: launch.timeout_s.map(clock::from_seconds),
        grace_ns: clock::from_seconds(launch.grace_s),
        inner: launch.inner,
        capture_bytes: launch.capture_bytes,
        keep_leftovers: launch.leftovers == Leftovers::Keep,
        inside: launch.barrier == Barrier::Inside,
        told: launch.release == Release::Told,
    }
}

/// What can be said to be wrong of a request as a whole.
fn check(launch: &Launch) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("request: {what}"));
    if launch.workers.is_empty() {
        return wrong("workers: empty; expected at least one");
    }
    if launch.inner == 0 {
        return wrong("inner: 0; expected at least 1");
    }
    if launch.inner > 1 && launch.workers.len() > 1 {
        return wrong("inner: more than 1 needs exactly one worker; use one worker, or inner 1");
    }
    if launch.release == Release::Told && (launch.inner > 1 || launch.repeat.is_some()) {
        return wrong("release: told is for one launch per trial; expected inner 1 and no repeat");
    }
    if launch.timeout_s.is_some_and(|timeout| timeout <= 0.0) {
        return wrong("timeout_s: not positive; expected seconds, or null for no limit");
    }
    if launch.grace_s < 0.0 {
        return wrong("grace_s: negative; expected seconds");
    }
    if launch.capture_bytes > MOST_CAPTURE_BYTES {
        return wrong(&format!("capture_bytes: expected at most {MOST_CAPTURE_BYTES}; use a file for more"));
    }
    for (index, worker) in launch.workers.iter().enumerate() {
        for (name, stream) in [("stdin", &worker.stdin), ("stdout", &worker.stdout)] {
            if *stream == Stdio::Inherit {
                let advice = "expected null, capture (stdout only) or a file";
                return wrong(&format!("workers[{index}].{name}: inherit is serve's own pipe; {advice}"));
            }
        }
        if worker.stdin == Stdio::Capture {
            return wrong(&format!("workers[{index}].stdin: cannot be captured; expected null or a file"));
        }
        if worker.argv.is_empty() {
            return wrong(&format!("workers[{index}].argv: empty; expected at least the program"));
        }
    }
    Ok(())
}
