"""Real server with a known peak rate: `etude-engine known-server`, loaded by `etude-engine load` (docs/load.md)."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from etude.errors import MachineRefuses
from etude.limits import limit_reached
from etude.peak.bench import EarlyStop
from etude.peak.goal import Criterion
from etude.peak.harnesses.queues import Queue, ValueWithError
from etude.peak.task import Limited, Trial, TrialRequest
from etude.peak.window import Window, joined_windows
from etude.program import engine_path
from etude.results.histograms import decode, joined

BUSY = 0.8
"""CPU utilisation above which the generator counts as saturated."""
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
        """Offer a load to the server; see `Bench`.

        Raises:
            MachineRefuses: the server cannot be started, or the client cannot reach it.
        """
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
        """State reported by the server (docs/load.md, "/state")."""
        self.start()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/state")
            found: Mapping[str, Any] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()

    def _recovered(self) -> bool:
        """True once the server is idle; False after `RECOVERY_S`."""
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
