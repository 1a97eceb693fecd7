"""The checks of `etude doctor`: each examines one source of noise, and gives advice."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from etude.machine import snapshot, tree
from etude.machine.snapshot import cpu_ticks
from etude.machine.snapshot import load as snapshot_load
from etude.machine.snapshot import pressure as snapshot_pressure
from etude.osutil.processes import read_stat

Verdict = Literal["good", "noisy", "unknown"]

NOTHING_TO_DO = "nothing to do"


@dataclass(frozen=True)
class Finding:
    name: str
    state: str
    verdict: Verdict
    meaning: str  # one sentence: what it does to numbers
    advice: str  # one line: what to do about it


@dataclass(frozen=True)
class Reading:
    """Counters of the machine at one moment."""

    cpu_ticks: tuple[int, ...] = ()  # of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal
    cpus: int = 1
    swapped_pages: int = 0  # in and out, since boot
    process_ticks: dict[int, tuple[str, int]] = field(default_factory=dict)  # pid: name, ticks used


@dataclass(frozen=True)
class Machine:
    """Input of the checks: the machine's root, the working directory, and two readings a moment apart."""

    root: Path
    directory: Path
    before: Reading
    after: Reading
    privileged: bool = False


def read_counters(root: Path) -> Reading:
    vmstat = tree.read_counts(root, "proc/vmstat")
    online = tree.read_cpus(root, "sys/devices/system/cpu/online") or [0]
    return Reading(
        cpu_ticks=tuple(cpu_ticks(root)[:8]),
        cpus=len(online),
        swapped_pages=vmstat.get("pswpin", 0) + vmstat.get("pswpout", 0),
        process_ticks=process_ticks(root),
    )


def process_ticks(root: Path) -> dict[int, tuple[str, int]]:
    """Name and used ticks of every process but this one."""
    own = (tree.read_text(root, "proc/self/stat", 64) or "").partition(" ")[0]
    ticks = {}
    for name in tree.names(root, "proc"):
        if name.isdecimal() and name != own and (seen := read_stat(name, root=root)) is not None:
            ticks[int(name)] = seen.name, seen.user + seen.system
    return ticks


def ticks_between(before: Reading, after: Reading) -> list[int]:
    """Ticks between the readings, by kind; empty if one reading failed."""
    if not before.cpu_ticks or len(before.cpu_ticks) != len(after.cpu_ticks):
        return []
    return [max(0, late - early) for early, late in zip(before.cpu_ticks, after.cpu_ticks, strict=True)]


def busiest(before: Reading, after: Reading, at_least: float, most: int) -> list[tuple[str, float]]:
    """Processes by the share of one CPU that they used between the readings, largest first."""
    passed = sum(ticks_between(before, after)) / after.cpus
    if passed <= 0:
        return []
    shares = []
    for pid, (name, ticks) in after.process_ticks.items():
        started_with = before.process_ticks.get(pid, (name, 0))[1]
        shares.append((name, (ticks - started_with) / passed))
    busy = [(name, share) for name, share in shares if share >= at_least]
    return sorted(busy, key=lambda item: (-item[1], item[0]))[:most]


CPUS = "sys/devices/system/cpu"


def smt(machine: Machine) -> Finding:
    meaning = "Two hardware threads share a core's units and caches, so that one slows the other down."
    active = tree.read_text(machine.root, f"{CPUS}/smt/active")
    if active is None:
        return Finding("SMT", "not visible", "unknown", meaning, "compare `lscpu` with the CPU's data sheet")
    if active == "0":
        return Finding("SMT", "off", "good", meaning, NOTHING_TO_DO)
    advice = f"write off to /{CPUS}/smt/control, or leave the sibling of each measured CPU idle"
    return Finding("SMT", "on", "noisy", meaning, advice)


def isolated_cpus(machine: Machine) -> Finding:
    meaning = "On a CPU that is not isolated the scheduler may run other processes beside the measured one."
    isolated = tree.read_cpus(machine.root, f"{CPUS}/isolated")
    if isolated is None:
        return Finding("isolated CPUs", "not visible", "unknown", meaning, NOTHING_TO_DO)
    if not isolated:  # as on nearly all machines: another check covers the running processes
        return Finding("isolated CPUs", "none, as usual", "good", meaning, NOTHING_TO_DO)
    state = ", ".join(map(str, isolated))
    allowed = snapshot.allowed_cpus(machine.root) or []
    if set(allowed) <= set(isolated):
        return Finding("isolated CPUs", state, "good", meaning, NOTHING_TO_DO)
    advice = f"run the command there: taskset -c {','.join(map(str, isolated))}"
    return Finding("isolated CPUs", f"{state}, not used", "noisy", meaning, advice)


def virtualisation(machine: Machine) -> Finding:
    meaning = "A virtual machine shares CPUs, caches and devices with neighbours that it cannot see."
    seen = snapshot.virtualisation(machine.root)
    product = " ".join(seen[key] for key in ("vendor", "product") if seen[key])
    if seen["hypervisor_flag"] or seen["hypervisor"]:
        state = f"virtual machine ({product or seen['hypervisor'] or 'unnamed'})"
        advice = "use a machine of your own; else interleave what you compare, and repeat on another day"
        return Finding("virtualisation", state, "noisy", meaning, advice)
    if seen["hypervisor_flag"] is None and not product:
        advice = "find out whether the machine is virtual"
        return Finding("virtualisation", "not visible", "unknown", meaning, advice)
    if any(word in product for word in ("KVM", "QEMU", "Virtual", "VMware", "Amazon EC2", "Google Compute")):
        # ARM has no such flag, and bare-metal machines of a provider have the same product name: this proves nothing.
        return Finding(
            "virtualisation", product, "unknown", meaning, "find out whether the machine is virtual"
        )
    return Finding("virtualisation", f"none seen ({product or 'unnamed'})", "good", meaning, NOTHING_TO_DO)


SUPPLIES = "sys/class/power_supply"


def governor(machine: Machine) -> Finding:
    meaning = "The clock rate follows the load, so that a run's speed depends on what ran before it."
    seen = snapshot.frequency(machine.root)
    if not seen["governors"]:
        advice = "on a virtual machine only its host can report and fix the rate"
        return Finding("frequency governor", "not visible", "unknown", meaning, advice)
    state = ", ".join(seen["governors"]) + (f" ({', '.join(seen['drivers'])})" if seen["drivers"] else "")
    if seen["governors"] == ["performance"]:
        return Finding("frequency governor", state, "good", meaning, NOTHING_TO_DO)
    advice = "etude quiet on governor (writes performance to each policy's scaling_governor)"
    return Finding("frequency governor", state, "noisy", meaning, advice)


def turbo(machine: Machine) -> Finding:
    meaning = "Rates above the nominal one depend on temperature and on how many cores are busy."
    on = snapshot.turbo(machine.root)
    if on is None:
        return Finding("turbo", "not visible", "unknown", meaning, "look for it in the firmware's settings")
    if not on:
        return Finding("turbo", "off", "good", meaning, NOTHING_TO_DO)
    return Finding("turbo", "on", "noisy", meaning, "etude quiet on turbo")


def throttling(machine: Machine) -> Finding:
    meaning = "A hot CPU lowers its clock rate, most of all late in a long experiment."
    counts = [
        tree.read_int(machine.root, f"{CPUS}/{cpu}/thermal_throttle/{kind}_throttle_count")
        for cpu in tree.names(machine.root, CPUS)
        if cpu[:3] == "cpu" and cpu[3:].isdecimal()
        for kind in ("core", "package")
    ]
    known = [count for count in counts if count is not None]
    if not known:
        return Finding("thermal throttling", "not counted", "unknown", meaning, "watch the CPU's temperature")
    # Each CPU of a package has the package's count: the largest is better than the sum.
    if max(known) == 0:
        return Finding("thermal throttling", "never since boot", "good", meaning, NOTHING_TO_DO)
    advice = "cool the machine better, or turn turbo off"
    return Finding("thermal throttling", f"{max(known)} times since boot", "noisy", meaning, advice)


def power_supply(machine: Machine) -> Finding:
    meaning = "On battery, firmware and kernel save power at the expense of speed."
    kinds = {
        name: tree.read_text(machine.root, f"{SUPPLIES}/{name}/type")
        for name in tree.names(machine.root, SUPPLIES)
    }
    mains = [
        tree.read_int(machine.root, f"{SUPPLIES}/{name}/online") for name in kinds if kinds[name] == "Mains"
    ]
    discharging = any(
        tree.read_text(machine.root, f"{SUPPLIES}/{name}/status") == "Discharging"
        # the battery of a mouse is one too, but of scope Device
        and tree.read_text(machine.root, f"{SUPPLIES}/{name}/scope") != "Device"
        for name in kinds
        if kinds[name] == "Battery"
    )
    if discharging or (0 in mains and 1 not in mains):
        return Finding("power supply", "battery", "noisy", meaning, "plug the machine in")
    state = "mains" if 1 in mains else "no battery in use"
    return Finding("power supply", state, "good", meaning, NOTHING_TO_DO)


MIB = 1 << 20


def swap(machine: Machine) -> Finding:
    meaning = "Memory that was swapped out is read back at the speed of the disk, in the middle of a run."
    seen = snapshot.memory(machine.root)
    if seen["swap_total_bytes"] is None or seen["swap_used_bytes"] is None:
        return Finding("swap", "not readable", "unknown", meaning, "mount /proc")
    moved = machine.after.swapped_pages - machine.before.swapped_pages
    if moved > 0:
        return Finding(
            "swap", f"swapping now ({moved} pages)", "noisy", meaning, "free memory, then etude quiet on swap"
        )
    if seen["swap_used_bytes"] > 0:
        state = f"{seen['swap_used_bytes'] / MIB:.0f} MiB in use"
        return Finding("swap", state, "noisy", meaning, "etude quiet on swap")
    state = "unused" if seen["swap_total_bytes"] else "none"
    return Finding("swap", state, "good", meaning, NOTHING_TO_DO)


def huge_pages(machine: Machine) -> Finding:
    meaning = (
        "Whether a process gets huge pages depends on free memory, and the kernel merges pages behind it."
    )
    chosen = tree.read_chosen(machine.root, "sys/kernel/mm/transparent_hugepage/enabled")
    if chosen is None:
        return Finding("huge pages", "not available", "good", meaning, NOTHING_TO_DO)
    if chosen == "always":
        advice = "etude quiet on thp (madvise instead of always)"
        return Finding("huge pages", chosen, "noisy", meaning, advice)
    return Finding("huge pages", chosen, "good", meaning, NOTHING_TO_DO)


def address_layout(machine: Machine) -> Finding:
    """Random layouts are the good case: their variation is sampled and averaged; a fixed layout has an unknown bias."""
    meaning = "Speed depends on where memory lies; only random layouts let trials average over that luck."
    mode = tree.read_int(machine.root, "proc/sys/kernel/randomize_va_space")
    if mode is None:
        return Finding("address layout", "not readable", "unknown", meaning, "mount /proc")
    state = {0: "fixed (ASLR off)", 1: "random but for the heap", 2: "random (ASLR on)"}.get(mode, str(mode))
    if mode >= 2:
        return Finding("address layout", state, "good", meaning, NOTHING_TO_DO)
    return Finding(
        "address layout", state, "noisy", meaning, "etude quiet on aslr (kernel.randomize_va_space=2)"
    )


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
    meaning = "Without cycles and instructions a slower clock cannot be distinguished from more work."
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


GIB = 1 << 30
MIN_FREE_SHARE = 0.05


def cgroups(machine: Machine) -> Finding:
    meaning = "Only its own cgroup counts the CPU time and peak memory of all processes of a command."
    seen = snapshot.cgroup(machine.root)
    mounted = " and ".join(f"v{version}" for version in seen["versions"])
    if not mounted:
        return Finding("cgroups", "not mounted", "unknown", meaning, "mount the cgroup2 file system")
    if {"cpu", "memory"} <= set(seen["controllers"] or []):
        state = f"{mounted}, with cpu and memory"
    elif {"cpuacct", "memory"} <= controllers_of_version_1(machine):
        state = f"{mounted}, with cpuacct and memory"
    else:
        advice = "enable the cpu and memory controllers in cgroup.subtree_control"
        return Finding("cgroups", f"{mounted}, without cpu or memory", "unknown", meaning, advice)
    if not machine.privileged:
        advice = "run as root, or under systemd-run --user --scope -p Delegate=yes"
        return Finding("cgroups", f"{state}; yours only if delegated", "unknown", meaning, advice)
    return Finding("cgroups", state, "good", meaning, NOTHING_TO_DO)


def controllers_of_version_1(machine: Machine) -> set[str]:
    """Controllers of version 1; each line of /proc/self/cgroup is `number:controllers:path`."""
    fields = (line.split(":") for line in tree.read_lines(machine.root, "proc/self/cgroup"))
    return {name for field in fields if len(field) > 2 for name in field[1].split(",") if name}


def free_space(machine: Machine) -> Finding:
    meaning = "File systems slow down as they fill up, and results need room."
    try:
        seen = os.statvfs(machine.directory)
    except OSError as error:
        advice = "change to a directory that can be read"
        return Finding("free space", f"not readable: {error.strerror}", "unknown", meaning, advice)
    free, total = seen.f_bavail * seen.f_frsize, seen.f_blocks * seen.f_frsize
    state = f"{free / GIB:.1f} of {total / GIB:.1f} GiB"
    if free < GIB or free < MIN_FREE_SHARE * total:
        return Finding("free space", state, "noisy", meaning, "make room, or work on another file system")
    return Finding("free space", state, "good", meaning, NOTHING_TO_DO)


BUSY_SHARE = 0.05  # of one CPU; at 100 ticks a second, 0.2 s show no less than this
LOAD_PER_CPU = 0.2
PRESSURE_PERCENT = 1.0
STEAL_SHARE = 0.01


def busy_processes(machine: Machine) -> Finding:
    meaning = "Other processes take CPU time, caches and memory bandwidth from what is measured."
    if not ticks_between(machine.before, machine.after):
        return Finding("busy processes", "not readable", "unknown", meaning, "mount /proc")
    busy = busiest(machine.before, machine.after, at_least=BUSY_SHARE, most=3)
    if not busy:
        return Finding("busy processes", "none", "good", meaning, NOTHING_TO_DO)
    state = ", ".join(f"{name} {share:.0%}" for name, share in busy)
    return Finding("busy processes", state, "noisy", meaning, "stop them, or measure when they are done")


def load(machine: Machine) -> Finding:
    meaning = (
        "Runnable processes wait for one another, which lengthens elapsed times and widens their spread."
    )
    seen = snapshot_load(machine.root)
    if seen["load_1"] is None:
        return Finding("load average", "not readable", "unknown", meaning, "mount /proc")
    others = max(0, (seen["runnable"] or 1) - 1)  # the reader itself is runnable while it reads
    state = f"{seen['load_1']:.2f} over the last minute, {others} runnable now, {machine.after.cpus} CPUs"
    if seen["load_1"] >= LOAD_PER_CPU * machine.after.cpus or others >= machine.after.cpus:
        return Finding("load average", state, "noisy", meaning, "wait until the machine is idle")
    return Finding("load average", state, "good", meaning, NOTHING_TO_DO)


def pressure(machine: Machine) -> Finding:
    meaning = "Tasks were held up for want of a resource, as the measured command will be."
    seen = {name: snapshot_pressure(machine.root, name) for name in ("cpu", "io", "memory")}
    percent = {
        name: values["avg10"] for name, values in seen.items() if values and values["avg10"] is not None
    }
    if not percent:
        advice = "boot with psi=1 to have it (Linux 4.20 or newer)"
        return Finding("pressure", "not available", "unknown", meaning, advice)
    state = ", ".join(f"{name} {value:.1f} %" for name, value in percent.items()) + " of the last 10 s"
    if max(percent.values()) >= PRESSURE_PERCENT:
        scarce = max(percent, key=lambda name: percent[name] or 0)
        return Finding("pressure", state, "noisy", meaning, f"find what uses {scarce}, and stop it or wait")
    return Finding("pressure", state, "good", meaning, NOTHING_TO_DO)


def steal(machine: Machine) -> Finding:
    meaning = "The hypervisor gave this machine's CPUs to others; elapsed time went on meanwhile."
    passed, since_boot = ticks_between(machine.before, machine.after), machine.after.cpu_ticks
    if len(passed) < 8 or not sum(since_boot):
        return Finding("steal time", "not readable", "unknown", meaning, "mount /proc")
    now = passed[7] / sum(passed) if sum(passed) else 0.0
    ever = since_boot[7] / sum(since_boot)
    state = f"{now:.1%} now, {ever:.2%} since boot"
    if max(now, ever) >= STEAL_SHARE:
        advice = "use a machine, or an instance type, with CPUs of its own"
        return Finding("steal time", state, "noisy", meaning, advice)
    return Finding("steal time", state, "good", meaning, NOTHING_TO_DO)


Check = Callable[[Machine], Finding]

CHECKS: tuple[Check, ...] = (
    busy_processes,
    load,
    pressure,
    steal,
    governor,
    turbo,
    throttling,
    power_supply,
    smt,
    isolated_cpus,
    virtualisation,
    swap,
    huge_pages,
    address_layout,
    clock_source,
    counters,
    watchdog,
    cgroups,
    free_space,
)

BETWEEN_READINGS_S = 0.2


def pause() -> None:
    time.sleep(BETWEEN_READINGS_S)


def examine(
    root: Path = Path("/"),
    directory: Path = Path("."),
    pause: Callable[[], object] = pause,
    privileged: bool | None = None,
) -> list[Finding]:
    """One finding per check, in order of importance.

    `pause` waits between the two readings of counters: a test changes them meanwhile.
    """
    before = read_counters(root)
    pause()
    machine = Machine(
        root=root,
        directory=directory,
        before=before,
        after=read_counters(root),
        privileged=os.geteuid() == 0 if privileged is None else privileged,
    )
    return [check(machine) for check in CHECKS]
