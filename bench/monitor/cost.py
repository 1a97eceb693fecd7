"""What the monitor costs: its share of a core by interval, top list and number of processes, beside vmstat and others.

All run at the same time, so that they see the same machine. CPU time is what the kernel says of each (schedstat, in
nanoseconds), from two seconds after they started on: start-up does not count.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.program import engine_path
from rows import measured_where, options, printed, ratios, running, spread, table

EVERY, REACH = ("1s", "100ms"), {"1s, no top": 0.1, "1s, top 5": 0.5}
PEERS: dict[str, tuple[str, ...]] = {
    "vmstat 1": ("vmstat", "-n", "1"),
    "pidstat 1": ("pidstat", "1"),
    "top -b -d 1": ("top", "-b", "-d", "1"),
}
BASE = "vmstat 1"
SETTLED_S = 2.0
Shares = dict[str, list[float]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="of one round [default: 30]")
    parser.add_argument("--rounds", type=int, default=5, help="for each number of processes [default: 5]")
    parser.add_argument(
        "--processes", type=int, nargs="*", default=[0, 200, 2000], help="sleeping ones, besides"
    )
    wanted = parser.parse_args()
    version = printed(engine_path(), "--version").strip()
    conditions = f"{wanted.rounds} rounds of {wanted.seconds:g} s, all at the same time"
    print(*measured_where(conditions, [version]), "", sep="\n")
    peers = {name: peer for name, peer in PEERS.items() if shutil.which(peer[0])}
    for count in wanted.processes:
        with running(*[["sleep", "infinity"]] * count):
            present = sum(name.isdigit() for name in os.listdir("/proc"))
            shares: Shares = {}
            for _ in range(wanted.rounds):
                for name, share in one_round(wanted.seconds, peers).items():
                    shares.setdefault(name, []).append(share)
            print(f"{present} processes\n")
            print(*costs(shares), *ways(), sep="\n")


def costs(shares: Shares) -> list[str]:
    """Shares of a core in percent, and as multiples of vmstat's in the same round."""
    rows = []
    for name, values in shares.items():
        percent = spread([100 * value for value in values])
        times = str(ratios(values, shares[BASE])) if BASE in shares else "–"
        reach = REACH.get(name)
        told = ("–", "–") if reach is None else (f"< {reach}", "yes" if percent.median < reach else "NO")
        rows.append([name, str(percent), times, *told])
    return table(["what", "share of a core, %", f"times `{BASE}`", "reach", "reached"], rows)


def one_round(seconds: float, peers: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """CPU time of each over the same seconds, as a share of a core."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        commands: dict[str, Sequence[str]] = {}
        for every in EVERY:
            for top in (0, 5):
                output = ("--output", f"{directory}/{every}-{top}")
                command = (engine_path(), "monitor", *output, "--every", every, "--top", str(top))
                commands[f"{every}, {f'top {top}' if top else 'no top'}"] = command
        commands |= peers
        started = stack.enter_context(running(*commands.values()))
        programs = dict(zip(commands, started, strict=True))
        time.sleep(SETTLED_S)
        before = {name: ran_ns(process.pid) for name, process in programs.items()}
        start = time.monotonic()
        time.sleep(seconds)
        after = {name: ran_ns(process.pid) for name, process in programs.items()}
        took_ns = (time.monotonic() - start) * 1e9
        shares = {name: (after[name] - before[name]) / took_ns for name in programs}
        own = programs["1s, top 5"]
        own.terminate()
        own.wait()
        said = json.loads(Path(f"{directory}/1s-5").read_text().splitlines()[-1])
        return shares | {"1s, top 5, as it says itself": said["cost"]["share_of_a_core"]}


def ran_ns(pid: int) -> int:
    """CPU time of a process with one thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def ways() -> list[str]:
    """CPU time of the ways to ask the kernel about one process; each with about 0.5 µs of Python."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()]

    def opened(file: str) -> Callable[[], object]:
        def read() -> None:
            for pid in pids:
                with suppress(OSError):  # it ended meanwhile
                    descriptor = os.open(f"/proc/{pid}/{file}", os.O_RDONLY)
                    os.read(descriptor, 4096)
                    os.close(descriptor)

        return read

    def kept(descriptors: list[int]) -> Callable[[], object]:
        def read() -> None:
            for descriptor in descriptors:
                with suppress(OSError):
                    os.pread(descriptor, 4096, 0)

        return read

    with ExitStack() as stack:

        def keep(file: str) -> list[int]:
            found = []
            for pid in pids:
                path = Path(f"/proc/{pid}/{file}")
                if path.exists():
                    found.append(stack.enter_context(path.open("rb", buffering=0)).fileno())
            return found

        every: dict[str, Callable[[], object]] = {
            "list `/proc`": lambda: os.listdir("/proc"),
            "open, read and close `stat`": opened("stat"),
            "open, read and close `schedstat`": opened("schedstat"),
            "read `stat`, kept open": kept(keep("stat")),
            "read `schedstat`, kept open": kept(keep("schedstat")),
        }
        rows = [
            [name, str(spread([cost_us(way) / len(pids) for _ in range(11)][1:]))]
            for name, way in every.items()
        ]
    return table(["to ask about one process", "CPU time, µs"], rows)


def cost_us(way: Callable[[], object]) -> float:
    """CPU time of one call."""
    start = time.process_time_ns()
    way()
    return (time.process_time_ns() - start) / 1000


if __name__ == "__main__":
    main()
