//! Processes that have gone to another directory: a replay makes their `chdir` too, so that names have to begin at its root.

use std::collections::{HashMap, HashSet};

use etude_calls::Kind;

use crate::model::{Action, Called, Step};

/// Follows the steps of a script in their order.
#[derive(Default)]
pub(crate) struct Away {
    /// Of threads that others have started.
    process_of: HashMap<u32, u32>,
    processes: HashSet<u32>,
}

impl Away {
    /// Roots the names of a step where it has to be.
    pub fn follow(&mut self, step: &mut Step) {
        let process = *self.process_of.get(&step.thread).unwrap_or(&step.thread);
        match &mut step.action {
            Action::Start(other) => {
                self.process_of.insert(*other, process);
            }
            Action::Fork(other) if self.processes.contains(&process) => {
                self.processes.insert(*other);
            }
            Action::Call(called) => {
                if self.processes.contains(&process) {
                    root(called);
                }
                if matches!(called.call.name(), "chdir" | "fchdir") && called.result >= 0 {
                    let home = called.texts.iter().any(|text| matches!(&*text.bytes, b"." | b"/"));
                    if home {
                        self.processes.remove(&process)
                    } else {
                        self.processes.insert(process)
                    };
                }
            }
            _ => {}
        }
    }
}

/// What stands in a link is no name of the call's.
fn root(called: &mut Called) {
    let link = called.call.name().starts_with("symlink");
    for text in &mut called.texts {
        let index = usize::from(text.argument);
        if called.call.kind(&called.arguments, index) == Kind::Path
            && !(link && index == 0)
            && !text.bytes.starts_with(b"/")
        {
            let name = if &*text.bytes == b"." { &b""[..] } else { &text.bytes };
            text.bytes = [b"/", name].concat().into();
        }
    }
}
