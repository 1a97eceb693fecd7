"""Which stop programs are judged in memory."""

import pytest

from etude.errors import InputError, UsageError
from etude.script.stop import LIMITED, check_metrics, evaluate_stop_program, own_predicate


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


RULE = ["getstats", "--predicate", "$hw < 5", "--columns", "write_iop,elapsed"]


def test_a_rule_that_names_no_metric_of_the_test_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="write_iop; did you mean write_iops"):
        check_metrics("t", RULE, {"elapsed": 1, "write_iops": 1}, False)
    check_metrics("t", RULE, {"elapsed": 1, "write_iop": 0}, False)


def test_a_rule_on_a_metric_without_any_value_is_refused_once_it_is_asked() -> None:
    with pytest.raises(InputError, match="write_iop"):
        check_metrics("t", RULE, {"elapsed": 5, "write_iop": 0}, True)


@pytest.mark.parametrize(
    "words", [[], ["./judge", "--columns", "x"], ["getstats", "--dump", "--predicate", "1"]]
)
def test_other_programs_judge_what_they_like(words: list[str]) -> None:
    check_metrics("t", words, {"elapsed": 5, "user": 5, "system": 5}, True)


FIGURE_1 = [
    "getstats",
    "--predicate",
    '("$delta" < 0.05 * $mean) || ($count > 3)',
    "--columns",
    "elapsed,user",
]


def judged(elapsed: list[float], user: list[float]) -> tuple[bool, str]:
    samples = {"elapsed": elapsed, "user": user}
    return evaluate_stop_program(FIGURE_1, samples.__getitem__, lambda program: None)


def test_a_rule_that_only_its_count_of_trials_fulfils_names_that_part_and_the_metric() -> None:
    enough, why = judged([1.0, 1.0, 1.0, 1.001], [1.0, 2.0, 3.0, 4.0])
    assert enough
    assert why.startswith(f"{LIMITED} $count > 3")
    assert "user ± 82 %" in why
    assert "elapsed" not in why


def test_a_rule_whose_aim_is_reached_names_no_limit() -> None:
    enough, why = judged([1.0, 1.0, 1.0, 1.001], [2.0, 2.0, 2.0, 2.001])
    assert enough
    assert not why.startswith(LIMITED)
    assert not judged([1.0, 2.0], [1.0, 2.0])[0]
