//! Waits between the steps of a script: a step of one thread that may begin only after a step of another, and why.

use std::collections::HashMap;

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

/// Kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    Names,
    Descriptors,
    Data,
    Sizes,
    Locks,
    Pipes,
    Requests,
    Threads,
}

impl Edge {
    pub const NAMES: [(&'static str, Edge); 8] = [
        ("names", Edge::Names),
        ("descriptors", Edge::Descriptors),
        ("data", Edge::Data),
        ("sizes", Edge::Sizes),
        ("locks", Edge::Locks),
        ("pipes", Edge::Pipes),
        ("requests", Edge::Requests),
        ("threads", Edge::Threads),
    ];

    pub fn name(self) -> &'static str {
        Edge::NAMES[self as usize].0
    }
}

/// Those that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edges(u8);

impl Edges {
    pub const ALL: Edges = Edges(u8::MAX);

    /// `all`, `none`, or names with commas between them; None where one is unknown.
    pub fn named(text: &str) -> Option<Edges> {
        match text {
            "all" => return Some(Edges::ALL),
            "none" => return Some(Edges(0)),
            _ => {}
        }
        text.split(',').try_fold(Edges(0), |found, name| {
            let (_, edge) = Edge::NAMES.iter().find(|(known, _)| *known == name)?;
            Some(Edges(found.0 | 1 << *edge as u8))
        })
    }

    /// The value of an option.
    ///
    /// # Errors
    /// One is unknown: what was expected.
    pub fn option(words: &str) -> Result<Edges, String> {
        Edges::named(words).ok_or_else(|| {
            let kinds = Edge::NAMES.map(|(name, _)| name).join(",");
            format!("{words:?}: expected all, none, or some of {kinds}")
        })
    }

    pub fn have(self, edge: Edge) -> bool {
        self.0 & 1 << edge as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_names() {
        assert!(Edge::NAMES.iter().all(|(name, edge)| edge.name() == *name && Edges::ALL.have(*edge)));
        let some = Edges::named("data,threads").unwrap();
        assert!(some.have(Edge::Threads) && some.have(Edge::Data) && !some.have(Edge::Names));
        assert!(!Edges::named("none").unwrap().have(Edge::Data));
        assert_eq!(Edges::named("data,,locks"), None);
        assert_eq!(Edges::named(""), None);
    }
}
