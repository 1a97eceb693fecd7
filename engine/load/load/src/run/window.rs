//! When windows begin and end: side by side on the schedule, without gaps.

use crate::run::plan::Plan;

/// A stretch; the last one is as short as it must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub begin_ns: u64,
    pub end_ns: u64,
    length_ns: u64,
    last_ns: u64,
}

impl Window {
    /// The first one of a run whose warm-up is over at that instant.
    pub fn of(plan: &Plan, began_ns: u64) -> Window {
        Window::new(began_ns, plan.window_ns, began_ns.saturating_add(plan.duration_ns))
    }

    fn new(begin_ns: u64, length_ns: u64, last_ns: u64) -> Window {
        // A last window of less than a hundredth belongs to the one before: sums of decimals are not exact.
        let end_ns = begin_ns.saturating_add(length_ns);
        let end_ns = if last_ns.saturating_sub(end_ns) < length_ns / 100 { last_ns } else { end_ns };
        Window { begin_ns, end_ns, length_ns, last_ns }
    }

    pub fn next(self) -> Window {
        Window::new(self.end_ns, self.length_ns, self.last_ns)
    }

    pub fn is_last(self) -> bool {
        self.end_ns == self.last_ns
    }

    pub fn duration_ns(self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_side_by_side_and_a_remainder_is_one_too() {
        let ends = |length, last| {
            let windows = std::iter::successors(Some(Window::new(0, length, last)), |window| {
                (window.end_ns < last).then(|| window.next())
            });
            windows.map(|window| window.end_ns).collect::<Vec<u64>>()
        };
        assert_eq!(ends(100, 300), [100, 200, 300]);
        assert_eq!(ends(100, 250), [100, 200, 250]);
        assert_eq!(ends(1000, 2001), [1000, 2001]);
        assert_eq!(ends(1000, 30), [30]);
    }
}
