//! A request that was drawn, and what it must not meet.

use etude_workload::{Kind, Object, Operation};

use crate::files::order::Claim;

/// A request that was drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub ticket: u64,
    pub due_ns: u64,
    pub operation: Operation,
}

/// What a request must not meet.
pub(crate) fn claim(job: &Job) -> Claim {
    let operation = &job.operation;
    let key = key(operation.object);
    let other = match operation.kind {
        Kind::Rename => self::key(Object::File(operation.offset as usize)),
        _ => key,
    };
    Claim { ticket: job.ticket, key, other, ordered: operation.ordered }
}

fn key(object: Object) -> u64 {
    match object {
        Object::File(index) => index as u64 * 3,
        Object::Directory(index) => index as u64 * 3 + 1,
        Object::Link(index) => index as u64 * 3 + 2,
    }
}
