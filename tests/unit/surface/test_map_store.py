"""A map on disk: it comes back as it was, survives what cuts it short, and is not mixed with another."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import CommandFailed, InputError
from etude.experiment.plan import make_plan
from etude.results.reader import load_results
from etude.surface.factors import Configuration, Factor, Space
from etude.surface.map_store import MapDefinition, MapStore, define_map, open_map
from etude.surface.next_configuration import Rules, Visit
from etude.surface.samples import Sample
from support.charting import SPACE, Made, lines, mapped, product, unknown

number = st.floats(min_value=1e-9, max_value=1e12)
samples = st.one_of(
    st.builds(
        lambda cell, low, wide, more, cost, trials, kept: Sample(
            cell, "measured", low * wide, low, low * wide * more, 0.95, cost, trials, kept, "ü\n"
        ),
        st.sampled_from(list(SPACE)), number, st.floats(1, 3), st.floats(1, 3), number, st.integers(0, 99),
        st.booleans(),
    ),
    st.builds(
        lambda cell, low, why: Sample(cell, "bounded", None, low, math.inf, 0.9, 3.5, 2, False, why),
        st.sampled_from(list(SPACE)), number, st.text(max_size=20),
    ),
    st.builds(unknown, st.sampled_from(list(SPACE))),
)  # fmt: skip


@given(st.lists(samples, max_size=6))
def test_samples_come_back_bit_by_bit_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, found: list[Sample]
) -> None:
    path = tmp_path_factory.mktemp("map")
    with open_map(path, define_map("made", SPACE, Rules(), Made(), "text")) as kept:
        for sample in found:
            kept.keep(Visit(sample.cell, None, None, "asked"), sample)
    back = MapStore(path)
    assert back.samples() == found
    assert back.definition == define_map("made", SPACE, Rules(), Made(), "text")


def test_a_map_is_results_that_all_of_etude_reads(tmp_path: Path) -> None:
    kept = mapped(tmp_path / "r", Made(lambda cell: unknown(cell) if cell == (1, 1) else product(cell)))
    results = load_results(tmp_path / "r")
    assert len(results.measurements) == 6
    (line,) = results.measurements["a=4 b=x"]
    assert (line.kept, line.metrics["rate"], line.command) == (True, [400.0, "1/s"], ["made", "a=4", "b=x"])
    (line,) = results.measurements["a=2 b=y"]
    assert (line.kept, line.metrics["rate"]) == (False, [None, "1/s", "it died"])
    assert results.experiment["metrics"]["rate"] == {"unit": "1/s", "kind": "rate"}
    assert [each["surface"]["order"] for each in lines(tmp_path / "r")] == [1, 2, 3, 4, 5, 6]
    assert "every configuration" in kept.document["surface"]["why"]
    assert kept.document["sittings"][-1]["how_ended"] == "complete"


def test_a_torn_last_line_is_measured_again_and_nothing_else(tmp_path: Path) -> None:
    mapped(tmp_path, Made())
    last = lines(tmp_path)[-1]["test"]
    entries = json.loads((tmp_path / "experiment.json").read_text())["tests"]
    (directory,) = (entry["directory"] for entry in entries if entry["name"] == last)
    file = tmp_path / directory / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    response = Made()
    mapped(tmp_path, response)
    assert [SPACE.name(cell) for cell in response.cells] == [last]
    assert len(lines(tmp_path)) == 6


def test_a_line_that_stands_there_again_counts_once_and_one_that_was_changed_is_refused(
    tmp_path: Path,
) -> None:
    before = mapped(tmp_path, Made()).samples()
    file = next(tmp_path.glob("*/results.jsonl"))
    line = file.read_bytes()
    file.write_bytes(2 * line)
    assert (MapStore(tmp_path).samples(), MapStore(tmp_path).lost) == (before, {})
    file.write_bytes(line + re.sub(rb'"cost_s":[0-9.]+', b'"cost_s":11', line))
    with pytest.raises(InputError, match=f"{file}: order "):
        MapStore(tmp_path)


OTHERS = {
    "a level more": ({"space": Space((replace(SPACE.factors[0], levels=(1.0, 2.0, 8.0)), SPACE.factors[1]))},
                     " a .*1, 2, 4, .*a .*1, 2, 8"),
    "a factor more": ({"space": Space((*SPACE.factors, Factor("c", "linear", (1.0,))))},
                      "factors .*2, .*3"),
    "another unit": ({"unit": "1"}, "rate .*1/s, .*rate .*1"),
    "another name": ({"response": "speed"}, "rate .*1/s, .*speed .*1/s"),
    "another command": ({"text": "made 2"}, "harness .*command"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_another_map_is_refused_and_the_first_stays(name: str, tmp_path: Path) -> None:
    mapped(tmp_path, Made(), Rules(count=2))
    changed, said = OTHERS[name]
    other = replace(define_map("made", SPACE, Rules(), Made(), ""), **changed)  # type: ignore[arg-type]
    with pytest.raises(InputError) as error, open_map(tmp_path, other):
        pass
    assert re.match(rf"{tmp_path}: .*{said}.* -o$", str(error.value))
    assert len(MapStore(tmp_path).samples()) == 2


def test_a_factor_that_is_another_resource_by_now_is_another_map(tmp_path: Path) -> None:
    def spec(resource: str) -> str:
        return f'[factor.a]\nlevels = [1, 2]\nresource = "{resource}"\n'

    def one(text: str) -> MapDefinition:
        return define_map("made", SPACE, Rules(), Made(), text)

    with open_map(tmp_path, one(spec("quota"))) as kept:
        kept.attempt_place((0, 0))
    with open_map(tmp_path, one(spec("quota") + '[budget]\ntime = "1 h"\n')):
        pass
    for other, said in (
        (spec("memory"), "resource of factor a was .*quota.*, now .*memory"),
        ("", "was a, now none"),
    ):
        with pytest.raises(InputError, match=said), open_map(tmp_path, one(other)):
            pass


def test_a_tighter_precision_is_another_map_and_a_wider_one_is_not(tmp_path: Path) -> None:
    """Cells would be told of that miss what is asked for now."""

    def asking(precision: str) -> MapDefinition:
        return define_map("made", SPACE, Rules(), Made(), f'[response]\ncommand = "true"\n{precision}')

    with open_map(tmp_path, asking("precision = 0.02")) as kept:
        kept.attempt_place((0, 0))
    for same in ('precision = "2 %"', "", "precision = 0.05", 'precision = "50 %"'):
        with open_map(tmp_path, asking(same)):
            pass
    for tighter in ("", "precision = 0.005"):
        with (
            pytest.raises(InputError, match="precision was 50 %"),
            open_map(tmp_path, asking(tighter)),
        ):
            pass


def test_another_map_is_refused_also_where_the_first_cell_is_not_done(tmp_path: Path) -> None:
    """Its search is on disk: another harness must not go on with it."""
    with pytest.raises(KeyboardInterrupt):
        mapped(tmp_path, Made(lambda cell: KeyboardInterrupt()))
    other = replace(define_map("made", SPACE, Rules(), Made(), ""), text="made 2")
    with pytest.raises(InputError, match="holds another map"), open_map(tmp_path, other):
        pass


def test_rules_may_change_between_sessions(tmp_path: Path) -> None:
    mapped(tmp_path, Made(), Rules(count=2))
    response = Made()
    kept = mapped(tmp_path, response, Rules("in-order"))
    assert len(response.cells) == 4
    assert MapStore(tmp_path).definition.rules == Rules("in-order") == kept.definition.rules


def test_cells_that_are_left_out_later_do_not_count_and_come_back(tmp_path: Path) -> None:
    mapped(tmp_path, Made())
    less = replace(SPACE, without=frozenset({(0, 0), (2, 1)}))
    assert len(mapped(tmp_path, Made(), space=less).samples()) == 4
    assert len(MapStore(tmp_path).samples()) == 4
    response = Made()
    assert len(mapped(tmp_path, response).samples()) == 6
    assert response.cells == []


def test_results_of_another_kind_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    from etude.experiment.run import _new_document
    from etude.results.writer import replace_json

    (tmp_path / "a").mkdir()
    replace_json(tmp_path / "experiment.json", _new_document(make_plan(["a"]), "bench", (), None))
    (tmp_path / "a" / "results.jsonl").write_text('{"torn')
    with pytest.raises(InputError, match="etude bench"):
        mapped(tmp_path, Made())
    assert (tmp_path / "a" / "results.jsonl").read_text() == '{"torn'


EDITED = {
    "no JSON": (lambda line: line[:40], ""),
    "another cell": (lambda line: line.replace('"cell":[', '"cell":[7'), "[7"),
    "another state": (lambda line: line.replace('"state":"measured"', '"state":"fine"'), "'fine'"),
    "a word": (lambda line: line.replace('"low":', '"low":"much","x":'), "'much'"),
    "no member": (lambda line: line.replace('"surface":', '"surfaces":'), "'surface'"),
}


@pytest.mark.parametrize("name", EDITED)
def test_an_edited_file_is_one_line_with_its_place(name: str, tmp_path: Path) -> None:
    mapped(tmp_path, Made(), Rules(count=1))
    (file,) = tmp_path.glob("*/results.jsonl")
    edit, said = EDITED[name]
    file.write_text(edit(file.read_text().strip()) + "\n")
    with pytest.raises(InputError) as error:
        MapStore(tmp_path)
    assert str(error.value).startswith(f"{file}:1: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("member", ["factors", "rules", "response", "without"])
def test_an_edited_plan_is_one_line(member: str, tmp_path: Path) -> None:
    mapped(tmp_path, Made(), Rules(count=1))
    file = tmp_path / "experiment.json"
    document = json.loads(file.read_text())
    document["plan"][member] = 3
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"experiment\.json: .*plan"):
        MapStore(tmp_path)


def test_what_failed_is_tried_again_when_asked_and_its_line_stays(tmp_path: Path) -> None:
    bad: set[Configuration] = {(1, 0), (2, 1), (0, 1)}
    mapped(tmp_path, Made(lambda cell: CommandFailed("it died") if cell in bad else product(cell)))
    assert mapped(tmp_path, nothing := Made()).samples()
    assert nothing.cells == [], "not asked to"
    response = Made(lambda cell: CommandFailed("again") if cell == (0, 1) else product(cell))
    mapped(tmp_path, response, retry=True)
    assert sorted(response.cells) == sorted(bad)
    assert all(asked.place.name == "attempt-2" for asked in response.asked), "not into what failed"
    back = {sample.cell: sample for sample in MapStore(tmp_path).samples()}
    assert {cell for cell, sample in back.items() if sample.state == "failed"} == {(0, 1)}
    assert [line["trial"] for line in lines(tmp_path) if line["test"] == "a=2 b=x"] == [1, 2]
    assert [line["surface"]["order"] for line in lines(tmp_path)] == list(range(1, 10))
    last = Made()
    mapped(tmp_path, last, retry=True)
    assert [asked.place.name for asked in last.asked] == ["attempt-3"]
