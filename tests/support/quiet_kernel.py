"""A machine below a root that answers as Linux does: settings that change others, refusals, swap, threads.

`faults` decides before and after each effect whether the kernel refuses, or the process is killed there.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from etude.errors import MachineRefuses
from etude.machine.quiet.operation import Machine

CPU, IRQ, VM = "sys/devices/system/cpu", "proc/irq", "proc/sys/vm"
POLICY = f"{CPU}/cpufreq/policy"
BLANK = "\\040"
MANAGED = f"{IRQ}/7/smp_affinity_list"
ONDEMAND = {"up_threshold": "95", "ignore_nice_load": "0"}
PROCESSES = {1: "systemd", 20: "cron", 21: "cupsd", 22: "bash", 23: "irqbalance", 24: "sshd"}

TREE = {
    "proc/uptime": "1000.00 3000.00",
    "proc/self/mounts": "tmpfs /run tmpfs rw 0 0\n",
    "proc/sys/kernel/random/boot_id": "first-boot",
    "proc/sys/kernel/randomize_va_space": "1",
    "proc/sys/kernel/nmi_watchdog": "1",
    "proc/sys/kernel/soft_watchdog": "1",
    "proc/sys/kernel/perf_event_max_sample_rate": "100000",
    "proc/sys/kernel/perf_cpu_time_max_percent": "25",
    "proc/sys/kernel/numa_balancing": "1",
    f"{VM}/compaction_proactiveness": "20",
    f"{VM}/dirty_background_ratio": "0",
    f"{VM}/dirty_background_bytes": "12345678",
    f"{VM}/dirty_ratio": "20",
    f"{VM}/dirty_bytes": "0",
    f"{VM}/dirty_writeback_centisecs": "500",
    "sys/kernel/mm/ksm/run": "1",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "sys/kernel/mm/transparent_hugepage/defrag": "always [defer] defer+madvise madvise never",
    f"{CPU}/online": "0-3",
    f"{CPU}/cpufreq/boost": "1",
    f"{CPU}/intel_pstate/no_turbo": "0",
    f"{IRQ}/default_smp_affinity": "f",
    f"{IRQ}/1/smp_affinity_list": "0-3",
    f"{IRQ}/2/smp_affinity_list": "3",
    MANAGED: "3",
    "sys/devices/virtual/workqueue/cpumask": "f",
    "proc/meminfo": "MemTotal: 1000000 kB\nMemAvailable: 900000 kB",
    "proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1000 100 5\n"
    "/swap\\040file file 1000 0 -2\n/dev/zram0 partition 1000 0 -3",
    "etc/fstab": "/dev/sda2 none swap sw,discard=pages 0 0",
}
GOVERNORS = {0: "powersave", 1: "ondemand", 2: "userspace", 3: "performance"}


class Killed(BaseException):
    """The process ends here."""


Faults = Callable[[str], None]


def no_faults(_: str) -> None:
    """All goes well."""


@dataclass(frozen=True)
class Kernel(Machine):
    """Lay it out with `laid_out`."""

    faults: Faults = no_faults
    threads: dict[int, set[int]] = field(default_factory=dict)
    """Affinities."""
    tools: list[str] = field(default_factory=list)
    ssh: bool = False

    def write(self, path: str, text: str) -> None:
        self.faults(path)
        self._write(path, text)
        self.faults(path)

    def _write(self, path: str, text: str) -> None:
        file = self.root / path
        before = file.read_text().strip()
        if path == MANAGED:
            raise OSError(errno.EIO, "Input/output error", str(file))
        if "[" in before:
            words = [word.strip("[]") for word in before.split()]
            if text not in words:
                raise OSError(errno.EINVAL, "Invalid argument", str(file))
            text = " ".join(f"[{word}]" if word == text else word for word in words)
        if path.startswith(f"{VM}/dirty_") and path.endswith(("_ratio", "_bytes")) and text != before:
            other = (
                path.replace("_ratio", "_bytes")
                if path.endswith("_ratio")
                else path.replace("_bytes", "_ratio")
            )
            (self.root / other).write_text("0\n")
        if path.endswith("energy_performance_preference"):
            governor = (file.parent / "scaling_governor").read_text().strip()
            if governor == "performance" and text != "performance":
                raise OSError(errno.EBUSY, "Device or resource busy", str(file))
        if path.endswith("scaling_setspeed") and before == "<unsupported>":
            raise OSError(errno.EINVAL, "Invalid argument", str(file))
        if path.endswith("scaling_governor") and text != before:
            govern(file.parent, text)
        if path == f"{CPU}/cpufreq/boost":
            for each in self.root.glob(f"{CPU}/cpufreq/policy*/boost"):
                each.write_text(f"{text}\n")
        file.write_text(f"{text}\n")

    def writable(self, path: str) -> bool:
        return (self.root / path).exists()

    def tool(self, *words: str, patience_s: float | None = None) -> str:
        self.faults(words[0])
        self.tools.append(" ".join(words))
        shown = words[-1].replace(" ", BLANK)
        head, *areas = (self.root / "proc/swaps").read_text().splitlines()
        if words[0] == "swapoff":
            gone = next((area for area in areas if area.split()[0] == shown), None)
            if gone is None:
                raise MachineRefuses(f"swapoff: {words[-1]}: Invalid argument")
            areas.remove(gone)
            areas = [_up(area, int(gone.split()[4])) for area in areas]
        elif words[0] == "swapon":
            lowest = min([-1, *(int(area.split()[4]) for area in areas)])
            priority = words[words.index("--priority") + 1] if "--priority" in words else str(lowest - 1)
            used = "100" if words[-1] == "/dev/sda2" else "0"
            kind = "file" if "file" in words[-1] else "partition"
            areas.append(f"{shown} {kind} 1000 {used} {priority}")
            areas.sort(key=lambda area: -int(area.split()[4]))
        (self.root / "proc/swaps").write_text("\n".join([head, *areas]) + "\n")
        self.faults(words[0])
        return ""

    def affinity(self, thread: int) -> set[int]:
        if thread not in self.threads:
            raise ProcessLookupError
        return set(self.threads[thread])

    def set_affinity(self, thread: int, cpus: set[int]) -> None:
        self.faults(f"thread {thread}")
        self.threads[thread] = set(cpus)
        self.faults(f"thread {thread}")

    def signal(self, process: int, number: signal.Signals) -> None:
        self.faults(f"process {process}")
        state = "T" if number == signal.SIGSTOP else "S"
        for file in self.root.glob(f"proc/{process}/**/stat"):
            head, _, rest = file.read_text().partition(") ")
            file.write_text(f"{head}) {state}{rest[1:]}")

    def own(self) -> set[int]:
        return {22}

    def process(self, number: int, name: str, *, state: str = "S", above: int = 1, start: int = 500) -> None:
        line = f"{number} ({name}) {state} {above} 0 0 0 -1 4194304 " + "0 " * 12 + f"{start} 0 0\n"
        for place in (f"proc/{number}", f"proc/{number}/task/{number}"):
            (self.root / place).mkdir(parents=True, exist_ok=True)
            (self.root / place / "stat").write_text(line)
        (self.root / f"proc/{number}/comm").write_text(f"{name}\n")
        self.threads.setdefault(number, {0, 1, 2, 3})

    def boot(self, boot_id: str) -> None:
        """Another boot: what is in /run is gone."""
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"{boot_id}\n")
        for file in (self.root / "run").iterdir():
            file.unlink()

    def seen(self) -> dict[str, object]:
        """All that there is, byte for byte."""
        files: dict[str, object] = {
            str(file.relative_to(self.root)): file.read_bytes()
            for folder, _, names in os.walk(self.root)
            for file in (Path(folder, name) for name in names)
        }
        return files | {f"thread {number}": sorted(cpus) for number, cpus in self.threads.items()}


def _up(area: str, gone: int) -> str:
    """Numbers below the one that has gone move up, as the kernel has it for those that it gave."""
    *words, priority = area.split()
    return " ".join([*words, str(int(priority) + 1) if gone < 0 and int(priority) < gone else priority])


def govern(policy: Path, governor: str) -> None:
    """What comes and goes with a governor."""
    for name in ONDEMAND:
        (policy / "ondemand" / name).unlink(missing_ok=True)
    if governor == "ondemand":
        (policy / "ondemand").mkdir(exist_ok=True)
        for name, value in ONDEMAND.items():
            (policy / "ondemand" / name).write_text(f"{value}\n")
    preference = policy / "energy_performance_preference"
    if governor == "performance" and preference.exists():
        preference.write_text("performance\n")
    (policy / "scaling_setspeed").write_text("800000\n" if governor == "userspace" else "<unsupported>\n")


def laid_out(root: Path, faults: Faults = no_faults) -> Kernel:
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{text.strip()}\n")
    (root / "run").mkdir()
    kernel = Kernel(root, faults=faults)
    for number, governor in GOVERNORS.items():
        policy = root / f"{POLICY}{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_governor").write_text(f"{governor}\n")
        (policy / "energy_performance_preference").write_text("balance_power\n")
        (policy / "boost").write_text("0\n" if number == 2 else "1\n")
        govern(policy, governor)
    (root / f"{POLICY}1/ondemand/up_threshold").write_text("70\n")
    (root / f"{POLICY}2/scaling_setspeed").write_text("1600000\n")
    for number, name in PROCESSES.items():
        kernel.process(number, name, start=number)
    kernel.threads[21] = {1, 3}
    return kernel
