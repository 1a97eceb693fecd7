"""Which warning comes first, and when many become one."""

from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import KINDS, DataWarning, ranked
from etude.analysis.warnings.warning import warning


def drift(test, metric="elapsed", text="it rises"):
    return warning("drift", test, metric, text, "look")


def test_the_most_important_come_first_and_equal_ones_in_the_order_given():
    given_ = [warning(kind, "a", "m", kind, "") for kind in ("outliers", "leak", "different-work")]
    assert [w.kind for w in ranked(given_)] == ["different-work", "leak", "outliers"]
    assert [w.test for w in ranked([drift("b"), drift("a")])] == ["b", "a"]


def test_what_is_said_twice_is_said_once():
    leak = warning("leak", "a", "memory_free", "falls", "look")
    assert ranked([leak, drift("a"), leak]) == [leak, drift("a")]


def test_metrics_of_one_test_with_the_same_trouble_are_one_line():
    one = drift("a")
    (found,) = ranked([one, drift("a", "user", "rises, too"), drift("a", "system")])
    assert found.text.startswith(f"{one.text}; ")
    assert found.text.endswith(" user, system")
    assert found.metric == "elapsed"


def test_up_to_three_tests_are_lines_of_their_own_and_four_are_folded(golden):
    three = [drift(test) for test in "abc"]
    assert ranked(three) == three
    (found,) = ranked([*three, drift("d")])
    assert str(found).startswith(f"4 tests: {KINDS['drift'].meaning} (a, b, c ")
    assert str(found).endswith(f"; {three[0]}")
    golden(str(found))
    assert (found.kind, found.rank, found.test) == ("drift", KINDS["drift"].rank, "")
    (found,) = ranked([*three, drift("d")], tests=40)
    assert found.text.startswith("4 of 40 tests: ")


def test_what_is_about_the_whole_experiment_is_never_folded():
    notes = [DataWarning("note", 50, "", "", f"line {n}", "") for n in range(9)]
    assert ranked(notes) == notes


def test_a_kind_that_is_nobodys_is_folded_by_its_name():
    (found,) = ranked([DataWarning("own", 5, test, "", "x", "") for test in "abcd"])
    assert found.text.startswith("4 tests: own (a, b, c ")
    assert found.text.endswith("; a: x")


warnings = st.builds(
    warning,
    st.sampled_from(list(KINDS)),
    st.sampled_from(["", *"abcdef"]),
    st.sampled_from("mn"),
    st.text(),
    st.text(),
)


@given(st.lists(warnings, max_size=60))
def test_nothing_is_lost_and_few_lines_are_left(given_):
    found = ranked(given_)
    assert {w.kind for w in found} == {w.kind for w in given_}
    assert [w.rank for w in found] == sorted(w.rank for w in found)
    for kind in KINDS:
        assert len({w.test for w in found if w.kind == kind and w.test}) <= 3
