"""Warnings in full sentences, each with advice; `notes.py` has the short ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from etude.analysis import outliers_explained as outliers
from etude.analysis.snapshot_differences import value_text
from etude.analysis.warnings import DataWarning, WarningGroup, facts, meaning_of
from etude.present.sentences import explanations, result_notes
from etude.present.sentences.phrases import INSTEAD, WITHOUT_SHELL, named, signed, size, some_of
from etude.units.formatting import counted, p_value, percent, quantity

NAMED = 3
"""Maximum number of tests, and of machines with a level shift, that a warning names."""
NAMED_CHANGES = 4
"""Maximum number of changes of a machine, and of machines, that a warning names."""
LONGEST = 100
"""Maximum length of a kernel message."""

BETWEEN_CACHED = "between cached and uncached, where small changes decide"
OTHER_DATA = "use clearly less data, or clearly more"
FINER_CLOCK = "read a finer clock or make trials longer"

Words = tuple[str, str]
"""The finding, without a full stop; and the advice, a short clause, empty if the text has it."""


def words_of(warning: DataWarning) -> Words:
    """Finding and advice of a warning."""
    text, advice = _WORDS[type(warning.facts)](warning, warning.facts)
    return (f"on {warning.machine}: {text}" if warning.machine else text), advice


def found_text(warning: DataWarning) -> str:
    """The finding, with figures; no full stop."""
    return words_of(warning)[0]


def advice(warning: DataWarning) -> str:
    """The advice, a short clause; empty if the text has it."""
    return words_of(warning)[1]


def warning_text(warning: DataWarning) -> str:
    """Test, finding and advice of a warning."""
    return _joined(warning.test, *words_of(warning))


def group_text(group: WarningGroup) -> str:
    """The line of warnings of one kind: of several metrics of a test, or of more tests than are named."""
    text, what_to_do = words_of(group.first)
    if group.also:
        text += f"; also {', '.join(group.also)}"
    if not group.tests:
        return _joined(group.first.test, text, what_to_do)
    count = f"{len(group.tests)} tests" if group.of is None else f"{len(group.tests)} of {group.of} tests"
    names = some_of(group.tests, NAMED)
    return _joined(f"{count}: {meaning_of(group.kind)} ({names}); {group.first.test}: {text}", what_to_do)


def _joined(*parts: str) -> str:
    return ": ".join(part for part in parts if part)


def _recorded(w: DataWarning, f: facts.RecordedSentence) -> Words:
    return f.text, ""


def _several_matches(w: DataWarning, f: facts.SeveralMatches) -> Words:
    return f.text, "make the pattern match only one of them"


def _limited(w: DataWarning, f: facts.LimitReached) -> Words:
    return f.text, "allow more trials, or accept less precision"


def ways_text(f: facts.FailedTrials) -> str:
    """`exit status 1`, or `2 × exit status 1, 1 × timeout`."""
    if len(f.ways) == 1:
        return f.ways[0][0]
    return ", ".join(f"{len(set(trials))} × {how}" for how, trials in f.ways)


def _failed(w: DataWarning, f: facts.FailedTrials) -> Words:
    count = len(w.trials)
    kept = "all of them included" if f.included == count else f"{f.included} of them included"
    fate = kept if f.included else "excluded"
    ways = f" in {len(f.ways)} ways" if len(f.ways) > 1 else ""
    text = f"{count} of {f.of} trials failed{ways} ({ways_text(f)}; {named(w.trials)}), {fate}"
    return text, "see their output: a failed run does other work"


def _never_begun(w: DataWarning, f: facts.NoTrialMade) -> Words:
    return f"no trial was made: {f.why}", f"see {f.log}"


def _excluded(w: DataWarning, f: facts.ExcludedTrials) -> Words:
    count = sum(len(trials) for _, trials in f.reasons)
    whys = "; ".join(f"{why or 'no reason given'}: {named(trials)}" for why, trials in f.reasons)
    text = f"{count} of {f.of} trials {'was' if count == 1 else 'were'} excluded ({whys})"
    return text, "check whether the reason affects the other trials"


def _no_value(w: DataWarning, f: facts.NoValue) -> Words:
    why = f.reason or ("they are not finite numbers" if f.kept else "no trial was included")
    again = "measure it again" if f.joined else "join it"
    return f"no included trial has a value of {w.metric}: {why}", f"{again}, or choose another metric"


def _too_few(w: DataWarning, f: facts.TooFew) -> Words:
    without = "; not even the median has an interval" if f.count < 6 else ""
    text = f"{counted(f.count, 'trial')} with {w.metric}: too few to judge them{without}"
    return text, f"make {f.needed} or more"


def _missing(w: DataWarning, f: facts.MissingValues) -> Words:
    text = f"{f.count} of {f.of} included trials have no value of {w.metric}"
    return text, "find the reason before trusting the others"


def _no_match(w: DataWarning, f: facts.NoMatch) -> Words:
    text = f"{w.metric} has no value in any of {counted(f.of, 'trial')}: {f.reason}"
    return text, "compare the METRIC with the output (logs/)"


def _caches(w: DataWarning, f: facts.CachesDiffer) -> Words:
    first, why = min(f.wrong)
    text = (
        f"the caches were not as {f.declared!r} declares in {len(f.wrong)} of {f.of} included trials "
        f"({named(sorted(w.trials))}); in trial {first}: {why or 'nothing was done'}"
    )
    return text, "do not call these results cold or warm"


def _kernel(w: DataWarning, f: facts.KernelComplained) -> Words:
    parts = []
    if f.messages:
        first, message = f.messages[0]
        trials = named([trial for trial, _ in f.messages])
        parts.append(f"the kernel warned in {trials} (in trial {first}: {shortened(message)})")
    if f.throttled:
        times = sum(count for _, count in f.throttled)
        trials = named([trial for trial, _ in f.throttled])
        parts.append(f"CPUs were throttled {times} times in {trials}")
    return "; ".join(parts), "check these trials, and the machine, before trusting them"


def shortened(text: str) -> str:
    """The text on one line of at most `LONGEST` characters."""
    plain = " ".join(text.split())
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"


def _near_memory(w: DataWarning, f: facts.DataNearMemory) -> Words:
    if f.memory_bytes is None:
        text = f"the data set is {f.share:.2f} of the memory that it may be cached in: {BETWEEN_CACHED}"
        return text, OTHER_DATA
    text = (
        f"{w.metric} of a trial is {quantity(f.share * f.memory_bytes, 'B')}, {f.share:.2f} of the machine's "
        f"{quantity(f.memory_bytes, 'B')} of memory: {BETWEEN_CACHED}"
    )
    return text, OTHER_DATA


def _too_short(w: DataWarning, f: facts.TooShort) -> Words:
    text = (
        f"a trial's {w.metric} of {quantity(f.median, f.unit)} is {f.ticks:.3g} ticks of {quantity(f.tick, f.unit)}: "
        f"not known within {size(f.within)}"
    )
    longer = f"{math.ceil(f.times):,} times as long" if math.isfinite(f.times) else "much longer"
    return text, f"make a trial {longer}"


def _coarse_clock(w: DataWarning, f: facts.CoarseClock) -> Words:
    text = f"{w.metric} is counted in steps of {quantity(f.step, f.unit)}, as large as its spread"
    return text, FINER_CLOCK if f.of_time else "have it printed with more digits"


def _all_equal(w: DataWarning, f: facts.AllEqual) -> Words:
    text = f"all {f.of} values of {w.metric} are {quantity(f.value, f.unit)}"
    return text, f"{FINER_CLOCK}: nothing shows their spread"


def _two_groups(w: DataWarning, f: facts.TwoGroups) -> Words:
    low, high = quantity(f.low, f.unit), quantity(f.high, f.unit)
    alike = ", and consecutive trials tend to be in the same group" if f.alike else ""
    text = f"{w.metric} is bimodal: {f.few} of {f.of} trials near {low}, {f.many} near {high}{alike}"
    return text, "find the difference between the groups; report both centres instead of the mean"


def _autocorrelated(w: DataWarning, f: facts.AutocorrelatedTrials) -> Words:
    text = (
        f"{w.metric} is autocorrelated: {f.of} trials are worth {f.worth:.0f} independent ones, "
        "so the interval is widened, but not enough if the autocorrelation is strong"
    )
    return text, "let the machine become idle between trials, or restart processes that outlive them"


def _far_values(w: DataWarning, f: facts.FarValues) -> Words:
    among = f.of if f.among is None else f.among
    on_one_level = "" if f.among is None else " on one level"
    farthest = f", the farthest {signed(f.farthest)} their median" if f.farthest else ""
    if w.kind == "heavy-tail":
        text = (
            f"{f.count} of {among} values of {w.metric}{on_one_level} are outliers{farthest}: too many for "
            "outliers, a heavy tail or another state"
        )
        return text, "compare medians and percentiles, not only means"
    what = counted(f.count, "outlier")
    text = f"{what} among {among} trials{on_one_level} by {w.metric} ({named(w.trials)}{farthest}); included"
    return text, "check which processes ran beside them, and whether median and mean agree"


def _skewed(w: DataWarning, f: facts.SkewedValues) -> Words:
    text = (
        f"{w.metric} is not normal (Shapiro–Wilk p = {f.p:.2g}, skewness {f.skewness:.1f}) and {f.of} trials are "
        f"few for the interval of its mean; of log-normal values of 30 % that test detects {100 * f.power:.0f} % "
        "at this number (at p < .05)"
    )
    return text, "for a typical run rely on the median and its interval; for the mean make many more trials"


_OF_METHOD = {"Theil-Sen": "; Kendall's", "least squares": ","}
"""Text between the method of a trend and its p."""


def way(change: float) -> str:
    """`rises by 4.1 %`."""
    return f"{'rises' if change > 0 else 'falls'} by {size(change)}"


def _drifts(w: DataWarning, f: facts.DriftOfValues) -> Words:
    sessions = f", or its {f.sessions} sessions differ" if f.sessions > 1 else ""
    text = (
        f"{w.metric} {way(f.change)} over its {f.of} trials, or consecutive trials are autocorrelated{sessions} "
        f"({f.method}{_OF_METHOD[f.method]} {p_value(f.p)})"
    )
    causes = (
        "fills up, ages, heats up or runs beside it"
        if f.slower
        else "warms up, fills a cache or ends beside it"
    )
    return text, f"look for what {causes}; in pairs, drift common to both tests cancels"


def _never_steady(w: DataWarning, f: facts.NeverSteady) -> Words:
    ends = " and the ".join(
        f"{word} {counted(n, 'trial')}" for word, n in (("first", f.first), ("last", f.last)) if n
    )
    text = f"{w.metric} has no steady state: without the {ends} it still {way(f.change)} ({p_value(f.p)})"
    return text, "warm it up for longer before measuring; its mean depends on the time of measuring"


def _other_ends(w: DataWarning, f: facts.OtherEnds) -> Words:
    others = "of those between" if f.first and f.last else "of the others"
    ends = [("first", f.first, f.shift), ("last", f.last, f.shift_last)]
    shifted = ", ".join(f"the {word} {counted(n, 'trial')} {signed(by)}" for word, n, by in ends if n)
    method = f.method or "outliers, all of them there"
    text = (
        f"{w.metric}: {shifted} the median {others}: a level shift, or trials are autocorrelated ({method})"
    )
    if w.kind == "warm-up":
        runs = warm_up_runs(f)
        return text, (
            f"if it is a warm-up, rerun with {runs} warm-up runs (etude bench --warmup {runs}; in a script, a TEST of "
            f"{runs} before it); none was left out here"
        )
    at = " and ".join(map(str, f.changes_at))
    return text, f"look for what changed at trial {at}, then rerun; none was left out here"


def warm_up_runs(f: facts.OtherEnds) -> int:
    """Number of warm-up runs: the first trials, and the first run of all, which is excluded anyway."""
    return f.first + 1


def _leak(w: DataWarning, f: facts.Leak) -> Words:
    each, low, high, total = (quantity(value, f.unit) for value in (f.each, f.low, f.high, f.total))
    text = (
        f"suspected leak: {w.metric} falls by {each} a trial (95 %: {low} to {high}), {total} over {f.of} trials "
        f"({p_value(f.p)})"
    )
    return text, "find the memory leak; until then restart or reboot between trials"


def _machines_apart(w: DataWarning, f: facts.MachinesApart) -> Words:
    others = "the other" if f.of == 2 else "the others"
    each = [
        f"{one.machine} is {signed(one.ratio - 1.0)} {others} (× {one.ratio:.3f}; 95 %: {one.low:.3f}–{one.high:.3f}; "
        f"{p_value(one.p)})"
        for one in f.apart
    ]
    more = f"; and {len(each) - NAMED} more" if len(each) > NAMED else ""
    return f"{w.metric} of {'; '.join(each[:NAMED])}{more}", "find the reason, or leave out that machine"


def _unknown_metric(w: DataWarning, f: facts.UnknownMetric) -> Words:
    return f"no metric {w.metric} to watch for a trend; there are {', '.join(f.known)}", ""


def _precision_unknown(w: DataWarning, f: facts.PrecisionUnknown) -> Words:
    why = "one value has no spread" if f.single else "its mean is 0"
    text = f"the requested precision, {percent(f.target)} of {w.metric}, is unknown: {why}"
    return text, "make more trials" if f.single else "choose another"


def _not_converged(w: DataWarning, f: facts.NotConverged) -> Words:
    width, target = percent(f.width), percent(f.target)
    text = f"not converged: the mean of {w.metric} is known to ± {width}, the target is ± {target}"
    if f.more == 0:
        return text, "allow more trials"
    if not f.reachable:
        return text, INSTEAD
    return text, f"about {counted(f.more, 'more trial')} would reach it if further trials vary as much"


def processes_text(f: facts.OtherLoad) -> str:
    """`cc1 1.2 s, make 0.1 s`: the largest users, per trial."""
    return ", ".join(f"{name} {quantity(seconds, 's')}" for name, seconds in f.names)


def _other_load(w: DataWarning, f: facts.OtherLoad) -> Words:
    text = (
        f"other processes used {quantity(f.cpu_s, 's')} of CPU time a trial, {f.share:.2g} CPUs, over "
        f"{counted(f.of, 'trial')}: {processes_text(f)}{f' and {f.more} more' if f.more else ''}"
    )
    return text, "end them, or measure when they are idle (etude quiet)"


def _busy(w: DataWarning, f: facts.Busy) -> Words:
    began = "it" if f.session is None else f"session {f.session}"
    text = (
        f"the machine was busy when {began} began: a load average of {f.load:g} on {counted(f.cpus, 'CPU')}"
    )
    return text, "rerun on an idle machine"


def _change(each: facts.StateChange) -> str:
    return f"{each.what} {each.then} → {each.now}" if each.what else "it was rebooted"


def _changes(found: Sequence[facts.StateChange]) -> str:
    return some_of(list(map(_change, found)), NAMED_CHANGES, "; ")


def _machine_changed(w: DataWarning, f: facts.MachineChanged) -> Words:
    first, last = f.between[0]
    if first != last:
        when = f"between sessions {first} and {last}"
    else:
        when = "while it measured" if f.sessions == 1 else f"during session {last}"
    again = f", and {counted(len(f.between) - 1, 'more time')}" if len(f.between) > 1 else ""
    text = f"the machine changed {when}{again}: {_changes(f.changes)}"
    return text, "do not compare trials from before and after the change"


def _several_machines(w: DataWarning, f: facts.SeveralMachines) -> Words:
    differ = f"which differ: {_changes(f.changes)}" if f.changes else "which are the same as far as recorded"
    names = some_of(list(map(value_text, f.hosts)), NAMED_CHANGES)
    return (
        f"measured on {len(f.hosts)} machines ({names}), {differ}",
        "comparisons are within each machine",
    )


def _within_shell(w: DataWarning, f: facts.WithinShell) -> Words:
    return "its time is not distinguishable from the start of the shell", WITHOUT_SHELL


def _against_itself(w: DataWarning, f: facts.AgainstItself) -> Words:
    limits = f"{f.low:.3f}–{f.high:.3f}"
    text = f"against itself: {f.ratio:.3f} (95 %: {limits}; {f.pairs} pairs), which the A/A noise includes"
    return text, "distrust differences of this size here"


def _other_work(w: DataWarning, f: facts.OtherWork) -> Words:
    d = f.difference
    what_to_do = "is it the same work?" if d.between else "compare their work before any number"
    if d.what == "ending":
        if not d.between:
            return f"{d.test} ended in different ways: {', '.join(d.endings)}", what_to_do
        return f"{d.test} ended with {d.endings[0]}, {d.base} with {d.endings[1]}", what_to_do
    if not d.between:
        return f"{d.test} printed different output in different trials", what_to_do
    own, other = d.printed_bytes
    if own == other:
        return f"{d.test} printed other output than {d.base} ({other:,} B each)", what_to_do
    how = "less" if own < other else "more"
    return f"{d.test} printed {how} than {d.base} ({own:,} B against {other:,} B)", what_to_do


def _noted(w: DataWarning, f: facts.NoteOnResult) -> Words:
    return result_notes.note_text(f.note), ""


def _explained(w: DataWarning, f: outliers.OutlierExplanation) -> Words:
    return explanations.explained_text(f), explanations.suspects_text(f.why)


def _in_common(w: DataWarning, f: outliers.CauseInCommon) -> Words:
    text = f"{f.count} of the {f.slower} slower trials have one cause in common; "
    return text + explanations.explained_text(f.example), explanations.suspects_text(f.example.why)


def _unexplained(w: DataWarning, f: outliers.NoExplanation) -> Words:
    return explanations.unexplained_text(f), explanations.unexplained_advice(f)


def _not_looked_at(w: DataWarning, f: outliers.NotLookedAt) -> Words:
    return f"{f.count} smaller outliers were not checked in the monitor's series", ""


def _monitor_unreadable(w: DataWarning, f: outliers.MonitorUnreadable) -> Words:
    return f"{f.error}; outliers are not explained", ""


_WORDS: Mapping[type[facts.Facts], Callable[[DataWarning, Any], Words]] = {
    facts.RecordedSentence: _recorded,
    facts.SeveralMatches: _several_matches,
    facts.LimitReached: _limited,
    facts.FailedTrials: _failed,
    facts.NoTrialMade: _never_begun,
    facts.ExcludedTrials: _excluded,
    facts.NoValue: _no_value,
    facts.TooFew: _too_few,
    facts.MissingValues: _missing,
    facts.NoMatch: _no_match,
    facts.CachesDiffer: _caches,
    facts.KernelComplained: _kernel,
    facts.DataNearMemory: _near_memory,
    facts.TooShort: _too_short,
    facts.CoarseClock: _coarse_clock,
    facts.AllEqual: _all_equal,
    facts.TwoGroups: _two_groups,
    facts.AutocorrelatedTrials: _autocorrelated,
    facts.FarValues: _far_values,
    facts.SkewedValues: _skewed,
    facts.DriftOfValues: _drifts,
    facts.NeverSteady: _never_steady,
    facts.OtherEnds: _other_ends,
    facts.Leak: _leak,
    facts.MachinesApart: _machines_apart,
    facts.UnknownMetric: _unknown_metric,
    facts.PrecisionUnknown: _precision_unknown,
    facts.NotConverged: _not_converged,
    facts.OtherLoad: _other_load,
    facts.Busy: _busy,
    facts.MachineChanged: _machine_changed,
    facts.SeveralMachines: _several_machines,
    facts.WithinShell: _within_shell,
    facts.AgainstItself: _against_itself,
    facts.OtherWork: _other_work,
    facts.NoteOnResult: _noted,
    outliers.OutlierExplanation: _explained,
    outliers.CauseInCommon: _in_common,
    outliers.NoExplanation: _unexplained,
    outliers.NotLookedAt: _not_looked_at,
    outliers.MonitorUnreadable: _monitor_unreadable,
}
