//! Waits between the steps of a script: a step of one thread that may begin only after a step of another.

use std::collections::HashMap;

use super::edges::Edge;

/// A reason for a step to wait: a step of another thread, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// A step of another thread.
    pub other: Point,
    pub edge: Edge,
    /// Not only for that step, but for the end of this process, whose last one it is.
    pub end: Option<u32>,
}

/// A step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub thread: u32,
    /// Its place in the script.
    pub step: usize,
}

/// By the step that waits.
pub type Waits = HashMap<usize, Vec<Wait>>;

/// The step, so to say, at which a process ends: behind all of its threads'.
pub fn end_of(process: u32) -> usize {
    usize::MAX - process as usize
}
