//! What has to hold of the steps of a script, one after the other.

use std::collections::HashMap;

use crate::model::{Action, Script, Step};

/// Threads that are there so far.
#[derive(Default)]
pub struct Threads {
    known: HashMap<u32, Known>,
    /// That of the last step: most steps are of the same thread as the one before.
    last: Option<(u32, u32)>,
}

struct Known {
    /// The first thread of its process.
    process: u32,
    /// Of a process' first thread: which process forked it.
    parent: Option<u32>,
    waited_for: bool,
}

impl Threads {
    /// Takes the next step; the error says what is wrong with it.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        let process = match self.last {
            Some((thread, process)) if thread == step.thread => process,
            _ => self.process(step.thread)?,
        };
        self.last = Some((step.thread, process));
        match step.action {
            Action::Start(thread) => self.begin(thread, Known { process, parent: None, waited_for: false }),
            Action::Fork(thread) => {
                self.begin(thread, Known { process: thread, parent: Some(process), waited_for: false })
            }
            Action::Wait(thread) => match self.known.get_mut(&thread) {
                Some(known) if known.parent != Some(process) => Err(format!(
                    "a process waits for those that it forked; {thread} is none of them: expected the number of a fork before"
                )),
                Some(known) if known.waited_for => {
                    Err(format!("{thread} has been waited for already: leave this line out"))
                }
                Some(known) => {
                    known.waited_for = true;
                    Ok(())
                }
                None => Err(format!("{thread} has not been forked: expected the number of a fork before")),
            },
            Action::Compute(_) | Action::Exec | Action::Call(_) => Ok(()),
        }
    }

    /// The process of a thread: the number of its first thread.
    pub fn process(&mut self, thread: u32) -> Result<u32, String> {
        if self.known.is_empty() {
            if thread != 0 {
                return Err(format!("the first step is of thread {thread}: expected thread 0"));
            }
            self.known.insert(0, Known { process: 0, parent: None, waited_for: false });
        }
        match self.known.get(&thread) {
            Some(known) => Ok(known.process),
            None => Err(format!(
                "thread {thread} has not been started: expected start({thread}) or fork({thread}) before"
            )),
        }
    }

    fn begin(&mut self, thread: u32, known: Known) -> Result<(), String> {
        match self.known.insert(thread, known) {
            None => Ok(()),
            Some(before) => {
                self.known.insert(thread, before);
                Err(format!("thread {thread} is there already: expected a number that is new"))
            }
        }
    }
}

/// Whether a script is one; the error says which step, from 0, and what is wrong.
pub fn check(script: &Script) -> Result<(), (usize, String)> {
    let mut threads = Threads::default();
    for (index, step) in script.steps.iter().enumerate() {
        threads.step(step).map_err(|what| (index, what))?;
        if let Action::Call(called) = &step.action
            && let Some(what) = called.wrong()
        {
            return Err((index, what));
        }
    }
    Ok(())
}
