//! Load on a mounted directory (docs/howto/file-load.md).
//!
//! Read `call.rs` for what a request is in system calls, `leader_follower.rs` for who makes it, `state.rs` and `calls.rs` for a run by
//! threads, `ring.rs` for one by io_uring; `populate.rs` puts the files there.

mod call;
mod calls;
mod errno;
mod handles;
mod leader_follower;
mod paths;
mod populate;
mod quantile;
mod ring;
mod state;
mod wait;

use std::fs::File;
use std::io;
use std::path::PathBuf;

use etude_launch::sys;
use etude_options::Failed;

use crate::exit::{machine, signals};
use crate::file_set::gate::Numbers;
use crate::file_set::incompressible_data::Data;
use crate::files::call::Place;
use crate::files::calls::Calls;
use crate::files::handles::Handles;
use crate::files::paths::Paths;
use crate::files::ring::Ring;
use crate::options::named_workload::Chosen;
use crate::options::{FilesAsked, Format, Way};
use crate::report::summary::{About, Summary};
use crate::run::client::Client;
use crate::run::plan::Plan;
use crate::run::run;
use crate::run::run_loop::Signals;

/// Of files at once, where the process may have so many.
const MOST_HANDLES: usize = 4096;

/// Descriptors that are not of the file set, or only for a moment.
const OTHERS: usize = 64;

/// Puts the file set right and offers the load.
pub(crate) fn offer(asked: &FilesAsked, chosen: &Chosen, plan: &Plan, format: Format) -> Result<(), Failed> {
    let place = ready(asked, chosen, plan)?;
    let (stream, numbers) = (chosen.stream(plan.seed), Numbers::of(&chosen.set));
    let file_set = Some(root_of(asked, chosen).display().to_string());
    let about = About { target: "files", workload: Some(chosen.name()), file_set, roll: None };
    let (summary, signals) = (Summary::new(plan, about), Signals::new(signals()?, 0));
    if asked.way == Way::IoUring {
        let ring =
            Ring::new(place, stream, numbers, plan.outstanding).map_err(|error| (refused(&error), 5))?;
        return run(plan, summary, signals, Client::new(plan, ring), format);
    }
    let calls = Calls::new(plan, place, stream, numbers).map_err(machine)?;
    run(plan, summary, signals, calls, format)
}

/// Puts the file set right, and offers nothing.
pub(crate) fn populate_only(asked: &FilesAsked, chosen: &Chosen) -> Result<(), Failed> {
    populate::populate(&root_of(asked, chosen), &chosen.set, &Data::new(chosen.seed))
}

fn root_of(asked: &FilesAsked, chosen: &Chosen) -> PathBuf {
    populate::root_of(&asked.directory, &chosen.name(), chosen.seed)
}

fn ready(asked: &FilesAsked, chosen: &Chosen, plan: &Plan) -> Result<Place, Failed> {
    let root = root_of(asked, chosen);
    let data = Data::new(chosen.seed);
    populate::populate(&root, &chosen.set, &data)?;
    let room = sys::most_open_files().saturating_sub(OTHERS + plan.outstanding);
    let opened = File::open(&root).map_err(|error| (format!("{}: {error}", root.display()), 5))?;
    let paths = Paths::of(&chosen.set);
    let handles = Handles::new(paths.files(), room.clamp(1, MOST_HANDLES));
    Ok(Place { root: opened.into(), paths, handles, data })
}

fn refused(error: &io::Error) -> String {
    format!("--way io_uring: this machine does not allow it ({error}); use --way calls")
}
