//! The rules for the steps of a script, one after the other; and the parts of one that every replay refuses, and
//! `etude prepare` of the files that it needs.

use std::collections::HashMap;

use etude_calls::{Call, Kind, Moves, Outcome, Processor, Role};

use crate::model::{Action, Called, Script, Step};
use crate::prepare::misplaced;
use crate::text::shown;

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

/// The most bytes that a replay moves by one call.
pub const MOST_MOVED: u64 = 1 << 30;

/// Where a script is wrong: the index of a step, or of something that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Step(usize),
    Needed(usize),
}

/// True if a script can be replayed.
///
/// # Errors
/// The first place at which it cannot, and why.
pub fn playable(script: &Script) -> Result<(), (Place, String)> {
    misplaced(&script.needed).map_err(|(index, what)| (Place::Needed(index), what))?;
    for (index, step) in script.steps.iter().enumerate() {
        if let Action::Call(called) = &step.action
            && let Some(what) = called.unplayable()
        {
            return Err((Place::Step(index), what));
        }
    }
    Ok(())
}

impl Called {
    /// Its error, if it cannot be written and read again as it is.
    fn wrong(&self) -> Option<String> {
        let name = self.call.name();
        let mut normal = self.arguments;
        let kind = |index| self.call.kind(&self.arguments, index);
        (0..6).filter(|index| !shown(kind(*index))).for_each(|index| normal[index] = 0);
        self.call.normalise(Processor::X86_64, &mut normal);
        if let Some(index) = (0..6).find(|index| normal[*index] != self.arguments[*index]) {
            return Some(format!("argument {} of {name} is {:#x}", index + 1, self.arguments[index]));
        }
        let mut before = None;
        for text in &self.texts {
            let index = usize::from(text.argument);
            let fits = match kind(index) {
                Kind::Path | Kind::Name => !text.bytes.contains(&0),
                Kind::Pair | Kind::OffsetAt | Kind::Range | Kind::Socket => true,
                _ => false,
            };
            let used = index < self.call.used(&self.arguments) && self.arguments[index] == 0;
            if !fits || !used || before >= Some(index) {
                return Some(format!("argument {} of {name} has a text that it cannot have", index + 1));
            }
            before = Some(index);
        }
        None
    }

    /// How large a buffer it needs.
    pub fn buffer(&self) -> u64 {
        let kinds = self.call.row().arguments;
        if let Some(Role::Request { .. }) = self.call.role() {
            return if kinds.get(2) == Some(&Kind::Size) { self.arguments[2] } else { 0 };
        }
        let of = |kind| kinds.iter().position(|each| *each == kind);
        match (self.call.row().outcome, of(Kind::Buffer), of(Kind::Iovec)) {
            (Outcome::Bytes, Some(buffer), _) => self.arguments[buffer + 1],
            (Outcome::Bytes, _, Some(_)) => self.result.max(0) as u64,
            // A message, whose buffers stand in memory.
            (Outcome::Bytes, ..) if self.call.streams().is_some() => self.result.max(0) as u64,
            _ => 0,
        }
    }

    fn unplayable(&self) -> Option<String> {
        let (name, bytes) = (self.call.name(), self.buffer());
        if bytes > MOST_MOVED {
            return Some(format!("{name} moves {bytes} bytes in one call; at most {MOST_MOVED} are played"));
        }
        exceeds(self.call, &self.arguments, self.result)
            .map(|size| format!("{name} moved {}, of {size} bytes that it was asked for", self.result))
    }

    /// A transfer of more than a replay moves at once, as one or two that it does; None where that cannot be.
    pub(crate) fn in_parts(mut self) -> Option<(Option<Called>, Called)> {
        if self.buffer() <= MOST_MOVED {
            return Some((None, self));
        }
        if !matches!(self.call.name(), "read" | "write" | "pread64" | "pwrite64") {
            return None;
        }
        let most = MOST_MOVED as i64;
        if self.result <= most {
            self.arguments[2] = MOST_MOVED;
            return Some((None, self));
        }
        let mut first = self.clone();
        (first.arguments[2], first.result, first.duration_ns) = (MOST_MOVED, most, Some(0));
        self.arguments[2] = (self.arguments[2] - MOST_MOVED).min(MOST_MOVED);
        self.result -= most;
        if self.call.name().starts_with('p') {
            self.arguments[3] = self.arguments[3].checked_add(MOST_MOVED)?;
        }
        (self.result <= most).then_some((Some(first), self))
    }
}

/// How many bytes a call was asked for, where it moved more: none does.
pub(crate) fn exceeds(call: Call, arguments: &[u64; 6], result: i64) -> Option<u64> {
    let row = call.row();
    // With MSG_TRUNC a datagram may be longer.
    let transfers = row.outcome == Outcome::Bytes
        && row.moves != Moves::Nothing
        && call.role().is_none()
        && !row.name.starts_with("recv");
    let size = row.arguments.iter().position(|kind| *kind == Kind::Size).filter(|_| transfers)?;
    u64::try_from(result).is_ok_and(|moved| moved > arguments[size]).then_some(arguments[size])
}
