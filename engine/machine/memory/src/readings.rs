//! What the kernel says of memory, from the texts of `/proc`.

/// From `/proc/meminfo`, B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub total: u64,
    pub free: u64,
    /// What could be had without swapping, by the kernel's own estimate.
    pub available: u64,
    /// Page cache of files on the two lists from which the kernel evicts: without shared memory and what is locked.
    pub file: u64,
    /// Those of them that can be evicted at once: nobody has mapped them, and they are as on disk.
    pub idle: u64,
    /// Caches of directory entries, inodes and the like.
    pub slab: u64,
}

/// Sums that only grow, from `/proc/vmstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events {
    /// Processes that the OOM killer ended; None before Linux 4.13.
    pub oom_kills: Option<u64>,
    /// Pages written to swap space.
    pub swapped_out: u64,
    /// Pages that the kernel looked at in order to evict them.
    pub scanned: u64,
}

impl Memory {
    /// # Errors
    /// The member that is missing.
    pub fn read(text: &str) -> Result<Memory, String> {
        let member = |name: &str| {
            let value =
                valued(text, name, ':').and_then(|value| value.strip_suffix("kB")?.trim().parse().ok());
            value
                .map(|kib: u64| kib.saturating_mul(1024))
                .ok_or_else(|| format!("/proc/meminfo has no {name}"))
        };
        let file = member("Active(file)")?.saturating_add(member("Inactive(file)")?);
        let busy = ["Mapped", "Dirty", "Writeback"].map(|name| member(name).unwrap_or(0));
        Ok(Memory {
            total: member("MemTotal")?,
            free: member("MemFree")?,
            available: member("MemAvailable")?,
            file,
            idle: busy.iter().fold(file, |rest, bytes| rest.saturating_sub(*bytes)),
            slab: member("SReclaimable")?,
        })
    }
}

impl Events {
    pub fn read(text: &str) -> Events {
        let sum = |name: &str| valued(text, name, ' ').and_then(|value| value.parse().ok());
        let scanned = ["pgscan_kswapd", "pgscan_direct"].map(|name| sum(name).unwrap_or(0));
        Events {
            oom_kills: sum("oom_kill"),
            swapped_out: sum("pswpout").unwrap_or(0),
            scanned: scanned[0].saturating_add(scanned[1]),
        }
    }
}

/// For how long so far nobody could work because all waited for memory, ns, from `/proc/pressure/memory`.
pub fn stalled_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("full "))?;
    let total: u64 = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
    Some(total.saturating_mul(1000))
}

fn valued<'a>(text: &'a str, name: &str, separator: char) -> Option<&'a str> {
    let mut rows = text.lines().filter_map(|line| line.split_once(separator));
    rows.find(|(found, _)| *found == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEMINFO: &str = "MemTotal:       24684084 kB\nMemFree:        24285080 kB\nMemAvailable:   24258540 kB\n\
        Active(anon):       1464 kB\nActive(file):      51692 kB\nInactive(file):    85156 kB\n\
        Mapped: 36848 kB\nDirty: 90000 kB\nWriteback: 2000 kB\nSReclaimable:     115972 kB\nHugePages_Total:       0\n";

    #[test]
    fn memory_is_read_in_bytes() {
        let memory = Memory::read(MEMINFO).unwrap();
        assert_eq!(memory.total, 24_684_084 * 1024);
        assert_eq!(memory.file, (51_692 + 85_156) * 1024, "anonymous pages are no cache");
        assert_eq!(memory.idle, 8_000 * 1024);
        assert_eq!(memory.slab, 115_972 * 1024);
    }

    #[test]
    fn a_missing_member_is_named() {
        let text = MEMINFO.replace("MemAvailable", "MemAvailing");
        assert_eq!(Memory::read(&text).unwrap_err(), "/proc/meminfo has no MemAvailable");
        assert!(Memory::read(&MEMINFO.replace("24258540 kB", "many kB")).is_err());
    }

    #[test]
    fn events_add_what_kswapd_and_others_scanned() {
        let text = "pgscan_kswapd 7\npgscan_direct 5\npgscan_direct_throttle 90\npswpout 2\noom_kill 3\n";
        assert_eq!(Events::read(text), Events { oom_kills: Some(3), swapped_out: 2, scanned: 12 });
        assert_eq!(Events::read("nr_free_pages 1\n").oom_kills, None, "older kernels do not count");
    }

    #[test]
    fn stalls_are_those_of_all_and_not_of_some() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=92458\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=9635\n";
        assert_eq!(stalled_ns(text), Some(9_635_000));
        assert_eq!(stalled_ns("some avg10=0.00 total=1\n"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = (Memory::read(&text), Events::read(&text), stalled_ns(&text));
        }

        #[test]
        fn numbers_are_read_as_the_kernel_wrote_them(kib in 0..u64::MAX / 2048, total in 0..u64::MAX / 2000) {
            let text = MEMINFO.replace("24258540", &kib.to_string());
            prop_assert_eq!(Memory::read(&text).unwrap().available, kib * 1024);
            prop_assert_eq!(stalled_ns(&format!("full avg10=0.00 total={total}\n")), Some(total * 1000));
        }
    }
}
