//! Runs a load generator to its end, and writes what it reports to standard output.

pub(crate) mod client;
pub(crate) mod cpu_demand;
pub(crate) mod distribution;
pub(crate) mod outstanding;
pub(crate) mod plan;
pub(crate) mod run_loop;
pub(crate) mod schedule;
pub(crate) mod target;
pub(crate) mod window;

use std::io;
use std::sync::mpsc::channel;
use std::thread;

use etude_options::Failed;
use etude_terminal::{Escaping, Screen};

use crate::exit::machine;
use crate::options::Format;
use crate::report::summary::Summary;
use crate::report::{text_report, window_writer};
use crate::run::plan::Plan;
use crate::run::run_loop::{Generator, Signals};

/// Runs a generator, and writes what it reports to standard output: by a thread of its own, which touches nothing that
/// processes forked meanwhile would look for. Signals were taken before the generator began any thread: threads inherit what
/// is blocked.
pub(crate) fn run(
    plan: &Plan,
    summary: Summary,
    signals: Signals,
    generator: impl Generator,
    format: Format,
) -> Result<(), Failed> {
    let kinds = generator.kinds();
    let (sender, receiver) = channel();
    let planned_ns = plan.duration_ns;
    let writer = thread::spawn(move || {
        window_writer::make_way();
        match format {
            Format::Json => window_writer::write(&receiver, &kinds, Escaping(io::stdout())),
            Format::Text => {
                let screen = Screen::of(&io::stdout());
                text_report::write(&receiver, kinds.len(), planned_ns, screen, io::stdout())
            }
        }
    });
    let done = run_loop::run(plan, summary, signals, &sender, generator);
    drop(sender);
    match writer.join() {
        // Whoever reads no further has what he wants.
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => done.and(Err(machine(error))),
        _ => done,
    }
}
