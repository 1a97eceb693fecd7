//! Resource usage of this process and of the children that it waited for, as getrusage(2) has it.

use std::mem;

/// Usage since the process began, or between two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, ns.
    pub utime_ns: u64,
    /// CPU time in the kernel, ns.
    pub stime_ns: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Reads from a device, in units of 512 bytes.
    pub inblock: u64,
    /// Writes to a device, in units of 512 bytes.
    pub oublock: u64,
}

impl Usage {
    /// What was used until now.
    pub fn now() -> Usage {
        let (own, children) = (read(libc::RUSAGE_SELF), read(libc::RUSAGE_CHILDREN));
        own.zip(children, |own, children| own + children)
    }

    /// What was used since an earlier reading.
    pub fn since(self, before: Usage) -> Usage {
        self.zip(before, u64::saturating_sub)
    }

    fn zip(self, other: Usage, with: fn(u64, u64) -> u64) -> Usage {
        Usage {
            utime_ns: with(self.utime_ns, other.utime_ns),
            stime_ns: with(self.stime_ns, other.stime_ns),
            nvcsw: with(self.nvcsw, other.nvcsw),
            nivcsw: with(self.nivcsw, other.nivcsw),
            inblock: with(self.inblock, other.inblock),
            oublock: with(self.oublock, other.oublock),
        }
    }
}

fn read(whose: libc::c_int) -> Usage {
    // SAFETY: `libc::rusage` is numbers alone, for which zeros are values; the place for the answer is valid.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    };
    Usage {
        utime_ns: etude_clock::timeval_ns(usage.ru_utime),
        stime_ns: etude_clock::timeval_ns(usage.ru_stime),
        nvcsw: usage.ru_nvcsw as u64,
        nivcsw: usage.ru_nivcsw as u64,
        inblock: usage.ru_inblock as u64,
        oublock: usage.ru_oublock as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_were_waited_for_are_counted() {
        let before = Usage::now();
        let status = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        let used = Usage::now().since(before);
        assert!(used.utime_ns + used.stime_ns > 1_000_000, "{used:?}");
        assert!(used.nvcsw > 0, "we waited: {used:?}");
    }
}
