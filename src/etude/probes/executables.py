"""Executable probes: every executable in a directory `probes.d` of the library (docs/howto/extending.md)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import mkstemp

from etude.osutil.trust import check_for_root
from etude.probes.probe import Context, ProbeBlock, ProbeFailed, Reading
from etude.results.model import MetricValue
from etude.results.res import metric_of, parse_blocks

DIRECTORY = "probes.d"
TIMEOUT_S = 10.0
MAX_NOTES = 3


def find_executables(library: Iterable[str | os.PathLike[str]]) -> list[Executable]:
    """A probe for each executable in `probes.d` of each directory of the library ($APLIB), in their order.

    Names that start with a dot or end in ~ are skipped. Of two with one name, the later is called NAME-2. Raises
    InputError: this is root, and others could have written one.
    """
    found: list[Executable] = []
    names: list[str] = []
    for directory in dict.fromkeys(Path(entry) for entry in library):
        for path in _files(directory / DIRECTORY):
            names.append(path.stem)
            number = names.count(path.stem)
            found.append(Executable(path, path.stem if number == 1 else f"{path.stem}-{number}"))
    return found


def _files(directory: Path) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        path = directory / name
        hidden = name.startswith(".") or name.endswith("~")
        if not hidden and path.is_file() and os.access(path, os.X_OK):
            check_for_root(path)
            yield path.absolute()


class Executable:
    """Runs `FILE start` before and `FILE end` after; $APPROBESTATE is a file that the first may fill."""

    def __init__(self, path: Path, name: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.name = name
        self._path = path
        self._timeout_s = timeout_s

    def unavailable(self) -> str | None:
        return None if os.access(self._path, os.X_OK) else f"{self._path} cannot be executed"

    def start(self, context: Context) -> Path:
        descriptor, name = mkstemp(prefix="etude-probe-")
        os.close(descriptor)
        state = Path(name)
        try:
            self._run("start", state, context)
        except BaseException:
            state.unlink(missing_ok=True)
            raise
        return state

    def end(self, state: Path, context: Context) -> Reading:
        try:
            return parse_output(self._run("end", state, context))
        finally:
            state.unlink(missing_ok=True)

    def _run(self, when: str, state: Path, context: Context) -> str:
        """Output of the executable. Raises ProbeFailed: it cannot be run, did not return 0, or took too long."""
        around = {**os.environ, **context.environment, "APPROBESTATE": str(state)}
        try:
            # In a group of its own: none of its processes may run on beside the command after its timeout.
            running = subprocess.Popen(
                [self._path, when],
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise ProbeFailed(f"{self._path} cannot be run: {error.strerror}") from None
        with running:
            try:
                output, complaint = running.communicate(timeout=self._timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                raise ProbeFailed(f"`{self._path} {when}` took more than {self._timeout_s:g} s") from None
        if running.returncode != 0:
            code = running.returncode
            ending = f"was killed by signal {-code}" if code < 0 else f"returned {code}"
            raise ProbeFailed(f"`{self._path} {when}` {ending}{_last_line(complaint)}")
        return output.decode("utf-8", "replace")


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def parse_output(output: str) -> Reading:
    """`name = value [unit]` lines as metrics, lines below a `[block]` as that block.

    A value may be `null UNIT WHY`. Other lines are skipped, with a note.
    """
    metrics: dict[str, MetricValue] = {}
    blocks: list[ProbeBlock] = []
    unread: list[str] = []
    for block in parse_blocks(output):
        if block.name not in ("", "measurement"):
            blocks.append(ProbeBlock(block.name, tuple(block.lines)))
            continue
        for line in filter(str.strip, block.lines):
            name, _, text = line.partition("=")
            metric = metric_of(text)
            if metric is None or not name.strip():
                unread.append(f"left out a line that is not `name = value [unit]`: {line[:60]!r}")
            else:
                metrics.setdefault(name.strip(), metric)
    if len(unread) > MAX_NOTES:
        unread[MAX_NOTES:] = [f"left out {len(unread) - MAX_NOTES} more such lines"]
    return Reading(metrics, tuple(blocks), tuple(unread))
