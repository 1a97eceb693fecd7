"""The CPUs, their caches, frequency settings and present activity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.machine import tree

Part = dict[str, Any]

# The first CPU of /proc/cpuinfo is enough; on big machines the whole file is long and slow.
FIRST_CPU_BYTES = 8192


def cpu(root: Path) -> Part:
    info = cpu_info(root)
    online = tree.read_cpus(root, "sys/devices/system/cpu/online")
    flags = info.get("flags") or info.get("Features")
    return {
        "model": info.get("model name") or info.get("Hardware") or info.get("CPU part"),
        "vendor": info.get("vendor_id") or info.get("CPU implementer"),
        "microcode": info.get("microcode"),
        "flags": len(flags.split()) if flags else None,
        "possible": _length(tree.read_cpus(root, "sys/devices/system/cpu/possible")),
        "online": _length(online),
        "allowed": allowed_cpus(root),
        "isolated": tree.read_cpus(root, "sys/devices/system/cpu/isolated"),
        "nohz_full": tree.read_cpus(root, "sys/devices/system/cpu/nohz_full"),
        "smt": _yes(tree.read_text(root, "sys/devices/system/cpu/smt/active")),
        "sockets": sockets(root, online or []),
        "numa_nodes": _length(tree.read_cpus(root, "sys/devices/system/node/online")),
        "caches": caches(root),
    }


def cpu_info(root: Path) -> dict[str, str]:
    """Members of the first CPU in /proc/cpuinfo; their names differ between architectures."""
    info: dict[str, str] = {}
    for line in (tree.read_text(root, "proc/cpuinfo", FIRST_CPU_BYTES) or "").splitlines():
        name, colon, value = line.partition(":")
        if not colon and info:
            break
        info[name.strip()] = value.strip()
    return info


def allowed_cpus(root: Path) -> list[int] | None:
    """The CPUs that this process may use."""
    for line in tree.read_lines(root, "proc/self/status"):
        if line.startswith("Cpus_allowed_list:"):
            return tree.to_cpus(line.partition(":")[2])
    return None


def sockets(root: Path, online: list[int]) -> int | None:
    path = "sys/devices/system/cpu/cpu{}/topology/physical_package_id"
    packages = {tree.read_int(root, path.format(number)) for number in online}
    return len(packages - {None}) or None


def caches(root: Path) -> list[Part]:
    """Caches of CPU 0, nearest first."""
    base = "sys/devices/system/cpu/cpu0/cache"
    found = [
        {
            "level": tree.read_int(root, f"{base}/{name}/level"),
            "type": tree.read_text(root, f"{base}/{name}/type"),
            "size_bytes": size_bytes(tree.read_text(root, f"{base}/{name}/size")),
            "shared_by": _length(tree.read_cpus(root, f"{base}/{name}/shared_cpu_list")),
        }
        for name in tree.names(root, base)
        if name.startswith("index")
    ]
    return [cache for cache in found if cache["level"] is not None]


def size_bytes(text: str | None) -> int | None:
    """Bytes of a size such as `32K`."""
    if not text:
        return None
    number = tree.to_int(text.rstrip("KMG"))
    return None if number is None else number << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


def frequency(root: Path) -> Part:
    """Governors, drivers and frequency limits; kinds of cores have policies of their own."""
    base = "sys/devices/system/cpu/cpufreq"
    policies = [f"{base}/{name}" for name in tree.names(root, base) if name.startswith("policy")]
    lowest = [tree.read_int(root, f"{policy}/scaling_min_freq") for policy in policies]
    highest = [tree.read_int(root, f"{policy}/scaling_max_freq") for policy in policies]
    return {
        "drivers": _distinct(tree.read_text(root, f"{policy}/scaling_driver") for policy in policies),
        "governors": _distinct(tree.read_text(root, f"{policy}/scaling_governor") for policy in policies),
        "preferences": _distinct(
            tree.read_text(root, f"{policy}/energy_performance_preference") for policy in policies
        ),
        "lowest_hz": min((khz * 1000 for khz in lowest if khz is not None), default=None),
        "highest_hz": max((khz * 1000 for khz in highest if khz is not None), default=None),
        "turbo": turbo(root),
        "idle_driver": tree.read_text(root, "sys/devices/system/cpu/cpuidle/current_driver"),
        "idle_governor": tree.read_text(root, "sys/devices/system/cpu/cpuidle/current_governor_ro"),
    }


def turbo(root: Path) -> bool | None:
    """True if frequencies above the nominal one are allowed: intel_pstate reports the opposite, others `boost`."""
    if (off := tree.read_int(root, "sys/devices/system/cpu/intel_pstate/no_turbo")) is not None:
        return off == 0
    return _yes(tree.read_text(root, "sys/devices/system/cpu/cpufreq/boost"))


def _yes(text: str | None) -> bool | None:
    return None if text is None else text != "0"


def _length(items: list[int] | None) -> int | None:
    return None if items is None else len(items)


def _distinct(values: Any) -> list[str]:
    return sorted({value for value in values if value is not None})


def load(root: Path) -> Part:
    averages = (tree.read_text(root, "proc/loadavg") or "").split()
    ticks = cpu_ticks(root)
    return {
        "load_1": tree.to_float(averages[0]) if averages else None,
        "load_5": tree.to_float(averages[1]) if len(averages) > 1 else None,
        "load_15": tree.to_float(averages[2]) if len(averages) > 2 else None,
        "runnable": tree.to_int(averages[3].partition("/")[0]) if len(averages) > 3 else None,
        "pressure": {name: pressure(root, name) for name in ("cpu", "io", "memory")},
        "steal_ticks": ticks[7] if len(ticks) > 7 else None,
        "total_ticks": sum(ticks[:8]) if ticks else None,
    }


def cpu_ticks(root: Path) -> list[int]:
    """Ticks of all CPUs since boot: user, nice, system, idle, iowait, irq, softirq, steal, …"""
    first = (tree.read_text(root, "proc/stat", 4096) or "").partition("\n")[0].split()
    if not first or first[0] != "cpu":
        return []
    return [tree.to_int(field) or 0 for field in first[1:]]


def pressure(root: Path, resource: str) -> dict[str, float | None] | None:
    """Percent of the last 10 and 60 s in which some task waited for the resource; None without PSI."""
    for line in tree.read_lines(root, f"proc/pressure/{resource}"):
        kind, *fields = line.split() or [""]
        if kind == "some":
            values = dict(field.partition("=")[::2] for field in fields)
            return {name: tree.to_float(values.get(name)) for name in ("avg10", "avg60")}
    return None
