//! What a call does to what files hold: their sizes, and how far they were read.

use etude_calls::Moves;

use super::names::Kept;
use super::{NodeId, World};
use crate::model::Called;

const O_APPEND: u64 = 0o2000;

impl World {
    pub(super) fn data_change(&mut self, process: u32, called: &Called, path: Option<&[u8]>) {
        let (arguments, moved) = (&called.arguments, called.result.max(0) as u64);
        let behind = |index: usize| self.description(process, arguments[index] as i32);
        let node_of = |world: &World, description: Option<u32>| {
            description.and_then(|number| world.opened[number as usize].node)
        };
        let offset_at = |index: usize| {
            let bytes: [u8; 8] = called.text(index)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let reads = |at: Option<u64>| (at, called.call.row().moves == Moves::Writes);
        let (from, to) = match called.call.name() {
            "read" | "readv" | "write" | "writev" => (Some((0, reads(None))), None),
            "pread64" | "preadv" | "pwrite64" | "pwritev" => (Some((0, reads(Some(arguments[3])))), None),
            // An offset of -1 is the position.
            "preadv2" | "pwritev2" => {
                let at = Some(arguments[3]).filter(|offset| *offset != u64::MAX);
                (Some((0, reads(at))), None)
            }
            "sendfile" => (Some((1, (offset_at(2), false))), Some((0, (None, true)))),
            "copy_file_range" | "splice" => {
                (Some((0, (offset_at(1), false))), Some((2, (offset_at(3), true))))
            }
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
            _ => return,
        };
        let ends: Vec<_> =
            [from, to].into_iter().flatten().map(|(index, how)| (behind(index), how)).collect();
        for (description, (at, writes)) in ends {
            if let Some(description) = description {
                self.moves(description, at, moved, writes);
            }
        }
    }

    /// Bytes go to or from something open, at a place or at its position.
    fn moves(&mut self, description: u32, at: Option<u64>, bytes: u64, writes: bool) {
        let opened = &mut self.opened[description as usize];
        let Some(node) = opened.node else { return };
        let node = self.names.node_mut(node);
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
