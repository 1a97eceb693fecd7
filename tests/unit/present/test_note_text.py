"""Few notes stand below a verdict: the most important, one for each kind and test, in one short line each."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from etude.analysis.warnings import KINDS, DataWarning, facts
from etude.analysis.warnings.warning import warning
from etude.present.sentences.notes import note_line, notes_of, short_text
from etude.present.sentences.phrases import signed
from support.golden import Golden


def outlier(test: str, trial: int = 4) -> DataWarning:
    return warning("outliers", test, "elapsed", facts.FarValues(1, 20, 0.33), [trial])


def drifts(change: float) -> facts.DriftOfValues:
    return facts.DriftOfValues(20, change, 0.001, change > 0, "Theil-Sen", 1)


def test_there_is_one_note_for_each_kind_the_most_important_first() -> None:
    drift = warning("drift", "a", "elapsed", drifts(0.05))
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
    whole = warning("drift", "", "elapsed", drifts(0.05))
    found = notes_of([outlier("a"), whole, warning("drift", "a", "elapsed", drifts(-0.05))])
    assert sorted(note.tests for note in found) == [(), ("a",), ("a",)]


def test_a_note_is_made_of_the_figures_and_shorter_than_the_warning(golden: Golden) -> None:
    noted = [
        outlier("a"),
        warning("heavy-tail", "a", "elapsed", facts.FarValues(12, 50, 2.5)),
        warning("drift", "a", "elapsed", drifts(-0.05)),
        warning("warm-up", "a", "elapsed", facts.OtherEnds(3, 0.12, 0, 0.0, "", (4,)), range(3)),
        warning("late-level", "a", "elapsed", facts.OtherEnds(0, 0.12, 2, 0.12, "", (17,)), [17, 18]),
        warning("never-steady", "a", "elapsed", facts.NeverSteady(0, 14, 0.18, 0.001)),
        warning("never-steady", "a", "elapsed", facts.NeverSteady(3, 2, -0.18, 0.001)),
        warning("bimodal", "a", "elapsed", facts.TwoGroups(4, 16, 0.001, 0.002, "s", 20, False)),
        warning("autocorrelated", "a", "elapsed", facts.AutocorrelatedTrials(50, 17.2)),
        warning("failed", "a", "", facts.FailedTrials((("exit status 1", (1, 2)),), 20, 0), [1, 2]),
        warning("too-few", "a", "elapsed", facts.TooFew(1, 10)),
        replace(warning("drift", "a", "elapsed", drifts(0.05)), machine="n1"),
    ]
    lines = [note_line(note, 1) for each in noted for note in notes_of([each])]
    assert [line for line in lines if not line.startswith("a: ") or len(line) > 100] == []
    assert "--warmup 4" in lines[3]
    golden("\n".join(lines))


def test_what_is_twice_as_much_or_more_is_so_many_times_and_not_above_as_well() -> None:
    one = warning("outliers", "a", "elapsed", facts.FarValues(1, 40, 11.6), [9])
    assert short_text(one).endswith("12.6 times the median")
    assert [signed(x) for x in (0.23, -0.041, 0.999, 5.0, 11.6)] == [
        "23 % above",
        "4.1 % below",
        "100 % above",
        "6 times",
        "12.6 times",
    ]


def test_a_warning_without_figures_is_a_note_as_it_is() -> None:
    assert (
        short_text(warning("note", "", "", facts.RecordedSentence("a line was left out")))
        == "a line was left out"
    )
    assert short_text(warning("shell", "a", "", facts.WithinShell())).endswith("more to do")


warnings = st.builds(
    warning,
    st.sampled_from(list(KINDS)),
    st.sampled_from(["", *"abcdef"]),
    st.sampled_from("mn"),
    st.builds(facts.RecordedSentence, st.text()),
)


@given(st.lists(warnings, max_size=40))
def test_notes_stand_for_no_more_than_there_is_and_every_kind_has_one(given_: list[DataWarning]) -> None:
    found = notes_of(given_)
    assert {note.kind for note in found} == {each.kind for each in given_}
    assert sum(note.stands_for for note in found) <= len(given_)
    assert [note.rank for note in found] == sorted(note.rank for note in found)
    keys = [(note.kind, note.tests) for note in found]
    assert len(set(keys)) == len(keys)
