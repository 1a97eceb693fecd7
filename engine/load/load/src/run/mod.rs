//! Runs a load generator to its end, and writes what it reports to standard output.

pub(crate) mod client;
pub(crate) mod cpu_demand;
pub(crate) mod distribution;
pub(crate) mod outstanding;
pub(crate) mod plan;
pub(crate) mod schedule;
pub(crate) mod target;
pub(crate) mod window;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use etude_options::Failed;
use etude_terminal::{Escaping, Screen};

use crate::exit::machine;
use crate::options::Format;
use crate::report::Line;
use crate::report::summary::About;
use crate::report::text_report;
use crate::report::window_writer;
use crate::run::client::Client;
use crate::run::plan::Plan;
use crate::run::target::Target;

/// Runs a client to its end. `signals` were taken before the target began any thread: threads inherit what is blocked.
pub(crate) fn run_client(
    plan: &Plan,
    about: About,
    signals: OwnedFd,
    target: impl Target,
    format: Format,
) -> Result<(), Failed> {
    let kinds = target.kinds().to_vec();
    run_with_report(kinds, plan, format, |lines| {
        Client::new(plan, about, lines, signals, target).run().map_err(machine)
    })
}

/// Runs a generator, and writes what it tells to standard output: by a thread of its own, which touches nothing that
/// processes forked meanwhile would look for.
pub(crate) fn run_with_report(
    kinds: Vec<&'static str>,
    plan: &Plan,
    format: Format,
    generate: impl FnOnce(&Sender<Line>) -> Result<(), Failed>,
) -> Result<(), Failed> {
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
    let done = generate(&sender);
    drop(sender);
    match writer.join() {
        // Whoever reads no further has what he wants.
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => done.and(Err(machine(error))),
        _ => done,
    }
}
