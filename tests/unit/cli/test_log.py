"""`etude --log FILE`: lines with times, secrets masked, and measuring that goes on where they cannot be written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from etude import trail
from etude.cli.main import main
from etude.masking import Mask
from support.fakes import World

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) \d+ etude\.(\w+): (.*)")


def lines_of(path: str = "log") -> list[tuple[str, str]]:
    """Part and text of each line; all of them have a time."""
    found = [LINE.fullmatch(line) for line in Path(path).read_text().splitlines()]
    assert all(found)
    return [(match[2], match[3]) for match in found if match]


def test_what_is_measured_and_said_is_in_the_log(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "-o", "r", "--max-trials", "10", "a"]
    assert main(["--log", "log", *words]) == 0
    lines = lines_of()
    assert lines[0][0] == "begin"
    assert lines[0][1].split()[-len(words) :] == words
    assert lines[-1] == ("end", "exit status 0")
    assert {part for part, _ in lines} == {"begin", "bench", "said", "end"}
    assert [text for part, text in lines if part == "said"][-1].split() == ["Results:", "r"]
    assert main(["--log=log", "bench"]) == 2
    assert lines_of()[: len(lines)] == lines, "it is appended to"
    assert lines_of()[-1] == ("end", "exit status 2")


def test_a_search_is_followed_trial_by_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--log", "log", "peak", "--simulate", "mm1:700", "-q"]) == 0
    made = [text for part, text in lines_of() if part == "search"]
    begun = [text for text in made if re.match(r"trial \d+: [\d,.]+/s: ", text)]
    ended = [text for text in made if re.match(r"trial \d+ (early|whole): \d+ windows in ", text)]
    assert len(begun) == len(ended) == len(made) / 2 > 3


def test_secrets_are_not_in_the_log(world: World) -> None:
    assert (
        main(["--log", "log", "bench", "-o", "r", "--mask", "pin=([a-z]+)", "a pin=xyzzy password=hunter2"])
        == 0
    )
    text = Path("log").read_text()
    assert "(masked)" in text
    assert "hunter2" not in text
    assert "xyzzy" not in text


def test_a_text_of_several_lines_is_one_line(tmp_path: Path) -> None:
    trail.begin(str(tmp_path / "log"))
    trail.note("x", "one\ntwo\rthree")
    trail.mask_by(Mask(["two"]))
    trail.note("x", "two")
    trail.end()
    trail.note("x", "nobody hears it")
    assert lines_of(str(tmp_path / "log")) == [("x", r"one\ntwo\rthree"), ("x", "(masked)")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--log"], 2),
        (["--log", "log"], 2),
        (["--log="], 2),
        (["--log", "log", "--help"], 2),
        (["--log", "log", "load", "--url", "http://127.0.0.1:1/"], 2),
        (["--log", "/nowhere/log", "bench", "a"], 5),
        (["--log", "/", "bench", "a"], 5),
    ],
)
def test_what_cannot_be_logged_is_refused_before_anything_is_measured(
    world: World, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    assert main(arguments) == code
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not Path("etude-results").exists()


def test_a_full_disk_ends_the_log_and_not_the_measurement(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--log", "/dev/full", "bench", "-o", "r", "--max-trials", "10", "a"]) == 0
    assert capfd.readouterr().err.count("/dev/full") == 1
    assert Path("r/experiment.json").exists()
