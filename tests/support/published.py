"""What is published of the workloads that the presets follow, typed in by hand: the generator's own tables are not
looked at.

Sources: operation mixes of SPEC SFS 3.0 and SPECsfs2008 for NFS version 3 as a member of SPEC's subcommittee
published them in 2008; Table 3 of Shivam, Marupadi, Chase, Subramaniam, Babu: "Cutting Corners" (USENIX ATC 2008);
PostMark 1.5 by its defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SFS97_MIX = {
    "lookup": 27.0,
    "read": 18.0,
    "write": 9.0,
    "getattr": 11.0,
    "readlink": 7.0,
    "readdir": 2.0,
    "readdirplus": 9.0,
    "create": 1.0,
    "remove": 1.0,
    "fsstat": 1.0,
    "setattr": 1.0,
    "access": 7.0,
    "commit": 5.0,
}
"""Percent. FSINFO has what is left of 100; a load has none."""

SFS2008_MIX = {
    "lookup": 24.0,
    "read": 18.0,
    "write": 10.0,
    "getattr": 26.0,
    "readlink": 1.0,
    "readdir": 1.0,
    "readdirplus": 2.0,
    "create": 1.0,
    "remove": 1.0,
    "fsstat": 1.0,
    "setattr": 4.0,
    "access": 11.0,
}


@dataclass(frozen=True)
class Published:
    """Of one workload; what nobody has published is None."""

    mix: Mapping[str, float] | None = None
    reads_per_write: float | None = None
    """Of what is no log."""
    zipf: tuple[float, float] | None = None
    """Between which exponents."""
    working_set: float | None = None
    """Share of the files."""
    mean_bytes: float | None = None
    """Of files; within MEAN_WITHIN."""
    smallest: int | None = None
    largest: int | None = None
    sequential_reads: float | None = None
    """Share of reads."""
    appends: float | None = None
    """Share of writes, to files that were there."""
    log_batch_bytes: int | None = None
    """Written to a log before each commit of it."""
    directory_files: tuple[int, int] | None = None
    """About how many files a directory has."""


MEAN_WITHIN = 0.03
"""Of a mean of "10.5 KB": it is not said whether 1000 or 1024 bytes are meant."""

PUBLISHED = {
    "specsfs97": Published(
        mix=SFS97_MIX,
        working_set=0.10,
        smallest=1024,
        largest=1 << 20,
        sequential_reads=0.0,
        directory_files=(1000, 9999),
    ),
    "sfs2008": Published(mix=SFS2008_MIX, smallest=1024, largest=1 << 20),
    "web": Published(zipf=(0.6, 0.9), mean_bytes=10_500, sequential_reads=1.0, directory_files=(12, 99)),
    "db_tp": Published(reads_per_write=2.0, sequential_reads=0.0, log_batch_bytes=256 << 10),
    "mail": Published(
        zipf=(1.3, 1.3), mean_bytes=4_700, sequential_reads=1.0, appends=1.0, directory_files=(500, 999)
    ),
    "postmark": Published(smallest=500, largest=10_000, sequential_reads=1.0),
}
