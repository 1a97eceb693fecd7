//! The part that is timed, and nothing else.

use std::io;

use etude_clock::monotonic_ns;

use crate::blocks::Blocks;

/// One way of moving bytes between the file and the buffer.
pub trait Transfer {
    /// Moves bytes at an offset, with one call where there is one. How many were moved; negative with `errno` set if
    /// the call failed.
    fn transfer(&mut self, offset: u64, bytes: usize) -> isize;

    /// Returns when what was written is on the device; not 0 with `errno` set if the call failed.
    fn sync(&mut self) -> i32;
}

/// What ended a run before its end.
#[derive(Debug)]
pub enum Stopped {
    /// A call failed.
    Failed { offset: u64, asked: usize, error: io::Error },
    /// A call moved less than was asked.
    Short { offset: u64, asked: usize, moved: usize },
    /// The sync at the end failed.
    Sync(io::Error),
}

/// How long all transfers and the sync take, ns. Between the two readings of the clock stands nothing but the calls, a
/// counter of them, and one comparison for each: a transfer that is not whole ends the run.
///
/// The loops are written out by the compiler once for each way of moving bytes, so that what it costs to choose one is
/// paid before.
pub fn timed(
    transfer: &mut impl Transfer,
    blocks: Blocks,
    order: Option<&[u64]>,
    sync: bool,
) -> Result<u64, Stopped> {
    let start = monotonic_ns();
    match order {
        None => sequential(transfer, blocks)?,
        Some(offsets) => random(transfer, blocks, offsets)?,
    }
    if sync && transfer.sync() != 0 {
        return Err(Stopped::Sync(io::Error::last_os_error()));
    }
    Ok(monotonic_ns() - start)
}

#[inline(always)]
fn sequential(transfer: &mut impl Transfer, blocks: Blocks) -> Result<(), Stopped> {
    let size = blocks.size as usize;
    let mut offset = 0;
    for _ in 0..blocks.whole {
        whole(transfer, offset, size)?;
        offset += blocks.size;
    }
    if blocks.tail > 0 { whole(transfer, offset, blocks.tail as usize) } else { Ok(()) }
}

#[inline(always)]
fn random(transfer: &mut impl Transfer, blocks: Blocks, offsets: &[u64]) -> Result<(), Stopped> {
    for offset in offsets {
        whole(transfer, *offset, blocks.length_at(*offset) as usize)?;
    }
    Ok(())
}

#[inline(always)]
fn whole(transfer: &mut impl Transfer, offset: u64, asked: usize) -> Result<(), Stopped> {
    let moved = transfer.transfer(offset, asked);
    if moved == asked as isize { Ok(()) } else { Err(stopped(offset, asked, moved)) }
}

#[cold]
fn stopped(offset: u64, asked: usize, moved: isize) -> Stopped {
    match usize::try_from(moved) {
        Ok(moved) => Stopped::Short { offset, asked, moved },
        Err(_) => Stopped::Failed { offset, asked, error: io::Error::last_os_error() },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Remembers what it was asked for, and moves only so many bytes in all.
    struct Remembered {
        asked: Vec<(u64, usize)>,
        left: usize,
        syncs: u32,
    }

    impl Transfer for Remembered {
        fn transfer(&mut self, offset: u64, bytes: usize) -> isize {
            self.asked.push((offset, bytes));
            let moved = bytes.min(self.left);
            self.left -= moved;
            moved as isize
        }

        fn sync(&mut self) -> i32 {
            self.syncs += 1;
            0
        }
    }

    fn remembered(left: usize) -> Remembered {
        Remembered { asked: Vec::new(), left, syncs: 0 }
    }

    proptest! {
        #[test]
        fn every_byte_is_moved_once_in_either_order(
            total in 1u64..4000, size in 1u64..100, seed in proptest::option::of(any::<u64>()), sync: bool
        ) {
            let blocks = Blocks::cut(total, size, true).expect("a tail is allowed");
            let order = seed.map(|seed| blocks.shuffled(seed).expect("it is small"));
            let mut transfer = remembered(usize::MAX);
            prop_assert!(timed(&mut transfer, blocks, order.as_deref(), sync).is_ok());
            prop_assert_eq!(transfer.syncs, u32::from(sync));
            if seed.is_some() {
                transfer.asked.sort_unstable();
            }
            let mut end = 0;
            for (offset, bytes) in transfer.asked {
                prop_assert_eq!(offset, end);
                end += bytes as u64;
            }
            prop_assert_eq!(end, total);
        }

        #[test]
        fn a_short_transfer_ends_the_run_where_it_is(total in 2u64..1000, size in 1u64..50, left in 0usize..1000) {
            let blocks = Blocks::cut(total, size, true).expect("a tail is allowed");
            let mut transfer = remembered(left);
            match timed(&mut transfer, blocks, None, true) {
                Ok(_) => prop_assert!(left as u64 >= total),
                Err(Stopped::Short { offset, asked, moved }) => {
                    prop_assert_eq!(offset + moved as u64, left as u64);
                    prop_assert!(moved < asked);
                    prop_assert_eq!(transfer.syncs, 0);
                }
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
