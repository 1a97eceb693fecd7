//! How much CPU time a thread wanted: what it got, and what others had while it was ready to run.

use std::fs;

use etude_clock::thread_cpu_ns;

/// Of this thread, since its start, ns. A kernel without CONFIG_SCHED_INFO tells only of what it got.
pub(crate) fn wanted_ns() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    thread_cpu_ns() + waited_ns(&stat)
}

/// The second of "time on a CPU, time waiting for one, times that it got one" (Documentation/scheduler/sched-stats.rst).
fn waited_ns(stat: &str) -> u64 {
    stat.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_the_queue_for_a_cpu_is_time_that_was_wanted() {
        assert_eq!(["11 22 3\n", "", "x y z"].map(waited_ns), [22, 0, 0]);
        let before = (wanted_ns(), thread_cpu_ns());
        etude_clock::spin_until(etude_clock::monotonic_ns() + 5_000_000);
        let after = (wanted_ns(), thread_cpu_ns());
        assert!(after.0 - before.0 >= 1_000_000 && after.1 > before.1);
    }
}
