"""`etude load` and servers that are away, die, answer garbage, errors or nothing: bounded, counted, said in windows."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from etude.program import engine_path

pytestmark = pytest.mark.beside

Document = dict[str, Any]

RATE, SECONDS = 200, 1
OFFERED = RATE * SECONDS


@contextmanager
def answering(answer: Callable[[socket.socket, int], bool]) -> Iterator[str]:
    """A server on a port of its own: `answer` is called with a connection and the number of the request that has come,
    counted over all of them, and says whether to go on with it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    count, lock = [0], threading.Lock()

    def serve(peer: socket.socket) -> None:
        with peer:
            try:
                while peer.recv(65536):
                    with lock:
                        number, count[0] = count[0], count[0] + 1
                    if not answer(peer, number):
                        return
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        # Whoever waits in `accept` is woken by this, and not by a close alone.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def load(url: str, *words: str) -> tuple[list[Document], Document]:
    command = [engine_path(), "load", "--url", url, "--seconds", str(SECONDS), "--window", "0.25", *words]
    if "--clients" not in words:
        command += ["--rate", str(RATE), "--arrivals", "constant"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    *windows, end = [json.loads(line) for line in done.stdout.splitlines()]
    return windows, end


def accounted(windows: list[Document], end: Document) -> Document:
    """The summary, whose parts have been added up."""
    summary: Document = end["summary"]
    assert summary["offered"] == summary["completed"] + summary["failed"] + summary["abandoned"]
    failures = dict(summary["failures"])
    errors = failures.pop("errors")
    assert sum(failures.values()) == summary["failed"]
    assert sum(errors.values()) == failures["status"]
    parts = [*windows, end["drained"] or {"failed": 0}]
    assert sum(each["failed"] for each in parts) == summary["failed"]
    for each in parts:
        told = each.get("failures", {"errors": {}})
        assert sum(count for name, count in told.items() if name != "errors") == each["failed"]
    return summary


def says(text: str) -> Callable[[socket.socket, int], bool]:
    def answer(peer: socket.socket, number: int) -> bool:
        peer.sendall(text.encode())
        return True

    return answer


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(says("\x16\x03\x01 garbage\r\n\r\n"), "malformed", id="garbage"),
        pytest.param(says("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"), "malformed", id="length"),
        pytest.param(says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), "status", id="503"),
        pytest.param(lambda peer, number: False, "closed", id="closes"),
        pytest.param(lambda peer, number: True, "timeout", id="nothing"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(
    answer: Callable[[socket.socket, int], bool], kind: str
) -> None:
    with answering(answer) as url:
        windows, end = load(url, "--timeout", "0.2" if kind == "timeout" else "4", "--drain", "5")
    summary = accounted(windows, end)
    assert (summary["offered"], summary["completed"]) == (OFFERED, 0)
    assert summary["failures"][kind] == OFFERED, summary
    assert summary["failures"]["errors"] == ({"503": OFFERED} if kind == "status" else {})
    assert any(window["failures"][kind] for window in windows if window["failed"])


def test_an_answer_without_an_end_is_given_up_in_its_time() -> None:
    with answering(says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")) as url:
        windows, end = load(url, "--timeout", "0.1", "--outstanding", "3")
    summary = accounted(windows, end)
    # Three at a time, each given up 0.1 s after it was due, what waits for them too: nothing is left to drain.
    assert (summary["offered"], summary["failures"]["timeout"]) == (OFFERED, OFFERED)
    assert summary["drained_s"] < 1


def test_clients_of_a_server_that_answers_nothing_go_on_after_their_timeout() -> None:
    with answering(lambda peer, number: True) as url:
        windows, end = load(url, "--clients", "4", "--timeout", "0.1", "--drain", "0")
    summary = accounted(windows, end)
    assert (summary["asked_clients"], summary["completed"], summary["asked_rate"]) == (4, 0, None)
    assert 4 < summary["offered"] <= 4 * 11
    assert summary["abandoned"] <= 4


def test_a_server_that_dies_in_mid_run_is_told_in_the_windows_and_the_rate_is_offered_all_the_same() -> None:
    words = ("--workers", "20", "--law", "constant", "--mean-ms", "5")
    server = subprocess.Popen([engine_path(), "known-server", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}/"
        command = [engine_path(), "load", "--url", url, "--rate", "200", "--arrivals", "constant"]
        client = subprocess.Popen(
            [*command, "--seconds", "3", "--window", "0.25"], stdout=subprocess.PIPE, text=True
        )
        assert client.stdout is not None
        first = client.stdout.readline()
        server.kill()
        server.wait()
        rest, _ = client.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
        server.stdout and server.stdout.close()
    *windows, end = [json.loads(line) for line in (first, *rest.splitlines())]
    assert client.returncode == 0
    summary = accounted(windows, end)
    assert windows[0]["completed"] > 0
    # On a busy machine a request may be sent in the window after the one in which it was due.
    offered = [window["offered"] for window in windows]
    assert (len(offered), sum(offered)) == (12, 600)
    assert min(offered) > 0
    assert windows[-1]["failures"]["connect"] == windows[-1]["failed"] > 0
    assert windows[-1]["completed"] == 0
    assert summary["failures"]["connect"] > 0
    assert summary["ended"] == "whole"


def test_nobody_at_the_start_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    command = [engine_path(), "load", "--url", url, "--rate", "1", "--seconds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(f"etude load: {url}: Connection refused")
    assert done.stderr.count("\n") == 1


def test_a_rate_that_cannot_be_offered_is_said_and_what_was_due_is_told_truly() -> None:
    """Far more than one CPU can send: the schedule goes on, and the summary names the generator."""
    words = ("--workers", "100000", "--law", "constant", "--mean-ms", "5")
    server = subprocess.Popen([engine_path(), "known-server", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}/"
        *windows, end = offered_too_much(url)
    finally:
        server.kill()
        server.wait()
        server.stdout and server.stdout.close()
    summary = end["summary"]
    # Whatever the client could do, it says what it was asked to.
    assert summary["offered"] == pytest.approx(400_000 * summary["duration_s"], rel=1e-3)
    assert summary["started"] < summary["offered"]
    assert summary["generator_limited"] is True, end
    assert any(window["waiting"] for window in windows) or end["lateness_p99_s"] > 0.01


def offered_too_much(url: str) -> list[Document]:
    command = [engine_path(), "load", "--url", url, "--rate", "400000", "--arrivals", "constant"]
    bounds = ("--seconds", "1", "--outstanding", "200", "--drain", "0")
    done = subprocess.run([*command, *bounds], capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_rate_that_is_offered_easily_is_not_the_generators_fault() -> None:
    with answering(says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as url:
        _, end = load(url, "--clients", "1", "--think", "0.05")
    summary = end["summary"]
    assert summary["busy"] < 0.8
    assert summary["cpu_per_request_s"] > 0
    assert (summary["target"], summary["wait"]) == ("http", "sleep")


def test_a_signal_ends_a_run_that_spins() -> None:
    with answering(says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as url:
        command = [engine_path(), "load", "--url", url, "--rate", "50", "--seconds", "600", "--wait", "spin"]
        client = subprocess.Popen([*command, "--window", "0.2"], stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        first = client.stdout.readline()
        client.send_signal(signal.SIGTERM)
        rest, _ = client.communicate(timeout=60)
    *windows, end = [json.loads(line) for line in (first, *rest.splitlines())]
    assert client.returncode == 0
    assert (accounted(windows, end)["ended"], end["summary"]["wait"]) == ("early", "spin")


def test_it_ends_when_nobody_reads() -> None:
    with answering(says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as url:
        command = [engine_path(), "load", "--url", url, "--rate", "50", "--seconds", "600", "--window", "0.1"]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert client.stdout is not None
            client.stdout.readline()
            client.stdout.close()
            assert client.wait(timeout=60) == 0
        finally:
            client.kill()
            client.wait()


def test_the_verb_of_etude_is_the_engines(tmp_path: os.PathLike[str]) -> None:
    from etude.cli.verbs import ENGINE_VERBS, overview

    assert "load" in ENGINE_VERBS
    assert "  load " in overview()
    done = subprocess.run([engine_path(), "load", "--help"], capture_output=True, text=True, check=True)
    assert "--rate" in done.stdout
    assert "--url" in done.stdout
