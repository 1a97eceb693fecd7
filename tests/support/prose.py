"""Counts assertions on prose: what breaks when a sentence is worded anew.

    python tests/support/prose.py [DIRECTORY or FILE ...]     # a line for each assertion, then the count

An assertion is on prose when a string in it, or in a `match=`, has four words or more. Wording belongs into golden
files (tests/support/golden.py); tests assert data.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS = 4
WORD = re.compile(r"\W*[A-Za-z][a-z'’-]*\W*")


def is_prose(text: str) -> bool:
    return sum(1 for word in text.split() if WORD.fullmatch(word)) >= WORDS


def strings(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value
        elif isinstance(each, ast.Constant) and isinstance(each.value, bytes):
            yield each.value.decode(errors="replace")


def prose_lines(file: Path) -> list[int]:
    """Line numbers of the assertions on prose in a test file."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        asserted = [node.test] if isinstance(node, ast.Assert) else []
        if isinstance(node, ast.Call):
            asserted += [word.value for word in node.keywords if word.arg == "match"]
        found += [each.lineno for each in asserted if any(map(is_prose, strings(each)))]
    return sorted(found)


def main(places: list[str]) -> None:
    total = 0
    for place in map(Path, places or [str(Path(__file__).parents[1])]):
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if "golden" in file.parts:
                continue
            for line in prose_lines(file):
                total += 1
                print(f"{file}:{line}")
    print(total)


if __name__ == "__main__":
    main(sys.argv[1:])
