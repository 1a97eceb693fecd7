//! `etude-engine serve`: one request a line in, one answer a line out.
//!
//! Read `run.rs` for one request, `etude_launch` for one trial.

mod hello;
mod input;
mod journal;
mod meters;
mod processes;
mod rows;
mod run;

use std::io;
use std::path::Path;

use etude_cgroup::{Cgroups, Wanted};
use etude_launch::{Launcher, clock, sys};
use etude_protocol::{Reply, Request};

use input::Input;
use meters::Meters;
use run::{Engine, Output};

/// Answers requests from standard input until it is closed or a signal asks for the end.
///
/// `engine` is the engine's version; `wanted` the control groups to use. Errors are those of the engine's own pipes.
pub fn serve(engine: &str, wanted: Wanted) -> io::Result<()> {
    sys::close_directories_on_exec()?;
    let mut input = Input::new()?;
    let mut output = Output::new();
    let launcher = Launcher::new()?;
    let meters = Meters::new(Cgroups::detect(wanted))?;
    output.send(&Reply::Hello { hello: hello::hello(engine, &meters) })?;
    let mut engine = Engine { launcher, meters };
    let result = answer_all(&mut engine, &mut input, &mut output);
    engine.launcher.end_kept();
    engine.meters.leave();
    result
}

fn answer_all(engine: &mut Engine, input: &mut Input, output: &mut Output) -> io::Result<()> {
    while let Some(request) = input.next(&mut engine.launcher)? {
        match request {
            Ok(Request::Launch(launch)) => engine.launch(&launch, input, output)?,
            Ok(Request::End { id }) => {
                output.send(&Reply::Ended { id, ended: engine.launcher.end_kept() })?
            }
            Ok(Request::Cancel | Request::Release { .. }) => {} // nothing is under way
            Ok(Request::Clock { id }) => {
                output.send(&Reply::Clock { id, clock_ns: clock::monotonic_ns() })?
            }
            Ok(Request::Processes { id, names }) => output
                .send(&Reply::Processes { id, processes: processes::named(&names, Path::new("/proc")) })?,
            Err((id, error)) => output.send(&Reply::Error { id, error })?,
        }
    }
    Ok(())
}
