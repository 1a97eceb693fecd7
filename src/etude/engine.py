"""The only module that talks to `etude-engine`: requests and rows (docs/reference/formats.md, "The boundary")."""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from etude.errors import MachineRefuses
from etude.limits import limit_reached
from etude.program import engine_path

PROTOCOL = 1


@dataclass(frozen=True)
class Worker:
    """One process of a launch; members as in docs/reference/formats.md."""

    argv: tuple[str, ...]
    env: Mapping[str, str | None] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | Mapping[str, str] = "null"
    stdout: str | Mapping[str, str] = "null"
    stderr: str | Mapping[str, str] = "null"
    cpus: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Repeat:
    """Repetitions within the engine, which writes each line to `journal` itself."""

    count: int
    journal: str
    trial: int
    block: int
    head: Mapping[str, Any]
    within_s: float | None = None
    """Time after which no trial but the first starts, s."""


@dataclass(frozen=True)
class Launch:
    """One trial's worth of processes; members as in docs/reference/formats.md."""

    workers: tuple[Worker, ...]
    timeout_s: float | None = None
    grace_s: float = 2.0
    inner: int = 1
    cgroup: str | None = None
    counters: str = "off"
    capture_bytes: int = 4096
    leftovers: str = "end"
    accept: str = "zero"
    barrier: str = "start"
    release: str = "own"
    repeat: Repeat | None = None


@dataclass(frozen=True)
class Repeated:
    """End of a repetition: the number of trials in the journal, and why there are no more."""

    done: int
    stopped: str | None


class Interrupts(Protocol):
    """Signal watcher: a descriptor that becomes readable, and the number of signals."""

    fd: int | None
    count: int


class EngineLost(MachineRefuses):
    """The engine has ended, or does not answer: its work is lost."""


@dataclass(frozen=True)
class Transport:
    """A started engine, maybe on another machine: the local process that leads to it, its two pipes, its name in
    messages, and why it ended, if known. Whoever started the process waits for it."""

    pid: int
    requests: int
    answers: int
    name: str
    why: Callable[[], str] = str


class Engine:
    """A running `etude-engine serve`. Closing it ends everything that it started."""

    def __init__(
        self,
        interrupts: Interrupts | None = None,
        program: str | None = None,
        *,
        transport: Transport | None = None,
        hello_within_s: float | None = None,
    ) -> None:
        """Start the engine, unless `transport` is a started one, and read its hello.

        Raises:
            MachineRefuses: it is not installed, cannot be run, has another protocol, or does not answer in time.
        """
        self._interrupts = interrupts
        self._number = 0
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []
        self._ours = transport is None
        transport = transport or _started(program or engine_path())
        self._program, self._why = transport.name, transport.why
        self.pid, self._requests, self._answers = transport.pid, transport.requests, transport.answers
        answer = self._read(hello_within_s)
        self.hello: Mapping[str, Any] = answer.get("hello", {})
        if self.hello.get("protocol") != PROTOCOL:
            self.close()
            raise MachineRefuses(
                f"{self._program}: speaks protocol {self.hello.get('protocol')}, expected {PROTOCOL}; "
                "reinstall Étude so that both parts are of one version"
            )

    def launch(self, launch: Launch, *, patience: int = 0) -> list[dict[str, Any]]:
        """Run one trial; more than `patience` signals cancel it.

        Returns:
            One row per worker.

        Raises:
            MachineRefuses: the engine died, or could not parse the request.
        """
        self._send_launch(launch)
        return within_limit(self._answer(patience)["rows"], launch)

    # --- a launch with several engines, step by step -------------------------------------------------

    def begin(self, launch: Launch) -> int:
        """Request a launch without waiting for it; returns its number."""
        self._send_launch(launch)
        return self._number

    def release(self, number: int, at_ns: int) -> None:
        """Start the ready workers of a launch at an instant of the engine's clock, ns."""
        self._send({"do": "release", "id": number, "at_ns": at_ns})

    def cancel(self) -> None:
        """End the launch under way; it is answered."""
        self._send({"do": "cancel"})

    def fileno(self) -> int:
        """A descriptor that becomes readable for an answer or the engine's end; -1 once it is closed."""
        return self._answers if self._requests >= 0 else -1

    def answers(self) -> list[dict[str, Any]]:
        """The answers that have arrived, after `fileno` became readable.

        Raises:
            EngineLost: it has ended.
        """
        self._fill()
        found = []
        while self._lines:
            found.append(self._read())
        return found

    def ask(self, what: str, *, within_s: float, **members: Any) -> dict[str, Any]:
        """Answer to a request that takes no time.

        Raises:
            EngineLost: it has ended, or there was no answer in time.
        """
        self._send({"do": what, "id": self._next(), **members})
        return self._read(within_s)

    def repeat(self, launch: Launch, progress: Callable[[int], None]) -> Repeated:
        """Run `launch.repeat.count` trials with nothing in between; a signal meanwhile ends them.

        Raises:
            MachineRefuses: same as `launch`.
        """
        self._send_launch(launch)
        while "done" not in (answer := self._answer()):
            progress(answer["progress"])
        return Repeated(answer["done"], answer["stopped"])

    def end(self) -> int:
        """End the processes that launches with `leftovers="keep"` left; returns their number."""
        self._send({"do": "end", "id": self._next()})
        ended: int = self._answer()["ended"]
        return ended

    def close(self, *, wait: bool = True) -> None:
        """End the engine and all that it started. Leaving its cgroup may take it 20 ms: `wait` includes that."""
        if self._requests < 0:
            return
        os.close(self._requests)
        self._requests = -1
        os.close(self._answers)
        if self._ours:
            _ending.append(self.pid)
            reap(wait)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _send_launch(self, launch: Launch) -> None:
        self._send({"do": "launch", "id": self._next()} | _plain(launch))

    def _send(self, request: Mapping[str, Any]) -> None:
        if self._requests < 0:
            raise EngineLost(f"{self._program}: {self._why() or 'it has ended'}")
        data = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._requests, data) :]
        except BrokenPipeError:
            raise self._died() from None

    def _answer(self, patience: int = 0) -> dict[str, Any]:
        """The next answer; cancels the launch under way after more than `patience` signals."""
        cancelled = False
        while not self._lines:
            if not cancelled and self._interrupts is not None and self._interrupts.count > patience:
                cancelled = True
                self._send({"do": "cancel"})
            self._wait()
        answer = self._read()
        if answer.get("error") is not None:
            raise MachineRefuses(f"the engine refused: {answer['error']}")
        return answer

    def _wait(self) -> None:
        """Wait until the engine has written or a signal has come; read what has arrived."""
        signals = self._interrupts.fd if self._interrupts is not None else None
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        if signals is not None:
            poll.register(signals, select.POLLIN)
        ready = dict(poll.poll())
        if signals in ready:
            os.read(signals, 4096)
        if self._answers in ready:
            self._fill()

    def _fill(self) -> None:
        data = os.read(self._answers, 1 << 20)
        if not data:
            raise self._died()
        # An answer may hold megabytes of a program's output: no byte is scanned twice.
        *ends, begun = data.split(b"\n")
        for end in ends:
            self._lines.append(b"".join([*self._begun, end]))
            self._begun.clear()
        self._begun.append(begun)

    def _read(self, within_s: float | None = None) -> dict[str, Any]:
        until = None if within_s is None else time.monotonic() + within_s
        while not self._lines:
            if until is not None and not _readable(self._answers, until - time.monotonic()):
                self.close(wait=False)
                raise EngineLost(f"{self._program}: no answer within {within_s:g} s")
            self._fill()
        line = self._lines.popleft()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise MachineRefuses(
                f"{self._program}: is not Étude's engine: it prints {line[:40]!r}; "
                "reinstall Étude, or correct $ETUDE_ENGINE"
            )
        return answer

    def _died(self) -> MachineRefuses:
        if self._requests >= 0:
            os.close(self._requests)
            os.close(self._answers)
        self._requests = -1
        if not self._ours:
            return EngineLost(f"{self._program}: {self._why() or 'it ended in the middle of its work'}")
        try:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        except ChildProcessError:
            how = "ended"
        return EngineLost(f"{self._program} (process {self.pid}) {how} in the middle of its work")


def within_limit(rows: list[dict[str, Any]], launch: Launch) -> list[dict[str, Any]]:
    """The rows; a worker that took longer than the launch allows is marked as timed out, also if the engine was stopped
    meanwhile and did not notice."""
    if launch.timeout_s is None:
        return rows
    for row in rows:
        elapsed_s: float = row["metrics"].get("elapsed", (None,))[0] or 0.0
        row["timed_out"] = row["timed_out"] or elapsed_s > launch.timeout_s
    return rows


def _plain(launch: Launch) -> dict[str, Any]:
    """Same as `asdict`, without copying every text: this is done before each trial."""
    workers = [vars(worker) | {"env": dict(worker.env)} for worker in launch.workers]
    repeat = None if launch.repeat is None else asdict(launch.repeat)
    return vars(launch) | {"workers": workers, "repeat": repeat}


_ending: list[int] = []
"""Engines that are ending and have not been waited for."""


def reap(wait: bool = True) -> None:
    """Wait for ending engines, or only reap those that have ended."""
    for pid in _ending[:]:
        try:
            ended, _ = os.waitpid(pid, 0 if wait else os.WNOHANG)
        except ChildProcessError:  # somebody else waited for it
            ended = pid
        if ended:
            _ending.remove(pid)


def _readable(descriptor: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _started(program: str) -> Transport:
    try:
        return Transport(*start([program, "serve"]), program)
    except OSError as error:
        advice = limit_reached(error.errno) or "reinstall Étude"
        raise MachineRefuses(f"{program}: cannot be run: {error.strerror}; {advice}") from None


def start(words: Sequence[str], errors: int = 2) -> tuple[int, int, int]:
    """Start a command in a process group of its own, so that Ctrl-C reaches only us; returns its process and the ends
    of the pipes to its standard input and output. `errors` becomes its standard error.

    Raises:
        OSError: it cannot be run.
    """
    request_out, request_in = os.pipe()
    answer_out, answer_in = os.pipe()
    try:
        pid = os.posix_spawnp(
            words[0],
            list(words),
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, request_out, 0),
                (os.POSIX_SPAWN_DUP2, answer_in, 1),
                (os.POSIX_SPAWN_DUP2, errors, 2),
            ],
            setpgroup=0,
        )
    except OSError:
        os.close(request_in)
        os.close(answer_out)
        raise
    finally:
        os.close(request_out)
        os.close(answer_in)
    return pid, request_in, answer_out
