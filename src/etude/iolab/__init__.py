"""The I/O lab: sweeps of the micro-benchmark `etude io` over sizes, what they say, and their figures.

>>> import etude
>>> results = etude.io.sweep("/mnt/disk", buffers="8..16M")   # doctest: +SKIP
>>> print(etude.io.explain(results))                          # doctest: +SKIP
>>> etude.io.figures(results)["throughput"]                   # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etude.iolab.run_sweep import sweep
from etude.iolab.sweeps import Sweep

if TYPE_CHECKING:
    from etude.analysis.subject import Subject
    from etude.figures.plot import Plot
    from etude.iolab.lab import Row
    from etude.present.sentences.io_lab import Explanation
    from etude.results.results import Results

__all__ = ["Sweep", "explain", "figures", "rows", "sweep"]


def explain(source: Results | Subject) -> Explanation:
    """Read a sweep's results as the L41 notes read theirs: where curves bend and what lies there, or where a
    difference falls below 5 % and 1 %; as sentences, and their numbers.

    Raises:
        InputError: the results are not those of a sweep.
    """
    from etude.present.sentences import io_lab

    return io_lab.explain(source)


def rows(results: Results) -> list[Row]:
    """The kept trials of a sweep, a row each: `over`, `curve`, `size_bytes`, `trial`, `metric`, `value`, `unit`.

    `polars.DataFrame(rows)` and `pandas.DataFrame(rows)` make a table of them.

    Raises:
        InputError: the results are not those of a sweep.
    """
    from etude.analysis.subject import subject_of
    from etude.iolab.lab import rows_of
    from etude.iolab.points import swept_of

    return list(rows_of(swept_of(subject_of(results))))


def figures(results: Results, **style: Any) -> dict[str, Plot]:
    """The figures of a sweep by name: `throughput`, or `linking` and `significance`.

    `style`: members of `etude.figures.style.Style`, such as `width=6.0`, in inches.

    Raises:
        InputError: the results are not those of a sweep.
    """
    from etude.analysis.subject import subject_of
    from etude.figures.plot import Plot
    from etude.figures.style import Style
    from etude.iolab.lab import figures_of

    return {name: Plot(data, Style(**style)) for name, data in figures_of(subject_of(results)).items()}
