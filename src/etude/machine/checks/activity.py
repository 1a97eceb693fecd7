"""What else the machine is doing."""

from etude.machine.finding import NOTHING_TO_DO, Finding, Machine
from etude.machine.reading import busiest, ticks_between
from etude.machine.snapshot import load as snapshot_load
from etude.machine.snapshot import pressure as snapshot_pressure

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
