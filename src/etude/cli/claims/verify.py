"""`etude claims verify`: the claims of a bundle, run again on this machine."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from etude.analysis.snapshot_differences import Differences
from etude.api.claims_verification import verify_claims
from etude.claims.claims_file import Experiment
from etude.cli.shared_options import UNDECIDED
from etude.present.sections.machine import differences_blocks
from etude.present.sections.verification import verification_document
from etude.present.terminal import Terminal, show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Show what differs, run, show both results; the code is that of our verdicts."""
    screen = Terminal()

    def announce(found: Differences) -> None:
        if not options.json:
            show(differences_blocks((Path(options.bundle).name, "now"), found, everything=False), screen)

    def observe(experiment: Experiment, trials: int) -> None:
        if not options.json:
            screen.say(f"{experiment.name}: {trials} trials", "aside")

    found = verify_claims(
        options.bundle,
        scale=options.scale,
        directory=options.output,
        budget_s=math.inf if options.budget is None else options.budget,
        announce=announce,
        observe=observe,
    )
    if options.json:
        print_json(verification_document(found.claims, found.differences, found.files, found.scales))
    else:
        show(found.blocks(), screen)
        screen.say_path("Results", str(found.directory))
    return exit_code([v.ours.status for v in found.claims])


def exit_code(statuses: list[str]) -> int:
    """0: all are supported; 1: one is refuted; else 8."""
    if "refuted" in statuses:
        return 1
    return UNDECIDED if "undecided" in statuses else 0
