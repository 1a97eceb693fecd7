//! Jumps from a program's own code to the hook, by way of trampolines near it.

use std::io;

use etude_sites::{JUMP, Moved, Site};

use crate::rewrite::borrow::Remote;
use crate::rewrite::hook::{Code, Entry};
use crate::rewrite::maps::Mapping;

/// Bytes at the beginning of a trampoline area: where the entries are.
const TABLE: usize = 8 * (Entry::ALL.len() + 1);
const ANY: usize = Entry::ALL.len();
/// The longest trampoline: instructions moved from before and after the call among it.
const LONGEST: usize = 96;
const PAGE: u64 = 4096;

/// Bytes that trampolines for so many sites take.
pub fn area(sites: usize) -> u64 {
    ((TABLE + sites * LONGEST) as u64).next_multiple_of(4096)
}

/// Writes the trampolines of `sites` to `at`, and then the jumps to them; returns those that had to stay as they are.
///
/// # Errors
/// The memory cannot be written.
pub fn patch<'a>(
    remote: &Remote,
    code: &Code,
    hook: u64,
    at: u64,
    sites: &'a [(Site, Option<Entry>)],
) -> io::Result<Vec<&'a Site>> {
    let mut bytes = Vec::with_capacity(TABLE + sites.len() * LONGEST);
    for entry in Entry::ALL {
        bytes.extend((hook + code.entry(entry)).to_le_bytes());
    }
    bytes.extend((hook + code.any()).to_le_bytes());
    let (mut stretches, mut left) = (Stretches::read(remote, sites)?, Vec::new());
    for (site, entry) in sites {
        let (here, index) = (at + bytes.len() as u64, entry.map_or(ANY, |entry| entry as usize));
        // Its bytes have to be those that were scanned, and to stay what is written there.
        let place = stretches
            .place(site)
            .filter(|place| *place == site.bytes && !remote.borrows(site.at, site.bytes.len()));
        match (trampoline(at, here, site, index), place) {
            (Some(one), Some(place)) => {
                place[0] = 0xe9;
                place[1..JUMP as usize].copy_from_slice(&relative(site.at + JUMP, here));
                bytes.extend(one);
            }
            _ => left.push(site),
        }
    }
    remote.memory.write(at, &bytes)?;
    stretches.write(remote)?;
    Ok(left)
}

/// The code from the first to the last site of a page, for all pages that have any. To read and write each site by
/// itself would take longer than all else at an exec.
struct Stretches(Vec<(u64, Vec<u8>)>);

impl Stretches {
    fn read(remote: &Remote, sites: &[(Site, Option<Entry>)]) -> io::Result<Stretches> {
        let mut places: Vec<(u64, u64)> = sites.iter().map(|(site, _)| (site.at, site.end())).collect();
        places.sort_unstable();
        places.dedup_by(|next, last| {
            let together = next.0 / PAGE <= (last.1 - 1) / PAGE;
            last.1 = if together { last.1.max(next.1) } else { last.1 };
            together
        });
        let read = |(from, to): (u64, u64)| Ok((from, remote.memory.read(from, (to - from) as usize)?));
        places.into_iter().map(read).collect::<io::Result<_>>().map(Stretches)
    }

    /// The bytes that a site takes.
    fn place(&mut self, site: &Site) -> Option<&mut [u8]> {
        let stretch = self.0.partition_point(|(from, _)| *from <= site.at).checked_sub(1)?;
        let (from, bytes) = &mut self.0[stretch];
        bytes.get_mut((site.at - *from) as usize..(site.end() - *from) as usize)
    }

    /// What nobody changed is written as it was: it is code that no thread has run yet.
    fn write(&self, remote: &Remote) -> io::Result<()> {
        self.0.iter().try_for_each(|(from, bytes)| remote.memory.write(*from, bytes))
    }
}

/// What comes before the call; its entry, with the address behind it in rcx; the call itself, for what is not recorded;
/// what comes after, and the way back. None where something of it does not reach so far.
fn trampoline(area: u64, here: u64, site: &Site, index: usize) -> Option<Vec<u8>> {
    let mut bytes = site.before.at(here)?;
    let end = here + bytes.len() as u64 + 7;
    bytes.extend([0x48, 0x8d, 0x0d]); // lea behind(%rip),%rcx
    bytes.extend(relative(end, end + 6 + 2));
    let end = here + bytes.len() as u64 + 6;
    bytes.extend([0xff, 0x25]); // jmp *entry(%rip)
    bytes.extend(relative(end, area + 8 * index as u64));
    bytes.extend([0x0f, 0x05]); // syscall
    let after: &Moved = &site.after;
    bytes.extend(after.at(here + bytes.len() as u64)?);
    if let Some(back) = site.back {
        let end = here + bytes.len() as u64 + JUMP;
        bytes.push(0xe9);
        bytes.extend(relative(end, back));
    }
    (bytes.len() <= LONGEST).then_some(bytes)
}

/// The displacement of an instruction that ends at `end`; both lie within 2 GiB.
fn relative(end: u64, to: u64) -> [u8; 4] {
    (to.wrapping_sub(end) as i32).to_le_bytes()
}

/// Whether a mapping is code of a file, that nobody writes to.
pub fn is_code(mapping: &Mapping) -> bool {
    mapping.executable && !mapping.writable && mapping.name.starts_with('/')
}
