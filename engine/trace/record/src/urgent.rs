//! A recorder that real-time programs do not starve: they would fill their rings and wait for it.

use crate::rewrite::remote::Pid;

/// The scheduling of a thread of the recorder: ordinary, or so far above the program.
pub struct Urgency {
    thread: Pid,
    policy: libc::c_int,
    /// Real-time priority when it is raised; 0: the program has none, and nothing is changed.
    priority: libc::c_int,
    raised: bool,
}

impl Urgency {
    /// Of this thread, which has the program's priority: so many levels above it, if that is a real-time one.
    pub fn of_this_thread(levels: libc::c_int) -> Urgency {
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: this thread's own scheduling, and room for the answer.
        let (policy, most) = unsafe {
            let policy = libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK;
            if policy == libc::SCHED_OTHER || libc::sched_getparam(0, &mut parameters) != 0 {
                (policy, 0)
            } else {
                (policy, libc::sched_get_priority_max(policy))
            }
        };
        let priority = match parameters.sched_priority {
            1.. => (parameters.sched_priority + levels).min(most),
            _ => 0,
        };
        Urgency { thread: 0, policy, priority, raised: false }
    }

    /// The same of another thread, which was started by this one.
    pub fn over(self, thread: Pid) -> Urgency {
        Urgency { thread, raised: true, ..self }
    }

    #[cfg(test)]
    pub fn thread(&self) -> Pid {
        self.thread
    }

    /// Puts it above the program; where that is not allowed it stays where it is.
    pub fn raise(&mut self) {
        if !std::mem::replace(&mut self.raised, true) {
            self.set(self.policy, self.priority);
        }
    }

    /// Makes it an ordinary thread.
    pub fn lower(&mut self) {
        if std::mem::take(&mut self.raised) {
            self.set(libc::SCHED_OTHER, 0);
        }
    }

    fn set(&self, policy: libc::c_int, priority: libc::c_int) {
        if self.priority > 0 {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: a valid parameter block, and a thread of ours.
            unsafe { libc::sched_setscheduler(self.thread, policy, &parameters) };
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
            Urgency::of_this_thread(1).raise();
            assert_eq!(priority(), 0);
            let parameters = libc::sched_param { sched_priority: 7 };
            // SAFETY: this thread's own scheduling.
            if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
                eprintln!("real-time priority is not allowed here: the rest was not tested");
                return;
            }
            let mut urgency = Urgency::of_this_thread(2);
            urgency.raise();
            assert_eq!(priority(), 9);
            urgency.lower();
            assert_eq!(priority(), 0);
        })
        .join()
        .unwrap();
    }
}
