"""Windows that a workload reports: taken as they come, and nothing is taken that is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.results.histograms import encode
from etude.results.windows import SHORTEST_S, WindowFile, parse_window
from support.golden import Golden

COUNTS = st.integers(0, 2**63 - 1)
LATENCY = st.none() | st.lists(st.integers(0, 2**40), max_size=4).map(encode)
ANSWERS = {"completed": COUNTS, "failed": COUNTS, "latency": LATENCY}
WINDOWS = st.fixed_dictionaries(
    {},
    optional={
        "duration_s": st.floats(SHORTEST_S, 1e9) | st.integers(0, 9),
        "offered": COUNTS,
        "started": COUNTS,
        "by": st.dictionaries(st.text(max_size=3), st.fixed_dictionaries({}, optional=ANSWERS), max_size=2),
        "rate": st.integers(0, 9),
        **ANSWERS,
    },
)


@given(st.lists(WINDOWS | st.just("no window"), max_size=6), st.data())
def test_what_is_appended_piece_by_piece_is_taken_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[object], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("w") / "windows"
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    file, windows, refused = WindowFile(str(path)), [], []
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        with path.open("ab") as out:
            out.write(text[begin:end])
        taken = file.take()
        windows += taken.windows
        refused += taken.refused
        assert len(windows) + len(refused) == text[:end].count(b"\n")
    assert windows == [line for line in lines if isinstance(line, dict)]
    assert [line for line, _ in refused] == [n for n, line in enumerate(lines, 1) if isinstance(line, str)]
    assert file.end() == ([], [])
    assert not path.exists()


@pytest.mark.parametrize(
    ("line", "place", "found"),
    [
        ('{"duration_s": 1', "", "no JSON"),
        ("", "", "no JSON"),
        ("\xff", "", "no JSON"),
        ('{"duration_s": NaN}', "", "no JSON"),
        ("[]", "", "duration_s"),
        ('{"duration_s": -1}', "duration_s: ", "-1"),
        ('{"duration_s": true}', "duration_s: ", "True"),
        ('{"duration_s": 1e-320}', "duration_s: ", "1e-320"),
        ('{"duration_s": 1e308}', "duration_s: ", "1e+308"),
        ('{"outstanding": "x"}', "outstanding: ", "'x'"),
        ('{"waiting": -1}', "waiting: ", "-1"),
        ('{"mean_s": -1}', "mean_s: ", "-1"),
        ('{"by": {"read": {"mean_s": "x"}}}', "by: read: mean_s: ", "'x'"),
        ('{"duration_s": null}', "duration_s: ", "None"),
        ('{"failed": 1.5}', "failed: ", "1.5"),
        ('{"offered": -1}', "offered: ", "-1"),
        ('{"started": "x"}', "started: ", "'x'"),
        ('{"completed": 9223372036854775808}', "completed: ", "9223372036854775808"),
        ('{"latency": 5}', "latency: ", "5"),
        ('{"latency": "x"}', "latency: ", "base64"),
        ('{"by": []}', "by: ", "[]"),
        ('{"by": {"read": 1}}', "by: read: ", "1"),
        ('{"by": {"read": {"failed": -2}}}', "by: read: failed: ", "-2"),
        ('{"by": {"read": {"latency": "AAAA"}}}', "by: read: latency: ", "cut short"),
    ],
)
def test_a_line_that_is_no_window_says_why(line: str, place: str, found: str) -> None:
    with pytest.raises(ValueError, match=f"^{place}.*{re.escape(found)}") as error:
        parse_window(line.encode("latin-1"))
    assert "\n" not in str(error.value)


def test_the_last_line_needs_no_end_once_the_trial_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "windows"
    file = WindowFile(str(path))
    path.write_text('{"failed": 1}\n{"failed": 2}')
    assert file.take() == ([{"failed": 1}], [])
    assert file.end() == ([{"failed": 2}], [])


def test_a_torn_last_line_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "windows"
    file = WindowFile(str(path))
    path.write_text('{"failed": 1}\n{"fail')
    taken = file.end()
    assert taken.windows == [{"failed": 1}]
    assert [line for line, _ in taken.refused] == [2]
    assert str(taken.note).startswith("line 2 of $ETUDE_WINDOWS")
    assert "no JSON" in taken.refused[0].why


def test_what_is_left_out_is_one_note(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "windows"
    file = WindowFile(str(path))
    assert file.take().note is None
    path.write_text("1\n{}\n2\n3\n")
    taken = file.take()
    assert [line for line, _ in taken.refused] == [1, 3, 4]
    golden(str(taken.note))


def test_what_an_earlier_trial_left_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "windows"
    path.write_text("{}\n")
    assert WindowFile(str(path)).end() == ([], [])


def test_no_more_than_a_bound_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etude.results.windows._MAX_BYTES", 1 << 20)
    path = tmp_path / "windows"
    file = WindowFile(str(path))
    path.write_text("{}\n" * 400_000)
    taken = file.end()
    assert len(taken.windows) == (1 << 20) // 3
    assert taken.refused[-1].line == (1 << 20) // 3 + 2
    assert "1 MiB" in taken.refused[-1].why
