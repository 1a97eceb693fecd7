//! A first version: its interface is the one that stays.

use crate::kind::{Kind, Object, Operation};

#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    name: String,
    files: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    pub parent: Option<usize>,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub directory: usize,
    pub name: String,
    pub bytes: u64,
    /// It may come and go.
    pub churn: bool,
    /// It is there at first.
    pub present: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub directory: usize,
    pub name: String,
    pub to: String,
}

impl Workload {
    pub fn preset(name: &str) -> Option<Workload> {
        Workload::names().contains(&name).then(|| Workload { name: name.to_owned(), files: 100 })
    }
    pub fn names() -> &'static [&'static str] {
        &["specsfs97", "sfs2008", "web", "db_tp", "mail", "postmark"]
    }
    pub fn read(text: &str, origin: &str) -> Result<Workload, String> {
        let _ = text;
        Err(format!("{origin}:1: not yet"))
    }
    pub fn set(&mut self, assignment: &str) -> Result<(), String> {
        match assignment.split_once('=') {
            Some(("files", count)) => {
                self.files = count.parse().map_err(|_| format!("{assignment}: not a number"))?;
                Ok(())
            }
            _ => Err(format!("{assignment}: no such knob")),
        }
    }
    pub fn show(&self) -> String {
        format!("name = {:?}\nfiles = {}\n", self.name, self.files)
    }
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Debug, Clone)]
pub struct FileSet {
    files: usize,
}

impl FileSet {
    pub fn new(workload: &Workload, _rate: f64, _seed: u64) -> Result<FileSet, String> {
        Ok(FileSet { files: workload.files })
    }
    pub fn directories(&self) -> usize {
        3
    }
    pub fn files(&self) -> usize {
        self.files
    }
    pub fn links(&self) -> usize {
        self.files / 20
    }
    pub fn directory(&self, index: usize) -> Directory {
        Directory { parent: (index > 0).then_some(0), name: format!("d{index}") }
    }
    pub fn file(&self, index: usize) -> File {
        let churn = index % 10 == 9;
        File {
            directory: 1 + index % 2,
            name: format!("f{index}"),
            bytes: 1000 + index as u64,
            churn,
            present: !churn || index % 20 == 9,
        }
    }
    pub fn link(&self, index: usize) -> Link {
        Link { directory: 1, name: format!("l{index}"), to: format!("../{}", self.path_of_file(index * 20)) }
    }
    pub fn path_of_file(&self, index: usize) -> String {
        let file = self.file(index);
        format!("d{}/{}", file.directory, file.name)
    }
    pub fn path_of_directory(&self, index: usize) -> String {
        if index == 0 { String::new() } else { format!("d{index}") }
    }
    pub fn path_of_link(&self, index: usize) -> String {
        format!("d1/l{index}")
    }
    pub fn bytes(&self) -> u64 {
        (0..self.files).map(|index| self.file(index).bytes).sum()
    }
    pub fn digest(&self) -> u64 {
        self.bytes()
    }
    /// Further directories, from `directories()` on, which mkdir makes and rmdir removes; absent at first.
    pub fn spare_directories(&self) -> usize {
        0
    }
    /// Further links, from `links()` on, which symlink makes and remove removes; absent at first.
    pub fn spare_links(&self) -> usize {
        0
    }
}

pub struct Stream {
    step: usize,
    files: usize,
}

impl Stream {
    pub fn new(_workload: &Workload, set: &FileSet, _seed: u64) -> Stream {
        Stream { step: 0, files: set.files() }
    }
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> Operation {
        self.step += 1;
        let file = (self.step * 7) % (self.files / 10).max(1) * 10;
        let (kind, object, bytes, ordered) = match self.step % 4 {
            0 => (Kind::Getattr, Object::File(file), 0, false),
            1 => (Kind::Read, Object::File(file), 1000, false),
            2 => (Kind::Write, Object::File(file), 1000, false),
            _ if self.step % 8 == 3 => (Kind::Remove, Object::File(9), 0, true),
            _ => (Kind::Create, Object::File(9), 0, true),
        };
        Operation { kind, object, offset: 0, bytes, stable: false, ordered }
    }
}
