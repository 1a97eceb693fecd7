//! Jumps from a program's own code to the hook, by way of trampolines near it.

use etude_sites::{JUMP, Moved, Site};

use crate::rewrite::hook::{Code, Entry};
use crate::rewrite::maps::Mapping;

/// Bytes at the beginning of a trampoline area: where the entries are.
const TABLE: usize = 8 * (Entry::ALL.len() + 1);
const ANY: usize = Entry::ALL.len();
/// The longest trampoline: instructions moved from before and after the call among it.
const LONGEST: usize = 96;

/// Bytes that trampolines for so many sites take.
pub fn area(sites: usize) -> u64 {
    ((TABLE + sites * LONGEST) as u64).next_multiple_of(4096)
}

/// Trampolines and jumps for the sites of a mapping.
pub struct Patch {
    /// The trampolines.
    pub area: Vec<u8>,
    /// For each site that can be patched: which it is, where its jump is to be, and the jump.
    pub jumps: Vec<(usize, u64, [u8; JUMP as usize])>,
    /// Which of the sites have to stay as they are: a trampoline does not reach so far from there.
    pub left: Vec<usize>,
}

/// The patch for code that is at `base`, with its trampolines at `at`. The sites are those of a scan at address 0: how
/// far it is from one to the other is the same.
pub fn patch(code: &Code, hook: u64, (base, at): (u64, u64), sites: &[(&Site, Option<Entry>)]) -> Patch {
    let mut bytes = Vec::with_capacity(TABLE + sites.len() * LONGEST);
    for entry in Entry::ALL {
        bytes.extend((hook + code.entry(entry)).to_le_bytes());
    }
    bytes.extend((hook + code.any()).to_le_bytes());
    let (mut jumps, mut left) = (Vec::with_capacity(sites.len()), Vec::new());
    let area = at.wrapping_sub(base);
    for (place, (site, entry)) in sites.iter().enumerate() {
        let here = area.wrapping_add(bytes.len() as u64);
        let index = entry.map_or(ANY, |entry| entry as usize);
        if let Some(one) = trampoline(area, here, site, index) {
            let mut jump = [0xe9; JUMP as usize];
            jump[1..].copy_from_slice(&relative(site.at + JUMP, here));
            jumps.push((place, base + site.at, jump));
            bytes.extend(one);
        } else {
            left.push(place);
        }
    }
    Patch { area: bytes, jumps, left }
}

/// What comes before the call; its entry, with the address behind it in rcx; the call itself, for what is not recorded;
/// what comes after, and the way back. None where something of it does not reach so far.
fn trampoline(area: u64, here: u64, site: &Site, index: usize) -> Option<Vec<u8>> {
    let mut bytes = site.before.at(here)?;
    let end = here.wrapping_add(bytes.len() as u64 + 7);
    bytes.extend([0x48, 0x8d, 0x0d]); // lea behind(%rip),%rcx
    bytes.extend(relative(end, end.wrapping_add(6 + 2)));
    let end = here.wrapping_add(bytes.len() as u64 + 6);
    bytes.extend([0xff, 0x25]); // jmp *entry(%rip)
    bytes.extend(relative(end, area.wrapping_add(8 * index as u64)));
    bytes.extend([0x0f, 0x05]); // syscall
    let after: &Moved = &site.after;
    bytes.extend(after.at(here.wrapping_add(bytes.len() as u64))?);
    if let Some(back) = site.back {
        let end = here.wrapping_add(bytes.len() as u64 + JUMP);
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
