"""Hooks (setup, prepare, conclude, clean-up): lines for /bin/sh, run by a separate engine.

Processes that hooks start live until the test's clean-up, but the measuring engine ends all processes after each
trial. An orphan is inherited by the engine that started its parent, so there are two engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from etude.engine import Launch, Worker
from etude.errors import CommandFailed
from etude.experiment.bench import Bench, EngineLike
from etude.experiment.test import Test


def run_hook(bench: Bench, test: Test, point: str) -> None:
    """Run the test's hook at `point`, if it has one. Undoing hooks run even after a first signal. Raises CommandFailed:
    it did not return 0."""
    line = getattr(test, point)
    if line is None:
        return
    undoes = point in ("conclude", "cleanup")
    bench.notify("hook", test, detail=point)
    environment = dict(test.environment) | {"ETUDE_TEST": test.name, "ETUDE_POINT": point}
    shown = bench.plan.mask.text(line)
    ended = run_line(
        _keeper(bench, test),
        line,
        bench.writer.path(test.name).parent / "hooks.log",
        environment=environment,
        directory=test.directory,
        undoes=undoes,
    )
    if ended.cancelled and undoes:
        raise CommandFailed(f"{point} of test {test.name!r} was cut short by a second signal: {shown}")
    if ended.why is not None and not ended.cancelled:
        raise CommandFailed(f"{point} of test {test.name!r} failed ({ended.why}): {shown}{ended.said}")


@dataclass(frozen=True)
class HookEnd:
    """End of a shell line: its failure, if any, and the last line of its output."""

    why: str | None
    cancelled: bool
    said: str


def run_line(
    keeper: EngineLike,
    line: str,
    log: Path,
    *,
    environment: Mapping[str, str | None],
    directory: str | None = None,
    undoes: bool = False,
) -> HookEnd:
    """Run a line with /bin/sh; output goes to `log`, and processes that it starts live on. An undoing line is not ended
    by a first signal."""
    start = log.stat().st_size if log.exists() else 0
    output = {"file": str(log.absolute())}  # the engine opens it in `directory`
    worker = Worker(("/bin/sh", "-c", line), env=environment, cwd=directory, stdout=output, stderr=output)
    row = keeper.launch(Launch((worker,), leftovers="keep"), patience=1 if undoes else 0)[0]
    if row["exit_status"] == 0 and not row["error"] and not row["cancelled"]:
        return HookEnd(None, False, "")
    how = row["error"] or (
        f"signal {row['signal']}" if row["signal"] else f"exit status {row['exit_status']}"
    )
    return HookEnd(how, row["cancelled"], _last_line(log, start))


def end_hooks(bench: Bench, test: Test) -> None:
    """Run the test's clean-up, then end all processes that its hooks left."""
    try:
        run_hook(bench, test, "cleanup")
    finally:
        keeper = bench.keepers.pop(test.name, None)
        if keeper is not None:
            keeper.close()


def _keeper(bench: Bench, test: Test) -> EngineLike:
    if test.name not in bench.keepers:
        bench.keepers[test.name] = bench.make_engine()
    return bench.keepers[test.name]


def _last_line(log: Path, start: int) -> str:
    if not log.exists():  # it never started
        return ""
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""
