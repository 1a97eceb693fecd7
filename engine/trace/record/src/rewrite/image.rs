//! Putting the hook into a program: at its exec, and into code that it maps later.

use std::io;

use crate::rewrite::batch::{self, Batch, Place};
use crate::rewrite::breakpoints::{self, Breakpoints};
use crate::rewrite::code::{Scanned, scanned};
use crate::rewrite::filters::Suspended;
use crate::rewrite::frame::{self, Frame};
use crate::rewrite::hook::{Clock, Code, Entry};
use crate::rewrite::in_flight_record::half_written;
use crate::rewrite::layout::{EXCHANGE, RING};
use crate::rewrite::maps::{Mapping, mappings};
use crate::rewrite::method::Way;
use crate::rewrite::patch::is_code;
use crate::rewrite::preparation::{LeftAsItIs, Patched};
use crate::rewrite::ptrace_stops::RESTARTS;
use crate::rewrite::remote::{Memory, Pid, Status};
use crate::rewrite::remote_process::Remote;
use crate::rewrite::ring::{Raw, Segment};
use crate::rewrite::setup::{self, Placed, map_code};
use crate::rewrite::writing::{MSEAL, Piece, Writing, seal};

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
    /// The rings, and what works off a list of calls.
    place: Place,
    hook: u64,
    code: std::sync::Arc<Code>,
    /// Places that stop their threads.
    pub breakpoints: Breakpoints,
    /// Mappings that were seen to: low and high.
    done: Vec<(u64, u64)>,
}

impl Image {
    /// Puts the hook into a program that has just been executed, and patches its code. The thread's ring is set; `thread`
    /// also says which signals it blocks.
    ///
    /// # Errors
    /// A remote call failed; then the program runs as it is.
    pub fn inject(
        thread: (Pid, libc::user_regs_struct, u64),
        segment: &Segment,
        ring: usize,
        way: &Way,
    ) -> io::Result<(Image, Vec<Patched>)> {
        let pid = thread.0;
        bearable(pid)?;
        let memory = Memory::unopened(pid);
        let plain = way.known.hook(way.clock, way.entry, 0, 0);
        let worker = plain.bytes().len().next_multiple_of(64);
        let size = ((worker + batch::code().len()) as u64).next_multiple_of(4096);
        let (mut remote, placed) = setup::place(&memory, thread, segment, size)?;
        let Placed { segment: rings, code: hook, descriptor, taken } = placed;
        let vdso = if way.clock == Clock::Vdso { vdso_clock(&taken, &memory)? } else { 0 };
        let code = plain.placed(rings, vdso);
        let mut bytes = code.bytes().to_vec();
        bytes.resize(worker, 0xcc);
        bytes.extend(batch::code());
        memory.write(hook, &bytes)?;
        remote.settle(hook + code.remote())?;
        let mut first = Batch::default();
        first.attempt(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0]);
        seal(&mut first, rings, Segment::LENGTH as u64);
        seal(&mut first, hook, size);
        let mut image = Image {
            place: Place { code: hook + worker as u64, segment: rings },
            hook,
            code: code.into(),
            breakpoints: Breakpoints::default(),
            done: vec![(hook, hook + size)],
        };
        let found = image.patch_new(&remote, segment, way, taken, first)?;
        remote.end(Some(image.gs(ring)))?;
        Ok((image, found))
    }

    /// What `gs_base` of a thread with this ring is.
    pub fn gs(&self, ring: usize) -> u64 {
        self.place.segment + (ring * RING) as u64
    }

    /// The ring of a thread with this `gs_base`.
    pub fn ring_at(&self, gs: u64) -> Option<usize> {
        let offset = gs.checked_sub(self.place.segment)? as usize;
        (offset < EXCHANGE).then_some(offset / RING)
    }

    /// `gs_base` of a thread that is not recorded: where no magic word is.
    pub fn nowhere(&self) -> u64 {
        self.hook
    }

    /// Whether that `gs_base` was set by us, or inherited from a thread of which it was.
    pub fn ours(&self, gs: u64) -> bool {
        gs == self.nowhere() || self.ring_at(gs).is_some()
    }

    /// The call within which a stopped thread stands: one that a signal has interrupted, or the last that it makes. Its
    /// texts are not read any more.
    pub fn within(&self, tid: Pid, regs: &libc::user_regs_struct, now: u64) -> Option<Raw> {
        if !self.code.made().contains(&regs.rip.wrapping_sub(self.hook)) {
            return None;
        }
        let frame = Frame::read(&Memory::unopened(tid), regs.rsp).ok()?;
        let result = regs.rax as i64;
        Some(Raw {
            number: frame.word(frame::NUMBER) as u32,
            begun: frame.word(frame::BEGUN),
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
        let frame = Frame::read(memory, regs.rsp).ok()?;
        let [number, result, ended] = [frame::NUMBER, frame::RESULT, frame::ENDED].map(|at| frame.word(at));
        let anew = (number == libc::SYS_mmap as u64)
            .then(|| (result, result.saturating_add(regs.rsi.next_multiple_of(4096))));
        Some(Told { anew, ended })
    }

    /// What is mapped there now is other than what was seen.
    pub fn forget(&mut self, low: u64, high: u64) {
        self.breakpoints.forget(low, high);
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

    /// Patches code that was mapped since, by a stopped thread.
    pub fn catch_up(
        &mut self,
        memory: &Memory,
        (pid, regs): (Pid, libc::user_regs_struct),
        segment: &Segment,
        way: &Way,
    ) -> io::Result<Vec<Patched>> {
        let taken = mappings(pid)?;
        if self.fresh(&taken).next().is_none() {
            return Ok(Vec::new());
        }
        let status = Status::of(pid)?;
        let _filters = Suspended::begin(pid, &status)?;
        let blocked = status.blocked().ok_or(io::ErrorKind::InvalidData)?;
        let remote = Remote::by(memory, (pid, regs, blocked), self.hook + self.code.remote())?;
        let found = self.patch_new(&remote, segment, way, taken, Batch::default());
        remote.end(None)?;
        found
    }

    /// Code that was not seen to yet.
    fn fresh(&self, taken: &[Mapping]) -> impl Iterator<Item = Mapping> {
        taken.iter().filter(|m| is_code(m)).flat_map(|m| self.unseen(m))
    }

    /// Patches what was not seen to yet, after the calls of `first`.
    fn patch_new(
        &mut self,
        remote: &Remote,
        segment: &Segment,
        way: &Way,
        taken: Vec<Mapping>,
        first: Batch,
    ) -> io::Result<Vec<Patched>> {
        let fresh: Vec<Mapping> = self.fresh(&taken).collect();
        let scans = fresh
            .iter()
            .map(|mapping| scanned(remote.pid, mapping, remote.memory, &way.known))
            .collect::<io::Result<Vec<_>>>()?;
        let code = self.code.clone();
        let wanted = |number: Option<u32>| number.map(|number| code.kind(number));
        let pieces = fresh.iter().zip(&scans).map(|(mapping, found)| {
            let sites = found.scan.sites.iter().map(|site| (site, wanted(site.number)));
            Piece::new(mapping.clone(), sites.filter(|(_, entry)| *entry != Some(Entry::Raw)).collect())
        });
        let mut pieces: Vec<Piece> = pieces.collect();
        let mut writing = Writing { remote, segment, place: self.place, code: &code, hook: self.hook, taken };
        writing.write(first, &mut pieces)?;
        let mut all = Vec::new();
        for (piece, found) in pieces.into_iter().zip(&scans) {
            let mapping = &piece.mapping;
            self.done.push((mapping.low, mapping.high));
            let mut left = left(found, mapping.offset, wanted);
            left.extend(piece.left.iter().map(|&(place, why)| {
                let site = piece.sites[place].0;
                LeftAsItIs { offset: site.call + mapping.offset, number: site.number, why: why.to_owned() }
            }));
            let mut patched = piece.sites.len() - piece.left.len();
            if way.stop_left {
                let stopping = self.stop_at(remote, mapping, &found.scan.left, &left)?;
                left.retain(|each| !stopping.contains(&each.offset));
                patched += stopping.len();
            }
            let (path, build_id) = (mapping.name.clone(), found.build_id.clone());
            all.push(Patched { path, build_id, sites: patched, left });
        }
        Ok(all)
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

    /// Sets breakpoints on those of these calls that are named as left; offsets of those that have one. Where it is
    /// not certain that this is code, nothing is changed.
    fn stop_at(
        &mut self,
        remote: &Remote,
        mapping: &Mapping,
        calls: &[etude_sites::Left],
        named: &[LeftAsItIs],
    ) -> io::Result<Vec<u64>> {
        let is_named = |call: u64| named.iter().any(|each| each.offset == call + mapping.offset);
        let certain = calls.iter().filter(|each| each.why != etude_sites::Why::Unclear);
        let places = certain.map(|each| each.call).filter(|call| is_named(*call));
        let places: Vec<u64> = places.map(|call| call + mapping.low).collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let size = breakpoints::area(places.len());
        let at = map_code(remote, 0, size, 0)?;
        let _ = remote.call(MSEAL, [at, size, 0, 0, 0, 0]); // older kernels: as it was
        self.done.push((at, at + size));
        let set = self.breakpoints.set(remote, at, &places)?;
        Ok(set.into_iter().map(|call| call - mapping.low + mapping.offset).collect())
    }
}

/// Calls of a scan that would be recorded, and stay as they are.
fn left(found: &Scanned, offset: u64, wanted: impl Fn(Option<u32>) -> Option<Entry>) -> Vec<LeftAsItIs> {
    let is_wanted = |each: &&etude_sites::Left| {
        !matches!(wanted(each.number), Some(Entry::Raw | Entry::Quiet)) && each.why != etude_sites::Why::Never
    };
    let named = |each: &etude_sites::Left| LeftAsItIs {
        offset: each.call + offset,
        number: each.number,
        why: each.why.to_string(),
    };
    found.scan.left.iter().filter(is_wanted).map(named).collect()
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

/// Where the vdso of an image has `__vdso_clock_gettime`.
fn vdso_clock(taken: &[Mapping], memory: &Memory) -> io::Result<u64> {
    let missing = || io::Error::other("the kernel gives no vdso clock here");
    let vdso = taken.iter().find(|m| m.name == "[vdso]").ok_or_else(missing)?;
    let bytes = memory.read(vdso.low, (vdso.high - vdso.low) as usize)?;
    crate::rewrite::elf::symbol(&bytes, "__vdso_clock_gettime").map(|at| vdso.low + at).ok_or_else(missing)
}
