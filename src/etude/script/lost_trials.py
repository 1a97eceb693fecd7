"""Trials that a script's state counts and that its results have lost: made again, or refused."""

from __future__ import annotations

from etude.errors import InputError
from etude.experiment.progress import trials_of
from etude.results.results import Results
from etude.script.checkpoint import Saved
from etude.units.formatting import counted


def forget_lost_trials(saved: Saved, results: Results) -> list[str]:
    """Take out of the state which trials are not on disk any more, so that the test under way makes them again.

    Returns:
        A sentence for each test that has lost some.

    Raises:
        InputError: a test that has ended has lost some; it makes none again.
    """
    under_way = {test.name: test for test in saved.state.tests}
    entries = {entry["name"]: entry for entry in results.experiment["tests"]}
    said = []
    for name, kept in saved.kept.items():
        test, entry = under_way.get(name), entries.get(name, {})
        found = [trial.first.trial for trial in trials_of(results.measurements.get(name, ())) if trial.kept]
        lost = kept - sum(test is None or trial < test.trial for trial in found)
        if lost <= 0:
            continue
        if test is None or entry.get("ended"):
            place = results.directory / entry.get("directory", name) / "results.jsonl"
            raise InputError(
                f"{place}: holds {kept - lost} of the {counted(kept, 'trial')} of test {name!r}, which has ended; "
                "restore it from a copy, or begin a new experiment"
            )
        test.kept, test.made = max(test.kept - lost, 0), max(test.made - lost, 0)
        said.append(f"test {name!r}: {counted(lost, 'trial')} of {kept} not on disk any more: made again")
    return said
