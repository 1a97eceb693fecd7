//! `aptime`: the short name of `etude-engine measure` in benchmark scripts.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(etude_engine::measure("aptime", std::env::args_os().skip(1)))
}
