//! Which pipes are replayed: those both of whose ends are in the recorded program, as far as their bytes tell.

use std::collections::HashMap;

use etude_calls::{Kind, Moves};
use etude_trace::Event;

use crate::from_trace::Walk;
use crate::from_trace::stream::Survey;
use crate::from_trace::tables::Behind;
use crate::model::PIPE_ROOM;

/// Which ones are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    None,
    /// Those of which every byte that was read was written by the recorded program.
    #[default]
    Whole,
    /// All of them, and pairs of sockets.
    All,
}

const OTHERS: &str = "pipe from or to what is not recorded";
const NOT_WAITED: &str = "pipe that was looked at, and not waited for";
const SEVERAL: &str = "pipe that several threads read in turns";
const OTHERWISE: &str = "pipe in calls that are not replayed";

/// All pipes of a trace, numbered as they were made.
#[derive(Default)]
pub(crate) struct Pipes {
    pipes: Vec<Pipe>,
    /// By number: those that a walk before has found not to be whole, and why.
    unfit: Unfit,
}

pub(crate) type Unfit = HashMap<u32, &'static str>;

#[derive(Default)]
struct Pipe {
    read: u64,
    written: u64,
    /// Threads that have read it, and when the last read ended.
    readers: Vec<u32>,
    read_until_ns: u64,
    unfit: Option<&'static str>,
}

impl Pipes {
    pub fn without(unfit: Unfit) -> Pipes {
        Pipes { pipes: Vec::new(), unfit }
    }

    /// The number of the next one, or why it is not replayed.
    fn begin(&mut self) -> Result<u32, &'static str> {
        let number = self.pipes.len() as u32;
        self.pipes.push(Pipe::default());
        self.unfit.get(&number).map_or(Ok(number), |why| Err(*why))
    }

    /// A call of a thread that is replayed.
    pub fn call(&mut self, number: u32, thread: u32, event: &Event) {
        const EAGAIN: i64 = -11;
        let pipe = &mut self.pipes[number as usize];
        let bytes = u64::try_from(event.result).unwrap_or(0);
        match (event.call.name(), event.call.row().moves) {
            (_, Moves::Nothing) => {}
            _ if event.result == EAGAIN => pipe.unfit = Some(NOT_WAITED),
            ("read" | "readv", _) => {
                pipe.read = pipe.read.saturating_add(bytes);
                pipe.reads(thread, event);
            }
            ("write" | "writev", _) => pipe.written = pipe.written.saturating_add(bytes),
            _ if event.result > 0 => pipe.unfit = Some(OTHERWISE),
            _ => {}
        }
    }

    /// Those that are not whole. Where calls are missing in the trace, what was left in a pipe may be what they read.
    pub fn unfit(&self, survey: &Survey) -> Unfit {
        let whole = survey.dropped == 0 && survey.unrecorded.is_empty();
        let room = if whole { PIPE_ROOM } else { 0 };
        let why = |pipe: &Pipe| {
            let left = pipe.written.checked_sub(pipe.read);
            pipe.unfit.or(left.is_none_or(|left| left > room).then_some(OTHERS))
        };
        (0..).zip(&self.pipes).filter_map(|(number, pipe)| Some((number, why(pipe)?))).collect()
    }
}

impl Pipe {
    /// Who reads next is not known where several wait: a replay would give one what is another's.
    fn reads(&mut self, thread: u32, event: &Event) {
        if self.readers.last() != Some(&thread) {
            if self.readers.contains(&thread) || event.start_ns < self.read_until_ns {
                self.unfit = Some(SEVERAL);
            }
            self.readers.push(thread);
        }
        self.read_until_ns = self.read_until_ns.max(event.end_ns());
    }
}

impl Walk<'_> {
    /// What stands behind both ends of a new pair.
    pub(crate) fn begins_pipe(&mut self, event: &Event) -> Result<Behind, &'static str> {
        let sockets = event.call.name() == "socketpair";
        match self.options.pipes {
            Kept::All => Ok(Behind::Pipe(None)),
            Kept::None | Kept::Whole if sockets => Err("socket"),
            Kept::None => Err("pipe"),
            Kept::Whole => self.pipes.begin().map(|number| Behind::Pipe(Some(number))),
        }
    }

    /// A call that is not replayed may move what is in a pipe.
    pub(crate) fn passes_by(&mut self, process: u32, event: &Event) {
        let row = event.call.row();
        // How much a request moves is not known where it is made.
        if row.moves == Moves::Nothing || event.result <= 0 && event.call.role().is_none() {
            return;
        }
        for (kind, word) in row.arguments.iter().zip(&event.arguments) {
            let opening = self.tables.get(process, *word as i32).filter(|_| *kind == Kind::Fd);
            if let Some(Behind::Pipe(Some(number))) = opening.map(|opening| opening.behind) {
                self.pipes.pipes[number as usize].unfit = Some(OTHERWISE);
            }
        }
    }
}
