//! The knobs: a table of what each is called, is, may be, and is by default.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::choice::{DirectoryPopularity, Popularity, Spread};
use crate::iosize::IoSize;
use crate::law::{LARGEST, Law};
use crate::mix::Mix;
use crate::parse::number;

/// One knob of the table.
pub(crate) struct Knob {
    pub name: &'static str,
    pub unit: &'static str,
    /// A sentence on what it is.
    pub what: &'static str,
    /// Its value as a value of TOML.
    pub toml: fn(&Workload) -> String,
    /// Gives it a value, from plain text.
    pub set: fn(&mut Workload, &str) -> Result<(), String>,
}

/// What is done with which files: plain data, a value for each knob, and where each value is from.
#[derive(Debug, Clone)]
pub struct Workload {
    pub(crate) name: String,
    pub(crate) knobs: Knobs,
    /// By name of the knob; a knob that is not here has its default.
    pub(crate) sources: BTreeMap<&'static str, String>,
}

/// Two workloads are equal if all their knobs are, wherever the values are from.
impl PartialEq for Workload {
    fn eq(&self, other: &Workload) -> bool {
        self.name == other.name && self.knobs == other.knobs
    }
}

/// What a value of a knob can do.
trait Value: Sized {
    fn read(text: &str, range: &RangeInclusive<f64>) -> Result<Self, String>;
    fn toml(&self) -> String;
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(impl Value for $kind {
        fn read(text: &str, range: &RangeInclusive<f64>) -> Result<Self, String> {
            let value: $kind = number(text)?;
            let fits = range.contains(&(value as f64));
            if fits { Ok(value) } else { Err(format!("expected {} to {}", range.start(), range.end())) }
        }

        fn toml(&self) -> String {
            self.to_string()
        }
    })* };
}
numbers!(u64, f64);

impl Value for bool {
    fn read(text: &str, _: &RangeInclusive<f64>) -> Result<Self, String> {
        text.trim().parse().map_err(|_| "expected true or false".to_owned())
    }

    fn toml(&self) -> String {
        self.to_string()
    }
}

impl Value for Mix {
    fn read(text: &str, _: &RangeInclusive<f64>) -> Result<Self, String> {
        text.parse()
    }

    fn toml(&self) -> String {
        self.table()
    }
}

/// Of what has a form of its own as text.
trait Worded: FromStr<Err = String> + Display {}
impl Worded for Law {}
impl Worded for IoSize {}
impl Worded for Popularity {}
impl Worded for DirectoryPopularity {}
impl Worded for Spread {}

impl<T: Worded> Value for T {
    fn read(text: &str, _: &RangeInclusive<f64>) -> Result<Self, String> {
        text.trim().parse()
    }

    fn toml(&self) -> String {
        format!("\"{self}\"")
    }
}

const ANY: RangeInclusive<f64> = 0.0..=1e15;
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// Of files. Each costs the generator 16 to 24 bytes.
pub(crate) const MOST_FILES: f64 = 5e7;
const FILES: RangeInclusive<f64> = 0.0..=MOST_FILES;
const BYTES: RangeInclusive<f64> = 0.0..=LARGEST as f64;

macro_rules! knobs {
    ($($name:ident: $kind:ty = $default:expr, $unit:literal, $range:expr, $what:literal;)*) => {
        /// The values of all knobs.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct Knobs { $(pub $name: $kind,)* }

        impl Default for Knobs {
            fn default() -> Knobs {
                Knobs { $($name: $default,)* }
            }
        }

        /// All knobs, in the order in which they are shown.
        pub(crate) const KNOBS: &[Knob] = &[$(Knob {
            name: stringify!($name),
            unit: $unit,
            what: $what,
            toml: |workload| workload.knobs.$name.toml(),
            set: |workload, text| {
                workload.knobs.$name = Value::read(text, &$range)?;
                Ok(())
            },
        },)*];
    };
}

knobs! {
    mix: Mix = Mix::default(), "weight of each operation", ANY,
        "How often which operation is drawn. Commits that follow writes and batches of a log come on top.";
    files: u64 = 1000, "files", FILES, "The least number of files, whatever the load.";
    files_per_rate: f64 = 0.0, "files per request/s", FILES, "So many files for each request/s of the load.";
    bytes_per_rate: f64 = 0.0, "bytes per request/s", ANY,
        "As many files as make up so many bytes for each request/s of the load. The largest of the three numbers of files counts.";
    sizes: Law = Law::Fixed(4096), "bytes", ANY,
        "Sizes of files: fixed:BYTES, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, tailed:MEDIAN:SIGMA:TAIL:CUT:ALPHA (a share TAIL is a Pareto tail above CUT bytes) or table:BYTES=WEIGHT,...";
    largest: u64 = LARGEST, "bytes", 1.0..=LARGEST as f64, "No file is drawn larger, before `scale`; larger ones are drawn anew.";
    scale: f64 = 1.0, "factor", 1e-9..=1e6, "Sizes of files are multiplied by it, and are at least 1 byte.";
    popularity: Popularity = Popularity::Uniform, "law", ANY,
        "Which file is meant: uniform, share:SHARE (a working set of that share, uniform within) or zipf:ALPHA. Of reads and writes in runs, which file a run is on.";
    turnover: u64 = 0, "choices of a file", BYTES,
        "After so many choices each rank of popularity passes to the next file, and the first becomes the last; 0: never.";
    directories: u64 = 0, "directories", FILES, "How many directories below the root; 0: by `directory_files`.";
    directory_files: u64 = 100, "files per directory", FILES,
        "A further directory after each so many files, if `directories` is 0; if both are 0 all files are in the root.";
    directory_spread: Spread = Spread::Even, "law", ANY,
        "How files are spread over a given number of directories: even, or zipf:ALPHA.";
    depth: u64 = 1, "levels", 1.0..=64.0, "Levels of directories below the root, of equally many directories each.";
    directory_popularity: DirectoryPopularity = DirectoryPopularity::Files, "law", ANY,
        "Which directory is listed: files (that of a file drawn by `popularity`), uniform, share:SHARE or zipf:ALPHA.";
    links: f64 = 0.0, "symbolic links per file", 0.0..=10.0, "So many symbolic links for each file; each leads to a file.";
    link_popularity: Popularity = Popularity::Uniform, "law", ANY, "Which link is read: uniform, share:SHARE or zipf:ALPHA.";
    read_size: IoSize = IoSize::Whole(32 << 10), "bytes", ANY,
        "Bytes a read asks for: whole:MOST (the rest of the file, at most MOST), or a law as of `sizes`. It ends with the file.";
    write_size: IoSize = IoSize::Whole(32 << 10), "bytes", ANY,
        "Bytes of a write that is in a run or at random: as `read_size`.";
    append_size: IoSize = IoSize::Law(Law::Fixed(4096)), "bytes", ANY, "Bytes of an appending write: a law as of `sizes`.";
    read_sequential: f64 = 1.0, "share of reads", SHARE,
        "This share of reads is in runs, each over a whole file from its beginning to its end; the others are at random.";
    write_sequential: f64 = 0.0, "share of writes", SHARE, "This share of writes is in runs over whole files.";
    write_append: f64 = 0.0, "share of writes", SHARE,
        "This share of writes is at the end of a file; what is neither in a run nor appended is at random, within the file.";
    alignment: u64 = 4096, "bytes", 1.0..=LARGEST as f64, "Reads and writes at random begin at a multiple of it.";
    runs: u64 = 16, "runs", 1.0..=4096.0,
        "Number of sequential streams of reads, and of writes, under way at once; the next one is drawn at random.";
    append_limit: u64 = 1 << 20, "bytes", 1.0..=LARGEST as f64,
        "No file grows beyond it by appends. One that would is emptied by the next setattr of the mix; until then, and if the mix has none, appends are written from its beginning on, as in a log that goes round.";
    stable: f64 = 0.0, "share of writes", SHARE, "This share of writes must be durable when it is answered.";
    commit_every: u64 = 0, "writes", BYTES,
        "After so many writes that need not be durable a commit follows, of the file last written; 0: never.";
    commit_at_end: bool = false, "yes or no", ANY, "A commit follows the last write of each run that was not all durable.";
    churn: f64 = 0.0, "share of files", SHARE, "This share of files may come and go: what create and remove act on.";
    present: f64 = 0.5, "share of those", 0.01..=0.99,
        "This share of the files that may come and go is there at first, and on average.";
    fill: bool = true, "yes or no", ANY,
        "Writes first fill what was created, each file up to its size, before any other write. Else it stays empty until written to.";
    log_files: u64 = 0, "files", 0.0..=1000.0, "Files that are written as logs and not otherwise touched.";
    log_bytes: u64 = 64 << 20, "bytes", 1.0..=LARGEST as f64, "Size of each; the log goes round in it.";
    log_every: f64 = 0.0, "drawn operations", 0.0..=1e9,
        "A batch is written to a log once in so many operations on average; 0: never.";
    log_write: u64 = 32 << 10, "bytes", 1.0..=(64 << 20) as f64, "Bytes of each write of a batch.";
    log_batch: u64 = 8, "writes", 1.0..=10_000.0, "Writes of a batch, one after another and none of them durable; a commit follows.";
    directory_bytes: u64 = 8192, "bytes", 512.0..=(1 << 20) as f64, "Room for entries in the answer to one readdir or readdirplus.";
    spare: u64 = 0, "directories, and links", 0.0..=1e6,
        "So many directories and so many links come and go by mkdir and rmdir, symlink and remove. None is there at first.";
}
