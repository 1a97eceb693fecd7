"""What users read, held by files: the one place where wording is compared.

A test gives the text to the fixture `golden`:

    def test_a_slower_command(golden):
        comparison = compare(...)
        assert comparison.differs          # data: asserted here
        golden("\\n".join(lines(comparison)))   # words: tests/golden/words/present/sentences.txt

All texts of a test module are in one file, a section for each call. `make golden` writes the files anew; the diff is
reviewed like code. A text must be the same on every machine: no times, paths of a temporary directory, or versions.

`ETUDE_GOLDEN=write` writes what the tests of this session compare; `anew`, of `make golden`, also removes what no test
compares any more: if all tests ran and passed, and not beside a test that was skipped, which may lack a program here.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import zstandard

from support.places import TESTS

WORDS = TESTS / "golden" / "words"
MODE = os.environ.get("ETUDE_GOLDEN", "")
WRITING = MODE in ("write", "anew")
MARK = "=== "
PACKED = ".zst"
LARGE = 16000
"""Bytes from which on a text with a file of its own is kept compressed."""

Golden = Callable[[str], None]
written: dict[Path, dict[str, str]] = {}
"""Sections of this session, by file."""
whole_files: set[Path] = set()
"""Files of their own that this session wrote."""
with_skips: set[Path] = set()
"""Test files of which this session skipped a test."""
ALL = {TESTS / name for name in ("golden", "unit", "property")}
"""Where tests compare golden files."""
OWN_FILES = {"readers": "test_readers.py", "verbs": "test_verbs.py"}
"""Which test compares the files of a directory of tests/golden."""


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with its section of the module's golden file."""
    file = golden_file(request.path)
    calls = 0

    def compare(text: str) -> None:
        nonlocal calls
        calls += 1
        name = request.node.name + (f" ({calls})" if calls > 1 else "")
        text = text.rstrip("\n") + "\n"
        if any(line.startswith(MARK) for line in text.splitlines()):
            raise ValueError(f"{name}: a line of the text begins with {MARK!r}, which divides sections")
        if WRITING:
            written.setdefault(file, {})[name] = text
            return
        expected = sections(file).get(name)
        if expected is None:
            pytest.fail(
                f"{file.relative_to(TESTS)} has no section {name!r}: make golden, and review its diff"
            )
        if expected != text:
            differs(f"{file.relative_to(TESTS)}, section {name!r}", expected, text)

    return compare


def compare_file(file: Path, text: str) -> None:
    """Compare a text with a file of its own; a large one is kept compressed, with `.zst` behind its name."""
    packed = file.with_name(file.name + PACKED)
    if WRITING:
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = text.encode()
        for former in (file, packed):
            former.unlink(missing_ok=True)
        if len(whole) > LARGE:
            packed.write_bytes(zstandard.compress(whole, 19))
        else:
            file.write_bytes(whole)
        whole_files.add(packed if len(whole) > LARGE else file)
        return
    if packed.exists():
        expected = zstandard.decompress(packed.read_bytes()).decode()
    elif file.exists():
        expected = file.read_bytes().decode()
    else:
        pytest.fail(f"there is no {file.relative_to(TESTS)}: make golden, and review it", pytrace=False)
    if expected != text:
        differs(str(file.relative_to(TESTS)), expected, text)


def differs(what: str, expected: str, text: str) -> NoReturn:
    """Fail, and say how a text differs from the golden one."""
    lines = list(difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
    if not lines:
        lines = ["only the ends of lines differ (a checkout with CRLF?)"]
    pytest.fail("\n".join([f"{what}:", *lines]), pytrace=False)


def golden_file(test_file: Path) -> Path:
    """tests/unit/present/test_sentences.py has tests/golden/words/present/sentences.txt."""
    place = test_file.relative_to(TESTS)
    return WORDS.joinpath(*place.parts[1:-1], place.stem.removeprefix("test_") + ".txt")


def sections(file: Path) -> dict[str, str]:
    """Texts by name; none where there is no file."""
    if not file.exists():
        return {}
    found: dict[str, str] = {}
    name = None
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith(MARK):
            name = line.removeprefix(MARK).removesuffix("\n")
            found[name] = ""
        elif name is not None:
            found[name] += line
    return found


def runs_all(config: pytest.Config) -> bool:
    """Whether this session runs every test that compares a golden file.

    Raises:
        pytest.UsageError: it writes them, in several processes, of which each knows a part.
    """
    if WRITING and hasattr(config, "workerinput"):
        raise pytest.UsageError("ETUDE_GOLDEN writes golden files from one process: leave out -n")
    chosen = config.option.keyword or config.option.markexpr or config.option.deselect
    return not chosen and {Path(each).resolve() for each in config.args} >= ALL


def note_skip(test_file: Path) -> None:
    with_skips.add(test_file)


def write_golden_files(passed: bool) -> None:
    """At the end of a session that writes: sections of tests that ran are new, the others stay."""
    for file, texts in written.items():
        ran = {call_free(name) for name in texts}
        write(
            file, {name: text for name, text in sections(file).items() if call_free(name) not in ran} | texts
        )
    if MODE == "anew" and passed:
        remove_stale()
    elif MODE == "anew":
        print(
            "\nnot every test ran and passed: golden files that no test compares any more were left as they are"
        )


def write(file: Path, texts: dict[str, str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{MARK}{name}\n{texts[name]}" for name in sorted(texts)), encoding="utf-8")


def remove_stale() -> None:
    """What no test of this session compared, but where one was skipped."""
    spared = {golden_file(test_file) for test_file in with_skips}
    for file in WORDS.rglob("*.txt"):
        if file in written and file not in spared:
            write(file, written[file])
        elif file not in spared:
            file.unlink()
    for directory, test in OWN_FILES.items():
        if TESTS / "golden" / test not in with_skips:
            for file in (WORDS.parent / directory).rglob("*.*"):
                if file.is_file() and file not in whole_files:
                    file.unlink()


def call_free(name: str) -> str:
    """The test's name, of a section that may be its second or a later one."""
    return re.sub(r" \(\d+\)$", "", name)
