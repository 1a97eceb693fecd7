"""Real server with a known peak rate: `etude-engine known-server`, loaded by `etude-engine load` (docs/howto/load.md).

The peak rate is that of queueing theory for c workers with one queue and Poisson arrivals. Exact: mean and percentiles
for exponential services (M/M/c: Erlang's formula), mean for constant ones (M/D/c: Crommelin's series). Everything else
is simulated by the recursion of Kiefer and Wolfowitz, with a Monte-Carlo error. All rates share the same draws, so that
responses rise with the rate without noise and the peak can be solved for.
"""

from __future__ import annotations

import http.client
import json
import math
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special

from etude.errors import MachineRefuses
from etude.limits import limit_reached
from etude.peak.bottleneck import BUSY
from etude.peak.search import EarlyStop
from etude.peak.task import Criterion, Limited, Trial, TrialRequest
from etude.peak.window import Window, joined_windows
from etude.program import engine_path
from etude.results.histograms import decode, joined

Real = NDArray[np.float64]

REPLICATIONS = 200
CUSTOMERS = 12_000
"""Customers per replication; the first third is excluded, since the queue starts empty."""
NEAREST = 0.995
"""Maximum simulated utilisation: closer to 1, replications would have to be longer."""
GROUPS = 20
"""Groups of replications; their percentiles give the error of the overall percentile."""


@dataclass(frozen=True, slots=True)
class ValueWithError:
    """A value and its standard error, 0 if exact."""

    value: float
    error: float


@dataclass(frozen=True)
class Queue:
    """c workers, one FIFO queue, Poisson arrivals."""

    workers: int
    law: str
    """Distribution of service times, as in `etude-engine known-server` (docs/howto/load.md)."""
    mean_s: float

    @property
    def capacity(self) -> float:
        """Rate above which the queue grows without bound, requests/s."""
        return self.workers / self.mean_s

    def mean_response_s(self, rate: float) -> ValueWithError:
        """Mean time from arrival to the end of service, s.

        Raises ValueError unless 0 < rate < capacity.
        """
        load = self._load(rate)
        if self.law == "exponential":
            return ValueWithError(
                self.mean_s * (1 + erlang_c(self.workers, load) / (self.workers - load)), 0.0
            )
        if self.law == "constant":
            return ValueWithError(self.mean_s * (1 + crommelin(self.workers, load)), 0.0)
        means = self._simulated(load).mean(axis=0) * self.mean_s
        return ValueWithError(float(means.mean()), float(means.std(ddof=1)) / math.sqrt(means.size))

    def percentile_s(self, rate: float, percent: float) -> ValueWithError:
        """Percentile of the response times, s. Raises ValueError unless 0 < rate < capacity."""
        load = self._load(rate)
        share = 1 - percent / 100
        if self.law == "exponential":
            return ValueWithError(self.mean_s * _exponential_quantile(self.workers, load, share), 0.0)
        responses = self._simulated(load) * self.mean_s
        parts = np.array([np.quantile(each, 1 - share) for each in np.array_split(responses, GROUPS, axis=1)])
        return ValueWithError(
            float(np.quantile(responses, 1 - share)), float(parts.std(ddof=1)) / math.sqrt(parts.size)
        )

    def response_s(self, rate: float, criterion: Criterion) -> ValueWithError:
        """Response that the criterion limits, s. Raises ValueError for errors: an unbounded queue fails no request."""
        if criterion.of == "errors":
            raise ValueError("a queue without a bound fails no request: ask for a mean or a percentile")
        if criterion.percent is None:
            return self.mean_response_s(rate)
        return self.percentile_s(rate, criterion.percent)

    def peak(self, criterion: Criterion, overhead_s: float = 0.0) -> ValueWithError:
        """Highest rate that meets the criterion if `overhead_s` is added to each response. Raises ValueError: it is met
        at no rate, or at all rates up to `NEAREST`."""
        lowest, highest = 1e-3 * self.capacity, NEAREST * self.capacity

        def above(rate: float) -> float:
            return self.response_s(rate, criterion).value + overhead_s - criterion.limit

        if above(lowest) > 0:
            raise ValueError(f"{criterion} is not met at any rate: services alone take as long")
        if above(highest) < 0:
            raise ValueError(f"{criterion} is still met at {NEAREST:.1%} of the capacity")
        rate = float(optimize.brentq(above, lowest, highest, xtol=1e-4 * self.capacity))
        step = min(0.01 * rate, (highest - rate) / 2) or 1e-6 * rate
        slope = (above(rate + step) - above(rate - step)) / (2 * step)
        return ValueWithError(rate, self.response_s(rate, criterion).error / slope)

    def _load(self, rate: float) -> float:
        if not 0 < rate < self.capacity:
            raise ValueError(f"rate {rate:g}/s: expected more than 0 and less than {self.capacity:g}/s")
        return rate * self.mean_s

    def _simulated(self, load: float) -> Real:
        """Responses in mean services, shape (customers, replications)."""
        gaps, services = self._draws
        workers = np.zeros((REPLICATIONS, self.workers))
        rows = np.arange(REPLICATIONS)
        found = np.empty_like(services)
        now = np.zeros(REPLICATIONS)
        for number, service in enumerate(services):
            now += gaps[number] / load
            free = workers.argmin(axis=1)
            over = np.maximum(workers[rows, free], now) + service
            workers[rows, free] = over
            found[number] = over - now
        kept: Real = found[CUSTOMERS // 3 :]
        return kept

    @cached_property
    def _draws(self) -> tuple[Real, Real]:
        """Gaps and services of mean 1, shape (customers, replications) each."""
        generator = np.random.default_rng(20_260_101)
        size = (CUSTOMERS, REPLICATIONS)
        return generator.exponential(size=size), drawn(self.law, generator, size)


def drawn(law: str, generator: np.random.Generator, size: tuple[int, ...]) -> Real:
    """Service times of mean 1 by a law of `etude-engine known-server`. Raises ValueError for an unknown law."""
    name, _, shape = law.partition(":")
    if name == "constant":
        return np.ones(size)
    if name == "exponential":
        return generator.exponential(size=size)
    if name == "erlang":
        return generator.gamma(float(shape), 1 / float(shape), size)
    if name == "lognormal":
        variance = math.log(1 + float(shape) ** 2)
        return generator.lognormal(-variance / 2, math.sqrt(variance), size)
    if name == "hyperexponential":
        square = float(shape) ** 2
        often = (1 + math.sqrt((square - 1) / (square + 1))) / 2
        share = np.where(generator.random(size) < often, often, 1 - often)
        times: Real = generator.exponential(size=size) / (2 * share)
        return times
    raise ValueError(f"{law!r} is no law of service times")


def erlang_c(workers: int, load: float) -> float:
    """Share of requests that wait in M/M/c; `load` = rate · mean service < workers."""
    blocked = 1.0
    for worker in range(1, workers + 1):
        blocked = load * blocked / (worker + load * blocked)
    return blocked / (1 - load / workers * (1 - blocked))


def crommelin(workers: int, load: float) -> float:
    """Mean wait in M/D/c, in services: a sum over whole services of Poisson tails (Crommelin 1932).

    Near saturation it has millions of slowly changing terms: after the first, the Euler–Maclaurin formula is used.
    """

    def term(number: Real | float) -> Real:
        # P(N ≥ k) of mean m is the regularised incomplete gamma function P(k, m).
        at_least = special.gammainc(number * workers, number * load)
        return np.asarray(at_least - workers / load * special.gammainc(number * workers + 1, number * load))

    first = 1024.0
    head = float(term(np.arange(1.0, first)).sum())
    top = first
    while term(top) > 1e-18:
        top *= 2

    def stretched(place: float) -> float:
        return float(term(math.exp(place))) * math.exp(place)

    ends = math.log(first), math.log(top)
    tail = integrate.quad(stretched, *ends, limit=200, epsabs=1e-10)[0] if top > first else 0.0
    slope = float(term(first + 0.5) - term(first - 0.5))
    return head + float(tail) + float(term(first)) / 2 - slope / 12


def _exponential_quantile(workers: int, load: float, share: float) -> float:
    """Upper `share` quantile of responses in M/M/c, in mean services."""
    waits, spare = erlang_c(workers, load), workers - load

    def above(time: float) -> float:
        rest = -special.expm1(-(spare - 1) * time) / (spare - 1) if abs(spare - 1) > 1e-9 else time
        return math.exp(-time) * (1 + waits * float(rest)) - share

    top = 1.0
    while above(top) > 0:
        top *= 2
    return float(optimize.brentq(above, 0.0, top, xtol=1e-12))


RECOVERY_S = 10.0
"""Timeout for the server to become idle after a trial, s."""
PROBE_S = 1.0
"""Duration of the load that measures the overhead, s."""


class KnownServer:
    """A bench. The server is started with the first trial, or by `with`, and serves all of them.

    law: distribution of service times: constant, exponential, erlang:K, lognormal:CV, hyperexponential:CV.
    mean_s: mean service time, 0.005 or more. seed: for services and arrivals; arrivals differ between trials.
    warm_up_s: load before the first window, so that it does not begin with an empty queue; None: 200 mean services.
    outstanding: maximum outstanding requests; when it is reached, the server is too slow for the load.
    drain_s: time after the end of a trial until unanswered requests are abandoned and dropped by the server.
    """

    def __init__(
        self,
        workers: int,
        law: str,
        mean_s: float,
        seed: int = 0,
        *,
        window_s: float = 1.0,
        warm_up_s: float | None = None,
        outstanding: int = 1000,
        drain_s: float = 1.0,
    ) -> None:
        self.queue = Queue(workers, law, mean_s)
        self.window_s = window_s
        self._seed = seed
        self._warm_up_s = 200 * mean_s if warm_up_s is None else warm_up_s
        self._outstanding = outstanding
        self._drain_s = drain_s
        self._server: subprocess.Popen[str] | None = None
        self._port = 0
        self._trials = 0

    def peak(self, criterion: Criterion) -> float:
        """True peak rate for a mean or a percentile, requests/s."""
        return self.truth(criterion).value

    def truth(self, criterion: Criterion) -> ValueWithError:
        """`peak` with its Monte-Carlo error, which is 0 for an exact formula."""
        return self.queue.peak(criterion, self.overhead_s)

    @cached_property
    def overhead_s(self) -> float:
        """Overhead of HTTP, loopback and timers per response, s: mean response of the client less that of the server's
        clock, at a fifth of the capacity."""
        before = self.state()
        words = ("--rate", f"{0.2 * self.queue.capacity:.6g}", "--seconds", str(PROBE_S))
        windows, _, _ = self._loaded(words, PROBE_S, lambda _: False)
        after = self.state()
        seen = joined_windows(windows).mean_s
        served = after["served"] - before["served"]
        if seen is None or not served:
            raise MachineRefuses("etude-engine known-server answered nothing at a fifth of its capacity")
        return float(seen - (after["response_s"] - before["response_s"]) / served)

    def run(self, request: TrialRequest, enough: EarlyStop) -> Trial:
        """Offer a load to the server; see `Bench`. Raises MachineRefuses: the server cannot be started, or the client
        cannot reach it."""
        begun = time.monotonic()
        self.start()
        self._trials += 1
        words = ["--rate", repr(request.load), "--seconds", repr(request.runlength_s)]
        words += ["--seed", str(self._seed * 1_000_003 + self._trials), "--warm-up", repr(self._warm_up_s)]
        windows, own, end = self._loaded(words, request.runlength_s, enough)
        died = self._server is None or self._server.poll() is not None
        idle = not died and self._recovered()
        cost_s = time.monotonic() - begun
        if died:
            note = "the server ended by itself"
            return Trial(request.load, request.runlength_s, windows, cost_s, "died", None, note)
        ended = end["summary"]["ended"]
        note = _note(end, idle)
        return Trial(
            request.load,
            request.runlength_s,
            windows,
            cost_s,
            ended,
            bottleneck_of_sends(own, end),
            note,
            end["summary"]["cpu"],
            end["lateness_p99_s"],
        )

    def start(self) -> None:
        """Start the server unless it runs, and wait until it is ready. Raises MachineRefuses."""
        if self._server is not None and self._server.poll() is None:
            return
        self.close()
        queue = self.queue
        words = ["--workers", str(queue.workers), "--law", queue.law, "--mean-ms", repr(1e3 * queue.mean_s)]
        self._server = _started("known-server", *words, "--seed", str(self._seed), "--until-eof")
        assert self._server.stdout is not None
        ready = self._server.stdout.readline()
        if not ready:
            raise _refused(self._server)
        self._port = json.loads(ready)["port"]

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.communicate()
            self._server = None

    def __enter__(self) -> KnownServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state(self) -> Mapping[str, Any]:
        """State reported by the server (docs/howto/load.md, "/state")."""
        self.start()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/state")
            found: Mapping[str, Any] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()

    def _recovered(self) -> bool:
        until = time.monotonic() + RECOVERY_S
        try:
            while (state := self.state())["waiting"] or state["busy"]:
                if time.monotonic() > until:
                    return False
                time.sleep(self.queue.mean_s)
        except OSError:
            return False
        return True

    def _loaded(
        self, words: Sequence[str], runlength_s: float, enough: EarlyStop
    ) -> tuple[tuple[Window, ...], Mapping[str, Any], Mapping[str, Any]]:
        """Run the client; returns its windows, the generator's figures of the last one, and the end record."""
        self.start()
        words = ("--url", f"http://127.0.0.1:{self._port}/", *words, "--window", repr(self.window_s))
        bounds = ("--outstanding", str(self._outstanding), "--drain", repr(self._drain_s))
        windows: list[Window] = []
        own: Mapping[str, Any] = {}
        end: Mapping[str, Any] | None = None
        told, ran_s = False, 0.0
        client = _started("load", "--json", *words, *bounds)
        try:
            assert client.stdout is not None
            for line in client.stdout:
                document = json.loads(line)
                if "summary" in document:
                    end = document
                    continue
                windows.append(window(document))
                own = document
                ran_s += windows[-1].duration_s
                # A client that has offered all must not be told to stop: it would drain no further.
                if not told and ran_s < runlength_s - 1e-6 and enough(windows):
                    told = True
                    client.terminate()
            client.wait()
        finally:
            if client.poll() is None:
                client.kill()
            _, complaint = client.communicate()
        if end is None:
            if self._server is not None and self._server.poll() is not None:
                return tuple(windows), own, {}
            raise MachineRefuses(complaint.strip() or f"etude-engine load ended with {client.returncode}")
        return with_drained(windows, end["drained"]), own, end


def window(document: Mapping[str, Any]) -> Window:
    """A window from a line of `etude-engine load`."""
    latency = document["latency"]
    return Window(
        duration_s=document["duration_s"],
        offered=document["offered"],
        completed=document["completed"],
        failed=document["failed"],
        mean_s=document["mean_s"],
        latency=None if latency is None else decode(latency),
    )


def bottleneck_of_sends(own: Mapping[str, Any], end: Mapping[str, Any]) -> Limited | None:
    """Bottleneck of a trial that sent less than requested, by the generator's figures in the last window and at the
    end."""
    if end["summary"]["cpu"] >= BUSY:
        return "generator"
    return "server" if own.get("waiting", 0) > 0 else None


def with_drained(windows: Sequence[Window], drained: Mapping[str, Any] | None) -> tuple[Window, ...]:
    """Windows with the requests answered after the end added to the last one, since they were due before it. Without
    them the slow ones of the last requests would be missing."""
    if not windows or drained is None:
        return tuple(windows)
    last, late = windows[-1], window(drained)
    both = joined_windows((last, late))
    found = [each.latency for each in (last, late) if each.latency is not None]
    latency = joined(found) if found else None
    whole = replace(last, completed=both.completed, failed=both.failed, mean_s=both.mean_s, latency=latency)
    return (*windows[:-1], whole)


def _note(end: Mapping[str, Any], idle: bool) -> str:
    summary = end["summary"]
    late_s = end["lateness_p99_s"] or 0.0
    parts = [f"99 % of sends within {1e3 * late_s:.2f} ms, generator {summary['cpu']:.0%} of a CPU"]
    if summary["abandoned"]:
        parts.append(f"{summary['abandoned']} requests given up")
    if not idle:
        parts.append(f"not idle again after {RECOVERY_S:g} s")
    return "; ".join(parts)


def _started(verb: str, *words: str) -> subprocess.Popen[str]:
    """Start a verb of the engine in its own process group: Ctrl-C reaches only us, and the verb ends with us."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            [engine_path(), verb, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=0
        )
    except OSError as error:
        advice = limit_reached(error.errno) or "reinstall Étude"
        raise MachineRefuses(f"{engine_path()}: cannot be run: {error.strerror}; {advice}") from None


def _refused(process: subprocess.Popen[str]) -> MachineRefuses:
    _, complaint = process.communicate()
    return MachineRefuses(complaint.strip() or f"etude-engine ended with status {process.returncode}")
