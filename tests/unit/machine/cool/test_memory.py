"""The memory that a data set may be cached in, on machines that are laid out here."""

from __future__ import annotations

from pathlib import Path

import pytest

from etude.machine.cool.methods import memory_bytes
from etude.osutil.mounts import Mount

V2 = Mount("/", "/sys/fs/cgroup", (), "cgroup2", "none")
V1 = Mount("/", "/sys/fs/cgroup/memory", (), "cgroup", "none")


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


INFO = {"proc/meminfo": "MemTotal:       1000 kB\nMemFree: 1 kB\n"}


@pytest.mark.parametrize(
    ("files", "table", "found"),
    [
        (INFO, [], 1_024_000),
        ({}, [], None),
        (INFO | {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, [V2], 4096),
        (INFO | {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, [V2], 1_024_000),
        (INFO | {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.high": "8192\n"}, [V2], 8192),
        (
            INFO
            | {
                "proc/self/cgroup": "5:cpu:/x\n4:memory:/j\n0::/\n",
                "sys/fs/cgroup/memory/j/memory.limit_in_bytes": "512000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            [V1, V2],
            512_000,
        ),
        (INFO | {"proc/self/cgroup": "torn\n::\n4:memory\n"}, [V1, V2], 1_024_000),
    ],
    ids=["plain", "nothing", "above", "max", "high", "v1", "torn"],
)
def test_the_smallest_limit_counts(
    tmp_path: Path, files: dict[str, str], table: list[Mount], found: int | None
) -> None:
    assert memory_bytes(lay(tmp_path, files), table) == found


def test_this_machine_has_some() -> None:
    assert (memory_bytes() or 0) > 1 << 20
