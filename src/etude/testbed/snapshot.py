"""What the machine is, at one moment: plain data that goes into a result, for comparing two results.

Everything is read from /proc and /sys; what is absent or unreadable is None. A snapshot starts no process and
takes a few milliseconds.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from etude.testbed import tree

Part = dict[str, Any]

# The first CPU of /proc/cpuinfo says all that is asked of it; on big machines the whole is long and slow.
FIRST_CPU_BYTES = 8192


def take(root: Path = Path("/"), directory: Path | None = None) -> Part:
    """A snapshot of the machine whose /proc and /sys are below `root`, as seen from `directory`."""
    where = os.fspath(directory) if directory is not None else _current_directory()
    parts: dict[str, Callable[[], Part]] = {
        "system": lambda: system(root),
        "cpu": lambda: cpu(root),
        "frequency": lambda: frequency(root),
        "memory": lambda: memory(root),
        "kernel": lambda: kernel(root),
        "virtualisation": lambda: virtualisation(root),
        "cgroup": lambda: cgroup(root),
        "directory": lambda: file_system(root, where),
        "load": lambda: load(root),
        "python": python,
    }
    return {name: part() for name, part in parts.items()}


def system(root: Path) -> Part:
    release = os_release(root)
    uptime = (tree.read_text(root, "proc/uptime") or "").split()
    return {
        "kernel_release": tree.read_text(root, "proc/sys/kernel/osrelease"),
        "kernel_version": tree.read_text(root, "proc/sys/kernel/version"),
        "command_line": tree.read_text(root, "proc/cmdline"),
        "distribution": release.get("PRETTY_NAME"),
        "distribution_id": release.get("ID"),
        "distribution_version": release.get("VERSION_ID"),
        "architecture": architecture(root),
        "hostname": tree.read_text(root, "proc/sys/kernel/hostname"),
        "boot_id": tree.read_text(root, "proc/sys/kernel/random/boot_id"),
        "uptime_s": tree.to_float(uptime[0]) if uptime else None,
    }


def os_release(root: Path) -> dict[str, str]:
    lines = tree.read_lines(root, "etc/os-release") or tree.read_lines(root, "usr/lib/os-release")
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def architecture(root: Path) -> str | None:
    """/proc/sys/kernel/arch exists since Linux 6.1; before that only the running machine can be asked."""
    recorded = tree.read_text(root, "proc/sys/kernel/arch")
    return recorded or (os.uname().machine if root == Path("/") else None)


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
    """Caches that CPU 0 sees, nearest first."""
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
    """Who sets the clock rate, and between which bounds; kinds of cores are policies of their own."""
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
    """Whether rates above the nominal one are allowed: intel_pstate tells the contrary, others `boost`."""
    if (off := tree.read_int(root, "sys/devices/system/cpu/intel_pstate/no_turbo")) is not None:
        return off == 0
    return _yes(tree.read_text(root, "sys/devices/system/cpu/cpufreq/boost"))


def memory(root: Path) -> Part:
    sizes = tree.read_sizes(root, "proc/meminfo")
    swap_total, swap_free = sizes.get("SwapTotal"), sizes.get("SwapFree")
    return {
        "total_bytes": sizes.get("MemTotal"),
        "available_bytes": sizes.get("MemAvailable"),
        "swap_total_bytes": swap_total,
        "swap_used_bytes": None if swap_total is None or swap_free is None else swap_total - swap_free,
        "swappiness": tree.read_int(root, "proc/sys/vm/swappiness"),
        "page_bytes": os.sysconf("SC_PAGE_SIZE") if root == Path("/") else None,
        "huge_page_bytes": sizes.get("Hugepagesize"),
        "huge_pages": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_defrag": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/defrag"),
        "dirty_ratio": tree.read_int(root, "proc/sys/vm/dirty_ratio"),
        "dirty_background_ratio": tree.read_int(root, "proc/sys/vm/dirty_background_ratio"),
    }


def kernel(root: Path) -> Part:
    """Settings of the kernel that move numbers."""
    clock = "sys/devices/system/clocksource/clocksource0"
    weaknesses = "sys/devices/system/cpu/vulnerabilities"
    return {
        "aslr": tree.read_int(root, "proc/sys/kernel/randomize_va_space"),
        "clock_source": tree.read_text(root, f"{clock}/current_clocksource"),
        "clock_sources": (tree.read_text(root, f"{clock}/available_clocksource") or "").split() or None,
        "perf_event_paranoid": tree.read_int(root, "proc/sys/kernel/perf_event_paranoid"),
        "nmi_watchdog": tree.read_int(root, "proc/sys/kernel/nmi_watchdog"),
        "autogroup": tree.read_int(root, "proc/sys/kernel/sched_autogroup_enabled"),
        "mitigations": {
            name: tree.read_text(root, f"{weaknesses}/{name}") for name in tree.names(root, weaknesses)
        }
        or None,
    }


def virtualisation(root: Path) -> Part:
    dmi = "sys/class/dmi/id"
    flags = (cpu_info(root).get("flags") or "").split()
    return {
        "hypervisor_flag": ("hypervisor" in flags) if flags else None,
        "hypervisor": tree.read_text(root, "sys/hypervisor/type"),
        "vendor": tree.read_text(root, f"{dmi}/sys_vendor"),
        "product": tree.read_text(root, f"{dmi}/product_name"),
    }


def cgroup(root: Path) -> Part:
    """Versions that are mounted, and what limits this process by its own group."""
    lines = tree.read_lines(root, "proc/self/mounts")
    kinds = {fields[2]: fields[1] for fields in (line.split() for line in lines) if len(fields) > 2}
    own = next(
        (line[3:] for line in tree.read_lines(root, "proc/self/cgroup") if line.startswith("0::")), None
    )
    group = kinds.get("cgroup2", "").lstrip("/") + (own or "").rstrip("/")
    controllers = (
        tree.read_text(root, f"{kinds['cgroup2'].lstrip('/')}/cgroup.controllers")
        if "cgroup2" in kinds
        else None
    )
    return {
        "versions": [version for version, kind in ((1, "cgroup"), (2, "cgroup2")) if kind in kinds],
        "controllers": controllers.split() if controllers else None,
        "cpu_max": tree.read_text(root, f"{group}/cpu.max") if "cgroup2" in kinds else None,
        "memory_max": tree.read_text(root, f"{group}/memory.max") if "cgroup2" in kinds else None,
    }


def file_system(root: Path, directory: str) -> Part:
    """The file system of a directory: the deepest mount above it; of several on one place, the last."""
    best: list[str] | None = None
    depth = -1
    for line in tree.read_lines(root, "proc/self/mountinfo"):
        fields = line.split()
        if len(fields) < 10 or "-" not in fields[6:]:
            continue
        mount_point = unescape(fields[4])
        inside = mount_point == "/" or directory == mount_point or directory.startswith(mount_point + "/")
        if inside and len(mount_point) >= depth:
            best, depth = fields, len(mount_point)
    if best is None:
        return {
            "path": directory,
            "mount_point": None,
            "type": None,
            "device": None,
            "options": None,
            "scheduler": None,
        }
    kind, device, *more = best[best.index("-", 6) + 1 :]
    return {
        "path": directory,
        "mount_point": unescape(best[4]),
        "type": kind,
        "device": unescape(device),
        "options": ",".join(dict.fromkeys([*best[5].split(","), *(more[0].split(",") if more else [])])),
        "scheduler": scheduler(root, best[2]),
    }


def scheduler(root: Path, number: str) -> str | None:
    """The I/O scheduler of a block device; that of a partition belongs to the disk above it."""
    base = f"sys/dev/block/{number}"
    return tree.read_chosen(root, f"{base}/queue/scheduler") or tree.read_chosen(
        root, f"{base}/../queue/scheduler"
    )


def unescape(path: str) -> str:
    """Blanks and backslashes stand in mountinfo as three octal digits."""
    for escaped, plain in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        path = path.replace(escaped, plain)
    return path


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
    """Percent of the last 10 and 60 s in which somebody waited for the resource; None where PSI is off."""
    for line in tree.read_lines(root, f"proc/pressure/{resource}"):
        kind, *fields = line.split() or [""]
        if kind == "some":
            values = dict(field.partition("=")[::2] for field in fields)
            return {name: tree.to_float(values.get(name)) for name in ("avg10", "avg60")}
    return None


def python() -> Part:
    version = ".".join(map(str, sys.version_info[:3]))
    return {"implementation": sys.implementation.name, "version": version, "executable": sys.executable}


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return "/"


def _yes(text: str | None) -> bool | None:
    return None if text is None else text != "0"


def _length(items: list[int] | None) -> int | None:
    return None if items is None else len(items)


def _distinct(values: Any) -> list[str]:
    return sorted({value for value in values if value is not None})
