"""`etude plot`: what it writes, what it says, and what it refuses in one line."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.figures import KINDS
from support.golden import Golden
from support.places import DATA

EXT4 = str(DATA / "postmark" / "ext4:*.res")
LINKING = str(DATA / "linking.csv")

Etude = Callable[..., int]


def test_without_a_kind_a_number_that_varies_makes_lines(
    etude: Etude, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    assert etude("plot", EXT4) == 0
    out = capsys.readouterr().out
    assert out.startswith("lines: lines.pdf\n")
    golden(out)
    assert Path("lines.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn(kind: str, etude: Etude) -> None:
    files = [EXT4] if kind not in ("ratio", "pvalues") else [LINKING, "--log", "xy"]
    assert etude("plot", "--kind", kind, *files, "-o", "it.svg", "--data", "beside") == 0
    assert b"<svg" in Path("it.svg").read_bytes()
    assert sorted(path.name for path in Path("beside").iterdir()) == ["it.dat", "it.gnuplot", "it.py"]


def test_fonts_are_in_the_file(etude: Etude) -> None:
    for suffix in ("pdf", "eps", "svg", "png"):
        assert etude("plot", EXT4, "-o", f"it.{suffix}") == 0
    pdf = Path("it.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Subtype /Type3" not in pdf
    eps = Path("it.eps").read_bytes()
    assert eps.startswith(b"%!PS-Adobe-3.0 EPSF")
    assert b"/FontType 42" in eps
    assert b"<text" not in Path("it.svg").read_bytes()
    assert Path("it.png").read_bytes().startswith(b"\x89PNG")


def test_it_fits_a_column(etude: Etude) -> None:
    assert etude("plot", EXT4, "-o", "it.pdf") == 0
    assert b"/MediaBox [ 0 0 237.6 " in Path("it.pdf").read_bytes()  # 3.3 inches
    assert etude("plot", EXT4, "-o", "it.pdf", "--size", "5x3") == 0
    assert b"/MediaBox [ 0 0 360 216 ]" in Path("it.pdf").read_bytes()


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (
            2,
            (EXT4, "-o", "it.gif"),
            "it.gif: ",
        ),
        (3, ("nowhere.res",), "nowhere.res"),
        (
            2,
            (EXT4, "--metric", "mood"),
            "metric 'mood': ",
        ),
        (2, (EXT4, "--threshold", "5 parsecs"), "threshold '5 parsecs': "),
        (2, (EXT4, "--kind", "bars", "--mark", "5MB"), "--mark 5MB: --kind bars"),
        (2, (EXT4, "--kind", "ecdf", "--mark", "5"), "--mark 5: --kind ecdf"),
        (2, (EXT4, "--mark", "5MB"), "5MB: is in B, but the x axis has no unit"),
        (2, (EXT4, "--threshold", "5KiB"), "threshold 5KiB: "),
        (2, (EXT4, "--threshold", "5"), "5 ms or 5 s"),
        (2, (LINKING, "--mark", "4096"), "4096 B"),
        (2, (EXT4, "--kind", "bars", "--first", "3"), "--first: "),
        (2, (EXT4, "--kind", "lines", "--welch"), "--welch: "),
        (2, (EXT4, "--kind", "violin", "--bars", "deviation"), "--bars: "),
        (2, (EXT4, "--kind", "bars", "--x", "threads"), "--x: "),
        (2, (EXT4, "--kind", "pie"), "'pie'"),
        (2, (EXT4, "--kind", "bars", "--log", "y"), "--log y: "),
        (2, (EXT4, "--kind", "ratio"), "--kind ratio "),
        (
            2,
            (LINKING, "--kind", "ratio", "--reference", "other"),
            "--reference other: ",
        ),
        (2, (EXT4, "--x", "size"), "--x size: "),
        (2, (EXT4, "--test", "xfs*"), "--test xfs*: "),
        (2, (EXT4, "--kind", "before-after", "--metric", "user,system"), "before-after"),
        (2, (EXT4, "--bar-width", "-1"), "not -1"),
        (2, (EXT4, "--rotate", "nan"), "--rotate: 'nan'"),
        (2, (EXT4, "--key", "somewhere"), "-k/--key: 'somewhere'"),
        (2, (EXT4, "--size", "0x3"), "--size: '0x3': "),
        (5, (EXT4, "-o", "absent/it.pdf"), f"absent/it.pdf: cannot be written: {os.strerror(errno.ENOENT)}"),
        (5, (EXT4, "-o", "/proc/it.pdf"), "/proc/it.pdf: cannot be written"),
        (5, (EXT4, "--data", "/proc/it"), "/proc/it: cannot be made"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    code: int, words: tuple[str, ...], said: str, etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("plot", *words) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


NASTY = ("$x_2$", "_hidden", "a\\alpha", "<b>&", "100% {x}", "it's", "$", "\x1b[31mred", "漢字")


def test_names_are_shown_letter_by_letter(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text(
        "test,elapsed\n" + "".join(f'"{n}",{k}.{m}\n' for k, n in enumerate(NASTY) for m in (1, 2))
    )
    for kind in ("bars", "ecdf", "box", "timeline"):
        chosen = [] if kind != "timeline" else ["--test", "$x_2$", "--test", "_hidden"]
        assert (
            etude(
                "plot",
                "t.csv",
                "--kind",
                kind,
                "-o",
                "it.pdf",
                "--title",
                "$\\frac{",
                "--xlabel",
                "_$$",
                *chosen,
            )
            == 0
        )
        assert capsys.readouterr().err == ""


def test_the_letters_of_a_name_are_in_the_key() -> None:
    from etude.figures.data import Axis, Curve, Figure, Panel, Point
    from etude.figures.draw import draw
    from etude.figures.style import Style

    layers = tuple(Curve(name, (Point(0, n), Point(1, n + 1)), n) for n, name in enumerate(NASTY))
    canvas = draw(Figure(Axis("$x$"), (Panel(Axis("y_$2$"), layers),)), Style())
    key = canvas.axes[0].get_legend() or canvas.legends[0]
    texts = [text.get_text().replace(r"\$", "$") for text in key.get_texts()]
    assert texts == list(NASTY)
    canvas.draw_without_rendering()
    from matplotlib.cbook import is_math_text

    for text in key.get_texts():
        assert not is_math_text(text.get_text())


def test_other_verbs_do_not_load_matplotlib(etude: Etude, tmp_path: Path) -> None:
    script = (
        "import sys\nfrom etude.cli.main import main\n"
        f"main(['stats', {str(DATA / 'gcc-ext2.res')!r}])\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_users_own_settings_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "matplotlibrc").write_text(
        "font.size: 30\naxes.facecolor: red\ntext.usetex: True\nbackend: nonsense\n"
    )
    command = [sys.executable, "-m", "etude.cli.main", "plot", EXT4, "-o"]
    plain = {k: v for k, v in os.environ.items() if not re.match("MPL|MATPLOTLIB", k)}
    for name, environment in (("a.svg", plain), ("b.svg", plain | {"MATPLOTLIBRC": str(tmp_path / "own")})):
        done = subprocess.run([*command, name], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
