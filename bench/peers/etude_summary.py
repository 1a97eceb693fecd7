"""Étude's part of the same: python etude_summary.py DIRECTORY > SUMMARY.csv

The last line on standard error is the largest memory that it needed, in KiB: of this process, in which all that the
engine left is looked at, and of the engine.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from etude.results.columns import Coded, Columns, read_columns
from etude.results.trials import series_of_columns
from etude.stats.describe import describe

METRICS = ("elapsed", "user", "system", "peak_memory")


def main() -> None:
    columns = read_columns(Path(sys.argv[1]), METRICS)
    lines = ["test,metric,count,mean,std,median,min,max,q1,q3,mean_low,mean_high,median_low,median_high"]
    for series in series_of_columns(columns):
        for metric, column in series.columns.items():
            s = describe(series.sample(metric), column.kind)  # type: ignore[arg-type]
            mean, median = s.mean_interval, s.median_interval
            assert mean is not None
            assert median is not None
            figures = (s.count, s.mean, s.deviation, s.median, s.minimum, s.maximum, *s.quartiles)
            lines.append(
                f"{series.test},{metric},"
                + ",".join(map(repr, (*figures, mean.low, mean.high, median.low, median.high)))
            )
    print("\n".join(lines))
    look_at_all(columns)
    print(
        sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)),
        file=sys.stderr,
    )


def look_at_all(columns: Columns) -> None:
    """Memory that was filled but not looked at would not count as this process's."""
    for found in vars(columns).values():
        if isinstance(found, Coded):
            found.codes.max()
        elif hasattr(found, "dtype"):
            found.max()
    for metric in columns.metrics.values():
        metric.values.max()


if __name__ == "__main__":
    main()
