"""System software: kernel and its settings, distribution, memory, virtualisation and cgroup, environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from etude.machine import tree
from etude.machine.snapshot.processor import cpu_info
from etude.masking import MASKED, SECRET_VARIABLE, Mask

Part = dict[str, Any]


def system(root: Path) -> Part:
    """Kernel, command line, distribution, and boot time."""
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
    """Architecture from /proc/sys/kernel/arch, which exists since Linux 6.1; before that, of the running machine
    only."""
    recorded = tree.read_text(root, "proc/sys/kernel/arch")
    return recorded or (os.uname().machine if root == Path("/") else None)


def memory(root: Path) -> Part:
    """Sizes in bytes."""
    sizes = tree.read_sizes(root, "proc/meminfo")
    swap_total, swap_free = sizes.get("SwapTotal"), sizes.get("SwapFree")
    return {
        "total_bytes": sizes.get("MemTotal"),
        "available_bytes": sizes.get("MemAvailable"),
        "swap_total_bytes": swap_total,
        "swap_used_bytes": None if swap_total is None or swap_free is None else swap_total - swap_free,
        "swappiness": tree.read_int(root, "proc/sys/vm/swappiness"),
        "free_bytes": sizes.get("MemFree"),
        "cached_bytes": sizes.get("Cached"),
        "dirty_bytes": sizes.get("Dirty"),
        "swaps": swaps(root),
        "page_bytes": os.sysconf("SC_PAGE_SIZE") if root == Path("/") else None,
        "huge_page_bytes": sizes.get("Hugepagesize"),
        "huge_pages": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
        "huge_pages_defrag": tree.read_chosen(root, "sys/kernel/mm/transparent_hugepage/defrag"),
        "huge_pages_reserved": sizes.get("HugePages_Total"),
        "same_page_merging": tree.read_int(root, "sys/kernel/mm/ksm/run"),
        "compressed_swap": tree.read_text(root, "sys/module/zswap/parameters/enabled"),
        "dirty_ratio": tree.read_int(root, "proc/sys/vm/dirty_ratio"),
        "dirty_background_ratio": tree.read_int(root, "proc/sys/vm/dirty_background_ratio"),
    }


def swaps(root: Path) -> list[str]:
    """Swap devices and files, with their priority."""
    lines = [line.split() for line in tree.read_lines(root, "proc/swaps")[1:]]
    return [f"{fields[0]} {fields[-1]}" for fields in lines if len(fields) >= 5]


_USUAL = Mask()
LONGEST = 500
"""Maximum characters of a value."""
PERSONAL = re.compile(
    r"^(?:USER|LOGNAME|USERNAME|MAIL|EMAIL|HOSTNAME|HOST|NAME|SUDO_.*|SSH_.*|GIT_(?:AUTHOR|COMMITTER)_.*|DEBEMAIL"
    r"|DEBFULLNAME|DBUS_SESSION_BUS_ADDRESS|XAUTHORITY|SESSION_MANAGER|KRB5CCNAME|SLURMD?_.*|ETUDE_(?:JOB|NODE|RUN|SETTLED))$"
)
"""Variables of a user, login, scheduler's job or boot: they influence no result."""
RANDOM = re.compile(
    r"(?<![\w./+-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])(?=[\w+=-]*[A-Z])[A-Za-z0-9+=_-]{24,}(?![\w./])"
)
"""A long word of digits, small and capital letters, that is no path: a likely key."""


def variables(environment: Mapping[str, str]) -> Part:
    """All variables, with secrets masked; and their total bytes, which shift the stack of programs."""
    shown = {name: value_shown(name, environment[name]) for name in sorted(environment)}
    size = sum(len(name) + len(value) + 2 for name, value in environment.items())
    return {"variables": {_plain(name): value for name, value in shown.items()}, "size_bytes": size}


def value_shown(name: str, value: str) -> str:
    """The value, masked and shortened for publication."""
    if value and (SECRET_VARIABLE.search(name) or PERSONAL.match(name)):
        return MASKED
    return _plain(RANDOM.sub(MASKED, _USUAL.text(value)))[:LONGEST]


def _plain(text: str) -> str:
    """The text with invalid UTF-8 replaced, so that it can be written as JSON."""
    return text.encode("utf-8", "replace").decode("utf-8")


CONTAINERS = ("docker", "kubepods", "libpod", "lxc", "machine.slice", "garden", "actions_job")
"""Words of a control group's path that only containers have."""


def virtualisation(root: Path) -> Part:
    """Signs of a hypervisor from processor and firmware, and signs of a container."""
    dmi = "sys/class/dmi/id"
    flags = (cpu_info(root).get("flags") or "").split()
    return {
        "hypervisor_flag": ("hypervisor" in flags) if flags else None,
        "hypervisor": tree.read_text(root, "sys/hypervisor/type"),
        "vendor": tree.read_text(root, f"{dmi}/sys_vendor"),
        "product": tree.read_text(root, f"{dmi}/product_name"),
        "container": container(root),
    }


def container(root: Path) -> str | None:
    """Kind of container, by its manager's mark; None without any sign."""
    if said := tree.read_text(root, "run/systemd/container", 64):
        return said
    for mark, kind in (("run/.containerenv", "podman"), (".dockerenv", "docker")):
        if os.path.exists(os.path.join(root, mark)):
            return kind
    groups = tree.read_text(root, "proc/self/cgroup", 4096) or ""
    return next((word for word in CONTAINERS if word in groups), None)


def cgroup(root: Path) -> Part:
    """Mounted versions, and the limits of this process's own group."""
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


SYSCTLS = (
    *("fs.aio-max-nr", "fs.file-max", "fs.nr_open", "fs.pipe-max-size", "kernel.io_uring_disabled"),
    *("kernel.nmi_watchdog", "kernel.numa_balancing", "kernel.perf_cpu_time_max_percent"),
    *("kernel.perf_event_max_sample_rate", "kernel.perf_event_paranoid", "kernel.pid_max"),
    *("kernel.printk", "kernel.randomize_va_space", "kernel.sched_autogroup_enabled"),
    *("kernel.sched_cfs_bandwidth_slice_us", "kernel.sched_deadline_period_max_us"),
    *("kernel.sched_latency_ns", "kernel.sched_migration_cost_ns"),
    *("kernel.sched_min_granularity_ns", "kernel.sched_rr_timeslice_ms"),
    *("kernel.sched_rt_period_us", "kernel.sched_rt_runtime_us", "kernel.sched_schedstats"),
    *("kernel.sched_util_clamp_max", "kernel.sched_wakeup_granularity_ns", "kernel.shmmax"),
    *("kernel.soft_watchdog", "kernel.task_delayacct", "kernel.threads-max"),
    *("kernel.timer_migration", "kernel.unprivileged_bpf_disabled", "kernel.watchdog"),
    *("kernel.watchdog_thresh", "kernel.yama.ptrace_scope", "net.core.bpf_jit_enable"),
    *("net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc"),
    *("net.core.netdev_budget", "net.core.netdev_max_backlog", "net.core.rmem_default"),
    *("net.core.rmem_max", "net.core.somaxconn", "net.core.wmem_default", "net.core.wmem_max"),
    *("net.ipv4.ip_local_port_range", "net.ipv4.tcp_autocorking"),
    *("net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", "net.ipv4.tcp_fastopen"),
    *("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_mem"),
    *("net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_rmem"),
    *("net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps"),
    *("net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem"),
    *("vm.admin_reserve_kbytes", "vm.compaction_proactiveness", "vm.dirty_background_bytes"),
    *("vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_expire_centisecs", "vm.dirty_ratio"),
    *("vm.dirty_writeback_centisecs", "vm.dirtytime_expire_seconds", "vm.extfrag_threshold"),
    *("vm.laptop_mode", "vm.max_map_count", "vm.min_free_kbytes", "vm.mmap_min_addr"),
    *("vm.nr_hugepages", "vm.nr_overcommit_hugepages", "vm.overcommit_kbytes"),
    *("vm.overcommit_memory", "vm.overcommit_ratio", "vm.page-cluster"),
    *("vm.percpu_pagelist_high_fraction", "vm.stat_interval", "vm.swappiness"),
    *("vm.unprivileged_userfaultfd", "vm.vfs_cache_pressure", "vm.watermark_boost_factor"),
    *("vm.watermark_scale_factor", "vm.zone_reclaim_mode"),
)
"""Sysctls that control resource limits, scheduling, writeback and eviction."""
MAX_SETTING = 200


def kernel(root: Path) -> Part:
    """Kernel settings that are no sysctls, and those recorded since version 1."""
    clock = "sys/devices/system/clocksource/clocksource0"
    weaknesses = "sys/devices/system/cpu/vulnerabilities"
    return {
        "aslr": tree.read_int(root, "proc/sys/kernel/randomize_va_space"),
        "clock_source": tree.read_text(root, f"{clock}/current_clocksource"),
        "clock_sources": (tree.read_text(root, f"{clock}/available_clocksource") or "").split() or None,
        "perf_event_paranoid": tree.read_int(root, "proc/sys/kernel/perf_event_paranoid"),
        "nmi_watchdog": tree.read_int(root, "proc/sys/kernel/nmi_watchdog"),
        "autogroup": tree.read_int(root, "proc/sys/kernel/sched_autogroup_enabled"),
        "tainted": tree.read_int(root, "proc/sys/kernel/tainted"),
        "mitigations": {
            name: tree.read_text(root, f"{weaknesses}/{name}") for name in tree.names(root, weaknesses)
        }
        or None,
    }


def sysctls(root: Path) -> Part:
    """The sysctls of `SYSCTLS` that this kernel has, as text; fields separated by single blanks."""
    found = {}
    for name in SYSCTLS:
        text = tree.read_text(root, f"proc/sys/{name.replace('.', '/')}", MAX_SETTING)
        if text is not None:
            found[name] = " ".join(text.split())
    return found


def limits(root: Path) -> Part | None:
    """Resource limits of this process and its children: soft and hard limit, as in /proc/self/limits."""
    found = {}
    for line in tree.read_lines(root, "proc/self/limits")[1:]:
        name, fields = line[:26].strip(), line[26:].split()
        if name and len(fields) >= 2:
            found[name.removeprefix("Max ").replace(" ", "_")] = f"{fields[0]} {fields[1]}"
    return found or None
