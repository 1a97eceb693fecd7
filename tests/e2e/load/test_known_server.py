"""`etude-engine known-server` and `load`, the real programs: what is offered, answered, known, and how they end."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from etude.errors import MachineRefuses
from etude.peak.harnesses.known_server import KnownServer
from etude.peak.task import Criterion, TrialRequest
from etude.peak.window import Window, joined_windows
from etude.program import engine_path
from etude.results.histograms import decode

Document = dict[str, Any]


@contextmanager
def server(*words: str) -> Iterator[tuple[subprocess.Popen[str], Document]]:
    """A server, and what it said when it was ready."""
    command = [engine_path(), "known-server", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def url(ready: Document) -> str:
    return f"http://127.0.0.1:{ready['port']}/"


def load(*words: str) -> tuple[list[Document], Document]:
    """Windows and the last line of a run that ends by itself."""
    command = [engine_path(), "load", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    *windows, end = [json.loads(line) for line in done.stdout.splitlines()]
    return windows, end


def total(windows: Sequence[Document], end: Document, name: str) -> int:
    return sum(window[name] for window in windows) + (end["drained"] or {name: 0})[name]


def refused(code: int, verb: str, *words: str) -> str:
    """The one line of a verb that does not begin."""
    command = [engine_path(), verb, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (code, ""), done
    program = "etude" if verb == "load" else "etude-engine"
    assert re.fullmatch(rf"{program} {verb}: [^\n]+\n", done.stderr), done.stderr
    return done.stderr.strip()


@pytest.mark.quick
def test_as_many_are_offered_as_asked_for_and_each_is_accounted_for() -> None:
    with server("--workers", "20", "--law", "exponential", "--mean-ms", "5") as (_, ready):
        windows, end = load("--url", url(ready), "--rate", "500", "--seconds", "2", "--window", "0.5")
    summary = end["summary"]
    assert [window["duration_s"] for window in windows] == [0.5] * 4
    assert abs(summary["offered"] - 1000) < 4 * math.sqrt(1000)
    assert summary["offered"] == summary["completed"] == summary["started"]
    for name in ("offered", "started", "completed", "failed"):
        assert total(windows, end, name) == summary[name], name
    for window in windows:
        counted = decode(window["latency"])
        assert counted.counts.sum() == window["completed"]
        mean_s = float((counted.values * counted.counts).sum()) * 1e-9 / window["completed"]
        assert mean_s == pytest.approx(window["mean_s"], rel=2e-3)
        assert window["lateness_p99_s"] >= 0
        assert 0 < window["cpu"] < 1
    assert (summary["ended"], summary["failed"], summary["abandoned"]) == ("whole", 0, 0)


def test_constant_arrivals_are_as_many_as_the_rate_says() -> None:
    with server("--workers", "20", "--law", "constant", "--mean-ms", "5") as (_, ready):
        words = ("--rate", "200", "--seconds", "1.5", "--arrivals", "constant", "--warm-up", "0.25")
        windows, _ = load("--url", url(ready), *words)
    assert [(window["duration_s"], window["offered"]) for window in windows] == [(1.0, 200), (0.5, 100)]


def test_constant_services_without_a_queue_take_their_time_and_little_more() -> None:
    with KnownServer(200, "constant", 0.020, seed=1, warm_up_s=0.0) as bench:
        trial = bench.run(TrialRequest(200.0, 1.0, ""), lambda _: False)
    assert joined_windows(trial.windows).completed == joined_windows(trial.windows).offered > 100
    latency = trial.windows[0].latency
    assert latency is not None
    assert latency.values.min() >= 20_000_000
    assert bench.overhead_s > 0


@pytest.mark.quick
def test_the_mean_response_is_that_of_the_formula() -> None:
    with KnownServer(4, "exponential", 0.010, seed=11, window_s=0.5) as bench:
        rate = 240.0
        trial = bench.run(TrialRequest(rate, 3.0, ""), lambda _: False)
        overhead_s = bench.overhead_s
        whole = joined_windows(trial.windows)
        expected_s = bench.queue.mean_response_s(rate).value
    assert (trial.ended, trial.limited, len(trial.windows)) == ("whole", None, 6)
    assert whole.completed == whole.offered
    # The standard error of a mean over windows, which are nearly independent (a busy period is some tens of ms).
    means = [window.mean_s or 0.0 for window in trial.windows]
    spread = math.sqrt(sum((mean - expected_s) ** 2 for mean in means) / len(means) / len(means))
    assert whole.mean_s == pytest.approx(expected_s + overhead_s, abs=5 * spread + 0.002)
    assert bench.peak(Criterion("mean", 0.040)) == pytest.approx(371.7, rel=0.1)


def test_a_trial_ends_when_its_windows_are_enough() -> None:
    asked: list[int] = []

    def enough(windows: Sequence[Window]) -> bool:
        asked.append(len(windows))
        return len(windows) == 2

    with KnownServer(4, "exponential", 0.010, warm_up_s=0.0, window_s=0.5) as bench:
        trial = bench.run(TrialRequest(100.0, 60.0, ""), enough)
    assert asked == [1, 2]
    assert trial.ended == "early"
    assert 1.0 <= trial.ran_s < 30
    assert len(trial.windows) in (2, 3)
    whole = joined_windows(trial.windows)
    assert whole.offered == whole.completed


def test_after_an_overload_the_server_is_idle_again() -> None:
    with KnownServer(2, "constant", 0.010, warm_up_s=0.0, window_s=0.5, drain_s=0.1) as bench:
        trial = bench.run(TrialRequest(600.0, 1.0, ""), lambda _: False)
        state = bench.state()
        assert "requests given up" in trial.note
        # The same server, of the same port, serves the next trial as if nothing had been.
        again = bench.run(TrialRequest(20.0, 1.0, ""), lambda _: False)
    assert (state["waiting"], state["busy"]) == (0, 0)
    assert joined_windows(again.windows).mean_s == pytest.approx(0.0105, abs=0.008)


def test_a_server_is_the_limit_where_as_many_are_outstanding_as_may_be() -> None:
    with KnownServer(1, "constant", 0.050, warm_up_s=0.0, outstanding=5, drain_s=0.0) as bench:
        trial = bench.run(TrialRequest(200.0, 1.0, ""), lambda _: False)
    assert trial.limited == "server"
    assert joined_windows(trial.windows).completed < 30 < joined_windows(trial.windows).offered


def test_a_server_that_dies_under_load_is_part_of_the_trial() -> None:
    with KnownServer(1, "constant", 0.010, warm_up_s=0.0, window_s=0.2) as bench:

        def killing(windows: Sequence[Window]) -> bool:
            assert bench._server is not None
            bench._server.kill()
            bench._server.wait()
            return len(windows) == 3

        trial = bench.run(TrialRequest(50.0, 5.0, ""), killing)
        assert trial.ended == "died"
        assert joined_windows(trial.windows).failed > 0
        # The next trial has a server again.
        assert bench.run(TrialRequest(50.0, 0.4, ""), lambda _: False).ended == "whole"


def test_a_full_queue_answers_503_and_state_says_so() -> None:
    with server("--workers", "1", "--law", "constant", "--mean-ms", "200", "--queue", "1") as (_, ready):
        words = ("--rate", "50", "--seconds", "0.5", "--arrivals", "constant")
        _, end = load("--url", url(ready), *words)
        connection = http.client.HTTPConnection("127.0.0.1", ready["port"], timeout=5)
        connection.request("GET", "/state")
        state = json.loads(connection.getresponse().read())
    assert end["summary"]["failures"]["status"] == state["refused"] > 15
    assert end["summary"]["completed"] == state["served"] > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_signal_ends_the_client_with_its_summary_and_the_server_at_once(number: signal.Signals) -> None:
    with server("--workers", "4", "--law", "constant", "--mean-ms", "5") as (process, ready):
        command = [engine_path(), "load", "--url", url(ready), "--rate", "100", "--seconds", "600"]
        client = subprocess.Popen([*command, "--window", "0.3"], stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        first = client.stdout.readline()
        client.send_signal(number)
        rest, _ = client.communicate(timeout=30)
        windows = [json.loads(line) for line in (first, *rest.splitlines())]
        end = windows.pop()
        assert client.returncode == 0
        assert end["summary"]["ended"] == "early"
        assert end["summary"]["offered"] == total(windows, end, "offered") == end["summary"]["completed"]
        assert end["summary"]["duration_s"] == pytest.approx(sum(w["duration_s"] for w in windows))
        process.send_signal(number)
        assert process.wait(timeout=30) == 0


def test_the_server_ends_with_whoever_started_it_where_that_is_asked_for() -> None:
    words = ("--workers", "1", "--law", "constant", "--mean-ms", "5", "--until-eof")
    with server(*words) as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_http_is_spoken_with_other_clients_too() -> None:
    with server("--workers", "2", "--law", "constant", "--mean-ms", "5") as (_, ready):
        connection = http.client.HTTPConnection("127.0.0.1", ready["port"], timeout=10)
        for method, body in (("GET", None), ("POST", b"x" * 70_000), ("HEAD", None)):
            connection.request(method, "/anything", body=body)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"" if method == "HEAD" else b"served\n")
        with socket.create_connection(("127.0.0.1", ready["port"]), timeout=10) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.0\r\n\r\n")
            heard = b""
            while more := raw.recv(4096):
                heard += more
            assert heard.count(b"200 OK") == 2
        with socket.create_connection(("127.0.0.1", ready["port"]), timeout=10) as raw:
            raw.sendall(b"\x16\x03\x01 no http\r\n\r\n")
            assert raw.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_what_cannot_be_done_is_one_line() -> None:
    words = ("--workers", "4", "--law", "exponential")
    assert "5 to 1000000" in refused(2, "known-server", *words, "--mean-ms", "4")
    assert "--law" in refused(2, "known-server", "--workers", "4", "--law", "weibull", "--mean-ms", "9")
    with server(*words, "--mean-ms", "5") as (_, ready):
        listen = f"127.0.0.1:{ready['port']}"
        line = refused(5, "known-server", *words, "--mean-ms", "5", "--listen", listen)
        assert "in use" in line
        assert "name another address" in line
        gone = url(ready)
    asked = ("--rate", "1", "--seconds", "1")
    assert gone in refused(5, "load", "--url", gone, *asked)
    assert "http://" in refused(2, "load", "--url", "localhost:80", *asked)
    assert "--rate" in refused(2, "load", "--url", gone, "--rate", "-3", "--seconds", "1")


def test_a_bench_that_cannot_start_says_why() -> None:
    with pytest.raises(MachineRefuses, match="5 to 1000000"):
        KnownServer(4, "constant", 0.001).start()


def test_nobody_is_left_behind() -> None:
    with KnownServer(1, "constant", 0.010) as bench:
        pid = bench._server.pid if bench._server else 0
        os.kill(pid, 0)
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}"):
            return
        time.sleep(0.05)
    pytest.fail("the server runs on")
