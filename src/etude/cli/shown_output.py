"""`--show-output`: what the measured programs print, after each of their runs, in place of the live display."""

from __future__ import annotations

from typing import TextIO

from etude.experiment.bench import Event
from etude.experiment.ledger import Ledger


class ShownOutput:
    """An observer that prints the captured output of each trial."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def observe(self, event: Event, ledger: Ledger) -> None:
        """Print what came of a trial."""
        if event.what != "trial":
            return
        for test in event.tests:
            for m in ledger.trials(test.name)[-1].measurements:
                for captured in (m.stdout, m.stderr):
                    self._stream.write((captured or {}).get("tail", ""))
        self._stream.flush()

    def close(self) -> None:
        """Nothing is left to take away."""
