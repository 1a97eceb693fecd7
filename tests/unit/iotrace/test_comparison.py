"""Two traces beside each other, in figures worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.figures.iotrace import figure_beside
from etude.iotrace.comparison import ProfileComparison, _paired, compare_profiles, inner_path, is_replay
from etude.iotrace.comparison_document import beside_document
from etude.iotrace.profile import Profile, profile_of
from support.traces import Make

FIRST = """\
1 1.000000 execve("/bin/copy", ["copy", "in"], 0x7ffe00000000 /* 2 vars */) = 0 <0.000100>
1 1.001000 openat(AT_FDCWD, "/w/in", O_RDONLY) = 3 <0.000020>
1 1.002000 read(3, ""..., 4096) = 4096 <0.001000>
1 1.004000 read(3, ""..., 4096) = 100 <0.001000>
1 1.006000 openat(AT_FDCWD, "/w/out", O_WRONLY|O_CREAT, 0666) = 4 <0.000020>
1 1.008000 write(4, ""..., 4196) = 4196 <0.002000>
1 1.011000 close(4) = 0 <0.000010>
1 1.012000 +++ exited with 0 +++
"""
SECOND = """\
1 1.000000 execve("/bin/etude", ["etude", "replay", "x.roll", "/d"], 0x7ffe00000000 /* 2 vars */) = 0 <0.000100>
1 1.001000 openat(AT_FDCWD, "/d/in", O_RDONLY) = 3 <0.000020>
1 1.002000 read(3, ""..., 4096) = 4096 <0.001000>
1 1.006000 openat(AT_FDCWD, "/d/etude_tmp1", O_WRONLY|O_CREAT, 0666) = 4 <0.000020>
1 1.008000 write(4, ""..., 4196) = 4196 <0.004000>
1 1.013000 close(4) = 0 <0.000010>
1 1.018000 +++ exited with 0 +++
"""


def of(make: Make, lines: str, argv: list[str], cwd: str = "/w") -> Profile:
    trace = make(lines)
    return profile_of(replace(trace, header={**trace.header, "argv": argv, "cwd": cwd}))


@pytest.fixture
def original(make: Make) -> Profile:
    return of(make, FIRST, ["copy", "in"])


@pytest.fixture
def found(make: Make, original: Profile) -> ProfileComparison:
    return compare_profiles(original, of(make, SECOND, ["/bin/etude", "replay", "x.roll", "/d"]))


def test_a_ratio_is_that_of_the_second_to_the_first(found: ProfileComparison) -> None:
    times = {each.name: each for each in found.times}
    assert list(times) == ["read", "write", "all I/O", "computing", "run time"]
    assert times["read"].ratio == pytest.approx(0.5)
    assert times["write"].ratio == pytest.approx(2.0)
    assert (times["run time"].a, times["run time"].b) == pytest.approx((0.012, 0.018), abs=1e-4)
    assert times["run time"].ratio == pytest.approx(times["run time"].b / times["run time"].a)
    assert times["all I/O"].a == pytest.approx(0.00405)


def test_calls_that_the_script_has_not_are_left_out_of_its_recording(
    found: ProfileComparison, tmp_path: Path
) -> None:
    script = tmp_path / "a.script"
    script.write_text(
        'etude script 1\nscheduling idle priority 0 nice 0\nfile "in" 4196\n'
        'dropped read "pipe" 1 calls 100 bytes 0 requests 0.001000000\n'
        'dropped ioctl "so" 1 calls 0 bytes 0 requests 0.000010000\nopen("in", O_RDONLY) = 3\n'
        'dropped write "pipe" 1 calls 1 bytes 0 requests 9.0\n'
    )
    before = {each.name: each for each in found.times}
    times = {each.name: each for each in compare_profiles(found.a, found.b, script=script).times}
    assert times["read"].ratio == pytest.approx(1.0)
    assert times["write"] == before["write"]
    assert times["all I/O"].a == pytest.approx(before["all I/O"].a - 0.00101)
    assert times["computing"].a == pytest.approx(before["computing"].a + 0.00101)
    assert (times["not in the script"].a, times["not in the script"].b) == pytest.approx((0.00101, 0.0))


def test_calls_that_one_has_more_of_are_marked(found: ProfileComparison) -> None:
    calls = {each.name: each for each in found.calls}
    assert [name for name, each in calls.items() if each.differs] == ["read"]
    assert (calls["read"].counts, calls["read"].bytes) == ((2, 1), (4196, 4096))
    assert found.calls[0].name == "write"


def test_files_are_found_in_both_below_their_own_directories_and_under_other_names(
    found: ProfileComparison,
) -> None:
    assert (found.files.alike, found.files.renamed) == (0, 1)
    (differing,) = found.files.different
    assert (differing.path, differing.counts, differing.read_bytes) == ("in", (3, 2), (4196, 4096))


def test_a_call_that_one_has_none_of_is_there_without_a_ratio(make: Make, original: Profile) -> None:
    more = "1 1.000000 fsync(4) = 0 <0.000010>\n1 1.000100 close(9) = -1 EBADF (Bad file descriptor) <0.000010>\n"
    document = beside_document(compare_profiles(original, of(make, more, ["copy", "in"])))
    ratios = document["ratios"]
    assert ratios["calls"]["fsync"] == {"count": None, "bytes": None, "errors": None, "time_s": None}
    assert (ratios["reads"]["count"], ratios["writes"]["bytes"]) == (0.0, 0.0)
    assert document["same_program"]


def test_a_profile_beside_itself_differs_in_nothing(original: Profile) -> None:
    same = compare_profiles(original, original)
    assert same.same_program
    assert {each.ratio for each in same.times} == {1.0}
    assert {each.ratio for each in same.sizes} == {1.0}
    assert (same.files.alike, same.files.renamed, list(same.files.different)) == (2, 0, [])
    assert not any(each.differs for each in same.calls)


def test_sizes_are_those_of_the_trace_and_of_its_text(found: ProfileComparison, tmp_path: Path) -> None:
    sizes = {each.name: each for each in found.sizes}
    assert (sizes["events"].a, sizes["events"].b) == (6, 5)
    assert sizes["trace"].a == found.a.trace.path.stat().st_size
    assert sizes["trace, an event"].a == pytest.approx(sizes["trace"].a / 6)
    assert 6 * 40 < sizes["text"].a < 6 * 100
    assert sizes["text / trace"].a == pytest.approx(sizes["text"].a / sizes["trace"].a)
    (tmp_path / "x.roll").write_bytes(b"etuderol" + bytes(4))
    with_roll = compare_profiles(found.a, found.b, roll=tmp_path / "x.roll")
    told = beside_document(with_roll)["sizes"]
    assert told["script"] is None
    assert (told["roll"]["bytes"], told["roll"]["bytes_per_event"]) == (12, 2.0)
    assert told["roll"]["text_ratio"] == pytest.approx(sizes["text"].a / 12)
    with pytest.raises(InputError, match=r"^nosuch: "):
        compare_profiles(found.a, found.b, script=Path("nosuch"))


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("script", b""),
        ("script", b"etuderol\x02"),
        ("script", b"etude script 12\n"),
        ("roll", b""),
        ("roll", b"etude script 1\n"),
    ],
)
def test_a_file_that_is_no_script_or_roll_is_refused(
    found: ProfileComparison, tmp_path: Path, form: str, content: bytes
) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    with pytest.raises(InputError, match=f"^{other}: "):
        compare_profiles(found.a, found.b, **{form: other})


def test_the_document_holds_both_documents_and_their_ratios_under_the_same_names(
    found: ProfileComparison,
) -> None:
    made = json.loads(json.dumps(beside_document(found, top=1)))
    assert (made["format"], made["version"], made["replay"], made["same_program"]) == (
        "etude-profiles",
        1,
        True,
        False,
    )
    ratios = made["ratios"]
    for name in ("events", "run_s", "in_calls_s", "outside_s"):
        assert ratios[name] == pytest.approx(made["b"][name] / made["a"][name])
    for name in ("reads", "writes"):
        for key, value in ratios[name].items():
            assert value == pytest.approx(made["b"][name][key] / made["a"][name][key])
    assert set(ratios["calls"]) == set(made["a"]["calls"]) | set(made["b"]["calls"])
    assert made["files"]["different"][0]["count"] == [3, 2]


def test_the_figure_has_four_lines_that_end_where_each_ends(found: ProfileComparison) -> None:
    figure = figure_beside(found.a, found.b, ("original", "replay"), "copy in")
    cumulative, share = figure.panels
    curves = {curve.name: curve for curve in cumulative.layers}
    assert list(curves) == ["original read", "original write", "replay read", "replay write"]
    assert len({curve.colour for curve in curves.values()}) == 4
    ends = {name: (curve.points[-1].x, curve.points[-1].y) for name, curve in curves.items()}
    assert ends["original read"] == pytest.approx((12, 2.0), abs=0.1)
    assert ends["replay write"] == pytest.approx((18, 4.0), abs=0.1)
    assert len(share.layers) == 2


@pytest.mark.parametrize(
    ("argv", "is_one"),
    [
        (["etude-engine", "replay", "x", "d"], True),
        (["/a/b/etude", "replay", "x", "d"], True),
        (["etude", "record"], False),
        (["replay", "replay"], False),
        (["etude"], False),
        ([], False),
    ],
)
def test_a_replay_is_known_by_its_words(argv: list[str], is_one: bool) -> None:
    assert is_replay(argv) is is_one


@pytest.mark.parametrize(
    ("path", "root", "inner"),
    [
        ("/w/a/b", "/w", "a/b"),
        ("/w", "/w", "."),
        ("/wider/a", "/w", "wider/a"),
        ("/usr/a", "/", "usr/a"),
        ("(pipe)", "/w", "(pipe)"),
    ],
)
def test_paths_are_told_from_the_root(path: str, root: str, inner: str) -> None:
    assert inner_path(path, root) == inner


names = st.sampled_from("abcdef")
counts = st.tuples(st.integers(1, 3), st.integers(0, 1), st.just(0))
sides = st.dictionaries(names, counts)


@given(sides, sides)
def test_every_file_is_alike_or_renamed_or_different(
    first: Mapping[str, tuple[int, int, int]], second: Mapping[str, tuple[int, int, int]]
) -> None:
    found = _paired(first, second)
    names = {each.path for each in found.different}
    assert len(set(first) | set(second)) == found.alike + 2 * found.renamed + len(names)
    assert len(names) == len(found.different)
    for each in found.different:
        sums = zip(each.counts, each.read_bytes, each.written_bytes, strict=True)
        assert tuple(sums) == (first.get(each.path, (0, 0, 0)), second.get(each.path, (0, 0, 0)))
    mirrored = _paired(second, first)
    assert (mirrored.alike, mirrored.renamed) == (found.alike, found.renamed)
