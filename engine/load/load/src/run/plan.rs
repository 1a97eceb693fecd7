//! What is to be offered, and for how long.

use crate::run::distribution::Process;

/// How requests come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Load {
    /// So many a second, whatever the answers (open loop).
    Open { rate: f64, process: Process },
    /// So many clients, each of which waits for its answer, and then thinks: ns, on average; exponential or constant (closed loop).
    Closed { clients: usize, think_ns: u64, exponential: bool },
}

/// How the generator waits for the instant of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Wait {
    /// Asleep until then: least CPU, late by what a wake-up takes.
    Sleep,
    /// Asleep until shortly before, then spinning.
    Hybrid,
    /// Spinning always: a whole CPU.
    Spin,
}

/// Times in ns.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub load: Load,
    pub wait: Wait,
    pub seed: u64,
    pub warm_up_ns: u64,
    pub duration_ns: u64,
    pub window_ns: u64,
    pub outstanding: usize,
    pub timeout_ns: u64,
    pub drain_ns: u64,
}

#[cfg(test)]
impl Plan {
    /// One request a second, for a nanosecond; tests change what they are about.
    pub fn of_tests() -> Plan {
        Plan {
            load: Load::Open { rate: 1.0, process: crate::run::distribution::Process::Poisson },
            wait: Wait::Sleep,
            seed: 0,
            warm_up_ns: 0,
            duration_ns: 1,
            window_ns: 1,
            outstanding: 1,
            timeout_ns: 1,
            drain_ns: 1,
        }
    }
}
