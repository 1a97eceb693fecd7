"""Progress of claims that are run, and the exit code of their verdicts."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from etude.claims.claims_file import Experiment
from etude.cli.shared_options import UNDECIDED
from etude.experiment.bench import Event
from etude.experiment.progress import Progress
from etude.present.progress.bench import Display, ScriptDisplay
from etude.present.sentences.claims import look_line
from etude.present.terminal import Terminal


class LookDisplay:
    """Progress on standard error, unless quiet: a line for each look, and the display of its trials."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._screen = Terminal(sys.stderr, progress=True)
        self._display: Display | ScriptDisplay | None = None

    def look(self, experiment: Experiment, trials: int) -> None:
        """A look at an experiment begins."""
        if self._quiet:
            return
        self.close()
        self._screen.say(look_line(experiment, trials))
        self._screen.flush()
        self._display = ScriptDisplay(sys.stderr) if experiment.kind == "script" else Display(sys.stderr)

    def observe(self, event: Event, progress: Progress) -> None:
        """An event of its commands."""
        if self._display is not None and event.what != "resumed":  # each look but the first resumes
            self._display.observe(event, progress)

    def close(self) -> None:
        """Take the display away."""
        if self._display is not None:
            self._display.close()
            self._display = None


def exit_code(statuses: Sequence[str]) -> int:
    """The exit code of verdicts."""
    return 1 if "refuted" in statuses else UNDECIDED if "undecided" in statuses else 0
