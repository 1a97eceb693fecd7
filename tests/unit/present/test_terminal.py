"""What a screen can show is decided in one place: width, styles, characters."""

from __future__ import annotations

import errno
import io
import shlex
import subprocess

import pytest

from etude.present.section import Column
from etude.present.terminal import PLAIN, Terminal, encoding_of

UTF8 = {"LANG": "en_GB.UTF-8", "TERM": "xterm"}


class Screen(io.StringIO):
    """A terminal, or none, of an encoding."""

    def __init__(self, tty: bool = True, encoding: str = "utf-8") -> None:
        super().__init__()
        self.tty, self._encoding = tty, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self.tty


def shown(text: str, environment: dict[str, str], **screen: object) -> str:
    return Terminal(Screen(**screen), environment).shown(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["C", "POSIX"])
@pytest.mark.parametrize("variable", ["LANG", "LC_CTYPE", "LC_ALL"])
def test_a_locale_without_characters_is_told_in_ascii(variable: str, name: str) -> None:
    text = "5 ± 1 %, 3 × 2 µs … 4–5 ─ 6 · 7 ← 8"
    assert shown(text, {variable: name}) == "5 +- 1 %, 3 x 2 us .. 4-5 - 6 | 7 <- 8"
    assert shown(text, UTF8) == text


def test_an_encoding_has_what_it_has() -> None:
    assert shown("± × µ … –", {"LANG": "de_DE.ISO-8859-1"}, encoding="iso8859-1") == "± × µ .. -"
    assert shown("±", {"LANG": "de_DE.ISO-8859-1"}, encoding="utf-8") == "+-", (
        "who writes UTF-8 there writes nonsense"
    )


def test_who_says_what_the_stream_is_is_believed() -> None:
    assert shown("±", {"LANG": "C", "PYTHONIOENCODING": "utf-8"}) == "±"
    assert shown("±", {"LANG": "C", "PYTHONUTF8": "1"}) == "±"
    assert shown("±", UTF8 | {"PYTHONIOENCODING": "ascii"}, encoding="ascii") == "+-"


def test_a_locale_that_is_not_set_says_nothing() -> None:
    assert encoding_of(Screen(), {}) == "utf-8"
    assert encoding_of(Screen(), {"LC_ALL": "", "LANG": "C"}) == "ascii"
    assert encoding_of(Screen(), {"LC_ALL": "C.UTF-8", "LANG": "C"}) == "utf-8"


def test_names_of_other_languages_stay_distinct_in_ascii() -> None:
    names = [shown(name, {"LANG": "C"}) for name in ("naïve", "日本", "日木")]
    assert names[0] == "naive"
    assert len(set(names)) == 3
    assert all(name.isascii() and "?" not in name for name in names)


def test_everything_that_we_write_has_a_way_without_unicode() -> None:
    from pathlib import Path

    import etude

    written = set()
    for path in Path(etude.__file__).parent.rglob("*.py"):
        if path.parent.name in ("cli", "report", "stats", "warnings"):
            written |= {c for c in path.read_text() if not c.isascii()}
    spelt = {c for c in written if shown(c, {"LANG": "C"}).startswith("\\")}
    assert not spelt, "add it to terminal.PLAIN"
    assert all(value.isascii() for value in PLAIN.values())


@pytest.mark.parametrize("steering", ["\x1b[2J", "\r", "\x07", "\x9b31m", "a\nb"])
def test_a_name_cannot_steer_the_terminal(steering: str) -> None:
    told = shown(f"x{steering}", UTF8)
    assert told.isprintable()
    assert told.startswith("x")


@pytest.mark.parametrize(
    ("environment", "tty", "expected"),
    [
        ({"TERM": "xterm"}, True, "\x1b[33mx\x1b[0m"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, "x"),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, "\x1b[33mx\x1b[0m"),
        ({"TERM": "dumb"}, True, "x"),
        ({}, True, "x"),
        ({"TERM": "xterm"}, False, "x"),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, "\x1b[33mx\x1b[0m"),
    ],
)
def test_colour_is_for_those_who_want_it(environment: dict[str, str], tty: bool, expected: str) -> None:
    assert Terminal(Screen(tty), environment).styled("x", "yellow") == expected


def test_without_colour_there_is_still_weight() -> None:
    assert Terminal(Screen(), {"TERM": "xterm", "NO_COLOR": "1"}).styled("x", "bold") == "\x1b[1mx\x1b[0m"


def test_a_dumb_terminal_has_a_width_but_no_cursor() -> None:
    screen = Terminal(Screen(), {"TERM": "dumb", "COLUMNS": "40"})
    assert (screen.width, screen.obeys) == (40, False)


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("0", 80), ("x", 80), ("-5", 80), ("3", 20)])
def test_columns_says_how_wide_it_is(columns: str, width: int) -> None:
    assert Terminal(Screen(), {"COLUMNS": columns}).width == width
    assert Terminal(Screen(tty=False), {"COLUMNS": columns}).width is None


def test_a_command_that_wraps_can_be_copied() -> None:
    stream = Screen()
    command = "etude bench --trials 100 -n 'a name of words' 'sleep 0.01' \"x y\" b"
    Terminal(stream, UTF8 | {"COLUMNS": "30"}).say_command("To do it", command)
    first, *rest = stream.getvalue().splitlines()
    assert first == "To do it:"
    assert len(rest) > 2
    assert all(len(line) <= 30 for line in rest)
    typed = "\n".join(rest).replace("etude", "printf '%s|'", 1)
    words = subprocess.run(["sh", "-c", typed], capture_output=True, text=True, check=True).stdout
    assert words == "|".join([*shlex.split(command)[1:], ""])


def test_what_stands_before_a_command_wraps_and_is_written_in_the_characters_that_there_are() -> None:
    stream = Screen()
    ascii_only = {**UTF8, "COLUMNS": "30", "LC_ALL": "C"}
    Terminal(stream, ascii_only).say_command(
        "  38 more trials of each would narrow it to ± 5 %", "etude bench --resume r"
    )
    lines = stream.getvalue().splitlines()
    assert all(len(line) <= 30 and line.isascii() for line in lines)
    assert lines[-1].strip() == "etude bench --resume r"


def test_a_path_is_never_broken() -> None:
    stream = Screen()
    path = "/somewhere/" + "x" * 60
    Terminal(stream, UTF8 | {"COLUMNS": "40"}).say_path("Results", path)
    assert stream.getvalue() == f"Results:\n{path}\n"


def test_a_table_in_ascii_is_still_aligned() -> None:
    stream = Screen()
    screen = Terminal(stream, {"LANG": "C", "COLUMNS": "60"})
    screen.table([Column("name", ["a", "b"]), Column("± 95 %", ["1 … 2 µs", "–"]), Column("n", ["1", "2"])])
    lines = stream.getvalue().splitlines()[1:-1]
    assert lines[0].split() == ["name", "+-", "95", "%", "n"]
    assert set(lines[1].strip()) == {"-"}
    assert {len(line) for line in lines} == {len(lines[0])}


def test_two_empty_lines_never_follow_each_other() -> None:
    screen = Screen()
    terminal = Terminal(screen, UTF8)
    for _ in range(2):
        terminal.table([Column("test", ["a"]), Column("mean", ["1 s"])])
        terminal.say()
    assert "\n\n\n" not in screen.getvalue()
    assert screen.getvalue().count("\n\n") == 2


def test_progress_that_cannot_be_written_ends_nothing_unless_nobody_reads() -> None:
    class Full(io.StringIO):
        error: OSError = OSError(errno.ENOSPC, "no space")

        def write(self, text: str) -> int:
            raise self.error

    stream = Full()
    Terminal(stream, progress=True).say("a line")
    with pytest.raises(OSError, match="no space"):
        Terminal(stream).say("a line")
    stream.error = BrokenPipeError()
    with pytest.raises(BrokenPipeError):
        Terminal(stream, progress=True).say("a line")
