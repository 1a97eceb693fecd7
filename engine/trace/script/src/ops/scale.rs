//! Larger and smaller transfers, longer and shorter gaps.

use std::sync::Arc;

use etude_calls::{Kind, Moves, Outcome};

use super::{Made, Refused};
use crate::model::{Action, Called, Needed, Script, Step, What};
use crate::world::{World, key};

const LONGEST_GAP_NS: f64 = 100.0 * 365.25 * 86400e9;

/// Makes all gaps `factor` times as long; those that become 0 are left out.
pub fn scale_gaps(script: &Script, factor: f64) -> Made {
    if !factor.is_finite() || factor < 0.0 {
        return Err(Refused(format!("gaps cannot be scaled by {factor}: expected a number from 0 on")));
    }
    let longest = script.steps.iter().filter_map(|step| match step.action {
        Action::Compute(ns) => Some(ns),
        _ => None,
    });
    if longest.max().unwrap_or(0) as f64 * factor > LONGEST_GAP_NS {
        return Err(Refused(format!(
            "gaps cannot be scaled by {factor}: one would last more than 100 years"
        )));
    }
    let mut made = script.clone();
    for step in &mut made.steps {
        if let Action::Compute(ns) = &mut step.action {
            // Above 2^53 ns, 104 days, the last digits are not kept.
            *ns = (*ns as f64 * factor).round() as u64;
        }
    }
    made.steps.retain(|step| step.action != Action::Compute(0));
    Ok(made)
}

/// How sizes are scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    pub factor: f64,
    /// Sizes and places become multiples of this, bytes.
    pub align: u64,
}

impl Sizes {
    /// The nearest multiple; what is more than 0 stays so.
    fn of(self, bytes: u64) -> u64 {
        let align = self.align as f64;
        let many = (bytes as f64 * self.factor / align).round();
        let many = if bytes > 0 { many.max(1.0) } else { 0.0 };
        // A place in a file is below 2^63.
        let most = (i64::MAX as u64) / self.align;
        (many as u64).min(most) * self.align
    }

    fn signed(self, offset: i64) -> i64 {
        let size = self.of(offset.unsigned_abs()).min(i64::MAX as u64) as i64;
        if offset < 0 { -size } else { size }
    }
}

/// Makes transfers, places in files and files `factor` times as large. Files are made large enough for all that was
/// read of them, where rounding adds up; what reads and seeks come to then follows from how long files are.
pub fn scale_sizes(script: &Script, sizes: Sizes) -> Made {
    if !sizes.factor.is_finite() || sizes.factor <= 0.0 {
        return Err(Refused(format!(
            "sizes cannot be scaled by {}: expected a number above 0",
            sizes.factor
        )));
    }
    if sizes.align == 0 || sizes.align > 1 << 40 {
        return Err(Refused(format!(
            "sizes cannot be multiples of {}: expected 1 or more bytes",
            sizes.align
        )));
    }
    let mut made = script.clone();
    if sizes == (Sizes { factor: 1.0, align: 1 }) {
        return Ok(made);
    }
    for Needed { what, .. } in &mut made.needed {
        if let What::File { bytes, allocated, .. } = what {
            *bytes = sizes.of(*bytes);
            *allocated = allocated.map(|allocated| sizes.of(allocated).min(*bytes));
        }
    }
    for dropped in &mut made.dropped {
        dropped.bytes = (dropped.bytes as f64 * sizes.factor).round() as u64;
    }
    // What goes through a pipe is as much as it was: its reads and writes belong together.
    let mut world = World::new(script);
    for (step, Step { action, .. }) in script.steps.iter().zip(&mut made.steps) {
        if let Action::Call(called) = action
            && !world.is_of_pipe(step.thread, called)
        {
            scale(called, sizes);
        }
        world.step(step);
    }
    enlarge(script, &mut made);
    settle(&mut made);
    Ok(made)
}

/// Reads find what is there up to the end of the file, and seeks end where they lead.
fn settle(made: &mut Script) {
    let mut world = World::new(made);
    for step in &mut made.steps {
        let process = world.threads.get(&step.thread).copied().unwrap_or(0);
        match &mut step.action {
            Action::Call(called) if called.failed() => {}
            Action::Call(called) if called.call.name() == "lseek" => seek(&world, process, called),
            Action::Call(called) => {
                let rest = world.readable(process, &called.done());
                if let Some(rest) = rest {
                    let asked = size(called).unwrap_or(called.result as u64);
                    called.result = asked.min(rest).min(i64::MAX as u64) as i64;
                }
            }
            _ => {}
        }
        world.step(step);
    }
}

/// Where a seek leads, not before the beginning.
fn seek(world: &World, process: u32, called: &mut Called) {
    let Some((bytes, position)) = world.length(process, called.arguments[0] as i32) else { return };
    let from = match called.arguments[2] {
        0 => 0,
        1 => position,
        2 => bytes,
        _ => return,
    };
    let from = from.min(i64::MAX as u64) as i64;
    let offset = (called.arguments[1] as i64).max(-from);
    called.arguments[1] = offset as u64;
    called.result = from.saturating_add(offset);
}

fn scale(called: &mut Called, sizes: Sizes) {
    let (row, name) = (called.call.row(), called.call.name());
    let transfers = row.moves != Moves::Nothing;
    let places = matches!(
        name,
        "lseek" | "ftruncate" | "truncate" | "fallocate" | "fadvise64" | "readahead" | "sync_file_range"
    );
    let memory = matches!(name, "mmap" | "munmap" | "mremap" | "msync" | "madvise" | "mprotect");
    if !transfers && !places && !memory {
        return;
    }
    // Places in memory, and what is mapped there, begin at pages.
    let pages = Sizes { align: sizes.align.max(4096).next_multiple_of(4096), ..sizes };
    let size_before = size(called);
    for index in 0..called.call.used(&called.arguments) {
        let value = called.arguments[index];
        called.arguments[index] = match called.call.kind(&called.arguments, index) {
            Kind::Size if memory => sizes.of(value),
            Kind::Size if (value as i64) >= 0 => sizes.of(value),
            Kind::Offset if memory => pages.of(value),
            // SEEK_SET and the like; -1 of preadv2 is no place.
            Kind::Offset if name.starts_with("preadv2") || name.starts_with("pwritev2") => {
                if value == u64::MAX { value } else { sizes.of(value) }
            }
            Kind::Offset => sizes.signed(value as i64) as u64,
            _ => value,
        };
    }
    for text in &mut called.texts {
        if called.call.row().arguments[usize::from(text.argument)] == Kind::OffsetAt
            && let Ok(bytes) = <[u8; 8]>::try_from(&text.bytes[..])
        {
            let offset = sizes.signed(i64::from_le_bytes(bytes));
            text.bytes = Arc::from(&offset.to_le_bytes()[..]);
        }
    }
    let is_size = matches!(row.outcome, Outcome::Bytes | Outcome::Offset);
    if is_size && !called.failed() && called.result > 0 {
        let scaled = sizes.signed(called.result);
        // What was whole stays whole, and no more comes than was asked for.
        called.result = match (size_before, size(called)) {
            (Some(before), Some(_)) if before as i64 != called.result && transfers => {
                scaled.min(size(called).unwrap_or(u64::MAX).min(i64::MAX as u64) as i64)
            }
            _ => scaled,
        };
    }
}

/// How much a call asks for.
fn size(called: &Called) -> Option<u64> {
    let index = (0..6).find(|index| called.call.row().arguments.get(*index) == Some(&Kind::Size))?;
    Some(called.arguments[index])
}

/// Makes files as large as the calls need. How far a script reads what it wrote itself says nothing of that.
fn enlarge(before: &Script, made: &mut Script) {
    let reached = |script: &Script| -> Vec<u64> {
        let mut world = World::new(script);
        let nodes: Vec<_> = script.needed.iter().map(|needed| world.names.find(&key(&needed.path))).collect();
        script.steps.iter().for_each(|step| drop(world.step(step)));
        nodes.into_iter().map(|node| node.map_or(0, |node| world.names.node(node).reached)).collect()
    };
    let (was, now) = (reached(before), reached(made));
    for (at, (needed, before)) in made.needed.iter_mut().zip(&before.needed).enumerate() {
        if let (What::File { bytes, .. }, What::File { bytes: original, .. }) =
            (&mut needed.what, &before.what)
            && was[at] <= *original
        {
            *bytes = (*bytes).max(now[at]);
        }
    }
}
