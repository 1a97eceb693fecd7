"""What a policy is tried on: a real harness or a simulated server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from etude.peak.task import Trial, TrialRequest
from etude.peak.window import Window

Enough = Callable[[Sequence[Window]], bool]
"""Asked after each window with all of the trial so far: whether it may end."""


class Bench(Protocol):
    """Makes trials. A failure of the system under test is part of the trial; what keeps the bench itself from working
    is an `InputError` or a `MachineRefuses` of etude.errors."""

    def run(self, offer: TrialRequest, enough: Enough) -> Trial:
        """Offer a load, until its time is over or `enough` says so."""
        ...
