"""Remote hosts of a script: their lines, their files, and trials with workers on them; the workers of one EXEC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from etude.engine import Engine, EngineLost, Launch, Worker
from etude.errors import InputError, MachineRefuses
from etude.experiment.output_metric import printed_text
from etude.experiment.session import SessionContext
from etude.machine.remote.host import Host, Process, usage_metrics
from etude.machine.remote.hosts import LOCAL, read_hosts
from etude.machine.remote.synchronized_start import IdleHost, Offset, Part, run_together
from etude.results.model import metric_kind
from etude.results.windows import VARIABLE, WindowFile
from etude.script.arguments import CopyCommand
from etude.script.rows import open_outputs

CAPTURE_BYTES = 4 << 20
"""Maximum bytes recorded of the end of each stream of a remote command."""
_LOST = {"elapsed": "s", "user": "s", "system": "s"}
_PEAKS = ("tree_peak_memory",)


@dataclass
class Trial:
    """Result of an EXEC on hosts: rows in the order of its workers, the place of each, and the reason of a failure."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)
    why: str | None = None
    notes: list[str] = field(default_factory=list)


class Remote:
    """The hosts of a session; none before HOSTS."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._path = ""
        self._hosts: dict[str, Host] = {}

    def open(self, path: str) -> None:
        """Connect to all hosts of a file, in parallel; facts about them are written to experiment.json.

        Raises:
            InputError: the file is invalid; MachineRefuses: a host is not available.
        """
        if path == self._path:
            return
        entries = read_hosts(Path(path))
        self.close()
        self._path = path
        self._hosts = {name: Host(entry, self._context.watch) for name, entry in entries.items()}
        with ThreadPoolExecutor(max(1, len(self._hosts))) as pool:
            begun = [pool.submit(host.connect) for host in self._hosts.values()]
        for connecting in begun:
            connecting.result()
        known = {name: _described(host) for name, host in self._hosts.items()}
        self._context.document["sittings"][-1]["hosts"] = known
        self._context.save()

    def __getitem__(self, name: str) -> Host:
        """A host, connected.

        Raises:
            InputError: there is none of that name; MachineRefuses: it is not available.
        """
        if name not in self._hosts:
            raise InputError(f"no host {name!r}; there are: {', '.join(self._hosts) or 'none before HOSTS'}")
        host = self._hosts[name]
        host.connect()
        return host

    @property
    def measures(self) -> bool:
        """True if processes of some host are measured."""
        return any(host.entry.measure for host in self._hosts.values())

    def line(
        self, name: str, test: str, line: str, variables: Mapping[str, str], log: Path, *, undoes: bool
    ) -> str | None:
        """Run a line by /bin/sh on a host; returns the failure, if any. Its output is appended to `log`."""
        try:
            host = self[name]
            worker = Worker(
                ("/bin/sh", "-c", line),
                env={**variables, **host.variables()},
                stdout="capture",
                stderr="capture",
            )
            launch = Launch((worker,), leftovers="keep", capture_bytes=CAPTURE_BYTES)
            row = host.keeper(test).launch(launch, patience=1 if undoes else 0)[0]
        except EngineLost as error:
            self._hosts[name].close()
            return str(error)
        except MachineRefuses as error:
            return str(error)
        said = printed_text(row.get("stdout"), row.get("stderr"))
        with open(log, "a", encoding="utf-8", errors="replace") as file:
            file.write(said)
        if row["exit_status"] == 0 and not row["error"] and not row["cancelled"]:
            return None
        how = row["error"] or (
            f"signal {row['signal']}" if row["signal"] else f"exit status {row['exit_status']}"
        )
        lines = said.strip().splitlines()
        return f"host {name}: {how}{': ' + lines[-1].strip() if lines else ''}"

    def copy(self, copied: CopyCommand, logs: Path, trial: int) -> str | None:
        """Copy to hosts or back; returns the failure, if any. Back without a target: to `logs`/TRIAL-HOST-NAME."""
        for name in copied.hosts:
            try:
                if copied.back:
                    logs.mkdir(exist_ok=True)
                    own = logs / f"{trial:04d}-{name}-{Path(copied.source).name}"
                    self[name].copy_from_host(copied.source, Path(copied.target) if copied.target else own)
                else:
                    self[name].copy_to_host(copied.source, copied.target)
            except (MachineRefuses, InputError) as error:
                return f"COPY failed: {error}"
        return None

    # --- a trial ------------------------------------------------------------------------------------

    def prepare(self, names: Sequence[str]) -> dict[str, Offset]:
        """Connect all hosts of a trial, and those whose processes are measured; returns the offsets of their clocks.

        Raises:
            MachineRefuses: one is not available.
        """
        wanted = [*names, *(name for name, host in self._hosts.items() if host.entry.measure)]
        offsets: dict[str, Offset] = {}
        for name in dict.fromkeys(wanted):
            try:
                offsets[name] = Offset() if name == LOCAL else self[name].offset()
            except EngineLost:
                self._hosts[name].close()
                raise
        return offsets

    def run(self, launches: Mapping[str, Launch], offsets: Mapping[str, Offset]) -> Trial:
        """Run one trial: a launch on each host, all at one instant; named processes are read before and after."""
        trial = Trial()
        measured = [host for host in self._hosts.values() if host.entry.measure]
        try:
            parts = [
                Part(name, self._engine(name), replace(launch, release="told"), offsets[name])
                for name, launch in launches.items()
            ]
            beside = [IdleHost(host.name, host.engine) for host in measured if host.name not in launches]
        except MachineRefuses as error:  # it was lost since its clock was read
            trial.why = str(error)
            trial.rows = [_lost_row(trial.why) for launch in launches.values() for _ in launch.workers]
            return trial
        before = {host.name: self._read(host, trial) for host in measured}
        ended = run_together(parts, beside, self._context.watch)
        trial.why = trial.why or ended.why
        after = {host.name: self._read(host, trial) for host in measured if host.name not in ended.lost}
        for part in parts:
            self._add(trial, part)
        self._count(trial, parts, before, after, measured)
        for name in dict.fromkeys(ended.lost):
            if name != LOCAL:
                self._hosts[name].close()
        return trial

    def _engine(self, name: str) -> Engine:
        if name != LOCAL:
            return self._hosts[name].engine
        engine = self._context.engine
        assert isinstance(engine, Engine)
        return engine

    def _read(self, host: Host, trial: Trial) -> list[Process]:
        try:
            return host.processes()
        except MachineRefuses as error:
            trial.why = trial.why or f"{error}: it went away during the trial"
            return []

    def _add(self, trial: Trial, part: Part) -> None:
        why = trial.why or "lost"
        rows = part.rows
        if rows is None:
            rows = [_lost_row(why) for _ in part.launch.workers]
        here = self._context.session
        place: dict[str, Any] = {"host": here.host, "boot_id": here.boot_id}
        if part.name != LOCAL:
            place = {"host": part.name, "boot_id": self._hosts[part.name].boot_id}
        place |= {"offset_ns": part.offset.offset_ns, "offset_error_ns": part.offset.error_ns}
        for row in rows:
            trial.places.append(place)
            trial.rows.append(row | {"worker": len(trial.rows)})

    def _count(
        self,
        trial: Trial,
        parts: Sequence[Part],
        before: Mapping[str, list[Process]],
        after: Mapping[str, list[Process]],
        measured: Sequence[Host],
    ) -> None:
        """Metrics of the whole trial: in the row of worker 0, summed over the hosts."""
        shared = _shared([part.rows[0]["metrics"] for part in parts if part.rows])
        for row in trial.rows:
            row["metrics"] = {n: v for n, v in row["metrics"].items() if metric_kind(n, v[1]).join != "first"}
        metrics = trial.rows[0]["metrics"]
        metrics |= shared
        for host in measured:
            if host.name in after:
                names = host.entry.measure
                found, gone = usage_metrics(host.name, names, before[host.name], after[host.name])
                trial.why = trial.why or (gone[0] if gone else None)
            else:
                found = {
                    f"{host.name}.{n}.cpu": [None, "s", "the host went away"] for n in host.entry.measure
                }
            metrics |= found

    # --- the end ------------------------------------------------------------------------------------

    def take(self, name: str, files: Mapping[str, Path]) -> None:
        """Copy files of a host's directory here, if they exist.

        Raises:
            MachineRefuses: the host is lost.
        """
        host = self._hosts[name]
        if not host.is_connected:
            raise MachineRefuses(f"{host.entry.shown}: is not connected any more")
        for found, here in zip(host.take(list(files)), files.values(), strict=True):
            if found is not None:
                here.write_bytes(found)

    def end_test(self, test: str) -> None:
        """End the processes of a test's set-up."""
        for host in self._hosts.values():
            host.release(test)

    def close(self) -> None:
        """Disconnect from all hosts and remove our files there."""
        with ThreadPoolExecutor(max(1, len(self._hosts))) as pool:
            list(pool.map(Host.close, self._hosts.values()))
        self._hosts, self._path = {}, ""


def start_spread(rows: Sequence[Mapping[str, Any]], workers: int) -> list[Any]:
    """Metric `start_spread`: time from the first to the last worker's first measured start, on our clock, s."""
    starts: dict[int, int] = {}
    for row in rows:
        if row["start_ns"] is not None:
            starts.setdefault(row["worker"], row["start_ns"] - row["offset_ns"])
    if len(starts) < workers:
        return [None, "s", "not all workers started"]
    return [(max(starts.values()) - min(starts.values())) / 1e9, "s"]


def _described(host: Host) -> dict[str, Any]:
    found = host.info()
    facts = found.facts
    return {
        "address": host.entry.address,
        "name": facts.nodename,
        "machine": facts.machine,
        "kernel": facts.release,
        "boot_id": facts.boot_id,
        "cpus": found.cpus,
        "offset_ns": found.offset.offset_ns,
        "offset_error_ns": found.offset.error_ns,
    }


def _lost_row(why: str) -> dict[str, Any]:
    return {
        "start": None,
        "start_ns": None,
        "inner": 1,
        "exit_status": None,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "error": why,
        "metrics": {name: [None, unit, why] for name, unit in _LOST.items()},
    }


def _shared(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metrics of a trial as a whole, over its hosts: sums, maxima for peaks; null if a host has none."""
    shared: dict[str, Any] = {}
    for name, value in metrics[0].items() if metrics else ():
        if metric_kind(name, value[1]).join != "first":
            continue
        values = [host.get(name) or [None, value[1], "not on all hosts"] for host in metrics]
        missing = next((v for v in values if v[0] is None), None)
        join = max if name in _PEAKS else sum
        shared[name] = missing or [join(v[0] for v in values), value[1]]
    return shared


@dataclass(frozen=True)
class Shared:
    """Launch parameters shared by all workers of a host."""

    words: tuple[str, ...]
    timeout_s: float | None
    cgroup: str
    counters: str
    variables: Mapping[str, str]


@dataclass
class WorkerGroup:
    """`threads` workers on each of `hosts`, numbered from 0 over all; `directory` is the test's."""

    hosts: Sequence[str]
    threads: int
    directory: str
    outputs: list[str] = field(default_factory=list)
    windows: list[WindowFile] = field(default_factory=list)

    @property
    def numbers(self) -> range:
        """Numbers of all workers."""
        return range(self.threads * len(self.hosts))

    @property
    def logs(self) -> list[str]:
        """Local paths of the workers' $APLOG."""
        return [f"{self.directory}/aplog-{number}" for number in self.numbers]

    def open(self) -> None:
        """Prepare the files for output and logs."""
        self.outputs = open_outputs(self.directory, len(self.numbers))
        for log in self.logs:  # of a killed session
            Path(log).unlink(missing_ok=True)
        self.windows = [WindowFile(f"{self.directory}/windows-{number}") for number in self.numbers]

    def of(self, host: str) -> range:
        """The numbers of one host's workers."""
        at = list(self.hosts).index(host) * self.threads
        return range(at, at + self.threads)

    def launch(self, host: str, shared: Shared, away: str = "") -> Launch:
        """The launch of one host; `away`: our directory there, if it is remote."""
        numbers = self.of(host) if host in self.hosts else range(self.threads)
        return Launch(
            tuple(self._worker(number, shared, away) for number in numbers),
            timeout_s=shared.timeout_s,
            cgroup=shared.cgroup,
            counters=shared.counters,
            capture_bytes=CAPTURE_BYTES if away else 4096,
            barrier="inside",
        )

    def _worker(self, number: int, shared: Shared, away: str) -> Worker:
        directory = away or self.directory
        own = {
            "APTHREAD": str(number + 1),
            "APLOG": f"{directory}/aplog-{number}",
            VARIABLE: f"{directory}/windows-{number}",
        }
        output: str | dict[str, str] = "capture" if away else {"file": self.outputs[number]}
        return Worker(shared.words, env={**shared.variables, **own}, stdout=output, stderr=output)

    def take(self, rows: Sequence[dict[str, Any]], remote: Remote) -> list[str]:
        """Copy output and logs of remote workers to the paths of local ones; returns the failures, in words."""
        problems = []
        for host in self.hosts:
            if host == LOCAL:
                continue
            for number in self.of(host):
                said = [rows[number].pop(stream, None) for stream in ("stdout", "stderr")]
                text = printed_text(*said)
                Path(self.outputs[number]).write_text(text, encoding="utf-8", errors="replace")
            names = [name for n in self.of(host) for name in (f"aplog-{n}", f"windows-{n}")]
            try:
                remote.take(host, {name: Path(self.directory, name) for name in names})
            except MachineRefuses as error:
                problems.append(f"what was written there was not brought back: {error}")
        return problems
