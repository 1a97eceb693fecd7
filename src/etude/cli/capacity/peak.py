"""`etude peak`: the maximum sustainable load of a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from etude.cli.capacity.peak_harness import parsed, resolve_host, save_harness, short_harness
from etude.cli.shared_options import only_with_rehearse, pool_of
from etude.errors import UsageError
from etude.osutil.processes import one_thread

if TYPE_CHECKING:
    from etude.peak.sources import Source


def run(options: argparse.Namespace) -> int:
    """Search, or show a search again; returns the exit code."""
    if options.speed is not None and options.simulate is None:
        raise UsageError("--speed is for --simulate")
    only_with_rehearse(options, "like", "searches", "fixed_cost")
    if options.simulate is not None and options.harness:
        raise UsageError("--simulate replaces HARNESS: leave out one of them")
    short = short_harness(options)
    if short:
        save_harness(options, short)
    if options.harness and all((Path(word) / "experiment.json").exists() for word in options.harness):
        from etude.cli.capacity.show_results import show_stored_searches

        return show_stored_searches(options)
    if options.simulate is None and not short and len(options.harness) != 1:
        raise UsageError(
            "expected one HARNESS.toml, --url URL or --run COMMAND (or --simulate CURVE, or results directories to "
            "show again)"
        )
    one_thread()
    spec = pool_of(options)
    if spec is not None and short and not options.harness:
        raise UsageError(
            "--pool takes the harness as a file, which its nodes read: write it with --save FILE"
        )
    if spec is not None and (options.rehearse or options.calibrate):
        raise UsageError("--pool is for a search: leave it out with --rehearse and --calibrate")
    source = _source(options, short)
    from etude.cli.capacity.show_results import check_figures

    check_figures(options)
    if spec is not None and source.load_hosts:
        raise UsageError(
            "--pool: its jobs would offer load from the same hosts ([generator] hosts): leave out one of them"
        )
    if spec is None and not options.rehearse:
        resolve_host(options)
    from etude.cli.capacity.peak_run import calibrate, rehearse, search_peak

    if options.rehearse:
        return rehearse(options, source)
    return calibrate(options, source) if options.calibrate else search_peak(options, source)


def _source(options: argparse.Namespace, short: str) -> Source:
    """The source, and its task as the command line changes it. `short`: a harness of options, else empty."""
    from etude.peak.sources import of_harness, of_simulation

    if options.simulate is not None:
        source = of_simulation(options.simulate)
    elif short and not options.harness:
        source = parsed(Path("command-line"), short)
    else:
        source = of_harness(options.harness[0])
    settings = {name: getattr(options, name) for name in _SETTINGS}
    return source.changed(settings | {"budget_s": options.budget}, dict(options.factor))


_SETTINGS = ("seed", "seed_load", "promise", "within", "width", "confidence")
