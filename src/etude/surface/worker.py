"""Measures one configuration of a surface on a node of a pool, in a job started by `cluster/worker.py`.

The job's directory contains the request (`surface/configuration_jobs.py`) and gets the sample. A search begun on
another machine is not resumed: it restarts in its own directory.
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
from etude.osutil.processes import EndedBySignal, ending_by_signals, one_thread
from etude.surface import configuration_jobs
from etude.surface.configuration_jobs import NODE, NodeRequest, read_attempt
from etude.surface.factors import Space
from etude.surface.peaks import response_of, simulated_response
from etude.surface.response import RESOURCES, UNMEASURABLE, Response, failed_sample, measure_configuration
from etude.surface.spec import read_spec


def measure_on_node(place: Path) -> int:
    """Measure the configuration of a job's directory; returns the exit status, which is 0 also for a failed
    configuration, since that is a result too."""
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
    """Measure, and write the sample. Raises EtudeError if not even a failed sample can be written."""
    todo = configuration_jobs.read_request(place)
    if (place / configuration_jobs.SAMPLE).exists():
        return  # the controller had not seen its end
    response, resources, space, text = _asked(todo)
    settings = space.settings(todo.visit.cell)
    if configuration_jobs.depends_on(response, text, settings) != todo.text:
        raise InputError(
            f"{todo.spec or todo.simulate}: was changed after this configuration was chosen: do not edit "
            "it until the map has ended"
        )
    response.restore(todo.lesson)
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
        sample = measure_configuration(
            place, response, resources, todo.visit, settings, bounds, lambda text: None
        )
    except UNMEASURABLE as error:
        sample = failed_sample(todo.visit.cell, str(error), time.monotonic() - began)
    if engine_elsewhere:
        configuration_jobs.engine_was_on_node(place)
    configuration_jobs.write_sample(place, sample)


def _asked(todo: NodeRequest) -> tuple[Response, Mapping[str, Resource], Space, str]:
    if todo.simulate:
        system, response = simulated_response(todo.simulate)
        return response, {}, system.space, ""
    spec = read_spec(Path(todo.spec))
    return response_of(spec, todo.deadline), spec.resources, spec.space, spec.text


def _undo_left(place: Path) -> None:
    """Undo the resources of killed attempts on this node: no other process measures here now."""
    here = os.uname().nodename, boot_id()
    directory = place.resolve()
    # If results are fetched from here, this node has only its own configurations.
    usual = directory.parents[directory.name.startswith("attempt-")]
    results = next((above for above in directory.parents if (above / "experiment.json").exists()), usual)
    for file in results.glob(f"**/{RESOURCES}/resources.json"):
        other = file.parent.parent
        if (other / NODE).exists():
            made = read_attempt(other)
            if (made.host, made.boot_id) == here:
                undo_left(file.parent)
