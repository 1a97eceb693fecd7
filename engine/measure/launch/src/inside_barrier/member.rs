//! A worker's side: arrives, and waits until all have arrived.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

use super::shield::Shield;
use super::{BROKEN, Board, VARIABLE};
use crate::{barrier, futex, sys};

/// A worker's place at a barrier.
pub struct Member {
    board: Board,
    worker: usize,
    bell: Option<File>,
}

/// Why a worker may not go on. One line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotPassed {
    /// The barrier can never be full again.
    Broken(String),
    /// Another command waits in this worker's name.
    Taken(String),
}

impl Member {
    /// Opens the barrier at an address. The error is one line.
    pub fn open(address: &str) -> Result<Member, String> {
        let wrong = |what: &str| format!("{VARIABLE}={address}: no barrier: {what}");
        let (path, worker) = parts(address).ok_or_else(|| wrong("expected PATH:WORKER"))?;
        let board = Board::open(path).map_err(|error| {
            wrong(&format!("{error}; it is there while its trial runs, for the user who runs it"))
        })?;
        if worker >= board.workers {
            return Err(wrong(&format!("it is for {} workers, numbered from 0", board.workers)));
        }
        let bell = path.with_file_name(board.head().bell.load(SeqCst).to_string());
        Ok(Member { board, worker, bell: open_bell(&bell) })
    }

    /// Waits until all workers have arrived: when all of them start (monotonic, ns).
    ///
    /// SIGTERM ends the wait and this process, as long as the barrier is whole; from then on it is ignored,
    /// so that what has to be said is said.
    pub fn wait(self) -> Result<u64, NotPassed> {
        let shield = Shield::raise(&self.board.head().gate);
        let passed = self.pass(|gate| shield.guard(gate));
        shield.lower(passed.is_ok());
        passed
    }

    /// As [`wait`](Self::wait), but for signals; `arrived` is told the gate.
    pub(super) fn pass(&self, arrived: impl FnOnce(u32)) -> Result<u64, NotPassed> {
        let gate = self.arrive()?;
        arrived(gate);
        loop {
            match self.look(gate) {
                Some(passed) => return passed,
                None => futex::wait(&self.board.head().gate, gate),
            }
        }
    }

    /// Takes the place and, as the last, releases all. The gate that it waits at.
    pub(super) fn arrive(&self) -> Result<u32, NotPassed> {
        if !sys::lock_byte(&self.board.file, self.worker) {
            let what = "another command of this worker waits at the barrier already";
            return Err(NotPassed::Taken(what.to_owned()));
        }
        let gate = self.board.head().gate.load(SeqCst);
        if gate & BROKEN != 0 {
            return Err(self.turn_away());
        }
        self.board.place(self.worker).store(mark(gate), SeqCst);
        self.release(gate);
        Ok(gate)
    }

    /// What has become of those that wait at `gate`; None: they still do.
    pub(super) fn look(&self, gate: u32) -> Option<Result<u64, NotPassed>> {
        let head = self.board.head();
        match head.gate.load(SeqCst) {
            now if now == gate => None,
            now if now == gate | BROKEN => Some(Err(self.turn_away())),
            _ => Some(Ok(head.start_at_ns.load(SeqCst))),
        }
    }

    /// Releases all that wait at `gate`, if all are there. Several may try: one changes the instant, and
    /// then the gate.
    fn release(&self, gate: u32) {
        let head = self.board.head();
        let last = head.start_at_ns.load(SeqCst);
        if head.gate.load(SeqCst) != gate || !self.are_all_there(gate) {
            return;
        }
        let start_at = barrier::common_start_ns(self.board.workers);
        if head.told.load(SeqCst) != 0 {
            self.ring();
            return;
        }
        let is_ours = head.start_at_ns.compare_exchange(last, start_at, SeqCst, SeqCst).is_ok();
        if is_ours && head.gate.compare_exchange(gate, gate.wrapping_add(2), SeqCst, SeqCst).is_ok() {
            futex::wake_all(&head.gate);
        }
    }

    fn are_all_there(&self, gate: u32) -> bool {
        let has_arrived = |worker: usize| self.board.place(worker).load(SeqCst) == mark(gate);
        let lives = |worker: usize| worker == self.worker || sys::is_byte_locked(&self.board.file, worker);
        (0..self.board.workers).all(has_arrived) && (0..self.board.workers).all(lives)
    }

    /// Tells the engine that this worker is sent away.
    fn turn_away(&self) -> NotPassed {
        let head = self.board.head();
        head.sent_away.store(1, SeqCst);
        self.ring();
        let why = match head.broken_by.load(SeqCst) {
            0 => "the trial is being ended".to_owned(),
            number => format!("worker {} ended before all had reached it", number - 1),
        };
        NotPassed::Broken(format!("the barrier was broken: {why}"))
    }

    /// Rings the engine's bell. One that cannot be rung (it is full, or the engine has gone) has been heard, or never
    /// will be.
    fn ring(&self) {
        if let Some(mut bell) = self.bell.as_ref() {
            let _ = bell.write(&[1]);
        }
    }
}

/// What a place holds of a worker that has arrived at `gate`.
pub(super) fn mark(gate: u32) -> u32 {
    gate | 1
}

/// The path and the worker of an address.
pub(super) fn parts(address: &str) -> Option<(&Path, usize)> {
    let (path, worker) = address.rsplit_once(':')?;
    Some((Path::new(path), worker.parse().ok()?))
}

/// The bell at `path`, if there is one. Nothing else is ever written to.
fn open_bell(path: &Path) -> Option<File> {
    let bell = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    bell.metadata().ok()?.file_type().is_fifo().then_some(bell)
}
