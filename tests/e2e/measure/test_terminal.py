"""What stands on a real terminal: no line longer than it is wide, nothing important lost, with and without Unicode."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from support.real import ETUDE, etude

pytestmark = pytest.mark.beside

WIDTHS = (40, 80, 120, 200)
NAMES = (
    "compress --level=1 --input some/long/path/of/text",
    "compress --level=9 --input some/long/path/of/text",
)
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TEST = "TEST a_test_with_a_long_name:{0} 6\nEXEC sleep 0.2{0}\nDONE\n"
SCRIPT = f"INTERLEAVE\n{TEST.format(1)}{TEST.format(2)}DONE\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two long names, `r`, and of a script, `s`."""
    place = tmp_path_factory.mktemp("here")
    etude(*bench("r", "12", "0.01", "0.06"), cwd=place)
    (place / "x.ap").write_text(SCRIPT.replace("0.2", "0.0"))
    etude("run", "x.ap", "-o", "s", cwd=place)
    return place


def bench(output: str, trials: str, *seconds: str) -> list[str]:
    words = ["bench", "--trials", trials, "-o", output]
    for name, each in zip(NAMES, seconds, strict=True):
        words += ["-n", name, f"sleep {each}"]
    return words


@cache
def on_terminal(here: Path, width: int, *words: str, **environment: str) -> str:
    """All that `etude` writes to a terminal of that width, steering included."""
    terminal, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    variables = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    variables |= {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
    process = subprocess.Popen(
        [ETUDE, *words], cwd=here, stdin=side, stdout=side, stderr=side, env=variables, start_new_session=True
    )
    os.close(side)
    told = b""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            told += part
    os.close(terminal)
    assert process.wait(timeout=60) == 0, told.decode(errors="replace")
    return told.decode()


def lines(told: str) -> list[str]:
    """Every line that was ever drawn, also those that others were drawn over."""
    return [STEERING.sub("", line) for line in re.split(r"[\r\n]|\x1b\[\d*[AK]", told)]


def fits(told: str, width: int) -> None:
    """But for a single word of a command that is meant to be copied."""
    too_long = [line for line in lines(told) if cell_len(line) > width]
    assert not [line for line in too_long if not re.fullmatch(r"    '[^']*'( \\)?", line)], too_long


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "words",
    [
        ["stats", "r"],
        ["stats", "r", "--wide"],
        ["stats", "r", "--all"],
        ["plan", "r"],
        ["plan", "s"],
    ],
    ids=" ".join,
)
def test_no_line_is_longer_than_the_terminal_is_wide(here: Path, words: list[str], width: int) -> None:
    fits(on_terminal(here, width, *words), width)
    if width < 120:
        fits(on_terminal(here, width, *words, LC_ALL="C"), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_mean_its_interval_and_which_test_it_is_are_never_lost(here: Path, width: int) -> None:
    told = on_terminal(here, width, "stats", "r")
    flat = " ".join(" ".join(lines(told)).split())
    assert all(name in flat for name in NAMES), "in full, above its table"
    heading = next(line for line in lines(told) if "mean" in line and "metric" in line)
    assert "95 % of mean" in heading
    assert ("deviation" in heading) == (width >= 120)
    assert (" max " in heading) == (width >= 200)
    rows = [line for line in lines(told) if re.match(r" elapsed  .* … .* ms", line)]
    assert len(rows) == 2
    assert "takes" in flat


@pytest.mark.parametrize("width", WIDTHS)
def test_wide_shows_all_columns_and_every_sample_on_any_terminal(here: Path, width: int) -> None:
    told = lines(on_terminal(here, width, "stats", "r", "--wide"))
    flat = " ".join(" ".join(told).split())
    for heading in (
        "n_eff",
        "95 % of mean",
        "median",
        "95 % of median",
        "quartiles",
        "min",
        "max",
        "deviation",
    ):
        assert heading in flat
    assert len([line for line in told if re.fullmatch(r"  [▁-█]{12}", line)]) >= 2
    ascii_told = lines(on_terminal(here, width, "stats", "r", "--wide", LC_ALL="C"))
    assert all(line.isascii() for line in ascii_told)
    assert len([line for line in ascii_told if re.fullmatch(r"  [_.\-=+*#@]{12}", line)]) >= 2


@pytest.mark.parametrize(("width", "locale"), [(40, "C.UTF-8"), (80, "C"), (200, "C.UTF-8")])
def test_bench_fits_while_it_runs_and_at_its_end(tmp_path: Path, width: int, locale: str) -> None:
    told = on_terminal(tmp_path, width, *bench("r", "8", "0.1", "0.12"), LC_ALL=locale)
    assert "\x1b[K" in told
    fits(told, width)
    seen = lines(told)
    assert locale != "C" or all(line.isascii() for line in seen)
    heading = next(line for line in seen if "ratio" in line and "elapsed" in line)
    assert re.search(r"mean +(±|\+-) 95 %.* ratio$", heading)
    below = seen.index(heading)
    row = next(at for at, line in enumerate(seen[below:], below) if re.search(r" 1$", line))
    dots = "…" if locale != "C" else ".."
    names = [re.split(r"   ? ?\d", line.strip())[0] for line in seen[row : row + 3] if line.strip()]
    assert len(set(names)) == 2, "names that were shortened stay distinct"
    assert width == 200 or all(dots in name or width > 80 for name in names)


@pytest.mark.parametrize(("width", "locale"), [(40, "C.UTF-8"), (120, "C")])
def test_run_fits_while_it_runs_and_at_its_end(tmp_path: Path, width: int, locale: str) -> None:
    (tmp_path / "x.ap").write_text(SCRIPT)
    told = on_terminal(tmp_path, width, "run", "x.ap", "-o", "r", LC_ALL=locale)
    assert (" · " if locale != "C" else " | ") in told
    assert locale != "C" or all(line.isascii() for line in lines(told))
    fits(told, width)


def test_a_dumb_terminal_gets_lines_and_nothing_else(tmp_path: Path) -> None:
    told = on_terminal(tmp_path, 60, *bench("r", "6", "0.3", "0.3"), TERM="dumb")
    assert "\x1b" not in told
    fits(told, 60)
    assert re.search(r"^\d s: ", told, re.M), "a line every few seconds"


def test_without_colour_nothing_is_coloured(here: Path) -> None:
    coloured = r"\x1b\[(?:3|4|9)\d"
    (here / "noisy.csv").write_text("elapsed\n" + "1\n1.01\n0.99\n" * 4 + "9\n")
    assert re.search(coloured, on_terminal(here, 80, "stats", "noisy.csv"))
    assert not re.search(coloured, on_terminal(here, 80, "stats", "noisy.csv", NO_COLOR="1"))
    assert "\x1b" not in on_terminal(here, 80, "stats", "noisy.csv", TERM="dumb")


def test_json_is_what_it_was_whatever_the_terminal(here: Path) -> None:
    plain = etude("stats", "--json", "r", cwd=here).stdout
    assert "…" in plain or "±" in plain
    told = on_terminal(here, 40, "stats", "--json", "r", LC_ALL="C")
    assert told.replace("\r\n", "\n") == plain
    done = etude("stats", "--json", "r", cwd=here, env=os.environ | {"LC_ALL": "C", "NO_COLOR": "1"})
    assert done.stdout == plain
