"""Results made by hand for reports: plain ones, and ones that try to break out of the page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.builders import document, line, measurement

SCRIPT = "<script>window.broken=1</script>"
IMAGE = '<img src="http://example.org/x.png" onerror="window.broken=1">'
SPECIALS = r"$$e=mc^2$$ \(a\) \input{x} 100% of $x_1$ & #2 ~ ^ {y} `z` [l](http://example.org) @team #12 |"
"""What LaTeX, Markdown and a chart library for formulas would take for something else."""

MACHINE = {
    "system": {"distribution": "Debian GNU/Linux 12", "kernel_release": "6.1.0", "hostname": "here"},
    "cpu": {"model": "Example CPU", "online": 8},
    "memory": {"total_bytes": 16 << 30},
    "directory": {"type": "ext4", "device": "/dev/sda1"},
    "virtualisation": {"hypervisor_flag": False},
}
CHANGED = {**MACHINE, "system": {**MACHINE["system"], "kernel_release": "6.12.0"}}


def results(
    directory: Path,
    samples: Mapping[str, Sequence[float]],
    *,
    machine: Mapping[str, Any] = MACHINE,
    compared: bool = True,
    entries: Mapping[str, Mapping[str, Any]] | None = None,
    **changes: Any,
) -> Path:
    """Tests with these elapsed times, in blocks if they are compared. `entries`: further members of each test."""
    directory.mkdir(parents=True, exist_ok=True)
    tests = []
    for number, (name, values) in enumerate(samples.items()):
        entry = {"name": name, "directory": f"test-{number}", "role": "test", "parameters": {}, "workers": 1}
        entry |= {"group": 0 if compared else None, "minimum": len(values), "stop_program": None}
        tests.append(entry | dict((entries or {}).get(name, {})))
        rows = [
            line(measurement(name, trial, value, order=number, command=["sort", str(number)]))
            for trial, value in enumerate(values, 1)
        ]
        (directory / f"test-{number}").mkdir(exist_ok=True)
        (directory / f"test-{number}" / "results.jsonl").write_bytes(b"".join(rows))
    plan = {"kind": "script", "primary": "elapsed"}
    sitting = {"sitting": 1, "boot_id": "boot", "host": "here", "start": "2026-01-01T10:00:00Z"}
    sitting |= {"end": "2026-01-01T10:05:00Z"}
    members: dict[str, Any] = {"plan": plan, "tests": tests, "sittings": [sitting], "name": "sorting"}
    members |= {"machine": {"before": machine, "after": machine}, "command_line": ["etude run", "sorting.ap"]}
    (directory / "experiment.json").write_text(json.dumps(document(**(members | changes))))
    return directory


def plain(directory: Path, **changes: Any) -> Path:
    """A, and B which takes 1.2 times as long; the ninth trial of A is far out."""
    generator = np.random.default_rng(7)
    first = 0.010 * generator.lognormal(0.0, 0.02, 20)
    second = 0.012 * generator.lognormal(0.0, 0.02, 20)
    first[8] = 0.030
    entries = {
        "A": {
            "purpose": "How long does sorting take?",
            "expect": "elapsed < 50 ms",
            "parameters": {"N": "1"},
        },
        "B": {"purpose": "And with a larger file?", "expect": "elapsed < baseline * 1.1"},
    }
    return results(directory, {"A": first.tolist(), "B": second.tolist()}, entries=entries, **changes)


def hostile(directory: Path) -> Path:
    """Markup in the names of tests, in parameters, in purpose and expectation, in the machine and the command line."""
    generator = np.random.default_rng(8)
    names = (f"a {SCRIPT}", f"b {IMAGE}", f"c {SPECIALS}", 'd " onmouseover="window.broken=1')
    samples = {name: (0.01 * generator.lognormal(0.0, 0.02, 12)).tolist() for name in names}
    entry = {"purpose": SCRIPT + SPECIALS, "expect": IMAGE + SPECIALS, "parameters": {SCRIPT: IMAGE}}
    machine = {**MACHINE, "cpu": {"model": f"{SCRIPT}{SPECIALS}", "online": 1}}
    return results(
        directory,
        samples,
        machine=machine,
        entries=dict.fromkeys(names, entry),
        name=f"{SCRIPT} {SPECIALS}",
        command_line=["etude run", f"{SCRIPT}</pre>{SPECIALS}\u2028"],
    )
