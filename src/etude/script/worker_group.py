"""The workers of one EXEC, on all hosts: their launches, output and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from etude.engine import Launch, Worker
from etude.errors import MachineRefuses
from etude.experiment.output_metric import printed_text
from etude.machine.remote.hosts import LOCAL
from etude.results.windows import VARIABLE, WindowFile
from etude.script.outputs import open_outputs
from etude.script.remote import CAPTURE_BYTES, Remote


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
