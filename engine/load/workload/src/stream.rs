//! The operations of a workload, one after another, without an end.

mod coming;

use std::collections::VecDeque;

use crate::choice::{Chooser, DirectoryPopularity, Popularity};
use crate::fileset::FileSet;
use crate::iosize::MOST;
use crate::kind::{Kind, Object, Operation};
use crate::knobs::{Knobs, Workload};
use crate::mix::Kinds;
use crate::random::{Purpose, Random};
use crate::runs::{Run, Runs};
use crate::slots::Slots;
use crate::state::State;

/// How many files that wait for a commit are remembered.
const DIRTY: usize = 64;

/// What is created while so many wait to be filled stays empty: the mix has too few writes.
const MOST_FILLS: usize = 1024;

/// What is done, drawn from the knobs. It keeps in mind which files are there and how long they are, so that it never names
/// one that is not there: what it draws is right if operations take effect in its order.
#[derive(Debug, Clone)]
pub struct Stream {
    knobs: Knobs,
    set: FileSet,
    kinds: Kinds,
    files: Chooser,
    directories: Option<Chooser>,
    links: Chooser,
    amounts: Random,
    offsets: Random,
    access: Random,
    slots: Random,
    log: Random,
    state: State,
    reads: Runs,
    writes: Runs,
    /// What was created and has to be filled.
    fills: VecDeque<Run>,
    churn: Slots,
    spare_directories: Slots,
    spare_links: Slots,
    /// Share of creations and removals that concern links.
    links_share: f64,
    /// What follows, before anything else is drawn.
    pending: VecDeque<Operation>,
    /// Files with writes that no commit has followed yet.
    dirty: VecDeque<usize>,
    uncommitted: u64,
    /// Where the next write of each log goes.
    logs: Vec<u64>,
    next_log: usize,
    after_batch: bool,
}

fn operation(kind: Kind, object: Object) -> Operation {
    Operation { kind, object, offset: 0, bytes: 0, stable: false, ordered: false }
}

fn ordered(kind: Kind, object: Object) -> Operation {
    Operation { ordered: true, ..operation(kind, object) }
}

impl Stream {
    /// The stream of that workload on that population. Another seed draws other operations on the same files.
    #[must_use]
    pub fn new(workload: &Workload, set: &FileSet, seed: u64) -> Stream {
        let knobs = workload.knobs.clone();
        let random = |purpose| Random::new(seed, purpose, 0);
        let weight = |kind| knobs.mix.weight(kind);
        let churning =
            (set.logs()..set.files()).filter(|file| set.churns(*file)).map(|file| (file, set.present(file)));
        let spare =
            |from: usize, count: usize| Slots::new((from..from + count).map(|number| (number, false)));
        let directories = match knobs.directory_popularity {
            DirectoryPopularity::Files => None,
            DirectoryPopularity::Own(law) => Some(law),
        };
        let chooser = |law: Popularity, count, turnover, order, draws| {
            Chooser::new(law, count, turnover, seed, order, draws)
        };
        Stream {
            kinds: Kinds::new(&knobs.mix, random(Purpose::Kinds)),
            files: chooser(
                knobs.popularity,
                set.data_files(),
                knobs.turnover,
                Purpose::FileRanks,
                Purpose::Files,
            ),
            directories: directories.map(|law| {
                chooser(law, set.directories() - 1, 0, Purpose::DirectoryRanks, Purpose::Directories)
            }),
            links: chooser(knobs.link_popularity, set.links(), 0, Purpose::LinkRanks, Purpose::Links),
            amounts: random(Purpose::Amounts),
            offsets: random(Purpose::Offsets),
            access: random(Purpose::Access),
            slots: random(Purpose::Slots),
            log: random(Purpose::Log),
            state: State::new(set),
            reads: Runs::new(knobs.runs),
            writes: Runs::new(knobs.runs),
            fills: VecDeque::new(),
            churn: Slots::new(churning),
            spare_directories: spare(set.directories(), set.spare_directories()),
            spare_links: spare(set.links(), set.spare_links()),
            links_share: weight(Kind::Symlink)
                / (weight(Kind::Create) + weight(Kind::Symlink)).max(f64::MIN_POSITIVE),
            pending: VecDeque::new(),
            dirty: VecDeque::new(),
            uncommitted: 0,
            logs: vec![0; set.logs()],
            next_log: 0,
            after_batch: false,
            set: set.clone(),
            knobs,
        }
    }

    /// The next operation.
    #[allow(clippy::should_implement_trait, reason = "it never ends, so there is no Option to unwrap")]
    pub fn next(&mut self) -> Operation {
        if let Some(operation) = self.pending.pop_front() {
            return operation;
        }
        // After a batch something is drawn: `log_every` counts what is drawn.
        self.after_batch = !self.after_batch && self.batch_is_due();
        if self.after_batch {
            self.batch();
        }
        self.pending.pop_front().unwrap_or_else(|| self.draw())
    }

    /// The file of that rank of popularity, from 0, before anything was drawn.
    #[cfg(test)]
    pub(crate) fn rank(&self, rank: usize) -> usize {
        self.set.logs() + self.files.thing(rank as u64)
    }

    fn draw(&mut self) -> Operation {
        match self.kinds.draw() {
            Kind::Read => self.read(),
            Kind::Write => self.write(),
            Kind::Create | Kind::Remove | Kind::Symlink => self.come_or_go(),
            Kind::Mkdir | Kind::Rmdir => self.make_or_unmake(),
            Kind::Rename => self.rename(),
            Kind::Commit => self.commit(),
            Kind::Fsstat => operation(Kind::Fsstat, Object::Directory(0)),
            Kind::Readlink => self.readlink(),
            kind @ (Kind::Readdir | Kind::Readdirplus) => self.list(kind),
            Kind::Setattr => self.setattr(),
            kind @ (Kind::Getattr | Kind::Lookup | Kind::Access) => {
                operation(kind, Object::File(self.file()))
            }
        }
    }

    /// A file that is there.
    fn file(&mut self) -> usize {
        let (state, logs) = (&self.state, self.set.logs());
        // The first is always there.
        self.files.choose(|file| state.there(logs + file)).map_or(logs, |file| logs + file)
    }

    /// A file that is there and not empty; if all are empty, one of those.
    fn full_file(&mut self) -> usize {
        let (state, logs) = (&self.state, self.set.logs());
        match self.files.choose(|file| state.lengths[logs + file] > 0) {
            Some(file) => logs + file,
            None => self.file(),
        }
    }

    fn read(&mut self) -> Operation {
        if self.knobs.read_sequential > 0.0 && self.access.happens(self.knobs.read_sequential) {
            return self.read_on();
        }
        let file = self.full_file();
        let (offset, bytes) = self.somewhere(self.state.lengths[file], false);
        Operation { offset, bytes, ..operation(Kind::Read, Object::File(file)) }
    }

    /// The next request of one of the runs of reads.
    fn read_on(&mut self) -> Operation {
        let place = self.access.below(self.reads.places.len() as u64) as usize;
        let mut run = self.reads.places[place].unwrap_or_else(|| {
            let file = self.full_file();
            Run::over(file, self.state.lengths[file])
        });
        let bytes = self.knobs.read_size.draw(&mut self.amounts, run.left());
        let offset = run.next;
        run.next += bytes;
        self.reads.places[place] = (run.left() > 0).then_some(run);
        Operation { offset, bytes: bytes as u32, ..operation(Kind::Read, Object::File(run.file)) }
    }

    /// An aligned place in the first so many bytes of a file, and how many bytes from there.
    fn somewhere(&mut self, length: u64, write: bool) -> (u64, u32) {
        let last = length.saturating_sub(1) / self.knobs.alignment;
        let offset = self.offsets.below(last + 1) * self.knobs.alignment;
        let size = if write { &self.knobs.write_size } else { &self.knobs.read_size };
        (offset, size.draw(&mut self.amounts, length.saturating_sub(offset)) as u32)
    }

    fn write(&mut self) -> Operation {
        if let Some(run) = self.fills.pop_front() {
            let (operation, run) = self.write_on(run);
            if let Some(run) = run {
                self.fills.push_front(run);
            }
            return operation;
        }
        let point = self.access.unit();
        if point < self.knobs.write_sequential {
            let place = self.access.below(self.writes.places.len() as u64) as usize;
            let run = self.writes.places[place].unwrap_or_else(|| {
                let file = self.file();
                Run::over(file, self.full_length(file))
            });
            let (operation, run) = self.write_on(run);
            self.writes.places[place] = run;
            return operation;
        }
        let file = self.file();
        let (offset, bytes) = if point < self.knobs.write_sequential + self.knobs.write_append {
            self.at_the_end(file)
        } else {
            self.somewhere(self.full_length(file), true)
        };
        let (write, _) = self.written(file, offset, bytes);
        write
    }

    /// What a file is long at least once it has been written whole.
    fn full_length(&self, file: usize) -> u64 {
        self.set.sizes()[file].max(self.state.lengths[file])
    }

    /// The next request of a run of writes, and the run if it goes on.
    fn write_on(&mut self, mut run: Run) -> (Operation, Option<Run>) {
        let bytes = self.knobs.write_size.draw(&mut self.amounts, run.left());
        let (write, committed) = self.written(run.file, run.next, bytes as u32);
        run.next += bytes;
        run.dirty = !committed && (run.dirty || !write.stable);
        if run.left() > 0 {
            return (write, Some(run));
        }
        if self.knobs.commit_at_end && run.dirty {
            self.commit_next(run.file);
        }
        (write, None)
    }

    /// Where an append goes: to the end, or if the file would grow above the limit, on from its beginning.
    fn at_the_end(&mut self, file: usize) -> (u64, u32) {
        let limit = self.knobs.append_limit;
        let bytes = self.knobs.append_size.draw(&mut self.amounts, limit.min(MOST));
        let length = self.state.lengths[file];
        if length.saturating_add(bytes) <= limit {
            return (length, bytes as u32);
        }
        let state = &mut self.state;
        let next = state.around.entry(file).or_insert_with(|| {
            state.grown.push_back(file);
            0
        });
        let offset = if *next + bytes > limit { 0 } else { *next };
        *next = offset + bytes;
        (offset, bytes as u32)
    }

    /// A write, and whether a commit follows it because of `commit_every`.
    fn written(&mut self, file: usize, offset: u64, bytes: u32) -> (Operation, bool) {
        let length = &mut self.state.lengths[file];
        *length = (*length).max(offset + u64::from(bytes));
        let stable = self.knobs.stable > 0.0 && self.access.happens(self.knobs.stable);
        let write = Operation { offset, bytes, stable, ..operation(Kind::Write, Object::File(file)) };
        if stable {
            return (write, false);
        }
        if self.dirty.back() != Some(&file) {
            self.dirty.push_back(file);
            if self.dirty.len() > DIRTY {
                self.dirty.pop_front();
            }
        }
        self.uncommitted += 1;
        let due = self.knobs.commit_every > 0 && self.uncommitted >= self.knobs.commit_every;
        if due {
            self.commit_next(file);
        }
        (write, due)
    }

    fn commit_next(&mut self, file: usize) {
        self.uncommitted = 0;
        self.dirty.retain(|dirty| *dirty != file);
        self.pending.push_back(operation(Kind::Commit, Object::File(file)));
    }

    /// A commit of the mix: of the file that has waited longest for one, else of any.
    fn commit(&mut self) -> Operation {
        while let Some(file) = self.dirty.pop_front() {
            if self.state.there(file) {
                return operation(Kind::Commit, Object::File(file));
            }
        }
        operation(Kind::Commit, Object::File(self.file()))
    }

    fn batch_is_due(&mut self) -> bool {
        self.knobs.log_every > 0.0 && !self.logs.is_empty() && self.log.unit() * self.knobs.log_every < 1.0
    }

    /// Writes of one log, one after another, and a commit; it is all pending.
    fn batch(&mut self) {
        let log = self.next_log;
        self.next_log = (log + 1) % self.logs.len();
        let bytes = self.knobs.log_write;
        for _ in 0..self.knobs.log_batch {
            let next = self.logs[log];
            let offset = if next + bytes > self.knobs.log_bytes { 0 } else { next };
            self.logs[log] = offset + bytes;
            self.pending.push_back(Operation {
                offset,
                bytes: bytes as u32,
                ..operation(Kind::Write, Object::File(log))
            });
        }
        self.pending.push_back(operation(Kind::Commit, Object::File(log)));
    }

    /// Empties the file that has waited longest for it; if none does, mode or times of any are meant.
    fn setattr(&mut self) -> Operation {
        while let Some(file) = self.state.grown.pop_front() {
            // It may have gone since, and come again.
            if self.state.around.remove(&file).is_some() {
                self.state.lengths[file] = 0;
                self.reads.abandon(file);
                self.writes.abandon(file);
                return ordered(Kind::Setattr, Object::File(file));
            }
        }
        operation(Kind::Setattr, Object::File(self.file()))
    }

    fn readlink(&mut self) -> Operation {
        match self.links.choose(|_| true) {
            Some(link) => operation(Kind::Readlink, Object::Link(link)),
            // So few files that their share of links is none.
            None => operation(Kind::Getattr, Object::File(self.file())),
        }
    }

    fn list(&mut self, kind: Kind) -> Operation {
        let own =
            self.directories.as_mut().map(|directories| directories.choose(|_| true).map_or(0, |at| at + 1));
        let directory = own.unwrap_or_else(|| {
            let file = self.file();
            self.set.directory_of(file)
        });
        Operation {
            bytes: self.knobs.directory_bytes as u32,
            ..operation(kind, Object::Directory(directory))
        }
    }
}
