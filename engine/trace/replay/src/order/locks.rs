//! Locks on one file, of `flock` and of ranges: they are had one after the other as they were, and given back before others
//! have them.

use etude_calls::{LockOwner, Range, RangeKind, RangeLock};
use etude_script::Called;

use super::waits::{Edge, Point};
use super::{Order, Slot};

/// EWOULDBLOCK.
pub const REFUSED: i64 = -11;

/// All bytes.
const WHOLE: (u64, u64) = (0, u64::MAX);

/// To whom a lock belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Of `flock`: to what was opened. These do not meet locks of ranges.
    Flock(usize),
    /// Of a range: to what was opened.
    Description(usize),
    /// Of a range: to a process.
    Process(u32),
}

impl Owner {
    fn is_of_flock(self) -> bool {
        matches!(self, Owner::Flock(_))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    pub owner: Owner,
    /// From which byte up to which.
    pub span: (u64, u64),
    pub exclusive: bool,
}

impl Lock {
    /// Whether both are about the same bytes, and belong to one owner or cannot be had at once.
    fn meets(&self, other: &Lock) -> bool {
        self.overlaps(other.owner, other.span) || self.bars(other)
    }

    /// Whether both cannot be had at once.
    pub fn bars(&self, other: &Lock) -> bool {
        self.owner != other.owner
            && self.owner.is_of_flock() == other.owner.is_of_flock()
            && (self.exclusive || other.exclusive)
            && overlap(self.span, other.span)
    }

    fn overlaps(&self, owner: Owner, span: (u64, u64)) -> bool {
        self.owner == owner && overlap(self.span, span)
    }
}

fn overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0.max(other.0) < one.1.min(other.1)
}

/// What a call was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub file: usize,
    pub lock: Lock,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Waits,
    TakesOrFails,
    Releases,
}

pub fn is_about_locks(called: &Called) -> bool {
    called.call.name() == "flock" || RangeLock::of(called.call, &called.arguments).is_some()
}

impl Order {
    /// None where it is not about locks, or of what is not known.
    pub(super) fn asked(&self, process: u32, called: &Called) -> Option<Asked> {
        if !is_about_locks(called) {
            return None;
        }
        let description = self.slot_of(process, called.arguments[0] as i32)?.description;
        let file = self.opened[description].file;
        let (lock, releases, waits) = match RangeLock::of(called.call, &called.arguments) {
            Some(RangeLock { owner, waits }) => {
                let range = Range::of(called.text(2)?)?;
                let owner = match owner {
                    LockOwner::Process => Owner::Process(process),
                    LockOwner::Description => Owner::Description(description),
                };
                let span = range.span(match range.whence {
                    0 => 0,
                    1 => self.places[description],
                    _ => self.contents[file].size.bytes(),
                });
                let exclusive = range.kind == RangeKind::Write;
                (Lock { owner, span, exclusive }, range.kind == RangeKind::Unlock, waits)
            }
            None => {
                const EXCLUSIVE: u64 = 2;
                const NOT_WAITING: u64 = 4;
                const UNLOCK: u64 = 8;
                let (owner, flags) = (Owner::Flock(description), called.arguments[1]);
                let lock = Lock { owner, span: WHOLE, exclusive: flags & EXCLUSIVE != 0 };
                (lock, flags & UNLOCK != 0, flags & NOT_WAITING == 0)
            }
        };
        let what = match (releases, waits) {
            (true, _) => What::Releases,
            (false, true) => What::Waits,
            (false, false) => What::TakesOrFails,
        };
        Some(Asked { file, lock, what })
    }

    /// Who has a lock, and who has to wait for it.
    pub(super) fn locks(&mut self, here: Point, process: u32, called: &Called) {
        let Some(Asked { file, lock, what }) = self.asked(process, called) else { return };
        let (locks, mut others) = (&mut self.contents[file].locks, Vec::new());
        match (what, called.result) {
            (What::Releases, 0) => locks.release(here.into(), lock.owner, lock.span, &mut others),
            (What::Waits | What::TakesOrFails, 0) => locks.take(here, lock, what == What::Waits, &mut others),
            (What::TakesOrFails, REFUSED) => locks.refuse(here, lock, &mut others),
            _ => {}
        }
        self.comes_after(here, others);
    }

    /// Whether a process has locks that its end may give back.
    pub(super) fn has_locks(&self, process: u32) -> bool {
        self.slots_of(process).any(|Slot { description, .. }| {
            let locks = &self.contents[self.opened[description].file].locks;
            [Owner::Process(process), Owner::Flock(description), Owner::Description(description)]
                .into_iter()
                .any(|owner| locks.has(owner))
        })
    }

    /// An owner gives back all that it has of a file.
    pub(super) fn gives_back(&mut self, here: Point, file: usize, owner: Owner) {
        let (step, mut others) = (Before { step: here, end: self.ending }, Vec::new());
        self.contents[file].locks.release(step, owner, WHOLE, &mut others);
        self.comes_after(here, others);
    }

    fn comes_after(&mut self, here: Point, others: Vec<Before>) {
        if self.ending {
            return self.waits_at_end(here, others.into_iter().map(|other| other.step));
        }
        for Before { step, end } in others {
            match end {
                true => self.wait_for_end(here, step, Edge::Locks),
                false => self.wait(here, step, Edge::Locks),
            }
        }
    }
}

/// What comes before a call.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    pub step: Point,
    /// Not only that step, but the end of its process.
    pub end: bool,
}

impl From<Point> for Before {
    fn from(step: Point) -> Before {
        Before { step, end: false }
    }
}

#[derive(Debug, Clone, Copy)]
struct Held {
    lock: Lock,
    taken: Point,
    released: Option<Before>,
}

/// Who has and had the locks of a file.
#[derive(Debug, Default)]
pub struct Locks {
    held: Vec<Held>,
    /// Those that were refused, until what barred them is given back.
    refused: Vec<(Point, Lock)>,
}

impl Locks {
    /// An owner of what bars a lock.
    pub fn barring(&self, lock: &Lock) -> Option<Owner> {
        let bars = |held: &&Held| held.released.is_none() && held.lock.bars(lock);
        self.held.iter().find(bars).map(|held| held.lock.owner)
    }

    pub fn has(&self, owner: Owner) -> bool {
        self.held.iter().any(|held| held.released.is_none() && held.lock.owner == owner)
    }

    /// `others` are those that come before it. Who had to wait then waits in the kernel now: the lock has to be taken
    /// before, not given back.
    pub fn take(&mut self, here: Point, lock: Lock, waits: bool, others: &mut Vec<Before>) {
        others.extend(self.held.iter().filter(|held| held.lock.meets(&lock)).map(
            |held| match held.released {
                Some(released) if !waits || released.step.step < here.step => released,
                _ => held.taken.into(),
            },
        ));
        self.release(here.into(), lock.owner, lock.span, others);
        if lock.exclusive {
            // Who comes later comes after this one.
            self.held.retain(|held| held.released.is_none() || !is_superseded(&held.lock, &lock));
        }
        self.held.push(Held { lock, taken: here, released: None });
    }

    /// A lock that could not be had.
    pub fn refuse(&mut self, here: Point, lock: Lock, others: &mut Vec<Before>) {
        let now = self.held.iter().filter(|held| held.released.is_none() && held.lock.bars(&lock));
        others.extend(now.map(|held| Before::from(held.taken)));
        self.refused.retain(|(other, of)| other.thread != here.thread || *of != lock);
        self.refused.push((here, lock));
    }

    /// An owner gives back what it has of a span.
    pub fn release(&mut self, here: Before, owner: Owner, span: (u64, u64), others: &mut Vec<Before>) {
        let own = |held: &mut Held| held.released.is_none() && held.lock.overlaps(owner, span);
        let given: Vec<Held> = self.held.extract_if(.., own).collect();
        for held in given {
            others.push(held.taken.into());
            let (from, to) = held.lock.span;
            for rest in [(from, span.0), (span.1, to)].into_iter().filter(|(from, to)| from < to) {
                self.held.push(Held { lock: Lock { span: rest, ..held.lock }, ..held });
            }
            let lock = Lock { span: (from.max(span.0), to.min(span.1)), ..held.lock };
            let refused = self.refused.extract_if(.., |(_, of)| of.bars(&lock));
            others.extend(refused.map(|(other, _)| Before::from(other)));
            // What it gave back before comes before this.
            let same = |old: &Held| old.released.is_some() && old.lock.owner == owner;
            self.held.retain(|old| !same(old) || !is_superseded(&old.lock, &lock));
            self.held.push(Held { lock, released: Some(here), ..held });
        }
    }
}

/// Whether all who come after a lock that was given back come after a later one.
fn is_superseded(old: &Lock, later: &Lock) -> bool {
    old.owner.is_of_flock() == later.owner.is_of_flock()
        && later.span.0 <= old.span.0
        && old.span.1 <= later.span.1
        && (later.exclusive || !old.exclusive)
}
