//! Steps that are put together, and calls that were not in the original.

use std::collections::HashMap;

use etude_calls::{Call, Kind};
use etude_trace::Text;
use smallvec::SmallVec;

use crate::model::{Action, Called, Step};

/// AT_FDCWD.
pub const HERE: u64 = -100_i64 as u64;

/// Steps of which some are left out: what they took becomes time in which nothing is done.
#[derive(Default)]
pub struct Rhythm {
    steps: Vec<Step>,
    /// What each thread has to wait before its next step, ns.
    owed_ns: HashMap<u32, u64>,
}

impl Rhythm {
    pub fn push(&mut self, thread: u32, action: Action) {
        if let Action::Compute(ns) = action {
            return self.skip(thread, ns);
        }
        if let Some(ns) = self.owed_ns.get_mut(&thread).map(std::mem::take).filter(|ns| *ns > 0) {
            self.steps.push(Step { thread, action: Action::Compute(ns) });
        }
        self.steps.push(Step { thread, action });
    }

    /// A step that is left out, and took so long.
    pub fn skip(&mut self, thread: u32, ns: u64) {
        let owed = self.owed_ns.entry(thread).or_default();
        *owed = owed.saturating_add(ns);
    }

    /// All steps; what threads still have to wait stands at the end.
    pub fn finish(mut self) -> Vec<Step> {
        let mut owed: Vec<_> = self.owed_ns.into_iter().filter(|(_, ns)| *ns > 0).collect();
        owed.sort_unstable();
        let last = owed.into_iter().map(|(thread, ns)| Step { thread, action: Action::Compute(ns) });
        self.steps.extend(last);
        self.steps
    }
}

/// A call that the original did not make. Texts go to the arguments that can have them, in their order.
pub fn call(name: &str, values: &[u64], paths: &[&[u8]], result: i64) -> Action {
    let call = Call::named(name).expect("a call of the table");
    let mut arguments = [0; 6];
    arguments[..values.len()].copy_from_slice(values);
    let mut texts = SmallVec::new();
    let places = (0..6).filter(|index| call.kind(&arguments, *index) == Kind::Path);
    for (index, path) in places.zip(paths) {
        texts.push(Text { argument: index as u8, bytes: (*path).into() });
    }
    Action::Call(Called { call, arguments, texts, result, duration_ns: None })
}

/// `unlinkat` of a file, or of a directory.
pub fn remove(path: &[u8], directory: bool) -> Action {
    call("unlinkat", &[HERE, 0, if directory { 0x200 } else { 0 }], &[path], 0)
}

pub fn close(descriptor: i32) -> Action {
    close_in_place(descriptor, None)
}

/// What is left of a call that took so long.
pub fn close_in_place(descriptor: i32, duration_ns: Option<u64>) -> Action {
    let mut close = call("close", &[i64::from(descriptor) as u64], &[], 0);
    if let Action::Call(close) = &mut close {
        close.duration_ns = duration_ns;
    }
    close
}

/// A path from the root as a step names it wherever its process stands.
pub fn rooted(path: &[u8]) -> Vec<u8> {
    [b"/", path].concat()
}
