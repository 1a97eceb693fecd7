//! Which pipes and pairs of sockets are replayed: those both of whose ends are in the recorded program, as far as their bytes
//! tell.

use std::collections::HashMap;

use etude_calls::{Kind, Moves};
use etude_trace::Event;

use crate::from_trace::Walk;
use crate::from_trace::stream::Survey;
use crate::from_trace::tables::Behind;
use crate::model::PIPE_ROOM;
use crate::world::End;

/// Which ones are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    None,
    /// Those of which every byte that was read was written by the recorded program.
    #[default]
    Whole,
    /// All of them.
    All,
}

/// Of a pipe, and of a pair of sockets.
type Why = [&'static str; 2];

const OTHERS: Why =
    ["pipe from or to what is not recorded", "pair of sockets from or to what is not recorded"];
const SEVERAL: Why =
    ["pipe that several threads read in turns", "pair of sockets that several threads read in turns"];
const OTHERWISE: Why =
    ["pipe in calls that are not replayed", "pair of sockets in calls that are not replayed"];
const PASSED: Why = ["pipe", "pair of sockets that descriptors may have come through"];
/// Of a call that found nothing there, or no room.
const NOT_WAITED: &str = "pipe or socket that was looked at, and not waited for";

const EAGAIN: i64 = -11;
const EPIPE: i64 = -32;

/// The streams of all pipes and pairs of sockets of a trace, numbered as they were made.
#[derive(Default)]
pub(crate) struct Pipes {
    streams: Vec<Stream>,
    /// By the first stream: pipes that a walk before has found not to be whole, and why.
    unfit: Unfit,
    /// Data went through descriptors of which is not known where they came from.
    unknown: bool,
}

pub(crate) type Unfit = HashMap<u32, &'static str>;

#[derive(Default)]
struct Stream {
    /// The first one of the same pipe, or pair of sockets.
    first: u32,
    sockets: bool,
    read: u64,
    written: u64,
    /// Threads that have read it, and when the last read ended.
    readers: Vec<u32>,
    read_until_ns: u64,
    /// It was read by `recvmsg`, which may give descriptors, too.
    messages: bool,
    unfit: Option<Why>,
}

impl Pipes {
    pub fn without(unfit: Unfit) -> Pipes {
        Pipes { unfit, ..Pipes::default() }
    }

    /// Both ends of the next one, or why it is not replayed.
    fn begin(&mut self, sockets: bool) -> Result<[Behind; 2], &'static str> {
        let first = self.streams.len() as u32;
        let new = || Stream { first, sockets, ..Stream::default() };
        self.streams.extend(std::iter::repeat_with(new).take(1 + usize::from(sockets)));
        match self.unfit.get(&first) {
            Some(why) => Err(why),
            None => Ok(End::both(first, sockets).map(|end| Behind::Pipe(Some(end)))),
        }
    }

    /// A call of a thread that is replayed.
    pub fn call(&mut self, end: End, thread: u32, event: &Event) {
        let (moves, streams) = (event.call.row().moves, event.call.streams());
        let number = if streams == Some(Moves::Writes) { end.writes } else { end.reads };
        let stream = &mut self.streams[number as usize];
        match (streams, u64::try_from(event.result)) {
            _ if moves == Moves::Nothing => {}
            (_, Ok(_)) if !is_plain(event) => stream.unfit = Some(OTHERWISE),
            (Some(Moves::Reads), Ok(bytes)) => {
                stream.read = stream.read.saturating_add(bytes);
                stream.messages |= event.call.name() == "recvmsg";
                stream.reads(thread, event);
            }
            (Some(_), Ok(bytes)) => stream.written = stream.written.saturating_add(bytes),
            (None, Ok(1..)) => stream.unfit = Some(OTHERWISE),
            // What else it may be depends on time.
            (Some(Moves::Writes), Err(_)) if event.result != EPIPE && stream.sockets => {
                stream.unfit = Some(OTHERWISE);
            }
            _ => {}
        }
    }

    /// Those that are not whole. Where calls are missing in the trace, what was left in a pipe may be what they read.
    pub fn unfit(&self, survey: &Survey) -> Unfit {
        let passed = |stream: &Stream| self.unknown && stream.messages;
        let whole = survey.dropped == 0 && survey.unrecorded.is_empty() && !self.streams.iter().any(passed);
        let room = if whole { PIPE_ROOM } else { 0 };
        let why = |stream: &Stream| {
            let left = stream.written.checked_sub(stream.read);
            let others = || left.is_none_or(|left| left > room).then_some(OTHERS);
            let why = stream.unfit.or_else(|| passed(stream).then_some(PASSED)).or_else(others)?;
            Some(why[usize::from(stream.sockets)])
        };
        self.streams.iter().filter_map(|stream| Some((stream.first, why(stream)?))).collect()
    }
}

impl Stream {
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

/// Whether its flags leave data where they are read once, and do not mix them with others: none is known to do more than
/// MSG_DONTWAIT, MSG_EOR, MSG_WAITALL, MSG_NOSIGNAL, MSG_MORE, MSG_CMSG_CLOEXEC.
fn is_plain(event: &Event) -> bool {
    const PLAIN: u64 = 0x40 | 0x80 | 0x100 | 0x4000 | 0x8000 | 0x4000_0000;
    let flags = match event.call.name() {
        "sendto" | "recvfrom" => event.arguments[3],
        "sendmsg" | "recvmsg" => event.arguments[2],
        _ => 0,
    };
    flags & !PLAIN == 0
}

/// Whether it makes a pair of Unix sockets that are streams.
fn makes_streams(event: &Event) -> bool {
    const AF_UNIX: u64 = 1;
    const SOCK_STREAM: u64 = 1;
    event.arguments[0] == AF_UNIX && event.arguments[1] & 0xf == SOCK_STREAM
}

impl Walk<'_> {
    /// What stands behind both ends of a new pair.
    pub(crate) fn begins_pipe(&mut self, event: &Event) -> Result<[Behind; 2], &'static str> {
        let sockets = event.call.name() == "socketpair";
        match self.options.pipes {
            _ if sockets && !makes_streams(event) => Err("socket"),
            Kept::All => Ok([Behind::Pipe(None); 2]),
            Kept::None => Err(if sockets { "socket" } else { "pipe" }),
            Kept::Whole => self.pipes.begin(sockets),
        }
    }

    /// A call that found nothing in a pipe, or no room, and did not wait, has moved nothing: none later depends on it.
    pub(crate) fn waited_for(&self, process: u32, event: &Event) -> Result<(), &'static str> {
        let row = event.call.row();
        let is_pipe = |(kind, word): (&Kind, &u64)| {
            let opening = self.tables.get(process, *word as i32).filter(|_| *kind == Kind::Fd);
            opening.is_some_and(|opening| matches!(opening.behind, Behind::Pipe(_)))
        };
        let looks = event.result == EAGAIN && row.moves != Moves::Nothing;
        match looks && row.arguments.iter().zip(&event.arguments).any(is_pipe) {
            true => Err(NOT_WAITED),
            false => Ok(()),
        }
    }

    /// A call that is not replayed may move what is in a pipe.
    pub(crate) fn passes_by(&mut self, process: u32, event: &Event) {
        let row = event.call.row();
        // How much a request moves is not known where it is made.
        if row.moves == Moves::Nothing || event.result <= 0 && event.call.role().is_none() {
            return;
        }
        const LAST_STANDARD: i32 = 2;
        for (_, word) in row.arguments.iter().zip(&event.arguments).filter(|(kind, _)| **kind == Kind::Fd) {
            let descriptor = *word as i32;
            match self.tables.get(process, descriptor).map(|opening| opening.behind) {
                Some(Behind::Pipe(Some(end))) => {
                    self.pipes.streams[end.reads as usize].unfit = Some(OTHERWISE);
                }
                None => self.pipes.unknown |= descriptor > LAST_STANDARD,
                _ => {}
            }
        }
    }
}
