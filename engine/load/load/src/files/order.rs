//! Which requests must not overtake which: one that makes or removes an object waits for those on it that came before, and
//! those that came after wait for it.

/// What a request is about; requests on different objects never wait for each other.
pub(crate) type Key = u64;

/// A request under way, or one that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its number, never used twice.
    pub ticket: u64,
    pub key: Key,
    /// A second object that it is about; the same where there is none.
    pub other: Key,
    /// It changes whether its objects are there.
    pub ordered: bool,
}

impl Claim {
    fn meets(&self, later: &Claim) -> bool {
        let same = [self.key, self.other].iter().any(|key| [later.key, later.other].contains(key));
        same && (self.ordered || later.ordered)
    }
}

/// `J`: whatever goes with a request that is held back.
pub(crate) struct Order<J> {
    under_way: Vec<Claim>,
    /// In the order in which they came.
    held: Vec<(Claim, J)>,
    /// Of both: while there are none, nothing need be compared.
    ordered: usize,
}

impl<J> Order<J> {
    pub fn new() -> Order<J> {
        Order { under_way: Vec::new(), held: Vec::new(), ordered: 0 }
    }

    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// In the order in which they came.
    pub fn all_held(&self) -> impl Iterator<Item = &J> {
        self.held.iter().map(|(_, job)| job)
    }

    #[cfg(test)]
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// A new request. It is returned where it may go, and is under way then; else it is held back.
    pub fn admit(&mut self, claim: Claim, job: J) -> Option<J> {
        let blocked = (claim.ordered || self.ordered > 0)
            && self
                .under_way
                .iter()
                .chain(self.held.iter().map(|(claim, _)| claim))
                .any(|by| by.meets(&claim));
        self.ordered += usize::from(claim.ordered);
        if blocked {
            self.held.push((claim, job));
            return None;
        }
        self.under_way.push(claim);
        Some(job)
    }

    /// A request under way is over; those that may go now are under way from here on.
    pub fn ended(&mut self, ticket: u64, mut freed: impl FnMut(J)) {
        // The last that came is often the first that ends.
        let Some(at) = self.under_way.iter().rposition(|claim| claim.ticket == ticket) else { return };
        let claim = self.under_way.swap_remove(at);
        self.ordered -= usize::from(claim.ordered);
        let mut place = 0;
        while place < self.held.len() {
            let next = self.held[place].0;
            let before = self.held[..place].iter().map(|(claim, _)| claim);
            if self.under_way.iter().chain(before).any(|by| by.meets(&next)) {
                place += 1;
            } else {
                let (claim, job) = self.held.remove(place);
                self.under_way.push(claim);
                freed(job);
            }
        }
    }

    /// Nobody waits any more for those that are held back and of which that is true.
    pub fn drop_held(&mut self, gone: impl Fn(&J) -> bool, mut dropped: impl FnMut(J)) {
        let mut place = 0;
        while place < self.held.len() {
            if gone(&self.held[place].1) {
                let (claim, job) = self.held.remove(place);
                self.ordered -= usize::from(claim.ordered);
                dropped(job);
            } else {
                place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_overtakes_what_makes_or_removes_its_object_and_all_are_served(
            requests in prop::collection::vec((0_u64..4, 0_u64..4, any::<bool>(), any::<u8>()), 1..60),
        ) {
            let mut order = Order::new();
            let claims: Vec<Claim> = (0..).zip(&requests)
                .map(|(ticket, &(key, other, ordered, _))| Claim { ticket, key, other, ordered }).collect();
            let (mut running, mut begun, mut ended): (Vec<u64>, Vec<u64>, Vec<u64>) = Default::default();
            let mut events = Vec::new();
            for (claim, (.., endings)) in claims.iter().zip(&requests) {
                if let Some(ticket) = order.admit(*claim, claim.ticket) {
                    running.push(ticket);
                    events.push((ticket, true));
                }
                for _ in 0..endings % 3 {
                    if running.is_empty() { break; }
                    let ticket = running.swap_remove(usize::from(*endings) % running.len());
                    events.push((ticket, false));
                    order.ended(ticket, |freed| { running.push(freed); events.push((freed, true)); });
                }
            }
            while let Some(ticket) = running.pop() {
                events.push((ticket, false));
                order.ended(ticket, |freed| { running.push(freed); events.push((freed, true)); });
            }
            for (ticket, begins) in &events {
                if *begins {
                    for earlier in &claims[..*ticket as usize] {
                        let over = ended.contains(&earlier.ticket);
                        prop_assert!(over || !earlier.meets(&claims[*ticket as usize]));
                    }
                    begun.push(*ticket);
                } else {
                    ended.push(*ticket);
                }
            }
            prop_assert_eq!((begun.len(), ended.len()), (claims.len(), claims.len()));
            prop_assert_eq!((order.held(), order.under_way(), order.ordered), (0, 0, 0));
        }
    }

    #[test]
    fn what_is_held_back_is_dropped_without_letting_others_pass() {
        let claim = |ticket, ordered| Claim { ticket, key: 7, other: 7, ordered };
        let mut order = Order::new();
        assert_eq!(order.admit(claim(0, false), 0), Some(0));
        assert_eq!(order.admit(claim(1, true), 1), None);
        assert_eq!(order.admit(claim(2, false), 2), None);
        let mut gone = Vec::new();
        order.drop_held(|job| *job == 2, |job| gone.push(job));
        let mut freed = Vec::new();
        order.ended(0, |job| freed.push(job));
        assert_eq!((gone, freed), (vec![2], vec![1]));
    }
}
