"""A search for a peak rate on a pool: one job, with a second node if the harness needs one for the system.

A search whose node was lost restarts on another one: all its trials are from one machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from etude.cluster.distributed.jobs import Jobs
from etude.cluster.distributed.part import TASK, Part
from etude.cluster.job_loop import EndedJob
from etude.codec import plain
from etude.errors import EtudeError, InputError
from etude.peak.search_session import plain_bench, run_search
from etude.peak.search_store import SearchSpec, SearchStore, task_of
from etude.peak.sources import Source, of_harness, of_simulation
from etude.results.merge import merge_results

KIND = "search"


def search_on_pool(
    jobs: Jobs,
    source: Source,
    words: Mapping[str, str],
    sought: SearchSpec,
    document: Mapping[str, Any],
    deadline: datetime | None = None,
    nodes: int = 1,
) -> SearchStore:
    """The search, once it has ended; its directory is the same as that of a local search.

    `words`: the subject, `harness` or `simulate`, as on the command line. `document`: record of the pool. Raises
    EtudeError: the job failed with it, or the pool cannot run it; no job is left.
    """
    measured = [part for part in jobs.ended_parts if part.measured]
    found = [part for part in measured if SearchStore(part.results).answer is not None]

    def submit() -> None:
        _check_same([*jobs.ended_parts, *jobs.parts], sought)
        if found or jobs.parts:
            return
        task = {
            "kind": KIND,
            **words,
            **_asked(sought),
            "text": source.text,
            "deadline": None if deadline is None else deadline.isoformat(),
            "command_line": list(document["command_line"]),
        }
        jobs.begin(task, source.name, nodes)

    def judged(ended: EndedJob[Part], error: EtudeError | None) -> EtudeError | None:
        if not ended.again:
            found.append(ended.work)
        return error

    jobs.run(submit, judged)
    merge_results({found[-1].name: found[-1].results}, jobs.directory, {"pool": document["pool"]})
    return SearchStore(jobs.directory)


def _asked(sought: SearchSpec) -> dict[str, Any]:
    """Settings that identify the search, as JSON."""
    asked = {"task": plain(sought.task), "policy": sought.policy, "factors": dict(sought.factors)}
    return dict(json.loads(json.dumps(asked)))


def _check_same(parts: Sequence[Part], sought: SearchSpec) -> None:
    """Raises InputError if a part belongs to another search."""
    for part in parts:
        for name, now in _asked(sought).items():
            if part.task.get(name) != now:
                raise InputError(
                    f"{part.place.parent.parent}: holds another search (its {name} was another); name another "
                    "directory with -o"
                )


def measure(part: Part) -> None:
    """Entry point on the node: run the search. Raises EtudeError: from the harness; InputError: the harness has
    changed."""
    task = part.task
    source = of_simulation(task["simulate"]) if "simulate" in task else of_harness(task["harness"])
    if source.text != task["text"]:
        raise InputError(f"{task.get('harness')}: has changed since the search was begun; begin it anew")
    wanted = task_of(task["task"], str(part.place / TASK), "task")
    sought = SearchSpec(source.name, wanted, task["policy"], source.text, task["factors"])
    deadline = None if task["deadline"] is None else datetime.fromisoformat(task["deadline"])
    run_search(
        part.results,
        sought,
        partial(plain_bench, source),
        command_line=task["command_line"],
        deadline=deadline,
    )
