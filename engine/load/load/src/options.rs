//! What `load` was asked, as plain data; each mistake is one line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use etude_clock::SECOND;
use lexopt::Parser;
use lexopt::prelude::*;

use crate::distribution::Process;
use crate::nfs_url::NfsUrl;
use crate::option_values::{number, one_of, path, read, text, time, whole};
use crate::plan::{Load, Plan, Wait};
use crate::url::{self, Url};

/// All that can be asked.
#[derive(Debug)]
pub(crate) enum Asked {
    Help,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Calls,
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

/// The words, before they are known to go together.
#[derive(Default)]
struct Words {
    url: Option<Url>,
    directory: Option<PathBuf>,
    nfs: Option<NfsUrl>,
    rate: Option<f64>,
    clients: Option<usize>,
    think_ns: Option<u64>,
    exponential: Option<bool>,
    preset: Option<String>,
    workload: Option<PathBuf>,
    set: Vec<String>,
    sized_for: Option<f64>,
    files_seed: Option<u64>,
    roll: Option<PathBuf>,
    multiple: Option<f64>,
    only: Vec<PathBuf>,
    own: bool,
    way: Option<Way>,
    connections: Option<usize>,
    wait: Option<Wait>,
    show: bool,
    populate: bool,
    seconds: Option<u64>,
    process: Option<Process>,
    seed: u64,
    window_ns: Option<u64>,
    warm_up_ns: u64,
    outstanding: Option<usize>,
    timeout_ns: Option<u64>,
    drain_ns: Option<u64>,
    json: bool,
    text: bool,
}

/// # Errors
/// One line that names the option and says what was expected.
pub(crate) fn options(arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut words = Words::default();
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| error.to_string())? {
        let name = match argument {
            Short('h') | Long("help") => return Ok(Asked::Help),
            Long(name) => name.to_owned(),
            other => return Err(other.unexpected().to_string()),
        };
        if !(words.target(&name, &mut parser)? || words.load(&name, &mut parser)?) {
            return Err(format!("--{name}: there is no such option"));
        }
    }
    words.meaning()
}

fn a_rate(name: &str, parser: &mut Parser) -> Result<Option<f64>, String> {
    let text = text(name, parser)?;
    let rate = etude_quantity::rate(&text).map_err(|why| format!("--{name} {why}"))?;
    let good = rate > 0.0 && rate <= 1e8;
    if good {
        Ok(Some(rate))
    } else {
        Err(format!("--{name} {text:?}: expected a rate above 0, at most 100M/s"))
    }
}

impl Words {
    /// Takes an option of what is asked; false: it is none.
    fn target(&mut self, name: &str, parser: &mut Parser) -> Result<bool, String> {
        const WAYS: [(&str, Way); 2] = [("calls", Way::Calls), ("io_uring", Way::IoUring)];
        match name {
            "url" => self.url = Some(read(name, parser, url::EXPECTED)?),
            "directory" => self.directory = Some(path(name, parser)?),
            "nfs" => self.nfs = Some(read(name, parser, "nfs://HOST[:PORT]/EXPORT[?mountport=N]")?),
            "preset" => self.preset = Some(text(name, parser)?),
            "workload" => self.workload = Some(path(name, parser)?),
            "set" => self.set.push(assignment(name, parser)?),
            "sized-for" => self.sized_for = a_rate(name, parser)?,
            "files-seed" => self.files_seed = Some(read(name, parser, "a whole number")?),
            "roll" => self.roll = Some(path(name, parser)?),
            "multiple" => {
                let good = |multiple| multiple > 0.0 && multiple <= 1e6;
                self.multiple = Some(number(name, parser, "how many times as fast, above 0", good)?);
            }
            "only" => self.only.push(path(name, parser)?),
            "own" => self.own = true,
            "way" => self.way = Some(one_of(name, parser, &WAYS)?),
            "connections" => self.connections = Some(whole(name, parser, 1, 1024)?),
            "show" => self.show = true,
            "populate" => self.populate = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes an option of how it is asked; false: it is none.
    fn load(&mut self, name: &str, parser: &mut Parser) -> Result<bool, String> {
        const WAITS: [(&str, Wait); 3] =
            [("sleep", Wait::Sleep), ("hybrid", Wait::Hybrid), ("spin", Wait::Spin)];
        match name {
            "rate" => self.rate = a_rate(name, parser)?,
            "clients" => self.clients = Some(whole(name, parser, 1, 1_000_000)?),
            "think" => self.think_ns = Some(time(name, parser, true, "s")?),
            "think-law" => {
                self.exponential = Some(one_of(name, parser, &[("exponential", true), ("constant", false)])?);
            }
            "wait" => self.wait = Some(one_of(name, parser, &WAITS)?),
            "seconds" => self.seconds = Some(time(name, parser, false, "s")?),
            "arrivals" => {
                let known = [("poisson", Process::Poisson), ("constant", Process::Constant)];
                self.process = Some(one_of(name, parser, &known)?);
            }
            "seed" => self.seed = read(name, parser, "a whole number")?,
            "window" => self.window_ns = Some(time(name, parser, false, "s")?),
            "warm-up" => self.warm_up_ns = time(name, parser, true, "s")?,
            "outstanding" => self.outstanding = Some(whole(name, parser, 1, usize::MAX)?),
            "timeout" => self.timeout_ns = Some(time(name, parser, false, "s")?),
            "drain" => self.drain_ns = Some(time(name, parser, true, "s")?),
            "json" => self.json = true,
            "text" => self.text = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn meaning(mut self) -> Result<Asked, String> {
        self.check()?;
        if self.show {
            return Ok(Asked::Show(self.workload()?));
        }
        if self.populate {
            let workload = self.workload()?;
            return Ok(Asked::Populate(Populate { place: self.place()?, workload }));
        }
        if self.url.is_none() && self.directory.is_none() && self.nfs.is_none() {
            return Err("no target: name one of --url, --directory and --nfs".to_owned());
        }
        let plan = self.plan()?;
        let aim = if let Some(url) = self.url.take() {
            Aim::Http(url)
        } else if let Some(roll) = self.roll.take() {
            let directory =
                self.directory.take().ok_or("--roll: --directory is missing, in which it plays")?;
            let pace = match (&plan.load, self.multiple) {
                (Load::Open { rate, .. }, None) => Pace::Rate(*rate),
                (_, multiple) => Pace::Multiple(multiple.unwrap_or(1.0)),
            };
            let only = self.only.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
            Aim::Roll(RollAsked { roll, directory, pace, only, own: self.own })
        } else {
            let workload = self.workload()?;
            match self.place()? {
                Place::Nfs(asked) => Aim::Nfs(asked, workload),
                Place::Files(asked) => Aim::Files(asked, workload),
            }
        };
        let format = if self.json { Some(Format::Json) } else { self.text.then_some(Format::Text) };
        Ok(Asked::Offer(Offer { aim, plan, format }))
    }

    /// Options that contradict each other, or are about something that was not named.
    fn check(&self) -> Result<(), String> {
        let (http, files, nfs) = (self.url.is_some(), self.directory.is_some(), self.nfs.is_some());
        let knobs = self.preset.is_some() || self.workload.is_some();
        let (roll, clients, way) = (self.roll.is_some(), self.clients.is_some(), self.way.is_some());
        let about_files = knobs || self.populate || self.sized_for.is_some();
        for (both, first, second) in [
            (http && files, "--url", "--directory"),
            (http && nfs, "--url", "--nfs"),
            (files && nfs, "--directory", "--nfs"),
            (self.rate.is_some() && clients, "--rate", "--clients"),
            (self.process.is_some() && clients, "--arrivals", "--clients"),
            (self.outstanding.is_some() && clients, "--outstanding", "--clients"),
            (self.preset.is_some() && self.workload.is_some(), "--preset", "--workload"),
            (roll && clients, "--roll", "--clients"),
            (self.rate.is_some() && self.multiple.is_some(), "--rate", "--multiple"),
            (roll && way, "--roll", "--way"),
            (roll && self.process.is_some(), "--roll", "--arrivals"),
            (roll && self.wait.is_some(), "--roll", "--wait"),
            (roll && self.outstanding.is_some(), "--roll", "--outstanding"),
            (roll && self.timeout_ns.is_some(), "--roll", "--timeout"),
            (roll && nfs, "--roll", "--nfs"),
            (roll && http, "--roll", "--url"),
            (roll && about_files, "--roll", "--preset, --workload, --sized-for and --populate"),
            (http && about_files, "--url", "--preset, --workload, --sized-for and --populate"),
            (self.show && self.populate, "--show", "--populate"),
            (self.json && self.text, "--json", "--text"),
        ] {
            if both {
                return Err(format!("{first} and {second} exclude each other: leave one out"));
            }
        }
        for (lost, option, needed) in [
            (self.think_ns.is_some() && !clients, "--think", "--clients"),
            (self.exponential.is_some() && self.think_ns.is_none(), "--think-law", "--think"),
            (way && !files, "--way", "--directory"),
            (self.connections.is_some() && !nfs, "--connections", "--nfs"),
            (!self.set.is_empty() && !knobs, "--set", "--preset or --workload"),
            (self.sized_for.is_some() && !knobs, "--sized-for", "--preset or --workload"),
            (self.files_seed.is_some() && !knobs, "--files-seed", "--preset or --workload"),
            (self.show && !knobs, "--show", "--preset or --workload"),
            (knobs && !self.show && !files && !nfs, "--preset or --workload", "--directory or --nfs"),
            (self.populate && !files && !nfs, "--populate", "--directory or --nfs"),
            (roll && !files, "--roll", "--directory"),
            (self.multiple.is_some() && !roll, "--multiple", "--roll"),
            (!self.only.is_empty() && !roll, "--only", "--roll"),
            (self.own && !roll, "--own", "--roll"),
            (nfs && !knobs, "--nfs", "--preset or --workload"),
            (files && !knobs && !roll, "--directory", "--preset, --workload or --roll"),
        ] {
            if lost {
                return Err(format!("{option} needs {needed}"));
            }
        }
        Ok(())
    }

    fn plan(&self) -> Result<Plan, String> {
        let process = self.process.unwrap_or(Process::Poisson);
        // What rate a multiple is, only the roll knows.
        let load = match (self.rate.or(self.multiple), self.clients) {
            (Some(rate), None) => Load::Open { rate, process },
            (None, Some(clients)) => {
                let exponential = self.exponential.unwrap_or(true);
                Load::Closed { clients, think_ns: self.think_ns.unwrap_or(0), exponential }
            }
            _ => return Err("--rate is missing, or --clients".to_owned()),
        };
        // Each is a thread where a call is waited for.
        let by_calls = self.directory.is_some() && self.way != Some(Way::IoUring);
        let most = if by_calls { 64 } else { 1000 };
        Ok(Plan {
            load,
            wait: self.wait.unwrap_or(Wait::Sleep),
            seed: self.seed,
            warm_up_ns: self.warm_up_ns,
            duration_ns: self.seconds.ok_or("--seconds is missing")?,
            window_ns: self.window_ns.unwrap_or(SECOND),
            outstanding: self.clients.or(self.outstanding).unwrap_or(most),
            timeout_ns: self.timeout_ns.unwrap_or(30 * SECOND),
            drain_ns: self.drain_ns.unwrap_or(5 * SECOND),
        })
    }

    fn workload(&mut self) -> Result<WorkloadAsked, String> {
        let source = match (self.preset.take(), self.workload.take()) {
            (Some(name), _) => Source::Preset(name),
            (None, Some(file)) => Source::File(file),
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
        Ok(WorkloadAsked {
            source,
            set: std::mem::take(&mut self.set),
            sized_for,
            files_seed: self.files_seed.unwrap_or(0),
        })
    }

    fn place(&mut self) -> Result<Place, String> {
        match (self.nfs.take(), self.directory.take()) {
            (Some(url), _) => Ok(Place::Nfs(NfsAsked { url, connections: self.connections.unwrap_or(1) })),
            (None, Some(directory)) => {
                Ok(Place::Files(FilesAsked { directory, way: self.way.unwrap_or(Way::Calls) }))
            }
            (None, None) => Err("--directory or --nfs is missing".to_owned()),
        }
    }
}

fn assignment(name: &str, parser: &mut Parser) -> Result<String, String> {
    let text = text(name, parser)?;
    let good = text.split_once('=').is_some_and(|(knob, _)| !knob.trim().is_empty());
    if good { Ok(text) } else { Err(format!("--{name} {text:?}: expected KNOB=VALUE")) }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
