"""Parts of an experiment as one: nothing is lost, nothing is changed but numbers, and it may be done again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.experiment.progress import trials_of
from etude.results.merge import merge_results, renumbered
from etude.results.model import Measurement
from etude.results.reader import load_results
from support.builders import document, line, measurement, results_directory
from support.profiles import examples

HOSTS = ("n1", "n2", "n3")
Part = tuple[str, dict[str, list[list[float]]]]
"""A host, and of each test its sessions: the elapsed times of their trials, s."""

PARTS = st.lists(
    st.tuples(
        st.sampled_from(HOSTS),
        st.dictionaries(
            st.sampled_from(["a", "b", "sitting", "trial"]),
            st.lists(st.lists(st.floats(1e-9, 1e3), max_size=3), min_size=2, max_size=2),
            min_size=1,
        ),
    ),
    min_size=1,
    max_size=4,
)


def rows_of(test: str, host: str, sittings: list[list[float]]) -> Iterator[Measurement]:
    """Two workers a trial; what was cut short before is part of the first command's words."""
    trial = 0
    for sitting, times in enumerate(sittings, 1):
        for elapsed in times:
            for worker in range(2):
                yield measurement(
                    test,
                    trial,
                    elapsed,
                    worker=worker,
                    sitting=sitting,
                    host=host,
                    rows=2,
                    command=[test, '"trial":7', '{"sitting": 9}'],
                )
            trial += 1


def made(place: Path, parts: list[Part]) -> dict[str, Path]:
    found = {}
    for number, (host, tests) in enumerate(parts, 1):
        sittings = [
            {
                "sitting": n,
                "boot_id": f"b{n}",
                "host": host,
                "machine": None if n == 1 else {"of": [number, n]},
            }
            for n in (1, 2)
        ]
        found[f"part-{number}"] = results_directory(
            place / f"part-{number}",
            {name: list(rows_of(name, host, times)) for name, times in tests.items()},
            sittings=sittings,
            machine={"before": {"of": [number, 1]}, "after": {"after": number}},
        )
    return found


@contextmanager
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def plain(row: Measurement) -> dict[str, Any]:
    """All of it but what is numbered anew."""
    return {k: v for k, v in row._asdict().items() if k not in ("trial", "sitting")}


@settings(max_examples=examples(30))
@given(PARTS)
def test_nothing_is_lost_and_nothing_is_changed_but_two_numbers(parts: list[Part]) -> None:
    with place() as where:
        sources = made(where, parts)
        (where / "whole").mkdir()
        merge_results(sources, where / "whole")
        whole = load_results(where / "whole")
        assert whole.torn == ()
        for name in {name for _, tests in parts for name in tests}:
            before = [
                row
                for (_, tests), source in zip(parts, sources.values(), strict=True)
                if name in tests
                for row in load_results(source).measurements[name]
            ]
            after = whole.measurements[name]
            assert [plain(row) for row in after] == [plain(row) for row in before]
            trials = trials_of(after)
            assert [len(trial.measurements) for trial in trials] == [2] * (len(after) // 2)
            assert len({trial.first.trial for trial in trials}) == len(trials)


@settings(max_examples=examples(30))
@given(PARTS)
def test_each_sitting_keeps_its_host_and_its_machine(parts: list[Part]) -> None:
    with place() as where:
        (where / "whole").mkdir()
        merge_results(made(where, parts), where / "whole")
        whole = load_results(where / "whole")
        sittings = whole.experiment["sittings"]
        assert [s["sitting"] for s in sittings] == list(range(1, 2 * len(parts) + 1))
        assert [s["host"] for s in sittings] == [host for host, _ in parts for _ in range(2)]
        assert [s["part"] for s in sittings] == [f"part-{n + 1}" for n in range(len(parts)) for _ in range(2)]
        snapshots = [whole.experiment["machine"]["before"], *(s["machine"] for s in sittings[1:])]
        assert snapshots == [{"of": [n, k]} for n in range(1, len(parts) + 1) for k in (1, 2)]
        assert whole.experiment["machine"]["after"] == {"after": len(parts)}
        for rows in whole.measurements.values():
            assert all(sittings[row.sitting - 1]["host"] == row.host for row in rows)


@settings(max_examples=examples(30))
@given(PARTS, st.data())
def test_a_merge_that_was_interrupted_is_repeated_safely(parts: list[Part], data: st.DataObject) -> None:
    with place() as where:
        sources = made(where, parts)
        for name in ("once", "again"):
            (where / name).mkdir()
        merge_results(sources, where / "once")
        few = dict(list(sources.items())[: data.draw(st.integers(0, len(parts)))])
        if few:
            merge_results(few, where / "again")
        for file in sorted((where / "again").rglob("results.jsonl")):  # those behind it were not written
            if data.draw(st.booleans()):
                file.write_bytes(file.read_bytes()[: data.draw(st.integers(0, 50))])
        merge_results(sources, where / "again")
        files = sorted(p.relative_to(where / "once") for p in (where / "once").rglob("*") if p.is_file())
        assert files == sorted(
            p.relative_to(where / "again") for p in (where / "again").rglob("*") if p.is_file()
        )
        assert all((where / "once" / f).read_bytes() == (where / "again" / f).read_bytes() for f in files)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("trial"), inner, max_size=3)
    ),
    max_leaves=8,
)


@example({"a": {"trial": 1e308}}, 0, 2)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "metrics"]), JSON),
    st.integers(0, 2**40),
    st.integers(0, 2**40),
)
def test_a_line_is_another_only_in_its_own_number(members: dict[str, Any], trial: int, more: int) -> None:
    text = json.dumps(members | {"trial": trial, "x": 1e-7}).replace("1e-07", "1e-7").encode() + b"\n"
    found = renumbered(text, Path("f"), trial=lambda n: n + more)
    assert json.loads(found) == json.loads(text) | {"trial": trial + more}
    if "trial" not in str(members):
        assert found == text.replace(b'"trial": %d' % trial, b'"trial": %d' % (trial + more))


def test_the_last_trial_of_a_lost_part_counts_if_it_is_whole_and_else_is_left_out(tmp_path: Path) -> None:
    rows = [measurement("a", n, 0.5 + n) for n in range(3)]
    part = results_directory(tmp_path / "p", {"a": rows})
    with open(part / "a" / "results.jsonl", "ab") as file:
        file.write(line(measurement("a", 3))[:40])
    merge_results({"p": part, "q": part}, tmp_path / "whole")
    found = load_results(tmp_path / "whole")
    assert [m.trial for m in found.measurements["a"]] == [0, 1, 2, 3, 4, 5]
    assert [m.sitting for m in found.measurements["a"]] == [1, 1, 1, 2, 2, 2]
    assert found.torn == ()


def test_what_lies_beside_trials_comes_along_under_their_new_numbers(tmp_path: Path) -> None:
    parts = {}
    for name in ("p", "q"):
        part = parts[name] = results_directory(
            tmp_path / name,
            {"a": [measurement("a", n) for n in range(2)]},
            quiet=[{"sitting": 1, "by": name}],
        )
        (part / "a" / "logs").mkdir()
        (part / "a" / "logs" / "0001-0.stdout").write_text(name)
        (part / "a" / "blocks.jsonl").write_text('{"trial":1,"worker":null,"name":"n","lines":["1"]}\n')
        (part / "a" / "hooks.log").write_text(f"hook of {name}\n")
        (part / "monitor-1.jsonl").write_text(f"monitor of {name}\n")
    merge_results(parts, tmp_path / "whole")
    whole = tmp_path / "whole"
    assert {p.name: p.read_text() for p in (whole / "a" / "logs").iterdir()} == {
        "0001-0.stdout": "p",
        "0003-0.stdout": "q",
    }
    blocks = [json.loads(text)["trial"] for text in (whole / "a" / "blocks.jsonl").read_text().splitlines()]
    assert blocks == [1, 3]
    assert (whole / "a" / "hooks.log").read_text() == "".join(f"hook of {name}\n" for name in "pq")
    assert [(whole / f"monitor-{n}.jsonl").read_text() for n in (1, 2)] == [
        "monitor of p\n",
        "monitor of q\n",
    ]
    assert load_results(whole).experiment["quiet"] == [{"sitting": 1, "by": "p"}, {"sitting": 2, "by": "q"}]


def test_a_log_does_not_pass_to_the_trial_that_has_its_number_after_another_part_came(tmp_path: Path) -> None:
    parts = {
        name: results_directory(tmp_path / name, {"a": [measurement("a", n) for n in range(2)]})
        for name in ("p", "q")
    }
    (parts["q"] / "a" / "logs").mkdir()
    (parts["q"] / "a" / "logs" / "0001-0.stdout").write_text("q")
    (parts["q"] / "monitor-1.jsonl").write_text("monitor of q\n")
    whole = tmp_path / "whole"
    merge_results({"q": parts["q"]}, whole)
    merge_results(parts, whole)
    assert [each.name for each in (whole / "a" / "logs").iterdir()] == ["0003-0.stdout"]
    assert [each.name for each in whole.glob("monitor-*")] == ["monitor-2.jsonl"]


def test_what_was_asked_for_is_what_the_whole_was_asked_for(tmp_path: Path) -> None:
    part = results_directory(tmp_path / "p", {"a": [measurement()]}, plan={"of": "a part"})
    empty = results_directory(tmp_path / "q", {}, sittings=[])
    merge_results(
        {"q": empty, "p": part}, tmp_path / "whole", {"plan": {"of": "the whole"}, "pool": {"name": "x"}}
    )
    found = load_results(tmp_path / "whole").experiment
    assert (found["plan"], found["pool"], len(found["sittings"])) == ({"of": "the whole"}, {"name": "x"}, 1)


def test_files_of_two_tests_that_would_have_one_name_stay_two(tmp_path: Path) -> None:
    parts = {}
    for name in ("x/y", "x-y"):
        part = tmp_path / str(len(parts))
        entry = {"name": name, "directory": "x-y", "role": "test", "parameters": {}, "res": "x-y.res"}
        (part / "x-y").mkdir(parents=True)
        (part / "experiment.json").write_text(json.dumps(document() | {"tests": [entry]}))
        (part / "x-y" / "results.jsonl").write_bytes(line(measurement(name)))
        (part / "x-y.res").write_text(name)
        parts[name] = part
    merge_results(parts, tmp_path / "whole")
    found = load_results(tmp_path / "whole")
    assert [len(found.measurements[name]) for name in parts] == [1, 1]
    assert [(tmp_path / "whole" / entry["res"]).read_text() for entry in found.experiment["tests"]] == list(
        parts
    )


BLOCKS = {"schedule": "blocks", "tests": [{"name": "a"}, {"name": "b"}]}


@pytest.mark.parametrize(("ended", "kept"), [(None, [1, 2]), ("complete", [1, 2, 3])])
def test_of_a_part_that_was_lost_within_a_block_that_block_does_not_count(
    tmp_path: Path, ended: str | None, kept: list[int]
) -> None:
    rows = {"a": [measurement("a", n) for n in (1, 2, 3)], "b": [measurement("b", n) for n in (1, 2)]}
    sittings = [{"sitting": 1, "boot_id": "boot", "host": "here", "start": "", "how_ended": ended}]
    part = results_directory(tmp_path / "p", rows, plan=BLOCKS, sittings=sittings)
    merge_results({"p": part}, tmp_path / "whole")
    found = load_results(tmp_path / "whole").measurements
    assert [m.block for m in found["a"] if m.kept] == kept
    assert [m.block for m in found["b"] if m.kept] == [1, 2]
    assert [m.why for m in found["a"] if not m.kept] == ["unpaired"] * (3 - len(kept))


def test_a_line_without_its_number_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^f: .*merged"):
        renumbered(b'{"block": 1}\n', Path("f"), trial=lambda n: n + 1)
