"""Each format, read back: the same names as far as it has room for them, and the same numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from hypothesis import given, settings

from etude.errors import UsageError
from etude.export import FORMATS, export_to
from etude.export.document import (
    Compared,
    Document,
    Figures,
    NotExported,
    at_most,
    identifier,
    lost_lines,
    one_line,
    word,
)
from etude.results.readers import read_table
from support.golden import Golden
from support.made_documents import BEGAN, MACHINE, RUN, documents, point
from support.profiles import examples

few = settings(max_examples=examples(25))
ONE = Document((point("a", "elapsed", [1.0, 3.0]),), "elapsed")


def read_back(form: str, text: str) -> list[dict[str, object]]:
    """What our own reader makes of it: a dictionary a row."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "exported"
        path.write_text(text, encoding="utf-8")
        return read_table(f"{form}:{path}").frame.to_dicts()


@pytest.mark.parametrize("form", FORMATS)
@few
@given(document=documents())
def test_every_format_takes_any_document(form: str, document: Document) -> None:
    text = export_to(form, document).text
    assert text.endswith("\n")
    if text[0] in "[{":
        json.loads(text, parse_constant=pytest.fail)
    text.encode("utf-8")


@few
@given(document=documents())
def test_bmf_has_the_mean_and_its_interval_of_each_metric_that_has_a_value(document: Document) -> None:
    found = json.loads(export_to("bencher", document).text)
    known = [p for p in document.points if p.figures and p.figures.mean is not None]
    assert sum(map(len, found.values())) == len(known)
    for p in known:
        unit = f" ({p.unit})"
        metric = found[one_line(p.test)][p.metric + unit]
        assert p.figures is not None
        assert metric["value"] == p.figures.mean
        assert metric.get("lower_value") == p.figures.low
        assert metric.get("upper_value") == p.figures.high


@few
@given(document=documents())
def test_github_action_benchmark_gets_costs_and_rates_apart_and_our_reader_reads_its_history(
    document: Document,
) -> None:
    for form, kind, tool in (
        ("github-smaller", "cost", "customSmallerIsBetter"),
        ("github-bigger", "rate", "customBiggerIsBetter"),
    ):
        benches = json.loads(export_to(form, document).text)
        known = [p for p in document.points if p.kind == kind and p.figures]
        assert [b["value"] for b in benches] == [p.figures.mean for p in known if p.figures]
        assert all(re.match(r"± \d.+", b["range"]) for b in benches if "range" in b), (
            "as the action extracts it"
        )
        if benches:
            entry = {"commit": {"id": "c"}, "date": 1, "tool": tool, "benches": benches}
            rows = read_back(
                "github-action-benchmark", json.dumps({"lastUpdate": 1, "entries": {"s": [entry]}})
            )
            assert len(rows) == len(benches)


@pytest.mark.parametrize("form", ["hyperfine", "hyperfine-2"])
@few
@given(document=documents(gaps=False))
def test_our_reader_of_hyperfine_reads_the_same_trials(form: str, document: Document) -> None:
    wanted = [p for p in document.points if p.metric == "elapsed" and p.values]
    if not wanted:
        return
    rows = read_back("hyperfine", export_to(form, document).text)
    for p in wanted:
        assert [r["elapsed"] for r in rows if r["command"] == one_line(p.test)] == list(p.values)
    for p in document.points:
        if p.metric == "peak_memory" and p.values:
            read = [r["peak_memory"] for r in rows if r["command"] == one_line(p.test)]
            assert read == (
                list(p.values) if form == "hyperfine-2" else [float(int(v or 0)) for v in p.values]
            )


@few
@given(document=documents())
def test_our_reader_of_go_reads_the_same_trials(document: Document) -> None:
    if not any(p.known for p in document.points):
        return
    rows = read_back("go", export_to("go", document).text)
    for p in document.points:
        keys = "".join(f"/{word(name)}={word(value)}" for name, value in p.parameters)
        mine = [r for r in rows if str(r["test"]) in _names(word(p.test) + keys)]
        read = [r[p.metric] for r in mine if r.get(p.metric) is not None]
        assert read == list(p.known), p.test


def _names(full: str) -> set[str]:
    """With and without the number of processors that a name may seem to end in."""
    return {full, re.sub(r"-[0-9]+$", "", full), re.sub(r"-[0-9]+$", "", full) or "Benchmark"}


@few
@given(document=documents())
def test_otava_gets_a_number_in_every_cell(document: Document) -> None:
    later = replace(RUN, measured=BEGAN + timedelta(days=1), committed=BEGAN)
    both = (*(replace(p, run=later) for p in document.points), *document.points)
    if not any(p.figures for p in document.points):
        return
    names, *rows = list(csv.reader(io.StringIO(export_to("otava", replace(document, points=both)).text)))
    known = [p for p in document.points if p.figures]
    assert names == ["time", "commit", "branch", *(one_line(f"{p.test}.{p.metric}") for p in known)]
    for row in rows:
        assert list(map(float, row[3:])) == [p.figures.mean for p in known if p.figures]
    assert [row[0] for row in rows] == sorted(row[0] for row in rows), "in the order of time"


@few
@given(document=documents())
def test_conbench_gets_each_value_or_an_error(document: Document) -> None:
    found = json.loads(export_to("conbench", document).text)
    held = [p for p in document.points if p.unit != "B"]
    assert [r["tags"]["metric"] for r in found] == [p.metric for p in held]
    for result, p in zip(found, held, strict=True):
        assert result["stats"]["data"] == list(p.known) if p.known else result["error"]["reason"]
        assert all(isinstance(v, str) for n, v in result["machine_info"].items() if n != "gpu_product_names")
    assert len({r["run_id"] for r in found}) <= 1


@few
@given(document=documents())
def test_openmetrics_has_each_mean_once_and_ends_as_it_must(document: Document) -> None:
    text = export_to("openmetrics", document).text
    assert text.endswith("\n# EOF\n")
    lines = [line for line in text.split("\n") if 'statistic="mean"' in line]
    means = [p.figures.mean for p in document.points if p.figures]
    assert sorted(float(line.rsplit(" ", 2)[1]) for line in lines) == sorted(
        m for m in means if m is not None
    )


@few
@given(document=documents())
def test_junit_is_xml_with_every_test_as_a_case_and_an_error_where_no_trial_was_kept(
    document: Document,
) -> None:
    root = xml.fromstring(export_to("junit", document).text)
    tests = list(dict.fromkeys(p.test for p in document.points))
    cases = root.findall(".//testcase")
    assert len(cases) == len(tests) == int(root.get("tests", ""))
    for test, case in zip(tests, cases, strict=True):
        known = [p for p in document.points if p.test == test and p.figures]
        read = {p.get("name"): p.get("value") for p in case.findall("properties/property")}
        for p in known:
            assert p.figures is not None
            assert read[f"{p.metric}.mean"] == repr(p.figures.mean)
        assert (case.find("error") is not None) == (not known)


@few
@given(document=documents())
def test_markdown_has_a_row_for_each_test_with_a_value(document: Document) -> None:
    text = export_to("markdown", document).text
    judged = [p for p in document.points if p.metric == "elapsed" and p.figures]
    top = text.partition("<details>")[0].splitlines()
    rows = [line for line in top if line.startswith("| ")][2:]
    assert len(rows) == len(judged)
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 6 for row in rows), "no name adds a cell"


def test_a_comparison_that_is_worse_is_a_failure_and_comes_first() -> None:
    same = Compared("a", "b", "elapsed", 1.0, 0.9, 1.1, False, ("b takes as long.",))
    worse = Compared("a", "c", "elapsed", 1.2, 1.1, 1.3, True, ("c takes longer.",))
    document = replace(ONE, compared=(same, worse))
    root = xml.fromstring(export_to("junit", document).text)
    assert root.get("failures") == "1"
    (failure,) = root.findall(".//failure")
    assert failure.text == "c takes longer."
    first, second = export_to("markdown", document).text.splitlines()[:2]
    assert "worse" in first
    assert "no difference" in second


def test_a_test_without_a_kept_trial_is_said_to_be_left_out() -> None:
    document = replace(ONE, points=(*ONE.points, point("b", "elapsed", [])))
    for form in ("bencher", "github-smaller", "go", "hyperfine", "hyperfine-2", "markdown", "openmetrics"):
        assert any(str(lost).startswith("b: ") for lost in export_to(form, document).left_out), form


def test_two_runs_in_a_format_of_one_are_refused() -> None:
    twice = replace(ONE, points=(*ONE.points, point("a", "elapsed", [2.0], replace(RUN, source="results/y"))))
    for form in ("bencher", "github-smaller"):
        with pytest.raises(UsageError, match="in results/x and results/y"):
            export_to(form, twice)


def test_results_of_several_machines_keep_their_names_or_are_refused() -> None:
    other = replace(RUN, machine=replace(MACHINE, name="lab 2"))
    document = replace(ONE, points=(*ONE.points, point("a", "elapsed", [2.0], other)))
    assert set(json.loads(export_to("bencher", document).text)) == {"a @ lab 1", "a @ lab 2"}
    with pytest.raises(UsageError, match="choose with --machine"):
        export_to("otava", document)
    assert export_to("go", document).text.count("machine: ") == 2


def test_figures_alone_are_exported_where_a_format_has_no_trials() -> None:
    figures = Figures(10, 2.0, 1.9, 2.1, 2.0, 1.0, 3.0, 0.1)
    document = Document((replace(ONE.points[0], values=(), figures=figures),), "elapsed")
    assert json.loads(export_to("bencher", document).text)["a"]["elapsed (s)"]["value"] == 2.0
    for form in ("go", "hyperfine", "hyperfine-2", "conbench"):
        assert export_to(form, document).left_out, form


def test_what_is_left_out_is_said_once_for_each_reason(golden: Golden) -> None:
    lost = [
        NotExported("a", "x", "no unit"),
        NotExported("a", "y", "no unit"),
        NotExported("b", "y", "no unit"),
        NotExported("", "", "no row"),
    ]
    assert [line.split(" of ")[0] for line in lost_lines(lost)] == ["x, y", "no row"]
    golden("\n".join(lost_lines(lost)))


@few
@given(document=documents())
def test_words_hold_what_they_promise(document: Document) -> None:
    for p in document.points:
        assert not re.search(r"\s", word(p.test))
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", identifier(p.test))
        assert len(at_most(p.test * 20, 30)) <= 30
    assert at_most("x" * 40, 30) != at_most("x" * 41, 30)
