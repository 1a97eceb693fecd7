"""Few notes stand below a verdict: the most important, one for each kind and test, in one short line each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import KINDS, DataWarning
from etude.analysis.warnings.values import signed
from etude.analysis.warnings.warning import warning
from etude.present.sentences.notes import note_line, notes_of, short_text
from support.golden import Golden


def outlier(test: str, trial: int = 4) -> DataWarning:
    text, advice = "1 outlier among 20 trials by elapsed (…); kept", "look at what ran beside it"
    return warning("outliers", test, "elapsed", text, advice, [trial], count=1, of=20, farthest=0.33)


def test_there_is_one_note_for_each_kind_the_most_important_first() -> None:
    drift = warning("drift", "a", "elapsed", "it rises", "look", of=20, change=0.05, p=0.001)
    found = notes_of([outlier("b"), outlier("a"), drift, outlier("b", 9)])
    assert [(note.kind, note.tests, note.stands_for) for note in found] == [
        ("drift", ("a",), 1),
        ("outliers", ("b", "a"), 2),
    ]
    assert found[1].firsts[0].trials == (4,)


def test_a_note_on_a_few_tests_has_the_text_of_each_and_equal_ones_once() -> None:
    (found,) = notes_of([outlier("a"), outlier("b", 9), outlier("c")])
    texts = [short_text(each.firsts[0]) for each in notes_of([outlier("a")]) + notes_of([outlier("b", 9)])]
    assert note_line(found, 3) == f"a, c: {texts[0]}; b: {texts[1]}"


def test_a_kind_that_more_than_three_tests_share_has_the_text_of_the_first_one() -> None:
    (found,) = notes_of([outlier(test, trial) for test in "abcd" for trial in (1, 2)])
    assert (found.tests, found.stands_for) == (tuple("abcd"), 8)
    assert note_line(found, 40).startswith("4 of 40 tests: ")


def test_warnings_of_the_whole_experiment_have_a_note_of_their_own() -> None:
    whole = warning("drift", "", "elapsed", "it rises", "look")
    found = notes_of([outlier("a"), whole, warning("drift", "a", "elapsed", "it falls", "look")])
    assert sorted(note.tests for note in found) == [(), ("a",), ("a",)]


def test_a_note_is_made_of_the_figures_and_shorter_than_the_warning(golden: Golden) -> None:
    noted = [
        outlier("a"),
        warning("heavy-tail", "a", "elapsed", "…", "…", count=12, of=50, farthest=2.5),
        warning("drift", "a", "elapsed", "…", "…", of=20, change=-0.05, p=0.001, slower=0),
        warning("warm-up", "a", "elapsed", "…", "…", range(3), first=3, shift=0.12, runs=4),
        warning("late-level", "a", "elapsed", "…", "…", [17, 18], last=2, shift=0.12),
        warning("never-steady", "a", "elapsed", "…", "…", first=0, last=14, change=0.18, p=0.001),
        warning("never-steady", "a", "elapsed", "…", "…", first=3, last=2, change=-0.18, p=0.001),
        warning("bimodal", "a", "elapsed", "…", "…", few=4, many=16, low=0.001, high=0.002, unit="s"),
        warning("autocorrelated", "a", "elapsed", "…", "…", of=50, worth=17.2),
        warning("failed", "a", "", "…", "…", [1, 2], count=2, of=20, how="exit status 1", kept=0),
        warning("too-few", "a", "elapsed", "…", "…", count=1, needed=10),
        warning("drift", "a", "elapsed", "…", "…", of=20, change=0.05, p=0.001, slower=1, machine="n1"),
    ]
    lines = [note_line(note, 1) for each in noted for note in notes_of([each])]
    assert [line for line in lines if not line.startswith("a: ") or len(line) > 100] == []
    assert "--warmup 4" in lines[3]
    golden("\n".join(lines))


def test_what_is_twice_as_much_or_more_is_so_many_times_and_not_above_as_well() -> None:
    one = warning("outliers", "a", "elapsed", "…", "…", [9], count=1, of=40, farthest=11.6)
    assert short_text(one).endswith("12.6 times the median")
    assert [signed(x) for x in (0.23, -0.041, 0.999, 5.0, 11.6)] == [
        "23 % above",
        "4.1 % below",
        "100 % above",
        "6 times",
        "12.6 times",
    ]


def test_a_warning_without_figures_is_a_note_as_it_is() -> None:
    assert short_text(warning("note", "", "", "a line was left out", "")) == "a line was left out"
    assert short_text(warning("shell", "a", "", "too short", "leave out --shell")).endswith("--shell")


warnings = st.builds(
    warning,
    st.sampled_from(list(KINDS)),
    st.sampled_from(["", *"abcdef"]),
    st.sampled_from("mn"),
    st.text(),
    st.text(),
)


@given(st.lists(warnings, max_size=40))
def test_notes_stand_for_no_more_than_there_is_and_every_kind_has_one(given_: list[DataWarning]) -> None:
    found = notes_of(given_)
    assert {note.kind for note in found} == {each.kind for each in given_}
    assert sum(note.stands_for for note in found) <= len(given_)
    assert [note.rank for note in found] == sorted(note.rank for note in found)
    keys = [(note.kind, note.tests) for note in found]
    assert len(set(keys)) == len(keys)
