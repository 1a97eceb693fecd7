"""Regular expressions of users: time linear in the text, and what of Python's syntax is refused."""

import pytest

from etude.experiment.output_metric import printed_metric
from etude.patterns import PatternError, compile_pattern
from etude.peak.harnesses.load_report import Unreadable
from etude.peak.harnesses.readers import Place, by_expression
from etude.stats.expression import compile_expression
from etude.units.parsing import ONE

BACKTRACKS = "(x+x+)+y"
"""Doubles its time with each x where it backtracks."""

TEXT = "x" * 5000


@pytest.mark.timeout(20)
class TestAPatternThatBacktracksElsewhere:
    def test_ends_as_a_metric(self) -> None:
        assert printed_metric("rate", "1", BACKTRACKS, TEXT).value[0] is None

    def test_ends_in_a_stop_rule(self) -> None:
        assert compile_expression(f"$name =~ /{BACKTRACKS}/").evaluate({"name": TEXT}) is False

    def test_ends_in_a_harness(self) -> None:
        with pytest.raises(Unreadable):
            by_expression(TEXT, {"completed": Place(BACKTRACKS, ONE)})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x(?=a)", 1),
        (r"(a)\1", 3),
        ("(?P<n>a)(?P=n)", 0),
        ("(", 0),
        ("ba**", 2),
        ("a{2000}", 1),
        ("\udcff", 0),
    ],
    ids=[
        "look-around",
        "backreference",
        "named-backreference",
        "bracket",
        "stars",
        "repetition",
        "surrogate",
    ],
)
def test_what_is_not_supported_is_refused_with_its_place(text: str, place: int) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(text)
    assert refused.value.place == place
    assert "\n" not in str(refused.value)


def test_an_unsupported_pattern_of_an_older_experiment_gives_no_number() -> None:
    value, _, why = printed_metric("rate", "1", r"(?<=rate )(\d+)", "rate 5").value
    assert value is None
    assert why


@pytest.mark.parametrize(
    ("pattern", "text", "values"),
    [
        (r"^a (\d+)$", "a 12\nb\na 13\n", ["12", "13"]),
        (r"\d+", "1 é 2 \udcff 3", ["1", "2", "3"]),
        (r"a (\d+)\Z", "a 1\na 2", ["2"]),
        (r"a(b)?", "a ab", [None, "b"]),
    ],
    ids=["lines", "bytes", "end", "group-not-taken"],
)
def test_values_are_those_of_pythons_re(pattern: str, text: str, values: list[str | None]) -> None:
    assert list(compile_pattern(pattern, multiline=True).values(text)) == values
