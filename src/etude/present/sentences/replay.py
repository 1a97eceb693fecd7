"""Sentences on replays: the verdict, what was not played, and what speaks against the times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from etude.analysis.replays import Fault, TimePair, dropped_transfers, faults_of, has_schedule, time_pairs
from etude.present.sentences.phrases import named
from etude.results.engine_reports import DroppedCalls, ReplayReport
from etude.units.formatting import counted, percent, quantity

MOST_NAMED = 4
"""Kinds of calls that a sentence names."""
DIRECT = {
    "gap": "as long after the call before as recorded",
    "absolute": "at the recorded time",
    "none": "as soon as possible",
}


def verdict_line(reports: Mapping[int, ReplayReport]) -> str:
    """The verdict on all replays, with the reason, in one sentence."""
    faults, count = faults_of(reports), len(reports)
    of = f" in each of {counted(count, 'trial')}" if count > 1 else ""
    unjudged = [trial for trial, each in reports.items() if not has_schedule(each)]
    if unjudged:
        if len(unjudged) < count:
            of = f" in {_some(unjudged, count)}"
        return f"Not judged{of}: timing none has no schedule; {_otherwise(faults, count)}."
    if not faults:
        late = quantity(max(r.lateness_s.p99 for r in reports.values() if r.lateness_s), "s")
        most = " in every trial" if count > 1 else ""
        return (
            f"Faithful{of}: the same calls with the same results, 99 % of them less than {late} late{most}."
        )
    if count > 1 and len(faults) < count:
        of = f" in {_some(faults, count)}"
    return f"Not faithful{of}: {_reasons(faults)}."


def _otherwise(faults: Mapping[int, Fault], count: int) -> str:
    """The rest of the comparison, where the schedule is missing."""
    if not faults:
        return "the same calls had the same results"
    return _reasons(faults) + (f" (in {_some(faults, count)})" if len(faults) < count else "")


def _some(trials: Collection[int], count: int) -> str:
    return f"{len(trials)} of {counted(count, 'trial')} ({named(list(trials))})"


def _reasons(faults: Mapping[int, Fault]) -> str:
    first = next(iter(faults.values()))
    others = {fault.kind for fault in faults.values()} - {first.kind}
    return fault_text(first) + ("; others for other reasons" if others else "")


def fault_text(fault: Fault) -> str:
    """The reason why a replay is not faithful."""
    share, bound = percent(fault.value), percent(fault.bound)
    return {
        "no-call": "it played no call",
        "no-lateness": "how late its calls were is unknown",
        "late": f"1 % of calls were more than {quantity(fault.value, 's')} late, and the bound is "
        f"{quantity(fault.bound, 's')}",
        "results": f"{share} of calls had another result, and the bound is {bound}",
        "uncounted": "how many of the program's transfers are not played is unknown",
        "bytes": f"{share} of the program's bytes are not played, and the bound is {bound}",
        "transfers": f"{share} of the program's transfers are not played, and the bound is {bound}",
        "time": f"{share} of the program's time in reads and writes is not played, and the bound is {bound}",
    }[fault.kind]


def time_lines(reports: Sequence[ReplayReport]) -> Iterator[str]:
    """Run time against the recorded one; then the ratios of the other times."""
    run, *others = time_pairs(reports)
    took = quantity(fmean(run.replayed_s), "s")
    mean = "on average " if len(reports) > 1 else ""
    if run.ratio is None or run.original_s is None:
        yield f"It took {mean}{took}; the recorded run time is not known."
        return
    yield f"It took {mean}{took}, {run.ratio:.3g} × the recorded {quantity(run.original_s, 's')}."
    known = [f"{pair.what} {pair.ratio:.3g} ×" for pair in others if pair.ratio is not None]
    if known:
        yield f"Replayed / recorded time: {', '.join(known)}."


def left_out_lines(report: ReplayReport) -> Iterator[str]:
    """Calls that were not played, and those with another result; nothing where there are none."""
    left = report.unplayed
    transfers = dropped_transfers(report)
    if report.skipped or transfers:
        time = (
            f"{percent(left.time_share)} of its time in reads and writes"
            if left.time_share is not None
            else "an unknown share of its time in reads and writes"
        )
        count = counted(report.skipped + sum(kind.calls for kind in transfers), "call")
        yield f"Not played: {count}, {percent(left.bytes_share)} of the program's bytes and {time}."
    if transfers:
        shown = "; ".join(map(kind_text, transfers[:MOST_NAMED]))
        more = f"; and {counted(len(rest), 'more kind')}" if (rest := transfers[MOST_NAMED:]) else ""
        yield f"Of these moved data: {shown}{more}."
    if report.mismatches:
        by = [(name, of) for name, of in report.by_call.items() if of.mismatches]
        names = ", ".join(f"{name} {of.mismatches} of {of.count:,}" for name, of in by[:MOST_NAMED])
        share = percent(report.mismatches / max(report.calls, 1))
        yield f"Another result: {counted(report.mismatches, 'call')} ({share}): {names}."


def kind_text(kind: DroppedCalls) -> str:
    """One kind of dropped calls: `write (pipe): 1,000 calls, 4.096 MB`."""
    size = f", {size_text(kind.bytes)}" if kind.bytes else ""
    return f"{kind.call} ({kind.why}): {counted(kind.calls, 'call')}{size}"


def size_text(count: int) -> str:
    """Bytes, those of less than a KiB as a whole number."""
    return f"{count} B" if count < 1024 else quantity(count, "B")


def played_line(report: ReplayReport) -> str:
    """The calls and how they were timed."""
    speed = "" if report.speed == 1 else f", gaps {report.speed:g} times shorter"
    priority = ", with real-time priority" if report.realtime else ""
    threads, calls = counted(report.threads, "thread"), counted(report.calls, "call")
    return (
        f"A replay of {calls} of {threads}, each {DIRECT.get(report.timing, report.timing)}{speed}{priority}."
    )


def lateness_lines(reports: Sequence[ReplayReport]) -> Iterator[str]:
    """Lateness of the calls, and the waits for other threads."""
    late = [each.lateness_s for each in reports if each.lateness_s is not None]
    if late:
        median, p99, most = (max(getattr(each, name) for each in late) for name in ("median", "p99", "max"))
        texts = [quantity(value, "s") for value in (median, p99, most)]
        worst = " (each of the worst trial)" if len(reports) > 1 else ""
        yield f"Late: half of the calls up to {texts[0]}, 99 % up to {texts[1]}, at most {texts[2]}{worst}."
    if waits := max(each.waits for each in reports):
        waited = quantity(max(each.waited_s for each in reports), "s")
        yield f"Order: threads waited {counted(waits, 'time')} for each other, {waited} together."


def caveat_lines(reports: Sequence[ReplayReport]) -> Iterator[str]:
    """Caveats of the times."""
    cached = {each.cached for each in reports if each.cached}
    for warm in sorted(cached):
        cold = "original" if warm == "replay" else "replay"
        yield f"The {warm} probably read from memory, the {cold} from disk: cool or warm the cache before both."
    if any(each.changed_before for each in reports):
        yield "An earlier replay had changed the files of the directory: prepare it anew before each replay."
    if any(each.scheduling_refused for each in reports):
        yield "Not all threads ran in the recorded scheduling class: this user may not use it."
    if any(each.by_threads for each in reports):
        yield "Requests of io_uring or aio were made by threads, as the interface is unavailable here."
    if undirect := max(each.undirect for each in reports):
        yield f"O_DIRECT refused {counted(undirect, 'transfer')}, which were made without it."
    if not reports[0].original.timed:
        yield "The recording has no times of calls: ratios are not known."
    else:
        yield "The recording is one run: the ratios do not show how much the program itself varies."


def certainty_line(reports: Sequence[ReplayReport]) -> str:
    """The spread of the run times."""
    if len(reports) == 1:
        return "One replay of one recording: how much another would differ is not known."
    ends = [quantity(end(each.run_s for each in reports), "s") for end in (min, max)]
    return f"The replays took {ends[0]} to {ends[1]}."


def ratio_text(pair: TimePair) -> str:
    """A ratio for a table; a dash where it is unknown."""
    return "–" if pair.ratio is None else f"{pair.ratio:.3f}"


def missing_lines(found: int, missing: int) -> Iterator[str]:
    """How many trials have a report, where some have none."""
    if missing:
        yield f"{found} of {found + missing} trials are shown: the others have no whole report within the first 64 MiB."
