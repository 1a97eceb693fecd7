"""CSV for Apache Otava: a row a run in the order of time, a column a metric of a test.

Its importer takes a column of times, one `branch`, attributes, and numbers; a cell without a number stops it. Which way
is better stands in its configuration (docs/howto/export.md), not in the file.
"""

from __future__ import annotations

import csv
import io
from datetime import datetime

from etude.errors import UsageError
from etude.export.document import Document, Exported, NotExported, Point, Run, name_advice, one_line


def write(document: Document) -> Exported:
    """Means; `time` is the commit's where all runs have one, else when the run began.

    Raises:
        UsageError: the runs are of several machines, or one says nothing of its time.
    """
    if len(document.machines) > 1:
        where = ", ".join(machine.name if machine else "unknown" for machine in document.machines)
        raise UsageError(
            f"a series of Otava is of one machine, these results are of {where}: choose with --machine"
        )
    cells: dict[tuple[Run, str], float] = {}
    found: dict[tuple[Run, str], Point] = {}
    for point in document.points:
        if point.figures is not None and point.figures.mean is not None:
            cell = point.run, one_line(f"{point.test}.{point.metric}")
            if cell in cells:
                why = name_advice(found[cell], point, "Otava")
                raise UsageError(f"{point.run.source}: has {cell[1]} twice: {why}")
            cells[cell], found[cell] = point.figures.mean, point
    names = list(dict.fromkeys(name for _, name in cells))
    runs = [run for run in document.runs if any((run, name) in cells for name in names)]
    whole = [name for name in names if all((run, name) in cells for run in runs)]
    left_out = [
        NotExported("", name, "not every result has it, and Otava reads no empty cell")
        for name in names
        if name not in whole
    ]
    times = _times(runs)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    branches = any(run.branch for run in runs)
    writer.writerow(["time", "commit", *(["branch"] if branches else []), *whole])
    for run in sorted(runs, key=lambda run: times[run]):
        words = [times[run].isoformat(), one_line(run.commit) if run.commit else ""]
        words += [one_line(run.branch) if run.branch else ""] if branches else []
        writer.writerow([*words, *(repr(cells[run, name]) for name in whole)])
    return Exported(out.getvalue(), tuple(left_out))


def _times(runs: list[Run]) -> dict[Run, datetime]:
    """Times that order the runs: one kind of time for all of them."""
    committed = {run: run.committed for run in runs if run.committed is not None}
    if len(committed) == len(runs):
        return committed
    measured = {run: run.measured for run in runs if run.measured is not None}
    for run in runs:
        if run not in measured:
            raise UsageError(
                f"{run.source}: the time of measuring is not recorded; put it into a store, with its commit"
            )
    return measured
