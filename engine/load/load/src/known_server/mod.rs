//! `etude-engine known-server`.

pub(crate) mod mmc_queue;
pub(crate) mod server;
pub(crate) mod stalls;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};

use clap::Parser;
use etude_clock::{SECOND, monotonic_ns};
use etude_launch::sys;
use etude_options::Failed;
use etude_options::values;
use serde_json::json;

use crate::exit::{machine, signals};
use crate::known_server::mmc_queue::Station;
use crate::known_server::server::Server;
use crate::known_server::stalls::Stalls;
use crate::run::distribution::{Law, Services};

/// Shorter services would drown in what timers and sockets are late by.
const LEAST_MEAN_MS: f64 = 5.0;

const PROGRAM: &str = "etude-engine known-server";

/// An HTTP server whose service is a timed wait, so that what load it bears can be computed
#[derive(Debug, Parser)]
#[command(
    override_usage = "--workers C --law LAW --mean-ms M [options]",
    after_help = "It prints one line of JSON with its port when it is ready, and ends on SIGTERM or SIGINT. /state is answered at \
                  once, with what the server knows of itself; any other path is served. More: docs/howto/load.md.\n\nexit status: 0; \
                  2 usage; 5 it cannot listen there"
)]
struct Options {
    /// Requests that are served at once; all others wait in one queue, first come, first served
    #[arg(long, value_name = "C", value_parser = values::whole::<usize>(1..=100_000))]
    workers: usize,
    /// Of service times: constant, exponential, erlang:K, lognormal:CV or hyperexponential:CV
    #[arg(long)]
    law: Law,
    /// Their mean, 5 or more
    #[arg(long, value_name = "M", value_parser = mean_ms)]
    mean_ms: f64,
    /// Stand still for so long of each --every: nothing is served meanwhile, and what was begun goes on afterwards
    #[arg(long, value_name = "MS", value_parser = stall_ns)]
    stall: Option<u64>,
    /// The first stall begins so long after the start
    #[arg(long, value_name = "S", value_parser = values::duration(SECOND / 1000..=1_000_000 * SECOND))]
    #[arg(default_value = "1", requires = "stall")]
    every: u64,
    /// At most N requests wait, further ones are answered with 503 (default: no bound)
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(0..=u64::MAX))]
    queue: Option<usize>,
    /// Of the service times
    #[arg(long, value_name = "S", value_parser = values::whole::<u64>(0..=u64::MAX), default_value = "0")]
    seed: u64,
    /// Any port that is free, by default
    #[arg(long, value_name = "ADDRESS", value_parser = address, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// End with standard input, too: with whoever holds the other end of a pipe
    #[arg(long)]
    until_eof: bool,
}

/// `etude-engine known-server`; the exit status.
pub fn known_server_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, known_server)
}

fn known_server(options: Options) -> Result<u8, Failed> {
    let Options { workers, law, mean_ms, listen, queue, seed, until_eof, .. } = options;
    let stall = stall(options.stall, options.every).map_err(|why| etude_options::usage(PROGRAM, why))?;
    let signals = signals()?;
    sys::raise_open_files();
    let refused = |error: io::Error| (format!("--listen {listen}: {error}; name another address"), 5);
    let listener = TcpListener::bind(listen).map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    let services = Services::new(law, mean_ms / 1e3, seed);
    let stalls = match stall {
        Some((length_ns, every_ns)) => Stalls::new(monotonic_ns() + every_ns, length_ns, every_ns),
        None => Stalls::none(),
    };
    let station = Station::new(workers, queue.unwrap_or(usize::MAX));
    let mut server = Server::new(listener, signals, station, services, stalls).map_err(machine)?;
    if until_eof {
        server
            .end_with(&io::stdin())
            .map_err(|error| (format!("--until-eof: standard input: {error}"), 5))?;
    }
    let mut ready = json!({
        "port": port, "workers": workers, "law": law.to_string(), "mean_s": mean_ms / 1e3,
        "capacity": workers as f64 / (mean_ms / 1e3) * stalls.share_of_work(), "pid": std::process::id(),
    });
    if let Some((length_ns, every_ns)) = stall {
        ready["stall_s"] = json!(length_ns as f64 / SECOND as f64);
        ready["every_s"] = json!(every_ns as f64 / SECOND as f64);
        ready["first_stall_ns"] = json!(stalls.first_ns());
    }
    let mut out = io::stdout();
    writeln!(out, "{ready}").and_then(|()| out.flush()).map_err(machine)?;
    server.serve().map(|()| 0).map_err(machine)
}

fn mean_ms(text: &str) -> Result<f64, String> {
    let why = "shorter services would drown in what timers and sockets are late by";
    values::number(LEAST_MEAN_MS..=1e6)(text).map_err(|line| format!("{line}: {why}"))
}

/// A number without a unit is milliseconds.
fn stall_ns(text: &str) -> Result<u64, String> {
    let found = etude_quantity::duration(text, "ms")?;
    let good = (SECOND / 1000..=1_000_000 * SECOND).contains(&found);
    if good { Ok(found) } else { Err(format!("{text:?}: expected a duration of 1ms or more")) }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?}: expected an address like 127.0.0.1:8000"))
}

/// Length and period of stalls, ns.
fn stall(length_ns: Option<u64>, every_ns: u64) -> Result<Option<(u64, u64)>, String> {
    let Some(length_ns) = length_ns else { return Ok(None) };
    if length_ns >= every_ns {
        return Err(format!(
            "--stall {} ms: expected less than --every, which is {} ms",
            length_ns as f64 / 1e6,
            every_ns as f64 / 1e6
        ));
    }
    Ok(Some((length_ns, every_ns)))
}

#[cfg(test)]
mod tests {
    use etude_options::Ended;

    use super::*;

    #[test]
    fn what_cannot_be_meant_is_one_line_that_names_it() {
        for (words, part) in [
            ("", "--workers, --law and --mean-ms are missing"),
            ("--law constant --mean-ms 5", "--workers is missing"),
            ("--workers 0", "--workers \"0\": expected a whole number, 1 to 100000"),
            ("--workers 2 --law normal", "--law \"normal\": expected constant, exponential"),
            ("--workers 2 --law constant --mean-ms 4.9", "expected a number, 5 to 1000000: shorter services"),
            ("--mean-ms NaN", "--mean-ms"),
            ("--workers 2 --law constant --mean-ms 5 --listen here", "an address like"),
            ("--stall 0", "--stall \"0\": expected a duration of 1ms or more"),
            ("--workers 2 --law constant --mean-ms 5 --every 1", "--every needs --stall"),
            ("--workers 2 --law constant --mean-ms 5 --stall 500 --every 0.5", "expected less than --every"),
            ("--speed 3", "--speed"),
            ("stray", "stray"),
        ] {
            let read = etude_options::read::<Options>("", words.split_whitespace().map(OsString::from));
            let line = match read.map(|options| stall(options.stall, options.every)) {
                Ok(Err(line)) | Err(Ended::Wrong(line)) => line,
                other => panic!("{words}: {other:?}"),
            };
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
