//! Putting the hook into a program: at its exec, and into code that it maps later.

use std::io;

use crate::rewrite::borrow::Remote;
use crate::rewrite::code::scanned;
use crate::rewrite::filters::Suspended;
use crate::rewrite::found::{LeftAsItIs, Patched};
use crate::rewrite::half::half_written;
use crate::rewrite::hook::{Clock, Code, Entry};
use crate::rewrite::layout::RING;
use crate::rewrite::maps::{Mapping, mappings, room};
use crate::rewrite::patch::{area, is_code, patch};
use crate::rewrite::remote::{Memory, Pid};
use crate::rewrite::ring::{Raw, Segment};
use crate::rewrite::share::hand_over;
use crate::rewrite::slow::{self, Slow};
use crate::rewrite::stops::RESTARTS;
use crate::rewrite::way::Way;
use etude_sites::Site;

/// A call that has mapped code.
pub struct Told {
    /// What it has mapped anew, low and high; none if it has changed rights.
    pub anew: Option<(u64, u64)>,
    /// When it had ended, in ticks.
    pub ended: u64,
}

/// What was put into one address space.
#[derive(Clone)]
pub struct Image {
    segment: u64,
    hook: u64,
    code: std::sync::Arc<Code>,
    /// Places that stop their threads.
    pub slow: Slow,
    /// Mappings that were seen to: low and high.
    done: Vec<(u64, u64)>,
}

impl Image {
    /// Puts the hook into a program that has just been executed, and patches its code. The thread's ring is set.
    ///
    /// # Errors
    /// A remote call failed; then the program runs as it is.
    pub fn inject(pid: Pid, segment: &Segment, ring: usize, way: &Way) -> io::Result<(Image, Vec<Patched>)> {
        bearable(pid)?;
        let memory = Memory::of(pid)?;
        let remote = Remote::begin(pid, &memory)?;
        let fd = hand_over(&remote, segment)?;
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let mapped =
            remote.call(libc::SYS_mmap, [0, Segment::LENGTH as u64, both, libc::MAP_SHARED as u64, fd, 0]);
        remote.call(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        let segment = mapped?;
        let vdso = if way.clock == Clock::Vdso { vdso_clock(pid, &memory)? } else { 0 };
        let code = Code::new(way.clock, way.entry, segment, vdso);
        let hook = map_code(&remote, 0, (code.bytes().len() as u64).next_multiple_of(4096), 0)?;
        memory.write(hook, code.bytes())?;
        seal(&remote, segment, Segment::LENGTH as u64);
        seal(&remote, hook, code.bytes().len() as u64);
        let own = (hook, hook + (code.bytes().len() as u64).next_multiple_of(4096));
        let mut image = Image { segment, hook, code: code.into(), slow: Slow::default(), done: vec![own] };
        let found = image.patch_new(pid, &remote, way)?;
        remote.end(Some(image.gs(ring)))?;
        Ok((image, found))
    }

    /// What `gs_base` of a thread with this ring is.
    pub fn gs(&self, ring: usize) -> u64 {
        self.segment + (ring * RING) as u64
    }

    /// The ring of a thread with this `gs_base`.
    pub fn ring_at(&self, gs: u64) -> Option<usize> {
        let offset = gs.checked_sub(self.segment)? as usize;
        (offset < Segment::LENGTH).then_some(offset / RING)
    }

    /// `gs_base` of a thread that is not recorded: where no magic word is.
    pub fn nowhere(&self) -> u64 {
        self.hook
    }

    /// Whether that `gs_base` was set by us, or inherited from a thread of which it was.
    pub fn ours(&self, gs: u64) -> bool {
        gs == self.nowhere() || (self.segment..self.segment + Segment::LENGTH as u64).contains(&gs)
    }

    /// The call within which a stopped thread stands: one that a signal has interrupted, or the last that it makes. Its
    /// texts are not read any more.
    pub fn within(&self, tid: Pid, regs: &libc::user_regs_struct, now: u64) -> Option<Raw> {
        if !self.code.made().contains(&regs.rip.wrapping_sub(self.hook)) {
            return None;
        }
        let frame = Memory::of(tid).ok()?.read(regs.rsp, 32).ok()?;
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
        let result = regs.rax as i64;
        Some(Raw {
            number: word(16) as u32,
            begun: word(24),
            ended: now,
            result: if RESTARTS.contains(&result) { -i64::from(libc::EINTR) } else { result },
            arguments: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9],
            texts: [None, None],
        })
    }

    /// A record that a stopped thread has reserved and not written: it is the caller's now (`half_written`).
    pub fn half_written(&self, tid: Pid, regs: &mut libc::user_regs_struct) -> Option<Raw> {
        half_written(tid, regs, &self.code, self.hook).ok().flatten()
    }

    /// A call that mapped code, of the thread that tells of it.
    pub fn told(&self, memory: &Memory, regs: &libc::user_regs_struct) -> Option<Told> {
        // The hook's frame, as it stands at the trap.
        let frame = memory.read(regs.rsp, 72).ok()?;
        let word = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
        let (number, result, ended) = (word(16), word(32), word(64));
        let anew = (number == libc::SYS_mmap as u64)
            .then(|| (result, result.saturating_add(regs.rsi.next_multiple_of(4096))));
        Some(Told { anew, ended })
    }

    /// What is mapped there now is other than what was seen.
    pub fn forget(&mut self, low: u64, high: u64) {
        self.slow.forget(low, high);
        let apart = |&(from, to): &(u64, u64)| [(from, to.min(low)), (from.max(high), to)];
        self.done = self.done.iter().flat_map(apart).filter(|(from, to)| from < to).collect();
    }

    /// Whether a thread stands behind the instruction by which the hook tells of mapped code.
    pub fn tells(&self, rip: u64) -> bool {
        rip == self.hook + self.code.trap() + 1
    }

    /// Whether a thread stands behind an instruction at which the launcher looks: before a call (0), or behind it (1).
    pub fn looks(&self, rip: u64) -> Option<usize> {
        self.code.stops().iter().position(|stop| rip == self.hook + stop + 1)
    }

    /// Patches code that was mapped since.
    pub fn catch_up(&mut self, pid: Pid, memory: &Memory, way: &Way) -> io::Result<Vec<Patched>> {
        let _filters = Suspended::begin(pid)?;
        let remote = Remote::by(pid, memory, self.hook + self.code.remote())?;
        let found = self.patch_new(pid, &remote, way);
        remote.end(None)?;
        found
    }

    fn patch_new(&mut self, pid: Pid, remote: &Remote, way: &Way) -> io::Result<Vec<Patched>> {
        let mut taken = mappings(pid)?;
        let fresh: Vec<_> = taken.iter().filter(|m| is_code(m)).flat_map(|m| self.unseen(m)).collect();
        let mut found = Vec::new();
        for mapping in fresh {
            found.push(self.patch_one(pid, &mapping, &mut taken, remote, way)?);
            self.done.push((mapping.low, mapping.high));
        }
        Ok(found)
    }

    /// The parts of a mapping that were not seen to yet. The kernel joins neighbours, and splits what is changed in part.
    fn unseen(&self, mapping: &Mapping) -> Vec<Mapping> {
        let mut parts = vec![(mapping.low, mapping.high)];
        for &(low, high) in &self.done {
            parts = parts
                .into_iter()
                .flat_map(|(from, to)| [(from, to.min(low)), (from.max(high), to)])
                .filter(|(from, to)| from < to)
                .collect();
        }
        parts
            .into_iter()
            .map(|(low, high)| Mapping {
                low,
                high,
                offset: mapping.offset + (low - mapping.low),
                ..mapping.clone()
            })
            .collect()
    }

    fn patch_one(
        &mut self,
        pid: Pid,
        mapping: &Mapping,
        taken: &mut Vec<Mapping>,
        remote: &Remote,
        way: &Way,
    ) -> io::Result<Patched> {
        let found = scanned(pid, mapping, remote, &way.known)?;
        let wanted = |number: Option<u32>| number.map(way.entry);
        let offset = |call: u64| call - mapping.low + mapping.offset;
        let mut left: Vec<LeftAsItIs> = found
            .scan
            .left
            .iter()
            .filter(|each| {
                !matches!(wanted(each.number), Some(Entry::Raw | Entry::Quiet))
                    && each.why != etude_sites::Why::Never
            })
            .map(|each| LeftAsItIs {
                offset: offset(each.call),
                number: each.number,
                why: each.why.to_string(),
            })
            .collect();
        let sites: Vec<(Site, Option<Entry>)> = found
            .scan
            .sites
            .into_iter()
            .map(|site| (wanted(site.number), site))
            .filter(|(entry, _)| *entry != Some(Entry::Raw))
            .map(|(entry, site)| (site, entry))
            .collect();
        let mut as_it_is = |site: &Site, why: &str| {
            left.push(LeftAsItIs { offset: offset(site.call), number: site.number, why: why.to_owned() });
        };
        let mut patched = 0;
        if !sites.is_empty() {
            let size = area(sites.len());
            if let Some(at) = map_near(pid, mapping, size, taken, remote)? {
                let changed = patch(remote, &self.code, self.hook, at, &sites)?;
                changed.iter().for_each(|site| {
                    as_it_is(site, "it is no longer as it was in the file, or out of reach")
                });
                patched = sites.len() - changed.len();
                let name = String::new();
                let area =
                    Mapping { low: at, high: at + size, executable: true, writable: false, offset: 0, name };
                taken.insert(taken.partition_point(|m| m.low < at), area);
            } else {
                sites.iter().for_each(|(site, _)| as_it_is(site, "no room for trampolines near it"));
            }
        }
        if way.stop_left {
            let stopping = self.stop_at(remote, &found.scan.left, &left, offset)?;
            left.retain(|each| !stopping.contains(&each.offset));
            patched += stopping.len();
        }
        Ok(Patched { path: mapping.name.clone(), build_id: found.build_id, sites: patched, left })
    }
}

impl Image {
    /// Sets breakpoints on those of these calls that are named as left; offsets of those that have one. Where it is
    /// not certain that this is code, nothing is changed.
    fn stop_at(
        &mut self,
        remote: &Remote,
        calls: &[etude_sites::Left],
        named: &[LeftAsItIs],
        offset: impl Fn(u64) -> u64,
    ) -> io::Result<Vec<u64>> {
        let is_named = |call: u64| named.iter().any(|each| each.offset == offset(call));
        let certain = calls.iter().filter(|each| each.why != etude_sites::Why::Unclear);
        let places: Vec<u64> = certain.map(|each| each.call).filter(|call| is_named(*call)).collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let size = slow::area(places.len());
        let at = map_code(remote, 0, size, 0)?;
        seal(remote, at, size);
        self.done.push((at, at + size));
        Ok(self.slow.set(remote, at, &places)?.into_iter().map(offset).collect())
    }
}

/// Whether a program can be given the rings and stay what it is, or why not.
fn bearable(pid: Pid) -> io::Result<()> {
    const HWCAP2_FSGSBASE: u64 = 2;
    // SAFETY: no more than a number is asked for.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err(io::Error::other("this processor or kernel has no rdgsbase"));
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    let asked = unsafe { libc::prlimit(pid, libc::RLIMIT_AS, std::ptr::null(), &mut limit) };
    if asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY {
        let mib = Segment::LENGTH >> 20;
        return Err(io::Error::other(format!(
            "its address space is limited (ulimit -v); recording takes {mib} MiB"
        )));
    }
    Ok(())
}

/// Maps room for code near a mapping; none if there is none. Other threads may take what was free a moment ago.
fn map_near(
    pid: Pid,
    mapping: &Mapping,
    size: u64,
    taken: &mut Vec<Mapping>,
    remote: &Remote,
) -> io::Result<Option<u64>> {
    for _ in 0..16 {
        let Some(at) = room(taken, mapping, size) else { return Ok(None) };
        match map_code(remote, at, size, libc::MAP_FIXED_NOREPLACE) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => *taken = mappings(pid)?,
            mapped => {
                return mapped.map(|at| {
                    seal(remote, at, size);
                    Some(at)
                });
            }
        }
    }
    Ok(None)
}

/// What is ours stays where it is: a program that unmaps it, or maps something over it, gets EPERM and lives on. The
/// kernel has this from 6.10 on.
fn seal(remote: &Remote, at: u64, size: u64) {
    const MSEAL: i64 = 462;
    let _ = remote.call(MSEAL, [at, size.next_multiple_of(4096), 0, 0, 0, 0]); // older kernels: as it was
}

fn map_code(remote: &Remote, at: u64, size: u64, flags: libc::c_int) -> io::Result<u64> {
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags) as u64;
    remote.call(libc::SYS_mmap, [at, size, protection, flags, u64::MAX, 0])
}

/// Where the vdso of an image has `__vdso_clock_gettime`.
fn vdso_clock(pid: Pid, memory: &Memory) -> io::Result<u64> {
    let missing = || io::Error::other("the kernel gives no vdso clock here");
    let vdso = mappings(pid)?.into_iter().find(|m| m.name == "[vdso]").ok_or_else(missing)?;
    let bytes = memory.read(vdso.low, (vdso.high - vdso.low) as usize)?;
    crate::rewrite::elf::symbol(&bytes, "__vdso_clock_gettime").map(|at| vdso.low + at).ok_or_else(missing)
}
