"""Details of a comparison in sentences: difference, p-values, ranks, detectable difference, equivalence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from etude.analysis.comparison import Comparison, Secondary
from etude.analysis.cross_session import CrossSession, overall
from etude.analysis.time_breakdown import TimeBreakdown
from etude.present.sentences import comparison as text
from etude.results.series import Series
from etude.stats.cross_session import CrossSessionRatio, NotSupported
from etude.stats.equivalence import Equivalence
from etude.stats.ratio import Ratio
from etude.units.formatting import counted, level_text, percent, quantity, span

LEVEL = 0.05
"""Level of the false discovery rate at which other metrics are reported."""
MOST_METRICS = 6
QUICK_S = 1e-3
"""Duration of a cache preparation (s) below which it only inspected the caches."""


def detail_lines(c: Comparison) -> list[str]:
    """Lines below the sentences of one comparison: interval first, p second."""
    lines = [text.basis_line(c), _hypothesis(c)]
    if c.difference is not None:
        ends = c.difference.low, c.difference.high
        low, high = (quantity(end, c.unit, max(map(abs, ends)) or None) for end in ends)
        each = f"; {text.EACH_PAIR}" if c.base_mean_over != "trial" and c.ratio.method == "paired" else ""
        lines.append(f"Difference of the means: {low} … {high} ({text.level_of(c.ratio)}{each}).")
    if c.typical is not None and c.varies:
        limits = span(c.typical.low, c.typical.high)
        lines.append(
            f"Ratio of the geometric means, a typical run's: {text.ratio_text(c.typical)} "
            f"({text.level_of(c.typical)}: {limits})."
        )
    if c.shift is not None and c.shift_p is not None and c.ratio.p is not None:
        limits = (
            f"{text.level_of(c.ratio)}: {span(c.shift.low, c.shift.high)}; "
            if c.shift.low is not None and c.shift.high is not None
            else ""
        )
        lines.append(
            f"By ranks (Hodges–Lehmann, {_authors(c.shift.method)}): {c.shift.shift:.4g} × "
            f"({limits}{p_text(c.shift_p)}{' counting all comparisons' if c.ratio.together > 1 else ''})."
        )
    smallest = c.ratio.smallest_found()
    if smallest is not None and smallest < text.WORTH_TELLING:
        what = counted(c.ratio.count, "pair" if c.ratio.method == "paired" else "trial")
        if c.most_trials is not None and c.most_trials > c.ratio.count:
            what = f"{c.ratio.count:,} and {counted(c.most_trials, 'trial')}"
        lines.append(
            f"{what} of this spread detect an increase of {percent(smallest)} with 80 % power"
            f"{text.BEYOND_NOISE if c.floor is not None else ''}."
        )
    if c.equivalence is not None:
        lines.append(_equivalence(c.equivalence))
    return [*lines, *_other_metrics(c)]


def across_lines(across: Sequence[CrossSession]) -> list[str]:
    """A line for each comparison of results of different sessions; of several later ones it names its result."""
    several = len({a.other_label for a in across}) > 1
    return [_across_line(a, several) for a in across]


def _across_line(a: CrossSession, several: bool) -> str:
    if isinstance(a.found, NotSupported):
        needed = f"{counted(a.found.needed, 'more stored session')} of {a.base} on this machine"
        return (
            f"{a.other} ({a.other_label}) is not compared with {a.base} ({a.base_label}): {a.found.reason}. "
            f"What helps: {a.found.remedy} (--between-sessions PCT), or {needed}."
        )
    ratio, limits = f"{a.found.ratio:.4g}", span(a.found.low, a.found.high)
    head = text.takes_text(a.metric, a.other, ratio, f"the baseline {a.base}")
    if not (a.found.low > 1.0 or a.found.high < 1.0):
        head = f"{a.other} and the baseline {a.base} are not distinguishable in {a.metric}: ratio {ratio}"
    level = text.level_of(a.found)
    note = "; their command lines differ" if a.other_command else ""
    p = p_text(a.found.p if a.adjusted_p is None else a.adjusted_p)
    where = f"{a.other_label}: " if several else ""
    return (
        f"{where}{head} ({level}: {limits}; {p}; {_basis(a.found)}, {text.UNPAIRED}{note}); "
        f"the baseline's {a.metric} is {quantity(a.base_mean, a.unit)} (mean)."
    )


def overall_lines(across: Sequence[CrossSession]) -> list[str]:
    """A line for each later result of several tests: the ratio of all of them together."""
    return [
        f"All {o.tests} tests of {label} together: {o.ratio:.4g} × the baseline's {across[0].metric} (geometric mean; "
        f"{level_text(o.confidence)}: {span(o.low, o.high)}; {p_text(o.p)}; each side taken as one session, "
        f"{text.UNPAIRED})."
        for label, o in overall(across)
    ]


def time_line(spent: TimeBreakdown) -> str:
    """Time breakdown, in shares of elapsed."""

    def share(seconds: float) -> str:
        return percent(seconds / spent.elapsed)

    if spent.elapsed <= 0.0:
        return "where the time went: unknown, since the elapsed time is 0"
    parts = [f"user {share(spent.user)}", f"system {share(spent.system)}"]
    if spent.cpus > 1.0:
        parts.append(f"{spent.cpus:.1f} CPUs used, so waiting time is unknown")
    else:
        parts.append(f"waiting {share(max(0.0, spent.waiting))}")
    parts.append(_device(spent))
    if spent.others is None:
        parts.append("others' CPU not measured (--probe others)")
    else:
        parts.append(f"others' CPU {share(spent.others)}")
    return f"where the time went: {', '.join(parts)}"


def cache_line(series: Series) -> str | None:
    """Preparation of the caches before the included trials, and the part of the data set that was in memory; None if
    unknown."""
    kept = zip(series.kept.tolist(), series.caches, strict=False)
    caches = [cache for is_kept, cache in kept if is_kept and cache and cache["declared"] != "none"]
    if not caches:
        return None
    done = [cache for cache in caches if cache["performed"] is not None]
    parts = [f"caches: {caches[0]['declared']} before {len(done)} of {counted(len(caches), 'trial')}"]
    took = median(cache["cooling_s"] for cache in done) if done else 0.0
    if took >= QUICK_S:
        parts.append(f"{quantity(took, 's')} each")
    seen = [cache["resident_bytes"] for cache in done if "resident_bytes" in cache]
    if seen:
        size = quantity(max(cache.get("bytes", 0) for cache in done), "B")
        low, high = (quantity(value, "B") for value in (min(seen), max(seen)))
        much = low if low == high else f"{low} … {high}"
        parts.append(f"then {much} of {size} in memory")
        memory = [limit for cache in done if (limit := cache.get("memory_bytes"))]
        if memory:
            share = max(cache.get("bytes", 0) for cache in done) / min(memory)
            parts.append(f"the data set is {share:.2g} of the memory")
    elif done:
        parts.append("memory residency is unknown: no data set was named")
    return ", ".join(parts)


def disk_line(experiment: Mapping[str, Any] | None, test: str) -> str | None:
    """The state that a test's disk was brought into, the last time (docs/howto/disk-state.md); None if none."""
    entries = (experiment or {}).get("tests") or []
    disk: Mapping[str, Any] = next((e.get("disk") or {} for e in entries if e.get("name") == test), {})
    said = [words(disk[name]) for name, words in _DISK_WORDS.items() if isinstance(disk.get(name), dict)]
    return f"disk: {'; '.join(said)}" if said else None


def _aged(done: Mapping[str, Any]) -> str:
    fragments = _figure(done.get("new_file_fragments_per_mib"))
    return (
        f"aged to {_share(done.get('level'))} by seed {done.get('seed')}, "
        f"{quantity(done.get('written_bytes') or 0, 'B')} written, its files in "
        f"{_figure(done.get('fragments.mean'))} fragments each, a new file of 1 MiB in {fragments}"
    )


def _filled(done: Mapping[str, Any]) -> str:
    return f"filled to {_share(done.get('level'))}"


def _preconditioned(done: Mapping[str, Any]) -> str:
    state = "steady" if done.get("steady") is True else "not steady"
    return f"preconditioned until {state}, {quantity(done.get('written_bytes') or 0, 'B')} written"


def _share(value: object) -> str:
    return percent(value) if isinstance(value, float | int) else "an unknown level"


def _figure(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float | int) else "an unknown number"


_DISK_WORDS = {"preconditioning": _preconditioned, "aging": _aged, "filling": _filled}


def p_text(p: float | None) -> str:
    """`p = .003`; a small one is not written out."""
    if p is None:
        return "no p: nothing varies"
    if p < 1e-4:
        return "p < .0001"
    if p >= 0.995:
        return "p = 1"
    figures = next(n for n in (2, 3, 4, 17) if (float(f"{p:.{n}g}") < 0.05) == (p < 0.05))
    return f"p = {p:.{figures}g}".replace("0.", ".", 1)


def _hypothesis(c: Comparison) -> str:
    if c.ratio.p is None:
        return "H0 (a ratio of 1) cannot be tested: nothing varies."
    paired = c.ratio.method == "paired"
    if c.typical is None:
        test = "paired t on log ratios" if paired else "Welch's t on logarithms"
    else:
        test = "paired t on the ratio of the means" if paired else "Welch's t on the ratio of the means"
    if c.ratio.factor > 1.0:
        test += f", its error widened by {c.ratio.factor:g} as the interval's"
    adjusted = (
        "" if c.adjusted_p is None else f"; {p_text(c.adjusted_p)} counting all comparisons (Bonferroni)"
    )
    rejected = "rejected" if c.excludes_one else "not rejected"
    return f"H0 (a ratio of 1) is {rejected}: {p_text(c.ratio.p)} ({test}{adjusted})."


def _authors(method: str) -> str:
    return method.replace("-", "–")


def _equivalence(e: Equivalence) -> str:
    words = {
        "the same": "yes: equivalent within it",
        "different": "no: they differ by more",
        "undecided": "undecided from these trials",
    }
    if e.verdict == "undecided" and (e.low > 1.0 + e.margin or e.high < 1.0 / (1.0 + e.margin)):
        words["undecided"] = "not shown, and no difference is claimed"
    p = "" if e.verdict == "different" else f"; {p_text(e.p)}"  # which is of the opposite
    many, each = ("", "") if e.together == 1 else (f", counting all {e.together} comparisons", " each")
    return (
        f"The same within {percent(e.margin)}? {words[e.verdict].capitalize()} "
        f"({level_text(e.confidence)}{each}: {span(e.low, e.high)}{p and p + many})."
    )


def _other_metrics(c: Comparison) -> list[str]:
    secondary = [s for s in c.secondary if not s.unsteady]
    judged = [s for s in secondary if s.adjusted_p is not None]
    found = sorted((s for s in judged if (s.adjusted_p or 0.0) < LEVEL), key=lambda s: s.adjusted_p or 0.0)
    tested = [
        f"{s.metric} {text.ratio_text(s.ratio)} × ({level_text(s.ratio.confidence)} each: "
        f"{span(s.ratio.low, s.ratio.high)}, {p_text(s.ratio.p)}, adjusted {p_text(s.adjusted_p)})"
        for s in found
    ]
    exact = [s for s in secondary if s.ratio.low == s.ratio.high and not math.isclose(s.ratio.ratio, 1.0)]
    untested = [f"{s.metric} {text.ratio_text(s.ratio)} ×" for s in exact]
    lines = []
    if judged:
        lines += [
            f"Of {counted(len(judged), 'other metric')} {_differ(found)}"
            f" (Benjamini–Hochberg at 5 %){_first(tested)}."
        ]
    if exact:
        others = f"{counted(len(exact), 'other metric')} {'differs' if len(exact) == 1 else 'differ'}"
        lines += [f"{others} by a ratio that does not vary (no p){_first(untested)}."]
    unsteady = [s.metric for s in c.secondary if s.unsteady]
    if unsteady:
        lines.append(f"Not judged, since {c.base} differs from itself in them{_first(unsteady)}.")
    if c.uncompared:
        lines.append(f"Not compared, since a value is 0{_first(c.uncompared)}.")
    return lines


def _differ(found: Sequence[Secondary]) -> str:
    if not found:
        return "none is shown to differ"
    return f"{len(found)} {'differs' if len(found) == 1 else 'differ'}"


def _first(shown: Sequence[str]) -> str:
    """The first `MOST_METRICS` texts after a colon, and the number of the others."""
    more = [f"and {len(shown) - MOST_METRICS} more"] if len(shown) > MOST_METRICS else []
    return f": {'; '.join([*shown[:MOST_METRICS], *more])}" if shown else ""


def _basis(found: CrossSessionRatio | Ratio) -> str:
    if isinstance(found, Ratio):
        return f"over {found.count} sessions or more of each"
    between = f"{percent(found.between.deviation)} between sessions"
    if found.between.sessions is None:
        return f"each side taken as one session, widened by {between} as stated"
    return (
        f"each side taken as one session, widened by {between} as seen in {found.between.sessions} sessions"
    )


def _device(spent: TimeBreakdown) -> str:
    if spent.device is None:
        return "device not measured (--probe pressure)"
    return f"some task waited for a device {percent(spent.device / spent.elapsed)}"
