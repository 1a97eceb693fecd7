"""Sentences on an offered load: rates, response times, what limited it, and what speaks against the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.analysis.loads import QUANTILES, LoadFigures, WindowFigures
from etude.results.engine_reports import LoadReport, LoadSummary
from etude.units.formatting import counted, digits, duration, percent, quantity

ARRIVALS = {
    "poisson": "Poisson arrivals",
    "constant": "arrivals at a constant interval",
    "given": "arrivals as recorded",
}
DRIFT = 2.0
"""Ratio of the median response of the last and the first third of windows from which it is reported."""
FEW_WINDOWS = 6
"""Windows below which no drift is looked for."""


def rate_text(rate: float) -> str:
    """`515.6/s`."""
    return f"{digits(rate)}/s"


def quantile_name(percentile: float) -> str:
    """`p99.9`."""
    return f"p{percentile:g}"


def answer_lines(found: LoadFigures, summary: LoadSummary | None) -> Iterator[str]:
    """Rates and response times, the limit, and the errors."""
    offered, served = rate_text(found.offered_rate), rate_text(found.completed_rate)
    asked = asked_text(found, summary)
    yield f"{asked}{offered} offered, {served} served: {response_text(found)}."
    yield limit_line(found)
    if found.failed:
        total, share = counted(found.completed + found.failed, "request"), percent(found.failed_share)
        yield f"{found.failed:,} of {total} failed ({share}){reasons_text(found)}."
    if found.abandoned and found.limit != "server":
        yield f"{counted(found.abandoned, 'request')} had no answer when the run ended."


def asked_text(found: LoadFigures, summary: LoadSummary | None) -> str:
    """The request, before a comma: `500/s requested, `; empty where it is unknown."""
    if summary is not None and summary.asked_clients is not None:
        return f"{counted(summary.asked_clients, 'client')}, "
    return "" if found.asked is None else f"{rate_text(found.asked)} requested, "


def response_text(found: LoadFigures) -> str:
    """The percentiles that are known."""
    known = [
        f"{quantile_name(percent)} {quantity(s, 's')}"
        for percent, s in zip(QUANTILES, found.quantiles_s, strict=True)
        if s is not None
    ]
    if known:
        return f"response {', '.join(known)}"
    joined = found.runs > 1 and found.completed and found.responses is None
    return "the percentiles of each run are in its table" if joined else "too few responses for a percentile"


def limit_line(found: LoadFigures) -> str:
    """The limit of the rate that was served."""
    if found.limit == "generator":
        return (
            "The load generator was the limit: response times and rates are its own, not those of the system."
        )
    if found.limit == "server":
        waited = (
            f"up to {counted(found.waiting, 'request')} at a time could not be sent when due"
            if found.waiting
            else ""
        )
        open_end = max(found.abandoned, found.stuck)
        left = f"{counted(open_end, 'request')} had no answer at the end of the load" if open_end else ""
        return f"The system under test was the limit: {', and '.join(filter(None, (waited, left)))}."
    if found.limit == "unknown":
        return "The limit is not known: the output ends before its summary."
    if found.limit == "clients":
        return "The clients were the limit, as in each closed loop: each waits for its answer before it sends again."
    if found.lateness_p99_s is None:
        return "No limit was reached."
    late = quantity(found.lateness_p99_s, "s")
    return f"No limit was reached: 99 % of requests were sent within {late} of their due time."


def reasons_text(found: LoadFigures) -> str:
    """`: timeout 10, 503 2`; empty where unknown."""
    by = sorted(found.errors.items(), key=lambda each: -each[1])
    return ": " + ", ".join(f"{name} {count:,}" for name, count in by) if by else ""


def what_line(found: LoadFigures, summary: LoadSummary | None) -> str:
    """The load that was offered."""
    if summary is None:
        return "A load whose output ends before its summary: what was requested is not known."
    of = f", workload {summary.workload}" if summary.workload else ""
    if summary.arrivals == "closed":
        think = f", think time {quantity(summary.think_s, 's')}" if summary.think_s else ""
        how = f"{counted(summary.asked_clients or 0, 'client')} in a closed loop{think}"
        since = "the end of thinking"
    else:
        asked = "" if found.asked is None else f"{rate_text(found.asked)}, "
        how, since = f"{asked}{ARRIVALS.get(summary.arrivals, summary.arrivals)}", "the intended send time"
    multiple = summary.roll and summary.roll.multiple
    roll = "" if multiple is None else f", {multiple:.3g} times the recorded rate"
    target = {"files": "a directory", "http": "an HTTP server", "nfs": "an NFS server", "roll": "a directory"}
    return (
        f"A load on {target.get(summary.target, summary.target)}{of}: {how}{roll}. "
        f"Response times count from {since}."
    )


def often_line(runs: Sequence[LoadReport], found: LoadFigures) -> str:
    """Runs, windows and responses."""
    windows = sum(len(run.windows) for run in runs)
    parts = [f"{duration(found.duration_s)} of load", *([counted(windows, "window")] if windows else ())]
    return f"{', '.join((counted(len(runs), 'run'), *parts, counted(found.completed, 'response')))}."


def certainty_line(found: LoadFigures) -> str:
    """The basis of the percentiles."""
    rare = [
        quantile_name(percent)
        for percent, s in zip(QUANTILES, found.quantiles_s, strict=True)
        if s is None and found.completed
    ]
    few = f" It has too few responses for {', '.join(rare)}." if rare else ""
    if found.runs == 1:
        return f"One run: how much another run would differ is not known.{few}"
    if found.responses is None:
        return (
            f"{found.runs} runs, whose outputs have no response times: percentiles of all cannot be formed."
        )
    return f"Percentiles are of the responses of {found.runs} runs together.{few}"


def caveat_lines(
    runs: Sequence[LoadReport], found: LoadFigures, windows: Sequence[WindowFigures]
) -> Iterator[str]:
    """Caveats of the figures."""
    if any(run.summary is None for run in runs):
        yield "An output ends before its summary: whether the generator was the limit is not known."
    if any(run.summary is not None and run.summary.ended == "early" for run in runs):
        yield "A run was ended early by a signal."
    if found.lateness_p99_s is not None:
        yield f"99 % of requests were sent less than {quantity(found.lateness_p99_s, 's')} after they were due."
    if found.busy is not None:
        yield f"The generator's sending thread was busy {percent(found.busy)} of the time."
    medians = [w.quantiles_s[0] for w in windows if w.quantiles_s[0] is not None]
    third = len(medians) // 3
    if len(medians) >= FEW_WINDOWS:
        first, last = sorted(medians[:third])[third // 2], sorted(medians[-third:])[third // 2]
        ratio = last / first if first else 0.0
        if ratio >= DRIFT or 0 < ratio <= 1 / DRIFT:
            yield (
                f"No steady state: the median response of the last windows is {ratio:.2g} × that of the first "
                f"({quantity(last, 's')} against {quantity(first, 's')}); begin with a longer --warm-up."
            )
    rolls = [run.summary.roll for run in runs if run.summary and run.summary.roll]
    not_played = max((roll.not_played for roll in rolls), default=0)
    if not_played:
        yield f"{counted(not_played, 'call')} of the recorded program could not be made and are not counted."
