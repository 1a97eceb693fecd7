//! How the kernel schedules a process (sched(7)).

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    #[default]
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
}

impl Policy {
    /// Each with its name and its number on Linux.
    pub const ALL: [(Policy, &'static str, i32); 6] = [
        (Policy::Other, "other", 0),
        (Policy::Fifo, "fifo", 1),
        (Policy::Rr, "rr", 2),
        (Policy::Batch, "batch", 3),
        (Policy::Idle, "idle", 5),
        (Policy::Deadline, "deadline", 6),
    ];

    fn row(self) -> (Policy, &'static str, i32) {
        Policy::ALL.into_iter().find(|(policy, ..)| *policy == self).expect("each policy has a row")
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    pub fn number(self) -> i32 {
        self.row().2
    }

    pub fn is_realtime(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr | Policy::Deadline)
    }
}

/// A policy with its priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    pub policy: Policy,
    /// Real-time priority with `fifo` and `rr`, 1 to 99; else 0.
    pub priority: u8,
    /// Nice value with `other` and `batch`, -20 to 19.
    pub nice: i8,
}

impl Scheduling {
    pub const PRIORITIES: RangeInclusive<u8> = 0..=99;
    pub const NICE_VALUES: RangeInclusive<i8> = -20..=19;

    /// Whether the kernel knows such priorities.
    pub fn is_possible(&self) -> bool {
        Scheduling::PRIORITIES.contains(&self.priority) && Scheduling::NICE_VALUES.contains(&self.nice)
    }

    /// Whether it is that of a program of which nobody has decided otherwise.
    pub fn is_default(&self) -> bool {
        *self == Scheduling::default()
    }
}
