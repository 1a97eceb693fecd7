"""The table of a verdict: tests that are compared, and tests that are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from etude.analysis.verdict import Verdict, verdict
from etude.analysis.verdict_options import VerdictOptions
from etude.present.export import as_html, to_markdown
from etude.present.sections.bench import verdict_blocks, verdict_table
from etude.present.terminal import show
from etude.results.reader import load_results
from support.builders import measurement, results_directory


def judged(directory: Path, values: dict[str, list[float]]) -> Verdict:
    """Tests, each with these values of `v`, compared with the first."""
    rows = {
        test: [
            measurement(test, trial, metrics={"v": [value, "x"]})
            for trial, value in enumerate(found, start=1)
        ]
        for test, found in values.items()
    }
    plan = {"kind": "script", "primary": "v"}
    return verdict(
        load_results(results_directory(directory, rows, plan=plan)),
        verdict_options=VerdictOptions(reference="a"),
    )


def test_a_test_that_is_not_compared_has_no_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged(tmp_path / "r", {"a": [2.0, 3.0, 4.0, 5.0], "b": [4.0, 6.1, 8.0, 10.0], "c": []})
    assert [c.other for c in found.comparisons] == ["b"]
    show(verdict_blocks(found))
    cells = dict(re.findall(r"(?m)^ ([abc]) .* (\S+)$", capsys.readouterr().out))
    assert cells["a"] == "1"
    assert cells["b"].startswith("2.")
    assert cells["c"] == "–"


def test_markdown_and_notebooks_have_the_table_of_the_screen(tmp_path: Path) -> None:
    found = judged(tmp_path / "r", {"a": [2.0, 3.0, 4.0, 5.0], "b": [4.0, 6.1, 8.0, 10.0]})
    table = verdict_table(found, "v")
    assert table.headings[-1] == "ratio"
    assert to_markdown(found).splitlines()[0] == f"| {' | '.join(table.headings)} |"
    assert all(f"<th>{heading}</th>" in as_html(found) for heading in table.headings)
