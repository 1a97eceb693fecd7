"""Which trials a warning speaks of, read from its words, so that a chart can mark them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from etude.report.warnings import Warning
from etude.results.series import Series

_NAMED = re.compile(r"\btrials? (\d+\b(?:(?:, | and )\d+\b(?! more))*)")
_ENDS = re.compile(r"\b(first|last)(?: (\d[\d,]*) trials?| trial)")


def trials_of(warning: Warning, series: Series) -> tuple[int, ...]:
    """Numbers of the trials that the warning names, such as `trials 4, 9 and 17` or `the first 2 trials`.

    Only trials that the test has; of `trials 4, 9 and 3 more` those that are named.
    """
    known = set(map(int, series.trials))
    found = [n for n in _numbers(warning.text, series, warning.metric) if n in known]
    return tuple(dict.fromkeys(found))


def _numbers(text: str, series: Series, metric: str) -> Iterator[int]:
    for match in _NAMED.finditer(text):
        yield from map(int, re.split(r", | and ", match[1]))
    places = series.places(metric) if metric else series.trials[series.kept]
    for match in _ENDS.finditer(text):
        count = int(match[2].replace(",", "")) if match[2] else 1
        ends = places[:count] if match[1] == "first" else places[max(0, places.size - count) :]
        yield from np.asarray(ends).tolist()
