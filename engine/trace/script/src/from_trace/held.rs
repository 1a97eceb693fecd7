//! The time for which the recorder held threads, which is in their gaps and was none of the program's.

use std::collections::HashMap;

/// A thread of the trace stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub thread: u32,
    pub from_ns: u64,
    pub until_ns: u64,
}

/// All of it, by thread of the trace: sorted, none over another, and how many are behind us.
#[derive(Debug, Default)]
pub(crate) struct Holds(HashMap<u32, (Vec<Held>, usize)>);

impl Holds {
    pub fn new(mut held: Vec<Held>) -> Holds {
        held.sort_by_key(|each| (each.thread, each.from_ns));
        let mut holds: HashMap<u32, (Vec<Held>, usize)> = HashMap::new();
        for mut each in held {
            let (of_thread, _) = holds.entry(each.thread).or_default();
            each.from_ns = each.from_ns.max(of_thread.last().map_or(0, |last| last.until_ns));
            if each.from_ns < each.until_ns {
                of_thread.push(each);
            }
        }
        Holds(holds)
    }

    /// For how long a thread was held within a gap. Gaps of a thread are asked for in order.
    pub fn within(&mut self, thread: u32, begin_ns: u64, end_ns: u64) -> u64 {
        let Some((held, next)) = self.0.get_mut(&thread) else { return 0 };
        while held.get(*next).is_some_and(|each| each.until_ns <= begin_ns) {
            *next += 1;
        }
        let over = held[*next..].iter().take_while(|each| each.from_ns < end_ns);
        over.map(|each| each.until_ns.min(end_ns) - each.from_ns.max(begin_ns)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_taken_off_once() {
        let held = |thread, from_ns, until_ns| Held { thread, from_ns, until_ns };
        // The second lies over the first, the third is none, the last is another thread's.
        let all = vec![held(0, 10, 20), held(0, 15, 30), held(0, 25, 25), held(0, 50, 90), held(1, 0, 100)];
        let mut holds = Holds::new(all);
        assert_eq!(holds.within(0, 0, 12), 2);
        assert_eq!(holds.within(0, 12, 40), 18);
        assert_eq!(holds.within(0, 60, 70), 10); // a call that ended within it
        assert_eq!(holds.within(0, 80, 200), 10);
        assert_eq!(holds.within(0, 200, 300), 0);
        assert_eq!(holds.within(2, 0, 300), 0);
    }
}
