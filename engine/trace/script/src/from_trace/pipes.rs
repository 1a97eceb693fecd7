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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kept {
    None,
    /// Those of which every byte that was read was written by the recorded program.
    #[default]
    Whole,
    /// All of them.
    All,
}

/// Of a pipe, and of a pair of sockets.
pub(crate) type Why = [&'static str; 2];

pub(crate) const OTHERS: Why =
    ["pipe from or to what is not recorded", "pair of sockets from or to what is not recorded"];
const SEVERAL: Why =
    ["pipe that several threads read in turns", "pair of sockets that several threads read in turns"];
const OTHERWISE: Why =
    ["pipe in calls that are not replayed", "pair of sockets in calls that are not replayed"];
pub(crate) const COPIED: Why = ["pipe", "socket that was copied before it was connected"];
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
    /// Whether there was such a walk.
    judged: bool,
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
    /// When a read had ended or a write began, and how much had moved then; only where a socket has no other end yet
    /// (`sockets.rs`).
    moved: Option<Vec<(u64, u64)>>,
    /// Threads that have read it, and when the last read ended.
    readers: Vec<u32>,
    read_until_ns: u64,
    /// It was read by `recvmsg`, which may give descriptors, too.
    messages: bool,
    unfit: Option<Why>,
}

impl Pipes {
    pub fn without(unfit: Unfit) -> Pipes {
        Pipes { unfit, judged: true, ..Pipes::default() }
    }

    /// The streams of a socket of which nobody knows yet to which one it is connected; or why it is not replayed.
    pub fn end(&mut self) -> Result<(u32, End), &'static str> {
        let first = self.streams.len() as u32;
        let new = || Stream { first, sockets: true, moved: Some(Vec::new()), ..Stream::default() };
        self.streams.extend([new(), new()]);
        match self.unfit.get(&first) {
            Some(why) => Err(why),
            None => Ok((first, End { reads: first, writes: first + 1 })),
        }
    }

    pub fn is_end(&self, first: u32) -> bool {
        self.streams[first as usize].moved.is_some()
    }

    /// All such sockets.
    pub fn ends(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.streams).filter(|(at, of)| of.first == *at && of.moved.is_some()).map(|(at, _)| at)
    }

    pub fn refuse(&mut self, first: u32, why: Why) {
        self.streams[first as usize].unfit = Some(why);
    }

    /// The two ways between one end and another, each as the stream that is written and the one that is read.
    fn ways(&self, one: u32, other: u32) -> [(&Stream, &Stream); 2] {
        let stream = |at: u32| &self.streams[at as usize];
        [(stream(one + 1), stream(other)), (stream(other + 1), stream(one))]
    }

    /// Whether each has read only what the other had begun to write by then.
    pub fn fit(&self, one: u32, other: u32) -> bool {
        self.ways(one, other).into_iter().all(|(writes, reads)| {
            let written = writes.moved.as_deref().unwrap_or_default();
            reads.moved.iter().flatten().all(|(until_ns, bytes)| {
                let begun = written.partition_point(|(from_ns, _)| from_ns < until_ns);
                begun.checked_sub(1).map_or(0, |last| written[last].1) >= *bytes
            })
        })
    }

    /// Whether each has read all that the other has written.
    pub fn fit_exactly(&self, one: u32, other: u32) -> bool {
        self.ways(one, other).into_iter().all(|(writes, reads)| writes.written == reads.read)
    }

    /// Why two ends that belong together are not replayed.
    pub fn why_not(&self, one: u32, other: u32, survey: &Survey) -> Option<&'static str> {
        self.ways(one, other).into_iter().find_map(|(writes, reads)| {
            let unfit = writes.unfit.or(reads.unfit);
            let (written, read, messages) = (writes.written, reads.read, reads.messages);
            let whole = Stream { sockets: true, written, read, messages, unfit, ..Stream::default() };
            self.why(&whole, self.room(survey))
        })
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
        let (stream, judged) = (&mut self.streams[number as usize], self.judged);
        match (streams, u64::try_from(event.result)) {
            _ if moves == Moves::Nothing => {}
            (_, Ok(_)) if !is_plain(event) => stream.unfit = Some(OTHERWISE),
            (Some(Moves::Reads), Ok(bytes)) => {
                stream.read = stream.read.saturating_add(bytes);
                stream.notes(event.end_ns(), stream.read, judged);
                stream.messages |= event.call.name() == "recvmsg";
                stream.reads(thread, event);
            }
            (Some(_), Ok(bytes)) => {
                stream.written = stream.written.saturating_add(bytes);
                stream.notes(event.start_ns, stream.written, judged);
            }
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
        let room = self.room(survey);
        let pairs = self.streams.iter().filter(|stream| stream.moved.is_none());
        pairs.filter_map(|stream| Some((stream.first, self.why(stream, room)?))).collect()
    }

    fn passed(&self, stream: &Stream) -> bool {
        self.unknown && stream.messages
    }

    /// The most bytes that may be left in one.
    fn room(&self, survey: &Survey) -> u64 {
        let passed = self.streams.iter().any(|stream| self.passed(stream));
        if survey.dropped == 0 && survey.unrecorded.is_empty() && !passed { PIPE_ROOM } else { 0 }
    }

    fn why(&self, stream: &Stream, room: u64) -> Option<&'static str> {
        let left = stream.written.checked_sub(stream.read);
        let others = || left.is_none_or(|left| left > room).then_some(OTHERS);
        let why = stream.unfit.or_else(|| self.passed(stream).then_some(PASSED)).or_else(others)?;
        Some(why[usize::from(stream.sockets)])
    }
}

impl Stream {
    fn notes(&mut self, at_ns: u64, bytes: u64, judged: bool) {
        if let Some(moved) = self.moved.as_mut().filter(|_| !judged) {
            moved.push((at_ns, bytes));
        }
    }

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

/// Whether it makes Unix sockets that are streams.
pub(crate) fn makes_streams(event: &Event) -> bool {
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
