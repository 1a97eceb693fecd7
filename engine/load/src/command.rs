//! `etude-engine known-server` and `etude-engine load`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use etude_clock::SECOND;
use etude_launch::sys;
use lexopt::Parser;
use lexopt::prelude::*;
use serde_json::json;

use crate::client::{Client, Plan};
use crate::known::Server;
use crate::law::{LAWS, Law, Process, Services};
use crate::poller::raise_open_files;
use crate::station::Station;
use crate::tally;
use crate::url::Url;

const KNOWN: &str = "\
An HTTP server whose service is a timed wait, so that what load it bears can be computed.

usage: etude-engine known-server --workers C --law LAW --mean-ms M [options]

      --workers C      requests that are served at once; all others wait in one queue, first come, first served
      --law LAW        of service times: constant, exponential, erlang:K, lognormal:CV or hyperexponential:CV
      --mean-ms M      their mean, 5 or more
      --queue N        at most N requests wait, further ones are answered with 503 (default: no bound)
      --seed S         of the service times (default 0)
      --listen ADDRESS (default 127.0.0.1:0, any port that is free)
      --until-eof      end with standard input, too: with whoever holds the other end of a pipe
  -h, --help

It prints one line of JSON with its port when it is ready, and ends on SIGTERM or SIGINT. /state is answered at once, with
what the server knows of itself; any other path is served. More: docs/load.md.

exit status: 0; 2 usage; 5 it cannot listen there
";

const LOAD: &str = "\
Offer HTTP requests at a rate, whatever the answers, and report windows as they end.

usage: etude-engine load --url http://HOST[:PORT][/PATH] --rate R --seconds S [options]

      --rate R         requests per second, on average
      --seconds S      for so long
      --arrivals WAY   poisson (default) or constant
      --seed N         of poisson arrivals (default 0)
      --window S       length of a window, s (default 1)
      --warm-up S      so long before the first window the same load is offered, and counts nowhere (default 0)
      --outstanding N  at most N requests under way, each on a connection of its own; what is due beyond waits (default 1000)
      --timeout S      a request without an answer so long after it was due has failed (default 30)
      --drain S        wait so long for outstanding answers at the end (default 5)
  -h, --help

Each window is a line of JSON; the last line is a summary. Response times count from when a request was due. SIGTERM or
SIGINT ends the window under way, drains and prints the summary; a second one does not wait for answers. More: docs/load.md.

exit status: 0; 2 usage; 5 nobody answers at that address when it begins, or the machine does not allow it
";

/// Shorter services would drown in what timers and sockets are late by.
const LEAST_MEAN_MS: f64 = 5.0;

/// Descriptors that are no connections.
const OTHERS: usize = 16;

/// A line for the user, and the exit status.
type Wrong = (String, u8);

fn usage(verb: &str, error: &dyn std::fmt::Display) -> Wrong {
    (format!("{error}; see etude-engine {verb} --help"), 2)
}

fn answer(verb: &str, done: Result<(), Wrong>) -> u8 {
    done.map_or_else(
        |(line, code)| {
            eprintln!("etude-engine {verb}: {line}");
            code
        },
        |()| 0,
    )
}

/// `etude-engine known-server`; the exit status.
pub fn known_server_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("known-server", known_server(arguments))
}

/// `etude-engine load`; the exit status.
pub fn load_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("load", load(arguments))
}

fn known_server(arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    let wrong = |error: &dyn std::fmt::Display| usage("known-server", error);
    let (mut workers, mut law, mut mean_ms) = (None, None, None);
    let (mut queue, mut seed, mut until_eof) = (usize::MAX, 0, false);
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(&error))? {
        let done: Result<(), String> = match argument {
            Long("workers") => whole("workers", &mut parser, 1, 100_000).map(|found| workers = Some(found)),
            Long("law") => read("law", &mut parser, LAWS).map(|found: Law| law = Some(found)),
            Long("mean-ms") => number("mean-ms", &mut parser, "a number, 5 or more", |ms| ms <= 1e6)
                .map(|found| mean_ms = Some(found)),
            Long("queue") => whole("queue", &mut parser, 0, usize::MAX).map(|found| queue = found),
            Long("seed") => read("seed", &mut parser, "a whole number").map(|found| seed = found),
            Long("listen") => {
                read("listen", &mut parser, "an address like 127.0.0.1:8000").map(|found| listen = found)
            }
            Long("until-eof") => {
                until_eof = true;
                Ok(())
            }
            Short('h') | Long("help") => {
                print!("{KNOWN}");
                return Ok(());
            }
            _ => Err(argument.unexpected().to_string()),
        };
        done.map_err(|why| wrong(&why))?;
    }
    let workers = workers.ok_or_else(|| wrong(&"--workers is missing"))?;
    let law = law.ok_or_else(|| wrong(&"--law is missing"))?;
    let mean_ms = mean_ms.ok_or_else(|| wrong(&"--mean-ms is missing"))?;
    if mean_ms < LEAST_MEAN_MS {
        let why = "shorter services would drown in what timers and sockets are late by";
        return Err(wrong(&format!("--mean-ms {mean_ms}: expected {LEAST_MEAN_MS} or more: {why}")));
    }
    let signals = signals()?;
    raise_open_files();
    let refused = |error: io::Error| (format!("--listen {listen}: {error}; name another address"), 5);
    let listener = TcpListener::bind(listen).map_err(refused)?;
    let port = listener.local_addr().map_err(refused)?.port();
    let services = Services::new(law, mean_ms / 1e3, seed);
    let mut server =
        Server::new(listener, signals, Station::new(workers, queue), services).map_err(machine)?;
    if until_eof {
        server
            .end_with(&io::stdin())
            .map_err(|error| (format!("--until-eof: standard input: {error}"), 5))?;
    }
    let ready = json!({
        "port": port, "workers": workers, "law": law.to_string(), "mean_s": mean_ms / 1e3,
        "capacity": workers as f64 / (mean_ms / 1e3), "pid": std::process::id(),
    });
    let mut out = io::stdout();
    writeln!(out, "{ready}").and_then(|()| out.flush()).map_err(machine)?;
    server.serve().map_err(machine)
}

/// What `load` was asked.
struct Options {
    url: Url,
    plan: Plan,
}

fn load(arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    let Some(Options { url, mut plan }) = options(arguments)? else {
        print!("{LOAD}");
        return Ok(());
    };
    let most = raise_open_files().saturating_sub(OTHERS);
    if plan.outstanding > most {
        let what =
            format!("--outstanding {}: this process may have {most} connections at most", plan.outstanding);
        return Err((format!("{what}; see ulimit -n"), 5));
    }
    let unreached = |error: io::Error| (format!("{}: {error}; start the server first", url.text), 5);
    let patience = Duration::from_nanos(plan.timeout_ns.clamp(SECOND, 10 * SECOND));
    plan.address = url.address().map_err(unreached)?;
    plan.request = url.request();
    let first = TcpStream::connect_timeout(&plan.address, patience).map_err(unreached)?;
    let signals = signals()?;
    let (sender, receiver) = channel();
    let writer = thread::spawn(move || tally::write(&receiver, io::stdout()));
    let mut client = Client::new(&plan, &sender, signals).map_err(machine)?;
    client.take(first).map_err(machine)?;
    client.run().map_err(machine)?;
    drop(sender);
    match writer.join() {
        // Whoever reads no further has what he wants.
        Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(machine(error)),
        _ => Ok(()),
    }
}

fn options(arguments: impl Iterator<Item = OsString>) -> Result<Option<Options>, Wrong> {
    let wrong = |error: &dyn std::fmt::Display| usage("load", error);
    let (mut url, mut rate, mut duration) = (None, None, None);
    let mut plan = Plan {
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        request: Vec::new(),
        process: Process::Poisson,
        rate: 0.0,
        seed: 0,
        warm_up_ns: 0,
        duration_ns: 0,
        window_ns: SECOND,
        outstanding: 1000,
        timeout_ns: 30 * SECOND,
        drain_ns: 5 * SECOND,
    };
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| wrong(&error))? {
        let done: Result<(), String> = match argument {
            Long("url") => {
                read("url", &mut parser, "http://HOST[:PORT][/PATH]").map(|found: Url| url = Some(found))
            }
            Long("rate") => {
                let good = |rate| rate > 0.0 && rate <= 1e6;
                number("rate", &mut parser, "requests per second, above 0", good)
                    .map(|found| rate = Some(found))
            }
            Long("seconds") => time("seconds", &mut parser, false).map(|found| duration = Some(found)),
            Long("arrivals") => {
                read("arrivals", &mut parser, "poisson or constant").map(|found| plan.process = found)
            }
            Long("seed") => read("seed", &mut parser, "a whole number").map(|found| plan.seed = found),
            Long("window") => time("window", &mut parser, false).map(|found| plan.window_ns = found),
            Long("warm-up") => time("warm-up", &mut parser, true).map(|found| plan.warm_up_ns = found),
            Long("outstanding") => {
                whole("outstanding", &mut parser, 1, usize::MAX).map(|found| plan.outstanding = found)
            }
            Long("timeout") => time("timeout", &mut parser, false).map(|found| plan.timeout_ns = found),
            Long("drain") => time("drain", &mut parser, true).map(|found| plan.drain_ns = found),
            Short('h') | Long("help") => return Ok(None),
            _ => Err(argument.unexpected().to_string()),
        };
        done.map_err(|why| wrong(&why))?;
    }
    let url = url.ok_or_else(|| wrong(&"--url is missing"))?;
    plan.rate = rate.ok_or_else(|| wrong(&"--rate is missing"))?;
    plan.duration_ns = duration.ok_or_else(|| wrong(&"--seconds is missing"))?;
    Ok(Some(Options { url, plan }))
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Process, String> {
        match text {
            "poisson" => Ok(Process::Poisson),
            "constant" => Ok(Process::Constant),
            _ => Err(format!("{text:?}: expected poisson or constant")),
        }
    }
}

fn text(name: &str, parser: &mut Parser) -> Result<String, String> {
    parser.value().and_then(|value| value.string()).map_err(|error| format!("--{name}: {error}"))
}

fn read<T: FromStr>(name: &str, parser: &mut Parser, expected: &str) -> Result<T, String> {
    let text = text(name, parser)?;
    text.parse().map_err(|_| format!("--{name} {text:?}: expected {expected}"))
}

fn whole(name: &str, parser: &mut Parser, least: usize, most: usize) -> Result<usize, String> {
    let text = text(name, parser)?;
    let found = text.parse().ok().filter(|found| (least..=most).contains(found));
    found.ok_or_else(|| format!("--{name} {text:?}: expected a whole number, {least} or more"))
}

fn number(
    name: &str,
    parser: &mut Parser,
    expected: &str,
    good: impl Fn(f64) -> bool,
) -> Result<f64, String> {
    let text = text(name, parser)?;
    let found = text.parse().ok().filter(|found: &f64| found.is_finite() && good(*found));
    found.ok_or_else(|| format!("--{name} {text:?}: expected {expected}"))
}

/// Seconds, as ns; `none`: 0 is allowed.
fn time(name: &str, parser: &mut Parser, none: bool) -> Result<u64, String> {
    let expected = if none { "seconds, 0 or more" } else { "seconds, 0.001 or more" };
    let good = |s: f64| s <= 1e6 && (s >= 0.001 || none && s == 0.0);
    number(name, parser, expected, good).map(etude_clock::from_seconds)
}

/// A descriptor that becomes readable when somebody wants the end.
fn signals() -> Result<OwnedFd, Wrong> {
    sys::signalfd(&[libc::SIGTERM, libc::SIGINT]).map_err(machine)
}

fn machine(error: io::Error) -> Wrong {
    (format!("the machine does not allow it: {error}"), 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(verb: fn(std::vec::IntoIter<OsString>) -> Result<(), Wrong>, words: &str) -> String {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let (line, code) = verb(words.into_iter()).unwrap_err();
        assert!(code == 2 && !line.contains('\n'), "{line}");
        line
    }

    #[test]
    fn what_cannot_be_meant_is_one_line_that_names_it() {
        for (words, part) in [
            ("", "--workers is missing"),
            ("--workers 0", "--workers \"0\": expected a whole number, 1 or more"),
            ("--workers 2 --law normal", "--law \"normal\": expected constant, exponential"),
            ("--workers 2 --law constant --mean-ms 4.9", "expected 5 or more: shorter services"),
            ("--mean-ms NaN", "--mean-ms"),
            ("--listen here", "an address like"),
            ("--speed 3", "--speed"),
            ("stray", "stray"),
        ] {
            assert!(refused(known_server, words).contains(part), "{words}");
        }
        for (words, part) in [
            ("", "--url is missing"),
            ("--url https://a/", "expected http://"),
            ("--url http://a/ --rate 0", "--rate \"0\": expected requests per second, above 0"),
            ("--url http://a/ --rate 1 --seconds -1", "--seconds"),
            ("--url http://a/ --rate 1", "--seconds is missing"),
            ("--window 0", "0.001 or more"),
            ("--arrivals often", "poisson or constant"),
            ("--outstanding 0", "1 or more"),
            ("--rate", "--rate"),
        ] {
            assert!(refused(load, words).contains(part), "{words}: {}", refused(load, words));
        }
    }
}
