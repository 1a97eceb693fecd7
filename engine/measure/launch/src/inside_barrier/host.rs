//! The engine's side: makes the barrier, breaks it, hears of those that were sent away.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;

use etude_protocol::Worker;

use super::member::mark;
use super::{ABSENT, BROKEN, Board, VARIABLE};
use crate::outcome::{Status, WorkerOutcome};
use crate::{futex, sys};

/// A barrier for the workers of one launch, for all its repetitions.
pub(crate) struct Inside {
    pub(super) board: Board,
    bell: File,
    _ringing_end: OwnedFd,
    broken_by: Cell<Option<usize>>,
    /// The last gate at which all were seen.
    full_at: Cell<Option<u32>>,
}

impl Inside {
    /// A barrier for `workers`; `told`: it is released by [`release`](Self::release) alone.
    pub fn new(workers: usize, told: bool) -> io::Result<Inside> {
        let board = Board::new(workers)?;
        let (bell, ringing_end) = sys::pipe()?;
        board.head().bell.store(ringing_end.as_raw_fd() as u32, SeqCst);
        board.head().told.store(u32::from(told), SeqCst);
        let (broken_by, full_at) = (Cell::new(None), Cell::new(None));
        Ok(Inside { board, bell, _ringing_end: ringing_end, broken_by, full_at })
    }

    /// What worker `index` is told: where its place is, as long as this process keeps the barrier.
    pub fn address(&self, index: usize) -> String {
        format!("/proc/{}/fd/{}:{index}", std::process::id(), self.board.file.as_raw_fd())
    }

    /// Makes it whole again, for a new trial.
    pub fn reset(&self) {
        let head = self.board.head();
        self.broken_by.set(None);
        head.broken_by.store(0, SeqCst);
        head.sent_away.store(0, SeqCst);
        (0..self.board.workers).for_each(|worker| self.board.place(worker).store(ABSENT, SeqCst));
        head.gate.store((head.gate.load(SeqCst) | BROKEN).wrapping_add(1), SeqCst);
    }

    /// Breaks it, because a worker has ended or the engine ends them all (None). The first reason stays.
    pub fn break_up(&self, ended: Option<usize>) {
        let head = self.board.head();
        if head.gate.load(SeqCst) & BROKEN != 0 {
            return;
        }
        self.broken_by.set(ended);
        head.broken_by.store(ended.map_or(0, |worker| worker as u32 + 1), SeqCst);
        head.gate.fetch_or(BROKEN, SeqCst);
        futex::wake_all(&head.gate);
    }

    /// Becomes readable when somebody is sent away.
    pub fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Whether somebody was sent away.
    pub fn has_sent_away(&self) -> bool {
        self.board.head().sent_away.load(SeqCst) != 0
    }

    /// Whether all have arrived, none has left, and that was not so when it was last asked. Of one that is told.
    pub fn is_newly_full(&self) -> bool {
        let head = self.board.head();
        let gate = head.gate.load(SeqCst);
        let stands = |worker| {
            self.board.place(worker).load(SeqCst) == mark(gate)
                && sys::is_byte_locked(&self.board.file, worker)
        };
        let is_full =
            head.told.load(SeqCst) != 0 && gate & BROKEN == 0 && (0..self.board.workers).all(stands);
        is_full && self.full_at.replace(Some(gate)) != Some(gate)
    }

    /// Lets all that have arrived start at an instant (monotonic, ns).
    pub fn release(&self, start_at_ns: u64) {
        let head = self.board.head();
        let gate = head.gate.load(SeqCst);
        if gate & BROKEN == 0 {
            head.start_at_ns.store(start_at_ns, SeqCst);
            head.gate.store(gate.wrapping_add(2), SeqCst);
            futex::wake_all(&head.gate);
        }
    }

    /// Silences the bell.
    pub fn hush(&self) {
        // The descriptor does not block; what is left is read the next time.
        let _ = (&self.bell).read(&mut [0; 256]);
    }

    /// One line on the worker for whose end others were sent away, if that happened.
    pub fn reason(&self, workers: &[WorkerOutcome]) -> Option<String> {
        let ended = self.broken_by.get().filter(|_| self.has_sent_away())?;
        let how = match workers.get(ended)?.status {
            Some(Status::Exited(status)) => format!(" (exit status {status})"),
            Some(Status::Signalled(signal)) => format!(" (signal {signal})"),
            None => String::new(),
        };
        Some(format!("worker {ended}{how} ended before all workers had reached the barrier"))
    }
}

/// `worker` with the address of its barrier in the environment; without a barrier, with none.
pub(crate) fn told(worker: &Worker, index: usize, inside: Option<&Inside>) -> Worker {
    let mut told = worker.clone();
    told.env.insert(VARIABLE.to_owned(), inside.map(|inside| inside.address(index)));
    told
}
