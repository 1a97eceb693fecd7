//! The first line.

use etude_launch::{clock, sys};
use etude_micro::tlb;
use etude_protocol::{CgroupFace, Hello, PROTOCOL, TlbFace};

use crate::meters::Meters;

/// What this engine is and what this machine lets it do.
pub(crate) fn hello(engine: &str, meters: &Meters) -> Hello {
    let cgroup = &meters.cgroups;
    Hello {
        protocol: PROTOCOL,
        engine: engine.to_owned(),
        pid: std::process::id(),
        clock_resolution_ns: clock::resolution_ns(),
        cpus: sys::allowed_cpus(),
        cgroup: CgroupFace {
            version: cgroup.version(),
            controllers: cgroup.controllers().iter().map(|&name| name.to_owned()).collect(),
            reason: cgroup.reason().map(str::to_owned),
        },
        counters: etude_counters::availability()
            .into_iter()
            .map(|(name, why)| (name.to_owned(), why))
            .collect(),
        tlb: tlb::tlbs().into_iter().map(face).collect(),
    }
}

fn face(tlb: tlb::Tlb) -> TlbFace {
    let tlb::Tlb { kind, level, page_bytes, entries } = tlb;
    TlbFace { kind: kind.to_owned(), level, page_bytes, entries }
}
