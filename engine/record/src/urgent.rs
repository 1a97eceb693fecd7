//! A recorder that real-time programs do not starve: they would fill their rings and wait for it.

/// Puts this thread one above the real-time priority that it has inherited, if it has one.
pub fn above_the_program() {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: this thread's own scheduling, and room for the answer.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        if policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_OTHER
            || libc::sched_getparam(0, &mut parameters) != 0
        {
            return;
        }
        let most = libc::sched_get_priority_max(policy & !libc::SCHED_RESET_ON_FORK);
        if parameters.sched_priority < most && parameters.sched_priority > 0 {
            parameters.sched_priority += 1;
            // Where it may not, it stays where it is.
            libc::sched_setscheduler(0, policy, &parameters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priority() -> i32 {
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: room for the answer.
        unsafe { libc::sched_getparam(0, &mut parameters) };
        parameters.sched_priority
    }

    #[test]
    fn a_real_time_program_is_not_in_its_way() {
        std::thread::spawn(|| {
            above_the_program();
            assert_eq!(priority(), 0);
            let parameters = libc::sched_param { sched_priority: 7 };
            // SAFETY: this thread's own scheduling.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
                eprintln!("real-time priority is not allowed here: the rest was not tested");
                return;
            }
            above_the_program();
            assert_eq!(priority(), 8);
        })
        .join()
        .unwrap();
    }
}
