//! Requests of io_uring and aio, as they stand in a program's memory when a call hands them over, and their completions.
//! Another process writes there: nothing of it is trusted, and nothing is read more than once.

use std::collections::VecDeque;

use etude_calls::Call;

use crate::rewrite::ring::Raw;

/// Memory of a program.
pub trait Reads {
    /// None where not all of it is there.
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>>;

    /// Several pieces, at once where that can be.
    fn pieces(&self, places: &[(u64, usize)]) -> Option<Vec<Vec<u8>>> {
        places.iter().map(|(at, length)| self.bytes(*at, *length)).collect()
    }
}

/// Memory of which some pieces have been read.
pub struct Known<'a, M> {
    memory: &'a M,
    pieces: Vec<(u64, Vec<u8>)>,
}

impl<M: Reads> Reads for Known<'_, M> {
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let within = |(from, bytes): &(u64, Vec<u8>)| {
            let begin = usize::try_from(at.checked_sub(*from)?).ok()?;
            bytes.get(begin..begin.checked_add(length)?).map(<[u8]>::to_vec)
        };
        self.pieces.iter().find_map(within).or_else(|| self.memory.bytes(at, length))
    }
}

/// A request or a completion, as it will stand in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: &'static str,
    pub arguments: [u64; 6],
    pub result: i64,
}

impl Found {
    /// At a time, in ticks; it takes none.
    pub fn raw(&self, at: u64) -> Raw {
        let call = Call::named(self.name).expect("it is in the table");
        let (arguments, result) = (self.arguments, self.result);
        Raw { number: Raw::made_up(call), begun: at, ended: at, result, arguments, texts: [None, None] }
    }
}

/// Entries of the largest queues that the kernel makes.
const MOST_ENTRIES: u32 = 1 << 16;
/// Requests of one io_submit that are looked at; the kernel takes no more than a context has room for.
const MOST_SUBMITTED: u64 = 1 << 16;
/// Bytes of the queues and entries of a ring that are read whole, at once: it costs less than to read what of them is new.
const AT_ONCE: usize = 16 << 10;
/// Buffers of a vectored request, as the kernel allows.
const MOST_VECTORS: u64 = 1024;

const SQE128: u32 = 1 << 10;
const CQE32: u32 = 1 << 11;
const NO_MMAP: u32 = 1 << 14;
const NO_SQARRAY: u32 = 1 << 16;
/// A thread of the kernel takes requests, and no call tells of them.
pub const SQPOLL: u32 = 1 << 1;

/// Where what stands in the queues of an io_uring (man 2 io_uring_setup).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub flags: u32,
    sq_entries: u32,
    cq_entries: u32,
    sq_head: u32,
    sq_array: u32,
    cq_head: u32,
    cq_tail: u32,
    cqes: u32,
    /// Where the program has put the entries and the queues itself.
    own: Option<(u64, u64)>,
}

impl Layout {
    /// Bytes of `struct io_uring_params`.
    pub const BYTES: usize = 120;

    /// As the kernel has filled it in; None where it says what cannot be.
    pub fn of(params: &[u8]) -> Option<Layout> {
        let word = |at: usize| Some(u32::from_le_bytes(params.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(params.get(at..at + 8)?.try_into().ok()?));
        let flags = word(8)?;
        let layout = Layout {
            flags,
            sq_entries: word(0)?,
            cq_entries: word(4)?,
            sq_head: word(40)?,
            sq_array: word(64)?,
            cq_head: word(80)?,
            cq_tail: word(84)?,
            cqes: word(100)?,
            own: (flags & NO_MMAP != 0).then_some((long(72)?, long(112)?)),
        };
        let fits = |entries: u32| entries.is_power_of_two() && entries <= MOST_ENTRIES;
        (fits(layout.sq_entries) && fits(layout.cq_entries)).then_some(layout)
    }

    /// Where the queues are, if the program has not mapped them: of submissions, of completions, the entries.
    pub fn own(&self) -> Option<[u64; 3]> {
        self.own.map(|(entries, queues)| [queues, queues, entries])
    }

    /// Its memory, of which all that a look at the ring asks for has been read, where that is little.
    pub fn read<'a, M: Reads>(&self, memory: &'a M, [queue, completions, entries]: [u64; 3]) -> Known<'a, M> {
        let (requests, done) = (self.sq_entries as usize, self.cq_entries as usize);
        let array = if self.flags & NO_SQARRAY == 0 { requests * 4 } else { 0 };
        // Completions behind the end of their queue: those up to there are whole.
        let places = [
            (queue.wrapping_add(self.sq_head.into()), 4),
            (queue.wrapping_add(self.sq_array.into()), array),
            (completions.wrapping_add(self.cq_head.into()), 4),
            (completions.wrapping_add(self.cq_tail.into()), 4),
            (completions.wrapping_add(self.cqes.into()), done * self.completion_bytes()),
            (entries, requests * self.entry_bytes()),
        ];
        let little = places.iter().map(|(_, length)| length).sum::<usize>() <= AT_ONCE;
        let pieces = little.then(|| memory.pieces(&places)).flatten().unwrap_or_default();
        Known { memory, pieces: places.iter().map(|(at, _)| *at).zip(pieces).collect() }
    }

    fn entry_bytes(&self) -> usize {
        if self.flags & SQE128 != 0 { 128 } else { 64 }
    }

    fn completion_bytes(&self) -> usize {
        if self.flags & CQE32 != 0 { 32 } else { 16 }
    }

    /// The requests that the kernel has taken last, so many. `file`: the descriptor of a registered file.
    pub fn submitted(
        &self,
        memory: &impl Reads,
        [queue, _, entries]: [u64; 3],
        taken: u32,
        ring: u64,
        file: impl Fn(u32) -> Option<i32>,
    ) -> Vec<Found> {
        let many = taken.min(self.sq_entries);
        let head = if many > 0 { number(memory, queue.wrapping_add(self.sq_head.into())) } else { None };
        let Some(head) = head else { return Vec::new() };
        let places = (1..=many).rev().map(|back| head.wrapping_sub(back) & (self.sq_entries - 1));
        let places: Vec<u32> = if self.flags & NO_SQARRAY != 0 {
            places.collect()
        } else {
            let array = memory.bytes(queue.wrapping_add(self.sq_array.into()), self.sq_entries as usize * 4);
            let Some(array) = array else { return Vec::new() };
            places.map(|place| word_at(&array, place as usize * 4)).collect()
        };
        let known = || places.iter().copied().filter(|place| *place < self.sq_entries);
        let (Some(first), Some(last)) = (known().min(), known().max()) else { return Vec::new() };
        let each = self.entry_bytes();
        let from = entries.wrapping_add(u64::from(first) * each as u64);
        let Some(bytes) = memory.bytes(from, (last - first + 1) as usize * each) else { return Vec::new() };
        known()
            .map(|place| sqe(memory, &bytes[(place - first) as usize * each..][..64], ring, &file))
            .collect()
    }

    /// What has completed since the last look, in `done`; and what the program has taken of it.
    pub fn completed(
        &self,
        memory: &impl Reads,
        [_, queue, _]: [u64; 3],
        ring: u64,
        done: &mut Done,
    ) -> Vec<Found> {
        let word = |offset: u32| number(memory, queue.wrapping_add(offset.into()));
        let (Some(head), Some(tail)) = (word(self.cq_head), word(self.cq_tail)) else { return Vec::new() };
        let each = self.completion_bytes();
        let mask = self.cq_entries - 1;
        let many = tail.wrapping_sub(done.seen);
        if many > self.cq_entries {
            done.lost(tail, head);
            return Vec::new();
        }
        if many > 0 {
            let all = memory.bytes(queue.wrapping_add(self.cqes.into()), self.cq_entries as usize * each);
            let Some(all) = all else { return Vec::new() };
            for next in 0..many {
                let at = (done.seen.wrapping_add(next) & mask) as usize * each;
                let result = word_at(&all, at + 8) as i32;
                done.waiting.push_back((long_at(&all, at), result.into()));
            }
            done.seen = tail;
        }
        let taken = head.wrapping_sub(done.taken) as usize;
        if taken > done.waiting.len() {
            done.lost(tail, head);
            return Vec::new();
        }
        done.taken = head;
        done.waiting.drain(..taken).map(|(tag, result)| completion("cqe", ring, tag, result)).collect()
    }
}

/// Completions that were seen, and those of them that the program has not taken yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    seen: u32,
    taken: u32,
    waiting: VecDeque<(u64, i64)>,
}

impl Done {
    fn lost(&mut self, seen: u32, taken: u32) {
        (self.seen, self.taken) = (seen, taken);
        self.waiting.clear();
        // What is still there is passed over: it begins at `taken`.
        self.taken = self.seen;
    }

    /// All that the program has not taken and will not take any more.
    pub fn rest(&mut self, name: &'static str, queue: u64) -> Vec<Found> {
        self.waiting.drain(..).map(|(tag, result)| completion(name, queue, tag, result)).collect()
    }
}

fn completion(name: &'static str, queue: u64, tag: u64, result: i64) -> Found {
    Found { name, arguments: [queue, tag, 0, 0, 0, 0], result }
}

fn number(memory: &impl Reads, at: u64) -> Option<u32> {
    memory.bytes(at, 4).map(|bytes| word_at(&bytes, 0))
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What a request does, where that is known.
enum Deed {
    Read,
    Write,
    Fsync,
    Fdatasync,
}

/// Bytes of the buffers of a vectored request.
fn vectors(memory: &impl Reads, at: u64, many: u64) -> Option<u64> {
    if many > MOST_VECTORS {
        return None;
    }
    let bytes = memory.bytes(at, many as usize * 16)?;
    Some(bytes.chunks_exact(16).fold(0, |sum, one| long_at(one, 8).saturating_add(sum)))
}

/// Flags of a read or write of its own (man 2 preadv2) as a request has them; None for one that changes what it does.
fn transfer_flags(flags: u32) -> Option<u64> {
    const HIPRI: u32 = 1;
    const DSYNC: u32 = 2;
    const SYNC: u32 = 4;
    const NOWAIT: u32 = 8;
    (flags & !(HIPRI | DSYNC | SYNC | NOWAIT) == 0).then_some(u64::from(flags & (DSYNC | SYNC)) << 8)
}

/// An entry of a submission queue.
fn sqe(memory: &impl Reads, entry: &[u8], ring: u64, file: &impl Fn(u32) -> Option<i32>) -> Found {
    const FIXED_FILE: u64 = 1;
    const BUFFER_SELECT: u64 = 0x20;
    let (opcode, flags) = (entry[0], u64::from(entry[1]));
    let (descriptor, offset, address) = (word_at(entry, 4), long_at(entry, 8), long_at(entry, 16));
    let (length, own_flags, tag) = (u64::from(word_at(entry, 24)), word_at(entry, 28), long_at(entry, 32));
    let deed = match opcode {
        4 | 22 => Some((Deed::Read, Some(length))),
        5 | 23 => Some((Deed::Write, Some(length))),
        1 | 60 => Some((Deed::Read, vectors(memory, address, length))),
        2 | 61 => Some((Deed::Write, vectors(memory, address, length))),
        3 if own_flags & 1 != 0 => Some((Deed::Fdatasync, Some(0))),
        3 => Some((Deed::Fsync, Some(0))),
        _ => None,
    };
    let descriptor = match flags & FIXED_FILE {
        0 => Some(descriptor as i32),
        _ => file(descriptor),
    };
    let moves = matches!(deed, Some((Deed::Read | Deed::Write, _)));
    let transfer = if moves { transfer_flags(own_flags) } else { Some(0) };
    let known = deed.filter(|_| flags & BUFFER_SELECT == 0).zip(descriptor).zip(transfer);
    let Some((((deed, Some(size)), descriptor), transfer)) = known else {
        let arguments = [opcode.into(), ring, tag, flags, 0, 0];
        return Found { name: "sqe_other", arguments, result: 0 };
    };
    let (descriptor, flags) = (descriptor as i64 as u64, flags & !FIXED_FILE | transfer);
    made(
        ["sqe_read", "sqe_write", "sqe_fsync", "sqe_fdatasync"],
        &deed,
        [descriptor, ring, size, offset, tag, flags],
    )
}

fn made(names: [&'static str; 4], deed: &Deed, arguments: [u64; 6]) -> Found {
    let [file, queue, _, _, tag, flags] = arguments;
    let (place, arguments) = match deed {
        Deed::Read => (0, arguments),
        Deed::Write => (1, arguments),
        Deed::Fsync => (2, [file, queue, tag, flags, 0, 0]),
        Deed::Fdatasync => (3, [file, queue, tag, flags, 0, 0]),
    };
    Found { name: names[place], arguments, result: 0 }
}

/// The requests of an io_submit: `many` pointers stand at `list`.
pub fn iocbs(memory: &impl Reads, context: u64, many: u64, list: u64) -> Vec<Found> {
    if many as i64 <= 0 {
        return Vec::new();
    }
    let Some(list) = memory.bytes(list, many.min(MOST_SUBMITTED) as usize * 8) else { return Vec::new() };
    let pointers = list.chunks_exact(8).map(|pointer| long_at(pointer, 0));
    // The kernel takes none behind one that it cannot read.
    pointers.map_while(|at| Some(iocb(memory, context, at, &memory.bytes(at, 64)?))).collect()
}

fn iocb(memory: &impl Reads, context: u64, at: u64, bytes: &[u8]) -> Found {
    let opcode = u16::from_le_bytes([bytes[16], bytes[17]]);
    let (flags, descriptor) = (word_at(bytes, 12), word_at(bytes, 20));
    let (buffer, length, offset) = (long_at(bytes, 24), long_at(bytes, 32), long_at(bytes, 40));
    let deed = match opcode {
        0 => Some((Deed::Read, Some(length))),
        1 => Some((Deed::Write, Some(length))),
        7 => Some((Deed::Read, vectors(memory, buffer, length))),
        8 => Some((Deed::Write, vectors(memory, buffer, length))),
        2 => Some((Deed::Fsync, Some(0))),
        3 => Some((Deed::Fdatasync, Some(0))),
        _ => None,
    };
    match deed.zip(transfer_flags(flags)) {
        Some(((deed, Some(size)), flags)) => made(
            ["iocb_read", "iocb_write", "iocb_fsync", "iocb_fdatasync"],
            &deed,
            [descriptor as i32 as i64 as u64, context, size, offset, at, flags],
        ),
        _ => Found { name: "iocb_other", arguments: [opcode.into(), context, at, 0, 0, 0], result: 0 },
    }
}

/// An aio context that is met for the first time: what was there before is not looked at.
pub fn context(memory: &impl Reads, at: u64) -> Option<Done> {
    let (_, head, _) = events(memory, at)?;
    Some(Done { seen: head, taken: head, waiting: VecDeque::new() })
}

/// Of the ring of events that the kernel maps where a context is: how many it holds, and its ends.
fn events(memory: &impl Reads, at: u64) -> Option<(u32, u32, u32)> {
    const MAGIC: u32 = 0xa10a_10a1;
    const HEADER: u32 = 32;
    let header = memory.bytes(at, HEADER as usize)?;
    let [many, head, tail, magic, length] = [4, 8, 12, 16, 28].map(|at| word_at(&header, at));
    let fits = magic == MAGIC && length == HEADER && (1..=1 << 20).contains(&many);
    fits.then_some((many, head % many.max(1), tail % many.max(1)))
}

/// As `Layout::completed`, of an aio context.
pub fn reaped(memory: &impl Reads, at: u64, done: &mut Done) -> Vec<Found> {
    let Some((many, head, tail)) = events(memory, at) else { return Vec::new() };
    let between = |from: u32, to: u32| (to + many - from % many) % many;
    for next in 0..between(done.seen, tail) {
        let place = (done.seen + next) % many;
        let Some(event) = memory.bytes(at.wrapping_add(32 + 32 * u64::from(place)), 32) else {
            return Vec::new();
        };
        done.waiting.push_back((long_at(&event, 8), long_at(&event, 16) as i64));
    }
    done.seen = tail;
    let taken = between(done.taken, head) as usize;
    if taken > done.waiting.len() {
        done.lost(tail, head);
        return Vec::new();
    }
    done.taken = head;
    done.waiting.drain(..taken).map(|(tag, result)| completion("io_event", at, tag, result)).collect()
}

#[cfg(test)]
mod tests;
