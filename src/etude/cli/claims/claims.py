"""`etude claims new`, `check` and `run`: claims files made, checked and decided."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.api.call import plain
from etude.api.claims import claims
from etude.claims.check import problems
from etude.claims.claims_file import read_claims
from etude.claims.cost import costs
from etude.claims.draft import as_toml, draft
from etude.claims.run import STATE
from etude.cli.claims.look_display import LookDisplay, exit_code
from etude.cli.claims.report import run as run_report
from etude.cli.claims.verify import run as run_verify
from etude.errors import EtudeError, InputError, Interrupted, UsageError, cannot_write
from etude.experiment.session import new_directory
from etude.osutil.files import replace_file
from etude.osutil.processes import ending_by_signals, naming_results
from etude.present.section import FilePath
from etude.present.sections.claims import check_blocks, claims_document
from etude.present.sentences.claims import bound_sentence
from etude.present.terminal import show
from etude.present.to_json import print_json

__all__ = ["run_check", "run_new", "run_report", "run_run", "run_verify"]


def run_new(options: argparse.Namespace) -> int:
    """Make a claims file."""
    made = draft([Path(each) for each in options.results])
    text = as_toml(made, bound_sentence)
    if options.output is None:
        print(text, end="")
        return 0
    place = Path(options.output)
    for path, content in ((place, text), *((place.parent / name, each) for name, each in made.files.items())):
        if path.exists():
            raise UsageError(f"{path}: exists; name another file with -o")
        try:
            replace_file(path, content.encode("utf-8", "surrogateescape"))
        except OSError as error:
            raise cannot_write(path, error) from None
    return 0


def run_check(options: argparse.Namespace) -> int:
    """Check; 1 if anything is missing."""
    file = read_claims(Path(options.file), options.scale)
    chosen = file.chosen(tuple(options.ids))
    names = dict.fromkeys(claim.experiment for claim in chosen)
    found = [error for name in names for error in problems(file, file.experiments[name])]
    pilot = Path(options.pilot) if options.pilot is not None else None
    show(check_blocks(found, costs(file, chosen, pilot), pilot is not None))
    return 1 if found else 0


def run_run(options: argparse.Namespace) -> int:
    """Decide the claims, and show the verdicts."""
    file = read_claims(Path(options.file), options.scale)
    file.chosen(tuple(options.ids))
    place = Path(options.output) if options.output else new_directory(None, f"claims-{file.path.stem}")
    display = LookDisplay(options.quiet)

    def on_disk(error: EtudeError | None) -> str:
        return (
            f"results are in {place}; the same command with -o {place} resumes"
            if (place / STATE).exists() and not isinstance(error, InputError | UsageError)
            else ""
        )

    try:
        with ending_by_signals(), naming_results(on_disk):
            found = plain(claims)(
                options.file,
                options.ids,
                scale=options.scale,
                directory=place,
                budget_s=options.budget,
                observe=display.look,
                observe_trials=display.observe,
            )
    except Interrupted as error:  # the experiment's own advice does not resume the claims
        told = str(error).partition(";")[0]
        raise Interrupted(error.exit_code - 128, f"{told}; {on_disk(None)}") from None
    finally:
        display.close()
    if options.json:
        print_json(claims_document(found.file, found.results, place))
    else:
        show([*found.section().blocks, FilePath("Results", str(place), "aside")])
    return exit_code([result.status for result in found.results])
