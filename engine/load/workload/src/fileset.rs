//! The files, directories and links of a workload at some load.

use std::sync::Arc;

use crate::choice::Spread;
use crate::knobs::{Knobs, MOST_FILES, Workload};
use crate::random::{Purpose, Random, finalize, mix};
use crate::zipf::Zipf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// None of the root alone; parents have lower numbers than their children.
    pub parent: Option<usize>,
    /// Empty of the root alone.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub directory: usize,
    pub name: String,
    pub bytes: u64,
    /// It may come and go: create and remove act on it.
    pub churn: bool,
    /// It is there at first; always, if it does not come and go.
    pub present: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub directory: usize,
    pub name: String,
    /// From its directory to a file; that may be one that comes and goes.
    pub to: String,
}

/// The population. What file i is depends on the workload, the seed and i alone, and so do directories and links: at a
/// higher load there are more, and those that were there are the same. (Where `directories` or `log_files` is changed, that
/// is another workload.)
#[derive(Debug, Clone)]
pub struct FileSet {
    knobs: Knobs,
    seed: u64,
    /// Of every file: logs first, then the others.
    sizes: Arc<Vec<u64>>,
    bytes: u64,
    spread: Option<Zipf>,
}

impl FileSet {
    /// The population at that load (`rate`: requests/s; it matters where files are asked for by `files_per_rate` or
    /// `bytes_per_rate`).
    ///
    /// # Errors
    /// One line: knobs that contradict each other, a rate that is no rate, or more files than can be kept in mind.
    pub fn new(workload: &Workload, rate: f64, seed: u64) -> Result<FileSet, String> {
        workload.check()?;
        if !rate.is_finite() || rate < 0.0 {
            return Err(format!("rate: expected requests per second, 0 or more, not {rate}"));
        }
        let knobs = workload.knobs.clone();
        let wanted = knobs.files.max((knobs.files_per_rate * rate).ceil() as u64);
        let bytes_wanted = knobs.bytes_per_rate * rate;
        let logs = knobs.log_files as usize;
        let mut sizes = vec![knobs.log_bytes; logs];
        let (mut files, mut bytes) = (0u64, 0u64);
        while files < wanted.max(1) || (bytes as f64) < bytes_wanted {
            if files as f64 >= MOST_FILES {
                return Err(format!(
                    "{}: at {rate} requests/s there would be more than {MOST_FILES} files; lower files, files_per_rate or bytes_per_rate",
                    workload.name()
                ));
            }
            let size = size(&knobs, seed, files);
            bytes = bytes.saturating_add(size);
            sizes.push(size);
            files += 1;
        }
        let bytes = bytes.saturating_add(knobs.log_bytes.saturating_mul(logs as u64));
        let spread = match knobs.directory_spread {
            Spread::Even => None,
            Spread::Zipf(alpha) => Some(Zipf::new(alpha, knobs.directories)),
        };
        Ok(FileSet { knobs, seed, sizes: Arc::new(sizes), bytes, spread })
    }

    /// How many, with the root and without spare ones.
    #[must_use]
    pub fn directories(&self) -> usize {
        1 + match (self.knobs.directories, self.knobs.directory_files) {
            (0, 0) => 0,
            (0, each) => self.data_files().div_ceil(each as usize),
            (given, _) => given as usize,
        }
    }

    /// How many, with those that come and go and are not there at first.
    #[must_use]
    pub fn files(&self) -> usize {
        self.sizes.len()
    }

    /// How many, without spare ones.
    #[must_use]
    pub fn links(&self) -> usize {
        (self.data_files() as f64 * self.knobs.links) as usize
    }

    /// How many directories come and go by mkdir and rmdir. Their numbers follow those of the others; none is there at first.
    #[must_use]
    pub fn spare_directories(&self) -> usize {
        self.knobs.spare as usize
    }

    /// How many links come and go by symlink and remove. Their numbers follow those of the others; none is there at first.
    #[must_use]
    pub fn spare_links(&self) -> usize {
        self.knobs.spare as usize
    }

    /// The directory of that number. Those in the root, those one below, and so on take turns.
    #[must_use]
    pub fn directory(&self, index: usize) -> Directory {
        if index == 0 {
            return Directory { parent: None, name: String::new() };
        }
        if index >= self.directories() {
            return Directory { parent: Some(0), name: format!("s{}", index - self.directories()) };
        }
        let depth = self.knobs.depth as usize;
        let (group, level) = ((index - 1) / depth, (index - 1) % depth);
        let parent = if level == 0 {
            0
        } else {
            // Any of the level above that came before.
            let above = mix(self.seed, Purpose::DirectoryParent, index as u64) % (group as u64 + 1);
            above as usize * depth + level
        };
        Directory { parent: Some(parent), name: format!("d{index}") }
    }

    /// The file of that number.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn file(&self, index: usize) -> File {
        let name = match index.checked_sub(self.logs()) {
            Some(data) => format!("f{data}"),
            None => format!("log{index}"),
        };
        let directory = self.directory_of(index);
        File {
            directory,
            name,
            bytes: self.sizes[index],
            churn: self.churns(index),
            present: self.present(index),
        }
    }

    /// The link of that number.
    #[must_use]
    pub fn link(&self, index: usize) -> Link {
        if index >= self.links() {
            let file = self.logs() + (index - self.links()) % self.data_files();
            return Link {
                directory: 0,
                name: format!("t{}", index - self.links()),
                to: self.path_of_file(file),
            };
        }
        // With so many files there is this link; it lies beside the last of them, and leads to any of them.
        let among =
            ((index + 1) as f64 / self.knobs.links).ceil().clamp(1.0, self.data_files() as f64) as u64;
        let directory = self.directory_of(self.logs() + among as usize - 1);
        let target = Random::new(self.seed, Purpose::LinkTarget, index as u64).below(among) as usize;
        let up = "../".repeat(self.level(directory));
        Link {
            directory,
            name: format!("l{index}"),
            to: format!("{up}{}", self.path_of_file(self.logs() + target)),
        }
    }

    /// From the root, with `/` between names; of the root itself it is empty.
    #[must_use]
    pub fn path_of_directory(&self, index: usize) -> String {
        let directory = self.directory(index);
        match directory.parent {
            None => String::new(),
            Some(parent) => self.path_below(parent, &directory.name),
        }
    }

    /// From the root, with `/` between names.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn path_of_file(&self, index: usize) -> String {
        let file = self.file(index);
        self.path_below(file.directory, &file.name)
    }

    /// From the root, with `/` between names.
    #[must_use]
    pub fn path_of_link(&self, index: usize) -> String {
        let link = self.link(index);
        self.path_below(link.directory, &link.name)
    }

    /// Of all files together, with those that are not there at first.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number of all that the population is made of: another population has another, but for one chance in 2^64.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = mix(self.files() as u64, Purpose::Digest, self.links() as u64);
        let mut add = |number: u64| digest = finalize(digest ^ number);
        for index in 0..self.files() {
            add(self.sizes[index]);
            add((self.directory_of(index) as u64) << 2
                | u64::from(self.churns(index)) << 1
                | u64::from(self.present(index)));
        }
        for index in 1..self.directories() {
            add(self.directory(index).parent.map_or(0, |parent| parent as u64));
        }
        for index in 0..self.links() {
            let link = self.link(index);
            add(link.directory as u64);
            link.to.bytes().for_each(|byte| add(u64::from(byte)));
        }
        add(self.knobs.spare);
        digest
    }

    pub(crate) fn sizes(&self) -> &Arc<Vec<u64>> {
        &self.sizes
    }

    /// How many logs there are; they are the first files.
    pub(crate) fn logs(&self) -> usize {
        self.knobs.log_files as usize
    }

    pub(crate) fn data_files(&self) -> usize {
        self.files() - self.logs()
    }

    /// So many of each hundred, evenly over all numbers; but not the first, so that one file is always there.
    pub(crate) fn churns(&self, index: usize) -> bool {
        let up_to = |files: usize| (files as f64 * self.knobs.churn).floor();
        index.checked_sub(self.logs()).is_some_and(|data| data > 0 && up_to(data + 1) > up_to(data))
    }

    pub(crate) fn present(&self, index: usize) -> bool {
        !self.churns(index)
            || Random::new(self.seed, Purpose::FilePresent, index as u64).happens(self.knobs.present)
    }

    pub(crate) fn directory_of(&self, index: usize) -> usize {
        let Some(data) = index.checked_sub(self.logs()) else { return 0 };
        match (self.knobs.directories as usize, self.knobs.directory_files as usize, &self.spread) {
            (0, 0, _) => 0,
            (0, each, _) => 1 + data / each,
            (given, _, None) => 1 + data % given,
            (_, _, Some(spread)) => {
                1 + spread.draw(&mut Random::new(self.seed, Purpose::FileDirectory, data as u64)) as usize
            }
        }
    }

    /// How many directories lie above it.
    fn level(&self, directory: usize) -> usize {
        std::iter::successors(self.directory(directory).parent, |parent| self.directory(*parent).parent)
            .count()
    }

    fn path_below(&self, directory: usize, name: &str) -> String {
        match self.path_of_directory(directory) {
            path if path.is_empty() => name.to_owned(),
            path => format!("{path}/{name}"),
        }
    }
}

fn size(knobs: &Knobs, seed: u64, index: u64) -> u64 {
    let drawn = knobs.sizes.draw(&mut Random::new(seed, Purpose::FileSize, index), knobs.largest);
    if knobs.scale == 1.0 {
        return drawn;
    }
    (drawn as f64 * knobs.scale).round().clamp(1.0, crate::law::LARGEST as f64) as u64
}
