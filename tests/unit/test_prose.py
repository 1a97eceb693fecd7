"""Wording is held by golden files, so that a sentence can be worded anew in one place."""

from support.places import TESTS
from support.prose import is_prose, prose_lines

MOST = 120


def test_few_assertions_are_on_prose() -> None:
    found = [
        f"{file.relative_to(TESTS)}:{line}"
        for file in sorted(TESTS.rglob("*.py"))
        if "golden" not in file.relative_to(TESTS).parts
        for line in prose_lines(file)
    ]
    assert len(found) <= MOST, found


def test_prose_has_four_words() -> None:
    assert is_prose("no metric of that name")
    assert not is_prose("x.ap:3: FOO")
    assert not is_prose("1.04 1.02 1.06 s")
