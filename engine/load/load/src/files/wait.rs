//! Waiting for an instant, in the way that was asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use etude_clock::{monotonic_ns, sleep_until, without_slack};

use crate::files::quantile::Quantile;
use crate::run::plan::Wait;

/// A sleep is not worth its call where less is left.
const LEAST_SLEEP_NS: u64 = 2_000;

/// Before the first wake-up was seen: as late as one is on an idle machine.
const FIRST_NS: f64 = 15_000.0;

/// The longest spin of a hybrid wait after a sleep: at thousands of requests per second a longer one would be most of the CPU time.
const MOST_SPIN_NS: u64 = 25_000;

/// One thread's.
pub(crate) struct Waiter {
    wait: Wait,
    /// How late wake-ups are.
    late: Quantile,
    /// Time spent spinning that nobody has taken yet.
    pub spun_ns: u64,
}

impl Waiter {
    /// For the thread that calls: its timers are exact from here on.
    pub fn new(wait: Wait) -> Waiter {
        without_slack();
        Waiter { wait, late: Quantile::new(FIRST_NS), spun_ns: 0 }
    }

    /// Waits for that instant (CLOCK_MONOTONIC, ns), or until `stop`, which a sleep does not see; the time then.
    pub fn until(&mut self, instant_ns: u64, stop: &AtomicBool) -> u64 {
        let mut now = monotonic_ns();
        let spin_ns = match self.wait {
            Wait::Sleep => 0,
            Wait::Hybrid => (self.late.value() as u64).min(MOST_SPIN_NS),
            Wait::Spin => u64::MAX,
        };
        let wake_ns = instant_ns.saturating_sub(spin_ns);
        if wake_ns > now + LEAST_SLEEP_NS {
            // An early end, by a signal, is made up for by spinning.
            sleep_until(wake_ns);
            now = monotonic_ns();
            self.late.see(now.saturating_sub(wake_ns).max(1) as f64);
        }
        let since = now;
        while now < instant_ns && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            now = monotonic_ns();
        }
        self.spun_ns += now - since;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_waiting_is_early_and_a_stop_ends_a_spin() {
        let go_on = AtomicBool::new(false);
        for wait in [Wait::Sleep, Wait::Hybrid, Wait::Spin] {
            let mut waiter = Waiter::new(wait);
            for gap_ns in [0, 1_000, 300_000] {
                let instant = monotonic_ns() + gap_ns;
                waiter.until(instant, &go_on);
                assert!(monotonic_ns() >= instant, "{wait:?}");
            }
        }
        Waiter::new(Wait::Spin).until(u64::MAX, &AtomicBool::new(true));
    }
}
