"""Which stop programs are judged in memory."""

import pytest

from etude.errors import UsageError
from etude.script.stop import own_predicate


def test_a_predicate_alone_is_judged_here() -> None:
    options = own_predicate(("/usr/bin/getstats", "--predicate", "$count > 3"))
    assert options is not None
    assert options.predicate == "$count > 3"


@pytest.mark.parametrize(
    "words",
    [
        ["--predicate", "1", "a.res"],
        ["--select", '$command eq "make"', "--predicate", "1"],
        ["--nostdtransforms", "--predicate", "1"],
        ["--dump"],
    ],
)
def test_what_changes_the_rows_or_reads_files_is_a_program(words: list[str]) -> None:
    assert own_predicate(("getstats", *words)) is None


def test_options_that_cannot_be_meant_are_told() -> None:
    with pytest.raises(UsageError, match="--select, column 4"):
        own_predicate(("getstats", "--predicate", "1", "--select", "1 +"))
