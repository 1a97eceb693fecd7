//! c workers and one queue in front of them, as instants: nothing here waits or reads a clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A request that is being served, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Service<Id> {
    /// When its service is over, ns.
    pub due_ns: u64,
    number: u64,
    pub id: Id,
}

struct Waiting<Id> {
    arrived_ns: u64,
    service_ns: u64,
    id: Id,
}

/// First come, first served, by whichever worker is free.
///
/// A worker that has finished takes the next request *at the instant at which its service was over*, not when somebody
/// noticed: what timers are late by is then not added to services, and the capacity is workers/mean exactly.
pub(crate) struct Station<Id> {
    workers: usize,
    most_waiting: usize,
    waiting: VecDeque<Waiting<Id>>,
    served: BinaryHeap<Reverse<Service<Id>>>,
    number: u64,
}

impl<Id: Copy + Ord> Station<Id> {
    pub fn new(workers: usize, most_waiting: usize) -> Station<Id> {
        Station { workers, most_waiting, waiting: VecDeque::new(), served: BinaryHeap::new(), number: 0 }
    }

    /// A request arrives; false: the queue is full. Instants of arrivals never go back.
    pub fn arrive(&mut self, now_ns: u64, id: Id, service_ns: u64) -> bool {
        if self.served.len() < self.workers {
            self.begin(now_ns, Waiting { arrived_ns: now_ns, service_ns, id });
            return true;
        }
        let room = self.waiting.len() < self.most_waiting;
        if room {
            self.waiting.push_back(Waiting { arrived_ns: now_ns, service_ns, id });
        }
        room
    }

    /// The next service that is over by now; its worker takes the next request.
    pub fn finish(&mut self, now_ns: u64) -> Option<Service<Id>> {
        self.due_ns().filter(|due| *due <= now_ns)?;
        let Reverse(done) = self.served.pop()?;
        if let Some(next) = self.waiting.pop_front() {
            self.begin(done.due_ns.max(next.arrived_ns), next);
        }
        Some(done)
    }

    /// When the next service is over.
    pub fn due_ns(&self) -> Option<u64> {
        self.served.peek().map(|Reverse(service)| service.due_ns)
    }

    /// Whoever asked has gone: it waits no more. A service that has begun goes on.
    pub fn forget(&mut self, id: Id) {
        self.waiting.retain(|waiting| waiting.id != id);
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn busy(&self) -> usize {
        self.served.len()
    }

    fn begin(&mut self, at_ns: u64, next: Waiting<Id>) {
        self.number += 1;
        let Waiting { service_ns, id, .. } = next;
        self.served.push(Reverse(Service { due_ns: at_ns + service_ns, number: self.number, id }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(station: &mut Station<usize>) -> Vec<(usize, u64)> {
        std::iter::from_fn(|| station.finish(u64::MAX)).map(|done| (done.id, done.due_ns)).collect()
    }

    #[test]
    fn requests_are_served_in_the_order_of_arrival_by_whichever_worker_is_free() {
        let mut station = Station::new(2, 10);
        for (id, service) in [100, 10, 50, 5].into_iter().enumerate() {
            assert!(station.arrive(id as u64, id, service));
        }
        assert_eq!((station.busy(), station.waiting()), (2, 2));
        assert_eq!(all(&mut station), [(1, 11), (2, 61), (3, 66), (0, 100)]);
    }

    #[test]
    fn what_is_noticed_late_does_not_lengthen_services() {
        let mut station = Station::new(1, 10);
        for id in 0..3 {
            station.arrive(0, id, 100);
        }
        assert_eq!(station.finish(99), None);
        let done: Vec<u64> = std::iter::from_fn(|| station.finish(350)).map(|done| done.due_ns).collect();
        assert_eq!(done, [100, 200, 300]);
    }

    #[test]
    fn a_request_is_not_served_before_it_came() {
        let mut station = Station::new(1, 10);
        station.arrive(0, 0, 100);
        station.arrive(130, 1, 100); // the first is over and not yet noticed
        assert_eq!(all(&mut station), [(0, 100), (1, 230)]);
    }

    #[test]
    fn a_full_queue_refuses_and_who_has_gone_is_not_served() {
        let mut station = Station::new(1, 2);
        assert_eq!([0, 1, 2, 3].map(|id| station.arrive(0, id, 10)), [true, true, true, false]);
        station.forget(1);
        assert_eq!(all(&mut station), [(0, 10), (2, 20)]);
    }

    proptest! {
        /// Kiefer and Wolfowitz: each request begins when the worker that is free first is free.
        #[test]
        fn services_end_as_the_recursion_of_a_queue_says(
            workers in 1..5_usize,
            requests in prop::collection::vec((0..100_u64, 1..300_u64), 1..60),
            late in 0..50_u64,
        ) {
            let mut station = Station::new(workers, usize::MAX);
            let (mut now, mut free) = (0, vec![0_u64; workers]);
            let (mut expected, mut found) = (vec![0; requests.len()], vec![0; requests.len()]);
            for (id, (gap, service)) in requests.iter().enumerate() {
                now += gap;
                while let Some(done) = station.finish(now.saturating_sub(late)) {
                    found[done.id] = done.due_ns;
                }
                // As the server does: what is over by now is finished before the arrival is told.
                while let Some(done) = station.finish(now) {
                    found[done.id] = done.due_ns;
                }
                prop_assert!(station.arrive(now, id, *service));
                let first = free.iter_mut().min().unwrap();
                *first = now.max(*first) + service;
                expected[id] = *first;
            }
            while let Some(done) = station.finish(u64::MAX) {
                found[done.id] = done.due_ns;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
