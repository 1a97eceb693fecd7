//! `etude-engine serve`: the options of the loop that answers requests.

use std::ffi::OsString;

use clap::Parser;
use etude_cgroup::Wanted;

/// Answer requests on standard input, one JSON object a line
#[derive(Parser)]
struct Options {
    /// Control groups to use
    #[arg(long, value_name = "auto|1|2", value_parser = ["auto", "1", "2"], default_value = "auto")]
    cgroup: String,
}

/// Runs the verb; its exit status.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine serve", arguments, |options: Options| {
        let wanted = match options.cgroup.as_str() {
            "1" => Wanted::V1,
            "2" => Wanted::V2,
            _ => Wanted::Auto,
        };
        let done = etude_serve::serve(env!("CARGO_PKG_VERSION"), wanted);
        done.map(|()| 0).map_err(|error| (error.to_string(), 5))
    })
}
