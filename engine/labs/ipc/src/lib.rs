//! `ipc`: how fast bytes go through a pipe or a socket, within a thread, between threads, between processes.
//!
//! It does what the benchmark of labs 2 to 5 of Cambridge's L41 course does, and is called like it. The sender reads the
//! clock just before the first byte, the receiver after the last one; `docs/howto/ipc.md` says what lies between.

mod link;
mod modes;
mod options;
mod process;
mod shared;
mod transfer;

use std::ffi::OsString;
use std::thread;
use std::time::Duration;

use etude_counters::Around;
use etude_micro::exit::{self, Fail};
use etude_micro::options::read;
use etude_micro::report::{Container, Sample, Style, print};
use etude_micro::{machine, pin};
use serde_json::{Value, json};

use link::Link;
use options::{Mode, Options, Words};

/// Runs the benchmark; the exit status, one of sysexits(3).
pub fn main(program: &str, arguments: impl Iterator<Item = OsString>) -> u8 {
    let done = read(program, arguments).and_then(|words: Option<Words>| match words {
        None => Ok(()),
        Some(words) => run(&words.meaning()?),
    });
    exit::status(done)
}

fn run(options: &Options) -> Result<(), Fail> {
    bind(&options.cpus)?;
    let mut around = options.counters.map(|set| Around::open(set).expect("the options know the sets"));
    if !options.bare {
        thread::sleep(Duration::from_secs(1));
    }
    let mut samples = Vec::new();
    let mut link = Link::open(options)?;
    let configuration = configuration(options, &link);
    for left in (0..options.iterations).rev() {
        samples.push(sample(options, link, around.as_mut())?);
        if left == 0 {
            break;
        }
        link = Link::open(options)?;
    }
    let containers = match options.style {
        Style::Json => vec![machine::hardware(), machine::system(None), configuration],
        _ => vec![configuration],
    };
    print(&containers, Some(&samples), options.style)
}

/// Binds this thread, which is the one thread or the receiver, to the last of these. All are tried first, by a thread
/// each, so that one that cannot be had is told of before there is a sender.
fn bind(cpus: &[usize]) -> Result<(), Fail> {
    for &cpu in cpus {
        thread::spawn(move || pin::to(cpu)).join().unwrap_or(Ok(()))?;
    }
    cpus.last().map_or(Ok(()), |cpu| pin::to(*cpu))
}

fn sample(options: &Options, link: Link, around: Option<&mut Around>) -> Result<Sample, Fail> {
    let measured = match options.mode {
        Mode::OneThread => modes::one_thread(options, link, around.as_deref()),
        Mode::TwoThreads => modes::two_threads(options, link, around.as_deref()),
        Mode::TwoProcesses => process::two_processes(options, link, around.as_deref()),
    }?;
    Ok(Sample {
        bytes: measured.bytes,
        elapsed_ns: measured.elapsed_ns,
        usage: options.usage.then_some(measured.usage),
        counts: around.map(Around::stop),
    })
}

fn configuration(options: &Options, link: &Link) -> Container {
    let cpus = if options.cpus.is_empty() { Value::Null } else { json!(options.cpus) };
    let members = vec![
        ("mode", json!(options.mode.name())),
        ("ipctype", json!(options.transport.name())),
        ("port", json!(link.port)),
        ("buffersize", json!(options.buffer_bytes)),
        ("totalsize", json!(options.total_bytes)),
        ("blockcount", json!(options.total_bytes.div_ceil(options.buffer_bytes))),
        ("pipe_bytes", json!(link.pipe_bytes)),
        ("send_buffer_bytes", json!(link.send_buffer_bytes)),
        ("receive_buffer_bytes", json!(link.receive_buffer_bytes)),
        ("iterations", json!(options.iterations)),
        ("bare", json!(options.bare)),
        ("cpus", cpus),
        ("counters", json!(options.counters)),
    ];
    Container { name: "benchmark_configuration", members }
}
