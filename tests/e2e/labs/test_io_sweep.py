"""Sweeps by the real program: measured, read, drawn, interrupted, gone on with, refused."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.real import ETUDE, called, experiment, lines, one_line

pytestmark = pytest.mark.beside

MIB = 1 << 20
QUICK = ("--trials", "3", "--seed", "1")


def data_files(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.startswith("etude-io-")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the data lie while they are needed, and the results of `swept`."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def swept(place: Path) -> subprocess.CompletedProcess[str]:
    """A sweep over buffers into `buffers`."""
    sizes = ("--buffers", "4K,16K,64K,1M,4M", "--totals", "4M", "--curve", "untouched", "--curve", "touched")
    return called("io", "sweep", *sizes, *QUICK, "-o", "buffers", "--format", "svg", cwd=place)


@contextmanager
def small_file_system(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_sweep_over_buffers_ends_with_a_table_its_reading_and_its_figure(
    swept: subprocess.CompletedProcess[str], place: Path
) -> None:
    table, said = swept.stdout.split("\n\n", 2)[0:2]
    rows = [row.split("  ")[0].strip() for row in table.strip("\n").splitlines()]
    assert rows[2:] == ["4 KiB", "16 KiB", "64 KiB", "1 MiB", "4 MiB"]
    assert re.search(r"^untouched: .*\d \wiB, .*\d \wiB/s", said, re.MULTILINE)
    assert re.search(r"^touched .*\buntouched at 4 MiB", said, re.MULTILINE)
    assert "\nNote: " in swept.stdout
    assert "buffers/throughput.svg\nResults: buffers\n" in swept.stdout
    assert "</svg>" in (place / "buffers" / "throughput.svg").read_text()
    assert data_files(place) == []


def test_each_size_has_its_trials_and_a_rate_that_the_program_itself_measured(
    swept: subprocess.CompletedProcess[str], place: Path
) -> None:
    rows = lines(place / "buffers", "buffer-64KiB-touched")
    assert [row["kept"] for row in rows] == [False, True, True, True]
    for row in rows:
        rate, unit = row["metrics"]["bandwidth"]
        assert unit == "B/s"
        assert rate > 4 * MIB / row["metrics"]["elapsed"][0], (
            "the loop alone is faster than the whole program"
        )


def test_a_sweep_over_totals_ends_with_ratios_p_values_and_two_figures(tmp_path: Path) -> None:
    done = called(
        "io", "sweep", "--totals", "1..16", *QUICK, "-o", "linking", "--format", "png", cwd=tmp_path
    )
    assert re.search(r"^1 B: static \S+ \S+, dynamic \S+ \S+, .*\d times", done.stdout, re.MULTILINE)
    assert re.search(r"\b0\.05 .*\b\d of 5\b", done.stdout)
    for name in ("linking", "significance"):
        assert (tmp_path / "linking" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert data_files(tmp_path) == []


def test_json_is_one_document_and_nothing_else(swept: subprocess.CompletedProcess[str], place: Path) -> None:
    done = called("io", "explain", "buffers", "--json", "--format", "svg", cwd=place)
    document = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert (document["format"], document["version"]) == ("etude-io", 1)
    (found,) = document["sweeps"]
    assert (found["results"], found["over"], found["metric"], found["unit"]) == (
        "buffers",
        "buffer",
        "bandwidth",
        "B/s",
    )
    assert [curve["name"] for curve in found["curves"]] == ["untouched", "touched"]
    for curve in found["curves"]:
        assert [point["size"] for point in curve["points"]] == [4096, 16384, 65536, MIB, 4 * MIB]
        for point in curve["points"]:
            assert point["trials"] == 3
            assert 0 < point["q1"] <= point["median"] <= point["q3"]
    assert all(sentence in swept.stdout for sentence in found["findings"])
    assert found["figures"] == {"throughput": "buffers/throughput.svg"}


def test_other_verbs_read_a_sweep(swept: subprocess.CompletedProcess[str], place: Path) -> None:
    said = called("stats", "buffers", cwd=place).stdout
    assert "buffer=64KiB touched" in said
    assert "iB/s" in said
    called(
        "plot",
        "buffers",
        "--kind",
        "lines",
        "--x",
        "buffer",
        "--test",
        "buffer=* *touched",
        "-o",
        "p.svg",
        cwd=place,
    )
    assert "</svg>" in (place / "p.svg").read_text()
    called("report", "buffers", cwd=place)
    assert "buffer=64KiB touched" in (place / "buffers" / "report.html").read_text()
    again = called("io", "explain", "buffers", "--figures", ".", "--format", "svg", cwd=place).stdout
    body = swept.stdout.partition("Figure ")[0]
    assert again.partition("Figure ")[0] == body, "it says the same from what is stored"
    assert (place / "throughput.svg").exists()


def test_a_refined_sweep_has_more_sizes_of_a_second_sitting(tmp_path: Path) -> None:
    sizes = ("--buffers", "4K,64K,1M,4M", "--totals", "4M", "--curve", "untouched", "--no-storage")
    called("io", "sweep", *sizes, *QUICK, "--refine", "2", "-o", "r", "--format", "svg", cwd=tmp_path)
    document = experiment(tmp_path / "r")
    assert [sitting["how_ended"] for sitting in document["sittings"]] == ["complete", "complete"]
    assert len(document["tests"]) == 6
    assert data_files(tmp_path) == []


def test_after_ctrl_c_the_data_are_gone_and_the_sweep_goes_on(tmp_path: Path) -> None:
    sizes = ("--buffers", "4K,64K,1M", "--totals", "4M", "--no-storage", "--curve", "touched")
    command = [ETUDE, "io", "sweep", *sizes, "--trials", "200", "-o", "r"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    _until(lambda: _count(tmp_path / "r") > 20)
    assert len(data_files(tmp_path)) == 1
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "--resume" in one_line(said)
    assert data_files(tmp_path) == []
    before = _rows(tmp_path / "r")
    assert 20 < sum(map(len, before.values())) < 603

    done = called("io", "sweep", "--resume", "r", "--format", "svg", "--json", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["sweeps"]
    assert [point["trials"] for point in found["curves"][0]["points"]] == [200, 200, 200]
    assert data_files(tmp_path) == []
    for test, rows in _rows(tmp_path / "r").items():
        assert rows[: len(before[test])] == before[test], "what was on disk stays as it was"
        blocks = [row["block"] for row in rows if row["kept"]]
        assert sorted(blocks) == list(range(1, 201)), "each block once, none missing"


def test_a_file_that_is_there_is_read_and_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_bytes(os.urandom(4 * MIB))
    content, when = file.read_bytes(), file.stat().st_mtime_ns
    sizes = ("--buffers", "64K,1M", "--totals", "4M")
    called("io", "sweep", "mine", *sizes, *QUICK, "-o", "r", "--format", "svg", cwd=tmp_path)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (content, when)
    done = called("io", "sweep", "mine", "--write", *sizes, *QUICK, cwd=tmp_path, check=2)
    assert "mine" in one_line(done.stderr)
    assert file.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "r"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (
            ["nosuch"],
            5,
            f"nosuch: {os.strerror(errno.ENOENT)}",
        ),
        (
            ["--buffers", "8..16", "--totals", "1M,2M"],
            2,
            "give one value",
        ),
        (["--curve", "nosuch"], 2, "curve 'nosuch': "),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    (tmp_path / "short").write_text("short")
    assert text in one_line(called("io", "sweep", *arguments, cwd=tmp_path, check=code).stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["short"]


def test_of_a_curve_with_a_wrong_option_the_programs_own_line_is_shown(tmp_path: Path) -> None:
    arguments = ("--buffers", "4K,8K", *QUICK, "--curve", "wrong=--nosuch")
    line = one_line(called("io", "sweep", *arguments, cwd=tmp_path, check=4).stderr)
    assert re.search(r"\b64: FAIL: .*--nosuch", line)
    assert data_files(tmp_path) == []


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_small_or_read_only_file_system_is_said_to_be_so(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", "24m") as small:
        line = one_line(called("io", "sweep", "small", "--totals", "32M", cwd=tmp_path, check=5).stderr)
        assert "64MiB" in line
        line = one_line(
            called("io", "sweep", "small", "--curve", "direct", *QUICK, cwd=tmp_path, check=5).stderr
        )
        assert "32MiB" in line, "16 MiB for each of two files"
        assert list(small.iterdir()) == []
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        line = one_line(called("io", "sweep", "small", *QUICK, cwd=tmp_path, check=5).stderr)
        assert "small: no file" in line


def _count(directory: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in directory.glob("*/results.jsonl"))


def _rows(directory: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.parent.name: lines(directory, path.parent.name) for path in directory.glob("*/results.jsonl")
    }


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
