"""`etude surface`: a response over configurations."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.cli.shared_options import only_with_rehearse
from etude.errors import UsageError
from etude.osutil.processes import one_thread


def run(options: argparse.Namespace) -> int:
    """Map, or show a map again; returns the exit code."""
    only_with_rehearse(options, "like", "maps", "fixed_cost")
    if options.simulate is not None and options.spec is not None:
        raise UsageError("--simulate replaces SPEC: leave out one of them")
    if options.simulate is None and options.spec is None:
        raise UsageError("expected SPEC.toml, a results directory to show again, or --simulate NAME")
    if options.spec is not None and (Path(options.spec) / "experiment.json").exists():
        from etude.cli.capacity.show_results import show_stored_map

        return show_stored_map(options)
    one_thread()
    from etude.cli.capacity.show_results import check_figures

    check_figures(options)
    from etude.cli.capacity.surface_run import map_surface, rehearse_surface

    return rehearse_surface(options) if options.rehearse else map_surface(options)
