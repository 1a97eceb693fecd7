"""With what is measured: clocks and counters."""

from etude.machine import tree
from etude.machine.finding import NOTHING_TO_DO, Finding, Machine

CLOCK = "sys/devices/system/clocksource/clocksource0"
EVENT_SOURCES = "sys/bus/event_source/devices"

# Sources that a process can read without entering the kernel.
QUICK_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "timebase", "tod", "riscv_clocksource")
PARANOID_LIMIT = 2  # above it (3 and 4 are Debian's and Ubuntu's own), only root may count


def clock_source(machine: Machine) -> Finding:
    meaning = "A slow clock is read by a call into the kernel, a microsecond or more that is measured too."
    current = tree.read_text(machine.root, f"{CLOCK}/current_clocksource")
    if current is None:
        return Finding("clock source", "not visible", "unknown", meaning, "mount /sys")
    if current in QUICK_CLOCKS or current.startswith("hyperv_clocksource_tsc"):
        return Finding("clock source", current, "good", meaning, NOTHING_TO_DO)
    available = (tree.read_text(machine.root, f"{CLOCK}/available_clocksource") or "").split()
    better = next((name for name in QUICK_CLOCKS if name in available), None)
    if better is not None:
        advice = f"write {better} to /{CLOCK}/current_clocksource"
    else:
        advice = "see the kernel's log for why the TSC was found unstable"
    return Finding("clock source", current, "noisy", meaning, advice)


def counters(machine: Machine) -> Finding:
    meaning = "Without cycles and instructions a slower clock cannot be told from more work."
    sources = tree.names(machine.root, EVENT_SOURCES)
    hardware = [name for name in sources if name.startswith(("cpu", "armv"))]
    if not sources:
        return Finding("hardware counters", "not visible", "unknown", meaning, "mount /sys")
    if not hardware:
        advice = "give the virtual machine a PMU, or do without: only software events can be counted"
        return Finding("hardware counters", "none", "unknown", meaning, advice)
    paranoid = tree.read_int(machine.root, "proc/sys/kernel/perf_event_paranoid")
    state = f"{', '.join(hardware)}; perf_event_paranoid {'unknown' if paranoid is None else paranoid}"
    if paranoid is not None and paranoid > PARANOID_LIMIT and not machine.privileged:
        advice = f"sysctl kernel.perf_event_paranoid={PARANOID_LIMIT}"
        return Finding("hardware counters", f"{state}: not for you", "unknown", meaning, advice)
    return Finding("hardware counters", state, "good", meaning, NOTHING_TO_DO)


def watchdog(machine: Machine) -> Finding:
    meaning = "The NMI watchdog interrupts every CPU now and then and occupies one hardware counter."
    on = tree.read_int(machine.root, "proc/sys/kernel/nmi_watchdog")
    if on is None:
        return Finding("NMI watchdog", "not available", "good", meaning, NOTHING_TO_DO)
    if on:
        return Finding("NMI watchdog", "on", "noisy", meaning, "etude quiet on watchdogs")
    return Finding("NMI watchdog", "off", "good", meaning, NOTHING_TO_DO)
