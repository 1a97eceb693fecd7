//! The events, and how one is opened.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// An event that can be asked for.
pub(crate) struct Event {
    pub name: &'static str,
    pub unit: &'static str,
    /// From the kernel's count to the unit.
    pub scale: f64,
    class: u32,
    config: u64,
}

/// An open event.
#[derive(Debug)]
pub(crate) struct Opened {
    pub file: File,
    /// The kernel's own work is left out, because this user may not count it.
    pub user_only: bool,
}

impl Event {
    /// Whether it is counted by the processor, not by the kernel.
    pub fn hardware(&self) -> bool {
        self.class != SOFTWARE
    }
}

/// Kinds of events: the kernel's `perf_type_id`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
pub(crate) const CACHE: u32 = 3;
#[cfg(target_arch = "aarch64")]
pub(crate) const RAW: u32 = 4;

/// An event that counts whole numbers.
pub(crate) const fn counted(name: &'static str, class: u32, config: u64) -> Event {
    Event { name, unit: "1", scale: 1.0, class, config }
}

/// In the order in which they are reported. Numbers are those of the kernel's `perf_hw_id` and `perf_sw_ids`.
pub(crate) const EVENTS: [Event; 8] = [
    counted("cycles", HARDWARE, 0),
    counted("instructions", HARDWARE, 1),
    counted("cache_misses", HARDWARE, 3),
    counted("branch_misses", HARDWARE, 5),
    Event { name: "task_clock", unit: "s", scale: 1e-9, class: SOFTWARE, config: 1 },
    counted("page_faults", SOFTWARE, 2),
    counted("context_switches", SOFTWARE, 3),
    counted("cpu_migrations", SOFTWARE, 4),
];

/// The beginning of the kernel's `perf_event_attr`: the part that its first published version (64 bytes) had.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    class: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const ON_DESCENDANTS: u64 = DISABLED | INHERIT | ENABLE_ON_EXEC;
const ON_US: u64 = INHERIT;
const TOTAL_TIME_ENABLED: u64 = 1 << 0;
const TOTAL_TIME_RUNNING: u64 = 1 << 1;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Opens an event on what this thread will start. The error is one line on why it cannot be counted.
pub(crate) fn open(event: &Event) -> Result<Opened, String> {
    open_as(event, ON_DESCENDANTS, None)
}

/// Opens an event on this thread and what it will start. It counts when its group's leader does; without a leader it is
/// one itself, and waits to be told.
pub(crate) fn open_on_us(event: &Event, leader: Option<&File>) -> Result<Opened, String> {
    open_as(event, if leader.is_some() { ON_US } else { ON_US | DISABLED }, leader)
}

fn open_as(event: &Event, flags: u64, leader: Option<&File>) -> Result<Opened, String> {
    let forbidden = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM));
    let error = match attempt(event, flags, leader) {
        Ok(file) => return Ok(Opened { file, user_only: false }),
        Err(error) => error,
    };
    // Without the kernel's part, switches and migrations would always be 0: better none than wrong ones.
    let still_right = event.hardware() || event.name == "task_clock";
    if forbidden(&error)
        && still_right
        && let Ok(file) = attempt(event, flags | EXCLUDE_KERNEL | EXCLUDE_HV, leader)
    {
        return Ok(Opened { file, user_only: event.hardware() });
    }
    Err(explain(&error))
}

/// Opens an event that counts nothing and is not inherited.
///
/// Linux swaps the event contexts of two tasks that inherited the same events instead of switching the events. Swapped
/// with a child that has not executed yet, our own events would be enabled in it, and end with it: they would count 0
/// ever after. A context with an event that is not inherited is not taken for the same, and so never swapped.
pub(crate) fn open_anchor() -> io::Result<File> {
    let dummy = counted("anchor", SOFTWARE, 9);
    attempt(&dummy, DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV, None)
}

/// Lets the group of this leader count, or stops it: here and in all that inherited it. Whoever has the file may do so.
pub(crate) fn switch(leader: &File, on: bool) -> io::Result<()> {
    /// `_IO('$', 0)` and `_IO('$', 1)`; so wide as each C library has it.
    const ENABLE: u32 = 0x2400;
    const DISABLE: u32 = 0x2401;
    const THE_LEADER_ALONE: libc::c_ulong = 0;
    let request = if on { ENABLE } else { DISABLE };
    // SAFETY: the descriptor is a perf event's, and these requests take an integer only.
    match unsafe { libc::ioctl(leader.as_raw_fd(), request as _, THE_LEADER_ALONE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn attempt(event: &Event, flags: u64, leader: Option<&File>) -> io::Result<File> {
    let attributes = Attributes {
        class: event.class,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        read_format: TOTAL_TIME_ENABLED | TOTAL_TIME_RUNNING,
        flags,
        ..Attributes::default()
    };
    let (this_thread, any_cpu) = (0, -1);
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: `attributes` lives through the call and says its own size; the new descriptor is owned by nobody else.
    unsafe {
        let attributes = &raw const attributes;
        match libc::syscall(libc::SYS_perf_event_open, attributes, this_thread, any_cpu, group, CLOSE_ON_EXEC)
        {
            fd if fd >= 0 => Ok(File::from_raw_fd(fd as libc::c_int)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT) => "no such event (ENOENT)".to_owned(),
        // x86 answers so to a generic event that makes no sense there, and to one that does not fit into its group.
        Some(libc::EINVAL) => {
            "no such event, or no counter left for it beside the others (EINVAL)".to_owned()
        }
        Some(libc::EOPNOTSUPP) => "no such event (EOPNOTSUPP)".to_owned(),
        Some(libc::EACCES | libc::EPERM) => {
            "not allowed; run as root, or lower kernel.perf_event_paranoid to 1".to_owned()
        }
        Some(libc::ENOSYS) => "this kernel has no perf events (ENOSYS)".to_owned(),
        _ => format!("perf_event_open: {error}"),
    }
}
