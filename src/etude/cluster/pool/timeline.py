"""The timeline of a pool: the jobs of a journal as rows of text, with nodes, times and ends."""

from __future__ import annotations

from collections.abc import Sequence

from etude.cluster.pool.journal import Submitted

HEADER = ("waited", "from", "to", "on", "job", "ended")


def timeline(jobs: Sequence[Submitted]) -> tuple[str, ...]:
    """One row per job, in the order of their starts; times are minutes and seconds since the first submission."""
    if not jobs:
        return ()
    origin_s = min(job.at_s for job in jobs)
    ordered = sorted(jobs, key=lambda job: (_began_s(job), job.at_s))
    rows = [HEADER, *(_row(job, origin_s) for job in ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return tuple(
        "  ".join(
            cell.rjust(width) if column < 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _began_s(submitted: Submitted) -> float:
    ended = submitted.ended
    return ended.started_s if ended is not None and ended.started_s is not None else float("inf")


def _row(submitted: Submitted, origin_s: float) -> tuple[str, ...]:
    ended, name = submitted.ended, submitted.job.name
    if ended is None:
        return ("", "", "", "", name, "under way")
    began = ended.started_s
    waited = (began if began is not None else ended.ended_s) - submitted.at_s
    how = ended.how if not ended.why else f"{ended.how}: {ended.why}"
    return (
        _clock(waited),
        _clock(began - origin_s) if began is not None else "",
        _clock(ended.ended_s - origin_s),
        " ".join(ended.nodes) or "-",
        name,
        how,
    )


def _clock(seconds: float) -> str:
    """Time as minutes and seconds; clocks of nodes may differ a little, so never below 0."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    return f"{minutes}:{rest:02}"
