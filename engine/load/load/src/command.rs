//! `etude load`: from what was asked to a client that runs.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::net::TcpStream;
use std::time::Duration;

use etude_clock::SECOND;
use etude_launch::sys;
use etude_nfs::Export;
use etude_options::Failed;

use crate::exit::{machine, signals};
use crate::files;
use crate::http::target::Http;
use crate::nfs::{self, NfsTarget, Prepared};
use crate::options::named_workload::Chosen;
use crate::options::nfs_url::NfsUrl;
use crate::options::url::Url;
use crate::options::{Aim, Asked, Format, NfsAsked, Offer, Options, Place, Populate, WorkloadAsked};
use crate::report::progress::Progress;
use crate::report::summary::{About, Summary};
use crate::roll;
use crate::run::client::Client;
use crate::run::plan::Plan;
use crate::run::run;
use crate::run::run_loop::Signals;

const PROGRAM: &str = "etude load";

/// Descriptors that are no connections.
const OTHERS: usize = 16;

/// `etude load`; the exit status.
pub fn load_main(arguments: impl Iterator<Item = OsString>) -> u8 {
    etude_options::run(PROGRAM, arguments, load)
}

fn load(options: Options) -> Result<u8, Failed> {
    match options.meaning().map_err(|why| etude_options::usage(PROGRAM, why))? {
        Asked::Show(workload) => show(&workload),
        Asked::Populate(asked) => populate(&asked),
        Asked::Offer(Offer { aim, plan, format }) => {
            let format = format.unwrap_or_else(usual_format);
            match aim {
                Aim::Http(url) => offer_http(&url, &plan, format),
                Aim::Nfs(asked, workload) => offer_nfs(&asked, &workload, &plan, format),
                Aim::Files(asked, workload) => files::offer(&asked, &Chosen::new(&workload)?, &plan, format),
                Aim::Roll(asked) => roll::offer(&asked, &plan, signals()?, format),
            }
        }
    }
    .map(|()| 0)
}

/// Programs read JSON from a pipe or a file; people read a terminal.
fn usual_format() -> Format {
    if io::stdout().is_terminal() { Format::Text } else { Format::Json }
}

fn offer_http(url: &Url, plan: &Plan, format: Format) -> Result<(), Failed> {
    let most = sys::most_open_files().saturating_sub(OTHERS);
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
    let signals = Signals::new(signals()?, 0);
    let mut target = Http::new(address, url.request()).map_err(machine)?;
    target.take(first).map_err(machine)?;
    let about = About { target: "http", workload: None, file_set: None, roll: None };
    run(plan, Summary::new(plan, about), signals, Client::new(plan, target), format)
}

fn offer_nfs(asked: &NfsAsked, workload: &WorkloadAsked, plan: &Plan, format: Format) -> Result<(), Failed> {
    let chosen = Chosen::new(workload)?;
    let stream = chosen.stream(plan.seed);
    let about = About { target: "nfs", workload: Some(chosen.name()), file_set: None, roll: None };
    let prepared = prepare_nfs(asked, chosen, plan.timeout_ns)?;
    let client = Client::new(plan, NfsTarget::new(prepared, stream));
    run(plan, Summary::new(plan, about), Signals::new(signals()?, 0), client, format)
}

fn prepare_nfs(asked: &NfsAsked, chosen: Chosen, timeout_ns: u64) -> Result<Prepared, Failed> {
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

fn show(asked: &WorkloadAsked) -> Result<(), Failed> {
    print!("{}", Chosen::new(asked)?.workload.show());
    Ok(())
}

fn populate(asked: &Populate) -> Result<(), Failed> {
    let chosen = Chosen::new(&asked.workload)?;
    match &asked.place {
        Place::Nfs(place) => prepare_nfs(place, chosen, 10 * SECOND).map(drop),
        Place::Files(place) => files::populate_only(place, &chosen),
    }
}
