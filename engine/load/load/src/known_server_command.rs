//! `etude-engine known-server`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};

use etude_clock::{SECOND, monotonic_ns};
use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::json;

use crate::distribution::{LAWS, Law, Services};
use crate::exit::{Wrong, answer, machine, signals, usage};
use crate::known_server::Server;
use crate::mmc_queue::Station;
use crate::option_values::{number, read, time, whole};
use crate::poller::raise_open_files;
use crate::stalls::Stalls;

const KNOWN: &str = "\
An HTTP server whose service is a timed wait, so that what load it bears can be computed.

usage: etude-engine known-server --workers C --law LAW --mean-ms M [options]

      --workers C      requests that are served at once; all others wait in one queue, first come, first served
      --law LAW        of service times: constant, exponential, erlang:K, lognormal:CV or hyperexponential:CV
      --mean-ms M      their mean, 5 or more
      --stall MS       stand still for so long of each --every: nothing is served meanwhile, and what was begun goes on afterwards
      --every S        (default 1) the first stall begins so long after the start
      --queue N        at most N requests wait, further ones are answered with 503 (default: no bound)
      --seed S         of the service times (default 0)
      --listen ADDRESS (default 127.0.0.1:0, any port that is free)
      --until-eof      end with standard input, too: with whoever holds the other end of a pipe
  -h, --help

It prints one line of JSON with its port when it is ready, and ends on SIGTERM or SIGINT. /state is answered at once, with
what the server knows of itself; any other path is served. More: docs/load.md.

exit status: 0; 2 usage; 5 it cannot listen there
";

/// Shorter services would drown in what timers and sockets are late by.
const LEAST_MEAN_MS: f64 = 5.0;

/// `etude-engine known-server`; the exit status.
pub fn known_server_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("etude-engine known-server", known_server(arguments))
}

/// What it was asked.
struct Asked {
    workers: usize,
    law: Law,
    mean_ms: f64,
    queue: usize,
    seed: u64,
    listen: SocketAddr,
    until_eof: bool,
    /// Length and period, ns.
    stall: Option<(u64, u64)>,
}

fn known_server(arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    let Some(asked) = options(arguments).map_err(|why| usage("etude-engine known-server", &why))? else {
        print!("{KNOWN}");
        return Ok(());
    };
    let Asked { workers, law, mean_ms, listen, .. } = asked;
    let signals = signals()?;
    raise_open_files();
    let refused = |error: io::Error| (format!("--listen {listen}: {error}; name another address"), 5);
    let listener = TcpListener::bind(listen).map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    let services = Services::new(law, mean_ms / 1e3, asked.seed);
    let stalls = match asked.stall {
        Some((length_ns, every_ns)) => Stalls::new(monotonic_ns() + every_ns, length_ns, every_ns),
        None => Stalls::none(),
    };
    let station = Station::new(workers, asked.queue);
    let mut server = Server::new(listener, signals, station, services, stalls).map_err(machine)?;
    if asked.until_eof {
        server
            .end_with(&io::stdin())
            .map_err(|error| (format!("--until-eof: standard input: {error}"), 5))?;
    }
    let mut ready = json!({
        "port": port, "workers": workers, "law": law.to_string(), "mean_s": mean_ms / 1e3,
        "capacity": workers as f64 / (mean_ms / 1e3) * stalls.share_of_work(), "pid": std::process::id(),
    });
    if let Some((length_ns, every_ns)) = asked.stall {
        ready["stall_s"] = json!(length_ns as f64 / SECOND as f64);
        ready["every_s"] = json!(every_ns as f64 / SECOND as f64);
        ready["first_stall_ns"] = json!(stalls.first_ns());
    }
    let mut out = io::stdout();
    writeln!(out, "{ready}").and_then(|()| out.flush()).map_err(machine)?;
    server.serve().map_err(machine)
}

fn options(arguments: impl Iterator<Item = OsString>) -> Result<Option<Asked>, String> {
    let (mut workers, mut law, mut mean_ms) = (None, None, None);
    let (mut queue, mut seed, mut until_eof) = (usize::MAX, 0, false);
    let (mut stall_ns, mut every_ns) = (None, None);
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        match argument {
            Long("workers") => workers = Some(whole("workers", &mut parser, 1, 100_000)?),
            Long("law") => law = Some(read::<Law>("law", &mut parser, LAWS)?),
            Long("mean-ms") => {
                mean_ms = Some(number("mean-ms", &mut parser, "a number, 5 or more", |ms| ms <= 1e6)?);
            }
            Long("stall") => stall_ns = Some(time("stall", &mut parser, false, "ms")?),
            Long("every") => every_ns = Some(time("every", &mut parser, false, "s")?),
            Long("queue") => queue = whole("queue", &mut parser, 0, usize::MAX)?,
            Long("seed") => seed = read("seed", &mut parser, "a whole number")?,
            Long("listen") => listen = read("listen", &mut parser, "an address like 127.0.0.1:8000")?,
            Long("until-eof") => until_eof = true,
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(argument.unexpected().to_string()),
        }
    }
    let workers = workers.ok_or("--workers is missing")?;
    let law = law.ok_or("--law is missing")?;
    let mean_ms = mean_ms.ok_or("--mean-ms is missing")?;
    if mean_ms < LEAST_MEAN_MS {
        let why = "shorter services would drown in what timers and sockets are late by";
        return Err(format!("--mean-ms {mean_ms}: expected {LEAST_MEAN_MS} or more: {why}"));
    }
    let stall = stall(stall_ns, every_ns)?;
    Ok(Some(Asked { workers, law, mean_ms, queue, seed, listen, until_eof, stall }))
}

/// Length and period of stalls, ns.
fn stall(length_ns: Option<u64>, every_ns: Option<u64>) -> Result<Option<(u64, u64)>, String> {
    let Some(length_ns) = length_ns else {
        return if every_ns.is_some() { Err("--every needs --stall".to_owned()) } else { Ok(None) };
    };
    let every_ns = every_ns.unwrap_or(SECOND);
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
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_one_line_that_names_it() {
        for (words, part) in [
            ("", "--workers is missing"),
            ("--workers 0", "--workers \"0\": expected a whole number, 1 or more"),
            ("--workers 2 --law normal", "--law \"normal\": expected constant, exponential"),
            ("--workers 2 --law constant --mean-ms 4.9", "expected 5 or more: shorter services"),
            ("--mean-ms NaN", "--mean-ms"),
            ("--listen here", "an address like"),
            ("--stall 0", "--stall \"0\": expected a duration of 1ms or more"),
            ("--workers 2 --law constant --mean-ms 5 --every 1", "--every needs --stall"),
            ("--workers 2 --law constant --mean-ms 5 --stall 500 --every 0.5", "expected less than --every"),
            ("--speed 3", "--speed"),
            ("stray", "stray"),
        ] {
            let words = words.split_whitespace().map(OsString::from);
            let line = options(words.collect::<Vec<_>>().into_iter()).map(|_| ()).unwrap_err();
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
