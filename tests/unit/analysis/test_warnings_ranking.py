"""Which warning comes first, and when many become one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import KINDS, WarningGroup, ranked
from etude.analysis.warnings.facts import DriftOfValues, Facts, RecordedSentence
from etude.analysis.warnings.warning import warning
from etude.present.sentences.warnings import group_text, warning_text

RISES = DriftOfValues(20, 0.05, 0.001, True, "Theil-Sen", 1)


def drift(test, metric="elapsed", facts=RISES):
    return warning("drift", test, metric, facts)


def alone(*warnings):
    return [WarningGroup(each) for each in warnings]


def test_the_most_important_come_first_and_equal_ones_in_the_order_given():
    given_ = [warning(kind, "a", "m", Facts()) for kind in ("outliers", "leak", "different-work")]
    assert [w.kind for w in ranked(given_)] == ["different-work", "leak", "outliers"]
    assert [w.first.test for w in ranked([drift("b"), drift("a")])] == ["b", "a"]


def test_what_is_said_twice_is_said_once():
    leak = warning("leak", "a", "memory_free", Facts())
    assert ranked([leak, drift("a"), leak]) == alone(leak, drift("a"))


def test_metrics_of_one_test_with_the_same_trouble_are_one_line():
    one = drift("a")
    (found,) = ranked([one, drift("a", "user", replace(RISES, of=10)), drift("a", "system")])
    assert found == WarningGroup(one, ("user", "system"))
    assert " user, system: " in group_text(found)


def test_up_to_three_tests_are_lines_of_their_own_and_four_are_folded(golden):
    three = [drift(test) for test in "abc"]
    assert ranked(three) == alone(*three)
    (found,) = ranked([*three, drift("d")])
    assert found == WarningGroup(three[0], tests=tuple("abcd"))
    assert group_text(found).startswith(f"4 tests: {KINDS['drift'].meaning} (a, b, c ")
    assert group_text(found).endswith(f"; {warning_text(three[0])}")
    golden(group_text(found))
    (found,) = ranked([*three, drift("d")], tests=40)
    assert (found.kind, found.of) == ("drift", 40)
    assert group_text(found).startswith("4 of 40 tests: ")


def test_what_is_about_the_whole_experiment_is_never_folded():
    notes = [warning("note", "", "", RecordedSentence(f"line {n}")) for n in range(9)]
    assert ranked(notes) == alone(*notes)


warnings = st.builds(
    warning,
    st.sampled_from(list(KINDS)),
    st.sampled_from(["", *"abcdef"]),
    st.sampled_from("mn"),
    st.builds(RecordedSentence, st.text()),
)


@given(st.lists(warnings, max_size=60))
def test_nothing_is_lost_and_few_lines_are_left(given_):
    found = ranked(given_)
    assert {w.kind for w in found} == {w.kind for w in given_}
    assert [w.first.rank for w in found] == sorted(w.first.rank for w in found)
    for kind in KINDS:
        lines = {w.first.test for w in found if w.kind == kind and w.first.test and not w.tests}
        assert len(lines) <= 3
