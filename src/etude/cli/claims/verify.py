"""`etude claims verify`: the claims of a bundle, run again on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.analysis.snapshot_differences import Differences
from etude.api.call import plain
from etude.api.claims_verification import verify_claims
from etude.claims.stored_claims import has_claims
from etude.cli.claims.look_display import LookDisplay, exit_code
from etude.errors import EtudeError, InputError, UsageError
from etude.experiment.session import new_directory
from etude.osutil.processes import ending_by_signals, naming_results
from etude.present.page.content import write
from etude.present.section import FilePath
from etude.present.sections.verification import announcement, verification_document
from etude.present.terminal import show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Show what differs, run, show both results; the code is that of our verdicts."""
    bundle = Path(options.bundle)
    place = (
        Path(options.output)
        if options.output
        else new_directory(None, f"claims-{bundle.name.partition('.')[0]}")
    )
    display = LookDisplay(options.quiet)

    def announce(found: Differences) -> None:
        if not options.json:
            show(announcement(bundle.name, found))

    def on_disk(error: EtudeError | None) -> str:
        return (
            f"results are in {place}; the same command with -o {place} resumes"
            if has_claims(place) and not isinstance(error, InputError | UsageError)
            else ""
        )

    try:
        with ending_by_signals(), naming_results(on_disk):
            found = plain(verify_claims)(
                bundle,
                scale=options.scale,
                directory=place,
                budget_s=options.budget,
                announce=announce,
                observe=display.look,
                observe_trials=display.observe,
            )
    finally:
        display.close()
    if options.page:
        write(Path(options.page), found.page())
    if options.json:
        print_json(verification_document(found.claims, found.differences, found.files, found.scales))
    else:
        page = [FilePath("Page", options.page, "aside")] if options.page else []
        show([*found.blocks(), FilePath("Results", str(place), "aside"), *page])
    return exit_code([v.ours.status for v in found.claims])
