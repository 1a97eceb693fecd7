//! Load on a mounted directory (docs/file-load.md).
//!
//! Read `call.rs` for what a request is in system calls, `turn.rs` for who makes it, `state.rs` and `calls.rs` for a run by
//! threads, `ring.rs` for one by io_uring; `populate.rs` puts the files there.

mod call;
mod calls;
mod data;
mod errno;
mod handles;
mod job;
mod order;
mod paths;
mod populate;
mod quantile;
mod ring;
mod space;
mod state;
mod turn;
mod wait;

use std::fs::{self, File};
use std::io;
use std::sync::mpsc::channel;
use std::thread;

use etude_workload::{FileSet, Kind, Stream, Workload};

use crate::command::{self, Wrong, machine, signals};
use crate::files::call::Place;
use crate::files::calls::Calls;
use crate::files::data::Data;
use crate::files::handles::Handles;
use crate::files::paths::Paths;
use crate::files::ring::Ring;
use crate::options::{FilesAsked, Source, Way, WorkloadAsked};
use crate::plan::Plan;
use crate::poller::raise_open_files;
use crate::summary::About;
use crate::telling;

/// Of files at once, where the process may have so many.
const MOST_HANDLES: usize = 4096;

/// Descriptors that are not of the file set, or only for a moment.
const OTHERS: usize = 64;

/// Puts the file set right and offers the load.
pub(crate) fn offer(asked: &FilesAsked, workload: &WorkloadAsked, plan: &Plan) -> Result<(), Wrong> {
    let workload_read = read(workload)?;
    let (set, place) = ready(asked, workload, &workload_read, plan)?;
    let stream = Stream::new(&workload_read, &set, plan.seed);
    let about = About { target: "files", workload: Some(workload_read.name().to_owned()), roll: None };
    let signals = signals()?;
    if asked.way == Way::IoUring {
        let ring = Ring::new(place, stream, plan.outstanding).map_err(|error| (refused(&error), 5))?;
        return command::offer(plan, about, signals, ring);
    }
    let (sender, receiver) = channel();
    let writer = thread::spawn(move || {
        telling::make_way();
        telling::write(&receiver, &Kind::ALL.map(Kind::name), io::stdout())
    });
    let done = Calls::new(plan, about, &sender, signals, place, stream).and_then(Calls::run).map_err(machine);
    drop(sender);
    match writer.join() {
        // Whoever reads no further has what he wants.
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => done.and(Err(machine(error))),
        _ => done,
    }
}

/// Puts the file set right, and offers nothing.
pub(crate) fn only_populate(asked: &FilesAsked, workload: &WorkloadAsked, seed: u64) -> Result<(), Wrong> {
    let found = read(workload)?;
    let set = FileSet::new(&found, workload.sized_for, seed).map_err(|why| (why, 2))?;
    let root = populate::root_of(&asked.directory, found.name(), seed);
    populate::populate(&root, &set, &Data::new(seed))
}

fn ready(
    asked: &FilesAsked,
    workload: &WorkloadAsked,
    found: &Workload,
    plan: &Plan,
) -> Result<(FileSet, Place), Wrong> {
    let set = FileSet::new(found, workload.sized_for, plan.seed).map_err(|why| (why, 2))?;
    let root = populate::root_of(&asked.directory, found.name(), plan.seed);
    let data = Data::new(plan.seed);
    populate::populate(&root, &set, &data)?;
    let room = raise_open_files().saturating_sub(OTHERS + plan.outstanding);
    let opened = File::open(&root).map_err(|error| (format!("{}: {error}", root.display()), 5))?;
    let paths = Paths::of(&set);
    let handles = Handles::new(paths.files(), room.clamp(1, MOST_HANDLES));
    Ok((set, Place { root: opened.into(), paths, handles, data }))
}

/// The workload that was named, with the knobs that were set.
///
/// # Errors
/// There is none of that name, its file is wrong, or knobs contradict each other.
pub(crate) fn read(asked: &WorkloadAsked) -> Result<Workload, Wrong> {
    let mut workload = match &asked.source {
        Source::Preset(name) => Workload::preset(name)
            .ok_or_else(|| (format!("--preset {name:?}: expected {}", Workload::names().join(", ")), 2))?,
        Source::File(path) => {
            let text = fs::read_to_string(path);
            let text = text.map_err(|error| (format!("--workload {}: {error}", path.display()), 3))?;
            Workload::read(&text, &path.display().to_string()).map_err(|why| (why, 3))?
        }
    };
    for assignment in &asked.set {
        workload.set(assignment).map_err(|why| (format!("--set {why}"), 2))?;
    }
    workload.check().map_err(|why| (why, 2))?;
    Ok(workload)
}

fn refused(error: &io::Error) -> String {
    format!("--way io_uring: this machine does not allow it ({error}); use --way calls")
}
