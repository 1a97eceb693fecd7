//! How calls are recorded.

use crate::rewrite::clock::Clock;
#[cfg(target_arch = "x86_64")]
use crate::rewrite::code::Known;
#[cfg(target_arch = "x86_64")]
use crate::rewrite::hook::Entry;

/// By which technique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    /// By jumps in the program's own code.
    #[cfg(target_arch = "x86_64")]
    Rewrite,
    /// Each call stops its thread.
    Ptrace,
}

impl Technique {
    /// What is done where nothing else is asked for.
    #[cfg(target_arch = "x86_64")]
    pub const DEFAULT: Technique = Technique::Rewrite;
    #[cfg(not(target_arch = "x86_64"))]
    pub const DEFAULT: Technique = Technique::Ptrace;

    /// As the command line and the trace call it.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Technique::Rewrite => "rewrite",
            Technique::Ptrace => "ptrace",
        }
    }
}

/// How calls are recorded.
#[derive(Clone)]
pub struct Way {
    pub clock: Clock,
    pub technique: Technique,
    /// Which arguments of a call are texts; None for one that is not recorded.
    pub texts: fn(u32) -> Option<Vec<u8>>,
    /// The entry that each call takes.
    #[cfg(target_arch = "x86_64")]
    pub entry: fn(u32) -> Entry,
    /// What is known of code that was seen before.
    #[cfg(target_arch = "x86_64")]
    pub known: Known,
    /// Places that no jump can take stop their threads.
    #[cfg(target_arch = "x86_64")]
    pub stop_left: bool,
    /// What a thread does that finds no room in its ring.
    #[cfg(target_arch = "x86_64")]
    pub drop_when_full: bool,
}
