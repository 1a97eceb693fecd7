"""bench/replay.py: its programs do I/O and do it alike each time, fio gets their data calls, the judgement is right."""

import importlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.iotrace.profile import profile_of
from etude.iotrace.reader import read_trace
from support.places import BENCH
from support.traces import COPY, imported

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCH))
    replay, fio, listed, programs, steps, rows = map(
        importlib.import_module,
        (
            "replay",
            "replays.fio",
            "replays.listed",
            "replays.programs",
            "replays.steps",
            "rows",
        ),
    )

SAID = {
    "run_s": 0.3,
    "original": {"run_s": 0.2, "read_s": 0.02, "write_s": 0.0005},
    "ratios": {"read": 1.02, "write": 1.5},
    "read_bytes": 150,
    "written_bytes": 50,
}
"""What the engine of these tests says of each replay."""
PACKAGES = {
    "sqlite3": "sqlite3",
    "gcc": "make",
    "git": "git",
    "fortran": "gfortran",
    "make": "make",
    "fio": "fio",
    "postgres": "postgresql",
}
ENGINE = """\
#!/bin/sh
echo "$*" >> said
case $1 in
  script|compile) shift; while [ "$1" != -o ]; do shift; done; echo x > "$2" ;;
  replay) cat said.json ;;
esac
"""


def named(name):
    program, package = programs.PROGRAMS.get(name, ("sh",))[-1], PACKAGES.get(name, "(every Debian has it)")
    return pytest.param(name, marks=pytest.mark.needs_program(program, package=package), id=name)


@pytest.fixture
def place(tmp_path):
    return steps.Place(tmp_path, tmp_path / "cache")


def left(workload):
    """All files, by what stands in them; names that a program draws are not compared."""
    return {
        str(path.relative_to(workload.directory)): zlib.crc32(path.read_bytes())
        for path in workload.directory.rglob("*")
        if path.is_file() and path.name not in ("index", "tree.tar") and path.suffix not in (".gz", ".o")
    }


@pytest.mark.parametrize("name", [named(name) for name in programs.MAKERS])
def test_each_program_does_the_same_again_and_all_its_io_is_recorded(name, place):
    workload = programs.MAKERS[name](place.directory, programs.SMALL)
    steps.original(workload, place)
    first = left(workload)
    done = subprocess.run(
        [*steps.recorder(place, place.trace), "true"], env=place.environment(), capture_output=True
    )
    if done.returncode == 5:
        pytest.skip(f"programs cannot be recorded here: {done.stderr.decode().strip()}")
    steps.original(workload, place, place.trace)
    assert left(workload) == first or not workload.alike
    trace = read_trace(place.trace)
    profile = profile_of(trace)
    assert profile.reads.count > 3
    assert profile.writes.bytes > 2000
    assert profile.recorded["syscw"] == profile.kernel["syscw"]
    # A read of a pipe that the end of a child interrupts is begun anew: the kernel counts it twice.
    assert 0 <= profile.kernel["syscr"] - profile.recorded["syscr"] <= (2 if workload.parallel else 0)
    inside = [each for each in profile.files if each.path.startswith(str(workload.directory))]
    assert sum(each.written_bytes for each in inside) > 2000
    threads = sum(each.threads for each in profile.processes)
    assert (threads > 1) == (workload.parallel or name in ("gcc",)), threads
    workload.fresh()
    remaining = {path.name for path in workload.directory.rglob("*") if path.is_file()}
    assert {
        "tree.tar",
        "t.db",
        "generated",
        "rows",
        "restart",
        "shared",
        "part0.tar.gz",
        "found",
        "data",
    }.isdisjoint(remaining)


def test_the_graph_loader_writes_rows_that_hold_each_edge_once(tmp_path):
    words = [rows.peer("graph_ingest"), "make", "50", "400", "edges"]
    subprocess.run(words, cwd=tmp_path, check=True)
    subprocess.run([words[0], "ingest", "edges", "rows"], cwd=tmp_path, check=True, capture_output=True)
    edges = [tuple(map(int, line.split())) for line in (tmp_path / "edges").read_text().splitlines()[1:]]
    data = (tmp_path / "rows").read_bytes()
    vertices, many = np.frombuffer(data, "<u8", 2)
    begins = np.frombuffer(data, "<u8", 51, 16).tolist()
    targets = np.frombuffer(data, "<u4", 400, 16 + 8 * 51).tolist()
    assert (vertices, many, len(edges)) == (50, 400, 400)
    assert len(data) == 16 + 8 * 51 + 4 * 400
    found = [(v, to) for v in range(50) for to in targets[begins[v] : begins[v + 1]]]
    assert sorted(found) == sorted(edges)


def test_a_log_has_the_transfers_of_files_with_offsets_and_times(tmp_path):
    log = fio.log_of(read_trace(imported(COPY, tmp_path / "copy.trace")))
    lines = log.text.splitlines()
    assert lines[0] == "fio version 3 iolog"
    names = list(log.sizes)
    assert names[:2] == ["f0", "f1"]
    assert lines[1 : 1 + 2 * len(names)] == [
        f"0 {name} {action}" for action in ("add", "open") for name in names
    ]
    moves = [line.split() for line in lines if line.split()[2] in ("read", "write")]
    assert [each[1:] for each in moves[:5]] == [
        ["f0", "read", "0", "4096"],
        ["f1", "write", "0", "4096"],
        ["f0", "read", "4096", "4096"],
        ["f1", "write", "4096", "4096"],
        ["f0", "read", "65536", "100"],
    ]
    assert int(moves[1][0]) - int(moves[0][0]) == 2000
    assert (log.calls, log.left_out) == (len(moves), 29 - len(moves))
    assert log.sizes["f0"] >= 65536 + 200
    assert log.bytes == sum(int(each[4]) for each in moves)


@pytest.mark.needs_program("fio")
def test_fio_makes_all_calls_of_a_log(tmp_path):
    log = fio.log_of(read_trace(imported(COPY, tmp_path / "copy.trace")))
    played = fio.play(fio.stage(log, tmp_path / "fio"))
    assert played.calls == log.calls
    assert played.run_s > 0.01
    (job,) = played.said["jobs"]
    assert job["read"]["io_bytes"] + job["write"]["io_bytes"] == log.bytes


def engine(directory, script=ENGINE):
    path = directory / "engine"
    path.write_text(script)
    path.chmod(0o755)
    (directory / "said.json").write_text(json.dumps(SAID))
    return str(path)


def test_the_steps_are_those_of_the_command_line(tmp_path):
    place = steps.Place(tmp_path, tmp_path / "cache", engine(tmp_path))
    assert steps.made_script(place).exists()
    assert steps.made_roll(place).exists()
    place.stage.mkdir()
    (place.stage / "of the last replay").touch()
    assert steps.replayed(place, options=("--timing", "none")) == SAID
    assert list(place.stage.iterdir()) == []
    assert (tmp_path / "said").read_text().replace(f"{tmp_path}/", "").splitlines() == [
        "script original.trace -o original.script",
        "compile original.script -o original.roll",
        "prepare original.script stage",
        "replay original.roll stage --json --timing none",
    ]


def test_an_original_is_run_to_its_end_where_it_belongs_and_what_it_says_is_told_if_it_fails(tmp_path):
    environment = {**os.environ, "WORD": "here"}
    command = ["sh", "-c", "echo unseen; cat; sleep 0.01; echo $WORD > said"]
    assert steps.elapsed_s(command, tmp_path, environment) >= 0.01
    assert (tmp_path / "said").read_text() == "here\n"
    assert Path.cwd() != tmp_path
    with pytest.raises(SystemExit, match=r"failed \(3\): no luck"):
        steps.elapsed_s(["sh", "-c", "echo no luck >&2; exit 3"], tmp_path, environment)
    with pytest.raises(SystemExit, match="no-such-program is missing"):
        steps.elapsed_s(["no-such-program"], tmp_path, environment)


def test_each_replay_is_of_a_recording_of_its_own_and_rows_come_from_the_whole_way(
    tmp_path, monkeypatch, golden
):
    monkeypatch.setenv("RECORDED", str(imported(COPY, tmp_path / "copy.trace")))
    script = ENGINE.replace("case $1 in", 'case $1 in record) cp "$RECORDED" "$4"; shift 5; exec "$@" ;;')
    script = script.replace(">> said", f">> {tmp_path}/said")
    place = steps.Place(tmp_path, tmp_path / "cache", engine(tmp_path, script))
    (tmp_path / "work").mkdir()
    workload = programs.Workload("tar", "nothing", ["touch", "x"], tmp_path / "work", ["x"], parallel=True)
    found = list(replay.program_rows(workload, place, replay.Wanted(3)))
    assert len(found) == 9
    golden("\n".join(row.what.partition(":")[0] for row in found))
    assert "1.5000" in found[0].peer
    assert [(row.value, row.reached) for row in found[1:3]] == [
        ("1.0200 (quartiles 1.0200–1.0200)", True),
        ("1.5000 (quartiles 1.5000–1.5000)", None),
    ]
    assert "threads or processes" in found[6].value
    assert found[7].value.startswith(f"{2 / 29:.3g} B, ")
    assert found[8].value == "1 %"
    # Once for the sizes, then in each of three rounds of two states.
    verbs = [line.split()[0] for line in (tmp_path / "said").read_text().splitlines()]
    assert verbs == ["record", "script", "compile", "prepare", "replay"] * 7


@pytest.mark.needs_program("fio")
def test_fio_stands_beside_a_program_that_is_one_thread(tmp_path):
    place = steps.Place(tmp_path, tmp_path / "cache")
    (tmp_path / "work").mkdir()
    workload = programs.Workload("x", "nothing", ["true"], tmp_path / "work", [])
    trace = read_trace(imported(COPY, tmp_path / "copy.trace"))
    row = fio.fio_row(workload, trace, place, 2)
    assert row.peer.endswith("9 data calls of 29")
    assert row.value[0].isdigit()
    assert not (tmp_path / "fio").exists()


times = st.lists(st.floats(0.5, 2.0), min_size=3, max_size=9)


def said(run_s, **more):
    return {**SAID, "run_s": run_s, **more}


@given(times, st.floats(0.8, 1.2), st.floats(0.94, 1.06))
def test_a_replay_is_judged_by_its_median_and_warm_by_the_floor_as_well(original, ratio, floor):
    replays = [said(ratio * s) for s in original]
    found = replay.Pairs(original, [floor * s for s in original], replays)
    off = abs(ratio - 1)
    if abs(off - max(0.03, abs(floor - 1))) > 1e-9:
        row = replay.run_row("x", "warm", found)
        assert row.reached == (off <= max(0.03, abs(floor - 1)))
    if abs(off - 0.15) > 1e-9:
        assert replay.run_row("x", "cold", found).reached == (off <= 0.15)


def test_originals_that_are_apart_to_both_sides_are_as_far_apart_as_they_are():
    found = replay.Pairs([1.0] * 4, [0.96, 1.04, 0.96, 1.04], [said(1.03)] * 4)
    row = replay.run_row("x", "warm", found)
    assert (row.reach, row.reached) == ("within 4 %", True)


@given(
    st.sampled_from([("warm", 0.1), ("cold", 0.2)]), st.floats(0.7, 1.3), st.sampled_from([0.0009, 0.0011])
)
def test_reads_and_writes_are_judged_where_there_is_enough_of_them(state, ratio, recorded_s):
    original = {"read_s": recorded_s, "write_s": 0.0, "run_s": 1.0}
    replays = [said(1.0, original=original, ratios={"read": ratio, "write": None})] * 3
    (row,) = replay.io_rows("x", state[0], replay.Pairs([1.0], [1.0], replays))
    if recorded_s < 0.001:
        assert row.reached is None
        assert "1 ms" in row.reach
    elif abs(abs(ratio - 1) - state[1]) > 1e-9:
        assert row.reached == (abs(ratio - 1) <= state[1])


def test_a_roll_is_judged_for_real_files_alone(tmp_path):
    trace = read_trace(imported(COPY, tmp_path / "copy.trace"))
    include, other = (programs.Workload(name, name, [], tmp_path, []) for name in ("include", "tar"))
    fixed = listed.fixed_bytes(trace)
    assert listed.fixed_bytes(trace, durations=True) > fixed
    assert 29 * 4 < fixed < 29 * 64
    moving = {"read_bytes": 1000, "written_bytes": 1000}
    small, large = (listed.size_rows(include, trace, moving, many) for many in (10, 5000))
    assert [row.reached for row in small] == [True, True]
    assert [row.reached for row in large] == [False, False]
    assert [row.reached for row in listed.size_rows(other, trace, moving, 5000)] == [None, None]


@pytest.mark.parametrize(
    ("others", "missed", "reached", "refused"),
    [(0, 0.0, True, False), (0, 0.2, True, True), (1, 0.0, False, False)],
)
def test_a_listed_program_is_judged_by_its_other_results(others, missed, reached, refused):
    unplayed = {"bytes_share": missed, "time_share": 0.0}
    row = listed.listed_row("x", {"other_results": [{}] * others, "calls": 9, "unplayed": unplayed})
    assert (row.reached, "refused" in row.value) == (reached, refused)


def test_the_list_has_31_programs_and_says_which_is_not_installed(monkeypatch, place):
    assert len({*listed.LIST, *listed.OTHERS}) == len(listed.LIST) + len(listed.OTHERS) == 31
    monkeypatch.setattr(listed, "LIST", {"x": listed.Listed("true", "no-such-program")})
    monkeypatch.setattr(listed, "OTHERS", ())
    row, whole = listed.list_rows(place, programs.SMALL, 1)
    assert "no-such-program" in row.value
    assert (row.reached, whole.reached) == (None, False)


def test_a_program_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(programs.PROGRAMS, "tar", ("no-such-program",))
    (row,) = replay.measured(replay.Wanted(2, ["tar"], parts=["run"], size=programs.SMALL))
    assert row.reached is None
    assert row.value.startswith("no-such-program ")


def test_what_is_cold_is_dropped_and_what_is_warm_is_read(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(os.urandom(1 << 20))
    (tmp_path / "link").symlink_to("nowhere")
    steps.settle(tmp_path, cold=True)
    steps.settle(tmp_path, cold=False)
    assert steps.cold_by().startswith("files")


def test_the_part_is_one_of_the_bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        run = importlib.import_module("run")
    assert run.part("replay") is replay.replay
    assert len(programs.MAKERS) == 12


@pytest.mark.more
@pytest.mark.needs_program("fio")
def test_the_page_has_all_parts_and_is_what_is_printed(tmp_path):
    page = tmp_path / "page.md"
    words = [BENCH / "replay.py", "--small", "--rounds", "2", "--programs", "tar,graph", "--no-fifo"]
    done = subprocess.run(
        [sys.executable, *words, "--record", page], capture_output=True, text=True, check=False
    )
    assert page.read_text(encoding="utf-8") == done.stdout
    assert "Traceback" not in done.stderr
    table = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
    assert all(len(cells) == 5 for cells in table)
    kinds = [cells[0].removeprefix("| ").partition(":")[0] for cells in table]
    # Of two programs: run, read and write time in two states, fio; sizes of one file more; rates; start-time errors.
    assert [kinds.count(kind) for kind in dict.fromkeys(kinds)] == [4, 4, 4, 2, 3, 3, 31, 1, 2, 2], (
        done.stderr
    )
    assert {cells[4] for cells in table[-4:]} <= {"yes |", "NO |"}
    assert "python bench/replay.py --small" in done.stdout
