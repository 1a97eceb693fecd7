"""The machines that made inputs are said to be measured on, and what is fixed in documents that a writer made."""

from __future__ import annotations

import copy
import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude.machine.boot.record import boot_id
from etude.program import engine_path
from support.places import ROOT

MACHINE: dict[str, Any] = {
    "system": {
        "distribution": "Debian GNU/Linux 12 (bookworm)",
        "architecture": "x86_64",
        "kernel_release": "6.1.0-18-amd64",
        "kernel_version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1",
        "hostname": "lab-1",
    },
    "cpu": {
        "model": "Example CPU @ 2.40GHz",
        "microcode": "0x2b",
        "online": 8,
        "smt": True,
        "sockets": 1,
        "caches": [
            {"level": 1, "type": "Data", "size_bytes": 32768, "shared_by": 2},
            {"level": 1, "type": "Instruction", "size_bytes": 32768, "shared_by": 2},
            {"level": 2, "type": "Unified", "size_bytes": 1048576, "shared_by": 2},
            {"level": 3, "type": "Unified", "size_bytes": 33554432, "shared_by": 8},
        ],
    },
    "frequency": {"drivers": ["intel_pstate"], "governors": ["performance"], "turbo": False},
    "memory": {
        "total_bytes": 16 << 30,
        "available_bytes": 12 << 30,
        "page_bytes": 4096,
        "huge_page_bytes": 2 << 20,
        "huge_pages": "madvise",
        "swappiness": 60,
    },
    "kernel": {"aslr": 2, "clock_source": "tsc", "mitigations": {"meltdown": "Not affected"}},
    "sysctl": {"vm.dirty_ratio": "20", "kernel.randomize_va_space": "2"},
    "virtualisation": {"hypervisor_flag": False, "container": None},
    "directory": {"path": "/home/me/work", "mount_point": "/", "type": "ext4", "device": "/dev/sda1"},
    "environment": {"variables": {"LANG": "C.UTF-8", "HOME": "/home/me"}},
    "load": {"load_1": 0.1, "runnable": 1},
}
NEWER = copy.deepcopy(MACHINE)
NEWER["system"] |= {"kernel_release": "6.12.0-1-amd64", "kernel_version": "#1 SMP Debian 6.12.5-1"}
NEWER["sysctl"] |= {"vm.dirty_ratio": "40"}
NEWER["load"] |= {"load_1": 1.7}

DAY = "2026-01-01T12:00:00Z"
TODAY = re.compile(rf"{datetime.now(UTC):%Y-%m-%d}T\d\d:\d\d:\d\d(\.\d+)?Z")
OWN_FILE = re.compile(r"(etude-io-)\d+-")
"""Names with a process's number."""
HOME = "/home/me/work"
"""Where all of them are said to have been made."""


def settle(directory: Path, machine: Mapping[str, Any] | None = MACHINE) -> Path:
    """What depends on this machine and on now becomes what it always is, in all documents of a results directory."""
    path = directory / "experiment.json"
    document = json.loads(path.read_text())
    for place, sitting in enumerate(document["sittings"]):
        start = f"2026-01-{place + 1:02}T10:00:00Z"
        sitting |= {"host": "lab-1", "boot_id": f"boot-{place + 1}", "start": start}
        if sitting["end"]:
            sitting["end"] = start.replace(":00:00", ":05:00")
        if sitting.get("kernel_log") or "kernel_log" in sitting:
            sitting |= {"kernel_log": None}
    document["versions"] = {"etude": "0.1.0", "python": "3.11.2", "engine": "0.1.0"}
    if machine is not None:
        document["machine"] |= {"before": machine, "after": machine}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    for file in directory.glob("*/results.jsonl"):
        lines = [settled(json.loads(line)) for line in file.read_text().splitlines()]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        file.write_text(text)
    return directory


def homeless(directory: Path) -> None:
    """Texts of a results directory without the place, the host, the boot and the day of their making."""
    instead = {str(directory.parent.resolve()): HOME, str(directory.parent): HOME, str(ROOT): "/opt/etude"}
    instead |= {engine_path(): "/usr/bin/etude-engine", sys.executable: "/usr/bin/python3"}
    instead |= {boot_id(): "boot-1", f'"{os.uname().nodename}"': '"lab-1"'}
    for file in directory.rglob("*.*"):
        if file.suffix in (".json", ".jsonl", ".res", ".sh"):
            text = file.read_text()
            for found, known in instead.items():
                text = text.replace(found, known)
            file.write_text(OWN_FILE.sub(r"\g<1>1-", TODAY.sub(DAY, text)))


def settled(line: dict[str, Any]) -> dict[str, Any]:
    """A measurement of the same machine, whose clock goes on by a second a trial where it was the real one."""
    line |= {"host": "lab-1", "boot_id": f"boot-{line['sitting']}"}
    if line["cache"] and "cooling_s" in line["cache"]:
        line["cache"]["cooling_s"] = 0.125
    if "peak" in line or "surface" in line:
        line |= {"start": f"2026-01-01T10:{line['block'] % 60:02}:00Z", "start_ns": line["block"] * 10**11}
    return line
