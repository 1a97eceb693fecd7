//! How long a file is: whoever asks waits for all that made it longer before, and comes before whoever does so next.

use etude_calls::Kind;
use etude_fsmodel::{SizeChange, size_change};
use etude_script::{Called, Needed, What};

use super::waits::{Edge, Point};
use super::{Content, Order};

/// How long a file is, and who changed or asked that. Those that make it longer need no order among themselves.
#[derive(Debug, Default)]
pub struct Size {
    bytes: u64,
    /// Who said last how long it is.
    set: Option<Point>,
    /// Since then, the last of each thread.
    longer: Vec<Point>,
    asked: Vec<Point>,
}

/// How a call uses the length of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Asks,
    /// It is so long at least.
    Reaches(u64),
    Sets(u64),
    Shrinks(u64),
    Grows(u64),
}

impl Size {
    pub fn of(bytes: u64) -> Size {
        Size { bytes, ..Size::default() }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `others` are those that come before it.
    pub fn touch(&mut self, here: Point, how: Use, others: &mut Vec<Point>) {
        match how {
            Use::Reaches(bytes) if bytes <= self.bytes => (),
            Use::Asks => {
                others.extend(self.set.iter().chain(&self.longer));
                keep_last(&mut self.asked, here);
            }
            Use::Reaches(bytes) => {
                self.bytes = bytes;
                others.extend(self.set.iter().chain(&self.asked));
                keep_last(&mut self.longer, here);
            }
            Use::Sets(_) | Use::Shrinks(_) | Use::Grows(_) => {
                let bytes = match how {
                    Use::Shrinks(bytes) => self.bytes.saturating_sub(bytes),
                    Use::Grows(bytes) => self.bytes.saturating_add(bytes),
                    Use::Sets(bytes) | Use::Reaches(bytes) => bytes,
                    Use::Asks => self.bytes,
                };
                others.extend(self.set);
                others.append(&mut self.longer);
                others.append(&mut self.asked);
                (self.bytes, self.set) = (bytes, Some(here));
            }
        }
    }
}

fn keep_last(points: &mut Vec<Point>, here: Point) {
    match points.iter_mut().find(|point| point.thread == here.thread) {
        Some(point) => *point = here,
        None => points.push(here),
    }
}

impl Order {
    /// Files that are there before, as long as they are prepared.
    pub(super) fn lengths(&mut self, needed: &[Needed]) {
        for Needed { path, what } in needed {
            let file = match what {
                What::File { bytes, .. } => {
                    self.content(Content { size: Size::of(*bytes), ..Content::default() })
                }
                What::HardLink(other) => match self.files.get(&**other) {
                    Some(file) => *file,
                    None => continue,
                },
                What::Directory | What::Link(_) => continue,
            };
            self.files.insert(path.to_vec(), file);
        }
    }

    /// Calls that ask how long a file is, or say so.
    pub(super) fn sizes(&mut self, here: Point, process: u32, called: &Called) {
        const SEEK_END: u64 = 2;
        if called.result < 0 {
            return;
        }
        let (done, words) = (called.done(), &called.arguments);
        let how = match called.call.name() {
            "lseek" if words[2] >= SEEK_END => Use::Asks,
            "fstat" | "stat" | "lstat" | "newfstatat" | "statx" => Use::Asks,
            _ => match size_change(&done) {
                SizeChange::Sets(bytes) => Use::Sets(bytes),
                SizeChange::Reaches(bytes) => Use::Reaches(bytes),
                SizeChange::Shrinks(bytes) => Use::Shrinks(bytes),
                SizeChange::Grows(bytes) => Use::Grows(bytes),
                SizeChange::Nothing | SizeChange::Allocates => return,
            },
        };
        let named = self.paths(process, &done).pop();
        let file = match (named, called.call.row().arguments[0]) {
            (Some(path), _) => self.files.get(&path).copied(),
            (None, Kind::Fd | Kind::DirFd) => self.file_of(process, words[0] as i32),
            _ => None,
        };
        if let Some(file) = file {
            self.size(here, file, how);
        }
    }

    pub(super) fn size(&mut self, here: Point, file: usize, how: Use) {
        let mut others = Vec::new();
        self.contents[file].size.touch(here, how, &mut others);
        others.into_iter().for_each(|other| self.wait(here, other, Edge::Sizes));
    }

    pub(super) fn file_of(&self, process: u32, fd: i32) -> Option<usize> {
        Some(self.opened[self.slot_of(process, fd)?.description].file)
    }
}
