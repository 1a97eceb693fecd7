"""The six questions that a reader has who sees nothing but the report, answered in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from etude.analysis.comparison import Comparison, NoComparison
from etude.analysis.load_subject import Summaries
from etude.analysis.snapshot_differences import Differences
from etude.analysis.subject import ended_in
from etude.analysis.verdict import TestVerdict, Verdict
from etude.present.page.gather import OWN_PARTS, SEARCHES, SWEEPS, Gathered, kind_of
from etude.present.page.setup import machine_sentence, setup_lines
from etude.present.section import Answer, Section
from etude.present.sentences import comparison as text
from etude.present.sentences import details
from etude.present.sentences.comparison import with_full_stop
from etude.present.sentences.extension import lasted_s, reaching_command
from etude.present.sentences.machines import machine_line
from etude.present.sentences.notes import listed_names
from etude.present.sentences.result_notes import difference_text, uncompared_text
from etude.present.sentences.verdict import not_compared_lines, status_line, unanswered_lines
from etude.present.sentences.warnings import group_text
from etude.stats.cross_session import NotSupported
from etude.units.formatting import counted, duration, percent, quantity, span

MOST_NAMED = 8
"""Tests, comparisons or warnings that an answer names; the tables have them all."""


QUESTIONS = {
    "what": "What was compared?",
    "where": "On what?",
    "often": "How often?",
    "real": "Is the difference real?",
    "large": "How large is it?",
    "against": "What speaks against it?",
}


SEARCHED = {"what": "What was measured?", "real": "How certain is it?"}
"""The same questions on a page of searches, surfaces and sweeps alone."""


def answers_of(
    found: Gathered, parts: Sequence[Section] = (), beside: Sequence[Section] = ()
) -> tuple[Answer, ...]:
    """Every question, in their order; each has at least one sentence. `parts`: of searches, surfaces and sweeps;
    `beside`: of pools."""
    series = _without_own_parts(found)
    alone = bool(parts) and not (series.verdicts or series.summaries)
    own = {
        key: tuple(line for part in (*parts, *beside) for line in part.questions.get(key, ()))
        for key in QUESTIONS
    }
    makers: dict[str, Callable[[Gathered], Iterable[str]]] = {
        "what": _what,
        "where": _where,
        "often": _often,
        "real": _real,
        "large": _large,
        "against": _against,
    }
    if alone:
        makers |= {key: lambda _: () for key in ("what", "real", "large")}
    return tuple(
        Answer(key, question, (*own[key], *makers[key](found)) or ("Nothing is known about it.",))
        for key, question in (QUESTIONS | (SEARCHED if alone else {})).items()
    )


def headline(found: Gathered, answer: Sequence[str] = ()) -> tuple[str, ...]:
    """The verdict in a few sentences, in the words of the terminal; first the answers of searches, surfaces and sweeps,
    last how the machines differ."""
    series = _without_own_parts(found)
    own = _verdict(series) if series.verdicts or series.summaries or series.across or not answer else ()
    sweeps = [(where, v) for where, v in _labelled(found) if _kind(v) in SWEEPS]
    status = [f"{where}{line}" for where, v in sweeps if (line := status_line(v))]
    ended = [where + line for where, v in sweeps for line in _ended(v)]
    return (*status, *answer, *own, *ended, *_machines_differ(found))


def _kind(verdict: Verdict) -> str:
    return kind_of(verdict.subject)


def _without_own_parts(found: Gathered) -> Gathered:
    return replace(found, verdicts=tuple(v for v in found.verdicts if _kind(v) not in OWN_PARTS))


def _machines_differ(found: Gathered) -> Iterator[str]:
    first = next((v.subject.label for v in found.verdicts if v.subject.experiment), "")
    for label, differences in found.machines:
        line = machine_line(first, label, Differences(differences, (), ()))
        if line is not None:
            yield line


def _verdict(found: Gathered) -> tuple[str, ...]:
    comparisons = _comparisons(found)
    status = [
        f"{where}{line}"
        for number, (where, verdict) in enumerate(_labelled(found))
        if (line := status_line(verdict, *((found.across, found.without) if number == 0 else ((), ()))))
    ]
    left = [where + line for where, verdict in _labelled(found) for line in _open(verdict)]
    told = [where + text.comparison_lines(c)[0] for where, c in comparisons[:MOST_NAMED]]
    if len(comparisons) > MOST_NAMED:
        differing = sum(c.differs for _, c in comparisons)
        told = [f"{differing} of {len(comparisons)} comparisons show a difference.", *told]
        told.append(f"The other {len(comparisons) - MOST_NAMED} are in the table of comparisons.")
    told += details.across_lines(found.across)[:MOST_NAMED]
    told += [f"Not compared: {reason}." for reason in found.without]
    unanswered = unanswered_lines(found.verdicts, found.across, same_within=found.verdict_options.same_within)
    told += [f"{line}." for line in unanswered]
    uncompared = [f"{where}{with_full_stop(uncompared_text(each))}" for where, each in _without_ratio(found)]
    told += uncompared if told else []
    if told:
        return (*status, *told, *left)
    lines = [
        f"{where}{text.test_line(test, v.primary)}." for where, v in _labelled(found) for test in v.tests
    ]
    if len(lines) > MOST_NAMED:
        lines = [*lines[:MOST_NAMED], f"The other {len(lines) - MOST_NAMED} tests are in the table below."]
    if found.summaries and not lines:
        return ("Only summaries were read; their statements are in the tables, and cannot be checked.",)
    lines = lines or ["Nothing was measured: there is no trial in what was read."]
    return (*status, *lines, *uncompared, *left)


def _without_ratio(found: Gathered) -> list[tuple[str, NoComparison]]:
    """Planned comparisons by the judged metric whose values have no ratio."""
    return [
        (where, each)
        for where, verdict in _labelled(found)
        for each in verdict.without
        if each.base and each.metric == verdict.primary
    ][:MOST_NAMED]


def _open(verdict: Verdict) -> Iterator[str]:
    """Lines that the terminal has below its table besides the ratios: missed targets, tests that were not compared, and
    the reason why each test of a script ended."""
    missed = [c for c in verdict.comparisons if c.missed]
    several = len(verdict.comparisons) > 1
    yield from (line for c in missed[:MOST_NAMED] for line in text.comparison_lines(c, several=several)[1:])
    lines = [line for test in verdict.tests if (line := text.precision_line(test, verdict.asked)) is not None]
    yield from lines[:MOST_NAMED]
    yield from not_compared_lines(verdict)
    if (extension := reaching_command(verdict)) is not None:
        yield f"{extension.label}: {extension.command}"
    yield from _ended(verdict)


def _ended(verdict: Verdict) -> Iterator[str]:
    experiment = verdict.subject.experiment or {}
    reasons: dict[str, list[str]] = {}
    for name, why in ended_in(experiment).items():
        reasons.setdefault(why, []).append(name)
    for why, names in list(reasons.items())[:MOST_NAMED]:
        yield f"{_some(names)} ended: {why}."
    if not reasons:
        decisions = dict.fromkeys((experiment.get("sittings") or [{}])[-1].get("decisions") or ())
        yield from (f"Ended: {with_full_stop(str(line))}" for line in list(decisions)[:MOST_NAMED])


def _labelled(found: Gathered) -> list[tuple[str, Verdict]]:
    """Each verdict, and how sentences about it begin where there are several."""
    several = len(found.verdicts) > 1
    return [(f"{verdict.subject.label}: " if several else "", verdict) for verdict in found.verdicts]


def _comparisons(found: Gathered) -> list[tuple[str, Comparison]]:
    return [(where, c) for where, verdict in _labelled(found) for c in verdict.comparisons]


def _some(names: Sequence[str]) -> str:
    return listed_names(names, MOST_NAMED)


def _what(found: Gathered) -> Iterator[str]:
    for where, verdict in _labelled(found):
        names = [test.test for test in verdict.tests]
        if not names:
            yield f"{verdict.subject.label} holds no test."
            continue
        if _kind(verdict) in OWN_PARTS:
            continue
        without = [(each.base, test) for each in verdict.without if each.difference for test in each.tests]
        tests = [*((c.base, c.other) for c in verdict.comparisons), *without]
        compared = dict.fromkeys(base for base, _ in tests)
        if compared:
            others = list(dict.fromkeys(other for _, other in tests))
            yield f"{where}{_some(others)} against {_some(list(compared))}, by {_metric(verdict)}."
        else:
            were = "was" if len(names) == 1 else "were"
            yield f"{where}Nothing was compared: {_some(names)} {were} measured, by {_metric(verdict)}."
        for name in names[:MOST_NAMED]:
            command = found.commands.get((verdict.subject.label, name))
            if command and command != name:
                yield f"{where}{name} runs: {command}"
    for a in found.across:
        yield f"{a.other} of {a.other_label} against {a.base} of {a.base_label}, by {a.metric}."
    for summary in found.summaries:
        rows = counted(len(summary.rows), "row")
        yield f"{summary.label} holds only summaries, {rows}; no trial of it is known."


def _metric(verdict: Verdict) -> str:
    kind, unit = next(
        ((m.kind, m.unit) for test in verdict.tests if (m := test.metric(verdict.primary)) is not None),
        ("", ""),
    )
    meaning = {
        "cost": "a cost: less is better",
        "rate": "a rate: more is better",
        "count": "a count",
        "ratio": "a ratio",
        "binary": "yes or no",
    }.get(kind, "")
    unit = "" if unit in ("", "1") else f", in {unit}"
    return f"{verdict.primary} ({meaning}{unit})" if meaning else verdict.primary


def _where(found: Gathered) -> Iterator[str]:
    for where, verdict in _labelled(found):
        yield where + machine_sentence(verdict.subject.experiment)
        yield from (where + line for line in setup_lines(verdict.subject.experiment))
    for summary in found.summaries:
        yield f"{summary.label} has no record of its machine."
    for label, differences in found.machines:
        if differences:
            yield (
                f"Machine or settings of {label} are not those of the first result: "
                f"{counted(len(differences), 'difference')} (see Machine)."
            )
        else:
            yield f"The machine of {label} does not differ from that of the first result in anything recorded."


def _often(found: Gathered) -> Iterator[str]:
    for where, verdict in _labelled(found):
        for line in _trials(verdict) if _kind(verdict) not in SEARCHES else ():
            yield where + line
        if verdict.comparisons:
            yield where + _design(verdict)
        yield from _sessions(verdict, where)
    for summary in found.summaries:
        yield from _stated(summary)


def _stated(summary: Summaries) -> Iterator[str]:
    counts = {row.test: row.figures.get("count") for row in summary.rows}
    for test, count in list(counts.items())[:MOST_NAMED]:
        said = "how often is not stated" if count is None else f"{count:g} times, as stated"
        yield f"{summary.label}: {test}: {said}."


def _trials(verdict: Verdict) -> Iterator[str]:
    counts = dict.fromkeys((test.kept, test.made, test.inner) for test in verdict.tests)
    if len(counts) == 1 and len(verdict.tests) > 1:
        yield f"Each of {len(verdict.tests)} tests: {_count(verdict.tests[0])}."
        return
    for test in verdict.tests[:MOST_NAMED]:
        yield f"{test.test}: {_count(test)}."
    if len(verdict.tests) > MOST_NAMED:
        yield f"The other {len(verdict.tests) - MOST_NAMED} tests are in the table of tests."


def _count(test: TestVerdict) -> str:
    aside = "".join(f", {count} excluded: {why}" for why, count in test.set_aside.items())
    inner = f", {test.inner} launches in each" if test.inner > 1 else ""
    return f"{counted(test.kept, 'trial')} included of {test.made} made{aside}{inner}"


def _design(verdict: Verdict) -> str:
    if verdict.comparisons[0].ratio.method == "paired":
        order = "both at once" if verdict.asked.duet else "in random order"
        counts = [c.ratio.count for c in verdict.comparisons]
        pairs = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        return f"Compared in {pairs} pairs: one trial of each in a block, {order}."
    return (
        "The trials are not paired: they were not interleaved, and drift of the machine is in the difference."
    )


def _sessions(verdict: Verdict, where: str) -> Iterator[str]:
    sittings = (verdict.subject.experiment or {}).get("sittings") or ()
    if not sittings:
        yield f"{where}When, and in how many sessions, is not recorded."
        return
    count = len(sittings)
    when = str(sittings[0].get("start") or "").replace("T", " ")[:16]
    end = str(sittings[-1].get("end") or "").replace("T", " ")[:16]
    dates = f", from {when} to {end} UTC" if when and end else f", begun {when} UTC" if when else ""
    spent = sum(map(lasted_s, sittings))
    dates += f" ({duration(spent)})" if spent > 0.0 else ""
    yield f"{where}In {'one session' if count == 1 else f'{count} sessions'}{dates}."


def _real(found: Gathered) -> Iterator[str]:
    comparisons = _comparisons(found)
    for where, c in comparisons[:MOST_NAMED]:
        yield where + _real_sentence(c)
        if (line := text.quieter_line(c)) is not None:
            yield where + line
    if len(comparisons) > MOST_NAMED:
        rest = comparisons[MOST_NAMED:]
        yield f"Of the other {len(rest)} comparisons {sum(c.differs for _, c in rest)} are shown by the same rule."
    for a in found.across[:MOST_NAMED]:
        if isinstance(a.found, NotSupported):
            yield f"{a.other} ({a.other_label}): it is undecided: {a.found.reason}."
        else:
            excluded = a.found.low > 1.0 or a.found.high < 1.0
            limits = span(a.found.low, a.found.high)
            yield (
                f"{a.other} ({a.other_label}): {'shown' if excluded else 'not shown'}: the interval of the ratio, "
                f"{limits}, {'excludes' if excluded else 'contains'} 1; it includes the variation between sessions."
            )
    yield from (f"It is undecided: {reason}." for reason in found.without)
    without = _without_ratio(found)
    yield from (where + _real_difference(each) for where, each in without)
    series = [(where, verdict) for where, verdict in _labelled(found) if _kind(verdict) not in SWEEPS]
    left = [where + line for where, verdict in series for line in not_compared_lines(verdict)]
    yield from left
    if not comparisons and not found.across and not found.without and not left and not without:
        yield (
            "No two tests were compared, so that no difference is claimed. Tests that ran one after the other can be "
            "compared with --reference, results of two sessions by naming both."
        )


def _real_difference(each: NoComparison) -> str:
    who = f"{', '.join(each.tests)} against {each.base}"
    if each.difference is None:
        return f"{who}: not known: {each.reason}."
    excluded = each.difference.low > 0.0 or each.difference.high < 0.0
    return (
        f"{who}: {'shown' if excluded else 'not shown'}: there is no ratio ({each.reason}), but "
        f"{difference_text(each)}, which {'excludes' if excluded else 'contains'} 0."
    )


def _real_sentence(c: Comparison) -> str:
    limits, level = span(c.ratio.low, c.ratio.high), f"{text.level_of(c.ratio)}{text.caution(c)}"
    p = details.p_text(c.ratio.p)
    adjusted = (
        f"; {details.p_text(c.adjusted_p)} counting all comparisons" if c.adjusted_p is not None else ""
    )
    who = f"{c.other} against {c.base}"
    if not c.varies:
        return f"{who}: not known: {text.no_interval_text(c)}, so that the ratio has no interval."
    if c.excludes_one and c.within_noise:
        return (
            f"{who}: not shown: the interval of the ratio, {limits} ({level}), excludes 1 ({p}{adjusted}), but "
            f"it lies within the A/A noise (± {percent(c.floor or 0.0)}), within which comparisons of identical "
            "commands stay here."
        )
    if c.excludes_one and c.opposed and c.typical is not None:
        return (
            f"{who}: not shown: the interval of the ratio of the means, {limits} ({level}), excludes 1 ({p}{adjusted}"
            f"), but the typical run points the other way ({text.ratio_text(c.typical)})."
        )
    if not c.differs:
        smallest = c.ratio.smallest_found()
        beyond = text.BEYOND_NOISE if c.floor is not None else ""
        seen = ""
        if smallest is not None and smallest < text.WORTH_TELLING:
            seen = f" An increase of {percent(smallest)} would be found in four of five such experiments{beyond}."
        return f"{who}: not shown: the interval of the ratio, {limits} ({level}), contains 1 ({p}{adjusted}).{seen}"
    sentence = f"{who}: shown: the interval of the ratio, {limits} ({level}), excludes 1 ({p}{adjusted})."
    if c.floor is None:
        return sentence
    nearest = min(abs(c.ratio.low - 1.0), abs(c.ratio.high - 1.0))
    where = "All of it lies beyond" if nearest > c.floor else "Its nearer end lies within"
    return f"{sentence} {where} the A/A noise (± {percent(c.floor)})."


def _large(found: Gathered) -> Iterator[str]:
    comparisons = _comparisons(found)
    for where, c in comparisons[:MOST_NAMED]:
        yield where + _size(c)
    if len(comparisons) > MOST_NAMED:
        ratios = sorted(c.ratio.ratio for _, c in comparisons)
        yield f"All {len(comparisons)} ratios lie between {ratios[0]:.4g} and {ratios[-1]:.4g}: see the table."
    for a in found.across[:MOST_NAMED]:
        if not isinstance(a.found, NotSupported):
            limits = f"{text.level_of(a.found)}: {span(a.found.low, a.found.high)}"
            yield f"{a.other} ({a.other_label}): {a.found.ratio:.4g} × the baseline's {a.metric} ({limits})."
    yield from details.overall_lines(found.across)
    without = _without_ratio(found)
    yield from (
        f"{where}{', '.join(each.tests)} against {each.base}: {difference_text(each)}."
        for where, each in without
        if each.difference
    )
    if not comparisons and not found.across and not any(each.difference for _, each in without):
        yield "Nothing was compared. The time of each test is in the table of tests."


def _size(c: Comparison) -> str:
    limits = span(c.ratio.low, c.ratio.high)
    ratio = text.ratio_text(c.ratio)
    taken = (
        text.takes_text(c.metric, c.other, ratio, c.base) if c.differs else f"{c.other}/{c.base}: {ratio} ×"
    )
    level = f"{text.level_of(c.ratio)}{text.caution(c)}"
    sentence = f"{taken}, somewhere in {limits} ({level})" if c.varies else f"{taken}, without an interval"
    if c.difference is not None:
        ends = c.difference.low, c.difference.high
        low, high = (quantity(end, c.unit, max(map(abs, ends)) or None) for end in ends)
        sentence += f"; the means differ by {low} … {high}" if c.varies else ""
    same = ""
    if c.equivalence is not None:
        same = f" The same within {percent(c.equivalence.margin)}: {c.equivalence.verdict}."
    verb = f"{c.base} takes" if c.metric == "elapsed" else f"that of {c.base} is"
    weighed = (
        f", each {text.level_name(c.base_mean_over)} counting once" if c.base_mean_over != "trial" else ""
    )
    return f"{sentence}; {verb} {quantity(c.base_mean, c.unit)} on average{weighed}.{same}"


def _against(found: Gathered) -> Iterator[str]:
    warnings = [where + group_text(w) for where, verdict in _labelled(found) for w in verdict.warnings]
    yield from map(with_full_stop, warnings[:MOST_NAMED])
    if len(warnings) > MOST_NAMED:
        yield f"{len(warnings) - MOST_NAMED} more warnings are listed below."
    if not warnings and _without_own_parts(found).verdicts:
        yield "No warning was found in the trials; with few trials that means little."
    yield from dict.fromkeys(
        line for verdict in found.verdicts for line in _limits(verdict, len(found.verdicts))
    )
    if any(differences for _, differences in found.machines):
        yield "The machines or the settings of the results differ (see Machine)."
    if found.summaries:
        yield "Files with only summaries cannot be checked."


def _limits(verdict: Verdict, results: int) -> Iterator[str]:
    """Sentences on the limits of the design itself. results: number of results on the page."""
    sessions = (verdict.subject.experiment or {}).get("sittings") or ()
    if len(sessions) < 2:
        trials = "All trials" if results == 1 else "All trials of a result"
        yield (
            f"{trials} are of one session: another boot, build or day may differ by more than the interval."
            if sessions
            else "It is not known in how many sessions this was measured."
        )
    comparisons = verdict.comparisons
    if any(c.ratio.method == "unpaired" for c in comparisons):
        yield f"A comparison is {text.UNPAIRED}."
    if any(c.contention for c in comparisons):
        yield "The compared commands ran at the same time: the ratio is one under contention."
    if any(c.ratio.method == "paired" and c.floor is None for c in comparisons):
        yield "How much identical commands differ on this machine (A/A noise) is not known."
