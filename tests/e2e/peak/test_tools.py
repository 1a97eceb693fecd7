"""The tools whose reports are understood, each against the real program on a real system: the examples' own harnesses,
of PostgreSQL with transactions that take a known time.

Loads are far below and far above the peak, so that what is said does not depend on the machine.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from etude.peak.harnesses.spec import read_harness
from etude.peak.search import Bench, EarlyStop
from etude.peak.task import Trial, TrialRequest, slo_ratio_of
from etude.peak.window import Window, joined_windows
from support.places import EXAMPLES
from support.real import processes_with

pytestmark = [pytest.mark.serial]
PGBENCH = f"""
[goal]
mean = "60 ms"
[load]
lowest = 50
highest = 1000
runlength = "6 s"
[commands]
start = "exec {EXAMPLES}/lib/peak-postgres.sh start {{place}}"
ready = "{EXAMPLES}/lib/peak-postgres.sh ready {{place}}"
load = '''
echo 'SELECT pg_sleep(0.02);' >wait.sql
exec {EXAMPLES}/lib/peak-postgres.sh pgbench {{place}} --no-vacuum --file=wait.sql --client=8 --jobs=1 --rate={{load}} \
    --time={{runlength}} --random-seed={{seed}} --log --log-prefix={{log}}'''
warmup = "1 s"
grace = "20 s"
[reader]
kind = "pgbench"
[generator]
outstanding = 8
"""
"""Eight connections, each busy for 20 ms with a transaction: near 400 of them a second, whatever the processor."""
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def never(windows: Sequence[Window]) -> bool:
    return False


def trials(
    name: str,
    tmp_path: Path,
    loads: Sequence[float],
    factors: Mapping[str, str] | None = None,
    enough: EarlyStop = never,
) -> list[Trial]:
    harness = read_harness(EXAMPLES / "peak" / f"{name}.toml")
    place = tmp_path / "place"
    with harness.bench(factors or {}, place) as bench:
        found = [bench.run(TrialRequest(load, 2.0, "test"), enough) for load in loads]
    assert not processes_with(str(place)), "nothing is left running"
    for trial in found:
        print(trial.load, trial.ended, trial.limited, slo_ratio_of(harness.task.goal, trial), trial.note)
    return found


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One for all tests: to make a database takes longer than to load it."""
    place = tmp_path_factory.mktemp("postgres")
    with read_harness(place / "pgbench.toml", PGBENCH).bench({}, place) as bench:
        yield bench
    assert not processes_with(str(place)), "nothing is left running"
    assert not list(Path("/tmp").glob("etude-postgres.*/data/postmaster.pid"))


@pytest.mark.needs_program("pgbench", package="postgresql")
@pytest.mark.skipif(not POSTGRES, reason="no program postgres: install the Debian package postgresql")
def test_pgbench_tells_windows_while_it_runs_and_latencies_from_when_they_were_due(
    postgres: Bench,
) -> None:
    low, high = (postgres.run(TrialRequest(load, 2.0, "test"), never) for load in (100, 800))
    assert low.ended == "whole"
    assert len(low.windows) >= 2
    assert (joined_windows(low.windows).mean_s or 0.0) >= 0.02
    assert (joined_windows(low.windows).percentile_s(50) or 0.0) >= 0.0195
    assert low.limited is None
    assert high.limited == "server", high.note
    assert (joined_windows(high.windows).mean_s or 0.0) > 0.1
    assert sum(w.completed for w in high.windows) < 0.8 * sum(w.offered for w in high.windows)


@pytest.mark.needs_program("pgbench", package="postgresql")
@pytest.mark.skipif(not POSTGRES, reason="no program postgres: install the Debian package postgresql")
def test_pgbench_is_ended_early_by_its_windows(postgres: Bench) -> None:
    trial = postgres.run(TrialRequest(200, 60.0, "test"), lambda windows: True)
    assert trial.ended == "early"
    assert trial.ran_s < 30


@pytest.mark.needs_program("nginx", package="nginx-light")
@pytest.mark.needs_program("httperf")
@pytest.mark.needs_program("curl")
def test_httperf_tells_one_window_with_a_histogram(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    low, high = trials("nginx-httperf", tmp_path, [60, 500], {"port": str(port)})
    assert len(low.windows) == 1
    assert low.windows[0].completed == 120
    assert low.limited is None, low.note
    assert (joined_windows(low.windows).percentile_s(50) or 1.0) < 0.04
    assert high.windows[0].completed + high.windows[0].failed == 1000
    if high.limited is None:  # else the machine did not let httperf send in time, which is said
        assert (joined_windows(high.windows).mean_s or 0.0) > 0.1 or high.windows[0].failed > 0


@pytest.mark.needs_program("fio")
@pytest.mark.needs_root
def test_fio_tells_windows_with_histograms_and_what_it_could_not_send(tmp_path: Path) -> None:
    low, high = trials("fio", tmp_path, [150, 600])
    assert low.ended == "whole"
    assert len(low.windows) >= 2
    assert all(int(w.latency.counts.sum()) == w.completed for w in low.windows if w.latency is not None)
    assert low.limited is None, low.note
    if Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device").exists():
        assert high.limited is not None, high.note
        assert sum(w.completed for w in high.windows) < 0.6 * sum(w.offered for w in high.windows)
    assert not (tmp_path / "place" / "loop").exists()


@pytest.mark.needs_program("sysbench")
def test_sysbench_tells_a_window_a_second_and_its_queue(tmp_path: Path) -> None:
    low, high = trials("sysbench", tmp_path, [10, 2000], {"primes": "100000"})
    assert len(low.windows) >= 2
    assert low.limited is None, low.note
    assert (joined_windows(low.windows).mean_s or 0.0) > 0
    assert high.limited == "server", high.note
    assert shutil.which("sysbench")
