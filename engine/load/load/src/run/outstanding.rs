//! Which requests are under way, and since when they were due.

use std::collections::VecDeque;

use crate::run::target::Ticket;

/// In the place of an instant: this one is over.
const OVER: u64 = u64::MAX;

/// Requests in the order in which they were sent, which is that in which they were due: the first is the first to be given up.
#[derive(Default)]
pub(crate) struct UnderWay {
    /// Of the first in `due`.
    first: Ticket,
    due: VecDeque<u64>,
    open: usize,
}

impl UnderWay {
    pub fn new() -> UnderWay {
        UnderWay { first: 1, ..UnderWay::default() }
    }

    pub fn len(&self) -> usize {
        self.open
    }

    /// One more; its ticket.
    pub fn add(&mut self, due_ns: u64) -> Ticket {
        self.due.push_back(due_ns);
        self.open += 1;
        self.first + self.due.len() as u64 - 1
    }

    /// That one is over; when it was due. None: it was over already, or never sent.
    pub fn end(&mut self, ticket: Ticket) -> Option<u64> {
        let place = usize::try_from(ticket.checked_sub(self.first)?).ok()?;
        let due_ns = self.due.get_mut(place).filter(|due| **due != OVER)?;
        let due_ns = std::mem::replace(due_ns, OVER);
        self.open -= 1;
        while self.due.front() == Some(&OVER) {
            self.due.pop_front();
            self.first += 1;
        }
        Some(due_ns)
    }

    /// The one that has been under way longest.
    pub fn oldest(&self) -> Option<(Ticket, u64)> {
        self.due.front().map(|due_ns| (self.first, *due_ns))
    }

    /// When each was due.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.due.iter().copied().filter(|due| *due != OVER)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_from_tickets_to_instants(steps in prop::collection::vec((any::<bool>(), 0..40_u64), 0..200)) {
            let (mut under_way, mut map, mut last) = (UnderWay::new(), BTreeMap::new(), 0);
            for (add, number) in steps {
                if add {
                    let ticket = under_way.add(number);
                    prop_assert_eq!(ticket, last + 1);
                    last = ticket;
                    map.insert(ticket, number);
                } else {
                    prop_assert_eq!(under_way.end(number), map.remove(&number));
                }
                prop_assert_eq!(under_way.len(), map.len());
                prop_assert_eq!(under_way.oldest(), map.first_key_value().map(|(ticket, due)| (*ticket, *due)));
                prop_assert!(under_way.all().eq(map.values().copied()));
            }
        }
    }
}
