"""Running a plan from its directory's creation to its last line, and going on with one that was interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude import __version__
from etude.engine import Engine
from etude.errors import EtudeError, InputError, Interrupted
from etude.experiment import loop
from etude.experiment.bench import Bench, EngineLike, Event, Sitting
from etude.experiment.interrupts import SignalWatch
from etude.experiment.ledger import Ledger
from etude.experiment.plan import Plan, digest, from_document, to_document
from etude.results.model import METRICS, signal_name
from etude.results.reader import FORMAT, VERSION, Results, drop_torn_trial, load_results, read_experiment
from etude.results.writer import ResultsWriter, directory_name, refused, replace_json, sole_writer
from etude.testbed import snapshot

if TYPE_CHECKING:
    from etude.stats.stopping import Decision

Observer = Callable[[Event, Ledger], None]
EngineMaker = Callable[[SignalWatch], EngineLike]


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment and the stop rule's last word on each group of tests."""

    results: Results
    decisions: tuple[Decision, ...]


def silent(event: Event, ledger: Ledger) -> None:
    """An observer that says nothing."""


def run(
    plan: Plan,
    directory: str | os.PathLike[str] | None = None,
    *,
    observe: Observer = silent,
    make_engine: EngineMaker = Engine,
    command_line: Sequence[str] = (),
    verb: str = "run",
) -> Outcome:
    """Run a plan into a new results directory (default `etude-results/NAME-UTCTIME`).

    Raises:
        EtudeError: as the classes of etude.errors say; what was measured is on disk.
    """
    path = new_directory(directory, plan.name)
    with sole_writer(path):
        if _holds_results(path):
            raise _already(path)
        return _sit(plan, path, _new_document(plan, verb, command_line), observe, make_engine)


def resume(
    directory: str | os.PathLike[str], *, observe: Observer = silent, make_engine: EngineMaker = Engine
) -> Outcome:
    """Go on with an experiment that was interrupted, in a new sitting; one that is complete stays as it is.

    Raises:
        EtudeError: as `run`; InputError where there is nothing that can be resumed.
    """
    path = Path(directory)
    read_experiment(path)
    with sole_writer(path):
        document = read_experiment(path)  # as whoever wrote here last left it
        plan = from_document(document["plan"], str(path / "experiment.json"))
        if document["sittings"] and document["sittings"][-1].get("how_ended") == "complete":
            return Outcome(load_results(path), ())
        return _sit(plan, path, document, observe, make_engine)


def new_directory(directory: str | os.PathLike[str] | None, name: str) -> Path:
    """Create the directory that results go to.

    Raises:
        MachineRefuses: it cannot be made; InputError: it holds results already.
    """
    stem = directory_name(name, ())
    path = Path(directory or f"etude-results/{stem}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    try:
        if _holds_results(path):
            if directory is not None:
                raise _already(path)
            path = path.with_name(f"{path.name}-{os.getpid()}")
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(path, error) from error
    return path


def _holds_results(path: Path) -> bool:
    return (path / "experiment.json").exists()


def _already(path: Path) -> InputError:
    return InputError(f"{path}: holds results already; go on with --resume {path}, or name another with -o")


def _new_document(plan: Plan, verb: str, command_line: Sequence[str]) -> dict[str, Any]:
    tests: list[dict[str, Any]] = []
    for test in (*plan.tests, *loop.added_tests(plan)):
        name = directory_name(test.name, [t["directory"] for t in tests])
        tests.append(
            {
                "name": test.name,
                "directory": name,
                "role": test.role,
                "parameters": dict(test.parameters),
                "workers": test.workers,
            }
        )
    own = {p.name: {"unit": p.unit, "kind": "cost"} for test in plan.tests for p in test.metrics}
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": plan.name,
        "verb": verb,
        "command_line": list(command_line),
        "digest": digest(plan),
        "plan": to_document(plan),
        "tests": tests,
        "metrics": {name: {"unit": m.unit, "kind": m.kind} for name, m in METRICS.items()} | own,
        "versions": {"etude": __version__, "python": sys.version.split()[0]},
        "machine": {"before": snapshot.take(), "after": None},
        "sittings": [],
    }


def _sit(
    plan: Plan, path: Path, document: dict[str, Any], observe: Observer, make_engine: EngineMaker
) -> Outcome:
    """One sitting: measure, and say in experiment.json how it ended, whatever happens."""
    directories = {test["name"]: test["directory"] for test in document["tests"]}
    torn = [
        test["directory"]
        for test in document["tests"]
        if drop_torn_trial(path / test["directory"] / "results.jsonl", test.get("workers", 1))
    ]
    resumed = bool(document["sittings"])  # the document is first written together with a sitting
    measured = load_results(path).measurements if resumed else dict.fromkeys(directories, ())
    writer = ResultsWriter(path, directories)
    ledger = Ledger(measured)
    with SignalWatch() as watch, _engine(make_engine, watch) as engine:
        sitting = _sitting(document, engine, torn)
        replace_json(path / "experiment.json", document)
        bench = Bench(plan, writer, ledger, sitting, watch, engine, lambda: make_engine(watch), observe)
        if sitting.number > 1:
            bench.tell("resumed", detail=f"{sum(map(len, measured.values()))} measurements on disk")
        try:
            decisions = loop.run_groups(bench)
            _finish(path, document, writer, "complete", [d.why for d in decisions])
        except EtudeError as raised:
            error = _as_interrupt(raised, watch)
            _finish(path, document, writer, str(error), [])
            raise _told_where(error, path, any(map(ledger.kept, directories))) from raised.__cause__
        except BaseException as error:
            _finish(path, document, writer, type(error).__name__, [])
            raise
    return Outcome(Results(path, document, ledger.measurements(), ()), tuple(decisions))


def _as_interrupt(error: EtudeError, watch: SignalWatch) -> EtudeError:
    """What failed after a signal, a clean-up say, failed because of it or does not matter as much."""
    if watch.signal is None or isinstance(error, Interrupted):
        return error
    return Interrupted(watch.signal, f"ended by {signal_name(watch.signal)}; then: {error}")


def _told_where(error: EtudeError, path: Path, measured: bool) -> EtudeError:
    """The error with where the results are, and for an interrupt how to go on."""
    if isinstance(error, Interrupted):
        error.args = (f"{error}; what was measured is in {path}; go on with: etude bench --resume {path}",)
    elif measured:
        error.args = (f"{error}; what was measured is in {path}",)
    return error


@contextmanager
def _engine(make_engine: EngineMaker, watch: SignalWatch) -> Iterator[EngineLike]:
    engine = make_engine(watch)
    try:
        yield engine
    finally:
        engine.close(wait=False)


def _sitting(document: dict[str, Any], engine: EngineLike, torn: Sequence[str]) -> Sitting:
    sitting = Sitting(len(document["sittings"]) + 1, os.uname().nodename, boot_id())
    document["versions"]["engine"] = engine.hello["engine"]
    document["sittings"].append(
        {
            "sitting": sitting.number,
            "boot_id": sitting.boot_id,
            "host": sitting.host,
            "start": _now(),
            "end": None,
            "how_ended": None,
            "torn": list(torn),
            "machine": None if sitting.number == 1 else snapshot.take(),
        }
    )
    return sitting


def _finish(
    path: Path, document: dict[str, Any], writer: ResultsWriter, how: str, decisions: Sequence[str]
) -> None:
    document["sittings"][-1] |= {"end": _now(), "how_ended": how, "decisions": list(decisions)}
    document["machine"]["after"] = snapshot.take()
    try:
        writer.close()
    finally:
        replace_json(path / "experiment.json", document)


def boot_id() -> str:
    """The kernel's identity of this boot; empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
