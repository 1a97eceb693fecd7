//! What a call does to what files hold: their sizes, and how far they were read.

use etude_calls::Moves;

use super::names::Kept;
use super::{Effect, Moved, NodeId, World};
use crate::model::Called;

const O_APPEND: u64 = 0o2000;

/// The argument with a descriptor, and the place in its file: None for where its position is.
type End = (usize, Option<u64>);

/// From where a call reads, and to where it writes.
fn ends(called: &Called) -> (Option<End>, Option<End>) {
    let offset_at = |index: usize| {
        let bytes: [u8; 8] = called.text(index)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let at = match called.call.name() {
        "read" | "readv" | "write" | "writev" => None,
        "pread64" | "preadv" | "pwrite64" | "pwritev" => Some(called.arguments[3]),
        // An offset of -1 is the position.
        "preadv2" | "pwritev2" | "sqe_read" | "sqe_write" | "iocb_read" | "iocb_write" => {
            Some(called.arguments[3]).filter(|offset| *offset != u64::MAX)
        }
        "sendfile" => return (Some((1, offset_at(2))), Some((0, None))),
        "copy_file_range" | "splice" => return (Some((0, offset_at(1))), Some((2, offset_at(3)))),
        _ => return (None, None),
    };
    match called.call.row().moves {
        Moves::Writes => (None, Some((0, at))),
        _ => (Some((0, at)), None),
    }
}

/// The descriptors from whose positions a call goes on.
pub fn from_positions(called: &Called) -> impl Iterator<Item = i32> {
    const SEEK_CUR: u64 = 1;
    let (from, to) = match called.call.name() {
        "lseek" if called.arguments[2] == SEEK_CUR => (Some((0, None)), None),
        _ => ends(called),
    };
    let ends = [from, to].into_iter().flatten().filter(|(_, at)| at.is_none());
    ends.map(|(index, _)| called.arguments[index] as i32)
}

impl World {
    /// From where a call reads to the end of the file; None where that is no file whose length is known.
    pub fn readable(&self, process: u32, called: &Called) -> Option<u64> {
        let (index, at) = ends(called).0?;
        let (bytes, position) = self.length(process, called.arguments[index] as i32)?;
        Some(bytes.saturating_sub(at.unwrap_or(position)))
    }

    /// How long the file behind a descriptor is, and where in it the descriptor stands.
    pub fn length(&self, process: u32, descriptor: i32) -> Option<(u64, u64)> {
        let opened = &self.opened[self.description(process, descriptor)? as usize];
        let node = self.names.node(opened.node?);
        match node.kept {
            Kept::File { bytes, .. } if node.asked || node.made => Some((bytes, opened.position)),
            _ => None,
        }
    }

    pub(super) fn data_change(
        &mut self,
        process: u32,
        called: &Called,
        path: Option<&[u8]>,
        effect: &mut Effect,
    ) {
        let (arguments, moved) = (&called.arguments, called.result.max(0) as u64);
        let behind = |index: usize| self.description(process, arguments[index] as i32);
        let node_of = |world: &World, description: Option<u32>| {
            description.and_then(|number| world.opened[number as usize].node)
        };
        match called.call.name() {
            "lseek" => {
                if let Some(description) = behind(0) {
                    self.opened[description as usize].position = moved;
                }
                return;
            }
            "ftruncate" => {
                if let Some(node) = node_of(self, behind(0)) {
                    self.truncate(node, arguments[1]);
                }
                return;
            }
            "truncate" => {
                let known = path.and_then(|path| self.names.find(path));
                if let Some(node) = known {
                    self.truncate(node, arguments[1]);
                }
                return;
            }
            "fallocate" => {
                if let Some(node) = node_of(self, behind(0)) {
                    self.fallocate(node, arguments[1], arguments[2], arguments[3]);
                }
                return;
            }
            _ => {}
        }
        let (from, to) = ends(called);
        let ends = [from.map(|end| (end, false)), to.map(|end| (end, true))];
        let ends = ends.map(|end| end.and_then(|((index, at), writes)| Some((behind(index)?, at, writes))));
        for (description, at, writes) in ends.into_iter().flatten() {
            effect.moved.extend(self.moves(description, at, moved, writes));
        }
    }

    /// Bytes go to or from something open, at a place or at its position.
    fn moves(&mut self, description: u32, at: Option<u64>, bytes: u64, writes: bool) -> Option<Moved> {
        let opened = &mut self.opened[description as usize];
        let number = opened.node?;
        let node = self.names.node_mut(number);
        let size = if let Kept::File { bytes, .. } = node.kept { bytes } else { 0 };
        let begin = if writes && opened.flags & O_APPEND != 0 { size } else { at.unwrap_or(opened.position) };
        let end = begin.saturating_add(bytes);
        if at.is_none() {
            opened.position = end;
        }
        if !writes {
            node.reached = node.reached.max(end);
        } else if let Kept::File { bytes: size, allocated, .. } = &mut node.kept {
            *size = (*size).max(if bytes > 0 { end } else { 0 });
            *allocated = allocated.saturating_add(bytes).min(*size);
        }
        Some(Moved { node: number, offset: begin, bytes, writes })
    }

    pub(super) fn truncate(&mut self, node: NodeId, length: u64) {
        if let Kept::File { bytes, allocated, seen } = &mut self.names.node_mut(node).kept {
            (*bytes, *allocated, *seen) = (length, (*allocated).min(length), true);
        }
    }

    fn fallocate(&mut self, node: NodeId, mode: u64, offset: u64, length: u64) {
        if let Kept::File { bytes, allocated, .. } = &mut self.names.node_mut(node).kept {
            *bytes = match mode {
                // Beyond FALLOC_FL_KEEP_SIZE: collapse, insert; punching changes no size.
                _ if mode & 8 != 0 => bytes.saturating_sub(length),
                _ if mode & 0x20 != 0 => bytes.saturating_add(length),
                _ if mode & 3 != 0 => *bytes,
                _ => (*bytes).max(offset.saturating_add(length)),
            };
            *allocated =
                if mode & 3 == 0 { allocated.saturating_add(length) } else { *allocated }.min(*bytes);
        }
    }
}
