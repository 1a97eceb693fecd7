"""What a report says, whatever it is written as."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etude.analysis.cross_session import NotSupported
from etude.analysis.verdict import not_compared
from etude.analysis.verdict_options import VerdictOptions
from etude.experiment.plan import make_plan
from etude.experiment.run import run
from etude.present.export import as_html, to_json, to_markdown
from etude.present.page import content_of, gather
from etude.present.page.answers import QUESTIONS, Answer, answers_of, headline
from etude.present.page.gather import Gathered
from etude.present.section import Section
from etude.present.sentences.comparison import UNPAIRED, precision_line
from etude.present.sentences.status import status_of
from etude.present.sentences.verdict import answer_lines, not_compared_lines, status_line
from etude.present.sentences.warnings import found_text
from etude.units.formatting import percent
from support import pages
from support.fakes import World, around
from support.golden import Golden
from support.places import DATA


def answers(found: Gathered) -> dict[str, str]:
    return {answer.key: " ".join(answer.sentences) for answer in answers_of(found)}


def of(*paths: Path) -> Gathered:
    return gather(list(map(str, paths)))


def test_a_reader_who_sees_only_the_page_finds_an_answer_to_each_question(
    tmp_path: Path, golden: Golden
) -> None:
    told = answers(of(pages.plain(tmp_path / "r")))
    facts = {
        "what": ("B", "A", "elapsed", "sort 0"),
        "where": ("Example CPU", "8 CPUs", "16.00 GiB"),
        "often": ("20 trials", "20 pairs", "2026-01-01 10:00"),
        "real": ("not shown", "95 %", "0.90–1.32", "p = .38"),
        "large": ("1.09 ×", "0.90–1.32"),
        "against": ("trial 9",),
    }
    assert list(told) == list(facts)
    for key, those in facts.items():
        assert [fact for fact in those if fact not in told[key]] == []
    golden("\n".join(f"{key}: {said}" for key, said in told.items()))


def test_what_is_not_shown_is_not_called_equal(tmp_path: Path, golden: Golden) -> None:
    generator = np.random.default_rng(3)
    samples = {name: generator.lognormal(-4.6, 0.05, 12).tolist() for name in "AB"}
    found = of(pages.results(tmp_path / "r", samples))
    (comparison,) = found.verdicts[0].comparisons
    assert not comparison.differs
    smallest = comparison.ratio.smallest_found()
    assert smallest is not None
    assert percent(smallest) in answers(found)["real"]
    golden(answers(found)["real"])


def test_every_question_has_an_answer_for_whatever_can_be_read(
    tmp_path: Path, repository_data: list[Path]
) -> None:
    assert len(repository_data) > 15
    for path in repository_data:
        found = gather([str(path)])
        content = content_of(found)
        assert [answer.key for answer in content.answers] == list(QUESTIONS)
        assert all(sentence.strip() for answer in content.answers for sentence in answer.sentences)
        assert content.headline


@pytest.fixture
def repository_data() -> list[Path]:
    """What other programs wrote, as far as it is read without a name of its format."""
    from etude.errors import EtudeError

    places = sorted((DATA / "readers").iterdir())
    found = []
    for place in places:
        try:
            gather([str(place)])
        except EtudeError:
            continue
        found.append(place)
    return found


def test_a_result_without_any_trial_says_so(tmp_path: Path, golden: Golden) -> None:
    content = content_of(of(pages.results(tmp_path / "r", {})))
    assert content.tests.rows == ()
    golden("\n".join(content.headline))


def test_tests_that_are_not_compared_show_no_difference(tmp_path: Path, golden: Golden) -> None:
    found = of(pages.plain(tmp_path / "r", compared=False))
    assert found.verdicts[0].comparisons == ()
    assert "--reference" in answers(found)["real"]
    golden(answers(found)["real"])


def test_a_reference_makes_a_comparison_that_is_called_unpaired(tmp_path: Path, golden: Golden) -> None:
    directory = pages.plain(tmp_path / "r", compared=False)
    found = gather([str(directory)], verdict_options=VerdictOptions(reference="A", full=True))
    (comparison,) = found.verdicts[0].comparisons
    assert (comparison.base, comparison.other, comparison.ratio.method) == ("A", "B", "unpaired")
    told = answers(found)
    assert UNPAIRED in told["against"]
    golden(f"{told['what']}\n{told['often']}")


def expectations(found: Gathered) -> dict[str, str]:
    return {each.test: each.met for each in content_of(found).expectations}


@pytest.mark.parametrize(
    ("expect", "met"),
    [
        ("elapsed < 50 ms", "met"),
        ("elapsed < 1 ms", "not met"),
        ("elapsed < 11.9 ms", "undecided"),
        ("elapsed > baseline", "met"),
        ("elapsed > baseline * 1.5", "not met"),
        ("slower than A", "to be judged"),
        ("bandwidth > 3", "to be judged"),
        ("elapsed < 3 apples", "to be judged"),
    ],
)
def test_an_expectation_is_judged_where_it_is_a_bound(tmp_path: Path, expect: str, met: str) -> None:
    generator = np.random.default_rng(3)
    first = generator.lognormal(np.log(0.010), 0.02, 20).tolist()
    second = generator.lognormal(np.log(0.0119), 0.02, 20).tolist()
    entries = {"B": {"expect": expect, "purpose": "why"}}
    directory = pages.results(tmp_path / "r", {"A": first, "B": second}, entries=entries)
    assert expectations(gather([str(directory)])) == {"B": met}


def test_purpose_expectation_and_result_stand_side_by_side(tmp_path: Path) -> None:
    found = of(pages.plain(tmp_path / "r"))
    first, second = content_of(found).expectations
    entry = (found.verdicts[0].subject.experiment or {})["tests"][0]
    assert (first.purpose, first.expect, first.met) == (entry["purpose"], "elapsed < 50 ms", "met")
    assert "20 trials" in first.result
    assert second.met == "undecided"
    assert "1.1" in second.why


def test_later_results_are_compared_with_the_first_and_their_machines_too(tmp_path: Path) -> None:
    old = pages.plain(tmp_path / "old")
    new = pages.plain(tmp_path / "new", machine=pages.CHANGED)
    found = gather([str(old), str(new)], between_sessions=0.03)
    content = content_of(found)
    (table,) = content.differences
    assert [list(row) for row in table.rows] == [["system.kernel_release", "6.1.0", "6.12.0"]]
    assert len(content.comparisons.rows) == 4  # one within each result, two across
    told = {answer.key: " ".join(answer.sentences) for answer in content.answers}
    assert "1 difference" in told["where"]
    assert "differ (see Machine)" in told["against"]


def test_results_that_cannot_be_compared_say_why(tmp_path: Path) -> None:
    old, new = pages.plain(tmp_path / "old"), pages.plain(tmp_path / "new")
    found = of(old, new)
    refused = [across.found for across in found.across]
    assert refused
    for each in refused:
        assert isinstance(each, NotSupported)
        assert each.reason in answers(found)["real"]


def test_every_warning_leads_to_its_test_and_the_trials_that_it_names(tmp_path: Path) -> None:
    content = content_of(gather([str(pages.plain(tmp_path / "r"))]))
    (outlier,) = [each for each in content.warnings if each.kind == "outliers"]
    assert (outlier.test, outlier.trials, outlier.chart) == ("A", (9,), "test-1-1")
    assert outlier.advice


def test_what_many_tests_share_is_still_said_of_each(tmp_path: Path) -> None:
    samples = {name: [0.01, 0.02, 0.03] for name in "ABCDEF"}
    content = content_of(gather([str(pages.results(tmp_path / "r", samples, compared=False))]))
    assert sorted(each.test for each in content.warnings if each.kind == "too-few") == list("ABCDEF")


def test_many_comparisons_are_counted_and_not_all_told(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    samples = {f"t{n}": generator.lognormal(-4.6 + 0.2 * (n > 6), 0.02, 10).tolist() for n in range(14)}
    content = content_of(gather([str(pages.results(tmp_path / "r", samples))]))
    assert content.headline[0].startswith("7 of 13 ")
    assert len(content.comparisons.rows) == 13


def test_comparisons_of_fewer_pairs_are_not_taken_for_all(tmp_path: Path) -> None:
    samples = {name: [0.01, 0.011, 0.012, 0.013][:count] for name, count in (("A", 4), ("B", 3), ("C", 4))}
    often = answers(of(pages.results(tmp_path / "r", samples)))["often"]
    assert re.search(r"\b3\b[^.]*\b4 pairs", often)


def test_answers_are_data() -> None:
    assert Answer("what", "?", ("a",)) == Answer("what", "?", ("a",))


def scripted(directory: Path, ended: str = "as many as requested", **changes: Any) -> Path:
    """Two tests of a script that ran one after the other."""
    samples = {name: (0.01 + 0.0001 * np.arange(12)).tolist() for name in "AB"}
    entries = {name: {"ended": ended} for name in "AB"}
    return pages.results(directory, samples, compared=False, entries=entries, **changes)


def test_tests_that_were_not_compared_say_why_wherever_the_verdict_stands(tmp_path: Path) -> None:
    found = of(scripted(tmp_path / "r"))
    (verdict,) = found.verdicts
    left = not_compared(verdict)
    assert left is not None
    assert (left.tests, left.why, left.script) == (("A", "B"), "one after the other", True)
    (line,) = not_compared_lines(verdict)
    assert "INTERLEAVE" in line
    assert line in headline(found)
    assert line in answers(found)["real"]
    assert line in answer_lines(verdict)
    assert line in to_markdown(verdict)
    assert line in as_html(verdict).replace("&#x27;", "'")
    document = json.loads(to_json(verdict))
    assert document["not_compared"]["tests"] == ["A", "B"]
    assert line in document["text"]


@pytest.mark.parametrize(("values", "why"), [((0.0,) * 12, None), ((0.01,), "too few pairs")])
def test_pairs_whose_values_have_no_ratio_are_not_too_few(
    tmp_path: Path, values: tuple[float, ...], why: str | None
) -> None:
    (verdict,) = of(pages.results(tmp_path / "r", {"A": [0.01] * len(values), "B": list(values)})).verdicts
    assert verdict.comparisons == ()
    left = not_compared(verdict)
    assert (left and left.why) == why


def test_a_page_says_what_the_terminal_says_first_and_why_tests_ended(tmp_path: Path) -> None:
    times = {"A": around(0.01, *np.random.default_rng(1).normal(0, 0.2, 99).tolist())}
    asked = make_plan(("A",), seed=1, precision=0.01, max_trials=12)
    run(asked, directory=tmp_path / "r", make_engine=World(times).make_engine)
    found = of(tmp_path / "r")
    (verdict,) = found.verdicts
    assert status_of(verdict) == ("not converged",)
    (missed,) = [line for test in verdict.tests if (line := precision_line(test, verdict.asked))]
    assert headline(found)[0] == status_line(verdict)
    assert missed in headline(found)
    assert json.loads(to_json(verdict))["status"] == ["not converged"]
    assert [line for line in (status_line(verdict), missed) if line not in to_markdown(verdict)] == []
    stopped_by = headline(of(scripted(tmp_path / "s", ended="the maximum of 12 trials")))
    assert any("A and B" in line and "the maximum of 12 trials" in line for line in stopped_by)


def test_a_limit_that_ended_a_script_s_test_is_told_wherever_the_verdict_stands(tmp_path: Path) -> None:
    samples = {name: (0.01 + 0.0001 * np.arange(12)).tolist() for name in "AB"}
    entries = {"A": {"ended": "stopped by 7", "limited": True}, "B": {"ended": "held", "limited": False}}
    found = of(pages.results(tmp_path / "r", samples, compared=False, entries=entries))
    (verdict,) = found.verdicts
    assert status_of(verdict) == ("not converged",)
    assert [
        (each.kind, each.test, found_text(each)) for each in verdict.every if each.kind == "not-converged"
    ] == [("not-converged", "A", "stopped by 7")]
    document = json.loads(to_json(verdict))
    assert [test["ended"] for test in document["tests"]] == ["stopped by 7", "held"]
    assert headline(found)[0] == status_line(verdict)
    assert [text for text in (to_markdown(verdict), *document["text"]) if "A: stopped by 7" in text]


def test_a_test_whose_neighbour_has_no_trial_says_why_it_is_not_compared(tmp_path: Path) -> None:
    failure = {"trial": 1, "at": "SETUP", "why": "SETUP failed", "log": "B/hooks.log"}
    entries = {
        "A": {"ended": "as many as requested"},
        "B": {"ended": "given up: SETUP failed", "failure": failure},
    }
    (verdict,) = of(pages.results(tmp_path / "r", {"A": [0.01] * 12, "B": []}, entries=entries)).verdicts
    left = not_compared(verdict)
    assert left is not None
    assert list(not_compared_lines(verdict))
    assert "failed trials" in status_of(verdict)
    assert (verdict.every[0].kind, verdict.every[0].test) == ("failed", "B")


@pytest.mark.parametrize("kind", ["peak", "surface"])
def test_a_search_opens_with_its_own_answer_and_claims_no_difference(tmp_path: Path, kind: str) -> None:
    plan = {"kind": kind, "primary": "elapsed", "harness": "simulate mm1:700", "text": "simulate mm1:700"}
    found = of(scripted(tmp_path / "r", plan=plan))
    assert headline(found, ("Peak rate: 5/s.",)) == ("Peak rate: 5/s.",)
    own = {
        "often": ("3 loads: 8 trials.",),
        "real": ("It lies between 4 and 6/s.",),
        "large": ("Peak rate: 5/s.",),
    }
    page = answers_of(found, (Section("peak-0", "Peak rate", (), ("Peak rate: 5/s.",), own),))
    told = {answer.key: answer.sentences for answer in page}
    assert {key: told[key][: len(lines)] for key, lines in own.items()} == own
    assert "included of" not in " ".join(told["often"])
    assert next(answer.question for answer in page if answer.key == "real") != QUESTIONS["real"]
    assert "too-few" not in {warning.kind for verdict in found.verdicts for warning in verdict.every}
    assert "mm1:700" in content_of(found).banner
    assert content_of(of(scripted(tmp_path / "s"))).banner == ""
    assert "Example CPU" not in told["where"][0]
    assert "mm1:700" in told["where"][0]
    assert not_compared(found.verdicts[0]) is None


def test_the_page_names_the_file_system_under_test_and_not_that_of_the_host(tmp_path: Path) -> None:
    places = {"A": {"type": "xfs", "mount_point": "/mnt/t"}, "B": {"type": "ext4", "mount_point": "/mnt/t"}}
    entries = {name: {"file_system": place} for name, place in places.items()}
    samples = {name: [0.01, 0.011, 0.012] for name in "AB"}
    where = answers(of(pages.results(tmp_path / "r", samples, entries=entries)))["where"]
    assert [fact for fact in ("A: xfs at /mnt/t", "B: ext4 at /mnt/t") if fact not in where] == []
    assert "/dev/sda1" not in where
    assert "ext4 on /dev/sda1" in answers(of(pages.results(tmp_path / "s", samples)))["where"]
