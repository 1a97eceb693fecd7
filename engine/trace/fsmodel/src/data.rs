//! The effect of a call on the contents of files: their sizes, and how far they were read.

use crate::changes::{End, SizeChange, appends, ends, size_change};
use crate::model::{Description, Effect, Model, Moved};
use crate::names::{NodeId, NodeKind};
use crate::paths::named;
use crate::rows::Done;

/// The descriptors from whose positions a call goes on.
pub fn from_positions(done: &Done) -> impl Iterator<Item = i32> {
    const SEEK_CUR: u64 = 1;
    let seeks = done.call.name() == "lseek" && done.arguments[2] == SEEK_CUR;
    let own = seeks.then(|| done.descriptor(0));
    let ends: Vec<i32> = ends(done)
        .into_iter()
        .flatten()
        .filter(|end| end.at.is_none())
        .map(|end| done.descriptor(end.argument))
        .collect();
    own.into_iter().chain(ends)
}

impl Model {
    /// Bytes from where a call reads to the end of the file; None where that is no file whose length is known.
    pub fn readable(&self, process: u32, done: &Done) -> Option<u64> {
        let end = ends(done)[0].filter(|end| !end.writes)?;
        let (bytes, position) = self.length(process, done.descriptor(end.argument))?;
        Some(bytes.saturating_sub(end.at.unwrap_or(position)))
    }

    pub(crate) fn data_change(
        &mut self,
        process: u32,
        done: &Done,
        path: Option<&[u8]>,
        effect: &mut Effect,
    ) {
        let moved = done.result.max(0) as u64;
        if done.call.name() == "lseek" {
            if let Some(description) = self.description(process, done.descriptor(0)) {
                self.opened[description as usize].position = moved;
            }
            return;
        }
        let change = size_change(done);
        if change != SizeChange::Nothing {
            let node = match named(done).next() {
                Some(_) => path.and_then(|path| self.names.find(path)),
                None => self.node_behind(process, done.descriptor(0)),
            };
            if let Some(node) = node {
                self.size_changes(node, change, done.arguments[3]);
            }
            return;
        }
        let ends = ends(done).map(|end| {
            let end = end?;
            let description = self.description(process, done.descriptor(end.argument))?;
            // Both ends may have one position, which moves once (do_sendfile).
            let at = end.at.unwrap_or(self.opened[description as usize].position);
            Some((description, end, at))
        });
        for (description, end, at) in ends.into_iter().flatten() {
            effect.moved.extend(self.moves(description, end, at, moved));
        }
    }

    /// Bytes go to or from something open.
    fn moves(&mut self, description: Description, end: End, at: u64, bytes: u64) -> Option<Moved> {
        let opened = &mut self.opened[description as usize];
        let number = opened.node?;
        let node = self.names.node_mut(number);
        let size = if let NodeKind::File { bytes, .. } = node.kind { bytes } else { 0 };
        // A write of nothing finds no end (generic_write_checks).
        let at_end = end.writes && bytes > 0 && (end.appends || appends(opened.flags));
        let begin = if at_end { size } else { at };
        let behind = begin.saturating_add(bytes);
        if end.at.is_none() {
            opened.position = behind;
        }
        if !end.writes {
            node.reached = node.reached.max(behind);
        } else if let NodeKind::File { bytes: size, allocated, .. } = &mut node.kind {
            *size = (*size).max(if bytes > 0 { behind } else { 0 });
            *allocated = allocated.saturating_add(bytes).min(*size);
        }
        Some(Moved { node: number, offset: begin, bytes, writes: end.writes })
    }

    pub(crate) fn truncate(&mut self, node: NodeId, length: u64) {
        if let NodeKind::File { bytes, allocated, seen } = &mut self.names.node_mut(node).kind {
            (*bytes, *allocated, *seen) = (length, (*allocated).min(length), true);
        }
    }

    /// `range`: bytes of which a fallocate speaks.
    fn size_changes(&mut self, node: NodeId, change: SizeChange, range: u64) {
        if let SizeChange::Sets(length) = change {
            return self.truncate(node, length);
        }
        let NodeKind::File { bytes, allocated, .. } = &mut self.names.node_mut(node).kind else { return };
        match change {
            SizeChange::Reaches(end) => {
                *bytes = (*bytes).max(end);
                *allocated = allocated.saturating_add(range);
            }
            SizeChange::Shrinks(length) => *bytes = bytes.saturating_sub(length),
            SizeChange::Grows(length) => {
                *bytes = bytes.saturating_add(length);
                *allocated = allocated.saturating_add(length);
            }
            SizeChange::Nothing | SizeChange::Sets(_) | SizeChange::Allocates => {}
        }
        *allocated = (*allocated).min(*bytes);
    }
}
