//! `etude-engine columns`: results files as columns.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use clap::Parser;
use etude_columns::Reading;
use etude_options::values;

/// Write the measurements of results files into a file of columns
#[derive(Parser)]
#[command(
    after_help = "Standard input lists the files: WORKERS PATH each, ended by a zero byte; - for WORKERS where it is not \
                  known how many lines a trial has. Standard output must be a file."
)]
struct Options {
    /// Keep this metric (default: all); may be given again
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Cut files into pieces of this size
    #[arg(long, value_name = "BYTES", value_parser = values::whole::<u64>(1..=u64::MAX), hide = true)]
    chunk: Option<u64>,
}

/// Runs the verb; its exit status.
pub fn columns(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run("etude-engine columns", arguments, |options: Options| {
        let metrics = Some(options.metrics).filter(|metrics| !metrics.is_empty());
        let metrics = metrics.map(|metrics| metrics.into_iter().collect());
        let reading = Reading { metrics, chunk: options.chunk, threads: None };
        let out = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let done = out.and_then(|out| etude_columns::columns(&reading, &mut io::stdin().lock(), out));
        done.map(|()| 0).map_err(|error| (error.to_string(), 5))
    })
}
