//! Waiting for a point in time as exactly as a machine allows.

use etude_trace::Scheduling;

/// How long before its time a thread is awake: sleeping alone is some 20 to 70 µs late, and the rest is spun.
const AWAKE_NS: i64 = 60_000;

/// `CLOCK_MONOTONIC`, ns.
#[inline]
pub fn now_ns() -> i64 {
    etude_clock::monotonic_ns().cast_signed()
}

/// What asking for the time takes, ns: so much too long does everything look between two questions. The least of many,
/// since what else happens in between makes it longer only.
pub fn cost_ns() -> i64 {
    const MANY: usize = 1000;
    (0..MANY).map(|_| -now_ns() + now_ns()).min().unwrap_or(0)
}

/// Sleeps until shortly before `target`, then spins.
pub fn wait_until(target: i64) {
    let mut now = now_ns();
    if target.saturating_sub(now) > 2 * AWAKE_NS {
        // A signal may end it early, which spinning makes good.
        etude_clock::sleep_until((target - AWAKE_NS).cast_unsigned());
        now = now_ns();
    }
    while now < target {
        std::hint::spin_loop();
        now = now_ns();
    }
}

/// Puts this thread into a scheduling class; whether that is allowed.
pub fn schedule(class: Scheduling) -> bool {
    let parameters = libc::sched_param { sched_priority: class.priority.into() };
    // SAFETY: plain values; 0 is this thread.
    unsafe {
        libc::sched_setscheduler(0, class.policy.number(), &parameters) == 0
            && (class.policy.is_realtime()
                || libc::setpriority(libc::PRIO_PROCESS, 0, class.nice.into()) == 0)
    }
}

#[cfg(test)]
mod tests {
    use etude_trace::Policy;

    use super::*;

    #[test]
    fn a_thread_is_in_the_class_that_it_was_put_into() {
        let asked = std::thread::spawn(|| {
            let done = schedule(Scheduling { policy: Policy::Batch, priority: 0, nice: 19 });
            // SAFETY: no place is written to.
            (done, unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) })
        });
        assert_eq!(asked.join().unwrap(), (true, (libc::SCHED_BATCH, 19)));
        // Its parameters are not recorded, and it cannot be had without.
        assert!(!schedule(Scheduling { policy: Policy::Deadline, priority: 0, nice: 0 }));
    }
}
