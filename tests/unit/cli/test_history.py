"""`etude history`, `etude history mark` and `etude compare` on a store that was filled."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from etude.store.database import open_store
from etude.store.entry import Machine
from support.builders import measurement, results_directory
from support.fakes import World, around
from support.golden import Golden
from support.made_histories import HOST, commit, fill, history, on_another

Etude = Callable[..., int]
UPGRADED = Machine("host-a", "d2", (("kernel", "6.2"), ("processor", "Epyc")))
OTHER = Machine("host-b", "d3", (("kernel", "6.1"), ("processor", "Xeon")))
RULES = '[rule.slower]\nat_least = "2 %"\nsees = "6 %"\n'


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store of 60 results with a step at 40, machine changed at 50; and 24 of another machine."""
    file = tmp_path_factory.mktemp("store") / "store.sqlite"
    made = on_another(history(60, {40: 1.08}, noise=0.005), UPGRADED, 50)
    made[30] = replace(made[30], tags=("v1",))
    made[55] = replace(made[55], tags=("v2",))
    with open_store(file) as store:
        fill(store, [*made, *history(24, machine=OTHER, seed=3)])
    return file.read_bytes()


@pytest.fixture
def stored(world: World, filled: bytes, monkeypatch: pytest.MonkeyPatch) -> World:
    """The store, in the working directory."""
    Path("etude-store.sqlite").write_bytes(filled)
    monkeypatch.delenv("ETUDE_STORE", raising=False)
    return world


def test_a_history_names_the_step_its_first_result_and_what_of_the_machine_changed(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert etude("history", "sort") == 0
    said = capsys.readouterr().out
    first, second = said.split("sort, elapsed, on ")[1:]
    assert first.startswith("host-a: 60 results")
    (step,) = [line for line in first.splitlines() if line.startswith("Step ")]
    assert all(word in step for word in ("2026-02-10", commit(40)[:10], "2026-02-09", commit(39)[:10]))
    (machine,) = [line for line in first.splitlines() if "kernel: 6.1 → 6.2" in line]
    assert "2026-02-20" in machine
    assert second.startswith("host-b: 24 results")
    assert "No step" in second
    assert "2 machines" in said
    golden(said)


def test_a_sparkline_points_at_the_step(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    etude("history", "sort", "--machine", "host-a")
    _, bars, marks, *_ = capsys.readouterr().out.splitlines()
    assert len(bars) == 60
    assert marks == " " * 40 + "▲"


def test_a_history_as_json_has_results_levels_and_steps(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("history", "sort", "--machine", "host-a", "--json") == 0
    (course,) = json.loads(capsys.readouterr().out)
    assert len(course["results"]) == 60
    (step,) = course["steps"]
    assert step["at"] == 40
    assert step["first"]["commit"] == commit(40)
    assert step["low"] < step["size"] < step["high"]
    assert step["size"] == pytest.approx(0.08, abs=0.005)
    assert course["machines"] == [{"at": 50, "differences": ["kernel: 6.1 → 6.2"]}]


def test_a_figure_and_a_page_are_written(stored: World, etude: Etude) -> None:
    assert etude("history", "sort", "--figure", "h.svg", "--page", "h.html") == 0
    assert b"<svg" in Path("h.svg").read_bytes()
    page = Path("h.html").read_text()
    assert page.count('<section id="machine-') == 2
    assert page.index('<section id="verdict"') < page.index('<section id="machine-')
    assert page.count('<p class="headline">host-') == 2
    assert "kernel: 6.1 → 6.2" in page
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", page)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["copy"], 3, "test 'copy'"),
        (["sort", "--machine", "moon"], 3, "machine moon"),
        (["sort", "--metric", "user"], 3, "metric 'user'"),
        (["sort", "--figure", "h.gif"], 2, "h.gif: "),
        (["sort", "--gate"], 2, "--rules"),
        (["sort", "--rules", "no.toml"], 3, "no.toml: "),
        (["sort", "--store", "no.sqlite"], 3, "no.sqlite: "),
        (["sort", "--rules", "r.toml", "--gate", "--backtest"], 2, "--backtest is"),
    ],
)
def test_a_wrong_question_is_one_line(
    stored: World,
    etude: Etude,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    code: int,
    said: str,
) -> None:
    assert etude("history", *arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_rule_gates_only_after_its_backtest_and_ends_with_1_where_it_objects(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    Path("r.toml").write_text(RULES)
    asked = ["history", "sort", "--machine", "host-a", "--rules", "r.toml"]
    assert etude(*asked) == 0
    assert "ALERT by slower" in capsys.readouterr().out
    assert etude(*asked, "--gate") == 2
    refused = capsys.readouterr().err
    assert all(word in refused for word in ("slower", "sort", "host-a", "--backtest"))
    assert etude(*asked, "--backtest") == 0
    said = capsys.readouterr().out
    assert re.search(r"alarms: .* of 100 ", said)
    assert re.search(r"Misses: .* of 100 ", said)
    assert etude(*asked, "--gate") == 1
    gated = capsys.readouterr().out
    assert "60 results" in gated
    assert "ALERT by slower" in gated
    golden(refused + said + gated)
    Path("r.toml").write_text(RULES + "persist = 6\n")
    assert etude(*asked, "--gate") == 2


def test_a_marked_change_opens_the_gate(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    Path("r.toml").write_text(RULES)
    asked = ["history", "sort", "--machine", "host-a", "--rules", "r.toml"]
    assert etude("history", "mark", "sort", commit(40)[:9], "--why", "checksums are on") == 0
    assert etude(*asked) == 0
    said = capsys.readouterr().out
    assert "ALERT" not in said
    assert "No alert" in said
    etude("history", "sort", "--machine", "host-a")
    (step,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Step ")]
    assert step.endswith("checksums are on.")
    golden(said + step)


@pytest.mark.parametrize(("head", "stands"), [(0.0109, True), (0.0100, False)], ids=["slower", "as before"])
def test_an_alert_stands_only_where_a_fresh_comparison_bears_it_out(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str], head: float, stands: bool
) -> None:
    stored.times = {"new": around(head), "old": around(0.0100)}
    Path("r.toml").write_text(RULES)
    code = etude("history", "sort", "--machine", "host-a", "--rules", "r.toml", "--confirm", "old", "new")
    said = capsys.readouterr().out
    assert code == 0
    assert ("Confirmed by a new comparison" in said) is stands
    assert ("Not confirmed" in said) is not stands


def test_two_tags_are_compared_and_a_machine_that_changed_is_told(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("compare", "tag:v1", "v2", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["low"] < 1.08 < found["high"]
    assert found["differences"] == ["kernel: 6.1 → 6.2"]
    assert etude("compare", "tag:v1", "v2") == 0
    said = capsys.readouterr().out
    assert f"{found['ratio']:.4g}" in said.splitlines()[0], "the answer stands first"
    assert said.startswith("Machines differ. ")
    table, _, notes = said.partition("\nNote: ")
    assert "kernel: 6.1 → 6.2" in notes
    assert "v2/tag:v1" in table


def test_several_comparisons_are_counted_by_their_intervals_together(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    with open_store() as store:
        for seed in range(4):
            fill(store, history(60, test=f"copy{seed}", seed=seed))
    sides = ("date:2026-01-20", "date:2026-02-25")
    assert etude("compare", *sides, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    judged = [each for each in found if not each["refused"]]
    assert {each["together"] for each in judged} == {len(judged)}
    for each in judged:
        assert (each["adjusted_p"] < 0.05) is not (each["low"] <= 1.0 <= each["high"])
    assert etude("compare", *sides) == 0
    said = capsys.readouterr().out
    differ = sum(each["adjusted_p"] < 0.05 for each in judged)
    assert f"{differ} of {len(judged)} " in said
    golden(said)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["v1", "v9"], 3, "'v9': "),
        (["v1", "branch:x"], 2, "'branch:x': "),
        (["v1", "v2", "--metric", "user"], 3, "no user"),
        (["v1", "v2", "--test", "nosuch"], 3, "no test 'nosuch'; there are sort"),
        (["v1", "v2", "--test", "nosuch", "--metric", "all"], 3, "no test 'nosuch'; there are sort"),
        (["v1", "v2", "--test", "sort", "--metric", "user"], 3, "no test 'sort' with user"),
    ],
)
def test_a_side_that_is_not_there_is_one_line(
    stored: World,
    etude: Etude,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    code: int,
    said: str,
) -> None:
    assert etude("compare", *arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert line.count(said) == 1


def test_a_mark_needs_a_test_that_is_there(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("history", "mark", "copy", "abcd", "--why", "x") == 3
    assert "test 'copy'" in capsys.readouterr().err
    assert HOST.name == "host-a"


def test_names_in_a_page_are_never_markup(stored: World, etude: Etude) -> None:
    name = "<script>alert(1)</script>"
    with open_store() as store:
        fill(store, history(8, test=name, machine=Machine(name, "d")))
    assert etude("history", name, "--page", "odd.html") == 0
    page = Path("odd.html").read_text()
    assert name not in page
    assert "&lt;script&gt;alert(1)" in page


def test_directories_that_are_compared_are_answered_with_the_verb_for_them(
    stored: World, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r 1", "r2"):
        results_directory(Path(name), {"a": [measurement("a", n, 1.0) for n in range(2)]})
    for store in ("etude-store.sqlite", "none.sqlite"):
        assert etude("compare", "r 1", "r2", "--store", store) == 3
        assert "etude stats 'r 1' r2" in capsys.readouterr().err
    assert etude("compare", "v1", "r2") == 3
    assert "etude stats" not in capsys.readouterr().err
