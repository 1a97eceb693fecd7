"""The making of each number of a report, in a few words a number; docs/explanation/statistics.md has the formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.analysis.replays import LATE_S, MISMATCHES, UNPLAYED
from etude.present.page.gather import Gathered, kind_of
from etude.present.section import Section
from etude.units.formatting import level_text, percent, quantity


def explanations(found: Gathered, parts: Sequence[Section] = ()) -> Iterator[tuple[str, str]]:
    """Name and explanation of each number that the report and its parts have."""
    kinds = {part.key.partition("-")[0] for part in parts}
    if "replay" in kinds:
        yield from _REPLAY
    if "load" in kinds:
        yield from _LOAD
    if "peak" in kinds:
        yield from _PEAK
    if "surface" in kinds:
        yield from _SURFACE
    if found.reports and not (found.verdicts or found.summaries):
        return
    level = level_text(found.verdict_options.confidence)
    surfaces = {kind_of(verdict.subject) for verdict in found.verdicts} == {"surface"}
    yield (
        (
            "trial",
            "A load or a command that ran once, at one configuration.",
        )
        if surfaces
        else (
            "trial",
            "One execution of a test, from its preparation to its end. A trial is included unless it failed, or was "
            "declared a warm-up before anything was measured; no trial is left out for its value.",
        )
    )
    yield (
        "mean and its interval",
        f"The mean over the included trials: arithmetic for times and counts, harmonic for rates, geometric for "
        f"ratios. The interval is made to hold the true mean in {level} of experiments like this one; it holds it in "
        "fewer where the machine changes meanwhile, or a rare kind of trial is missing. It follows Student's "
        "distribution, and is wider where consecutive trials are autocorrelated, or where the number of trials "
        "depended on what was seen. Where it would reach below zero it is formed on a logarithmic scale, and fewer "
        "than five trials then have none.",
    )
    yield (
        "median and its interval",
        "The middle trial. Its interval lies between two of the sorted values, for any shape of the "
        "distribution, and is wider where consecutive trials are autocorrelated; it needs six independent trials.",
    )
    yield (
        "deviation",
        "The standard deviation (with n - 1) as a share of the mean: how much single trials scatter.",
    )
    methods = {c.ratio.method for verdict in found.verdicts for c in verdict.comparisons}
    if methods:
        yield (
            "ratio and its interval",
            f"How many times as large one test's mean is as the other's, with its {level} interval, which is formed on "
            "a logarithmic scale. A difference is claimed where that interval excludes 1, the ratio lies beyond the "
            "A/A noise, where that is known, and the typical run does not point the other way.",
        )
    if "paired" in methods:
        yield (
            "pairs",
            "In each block every compared test ran once, in random order. The interval follows from the differences "
            "within each block, so that what the machine did to both cancels.",
        )
    if "unpaired" in methods:
        yield (
            "unpaired",
            "The tests did not run in common blocks: their means are compared by Welch's t test. Any "
            "change of the machine between them is in the difference.",
        )
    if any(c.floor is not None for verdict in found.verdicts for c in verdict.comparisons):
        yield (
            "A/A noise",
            "The baseline also ran against itself in the same blocks: within this margin comparisons of as many pairs "
            f"of identical commands stay in {level} of such sessions. No difference within it is claimed.",
        )
    if methods:
        yield (
            "p",
            "How often data at least as far from no difference come about if there is none. It is not the "
            "probability that there is none. Where the number of trials depended on what was seen, its standard error "
            "is widened as the interval's, so that it is larger than that of a plain t test. Where several comparisons "
            "were made it counts them all (Bonferroni), as the intervals do.",
        )
    if any(c.equivalence is not None for verdict in found.verdicts for c in verdict.comparisons):
        yield (
            "the same within",
            "Two one-sided tests: both that the ratio is above the lower and that it is below the upper margin must be "
            "shown before two tests are called the same.",
        )
    if found.across:
        yield (
            "other sessions",
            "A ratio of two results of different sessions is widened by what changes from session to session, as seen "
            "in stored sessions or as stated; where that is not known they are not compared.",
        )
    yield (
        "warnings",
        "Each series of included trials is searched for trends, level shifts at its ends, outliers, bimodal values, "
        "autocorrelation, and a clock that is too coarse. A warning changes no number.",
    )


_REPLAY = (
    (
        "faithful",
        f"99 % of calls began less than {quantity(LATE_S, 's')} late, at most {percent(MISMATCHES)} had another "
        f"result, and at most {percent(UNPLAYED)} of the program's bytes, transfers, and time in reads and writes "
        "is not played: the default bounds of etude replay --judge.",
    ),
    (
        "recorded and replayed time",
        "Run time is from the first call to the end of the last. The others are the time within calls, summed over all "
        "threads.",
    ),
    ("late", "The time from when a call was due to when it began."),
)
_PEAK = (
    (
        "peak rate",
        "The load that is most probably within the target of the true peak, by all trials of the search. "
        "So it need not be in the middle of its interval, and may be one of its ends.",
    ),
    (
        "interval of the peak rate",
        "It holds the highest load that meets all criteria, with the requested confidence. “Within 10 %” with its own "
        "confidence is the target: how probable it is that the rate is at most 10 % off.",
    ),
    (
        "measured, of limit (reading)",
        "The value of the criterion that is nearest to its limit, or farthest beyond it, and its share of the limit: "
        "above 100 % the load is too high. A load is judged by the mean of its trials. Words in place of the share: "
        "“behind”, less than 95 % of what was sent was answered, or as many requests as may be were under way, and so "
        "the load is too high; “died”, the server ended; “generator” and “not made”, the load was not offered, which "
        "shows nothing about the server.",
    ),
    (
        "loads next to the answer",
        "Offered and completed requests/s, and quantiles of all requests of the trials at a load, those without an "
        "answer with their age (see response). Lateness: how late requests were sent. Headroom: the share of the load "
        "generator's capacity that was left.",
    ),
    (
        "response (of a trial)",
        "The mean over the requests of the trial. Requests without an answer at its end count with their age, if they "
        "are more than the mean response explains (Little's law); in results of earlier versions they do not, so that "
        "it is below the measured value of an overloaded trial.",
    ),
    (
        "ran, ended early",
        "“4 s of 8 s”: the search ended the trial before its run length, since more of it would not have changed "
        "what is known of the load.",
    ),
)
_SURFACE = (
    (
        "measured, predicted",
        "A measured configuration has its own search or series of trials; Tests has a row for each. The others are "
        "predicted by a model of the measured ones.",
    ),
    (
        "what limits",
        "Of the factors whose next level improves the response by more than 5 %, the one with the largest gain per "
        "doubling of the level; at its highest level the last step counts.",
    ),
    (
        "estimate and interval of a peak rate",
        "The rate that is most probably within the target of the true one. It need not be in the middle of its "
        "interval, and may be one of its ends.",
    ),
    (
        "effective range",
        "The levels between which the response changes by 5 % or more: over all settings of the other factors, then "
        "for each setting where it is another one.",
    ),
)
_LOAD = (
    (
        "response",
        "The time from when a request was due to its answer; in a closed loop from the end of thinking. So a slow "
        "system cannot hide the requests that it delays (coordinated omission). Percentiles are nearest ranks of all "
        "responses, and need at least one response beyond them.",
    ),
    (
        "limit",
        "The generator, where it was so busy or so late that the figures are its own. Else the system, where "
        "requests could not be sent when due, had no answer, or more were outstanding at the end than the mean "
        "response explains (Little's law). Else none was reached.",
    ),
)
