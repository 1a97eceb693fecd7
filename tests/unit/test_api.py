"""The Python face: what `import etude` offers."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import etude
from etude.errors import UsageError
from etude.experiment import run as running
from support.builders import still_machine
from support.fakes import World, around


@pytest.fixture(autouse=True)
def _still_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    still_machine(monkeypatch)
    world = World({"a": around(0.01), "b": around(0.02)})
    monkeypatch.setattr(running, "engine_maker", lambda: world.make_engine)


def test_commands_are_compared_and_the_verdict_is_text(tmp_path: Path) -> None:
    verdict = etude.bench(["a x", "b y"], directory=tmp_path, seed=1)
    assert verdict.comparisons[0].ratio.ratio == pytest.approx(2.0, rel=0.02)
    assert "b y takes" in str(verdict)
    assert etude.load_results(tmp_path).frame().filter(kept=True).height >= 20


def test_a_notebook_shows_a_line_or_a_table_and_never_all_measurements(tmp_path: Path) -> None:
    verdict = etude.bench(["a '<x>'", "b y"], directory=tmp_path / "r", seed=1)
    results = etude.load_results(tmp_path / "r")
    for shown in (verdict, results):
        assert str(tmp_path / "r") in repr(shown)
        assert len(repr(shown)) < 250 + len(str(tmp_path))
        html = shown._repr_html_()
        assert html.count("<table>") == html.count("</table>") == 1
        assert html.count("<tr>") == 3
        assert "a '<x>'" not in html
        assert "&lt;x&gt;" in html
        ElementTree.fromstring(f"<div>{html}</div>")


def test_tests_are_run_as_a_plan(tmp_path: Path) -> None:
    test = etude.Test("name", ("a",), prepare="sync")
    verdict = etude.bench([test], directory=tmp_path, trials=3)
    assert [(t.test, t.kept) for t in verdict.tests] == [("name", 3)]


def test_what_cannot_be_meant_is_an_error_of_usage_before_anything_is_written(tmp_path: Path) -> None:
    for commands, options in (([], {}), (["a"], {"trials": 0}), (["a", "a"], {})):
        with pytest.raises(UsageError):
            etude.bench(commands, directory=tmp_path / "r", **options)
    assert list(tmp_path.iterdir()) == []


def test_all_that_is_public_can_be_loaded_and_nothing_else() -> None:
    assert all(getattr(etude, name) is not None for name in etude.__all__)
    assert set(etude.__all__) <= set(dir(etude))
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = etude.nosuch  # type: ignore[attr-defined]
