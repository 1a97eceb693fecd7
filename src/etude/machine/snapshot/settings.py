"""Kernel settings that influence performance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from etude.machine import tree

Part = dict[str, Any]

SYSCTLS = (
    *("fs.aio-max-nr", "fs.file-max", "fs.nr_open", "fs.pipe-max-size"),
    *(
        "kernel.io_uring_disabled",
        "kernel.nmi_watchdog",
        "kernel.numa_balancing",
        "kernel.perf_cpu_time_max_percent",
    ),
    *("kernel.perf_event_max_sample_rate", "kernel.perf_event_paranoid", "kernel.pid_max", "kernel.printk"),
    *("kernel.randomize_va_space", "kernel.sched_autogroup_enabled", "kernel.sched_cfs_bandwidth_slice_us"),
    *("kernel.sched_deadline_period_max_us", "kernel.sched_latency_ns", "kernel.sched_migration_cost_ns"),
    *("kernel.sched_min_granularity_ns", "kernel.sched_rr_timeslice_ms", "kernel.sched_rt_period_us"),
    *("kernel.sched_rt_runtime_us", "kernel.sched_schedstats", "kernel.sched_util_clamp_max"),
    *("kernel.sched_wakeup_granularity_ns", "kernel.shmmax", "kernel.soft_watchdog", "kernel.task_delayacct"),
    *("kernel.threads-max", "kernel.timer_migration", "kernel.unprivileged_bpf_disabled", "kernel.watchdog"),
    *("kernel.watchdog_thresh", "kernel.yama.ptrace_scope"),
    *("net.core.bpf_jit_enable", "net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc"),
    *("net.core.netdev_budget", "net.core.netdev_max_backlog", "net.core.rmem_default", "net.core.rmem_max"),
    *("net.core.somaxconn", "net.core.wmem_default", "net.core.wmem_max"),
    *("net.ipv4.ip_local_port_range", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_congestion_control"),
    *(
        "net.ipv4.tcp_ecn",
        "net.ipv4.tcp_fastopen",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_max_syn_backlog",
    ),
    *("net.ipv4.tcp_mem", "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_rmem"),
    *("net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps"),
    *("net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem"),
    *("vm.admin_reserve_kbytes", "vm.compaction_proactiveness", "vm.dirty_background_bytes"),
    *("vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_expire_centisecs", "vm.dirty_ratio"),
    *(
        "vm.dirty_writeback_centisecs",
        "vm.dirtytime_expire_seconds",
        "vm.extfrag_threshold",
        "vm.laptop_mode",
    ),
    *(
        "vm.max_map_count",
        "vm.min_free_kbytes",
        "vm.mmap_min_addr",
        "vm.nr_hugepages",
        "vm.nr_overcommit_hugepages",
    ),
    *("vm.overcommit_kbytes", "vm.overcommit_memory", "vm.overcommit_ratio", "vm.page-cluster"),
    *("vm.percpu_pagelist_high_fraction", "vm.stat_interval", "vm.swappiness", "vm.unprivileged_userfaultfd"),
    *(
        "vm.vfs_cache_pressure",
        "vm.watermark_boost_factor",
        "vm.watermark_scale_factor",
        "vm.zone_reclaim_mode",
    ),
)
"""Sysctls that control resource limits, scheduling, writeback and eviction."""
LONGEST = 200


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
        text = tree.read_text(root, f"proc/sys/{name.replace('.', '/')}", LONGEST)
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
