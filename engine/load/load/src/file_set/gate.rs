//! The gate for requests that must not be overtaken.
//!
//! A request that makes or removes an object is alone with it. It waits for those on the object
//! that came before, and those that came after wait for it.

use std::collections::{HashMap, VecDeque};

use etude_workload::{FileSet, Kind, Object, Operation};

/// The objects of a file set under one number each: directories first, then files, then links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    directories: usize,
    files: usize,
    links: usize,
}

impl Numbers {
    pub fn of(set: &FileSet) -> Numbers {
        Numbers {
            directories: set.directories() + set.spare_directories(),
            files: set.files(),
            links: set.links() + set.spare_links(),
        }
    }

    pub fn len(self) -> usize {
        self.directories + self.files + self.links
    }

    pub fn number(self, object: Object) -> usize {
        match object {
            Object::Directory(index) => index,
            Object::File(index) => self.directories + index,
            Object::Link(index) => self.directories + self.files + index,
        }
    }

    pub fn all(self) -> impl Iterator<Item = Object> {
        (0..self.directories)
            .map(Object::Directory)
            .chain((0..self.files).map(Object::File))
            .chain((0..self.links).map(Object::Link))
    }

    /// The objects that an operation needs.
    pub fn claim(self, operation: &Operation) -> Claim {
        let object = self.number(operation.object);
        let other = (operation.kind == Kind::Rename)
            .then(|| self.number(renamed(operation)))
            .filter(|other| *other != object && *other < self.len());
        Claim { object, other, alone: operation.ordered }
    }
}

/// The file whose name a renamed one takes.
pub(crate) fn renamed(operation: &Operation) -> Object {
    Object::File(usize::try_from(operation.offset).unwrap_or(usize::MAX))
}

/// The objects that a request needs: one, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub object: usize,
    pub other: Option<usize>,
    /// It changes whether its objects exist: no other request is at them meanwhile.
    pub alone: bool,
}

impl Claim {
    fn objects(self) -> impl Iterator<Item = usize> {
        std::iter::once(self.object).chain(self.other)
    }

    /// True if one of both has to wait for the other.
    #[cfg(test)]
    pub fn meets(self, other: Claim) -> bool {
        (self.alone || other.alone) && self.objects().any(|at| other.objects().any(|also| at == also))
    }
}

/// Bit of an object's state: a request is alone there.
const ALONE: u32 = 1 << 31;
/// Bit of an object's state: requests are held back.
const QUEUE: u32 = 1 << 30;

/// `J`: what goes with a request that is held back. Objects that nobody uses cost a word each.
pub(crate) struct Gate<J> {
    /// How many requests are under way at each object, and the two flags.
    states: Vec<u32>,
    queues: HashMap<usize, VecDeque<u64>>,
    held: HashMap<u64, (Claim, J)>,
}

impl<J> Gate<J> {
    pub fn new(objects: usize) -> Gate<J> {
        Gate { states: vec![0; objects], queues: HashMap::new(), held: HashMap::new() }
    }

    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Requests in no order.
    pub fn all_held(&self) -> impl Iterator<Item = &J> {
        self.held.values().map(|(_, job)| job)
    }

    /// A new request. It is returned where it may go, and is under way then; else it is held back.
    pub fn admit(&mut self, ticket: u64, claim: Claim, job: J) -> Option<J> {
        if claim.objects().all(|object| self.is_free(object, claim.alone) && !self.has_queue(object)) {
            self.enter(claim);
            return Some(job);
        }
        for object in claim.objects() {
            self.states[object] |= QUEUE;
            self.queues.entry(object).or_default().push_back(ticket);
        }
        self.held.insert(ticket, (claim, job));
        None
    }

    /// A request under way is over; those that may go now are under way from here on.
    pub fn end(&mut self, claim: Claim, mut freed: impl FnMut(J)) {
        for object in claim.objects() {
            let state = &mut self.states[object];
            *state = if claim.alone { *state & !ALONE } else { *state - 1 };
        }
        claim.objects().for_each(|object| self.advance(object, &mut freed));
    }

    /// A request that is held back will not come. False: it is not held back.
    pub fn leave(&mut self, ticket: u64, freed: impl FnMut(J)) -> bool {
        let is_held = self.held.contains_key(&ticket);
        if is_held {
            self.remove(&[ticket], drop, freed);
        }
        is_held
    }

    /// Those that are held back and of which that is true will not come; they are dropped in the order of their tickets.
    pub fn drop_held(&mut self, gone: impl Fn(&J) -> bool, dropped: impl FnMut(J), freed: impl FnMut(J)) {
        let mut tickets: Vec<u64> =
            self.held.iter().filter(|(_, (_, job))| gone(job)).map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        self.remove(&tickets, dropped, freed);
    }

    fn remove(&mut self, tickets: &[u64], mut dropped: impl FnMut(J), mut freed: impl FnMut(J)) {
        let mut claims = Vec::new();
        for ticket in tickets {
            let Some((claim, job)) = self.held.remove(ticket) else { continue };
            for object in claim.objects() {
                if let Some(queue) = self.queues.get_mut(&object) {
                    queue.retain(|held| held != ticket);
                }
            }
            claims.push(claim);
            dropped(job);
        }
        claims.into_iter().flat_map(Claim::objects).for_each(|object| self.advance(object, &mut freed));
    }

    fn is_free(&self, object: usize, alone: bool) -> bool {
        let under_way = self.states[object] & !QUEUE;
        if alone { under_way == 0 } else { under_way & ALONE == 0 }
    }

    fn has_queue(&self, object: usize) -> bool {
        self.states[object] & QUEUE != 0
    }

    fn enter(&mut self, claim: Claim) {
        for object in claim.objects() {
            let state = &mut self.states[object];
            *state = if claim.alone { *state | ALONE } else { *state + 1 };
        }
    }

    /// Lets those at the front of a queue go, as many as may: each must be at the front of all its queues.
    fn advance(&mut self, object: usize, freed: &mut impl FnMut(J)) {
        while let Some(queue) = self.queues.get(&object) {
            let Some(&first) = queue.front() else {
                self.queues.remove(&object);
                self.states[object] &= !QUEUE;
                return;
            };
            let Some(&(claim, _)) = self.held.get(&first) else { return };
            let foremost = |at: usize| {
                self.queues.get(&at).and_then(VecDeque::front).is_some_and(|front| *front == first)
            };
            if !claim.objects().all(|at| foremost(at) && self.is_free(at, claim.alone)) {
                return;
            }
            self.enter(claim);
            for at in claim.objects() {
                self.queues.get_mut(&at).map(VecDeque::pop_front);
            }
            if let Some((_, job)) = self.held.remove(&first) {
                freed(job);
            }
            // The next at the other object may go, too.
            if let Some(other) = claim.objects().find(|at| *at != object) {
                self.advance(other, freed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(object: usize, alone: bool) -> Claim {
        Claim { object, other: None, alone }
    }

    /// A gate of which each request is its own number.
    fn admitted(gate: &mut Gate<u64>, ticket: u64, claim: Claim) -> bool {
        gate.admit(ticket, claim, ticket).is_some()
    }

    #[test]
    fn a_request_that_is_alone_holds_others_back_and_they_go_in_their_order() {
        let (mut gate, mut freed) = (Gate::new(1), Vec::new());
        assert!(admitted(&mut gate, 1, claim(0, false)) && admitted(&mut gate, 2, claim(0, false)));
        assert!(!admitted(&mut gate, 3, claim(0, true)));
        assert!(!admitted(&mut gate, 4, claim(0, false)), "it would overtake");
        assert!(!admitted(&mut gate, 5, claim(0, false)));
        gate.end(claim(0, false), |job| freed.push(job));
        assert!(freed.is_empty());
        gate.end(claim(0, false), |job| freed.push(job));
        assert_eq!(freed, [3]);
        gate.end(claim(0, true), |job| freed.push(job));
        assert_eq!(freed, [3, 4, 5]);
    }

    #[test]
    fn a_request_that_leaves_the_queue_makes_way() {
        let (mut gate, mut freed) = (Gate::new(2), Vec::new());
        assert!(admitted(&mut gate, 1, claim(0, false)));
        assert!(!admitted(&mut gate, 2, Claim { object: 0, other: Some(1), alone: true }));
        assert!(!admitted(&mut gate, 3, claim(1, false)) && !admitted(&mut gate, 4, claim(0, false)));
        assert!(gate.leave(2, |job| freed.push(job)) && !gate.leave(2, |job| freed.push(job)));
        freed.sort_unstable();
        assert_eq!(freed, [3, 4]);
    }

    #[test]
    fn what_is_dropped_is_not_let_go_by_another_that_is_dropped() {
        let (mut gate, mut freed, mut dropped) = (Gate::new(1), Vec::new(), Vec::new());
        assert!(admitted(&mut gate, 1, claim(0, false)));
        for (ticket, alone) in [(2, true), (3, false), (4, false)] {
            assert!(!admitted(&mut gate, ticket, claim(0, alone)));
        }
        gate.drop_held(|job| *job < 4, |job| dropped.push(job), |job| freed.push(job));
        assert_eq!((dropped, freed, gate.held()), (vec![2, 3], vec![4], 0));
    }

    proptest! {
        #[test]
        fn nothing_overtakes_what_makes_or_removes_its_object_and_all_are_served(
            steps in prop::collection::vec(
                (0..4_usize, 0..5_usize, any::<bool>(), 0..3_u8, prop::option::of(0..80_u64)), 1..80),
        ) {
            let mut gate = Gate::new(4);
            let (mut under_way, mut claims): (Vec<u64>, Vec<Claim>) = (Vec::new(), Vec::new());
            let (mut order, mut left): (Vec<u64>, usize) = (Vec::new(), 0);
            for (object, other, alone, endings, leaves) in steps {
                let other = Some(other).filter(|other| alone && *other < 4 && *other != object);
                claims.push(Claim { object, other, alone });
                let ticket = claims.len() as u64 - 1;
                let mut begun = Vec::new();
                begun.extend(gate.admit(ticket, claims[ticket as usize], ticket));
                for _ in 0..endings {
                    if let Some(over) = (!under_way.is_empty()).then(|| under_way.remove(0)) {
                        gate.end(claims[over as usize], |job| begun.push(job));
                    }
                }
                left += usize::from(leaves.is_some_and(|ticket| gate.leave(ticket, |job| begun.push(job))));
                order.extend(&begun);
                under_way.extend(begun);
                for one in &under_way {
                    for two in under_way.iter().filter(|two| *two != one) {
                        prop_assert!(!claims[*one as usize].meets(claims[*two as usize]));
                    }
                }
            }
            while !under_way.is_empty() {
                let mut begun = Vec::new();
                let over = under_way.remove(0);
                gate.end(claims[over as usize], |job| begun.push(job));
                order.extend(&begun);
                under_way.extend(begun);
            }
            prop_assert_eq!(order.len() + left, claims.len(), "a request waits for ever");
            for (at, late) in order.iter().enumerate() {
                for early in &order[at..] {
                    let meet = claims[*late as usize].meets(claims[*early as usize]);
                    prop_assert!(!(meet && early < late), "{} before {}", late, early);
                }
            }
            prop_assert!(gate.states.iter().all(|state| *state == 0));
            prop_assert!(gate.queues.is_empty() && gate.held.is_empty());
        }
    }
}
