"""Measures one cell of a surface on a node of a pool, in the job that `cluster/worker.py` is the program of.

The job's directory says what to measure (`surface/configuration_jobs.py`), and the sample is written there. A search
that another machine began is not resumed: it begins anew, in a directory of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from etude.errors import EtudeError, InputError
from etude.escaping import escaped
from etude.experiment.remote_engine import VARIABLE
from etude.machine.boot.record import boot_id
from etude.machine.resources.resource import Resource, undo_left
from etude.osutil.end_signals import EndedBySignal, ending_by_signals
from etude.osutil.one_thread import one_thread
from etude.surface import configuration_jobs
from etude.surface.configuration_jobs import NODE, Todo, attempt_in
from etude.surface.factors import Space
from etude.surface.measure_configuration import RESOURCES, UNMEASURABLE, failed_sample, measured_in
from etude.surface.response import Response
from etude.surface.response_sources import response_of, simulated_response
from etude.surface.spec import read_spec


def measure_cell(place: Path) -> int:
    """Measure the cell of a job's directory; returns the exit status, which is 0 also for a cell that failed: that is a
    result, too."""
    one_thread()
    try:
        with ending_by_signals():
            _measure(place)
    except EtudeError as error:
        print(escaped(f"etude: {error}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as error:
        return 128 + (error.number if isinstance(error, EndedBySignal) else 2)
    return 0


def _measure(place: Path) -> None:
    """Raises EtudeError: not even a failed cell can be told."""
    todo = configuration_jobs.read_todo(place)
    if (place / configuration_jobs.SAMPLE).exists():
        return  # whoever submitted it did not know of its end
    response, resources, space, text = _asked(todo)
    settings = space.settings(todo.visit.cell)
    if configuration_jobs.depends_on(response, text, settings) != todo.text:
        raise InputError(
            f"{todo.spec or todo.simulate}: what it measures is another than when this cell was chosen: leave it as it "
            "is until the map has ended"
        )
    response.recall(todo.lesson)
    engine_elsewhere = bool(os.environ.get(VARIABLE))
    if not engine_elsewhere:
        _undo_left(place)
        configuration_jobs.begin_on_node(place)
    began = time.monotonic()

    def bounds() -> tuple[float | None, float]:
        if todo.deadline is None:
            return todo.left_s, float("inf")
        return todo.left_s, (todo.deadline - datetime.now(UTC)).total_seconds()

    try:
        sample = measured_in(place, response, resources, todo.visit, settings, bounds, lambda text: None)
    except UNMEASURABLE as error:
        sample = failed_sample(todo.visit.cell, str(error), time.monotonic() - began)
    if engine_elsewhere:
        configuration_jobs.engine_was_on_node(place)
    configuration_jobs.write_sample(place, sample)


def _asked(todo: Todo) -> tuple[Response, Mapping[str, Resource], Space, str]:
    """With the text of SPEC.toml."""
    if todo.simulate:
        system, response = simulated_response(todo.simulate)
        return response, {}, system.space, ""
    spec = read_spec(Path(todo.spec))
    return response_of(spec, todo.deadline), spec.resources, spec.space, spec.text


def _undo_left(place: Path) -> None:
    """Undo what a killed attempt left on this node: nobody else measures here now."""
    here = os.uname().nodename, boot_id()
    cell = place.resolve()
    # Where results are brought from here, this node has none but of its cells.
    usual = cell.parents[cell.name.startswith("attempt-")]
    results = next((above for above in cell.parents if (above / "experiment.json").exists()), usual)
    for file in results.glob(f"**/{RESOURCES}/resources.json"):
        other = file.parent.parent
        if (other / NODE).exists():
            made = attempt_in(other)
            if (made.host, made.boot_id) == here:
                undo_left(file.parent)
