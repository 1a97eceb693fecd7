"""A load command on several hosts: synchronized start, merged reports, monitored ends.

The engine of each host starts the command at the common instant (machine/remote/synchronized_start.py) and ends it even
if the controller is lost. The command's output comes over the same connection by a named pipe.
"""

from __future__ import annotations

import math
import os
import selectors
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from etude.engine import EngineLost, Launch, Worker
from etude.errors import MachineRefuses
from etude.machine.remote.host import Host
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import SLACK_S
from etude.machine.remote.synchronized_start import Part, TrialEnd, run_together
from etude.peak.harnesses.load_report import LoadReport, Reader, Unreadable
from etude.peak.harnesses.processes import Share, Used, how_ended, one_line
from etude.peak.window import Window, joined_windows
from etude.results.histograms import joined

OVERLAP = 0.90
"""Share of the longest host's run in which all hosts must offer load."""
CAPTURE_BYTES = 4096
"""Tail of a load command's standard error that is stored, bytes."""
_LAST_S = 2.0
"""Timeout between the end of a command and the end of its output."""
_JOIN_S = 30.0
"""Timeout for hosts to end a run, beyond the grace period."""
_PREPARE = """\
cd {directory} && { command -v etude >/dev/null ||
    { printf '#!/bin/sh\\nexec "%s/etude-engine" "$@"\\n' "$PWD" >etude && chmod 700 etude; }; } &&
echo "${SSH_CONNECTION%% *}"
"""
"""Makes `etude` a wrapper of the engine if it is missing. Prints this machine's address as the host sees it."""


@dataclass
class _Cancel:
    """Ends a run on all hosts (etude.engine.Interrupts)."""

    fd: int | None
    write_end: int
    count: int = 0
    at_s: float = math.inf
    """Time of the first `set`, on our monotonic clock."""

    def set(self) -> None:
        """Cancel the run."""
        self.count += 1
        self.at_s = min(self.at_s, time.monotonic())
        os.write(self.write_end, b"!")


@dataclass(eq=False)
class _Following:
    host: Host
    reader: Reader
    process: subprocess.Popen[bytes]
    over: bool = False

    def take(self) -> list[LoadReport]:
        """Reports that are available now. Raises Unreadable."""
        assert self.process.stdout is not None
        try:
            chunk = os.read(self.process.stdout.fileno(), 1 << 18)
        except BlockingIOError:
            return []
        self.over = not chunk
        return self.told(lambda: self.reader.feed(chunk.decode("utf-8", "replace")))

    def told(self, read: Callable[[], list[LoadReport]]) -> list[LoadReport]:
        """Result of a reader; its errors name the host."""
        try:
            return read()
        except Unreadable as error:
            raise Unreadable(f"host {self.host.name}: {error}") from None

    def close(self) -> None:
        """Close the streams and end the process."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self.process.wait(SLACK_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LoadHosts:
    """The hosts of a harness's load generator, connected while a bench is open."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._hosts = [Host(entry) for entry in entries]
        self._addresses: dict[str, str] = {}
        self._runs = 0

    def open(self) -> None:
        """Connect to all hosts. Raises MachineRefuses if one is unreachable."""
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            for connecting in [pool.submit(self._connect, host) for host in self._hosts]:
                connecting.result()

    def close(self) -> None:
        """Close the connections and remove the files created on the hosts."""
        with ThreadPoolExecutor(len(self._hosts)) as pool:
            list(pool.map(Host.close, self._hosts))

    def shares(self, load: float, *, whole: bool) -> list[Share]:
        """Share of a load for each host; whole numbers are dealt out, so that few clients need few hosts."""
        count = len(self._hosts)
        if not whole:
            return [Share(host.name, load / count) for host in self._hosts]
        least, more = divmod(round(load), count)
        dealt = [least + (index < more) for index in range(count)]
        return [Share(host.name, each) for host, each in zip(self._hosts, dealt, strict=True) if each]

    def address(self, name: str) -> str:
        """This machine's address as a host sees it."""
        return self._addresses.get(name, "")

    def begin(
        self,
        lines: Sequence[str],
        readers: Sequence[Reader],
        runlength_s: float,
        most_s: float,
        grace_s: float,
    ) -> HostsRun:
        """Start one line on each of the first hosts at a common instant. Raises MachineRefuses: a host is lost and
        cannot be reconnected."""
        hosts = self._hosts[: len(lines)]
        for host in hosts:
            self._connect(host)
        self._runs += 1
        return HostsRun(hosts, lines, readers, f"load-{self._runs}", runlength_s, most_s, grace_s)

    def _connect(self, host: Host) -> None:
        if host.is_connected and host.name in self._addresses:
            with suppress(EngineLost):
                host.connect()
                return
        with suppress(EngineLost):  # it was lost: what was there is made again below
            host.connect()
        line = _PREPARE.replace("{directory}", shlex.quote(host.facts.directory))
        said = host.run(f"exec /bin/sh -c {shlex.quote(line)}", within_s=SLACK_S)
        self._addresses[host.name] = said.decode("utf-8", "replace").strip()


@dataclass
class HostsRun:
    """A run of the load command on several hosts (processes.LoadRun)."""

    hosts: Sequence[Host]
    lines: Sequence[str]
    readers: Sequence[Reader]
    pipe: str
    runlength_s: float
    most_s: float
    """Time limit after which the hosts end the run themselves."""
    grace_s: float
    began_s: float = 0.0
    ended: bool = False
    failed: bool = False
    wrong: str = ""
    _parts: list[Part] = field(default_factory=list)
    _following: list[_Following] = field(default_factory=list)
    _how: TrialEnd = field(default_factory=TrialEnd)
    _over_s: float | None = None
    """Time at which all hosts had reported their end."""

    def __post_init__(self) -> None:
        self._merging = MergeReports(len(self.hosts))
        self._cancel = _Cancel(*os.pipe())
        self._thread = threading.Thread(target=self._run, daemon=True)
        try:
            for host, reader in zip(self.hosts, self.readers, strict=True):
                self._following.append(_Following(host, reader, host.follow(self.pipe)))
            for following in self._following:
                _await_pipe(following)
            for host, line in zip(self.hosts, self.lines, strict=True):
                self._parts.append(Part(host.name, host.engine, self._launch(host, line), host.offset()))
        except BaseException:
            self._close()
            raise
        self.began_s = time.monotonic()
        self._thread.start()

    def hear(self, wait_s: float) -> list[LoadReport]:
        """Windows that all hosts have reported. Raises Unreadable."""
        found: list[LoadReport] = []
        reading = [each for each in self._following if not each.over]
        with selectors.DefaultSelector() as selector:
            for each in reading:
                selector.register(each.process.stdout, selectors.EVENT_READ, each)  # type: ignore[arg-type]
            ready = selector.select(wait_s) if reading else []
        if not reading:
            self._thread.join(wait_s)
        for key, _ in ready:
            found += self._merging.add(self._following.index(key.data), key.data.take())
        self._look()
        if self.ended and not self.wrong:
            found += self._finished()
        return found

    def end(self, grace_s: float) -> None:
        if self._thread.is_alive():
            self._cancel.set()
            self._thread.join(grace_s + _JOIN_S)
        self.wrong = self.wrong or self._how.why or self._apart()
        self._close()

    def used(self) -> Sequence[Used]:
        """Resources used on each host; NaN for a lost one."""
        return [_used(part) for part in self._parts]

    def _run(self) -> None:
        try:
            self._how = run_together(self._parts, interrupts=self._cancel)
        except MachineRefuses as error:
            self._how = TrialEnd(str(error))

    def _launch(self, host: Host, line: str) -> Launch:
        worker = Worker(
            ("/bin/sh", "-c", f"exec >{self.pipe}\n{line}"), env=host.variables(), stderr="capture"
        )
        return Launch(
            (worker,),
            timeout_s=self.most_s,
            grace_s=self.grace_s,
            capture_bytes=CAPTURE_BYTES,
            release="told",
        )

    def _look(self) -> None:
        """Check for a failed host, which cancels the others, and for the end of all hosts."""
        why = next((why for part in self._parts if (why := _failure(part))), "")
        if why and not self.wrong:
            self.wrong, self.failed = why, True
            self._cancel.set()
        if self._thread.is_alive():
            return
        self._over_s = self._over_s or time.monotonic()
        if all(each.over for each in self._following) or time.monotonic() > self._over_s + _LAST_S:
            self.ended = True
            if self._how.why and not self.wrong:
                self.wrong, self.failed = self._how.why, True

    def _finished(self) -> list[LoadReport]:
        found: list[LoadReport] = []
        for index, each in enumerate(self._following):
            found += self._merging.add(index, each.told(each.reader.end))
        return found + self._merging.end()

    def _apart(self) -> str:
        """Error if the hosts did not offer load at the same time; empty if they did or it is unknown."""
        spans = [span for part in self._parts if (span := self._span(part))]
        if len(spans) < len(self._parts):
            return ""
        begins_s, ends_s = max(begin for begin, _ in spans), min(end for _, end in spans)
        longest_s = max(end - begin for begin, end in spans)
        if ends_s - begins_s >= OVERLAP * longest_s:
            return ""
        first = min(begin for begin, _ in spans)
        last_end = max(end for _, end in spans)
        late = max(range(len(spans)), key=lambda index: spans[index][0])
        short = min(range(len(spans)), key=lambda index: spans[index][1])
        if begins_s - first >= last_end - ends_s:
            what = f"host {self._parts[late].name} began {begins_s - first:.3g} s after the first"
        else:
            what = f"host {self._parts[short].name} ended {last_end - ends_s:.3g} s before the last"
        together_s = max(ends_s - begins_s, 0.0)
        return f"{what}: all offered load together for {together_s:.3g} of {longest_s:.3g} s only"

    def _span(self, part: Part) -> tuple[float, float] | None:
        """Time span in which a host offered load, s of our clock, without its drain."""
        for row in part.rows or ():
            elapsed_s = row["metrics"].get("elapsed", (None,))[0]
            if row["start_ns"] is None or elapsed_s is None:
                return None
            begin_s = part.offset.ours(row["start_ns"]) / 1e9
            return begin_s, min(begin_s + min(elapsed_s, self.runlength_s), self._cancel.at_s)
        return None

    def _close(self) -> None:
        for following in self._following:
            following.close()
        for part in self._parts:
            if part.name in self._how.lost:
                next(host for host in self.hosts if host.name == part.name).close()
        if self._cancel.fd is not None and not self._thread.is_alive():
            os.close(self._cancel.fd)
            os.close(self._cancel.write_end)
            self._cancel.fd = None


def _await_pipe(following: _Following) -> None:
    """Wait until the pipe exists. Raises MachineRefuses if it cannot be created."""
    stream = following.process.stdout
    assert stream is not None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        ready = selector.select(SLACK_S)
    if not ready or os.read(stream.fileno(), 1) != b"\n":
        raise MachineRefuses(
            f"{following.host.entry.shown}: no pipe for the load command: {following.host.why()}"
        )
    os.set_blocking(stream.fileno(), False)


def _failure(part: Part) -> str:
    """Reason for the failure of a host's load command; empty if it has not failed."""
    for row in part.rows or ():
        said = one_line((row.get("stderr") or {}).get("tail", "")) or "it printed nothing"
        who = f"host {part.name}: the load command"
        if row["error"]:
            return f"{who} could not be started: {row['error']}"
        if row["timed_out"]:
            return f"{who} did not end in time"
        if row["cancelled"]:
            continue
        if status := -row["signal"] if row["signal"] else row["exit_status"]:
            return f"{who} {how_ended(status)}: {said}"
    return ""


def _used(part: Part) -> Used:
    for row in part.rows or ():
        user, system, elapsed = (
            row["metrics"].get(name, (None,))[0] for name in ("user", "system", "elapsed")
        )
        if None not in (user, system, elapsed):
            began_s = math.nan if row["start_ns"] is None else part.offset.ours(row["start_ns"]) / 1e9
            return Used(user + system, elapsed, began_s)
    return Used(math.nan, math.nan, math.nan)


@dataclass
class _Unmerged:
    """Unmerged windows of one generator, and the begin of the first, s."""

    waiting: list[LoadReport]
    begins_s: float = 0.0

    def ends_s(self) -> float:
        """End of its last reported window, s."""
        return self.begins_s + sum(each.window.duration_s for each in self.waiting)

    def reaches(self, until_s: float) -> bool:
        """True if its next window belongs after an instant, assuming the last one's length."""
        return self.ends_s() + self.waiting[-1].window.duration_s / 2 >= until_s

    def take(self, until_s: float) -> list[LoadReport]:
        """Remove and return its windows up to an instant: the first, and those whose middle is before it."""
        taken: list[LoadReport] = []
        while self.waiting:
            length_s = self.waiting[0].window.duration_s
            if taken and self.begins_s + length_s / 2 >= until_s:
                break
            self.begins_s += length_s
            taken.append(self.waiting.pop(0))
        return taken


class MergeReports:
    """Merges the reports of the generators of one run, window by window.

    The generators start at one instant, so a window begins at the sum of the durations before it. Counts and histograms
    are added, means are weighted by completed requests, and lateness is the maximum.
    """

    def __init__(self, generators: int) -> None:
        self._parts = [_Unmerged([]) for _ in range(generators)]

    def add(self, generator: int, found: Sequence[LoadReport]) -> list[LoadReport]:
        """Add new reports of one generator; returns the windows that all have now reported, each with its `parts`."""
        self._parts[generator].waiting += found
        return self._merged(whole=False)

    def end(self) -> list[LoadReport]:
        """Windows that are left when all have ended; those that only some reported are dropped."""
        return self._merged(whole=True)

    def _merged(self, *, whole: bool) -> list[LoadReport]:
        merged = []
        while all(part.waiting for part in self._parts):
            until_s = max(part.begins_s + part.waiting[0].window.duration_s for part in self._parts)
            if not whole and not all(part.reaches(until_s) for part in self._parts):
                break
            merged.append(side_by_side([in_sequence(part.take(until_s)) for part in self._parts]))
        return merged


def in_sequence(reports: Sequence[LoadReport]) -> LoadReport:
    """Consecutive windows of one generator, joined."""
    if len(reports) == 1:
        return reports[0]
    return _added(reports, math.fsum(each.window.duration_s for each in reports), reports[-1:])


def side_by_side(reports: Sequence[LoadReport]) -> LoadReport:
    """Windows of several generators for the same time span, joined into one of their mean duration."""
    durations_s = [each.window.duration_s for each in reports]
    alike = min(durations_s) == max(durations_s)
    duration_s = durations_s[0] if alike else math.fsum(durations_s) / len(durations_s)
    return replace(_added(reports, duration_s, reports), parts=tuple(reports))


def _added(reports: Sequence[LoadReport], duration_s: float, last: Sequence[LoadReport]) -> LoadReport:
    """`last`: reports that contain the requests outstanding at the end."""
    windows = [each.window for each in reports]
    whole = joined_windows(windows)
    answering = [window for window in windows if window.completed]
    counted = [window.latency for window in answering if window.latency is not None]
    latency = joined(counted) if counted and len(counted) == len(answering) else None
    mean_s = whole.mean_s if all(window.mean_s is not None for window in answering) else None
    under_way = [each.window.under_way for each in last if each.window.under_way is not None]
    waited_s = [each.window.waited_s for each in last if each.window.waited_s is not None]
    sent = [each.sent for each in reports if each.sent is not None]
    late_s = [each.lateness_p99_s for each in reports if each.lateness_p99_s is not None]
    return LoadReport(
        Window(
            duration_s,
            whole.offered,
            whole.completed,
            whole.failed,
            mean_s,
            latency,
            sum(under_way) if len(under_way) == len(last) else None,
            math.fsum(waited_s) if len(waited_s) == len(last) else None,
        ),
        sum(sent) if len(sent) == len(reports) else None,
        math.fsum(each.waited_s for each in reports),
        sum(each.refused for each in reports),
        max(late_s, default=None),
    )
