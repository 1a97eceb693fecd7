"""What examples/nfs/windows.h writes is what Étude reads: the same classes as its own encoder makes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.results.histograms import decode, encode
from etude.results.windows import parse_window
from support.laboratory import EXAMPLES
from support.profiles import examples

pytestmark = pytest.mark.beside

PROGRAM = """\
#include "windows.h"
static const char *const kinds[] = {"even", "odd"};
static struct windows windows;
int main(void) {
    unsigned long long value;
    windows_open(&windows, kinds, 2, 3600);
    while (scanf("%llu", &value) == 1)
        windows_add(&windows, value % 2, windows.start_ns - value, windows.start_ns);
    return windows_close(&windows) ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("windows")
    (place / "main.c").write_text(PROGRAM)
    words = [
        "cc",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        str(EXAMPLES / "nfs"),
        "-o",
        str(place / "main"),
    ]
    subprocess.run([*words, str(place / "main.c")], check=True)
    return place / "main"


def written(program: Path, values: list[int]) -> dict[str, object]:
    """The one window of these response times, in ns."""
    path = program.parent / "windows.jsonl"
    path.unlink(missing_ok=True)
    text = " ".join(map(str, values))
    subprocess.run([program], input=text, text=True, env={"ETUDE_WINDOWS": str(path)}, check=True)
    (line,) = path.read_text().splitlines()
    parse_window(line)
    window: dict[str, object] = json.loads(line)
    return window


def classes(text: str) -> list[tuple[int, int]]:
    found = decode(text)
    return list(zip(found.values.tolist(), found.counts.tolist(), strict=True))


@pytest.mark.needs_program("cc", package="gcc")
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 2**39 - 1) | st.integers(0, 600), min_size=1, max_size=60))
def test_a_window_in_c_has_the_classes_of_our_own(program: Path, values: list[int]) -> None:
    window = written(program, values)
    assert window["completed"] == len(values)
    assert classes(str(window["latency"])) == classes(encode(values, digits=2))
    by = window["by"]
    assert isinstance(by, dict)
    for kind, name in enumerate(("even", "odd")):
        mine = [value for value in values if value % 2 == kind]
        assert by[name]["completed"] == len(mine)
        if mine:
            assert classes(by[name]["latency"]) == classes(encode(mine, digits=2))
        else:
            assert by[name]["latency"] is None


@pytest.mark.needs_program("cc", package="gcc")
def test_a_window_with_something_in_every_class_is_read(program: Path) -> None:
    values = list(range(256)) + [low << power for power in range(1, 32) for low in range(128, 256)]
    window = written(program, values)
    assert classes(str(window["latency"])) == classes(encode(values, digits=2))


@pytest.mark.needs_program("cc", package="gcc")
def test_a_time_that_is_too_long_for_a_class_is_in_the_last(program: Path) -> None:
    window = written(program, [2**45])
    assert classes(str(window["latency"]))[0][0] >= 2**38
