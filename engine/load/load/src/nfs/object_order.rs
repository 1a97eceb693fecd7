//! Whose turn it is at an object: what changes whether it is there is alone with it, and nobody overtakes.

use std::collections::{HashMap, VecDeque};

/// What a request needs: one object, or two (a name is given to another).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub object: usize,
    pub other: Option<usize>,
    /// Nobody else may be there meanwhile.
    pub alone: bool,
}

impl Claim {
    fn objects(self) -> impl Iterator<Item = usize> {
        std::iter::once(self.object).chain(self.other)
    }
}

/// Somebody is alone there.
const ALONE: u32 = 1 << 31;
/// Somebody waits.
const QUEUE: u32 = 1 << 30;

/// Requests by number; at most objects have nobody, so that they cost a word each.
pub(crate) struct Turns {
    /// How many are there, and the two flags.
    states: Vec<u32>,
    queues: HashMap<usize, VecDeque<u64>>,
    waiting: HashMap<u64, Claim>,
}

impl Turns {
    pub fn new(objects: usize) -> Turns {
        Turns { states: vec![0; objects], queues: HashMap::new(), waiting: HashMap::new() }
    }

    /// Whether it may begin now; else it waits.
    pub fn begin(&mut self, request: u64, claim: Claim) -> bool {
        let free = claim.objects().all(|object| self.free(object, claim.alone) && !self.has_queue(object));
        if free {
            self.enter(claim);
            return true;
        }
        for object in claim.objects() {
            self.states[object] |= QUEUE;
            self.queues.entry(object).or_default().push_back(request);
        }
        self.waiting.insert(request, claim);
        false
    }

    /// One that had begun is over; those that begin with it are appended.
    pub fn end(&mut self, claim: Claim, begun: &mut Vec<u64>) {
        for object in claim.objects() {
            let state = &mut self.states[object];
            *state = if claim.alone { *state & !ALONE } else { *state - 1 };
        }
        claim.objects().for_each(|object| self.admit(object, begun));
    }

    /// One that waits will not come; those that begin with it are appended. False: it does not wait.
    pub fn leave(&mut self, request: u64, begun: &mut Vec<u64>) -> bool {
        let Some(claim) = self.waiting.remove(&request) else { return false };
        for object in claim.objects() {
            if let Some(queue) = self.queues.get_mut(&object) {
                queue.retain(|waiting| *waiting != request);
            }
        }
        claim.objects().for_each(|object| self.admit(object, begun));
        true
    }

    fn free(&self, object: usize, alone: bool) -> bool {
        let there = self.states[object] & !QUEUE;
        if alone { there == 0 } else { there & ALONE == 0 }
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

    /// Those at the front of a queue, as many as may: each must be at the front of all its queues.
    fn admit(&mut self, object: usize, begun: &mut Vec<u64>) {
        loop {
            let Some(queue) = self.queues.get(&object) else { return };
            let Some(&first) = queue.front() else {
                self.queues.remove(&object);
                self.states[object] &= !QUEUE;
                return;
            };
            let Some(&claim) = self.waiting.get(&first) else { return };
            let foremost = |at: usize| {
                self.queues.get(&at).and_then(VecDeque::front).is_some_and(|front| *front == first)
            };
            if !claim.objects().all(|at| foremost(at) && self.free(at, claim.alone)) {
                return;
            }
            self.waiting.remove(&first);
            self.enter(claim);
            begun.push(first);
            for at in claim.objects() {
                self.queues.get_mut(&at).map(VecDeque::pop_front);
            }
            // The other's next may come, too; that it does not stays with who waits there.
            if let Some(other) = claim.objects().find(|at| *at != object) {
                self.admit(other, begun);
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

    #[test]
    fn who_is_alone_keeps_others_out_and_lets_them_in_their_order() {
        let mut turns = Turns::new(1);
        let mut begun = Vec::new();
        assert!(turns.begin(1, claim(0, false)) && turns.begin(2, claim(0, false)));
        assert!(!turns.begin(3, claim(0, true)));
        assert!(!turns.begin(4, claim(0, false)), "it would overtake");
        assert!(!turns.begin(5, claim(0, false)));
        turns.end(claim(0, false), &mut begun);
        assert!(begun.is_empty());
        turns.end(claim(0, false), &mut begun);
        assert_eq!(begun, [3]);
        turns.end(claim(0, true), &mut begun);
        assert_eq!(begun, [3, 4, 5]);
    }

    #[test]
    fn who_leaves_the_queue_makes_way() {
        let mut turns = Turns::new(2);
        let mut begun = Vec::new();
        assert!(turns.begin(1, claim(0, false)));
        assert!(!turns.begin(2, Claim { object: 0, other: Some(1), alone: true }));
        assert!(!turns.begin(3, claim(1, false)) && !turns.begin(4, claim(0, false)));
        assert!(turns.leave(2, &mut begun) && !turns.leave(2, &mut begun));
        begun.sort_unstable();
        assert_eq!(begun, [3, 4]);
    }

    proptest! {
        #[test]
        fn nobody_overtakes_and_everybody_comes(
            steps in prop::collection::vec((0..4_usize, 0..5_usize, any::<bool>(), 0..3_u8), 1..80),
        ) {
            let mut turns = Turns::new(4);
            let (mut there, mut claims): (Vec<u64>, Vec<Claim>) = (Vec::new(), Vec::new());
            let mut order: Vec<u64> = Vec::new();
            for (object, other, alone, end) in steps {
                let other = Some(other).filter(|other| alone && *other < 4 && *other != object);
                claims.push(Claim { object, other, alone });
                let request = claims.len() as u64 - 1;
                let mut begun = Vec::new();
                if turns.begin(request, claims[request as usize]) {
                    begun.push(request);
                }
                for _ in 0..end {
                    if let Some(over) = (!there.is_empty()).then(|| there.remove(0)) {
                        turns.end(claims[over as usize], &mut begun);
                    }
                }
                order.extend(&begun);
                there.extend(begun);
                for one in &there {
                    for two in there.iter().filter(|two| *two != one) {
                        let (one, two) = (claims[*one as usize], claims[*two as usize]);
                        let meet = one.objects().any(|at| two.objects().any(|also| at == also));
                        prop_assert!(!meet || !one.alone && !two.alone);
                    }
                }
            }
            while !there.is_empty() {
                let mut begun = Vec::new();
                let over = there.remove(0);
                turns.end(claims[over as usize], &mut begun);
                order.extend(&begun);
                there.extend(begun);
            }
            prop_assert_eq!(order.len(), claims.len(), "somebody waits for ever");
            // At an object, whoever is alone comes in the order of arrival with regard to all others.
            for (at, late) in order.iter().enumerate() {
                for early in &order[at..] {
                    let (one, two) = (claims[*late as usize], claims[*early as usize]);
                    let meet = one.objects().any(|at| two.objects().any(|also| at == also));
                    prop_assert!(!(meet && early < late && (one.alone || two.alone)), "{} before {}", late, early);
                }
            }
            prop_assert!(turns.states.iter().all(|state| *state == 0) && turns.queues.is_empty());
        }
    }
}
