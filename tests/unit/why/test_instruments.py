"""What an instrument lacks is told, and a command under one is the same command."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.experiment.test import Test
from etude.why import instruments
from etude.why.causes import Cause, Frame
from etude.why.contributions import split
from etude.why.instrumented_pairs import Instrumented, _document, read_instrumented
from etude.why.instruments import CallCount, Run, missing, under, with_common_names


def test_without_perf_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments.shutil, "which", lambda name: None)
    assert "linux-perf" in missing("timeline")
    assert missing("calls") == ""


def test_a_refusal_of_perf_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "perf").write_text(
        "#!/bin/sh\necho >&2\necho 'Access to performance monitoring is limited.' >&2\necho more >&2\nexit 255\n"
    )
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    told = missing("timeline")
    assert "monitoring is limited" in told
    assert "\n" not in told


def test_perf_that_does_not_end_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "perf").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(instruments, "PATIENCE_S", 0.3)
    assert len(missing("timeline").splitlines()) == 1


def test_the_command_of_a_test_is_passed_on_word_by_word(tmp_path: Path) -> None:
    words = ("printf", "%s|", "a b", "$HOME", "*", "")
    made = under("timeline", Test("t", words), tmp_path)
    line = list(made.command)
    line[2] = line[2].replace(line[2][line[2].index("exec ") + 5 : line[2].index('-- "$@"')], "env ")
    told = subprocess.run(line, capture_output=True, text=True, check=True)
    assert told.stdout == "a b|$HOME|*||"
    assert (made.name, made.metrics) == ("t: timeline", ())


CAUSES = st.builds(
    Cause,
    st.text(max_size=3),
    st.sampled_from(["function", "call"]),
    st.text(max_size=3),
    st.text(max_size=3),
)
RUNS = st.lists(
    st.builds(Run, st.dictionaries(CAUSES, st.floats(0, 1e3), max_size=4), st.integers(0, 3)), max_size=3
)
CALLS = st.lists(
    st.dictionaries(
        st.tuples(st.text(max_size=3), st.text(max_size=3)),
        st.builds(CallCount, st.integers(0, 99), st.integers(0, 99), st.floats(0, 9)),
    ),
    max_size=3,
)
SIDES = st.lists(st.floats(0, 1e3), max_size=3).map(tuple)


def paired(sides: tuple[Any, Any]) -> tuple[Any, Any]:
    """As many of both."""
    count = min(map(len, sides))
    return sides[0][:count], sides[1][:count]


@given(
    st.tuples(SIDES, SIDES).map(paired),
    st.tuples(RUNS, RUNS).map(paired),
    st.tuples(CALLS, CALLS).map(paired),
)
def test_what_is_stored_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    plain: tuple[tuple[float, ...], tuple[float, ...]],
    runs: tuple[list[Run], list[Run]],
    calls: tuple[list[object], list[object]],
) -> None:
    found = Instrumented("a", "b", plain, tuple(map(tuple, runs)), tuple(map(tuple, calls)), ("no perf",))  # type: ignore[arg-type]
    place = tmp_path_factory.mktemp("w")
    (place / "why.json").write_text(json.dumps(_document(found)))
    assert read_instrumented(place) == found


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 2}', "{", '{"format": 1}'])
def test_an_edited_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "why.json").write_text(text)
    with pytest.raises(InputError, match=r"why\.json"):
        read_instrumented(tmp_path)


def test_one_common_cause_of_both_is_split() -> None:
    cause = Cause("p", "function", "f")
    found = split(
        [Run({cause: 1.0 + n / 100}) for n in range(6)], [Run({cause: 2.0 + n / 90}) for n in range(6)]
    )
    assert [each.cause for each in found.listed] == [cause]
    assert found.rest.mean_s == 0.0


def test_two_versions_of_a_program_have_one_name_and_a_common_one_keeps_its_own() -> None:
    stack = (Frame("f", "/bin/x"),)
    sides = tuple(
        [
            Run(
                {
                    Cause(name, "function", "f"): 3.0,
                    Cause("sh", "function", "g"): 9.0,
                    Cause(rare, "start", ""): 1.0,
                },
                0,
                {(name, stack): 3.0},
            )
        ]
        for name, rare in (("old", "x"), ("new", "y"))
    )
    (a,), (b,) = with_common_names((sides[0], sides[1]))
    assert {c.process for c in a.causes} == {"old → new", "sh", "x"}
    assert {c.process for c in b.causes} == {"old → new", "sh", "y"}
    assert set(a.stacks) == set(b.stacks) == {("old → new", stack)}


def test_a_program_of_one_test_alone_keeps_its_name() -> None:
    a, b = (
        Run({Cause("p", "function", "f"): 1.0}),
        Run({Cause("p", "function", "f"): 1.0, Cause("q", "start", ""): 1.0}),
    )
    assert with_common_names(([a], [b])) == ((a,), (b,))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("format", "zzz"),
        ("plain_s", [[1.0], []]),
        ("calls", [[], [[]]]),
        ("plain_s", [[float("nan")], [1.0]]),
        ("plain_s", [[-1.0], [1.0]]),
        ("runs", [[{"lost": -1, "causes": []}], [{"lost": 0, "causes": []}]]),
        ("runs", [[{"lost": 0, "causes": [["p", "call", "f", "", 1e300]]}], [{"lost": 0, "causes": []}]]),
    ],
)
def test_edited_numbers_are_refused_with_the_files_name(tmp_path: Path, member: str, value: object) -> None:
    whole = _document(Instrumented("a", "b", ((1.0,), (1.0,)), ((), ()), ((), ()), ()))
    (tmp_path / "why.json").write_text(json.dumps(whole | {member: value}))
    with pytest.raises(InputError, match=r"why\.json"):
        read_instrumented(tmp_path)


def test_a_setuid_program_is_named_before_perf_is_tried(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "su")
    (tmp_path / "su").chmod(0o4755)
    reason = missing("timeline", [Test("t", (str(tmp_path / "su"),))])
    assert str(tmp_path / "su") in reason
