"""Snapshot of the machine at one moment: plain data that is stored with results, to compare two results.

Everything is read from /proc, /sys and files; missing or unreadable items are None. A snapshot starts no process and
takes a few milliseconds (docs/howto/snapshot.md gives numbers).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.machine.snapshot.disks import block_devices, file_system, mounted
from etude.machine.snapshot.processor import allowed_cpus, cpu, cpu_ticks, frequency, load, pressure, turbo
from etude.machine.snapshot.programs import Command, programs, toolchain
from etude.machine.snapshot.software import (
    cgroup,
    kernel,
    limits,
    memory,
    sysctls,
    system,
    variables,
    virtualisation,
)

Part = dict[str, Any]


def take(
    root: Path = Path("/"),
    directory: Path | None = None,
    commands: Sequence[Command] = (),
    *,
    files: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Part:
    """A snapshot of the machine whose /proc and /sys are below `root`, as seen from `directory`.

    commands: to be run later; their programs are described. files: False if no program may be opened (just after a boot
    that must leave the caches empty). environment: default `os.environ`.
    """
    where = os.fspath(directory) if directory is not None else _current_directory()
    around = os.environ if environment is None else environment
    parts: dict[str, Callable[[], Any]] = {
        "system": lambda: system(root),
        "cpu": lambda: cpu(root),
        "frequency": lambda: frequency(root),
        "memory": lambda: memory(root),
        "kernel": lambda: kernel(root),
        "sysctl": lambda: sysctls(root),
        "limits": lambda: limits(root),
        "virtualisation": lambda: virtualisation(root),
        "cgroup": lambda: cgroup(root),
        "directory": lambda: file_system(root, where),
        "mounts": lambda: mounted(root),
        "disks": lambda: block_devices(root),
        "environment": lambda: variables(around),
        "programs": lambda: programs(root, commands, around) if files else None,
        "toolchain": lambda: toolchain(root, around) if files else None,
        "load": lambda: load(root),
        "python": python,
    }
    return {name: part() for name, part in parts.items()}


def python() -> Part:
    """The interpreter that Étude runs in."""
    version = ".".join(map(str, sys.version_info[:3]))
    return {"implementation": sys.implementation.name, "version": version, "executable": sys.executable}


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return "/"


__all__ = [
    "Command",
    "allowed_cpus",
    "block_devices",
    "cgroup",
    "cpu",
    "cpu_ticks",
    "file_system",
    "frequency",
    "kernel",
    "limits",
    "load",
    "memory",
    "mounted",
    "pressure",
    "programs",
    "python",
    "sysctls",
    "system",
    "take",
    "toolchain",
    "turbo",
    "variables",
    "virtualisation",
]
