use std::cell::Cell;

use proptest::prelude::*;

use super::*;

/// Pieces of memory and where they are.
#[derive(Default)]
struct Pieces(Vec<(u64, Vec<u8>)>);

impl Reads for Pieces {
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let found = |(from, bytes): &(u64, Vec<u8>)| {
            let begin = usize::try_from(at.checked_sub(*from)?).ok()?;
            bytes.get(begin..begin.checked_add(length)?).map(<[u8]>::to_vec)
        };
        self.0.iter().find_map(found)
    }
}

/// The same, which counts how often it is read.
struct Counted(Pieces, Cell<usize>);

impl Reads for Counted {
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        self.1.set(self.1.get() + 1);
        self.0.bytes(at, length)
    }

    fn pieces(&self, places: &[(u64, usize)]) -> Option<Vec<Vec<u8>>> {
        self.1.set(self.1.get() + 1);
        self.0.pieces(places)
    }
}

const SQ: u64 = 0x10000;
const CQ: u64 = 0x20000;
const SQES: u64 = 0x30000;
const AT: [u64; 3] = [SQ, CQ, SQES];

fn put(bytes: &mut [u8], at: usize, value: u64, length: usize) {
    bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
}

/// A ring of eight entries and sixteen completions, whose words stand at 0, 4 and so on.
fn params(flags: u32) -> Vec<u8> {
    let mut params = vec![0; Layout::BYTES];
    let words = [(0, 8), (4, 16), (8, flags), (40, 0), (44, 4), (64, 64), (80, 0), (84, 4), (100, 64)];
    words.iter().for_each(|(at, value)| put(&mut params, *at, u64::from(*value), 4));
    params
}

fn layout(flags: u32) -> Layout {
    Layout::of(&params(flags)).unwrap()
}

#[allow(clippy::too_many_arguments)]
fn entry(
    opcode: u8,
    flags: u8,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    own: u32,
    tag: u64,
) -> Vec<u8> {
    let mut entry = vec![0; 64];
    (entry[0], entry[1]) = (opcode, flags);
    put(&mut entry, 4, fd as u32 as u64, 4);
    put(&mut entry, 8, offset, 8);
    put(&mut entry, 16, address, 8);
    put(&mut entry, 24, length.into(), 4);
    put(&mut entry, 28, own.into(), 4);
    put(&mut entry, 32, tag, 8);
    entry
}

/// A ring of which these entries were taken, from a head on that was about to pass 2^32.
fn taken(entries: &[Vec<u8>]) -> Pieces {
    let (head, mut queue, mut all) = (u32::MAX, vec![0; 96], vec![0; 8 * 64]);
    put(&mut queue, 0, head.wrapping_add(entries.len() as u32).into(), 4);
    for (next, entry) in entries.iter().enumerate() {
        let (place, slot) = ((head.wrapping_add(next as u32) & 7) as usize, 7 - next);
        put(&mut queue, 64 + 4 * place, slot as u64, 4);
        all[64 * slot..][..64].copy_from_slice(entry);
    }
    Pieces(vec![(SQ, queue), (SQES, all)])
}

fn found(name: &'static str, arguments: [u64; 6]) -> Found {
    Found { name, arguments, result: 0 }
}

#[test]
fn entries_are_read_in_the_order_of_the_queue() {
    let vectors: Vec<u8> = [1_u64, 100, 2, 20].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut memory = taken(&[
        entry(23, 4, 5, 4096, 1, 512, 2, 70),
        entry(22, 1, 1, 8192, 1, 100, 0, 71),
        entry(2, 0, 5, u64::MAX, 0x40000, 2, 0, 72),
        entry(3, 2, 5, 0, 0, 0, 1, 73),
        entry(18, 0, -100, 0, 1, 0, 0, 74),
        entry(22, 1, 2, 0, 1, 100, 0, 75),
        entry(23, 0, 5, 0, 1, 100, 0x10, 76),
    ]);
    memory.0.push((0x40000, vectors));
    let file = |index: u32| (index == 1).then_some(9);
    let all = layout(0).submitted(&memory, AT, 7, 3, file);
    let wanted = [
        found("sqe_write", [5, 3, 512, 4096, 70, 4 | 0x200]),
        found("sqe_read", [9, 3, 100, 8192, 71, 0]),
        found("sqe_write", [5, 3, 120, u64::MAX, 72, 0]),
        found("sqe_fdatasync", [5, 3, 73, 2, 0, 0]),
        found("sqe_other", [18, 3, 74, 0, 0, 0]),
        found("sqe_other", [22, 3, 75, 1, 0, 0]),
        found("sqe_other", [23, 3, 76, 0, 0, 0]),
    ];
    assert_eq!(all, wanted);
    assert_eq!(layout(0).submitted(&memory, AT, 2, 3, file), wanted[5..]);
    assert_eq!(layout(0).submitted(&memory, AT, u32::MAX, 3, file).len(), 8);
}

#[test]
fn a_small_ring_is_read_at_once() {
    let looked = |layout: Layout, lacks: Option<usize>| {
        let mut ring = taken(&[entry(22, 0, 5, 0, 1, 100, 0, 7), entry(22, 0, 5, 0, 1, 100, 0, 8)]);
        let mut completions = vec![0; 64 + 16 * 16];
        put(&mut completions, 4, 2, 4);
        ring.0.push((CQ, completions));
        lacks.into_iter().for_each(|bytes| ring.0[1].1.truncate(bytes));
        let (memory, mut done) = (Counted(ring, Cell::new(0)), Done::default());
        let known = layout.read(&memory, AT);
        let taken = layout.completed(&known, AT, 3, &mut done);
        let submitted = layout.submitted(&known, AT, 1, 3, |_| None);
        (taken.len(), done.seen, submitted.len(), memory.1.get())
    };
    assert_eq!(looked(layout(0), None), (0, 2, 1, 1));
    // Piece by piece where not all is there, and where that is much.
    assert_eq!(looked(layout(0), Some(7 * 64)), (0, 2, 1, 7));
    let large = Layout { cq_entries: 1024, ..layout(0) };
    assert_eq!(looked(large, None), (0, 0, 1, 6));
}

#[test]
fn completions_count_when_the_program_takes_them() {
    let (layout, mut done) = (layout(0), Done::default());
    let mut memory = |head: u32, tail: u32, first: u64| {
        let mut queue = vec![0; 64 + 16 * 16];
        put(&mut queue, 0, head.into(), 4);
        put(&mut queue, 4, tail.into(), 4);
        for place in 0..16 {
            put(&mut queue, 64 + 16 * place, first + place as u64, 8);
            put(&mut queue, 64 + 16 * place + 8, (-5_i32) as u32 as u64, 4);
        }
        layout.completed(&Pieces(vec![(CQ, queue)]), AT, 3, &mut done)
    };
    let cqe = |tag| Found { name: "cqe", arguments: [3, tag, 0, 0, 0, 0], result: -5 };
    assert_eq!(memory(0, 3, 100), []);
    // What was seen then is kept, though it be overwritten.
    assert_eq!(memory(2, 3, 200), [cqe(100), cqe(101)]);
    assert_eq!(memory(17, 18, 200)[..2], [cqe(102), cqe(203)]);
    // Further than the queue is long: what was between is not known.
    assert_eq!(memory(60, 61, 300), []);
    assert_eq!(memory(61, 62, 300), []);
    assert_eq!(memory(62, 62, 300), [cqe(313)]);
    assert_eq!(done.rest("cqe", 3), []);
}

#[test]
fn requests_and_events_of_aio_are_read() {
    let iocb = |opcode: u64, fd: u64, length: u64, offset: u64| {
        let mut bytes = vec![0; 64];
        for (at, value, length) in [(16, opcode, 2), (20, fd, 4), (32, length, 8), (40, offset, 8)] {
            put(&mut bytes, at, value, length);
        }
        bytes
    };
    let (context, at) = (0x7000_u64, [0x100_u64, 0x200, 0x300, 0x999]);
    let list: Vec<u8> = at.iter().flat_map(|at| at.to_le_bytes()).collect();
    let mut ring = vec![0; 32 + 4 * 32];
    for (at, value) in [(4, 4), (8, 3), (12, 1), (16, 0xa10a_10a1), (28, 32)] {
        put(&mut ring, at, value, 4);
    }
    for (place, obj) in [(3, 0x100), (0, 0x200)] {
        put(&mut ring, 32 + 32 * place + 8, obj, 8);
        put(&mut ring, 32 + 32 * place + 16, 4096, 8);
    }
    let pieces = vec![
        (0x5000, list),
        (0x100, iocb(1, 4, 4096, 8192)),
        (0x200, iocb(0, 4, 512, 0)),
        (0x300, iocb(3, 4, 0, 0)),
        (context, ring.clone()),
    ];
    let memory = Pieces(pieces);
    let wanted = [
        found("iocb_write", [4, context, 4096, 8192, 0x100, 0]),
        found("iocb_read", [4, context, 512, 0, 0x200, 0]),
        found("iocb_fdatasync", [4, context, 0x300, 0, 0, 0]),
    ];
    assert_eq!(iocbs(&memory, context, 4, 0x5000), wanted);
    assert_eq!(iocbs(&memory, context, -1_i64 as u64, 0x5000), []);
    let mut done = super::context(&memory, context).unwrap();
    assert_eq!(reaped(&memory, context, &mut done), []);
    put(&mut ring, 8, 1, 4);
    let event = |tag| Found { name: "io_event", arguments: [context, tag, 0, 0, 0, 0], result: 4096 };
    assert_eq!(reaped(&Pieces(vec![(context, ring)]), context, &mut done), [event(0x100), event(0x200)]);
}

/// Memory that holds the same bytes everywhere, or nothing.
struct Noise(Vec<u8>);

impl Reads for Noise {
    fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let many = self.0.len() as u64;
        (many > 0 && at % 3 != 1)
            .then(|| (0..length as u64).map(|next| self.0[(at.wrapping_add(next) % many) as usize]).collect())
    }
}

proptest! {
    #[test]
    fn whatever_stands_in_memory_is_read_to_an_end(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        mut setup in prop::collection::vec(any::<u8>(), Layout::BYTES),
        entries in (0_u32..12, 0_u32..12),
        at in any::<[u64; 3]>(),
        wanted in any::<u32>(),
        seen in any::<(u32, u32)>(),
    ) {
        prop_assert!(Layout::of(&setup).is_none_or(|layout| layout.sq_entries <= MOST_ENTRIES));
        put(&mut setup, 0, 1 << entries.0, 4);
        put(&mut setup, 4, 1 << entries.1, 4);
        let (layout, memory) = (Layout::of(&setup).unwrap(), Noise(noise));
        let all = layout.submitted(&memory, at, wanted, 3, |index| Some(index as i32));
        prop_assert!(all.len() <= layout.sq_entries as usize);
        all.iter().for_each(|one| drop(one.raw(0)));
        let mut done = Done { seen: seen.0, taken: seen.1, waiting: VecDeque::new() };
        for _ in 0..3 {
            let taken = layout.completed(&memory, at, 3, &mut done);
            prop_assert!(taken.len() <= layout.cq_entries as usize);
            prop_assert!(done.waiting.len() <= layout.cq_entries as usize);
        }
        iocbs(&memory, at[0], u64::from(wanted) & 0xfff, at[1]);
        if let Some(mut done) = super::context(&memory, at[2]) {
            reaped(&memory, at[2], &mut done);
        }
    }
}
