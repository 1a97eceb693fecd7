"""The same summary as a pandas script: python pandas_summary.py rows|read_json DIRECTORY > SUMMARY.csv

Per test and metric count, mean with its interval (Student), median with its interval (order statistics), quartiles,
extremes and deviation. The last line on standard error is the largest memory that it needed, in KiB.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

METRICS = ("elapsed", "user", "system", "peak_memory")


def by_rows(files: list[Path]) -> pd.DataFrame:
    """Each line by the json module; only what is summarised is kept."""
    tests, columns = [], {metric: [] for metric in METRICS}
    for file in files:
        with open(file, encoding="utf-8") as opened:
            for line in opened:
                row = json.loads(line)
                if row["kept"]:
                    tests.append(row["test"])
                    for metric in METRICS:
                        columns[metric].append(row["metrics"][metric][0])
    return pd.DataFrame({"test": pd.Categorical(tests), **columns})


def by_read_json(files: list[Path]) -> pd.DataFrame:
    """Each file by pandas itself; the nested metrics are taken apart, and the rest is dropped, file by file."""
    frames = []
    for file in files:
        frame = pd.read_json(file, lines=True, convert_dates=False, dtype=False)
        frame = frame[frame["kept"]]
        values = {metric: [m[metric][0] for m in frame["metrics"]] for metric in METRICS}
        frames.append(pd.DataFrame({"test": frame["test"].to_numpy(), **values}))
    return pd.concat(frames).astype({"test": "category"})


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a test and metric."""
    grouped = frame.melt("test", var_name="metric").groupby(["test", "metric"], observed=True, sort=False)[
        "value"
    ]
    found = grouped.agg(["count", "mean", "std", "median", "min", "max"])
    quartiles = grouped.quantile([0.25, 0.75]).unstack()
    found["q1"], found["q3"] = quartiles[0.25], quartiles[0.75]
    n = found["count"].to_numpy()
    half = stats.t.ppf(0.975, n - 1) * found["std"] / np.sqrt(n)
    found["mean_low"], found["mean_high"] = found["mean"] - half, found["mean"] + half
    depth = {count: int(stats.binom.ppf(0.025, count, 0.5)) for count in np.unique(n)}
    limits = grouped.agg(lambda x: _limits(np.sort(x.to_numpy()), depth[len(x)]))
    found["median_low"], found["median_high"] = zip(*limits, strict=True)
    return found


def _limits(values: np.ndarray, depth: int) -> tuple[float, float]:
    return values[depth - 1], values[-depth]


def main() -> None:
    how, directory = sys.argv[1:]
    files = sorted(Path(directory).glob("*/results.jsonl"))
    frame = by_rows(files) if how == "rows" else by_read_json(files)
    summary(frame).to_csv(sys.stdout)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)


if __name__ == "__main__":
    main()
