//! One measured command, for benchmark scripts: runs it and appends one block to the results.

mod block;
mod command;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

pub use block::Measured;
use command::Command;
pub use etude_launch::inside_barrier::VARIABLE as BARRIER;
use etude_launch::inside_barrier::{Member, NotPassed};
use etude_launch::resolve::Unrunnable;

/// What is measured and where the result goes.
#[derive(Debug, Clone)]
pub struct Request {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Results are appended to this file; None is standard error.
    pub output: Option<PathBuf>,
    /// One JSON object a line in place of a block.
    pub json: bool,
    /// Which of the workers started at once.
    pub thread: u64,
    /// Which trial.
    pub epoch: u64,
    /// Address of the barrier at which to wait for the other workers first.
    pub barrier: Option<String>,
}

/// Exit status where the results cannot be written.
const NO_RESULTS: u8 = 5;

/// Exit status where there is no barrier to wait at.
const NO_BARRIER: u8 = 5;

/// Exit status of those whom a broken barrier sends away: what env and timeout return for a failure of
/// their own.
const SENT_AWAY: u8 = 125;

/// Runs the command and writes its measurement. Returns the exit status: the command's own, 128+n for a
/// signal, 127 if it was not found, 126 if it could not be executed, 125 if another worker ended before the
/// barrier, 5 if the result could not be written or the barrier not be used.
pub fn measure(request: &Request) -> u8 {
    perform(request).unwrap_or_else(|refusal| {
        let _ = writeln!(io::stderr(), "aptime: {}", refusal.error);
        refusal.status
    })
}

/// Why there is no measurement, and the exit status that says so.
struct Refusal {
    status: u8,
    error: String,
}

fn perform(request: &Request) -> Result<u8, Refusal> {
    let mut output = open(request).map_err(|error| Refusal { status: NO_RESULTS, error })?;
    let command = Command::prepare(&request.argv)?;
    let start_at_ns = request.barrier.as_deref().map(meet).transpose()?;
    let measured = command.run(start_at_ns)?;
    let text = if request.json { measured.json(request) } else { measured.block(request) };
    output
        .write(&text)
        .map_err(|error| Refusal { status: NO_RESULTS, error: format!("{}: {error}", output.name) })?;
    Ok(measured.exit_status())
}

/// Waits at the barrier: when all start (monotonic, ns).
fn meet(address: &str) -> Result<u64, Refusal> {
    let no_barrier =
        |error| Refusal { status: NO_BARRIER, error: format!("{error}; the command was not run") };
    Member::open(address).map_err(no_barrier)?.wait().map_err(|reason| match reason {
        NotPassed::Taken(error) => no_barrier(error),
        NotPassed::Broken(error) => Refusal { status: SENT_AWAY, error },
    })
}

impl From<Unrunnable> for Refusal {
    fn from(reason: Unrunnable) -> Refusal {
        let status = if matches!(reason, Unrunnable::NotFound(_)) { 127 } else { 126 };
        Refusal { status, error: reason.text() }
    }
}

struct Output {
    file: Option<File>,
    name: String,
}

fn open(request: &Request) -> Result<Output, String> {
    let Some(path) = &request.output else {
        return Ok(Output { file: None, name: "standard error".into() });
    };
    let name = path.display().to_string();
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(file) => Ok(Output { file: Some(file), name }),
        Err(error) => Err(format!("{name}: {error}; the command was not run")),
    }
}

impl Output {
    /// One write, so that blocks of workers that share the file do not mix.
    fn write(&mut self, text: &str) -> io::Result<()> {
        match &mut self.file {
            None => io::stderr().lock().write_all(text.as_bytes()),
            Some(file) => match file.write(text.as_bytes())? {
                length if length == text.len() => Ok(()),
                length => Err(io::Error::other(format!("only {length} of {} bytes written", text.len()))),
            },
        }
    }
}
