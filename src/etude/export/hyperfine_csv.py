"""What hyperfine writes with --export-csv: a row a test, times in seconds, a column for each parameter."""

from __future__ import annotations

import csv
import io
import json

from etude.export import hyperfine
from etude.export.document import Document, Exported
from etude.results.delimited import text_cell

ABOUT = "CSV of hyperfine: a row a test, its mean, deviation and extremes in seconds"
COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")


def write(document: Document) -> Exported:
    """The same results as its JSON, without their runs."""
    found = hyperfine.write(document)
    results = json.loads(found.text)["results"]
    names = list(dict.fromkeys(name for each in results for name in each.get("parameters", {})))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*COLUMNS, *(f"parameter_{name}" for name in names)])
    for each in results:
        values = each.get("parameters", {})
        cells = [*(each[column] for column in COLUMNS), *(values.get(name, "") for name in names)]
        rows.writerow([text_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return Exported(text.getvalue(), found.left_out)
