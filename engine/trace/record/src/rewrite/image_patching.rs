//! What the launcher does to the code of those that it traces, on x86-64.

use std::io;

use crate::rewrite::clock::ticks;
use crate::rewrite::filters::Suspended;
use crate::rewrite::frame::{self, Frame};
use crate::rewrite::hook::URING;
use crate::rewrite::image::Image;
use crate::rewrite::method::Technique;
use crate::rewrite::preparation::Patched;
use crate::rewrite::ptrace_stops::RESTARTS;
use crate::rewrite::remote::{Memory, Pid, Status};
use crate::rewrite::remote_process::{registers, set_registers};
use crate::rewrite::ring::Raw;
use crate::rewrite::tracer::{Thread, Tracer};

impl Tracer {
    /// Puts the hook into a program that has just been executed.
    ///
    /// # Errors
    /// It cannot be put there, and the program runs as it was; `Unsupported`: stops would not record its calls, either.
    pub fn make_ready(&mut self, pid: Pid) -> io::Result<(Option<Image>, Vec<Patched>)> {
        if self.way.technique == Technique::Ptrace {
            return Ok((None, Vec::new()));
        }
        let mut regs = registers(pid)?;
        if regs.cs != 0x33 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not a 64-bit program"));
        }
        // It stands within the exec, which gives it this result when it goes on.
        (regs.rax, regs.orig_rax) = (0, u64::MAX);
        let status = Status::of(pid)?;
        let blocked = status.blocked().ok_or(io::ErrorKind::InvalidData)?;
        let filters = Suspended::begin(pid, &status)?;
        let ring = self.ring(pid, filters.any()).ok_or_else(|| io::Error::other("all rings are in use"))?;
        Image::inject((pid, regs, blocked), &self.segment, ring, &self.way)
            .map(|(image, found)| (Some(image), found))
    }

    fn ring(&mut self, tid: Pid, filtered: bool) -> Option<usize> {
        let id = self.threads.get(&tid)?.id;
        let taken = self.rings().take(&self.segment, id, self.way.drop_when_full, filtered);
        self.threads.get_mut(&tid)?.ring = taken;
        taken
    }

    /// Gives a new thread a ring of its own: until now it has its parent's.
    pub fn adopt(&mut self, tid: Pid) -> io::Result<()> {
        let Some(thread) = self.threads.get(&tid) else { return Ok(()) };
        let (group, has, quiet) = (thread.group, thread.ring.is_some(), thread.quiet);
        let Some(image) = self.processes.get(&group).and_then(|process| process.image.clone()) else {
            return Ok(());
        };
        if has {
            return Ok(());
        }
        let mut regs = registers(tid)?;
        if !image.ours(regs.gs_base) {
            self.lost(tid, "a thread of it: it uses %gs itself");
            return Ok(());
        }
        let filtered =
            image.ring_at(regs.gs_base).is_some_and(|parents| self.segment.ring(parents).filtered());
        let ring = if quiet { None } else { self.ring(tid, filtered) };
        if ring.is_none() {
            self.lost(
                tid,
                if quiet {
                    "a thread of it: it may not read the clock"
                } else {
                    "a thread of it: all rings are in use"
                },
            );
        }
        regs.gs_base = ring.map_or(image.nowhere(), |ring| image.gs(ring));
        set_registers(tid, &regs)
    }

    /// Whether it came to an instruction of ours: it has mapped code, which is then patched.
    pub fn trapped(&mut self, tid: Pid) -> io::Result<bool> {
        let Some(group) = self.threads.get(&tid).map(|thread| thread.group) else { return Ok(false) };
        let regs = registers(tid)?;
        if self.at_breakpoint(tid, regs)? {
            return Ok(true);
        }
        let Some(process) = self.processes.get_mut(&group) else { return Ok(false) };
        if let Some(place) = process.image.as_ref().and_then(|image| image.looks(regs.rip)) {
            self.looks(tid, &regs, place == 0)?;
            return Ok(true);
        }
        let Some(image) = process.image.as_mut().filter(|image| image.tells(regs.rip)) else {
            return Ok(false);
        };
        let memory = Memory::unopened(tid);
        if let Some(told) = image.told(&memory, &regs) {
            told.anew.into_iter().for_each(|(low, high)| image.forget(low, high));
            // Since then it does nothing of its own.
            self.threads.get_mut(&tid).into_iter().for_each(|thread| thread.stopped = Some(told.ended));
        }
        let (id, found) = (process.id, image.catch_up(&memory, (tid, regs), &self.segment, &self.way));
        let mut rings = self.rings();
        match found {
            Ok(found) => rings.queue.tell(move |file| file.patched(id, found)),
            Err(error) => {
                rings.queue.tell(move |file| file.unrecorded(id, format!("code that it mapped: {error}")))
            }
        }
        Ok(true)
    }

    /// A thread stands in the hook before a call that we look at, or behind it. What we hold it for is no time of its own:
    /// it has noted when it came, and when it went on the last time.
    fn looks(&mut self, tid: Pid, regs: &libc::user_regs_struct, before: bool) -> io::Result<()> {
        // It is made in the hook, and in no slot of its own.
        const HOOK: u64 = 0;
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        thread.stopped = None;
        let id = thread.id;
        let left = thread.ring.map(|ring| self.segment.ring(ring).left());
        if let Some((from, until)) = thread.looked.take().zip(left).filter(|(from, until)| from < until) {
            self.rings().queue.tell(move |file| file.held(id, from, until));
        }
        if before {
            self.before_call(tid, HOOK, regs);
            return Ok(());
        }
        let frame = Frame::read(&Memory::unopened(tid), regs.rsp)?;
        let number = frame.word(frame::NUMBER);
        let [came, begun, ended] =
            [frame::LOOK_CAME, frame::LOOK_BEGUN, frame::LOOK_ENDED].map(|at| frame.word(at));
        if number >= URING.into() {
            self.before_call(tid, HOOK, &libc::user_regs_struct { rax: number, ..*regs });
        } else {
            self.rings().queue.tell(move |file| file.held(id, came, begun));
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        thread.looked = Some(ended);
        if let Some(made) = thread.slow.last_mut().filter(|made| made.is_of(HOOK, regs.rsp)) {
            made.begun.at = begun;
        }
        self.behind_call(tid, HOOK, regs, ended);
        Ok(())
    }

    /// A signal comes: no record waits for its handler. The kernel may then make a call again by itself, which counts
    /// each time.
    pub fn signalled(&mut self, tid: Pid) {
        let Ok(mut regs) = registers(tid) else { return };
        if self.take_half(tid, &mut regs) {
            return;
        }
        let Some(Thread { group, id, .. }) = self.threads.get(&tid) else { return };
        let image = self.processes.get(group).and_then(|process| process.image.as_ref());
        let within = || {
            image.and_then(|image| image.within(tid, &regs, 0)).or_else(|| self.within_slot(tid, &regs, 0))
        };
        if RESTARTS.contains(&(regs.rax as i64))
            && let Some(call) = within()
        {
            let id = *id;
            self.rings().queue.tell(move |file| file.interrupted(id, &call));
        }
    }

    /// Takes the record that a stopped thread is writing, if it is, and lets it go on behind that.
    fn take_half(&self, tid: Pid, regs: &mut libc::user_regs_struct) -> bool {
        let Some(Thread { group, ring: Some(ring), .. }) = self.threads.get(&tid) else { return false };
        let image = self.processes.get(group).and_then(|process| process.image.as_ref());
        let Some(half) = image.and_then(|image| image.half_written(tid, regs)) else { return false };
        // If it was killed meanwhile the record is taken when it ends, for it stands there still.
        let goes_on = set_registers(tid, regs).is_ok();
        if goes_on {
            self.rings().take_over(&self.segment, *ring, half);
        }
        goes_on
    }

    /// The call within which a thread ends.
    pub fn last_call(&mut self, tid: Pid) -> Option<Raw> {
        let mut regs = registers(tid).ok()?;
        self.take_half(tid, &mut regs);
        let Thread { group, ring, .. } = self.threads.get(&tid)?;
        let image = self.processes.get(group)?.image.as_ref().filter(|_| ring.is_some())?;
        let now = ticks(self.way.clock);
        let last = image.within(tid, &regs, now).or_else(|| self.within_slot(tid, &regs, now));
        if !image.ours(regs.gs_base) {
            self.lost(tid, "a thread of it, from when it used %gs itself");
        }
        last
    }
}
