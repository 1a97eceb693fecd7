//! `etude load`: from what was asked to a client that runs.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::net::TcpStream;
use std::time::Duration;

use etude_clock::SECOND;
use etude_nfs::Export;

use crate::exit::{Wrong, answer, machine, signals, usage};
use crate::files;
use crate::http_target::Http;
use crate::named_workload::Chosen;
use crate::nfs::{self, NfsTarget, Prepared};
use crate::nfs_url::NfsUrl;
use crate::options::{Aim, Asked, Format, NfsAsked, Offer, Place, Populate, WorkloadAsked, options};
use crate::plan::Plan;
use crate::poller::raise_open_files;
use crate::progress::Progress;
use crate::roll;
use crate::run::run_client;
use crate::summary::About;
use crate::url::Url;

const LOAD: &str = "\
Offer requests at a rate, whatever the answers, and report windows as they end.

usage: etude load --url http://HOST[:PORT][/PATH] LOAD --seconds S [options]
       etude load --nfs nfs://HOST[:PORT]/EXPORT[?mountport=N] --preset NAME LOAD --seconds S [options]
       etude load --directory DIR --preset NAME LOAD --seconds S [options]
       etude load --directory DIR --roll FILE (--rate R | --multiple M) --seconds S [options]
       etude load --preset NAME --show

LOAD is one of
      --rate R         requests per second, on average, whatever becomes of them (open loop)
      --clients N      so many clients, each of which waits for its answer, thinks, and sends again (closed loop)

what is asked
      --url URL        a server of HTTP: GET, each request on a connection of its own
      --nfs URL        a server of NFS, version 3, spoken directly; without mountport its portmapper is asked
      --connections N  with --nfs: over so many connections (default 1)
      --directory DIR  a mounted directory, by system calls
      --way WAY        with --directory: calls (default) or io_uring
      --preset NAME    with --nfs or --directory: which operations, on which files (docs/workloads.md)
      --workload FILE  the same of a file of knobs
      --set KNOB=VALUE another value of one knob; may be given several times
      --sized-for R    the file set is that of this rate (default: --rate, or --clients as a rate)
      --files-seed N   of the file set (default 0), which stays: the next run puts it right and uses it again
      --show           print the knobs, each with its source, and offer nothing
      --populate       make the file set, and offer nothing
      --roll FILE      with --directory: the recorded calls of a program (docs/replay.md), at --rate calls per second
      --multiple M     with --roll, in place of --rate: M times as fast as it was recorded
      --only DIR       with --roll: only calls on files below DIR of the roll, and what these need; may be given again; . is
                       all but the directories of every machine (usr, lib, etc ...)
      --own            with --roll: each pass has copies of its own of all files, also of those that it only reads

how
      --seconds S      for so long
      --arrivals WAY   poisson (default) or constant
      --think S        with --clients: for so long on average (default 0)
      --think-law LAW  exponential (default) or constant
      --seed N         of instants and operations (default 0)
      --wait WAY       for the instant of the next request: sleep (default), hybrid (asleep until shortly before) or spin
      --window S       length of a window, s (default 1)
      --warm-up S      so long before the first window the same load is offered, and counts nowhere (default 0)
      --outstanding N  at most N requests under way; what is due beyond waits (default 1000; 64 by --way calls)
      --timeout S      a request without an answer so long after it was due has failed (default 30)
      --drain S        wait so long for outstanding answers at the end (default 5)
      --json           print each window as a line of JSON, then a summary (default where standard output is no terminal)
      --text           print a summary for people (default on a terminal)
  -h, --help

Response times count from when a request was due. SIGTERM or SIGINT ends the window under way, drains and prints the
summary; a second one does not wait for answers. More: docs/load.md.

exit status: 0; 2 usage; 3 a file is wrong; 5 nobody answers when it begins, or the machine does not allow it
";

/// Descriptors that are no connections.
const OTHERS: usize = 16;

/// `etude load`; the exit status.
pub fn load_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    answer("etude load", load(arguments))
}

fn load(arguments: impl Iterator<Item = OsString>) -> Result<(), Wrong> {
    match options(arguments).map_err(|why| usage("etude load", &why))? {
        Asked::Help => {
            print!("{LOAD}");
            Ok(())
        }
        Asked::Show(workload) => show(&workload),
        Asked::Populate(asked) => populate(&asked),
        Asked::Offer(Offer { aim, plan, format }) => {
            let format = format.unwrap_or_else(usual_format);
            match aim {
                Aim::Http(url) => offer_http(&url, &plan, format),
                Aim::Nfs(asked, workload) => offer_nfs(&asked, &workload, &plan, format),
                Aim::Files(asked, workload) => files::offer(&asked, &Chosen::new(&workload)?, &plan, format),
                Aim::Roll(asked) => roll::offer(&asked, &plan, &signals()?, format),
            }
        }
    }
}

/// Programs read JSON from a pipe or a file; people read a terminal.
fn usual_format() -> Format {
    if io::stdout().is_terminal() { Format::Text } else { Format::Json }
}

fn offer_http(url: &Url, plan: &Plan, format: Format) -> Result<(), Wrong> {
    let most = raise_open_files().saturating_sub(OTHERS);
    if plan.outstanding > most {
        let what =
            format!("{} requests under way: this process may have {most} connections", plan.outstanding);
        return Err((format!("{what}; lower --outstanding or --clients, or see ulimit -n"), 5));
    }
    let unreached = |error: io::Error| (format!("{}: {error}; start the server first", url.text), 5);
    let patience = Duration::from_nanos(plan.timeout_ns.clamp(SECOND, 10 * SECOND));
    let unknown = |error: io::Error| (format!("{}: {error}; correct the host", url.text), 5);
    let address = url.address().map_err(unknown)?;
    let first = TcpStream::connect_timeout(&address, patience).map_err(unreached)?;
    let signals = signals()?;
    let mut target = Http::new(address, url.request()).map_err(machine)?;
    target.take(first).map_err(machine)?;
    run_client(
        plan,
        About { target: "http", workload: None, file_set: None, roll: None },
        signals,
        target,
        format,
    )
}

fn offer_nfs(asked: &NfsAsked, workload: &WorkloadAsked, plan: &Plan, format: Format) -> Result<(), Wrong> {
    let chosen = Chosen::new(workload)?;
    let stream = chosen.stream(plan.seed);
    let about = About { target: "nfs", workload: Some(chosen.name()), file_set: None, roll: None };
    let prepared = prepare_nfs(asked, chosen, plan.timeout_ns)?;
    run_client(plan, about, signals()?, NfsTarget::new(prepared, stream), format)
}

fn prepare_nfs(asked: &NfsAsked, chosen: Chosen, timeout_ns: u64) -> Result<Prepared, Wrong> {
    let NfsUrl { text, host, port, export, mount_port } = asked.url.clone();
    let settings = nfs::Settings {
        export: Export { text, host, port, mount_port, path: export },
        connections: asked.connections,
        patience: Duration::from_nanos(timeout_ns.clamp(SECOND, 10 * SECOND)),
    };
    let (name, seed) = (chosen.name(), chosen.seed);
    let mut progress = Progress::new();
    let prepared =
        nfs::prepare(&settings, &name, chosen.set, seed, &mut |done, all| progress.tell(done, all));
    progress.end();
    prepared.map_err(|line| (line, 5))
}

fn show(asked: &WorkloadAsked) -> Result<(), Wrong> {
    print!("{}", Chosen::new(asked)?.workload.show());
    Ok(())
}

fn populate(asked: &Populate) -> Result<(), Wrong> {
    let chosen = Chosen::new(&asked.workload)?;
    match &asked.place {
        Place::Nfs(place) => prepare_nfs(place, chosen, 10 * SECOND).map(drop),
        Place::Files(place) => files::populate_only(place, &chosen),
    }
}
