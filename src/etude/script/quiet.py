"""QUIET in a script: its changes are restored when the script ends, and are recorded in the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from etude.machine.quiet.apply_restore import Experiment, recorded_changes
from etude.machine.quiet.table import parse


class ScriptQuiet:
    """Quiet settings of one session of a script."""

    def __init__(self) -> None:
        self._experiment = Experiment()

    def on(self, words: Sequence[str], document: dict[str, Any], sitting: int) -> str:
        """Make the machine quiet, and record it in experiment.json; returns named operations that are unavailable here.

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
        """Restore the changes of this script.

        Raises:
            EtudeError: an item cannot be restored; it stays in the ledger.
        """
        self._experiment.off()
