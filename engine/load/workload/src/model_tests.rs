//! A file system on sets and lengths, on which streams are executed, whatever the knobs.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use crate::stream_tests::preset;
use crate::{FileSet, Kind, Object, Operation, Stream, Workload};

/// Executes operations on sets and lengths, and refuses what could not be done.
pub(crate) struct Model {
    set: FileSet,
    pub files: HashSet<usize>,
    directories: HashSet<usize>,
    links: HashSet<usize>,
    pub lengths: HashMap<usize, u64>,
    limit: u64,
}

impl Model {
    pub fn new(workload: &Workload, set: &FileSet) -> Model {
        let files: HashSet<usize> = (0..set.files()).filter(|at| set.file(*at).present).collect();
        let lengths = files.iter().map(|at| (*at, set.file(*at).bytes)).collect();
        let (directories, links) = ((0..set.directories()).collect(), (0..set.links()).collect());
        Model { set: set.clone(), files, directories, links, lengths, limit: workload.knobs.append_limit }
    }

    pub fn bytes(&self) -> u64 {
        self.lengths.values().sum()
    }

    pub fn execute(&mut self, operation: &Operation) -> Result<(), String> {
        let done = match (operation.kind, operation.object) {
            (Kind::Create, Object::File(at)) => {
                self.lengths.insert(at, 0);
                at < self.set.files() && self.set.file(at).churn && self.files.insert(at)
            }
            (Kind::Remove, Object::File(at)) => {
                self.lengths.remove(&at);
                self.files.remove(&at)
            }
            (Kind::Rename, Object::File(from)) => {
                let to = operation.offset as usize;
                let length = self.lengths.remove(&from).unwrap_or_default();
                self.lengths.insert(to, length);
                self.files.remove(&from) && self.files.insert(to)
            }
            (Kind::Symlink, Object::Link(at)) => at >= self.set.links() && self.links.insert(at),
            (Kind::Remove, Object::Link(at)) => at >= self.set.links() && self.links.remove(&at),
            (Kind::Mkdir, Object::Directory(at)) => {
                at >= self.set.directories() && self.directories.insert(at)
            }
            (Kind::Rmdir, Object::Directory(at)) => {
                at >= self.set.directories() && self.directories.remove(&at)
            }
            (Kind::Readlink, Object::Link(at)) => self.links.contains(&at),
            (Kind::Readdir | Kind::Readdirplus, Object::Directory(at)) => self.directories.contains(&at),
            (Kind::Fsstat, Object::Directory(at)) => at == 0,
            (Kind::Read, Object::File(at)) => self.read(at, operation),
            (Kind::Write, Object::File(at)) => self.write(at, operation),
            (Kind::Setattr, Object::File(at)) if operation.ordered => self.cut(at, operation.offset),
            (
                Kind::Getattr | Kind::Setattr | Kind::Lookup | Kind::Access | Kind::Commit,
                Object::File(at),
            ) => self.files.contains(&at),
            _ => false,
        };
        let orders = matches!(
            operation.kind,
            Kind::Create | Kind::Remove | Kind::Rename | Kind::Symlink | Kind::Mkdir | Kind::Rmdir
        );
        if done && (operation.ordered == orders || operation.kind == Kind::Setattr) {
            Ok(())
        } else {
            Err(format!("{operation:?}"))
        }
    }

    fn read(&self, at: usize, read: &Operation) -> bool {
        let length = self.lengths.get(&at).copied();
        let within = length.is_some_and(|length| read.offset + u64::from(read.bytes) <= length.max(1));
        let all_empty = || self.lengths.iter().all(|(at, length)| *at < self.set.logs() || *length == 0);
        within && read.bytes > 0 && (length != Some(0) || all_empty())
    }

    /// Only what is not empty is emptied.
    fn cut(&mut self, at: usize, to: u64) -> bool {
        self.files.contains(&at) && to == 0 && self.lengths.insert(at, to) > Some(0)
    }

    fn write(&mut self, at: usize, write: &Operation) -> bool {
        let end = write.offset + u64::from(write.bytes);
        let most = self.set.file(at).bytes.max(self.limit);
        let Some(length) = self.lengths.get_mut(&at) else { return false };
        let fits = write.bytes > 0 && end <= most.max(*length);
        *length = end.max(*length);
        fits
    }
}

/// Knobs with values that are worth trying together.
const TRIED: [(&str, &[&str]); 23] = [
    ("mix.read", &["0", "1", "30"]),
    ("mix.write", &["1", "20"]),
    ("mix.create", &["3"]),
    ("mix.rename", &["0", "2"]),
    ("mix.setattr", &["0", "9"]),
    ("mix.mkdir", &["2"]),
    ("mix.symlink", &["0", "2"]),
    ("mix.commit", &["0", "4"]),
    ("files", &["1", "2", "7", "300"]),
    ("sizes", &["fixed:1", "uniform:1:9000", "tailed:2000:1:0.1:9000:1.1", "table:1=1,70000=2"]),
    ("largest", &["60000", "1000000"]),
    ("popularity", &["uniform", "share:0.3", "zipf:1.2"]),
    ("turnover", &["0", "3"]),
    ("directories", &["0", "4"]),
    ("directory_files", &["0", "3"]),
    ("directory_popularity", &["files", "uniform", "zipf:1"]),
    ("depth", &["1", "3"]),
    ("read_size", &["whole:4096", "uniform:1:5000", "fixed:1"]),
    ("write_sequential", &["0", "0.4"]),
    ("write_append", &["0", "0.6"]),
    ("append_limit", &["1", "9000"]),
    ("churn", &["0.1", "0.6", "1"]),
    ("log_every", &["0", "5"]),
];

pub(crate) fn tried(choices: &[usize]) -> Workload {
    let mut workload = preset(
        "mail",
        &["mix.readdir=1", "mix.readlink=1", "links=0.4", "spare=3", "log_files=1", "log_bytes=300000"],
    );
    workload.set("files_per_rate=0").unwrap();
    for ((knob, values), choice) in TRIED.iter().zip(choices) {
        workload.set(&format!("{knob}={}", values[choice % values.len()])).unwrap();
    }
    let weight = |kind| workload.knobs.mix.weight(kind);
    let (removes, unmakes) = (weight(Kind::Create) + weight(Kind::Symlink), weight(Kind::Mkdir));
    workload.set(&format!("mix.remove={removes}")).unwrap();
    workload.set(&format!("mix.rmdir={unmakes}")).unwrap();
    workload
}

proptest! {
    #[test]
    fn no_operation_names_what_is_not_there_whatever_the_knobs(choices in prop::collection::vec(0usize..12, 23), seed: u64) {
        let workload = tried(&choices);
        prop_assert_eq!(workload.check(), Ok(()));
        let set = FileSet::new(&workload, 1.0, seed).unwrap();
        let mut stream = Stream::new(&workload, &set, seed);
        let mut model = Model::new(&workload, &set);
        for _ in 0..3000 {
            let operation = stream.next();
            let done = model.execute(&operation);
            prop_assert!(done.is_ok(), "{:?}\n{}", done, workload.show());
        }
    }
}
