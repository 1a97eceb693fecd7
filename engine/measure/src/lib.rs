//! One measured command, for benchmark scripts: runs it and appends one block to the results.

mod block;
mod command;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

pub use block::Measured;
use command::run;
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
}

/// Exit status where the results cannot be written.
const NO_RESULTS: u8 = 5;

/// Runs the command and writes its measurement. Returns the exit status: the command's own, 128+n for a signal, 127
/// if it was not found, 126 if it could not be executed, 5 if the result could not be written.
pub fn measure(request: &Request) -> u8 {
    let mut output = match open(request) {
        Ok(output) => output,
        Err(error) => return complain(NO_RESULTS, &error),
    };
    let measured = match run(&request.argv) {
        Ok(measured) => measured,
        Err(Unrunnable::NotFound(error)) => return complain(127, &error),
        Err(Unrunnable::NotExecutable(error)) => return complain(126, &error),
    };
    let text = if request.json { measured.json(request) } else { measured.block(request) };
    if let Err(error) = output.write(&text) {
        return complain(NO_RESULTS, &format!("{}: {error}", output.name));
    }
    measured.exit_status()
}

fn complain(status: u8, error: &str) -> u8 {
    eprintln!("aptime: {error}");
    status
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
