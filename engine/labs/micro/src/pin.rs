//! One CPU for all that is measured.

use std::mem;

use crate::exit::{Fail, OSERR};

/// Binds this thread, and all that it starts later, to one CPU.
///
/// # Errors
/// That CPU is not there, or not allowed to this process; it says which are.
pub fn to(cpu: usize) -> Result<(), Fail> {
    let refused = |why: &str| {
        Fail::new(OSERR, format!("--cpu {cpu}: {why}; this process may use {}", listed(&allowed())))
    };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(refused("there is no such CPU"));
    }
    // SAFETY: a set of zeros is an empty one; `cpu` lies within it; the set lives through the call.
    let result = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if result == 0 { Ok(()) } else { Err(refused("it is not there, or not allowed")) }
}

/// The CPUs that this thread may run on, in order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: a set of zeros is an empty one, and has the size that is said.
    let set = unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: every index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// `0-3,6`.
fn listed(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|one, next| one + 1 == *next);
    let texts = runs.map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_to_the_cpu_that_was_asked_for() {
        let pinned = std::thread::spawn(|| {
            let last = *allowed().last().expect("there is a CPU");
            to(last).map(|()| (last, allowed()))
        });
        let (cpu, now) = pinned.join().expect("no panic").expect("it is allowed");
        assert_eq!(now, [cpu]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        for absent in [1023, 100_000] {
            let fail = to(absent).expect_err("no machine of ours has it");
            assert_eq!(fail.code, OSERR);
            assert!(
                fail.line.contains("this process may use 0") || fail.line.contains("may use "),
                "{}",
                fail.line
            );
        }
    }

    #[test]
    fn cpus_are_listed_as_ranges() {
        assert_eq!(listed(&[0, 1, 2, 6, 8, 9]), "0-2,6,8-9");
    }
}
