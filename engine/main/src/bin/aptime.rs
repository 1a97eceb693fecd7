//! `aptime`: the short name of `etude-engine measure` in benchmark scripts.

use std::process::ExitCode;

use clap::Command;

fn main() -> ExitCode {
    let options = etude_engine::measure_options(Command::new("aptime")).get_matches();
    ExitCode::from(etude_engine::measure(&options))
}
