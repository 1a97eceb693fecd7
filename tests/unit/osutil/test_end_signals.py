"""Whatever ends a long measurement, its last line says what is on disk."""

from __future__ import annotations

import signal

import pytest

from etude.errors import EtudeError, InputError, Interrupted
from etude.osutil.processes import EndedBySignal, naming_results


def clause(error: EtudeError | None) -> str:
    return "3 trials on disk" if error is None or "full" in str(error) else ""


@pytest.mark.parametrize(
    ("end", "number"),
    [(KeyboardInterrupt(), signal.SIGINT), (EndedBySignal(signal.SIGTERM), signal.SIGTERM)],
    ids=["SIGINT", "SIGTERM"],
)
def test_a_signal_names_itself_and_what_is_on_disk(end: BaseException, number: signal.Signals) -> None:
    with pytest.raises(Interrupted) as found, naming_results(clause):
        raise end
    assert found.value.exit_code == 128 + number
    assert number.name in str(found.value)
    assert str(found.value).endswith("3 trials on disk")


def test_an_error_has_the_clause_once_and_keeps_its_class() -> None:
    with pytest.raises(InputError) as found, naming_results(clause):
        raise InputError("full")
    assert str(found.value) == "full; 3 trials on disk"


def test_where_there_is_no_clause_the_error_stays_as_it_was() -> None:
    with pytest.raises(InputError) as found, naming_results(clause):
        raise InputError("no harness")
    assert str(found.value) == "no harness"
