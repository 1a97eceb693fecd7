//! What `load` was asked, as plain data; each mistake is one line.

pub(crate) mod named_workload;
pub(crate) mod nfs_url;
pub(crate) mod url;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use etude_clock::SECOND;
use etude_options::values;

use crate::options::nfs_url::NfsUrl;
use crate::options::url::Url;
use crate::run::distribution::Process;
use crate::run::plan::{Load, Plan, Wait};

/// All that can be asked.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The knobs of a workload.
    Show(WorkloadAsked),
    /// The file set, and nothing offered.
    Populate(Populate),
    Offer(Offer),
}

#[derive(Debug)]
pub(crate) struct Offer {
    pub aim: Aim,
    pub plan: Plan,
    pub format: Option<Format>,
}

/// How windows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
}

/// Where requests go, and which they are.
#[derive(Debug)]
pub(crate) enum Aim {
    Http(Url),
    Nfs(NfsAsked, WorkloadAsked),
    Files(FilesAsked, WorkloadAsked),
    Roll(RollAsked),
}

#[derive(Debug)]
pub(crate) struct Populate {
    pub place: Place,
    pub workload: WorkloadAsked,
}

/// Of a file set.
#[derive(Debug)]
pub(crate) enum Place {
    Nfs(NfsAsked),
    Files(FilesAsked),
}

#[derive(Debug, Clone)]
pub(crate) struct NfsAsked {
    pub url: NfsUrl,
    pub connections: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct FilesAsked {
    pub directory: PathBuf,
    pub way: Way,
}

/// How a mounted directory is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    Calls,
    #[value(name = "io_uring")]
    IoUring,
}

/// A roll to be played: its place, and its speed.
#[derive(Debug, Clone)]
pub(crate) struct RollAsked {
    pub roll: PathBuf,
    pub directory: PathBuf,
    pub pace: Pace,
    /// Directories of the roll outside of which calls are left out; empty: none are.
    pub only: Vec<Vec<u8>>,
    /// Each pass has copies of all files.
    pub own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Requests per second.
    Rate(f64),
    /// 2: twice as fast as the original.
    Multiple(f64),
}

#[derive(Debug, Clone)]
pub(crate) struct WorkloadAsked {
    pub source: Source,
    /// `KNOB=VALUE`, in their order.
    pub set: Vec<String>,
    /// The load, in requests per second, with which the file set grows.
    pub sized_for: f64,
    /// Of the file set alone: runs of other seeds have the same files.
    pub files_seed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Preset(String),
    File(PathBuf),
}

const TARGET: &str = "target";
const HOW: &str = "load";
const MS: u64 = SECOND / 1000;
const MOST_NS: u64 = 1_000_000 * SECOND;

/// Offer requests at a rate, independent of answers, and report windows as they end
// An option that needs another one names a group of it: clap forgets a need for an option that the rest excludes.
#[derive(Debug, Parser)]
#[command(
    groups = [
        ArgGroup::new("target").args(["url", "nfs", "directory"]),
        ArgGroup::new("place").args(["nfs", "directory"]),
        ArgGroup::new("server").args(["nfs"]),
        ArgGroup::new("mounted").args(["directory"]),
        ArgGroup::new("source").args(["preset", "workload"]),
        ArgGroup::new("work").args(["preset", "workload", "roll"]),
        ArgGroup::new("recorded").args(["roll"]),
        ArgGroup::new("closed").args(["clients"]),
        ArgGroup::new("thinking").args(["think"]),
    ],
    override_usage = "--url http://HOST[:PORT][/PATH] LOAD --seconds S [options]\n\
                      --nfs nfs://HOST[:PORT]/EXPORT[?mountport=N] --preset NAME LOAD --seconds S [options]\n\
                      --directory DIR --preset NAME LOAD --seconds S [options]\n\
                      --directory DIR --roll FILE (--rate R | --multiple M) --seconds S [options]\n\
                      --preset NAME --show",
    after_help = "Response times are measured from the intended send time. SIGTERM or SIGINT ends the window under way, \
                  drains and prints the summary; a second one does not wait for answers. More: docs/howto/load.md.\n\nexit status: 0; 2 usage; \
                  3 a file is wrong; 5 no answer at the beginning, or the machine does not allow it"
)]
pub(crate) struct Options {
    /// Requests per second on average, independent of answers (open loop)
    #[arg(long, value_name = "R", value_parser = rate, help_heading = "LOAD is one of")]
    #[arg(conflicts_with_all = ["clients", "multiple"])]
    rate: Option<f64>,
    /// N clients; each waits for its answer, thinks, and sends again (closed loop)
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(1..=1_000_000))]
    #[arg(help_heading = "LOAD is one of")]
    clients: Option<usize>,

    /// An HTTP server: GET requests on kept connections
    #[arg(long, help_heading = TARGET)]
    #[arg(conflicts_with_all = ["preset", "workload", "sized_for", "populate"])]
    url: Option<Url>,
    /// An NFS server, version 3, without a mount; without mountport its portmapper is queried
    #[arg(long, value_name = "URL", requires = "source", help_heading = TARGET)]
    nfs: Option<NfsUrl>,
    /// With --nfs: number of connections
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(1..=1024), default_value = "1")]
    #[arg(requires = "server", help_heading = TARGET)]
    connections: usize,
    /// A mounted directory, by system calls
    #[arg(long, value_name = "DIR", requires = "work", help_heading = TARGET)]
    directory: Option<PathBuf>,
    /// With --directory: calls (default) or io_uring
    #[arg(long, value_name = "WAY", default_value = "calls", requires = "mounted", help_heading = TARGET)]
    way: Way,
    /// With --nfs or --directory: which operations, on which files (docs/reference/workloads.md)
    #[arg(long, value_name = "NAME", help_heading = TARGET)]
    preset: Option<String>,
    /// Like --preset, from a file of knobs
    #[arg(long, value_name = "FILE", help_heading = TARGET)]
    workload: Option<PathBuf>,
    /// Set one knob; may be given several times
    #[arg(long, value_name = "KNOB=VALUE", value_parser = assignment, requires = "source", help_heading = TARGET)]
    set: Vec<String>,
    /// Size the file set for this rate (default: --rate, or --clients as a rate)
    #[arg(long, value_name = "R", value_parser = rate, requires = "source", help_heading = TARGET)]
    sized_for: Option<f64>,
    /// Seed of the file set (default 0); the file set is kept, and the next run repairs and reuses it
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX), default_value = "0")]
    #[arg(requires = "source", help_heading = TARGET)]
    files_seed: u64,
    /// Print the knobs, each with its source, and offer nothing
    #[arg(long, requires = "source", conflicts_with = "populate", help_heading = TARGET)]
    show: bool,
    /// Make the file set, and offer nothing
    #[arg(long, requires = "place", help_heading = TARGET)]
    populate: bool,
    /// With --directory: the recorded calls of a program (docs/howto/replay.md), at --rate calls per second
    #[arg(long, value_name = "FILE", requires = "mounted", help_heading = TARGET)]
    #[arg(conflicts_with_all = ["url", "nfs", "clients", "way", "arrivals", "wait", "outstanding", "timeout", "sized_for", "populate"])]
    roll: Option<PathBuf>,
    /// With --roll, instead of --rate: M times as fast as recorded
    #[arg(long, value_name = "M", value_parser = values::positive(1e6), requires = "recorded", help_heading = TARGET)]
    multiple: Option<f64>,
    /// With --roll: only calls on files below DIR of the roll, and what these need; may be given again; . is all but the
    /// directories of every machine (usr, lib, etc ...)
    #[arg(long, value_name = "DIR", requires = "recorded", help_heading = TARGET)]
    only: Vec<PathBuf>,
    /// With --roll: each pass has its own copies of all files, also of files that it only reads
    #[arg(long, requires = "recorded", help_heading = TARGET)]
    own: bool,

    /// Duration of the load, s
    #[arg(long, value_name = "S", value_parser = values::duration(MS..=MOST_NS), help_heading = HOW)]
    seconds: Option<u64>,
    /// poisson (default) or constant
    #[arg(long, value_name = "WAY", default_value = "poisson", conflicts_with = "clients", help_heading = HOW)]
    arrivals: Process,
    /// With --clients: mean think time, s
    #[arg(long, value_name = "S", value_parser = values::duration_or_0(MS..=MOST_NS), default_value = "0")]
    #[arg(requires = "closed", help_heading = HOW)]
    think: u64,
    /// exponential (default) or constant
    #[arg(long, value_name = "LAW", value_parser = ["exponential", "constant"], default_value = "exponential")]
    #[arg(requires = "thinking", help_heading = HOW)]
    think_law: String,
    /// Seed of send times and operations
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..=u64::MAX), default_value = "0")]
    #[arg(help_heading = HOW)]
    seed: u64,
    /// How to wait for the next send time: sleep (default), hybrid (asleep until shortly before) or spin
    #[arg(long, value_name = "WAY", default_value = "sleep", help_heading = HOW)]
    wait: Wait,
    /// Length of a window, s
    #[arg(long, value_name = "S", value_parser = values::duration(MS..=MOST_NS), default_value = "1")]
    #[arg(help_heading = HOW)]
    window: u64,
    /// Duration of warm-up load before the first window, not counted
    #[arg(long, value_name = "S", value_parser = values::duration_or_0(MS..=MOST_NS), default_value = "0")]
    #[arg(help_heading = HOW)]
    warm_up: u64,
    /// At most N requests under way; further ones wait (default 1000; 64 by --way calls)
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(1..=u64::MAX))]
    #[arg(conflicts_with = "clients", help_heading = HOW)]
    outstanding: Option<usize>,
    /// A request fails if it has no answer this long after it was due, s
    #[arg(long, value_name = "S", value_parser = values::duration(MS..=MOST_NS), default_value = "30")]
    #[arg(help_heading = HOW)]
    timeout: u64,
    /// At the end, wait at most this long for outstanding answers, s
    #[arg(long, value_name = "S", value_parser = values::duration_or_0(MS..=MOST_NS), default_value = "5")]
    #[arg(help_heading = HOW)]
    drain: u64,
    /// Print each window as a line of JSON, then a summary (default where standard output is no terminal)
    #[arg(long, conflicts_with = "text", help_heading = HOW)]
    json: bool,
    /// Print a summary for people (default on a terminal)
    #[arg(long, help_heading = HOW)]
    text: bool,
}

impl Options {
    /// # Errors
    /// One line on what is missing.
    pub(crate) fn meaning(self) -> Result<Asked, String> {
        if self.show {
            return Ok(Asked::Show(self.workload()?));
        }
        let Some(aim) = self.aim()? else {
            return Err("no target: name one of --url, --directory and --nfs".to_owned());
        };
        if self.populate {
            return Ok(Asked::Populate(match aim {
                Aim::Nfs(place, workload) => Populate { place: Place::Nfs(place), workload },
                Aim::Files(place, workload) => Populate { place: Place::Files(place), workload },
                Aim::Http(_) | Aim::Roll(_) => {
                    return Err("--populate needs --preset or --workload".to_owned());
                }
            }));
        }
        let format = if self.json { Some(Format::Json) } else { self.text.then_some(Format::Text) };
        Ok(Asked::Offer(Offer { plan: self.plan()?, aim, format }))
    }

    fn aim(&self) -> Result<Option<Aim>, String> {
        Ok(Some(match (&self.url, &self.nfs, &self.directory, &self.roll) {
            (Some(url), ..) => Aim::Http(url.clone()),
            (_, Some(url), ..) => {
                Aim::Nfs(NfsAsked { url: url.clone(), connections: self.connections }, self.workload()?)
            }
            (_, _, Some(directory), Some(roll)) => {
                let pace = match (self.rate, self.multiple) {
                    (Some(rate), _) => Pace::Rate(rate),
                    (None, multiple) => Pace::Multiple(multiple.unwrap_or(1.0)),
                };
                let only = self.only.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
                let (roll, directory) = (roll.clone(), directory.clone());
                Aim::Roll(RollAsked { roll, directory, pace, only, own: self.own })
            }
            (_, _, Some(directory), None) => {
                let directory = directory.clone();
                Aim::Files(FilesAsked { directory, way: self.way }, self.workload()?)
            }
            _ => return Ok(None),
        }))
    }

    fn plan(&self) -> Result<Plan, String> {
        // What rate a multiple is, only the roll knows.
        let load = match (self.rate.or(self.multiple), self.clients) {
            (Some(rate), _) => Load::Open { rate, process: self.arrivals },
            (None, Some(clients)) => {
                let exponential = self.think_law == "exponential";
                Load::Closed { clients, think_ns: self.think, exponential }
            }
            (None, None) => return Err("--rate is missing, or --clients".to_owned()),
        };
        // Each is a thread where a call is waited for.
        let by_calls = self.directory.is_some() && self.way != Way::IoUring;
        let most = if by_calls { 64 } else { 1000 };
        Ok(Plan {
            load,
            wait: self.wait,
            seed: self.seed,
            warm_up_ns: self.warm_up,
            duration_ns: self.seconds.ok_or("--seconds is missing")?,
            window_ns: self.window,
            outstanding: self.clients.or(self.outstanding).unwrap_or(most),
            timeout_ns: self.timeout,
            drain_ns: self.drain,
        })
    }

    fn workload(&self) -> Result<WorkloadAsked, String> {
        let source = match (&self.preset, &self.workload) {
            (Some(name), _) => Source::Preset(name.clone()),
            (None, Some(file)) => Source::File(file.clone()),
            (None, None) => return Err("--preset or --workload is missing".to_owned()),
        };
        let clients = self.clients.map(|clients| clients as f64);
        let sized_for = match self.sized_for.or(self.rate).or(clients) {
            Some(rate) => rate,
            // What is shown hangs on no load.
            None if self.show => 1.0,
            None => {
                return Err("--rate is missing, or --sized-for: the file set grows with the load".to_owned());
            }
        };
        Ok(WorkloadAsked { source, set: self.set.clone(), sized_for, files_seed: self.files_seed })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = etude_quantity::rate(text)?;
    let good = rate > 0.0 && rate <= 1e8;
    if good { Ok(rate) } else { Err(format!("{text:?}: expected a rate above 0, at most 100M/s")) }
}

fn assignment(text: &str) -> Result<String, String> {
    let good = text.split_once('=').is_some_and(|(knob, _)| !knob.trim().is_empty());
    if good { Ok(text.to_owned()) } else { Err(format!("{text:?}: expected KNOB=VALUE")) }
}

#[cfg(test)]
mod tests;
