//! Writing patches into the code of a program: by a stopped thread of it, which makes its code writable for as long as
//! it copies the jumps, in one go for all that is new; where the code may not be made writable (`PR_SET_MDWE`,
//! SELinux), by the launcher through /proc, one call for each jump.

use std::io;

use etude_sites::Site;

use crate::rewrite::batch::{Batch, Place, was_other};
use crate::rewrite::hook::{Code, Entry};
use crate::rewrite::maps::{Mapping, mappings, room};
use crate::rewrite::patch::{Patch, area, patch};
use crate::rewrite::remote_process::Remote;
use crate::rewrite::ring::Segment;
use crate::rewrite::setup::map_code;

/// `mseal`: what is ours stays where it is: a program that unmaps it, or maps something over it, gets EPERM and lives
/// on. The kernel has this from 6.10 on.
pub const MSEAL: i64 = 462;
/// How often room is looked for anew: another thread may take what was free a moment ago.
const ATTEMPTS: usize = 16;
/// Entries of a batch for a mapping, beside one for each site: it is made writable and back, and the trampolines are
/// mapped, copied, protected and sealed.
const ENTRIES: usize = 6;

/// Seals memory, where the kernel can.
pub fn seal(batch: &mut Batch, at: u64, size: u64) {
    batch.attempt(MSEAL, [at, size.next_multiple_of(4096), 0, 0, 0, 0]);
}

/// A mapping of code, and its sites by a scan at address 0.
pub struct Piece<'a> {
    pub mapping: Mapping,
    pub sites: Vec<(&'a Site, Option<Entry>)>,
    /// Sites that stay as they are, and why.
    pub left: Vec<(usize, &'static str)>,
    /// It cannot be made writable.
    through_proc: bool,
}

impl<'a> Piece<'a> {
    pub fn new(mapping: Mapping, sites: Vec<(&'a Site, Option<Entry>)>) -> Piece<'a> {
        // Memory that may only be executed would lose that by what makes it writable.
        let through_proc = !mapping.readable;
        Piece { mapping, sites, left: Vec::new(), through_proc }
    }

    /// The sites that can be patched, with their places.
    fn open(&self) -> (Vec<usize>, Vec<(&'a Site, Option<Entry>)>) {
        let places = (0..self.sites.len()).filter(|place| self.left.iter().all(|(left, _)| left != place));
        places.map(|place| (place, self.sites[place])).unzip()
    }

    fn leave(&mut self, places: impl IntoIterator<Item = usize>, why: &'static str) {
        self.left.extend(places.into_iter().map(|place| (place, why)));
    }

    fn rights(&self, more: libc::c_int) -> [u64; 6] {
        let all = (libc::PROT_READ | libc::PROT_EXEC | more) as u64;
        [self.mapping.low, self.mapping.high - self.mapping.low, all, 0, 0, 0]
    }
}

/// The means to write to a program, one of whose threads stands still.
pub struct Writing<'a> {
    pub remote: &'a Remote<'a>,
    pub segment: &'a Segment,
    pub place: Place,
    pub code: &'a Code,
    pub hook: u64,
    /// All that is mapped in it.
    pub taken: Vec<Mapping>,
}

impl Writing<'_> {
    /// Makes the calls of `first`, and patches these mappings; which sites stay as they are is noted in them.
    ///
    /// # Errors
    /// The thread is gone, or its memory cannot be written.
    pub fn write(&mut self, first: Batch, pieces: &mut [Piece]) -> io::Result<()> {
        let (mut batch, mut next, mut attempts) = (first, 0, ATTEMPTS);
        loop {
            let planned = self.plan(&mut batch, &mut pieces[next..]);
            let failed = match batch.run(self.remote, self.segment, self.place) {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                    let mut rights = Batch::default();
                    let planned = pieces[next..].iter().zip(&planned).filter(|(_, plan)| plan.size > 0);
                    planned.for_each(|(piece, _)| rights.attempt(libc::SYS_mprotect, piece.rights(0)));
                    rights.run(self.remote, self.segment, self.place)?;
                    return Err(error);
                }
                ran => ran?,
            };
            // Only the first two entries of a mapping can fail: what is before it is done.
            let done = failed.as_ref().map_or(planned.len(), |failed| {
                planned.iter().rposition(|plan| plan.entry <= failed.index).unwrap_or(0)
            });
            for (plan, piece) in planned[..done].iter().zip(&mut pieces[next..]) {
                let other = |(index, _): &(usize, &usize)| was_other(self.segment, plan.jumps() + index);
                let others = plan.places.iter().enumerate().filter(other).map(|(_, place)| *place);
                piece.leave(others, OTHER);
            }
            next += done;
            batch = Batch::default();
            if let Some(failed) = failed {
                let plan = &planned[done];
                if failed.index > plan.entry {
                    self.remote.call(libc::SYS_munmap, [plan.at, plan.size, 0, 0, 0, 0])?;
                }
                attempts -= 1;
                if failed.error.raw_os_error() != Some(libc::EEXIST) || attempts == 0 {
                    pieces[next].through_proc = true;
                }
                self.taken = mappings(self.remote.pid)?;
                let done = planned[..done].iter().filter(|plan| plan.size > 0);
                done.for_each(|plan| seal(&mut batch, plan.at, plan.size));
            } else if let Some(piece) = pieces.get_mut(next) {
                // It has no room in a batch, or may not be part of one.
                self.write_through_proc(piece)?;
                next += 1;
            } else {
                return Ok(());
            }
        }
    }

    /// Adds these mappings to a batch, up to one that cannot be part of it.
    fn plan(&mut self, batch: &mut Batch, pieces: &mut [Piece]) -> Vec<Plan> {
        let (mut plans, mut seals) = (Vec::new(), Vec::new());
        for piece in pieces {
            let (places, sites) = piece.open();
            let size = area(sites.len());
            let bytes = size as usize + sites.iter().map(|(site, _)| site.bytes.len() + 8).sum::<usize>();
            if piece.through_proc || !batch.has_room(ENTRIES + sites.len() + seals.len(), bytes) {
                break;
            }
            let entry = batch.len();
            if sites.is_empty() {
                plans.push(Plan { entry, at: 0, size: 0, places: Vec::new() });
                continue;
            }
            let Some(at) = room(&self.taken, &piece.mapping, size) else {
                piece.leave(places, NO_ROOM);
                plans.push(Plan { entry, at: 0, size: 0, places: Vec::new() });
                continue;
            };
            let Patch { area, jumps, .. } = self.patch(piece, at, &places, &sites);
            let all = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            batch.call(libc::SYS_mmap, [at, size, all, flags as u64, u64::MAX, 0]);
            batch.call(libc::SYS_mprotect, piece.rights(libc::PROT_WRITE));
            batch.copy(at, &area);
            jumps.iter().for_each(|(site, at, jump)| batch.replace(*at, &sites[*site].0.bytes, jump));
            batch.attempt(libc::SYS_mprotect, piece.rights(0));
            let code = (libc::PROT_READ | libc::PROT_EXEC) as u64;
            batch.attempt(libc::SYS_mprotect, [at, size, code, 0, 0, 0]);
            seals.push((at, size));
            self.take(at, size);
            let places = jumps.into_iter().map(|(site, ..)| places[site]).collect();
            plans.push(Plan { entry, at, size, places });
        }
        // A mapping that is sealed could not be taken back: last of all.
        seals.into_iter().for_each(|(at, size)| seal(batch, at, size));
        plans
    }

    /// The patch of a mapping; sites that it leaves are noted.
    fn patch<'s>(
        &self,
        piece: &mut Piece<'s>,
        at: u64,
        places: &[usize],
        sites: &[(&'s Site, Option<Entry>)],
    ) -> Patch {
        let made = patch(self.code, self.hook, (piece.mapping.low, at), sites);
        piece.leave(made.left.iter().map(|place| places[*place]), OTHER);
        made
    }

    fn take(&mut self, at: u64, size: u64) {
        let place = self.taken.partition_point(|m| m.low < at);
        self.taken.insert(place, Mapping { low: at, high: at + size, ..Mapping::default() });
    }

    fn write_through_proc(&mut self, piece: &mut Piece) -> io::Result<()> {
        let (places, sites) = piece.open();
        let size = area(sites.len());
        if sites.is_empty() {
            return Ok(());
        }
        let Some(at) = self.map_near(&piece.mapping, size)? else {
            piece.leave(places, NO_ROOM);
            return Ok(());
        };
        let Patch { area, jumps, .. } = self.patch(piece, at, &places, &sites);
        let memory = self.remote.memory;
        memory.write(at, &area)?;
        let _ = self.remote.call(MSEAL, [at, size, 0, 0, 0, 0]); // older kernels: as it was
        self.take(at, size);
        for (site, at, jump) in jumps {
            if memory.read(at, sites[site].0.bytes.len())? == sites[site].0.bytes {
                memory.write(at, &jump)?;
            } else {
                piece.leave([places[site]], OTHER);
            }
        }
        Ok(())
    }

    /// Maps room for code near a mapping; none if there is none.
    fn map_near(&mut self, mapping: &Mapping, size: u64) -> io::Result<Option<u64>> {
        for _ in 0..ATTEMPTS {
            let Some(at) = room(&self.taken, mapping, size) else { return Ok(None) };
            match map_code(self.remote, at, size, libc::MAP_FIXED_NOREPLACE) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                    self.taken = mappings(self.remote.pid)?;
                }
                mapped => return mapped.map(Some),
            }
        }
        Ok(None)
    }
}

const OTHER: &str = "it is no longer as it was in the file, or out of reach";
const NO_ROOM: &str = "no room for trampolines near it";

/// A mapping in a batch: its first entry, and its trampolines.
struct Plan {
    entry: usize,
    at: u64,
    size: u64,
    /// The sites that get a jump.
    places: Vec<usize>,
}

impl Plan {
    /// The entry of its first jump.
    fn jumps(&self) -> usize {
        self.entry + 3
    }
}
