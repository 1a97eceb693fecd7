"""QUIET in a script: what it has changed is put back when the script ends, and stands in the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etude.machine.quiet.apply_restore import Experiment, recorded_changes
from etude.machine.quiet.table import parse


class ScriptQuiet:
    """What one session of a script has made quiet."""

    def __init__(self) -> None:
        self._experiment = Experiment()

    def on(self, words: Sequence[str], document: dict[str, Any], sitting: int) -> str:
        """Make it quiet, and note in experiment.json what is; returns what was named and cannot be done here.

        Raises:
            EtudeError: an operation failed, or the machine does not allow it; nothing was changed.
        """
        asked = parse(words)
        outcome = self._experiment.on(asked)
        document.setdefault("quiet", []).append(
            {
                "sitting": sitting,
                "by": "script",
                "asked": list(words),
                "operations": recorded_changes() or {},
                "unavailable": outcome.unavailable,
            }
        )
        missing = [f"{name}: {why}" for name, why in outcome.unavailable.items() if name in asked.named]
        return f"QUIET: not on this machine: {'; '.join(missing)}" if missing else ""

    def off(self) -> None:
        """Put back what this script has changed.

        Raises:
            EtudeError: something does not go back; the ledger keeps it.
        """
        self._experiment.off()
