"""Coordinated omission: a server that stands still for a part of each second, and what its clients say of it."""

from __future__ import annotations

import heapq
import itertools
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from etude.program import engine_path
from etude.results.histograms import decode

Document = dict[str, Any]
Loads = dict[tuple[str, ...], tuple[np.ndarray, Document, float]]

STALL_S, EVERY_S, SERVICE_S, RATE, SECONDS = 0.100, 1.0, 0.005, 500.0, 5
QUANTILES = (0.5, 0.9, 0.94, 0.99, 0.999)
SERVER = ("--workers", "200", "--law", "constant", "--mean-ms", "5", "--stall", "100", "--every", "1")


def worked_s(clock_s: float) -> float:
    """Time in which the server does not stand still: stalls begin with each second (docs/howto/load.md)."""
    whole, rest = divmod(clock_s, EVERY_S)
    return whole * (EVERY_S - STALL_S) + max(rest - STALL_S, 0.0)


def clock_s(worked: float) -> float:
    whole, rest = divmod(worked, EVERY_S - STALL_S)
    return whole * EVERY_S + STALL_S + rest


def responses_s(arrivals: np.ndarray, places: int) -> np.ndarray:
    """Exactly: who finds all `places` taken waits for the first that is free, and a service takes its time of working
    time (Kiefer and Wolfowitz, Trans. AMS 78, 1955, of constant services)."""
    free: list[float] = [-1.0] * places
    found = np.empty(len(arrivals))
    for number, arrival in enumerate(arrivals):
        end = max(worked_s(float(arrival)), heapq.heappop(free)) + SERVICE_S
        heapq.heappush(free, end)
        found[number] = clock_s(end) - arrival
    return found


def exact(way: str, places: int) -> np.ndarray:
    """Responses of a long run, sorted: of constant arrivals at all phases, of Poisson arrivals 400,000."""
    random = np.random.default_rng(1)
    if way == "poisson":
        return np.sort(responses_s(np.cumsum(random.exponential(1 / RATE, 400_000)), places))
    runs = [responses_s((np.arange(1000) + phase) / RATE, places) for phase in np.arange(0.01, 1, 0.05)]
    return np.sort(np.concatenate(runs))


@contextmanager
def server() -> Iterator[str]:
    with subprocess.Popen(
        [engine_path(), "known-server", *SERVER], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert (ready["stall_s"], ready["every_s"]) == (STALL_S, EVERY_S)
            assert ready["capacity"] == pytest.approx(200 / SERVICE_S * 0.9)
            assert ready["first_stall_ns"] > 0
            yield f"http://127.0.0.1:{ready['port']}/"
        finally:
            process.kill()


def load(url: str, *words: str) -> tuple[np.ndarray, Document]:
    """Responses, s, sorted; and the last line. The first second, before the first stall, is warm-up."""
    command = [engine_path(), "load", "--url", url, "--seconds", str(SECONDS), "--warm-up", "1", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    *windows, end = [json.loads(line) for line in done.stdout.splitlines()]
    told = [decode(each["latency"]) for each in (*windows, end["drained"] or {}) if each.get("latency")]
    values = np.repeat(
        np.concatenate([each.values for each in told]), np.concatenate([each.counts for each in told])
    )
    assert len(values) == end["summary"]["completed"]
    return np.sort(values) * 1e-9, end


def lateness_s(url: str) -> float:
    """What the server's answers were late by on average, by its own clock."""
    with urllib.request.urlopen(url + "state", timeout=30) as answer:
        state = json.load(answer)
    return float(state["late_s"] / state["served"])


def at(responses: np.ndarray, share: float) -> float:
    return float(responses[min(int(share * len(responses)), len(responses) - 1)])


def test_the_law_of_an_unbounded_client_is_the_one_that_is_documented() -> None:
    """A share of STALL/EVERY meets a stall at an instant that is uniform in it, one of SERVICE/EVERY has it whole."""
    found = exact("constant", 1000)
    stalled, begun = STALL_S / EVERY_S, SERVICE_S / EVERY_S

    def law(share: float) -> float:
        return SERVICE_S + min(max((share - (1 - stalled - begun)) / stalled, 0.0), 1.0) * STALL_S

    for share in (0.5, 0.8, 0.92, 0.95, 0.99, 0.998):
        assert at(found, share) == pytest.approx(law(share), abs=1e-3), share


OPEN = {
    f"{way}-{name}": ("--rate", str(RATE), "--arrivals", way, "--outstanding", str(outstanding))
    for way in ("constant", "poisson")
    for name, outstanding in (("unbounded", 1000), ("25-outstanding", 25))
}
CLOSED = ("--clients", "1", "--think", "0.002", "--think-law", "constant")


def offered(words: tuple[str, ...]) -> tuple[np.ndarray, Document, float]:
    """Responses and the last line of a load on a server of its own, and by how much the machine made them longer, s."""
    with server() as url:
        found, end = load(url, *words)
        return found, end, 0.001 + 2 * end["lateness_p99_s"] + 20 * lateness_s(url)


@pytest.fixture(scope="module")
def loads() -> Loads:
    """One load of each way, all at the same time: together they take little of a CPU."""
    ways = (*OPEN.values(), CLOSED)
    with ThreadPoolExecutor(len(ways)) as pool:
        return dict(zip(ways, pool.map(offered, ways), strict=True))


@pytest.mark.parametrize("words", OPEN.values(), ids=OPEN)
def test_a_stall_is_charged_to_all_that_was_due_in_it(loads: Loads, words: tuple[str, ...]) -> None:
    """Each percentile is the exact one, within 5 %, and within what is stated here.

    Of the sample: so much of the requests may lie on the other side. Constant gaps put the same number into each stall,
    but for one; the number of Poisson arrivals varies, by four standard deviations of a share of so many. Of the
    machine: 1 ms for sockets, what 99 % of sends were late by in client and server, and twenty times what the server's
    answers were late by on average. Others that take the CPUs make responses longer, so that a run with longer ones is
    made again, three times at most; shorter ones are wrong at once.
    """
    way = words[3]
    law = exact(way, int(words[5]))
    for attempt in range(4):
        found, end, machine_s = offered(words) if attempt else loads[words]
        assert end["summary"]["failed"] == end["summary"]["abandoned"] == 0
        count = end["summary"]["offered"]
        longer = []
        for share in QUANTILES:
            deviation = (share * (1 - share) / count) ** 0.5
            sample = 1.5 / (RATE * EVERY_S) if way == "constant" else 4 * deviation + 1 / count
            seen, least, most = at(found, share), at(law, max(share - sample, 0)), at(law, share + sample)
            assert seen >= 0.95 * least, (share, seen, least)
            if seen > 1.05 * most + machine_s:
                longer.append((share, seen, most, machine_s))
        if not longer:
            return
    pytest.fail(f"longer than exact: {longer}, {end}")


def test_a_closed_loop_leaves_out_what_would_have_been_due_in_the_stall(loads: Loads) -> None:
    """One client meets each stall once, however long it is: few of its answers are slow, where one of ten is of those
    that are due at a rate. That is why `--clients` says nothing of an open load."""
    found, end, _ = loads[CLOSED]
    summary = end["summary"]
    assert (summary["asked_rate"], summary["asked_clients"], summary["arrivals"]) == (None, 1, "closed")
    turns = (SERVICE_S + 0.002) / (EVERY_S - STALL_S)
    assert summary["completed"] <= SECONDS / turns / EVERY_S + 20
    stalled = int((found > SERVICE_S + STALL_S / 2).sum())
    assert stalled < 0.05 * summary["completed"]


def test_a_stall_delays_by_what_is_left_of_it() -> None:
    """A few requests by hand: each takes its service, and of a stall that it meets what was left."""
    slow = list(itertools.islice(responses_s(np.array([0.02, 0.05, 0.5, 0.998]), 10), 4))
    assert slow == pytest.approx([0.085, 0.055, 0.005, 0.105])
