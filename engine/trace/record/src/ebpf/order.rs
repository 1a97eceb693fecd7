//! What is said of a thread, put in order: each CPU has a buffer of its own, and bpftrace reads one after the other.

use std::collections::{BTreeMap, HashMap};

use crate::ebpf::line::What;
use crate::rewrite::remote::Pid;

/// So many lines behind one that is missing are kept, before it counts as lost.
const PATIENCE: usize = 1 << 16;

/// What is said, when, of which process, and of a call its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub pid: Pid,
    pub ns: u64,
    pub what: What,
    pub texts: Texts,
}

/// Texts of a call, by argument.
pub type Texts = Vec<(u8, Vec<u8>)>;

#[derive(Default)]
struct Queue {
    /// The place of the last one that was handed on.
    last: u64,
    waiting: BTreeMap<u64, Said>,
}

/// What was said of all threads and not handed on yet.
#[derive(Default)]
pub struct Order {
    queues: HashMap<Pid, Queue>,
    texts: HashMap<(Pid, u64), Texts>,
}

impl Order {
    pub fn text(&mut self, tid: Pid, place: u64, argument: u8, bytes: Vec<u8>) {
        self.texts.entry((tid, place)).or_default().push((argument, bytes));
    }

    /// Takes one; a call takes the texts that were printed before it.
    pub fn said(&mut self, tid: Pid, place: u64, pid: Pid, ns: u64, what: What) {
        let texts = self.texts.remove(&(tid, place)).unwrap_or_default();
        self.queues.entry(tid).or_default().waiting.insert(place, Said { pid, ns, what, texts });
    }

    /// The next of a thread, and how many before it are lost. `last`: nothing more will come.
    pub fn next(&mut self, tid: Pid, last: bool) -> Option<(u64, Said)> {
        let queue = self.queues.get_mut(&tid)?;
        let place = *queue.waiting.keys().next()?;
        let missing = place.saturating_sub(queue.last + 1);
        if missing > 0 && !last && queue.waiting.len() < PATIENCE {
            return None;
        }
        let said = queue.waiting.remove(&place)?;
        queue.last = place;
        if matches!(said.what, What::Ends { .. }) {
            self.queues.remove(&tid);
        }
        Some((missing, said))
    }

    /// Nothing more is said of it under this tid.
    pub fn forget(&mut self, tid: Pid) {
        self.queues.remove(&tid);
    }

    /// Threads of which something waits, by the time of the first.
    pub fn waiting(&self) -> Vec<Pid> {
        let first = |queue: &Queue| queue.waiting.values().next().map(|said| said.ns);
        let mut found: Vec<(u64, Pid)> =
            self.queues.iter().filter_map(|(tid, queue)| Some((first(queue)?, *tid))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, tid)| tid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_come_out_in_order_and_each_lost_one_is_counted(
            places in Just((1..60u64).collect::<Vec<_>>()).prop_shuffle(), kept in prop::collection::vec(any::<bool>(), 60)
        ) {
            let (mut order, mut out, mut lost) = (Order::default(), Vec::new(), 0);
            let mut take = |order: &mut Order, last| {
                while let Some((missing, said)) = order.next(5, last) {
                    lost += missing;
                    out.push(said.ns);
                }
            };
            let there: Vec<u64> = places.into_iter().filter(|place| kept[*place as usize]).collect();
            for place in &there {
                order.said(5, *place, 5, *place, What::Starts { child: 1 });
                take(&mut order, false);
            }
            take(&mut order, true);
            let mut sorted = there.clone();
            sorted.sort_unstable();
            prop_assert_eq!(&out, &sorted);
            prop_assert_eq!(lost, sorted.last().map_or(0, |last| last - sorted.len() as u64));
        }
    }
}
