"""Searches and maps as they are shown, with the files of their figures."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from etude.errors import MachineRefuses
from etude.figures.data import Figure
from etude.figures.save import save
from etude.figures.style import Style
from etude.figures.surface import figures_of
from etude.peak.task import CALIBRATION
from etude.present.section import Block, FilePath
from etude.present.sections.peak import (
    FORMAT,
    VERSION,
    Search,
    peak_section,
    search_document,
    search_figures,
    stored_search,
)
from etude.present.sections.peaks import figure_of, named_apart
from etude.present.sections.surface import map_blocks, surface_document
from etude.present.sentences.peak import of_map
from etude.present.terminal import show
from etude.present.to_json import print_json
from etude.surface.map_store import MapStore, surface_result_of


def show_stored_searches(options: argparse.Namespace) -> int:
    """Searches and calibrations as they lie on disk; 0 where all targets of searches were met, else 1.

    Raises:
        InputError: a directory holds none.
    """
    found = [stored_search(place) for place in options.harness]
    show_searches(found, options)
    return 0 if all(search.answer.kept or search.policy == CALIBRATION for search in found) else 1


def show_searches(found: Sequence[Search], options: argparse.Namespace) -> None:
    """Print how searches ended, and draw them if asked to.

    Raises:
        MachineRefuses: figures cannot be written; all else has been printed.
    """
    figures = _search_figures(found) if options.figures is not None else {}
    files = saved_figures(figures, options)
    if options.json:
        print_json(
            {
                "format": FORMAT,
                "version": VERSION,
                "searches": [search_document(search) for search in found],
                "figures": {name: str(figure_path(name, options)) for name in figures},
            }
        )
        list(files)
        return
    for search in found:
        show(peak_section(search, several=len(found) > 1))
    show(files)


def _search_figures(found: Sequence[Search]) -> dict[str, Figure]:
    figures = search_figures(found)
    if len(found) > 1 and all(search.trials for search in found):
        figures["searches-over-load"] = figure_of(named_apart(found, [search.place for search in found]))
    return figures


def show_stored_map(options: argparse.Namespace) -> int:
    """A stored map once more; returns the exit code."""
    kept = MapStore(options.spec)
    kept.check_whole("configurations")
    return show_map(kept, options)


def show_map(kept: MapStore, options: argparse.Namespace) -> int:
    """Print and draw a map; 0 where all cells are as they should be, else 1."""
    mapped = surface_result_of(kept)
    end, words = kept.document.get("surface"), of_map(kept, mapped)
    drawn = options.figures is not None and bool(mapped.filled.known.any())
    files = saved_figures(dict(figures_of(mapped)) if drawn else {}, options)
    if options.json:
        head = {
            "format": "etude-surface",
            "version": 1,
            "name": kept.definition.name,
            "results": str(kept.directory),
        }
        told = {"ended": end and end["why"], "simulated": kept.definition.simulated, "status": list(words)}
        print_json(head | told | surface_document(mapped, target=options.target))
        list(files)
    else:
        show(map_blocks(kept, mapped, target=options.target))
        show(files)
        show([FilePath("Results", str(kept.directory), "aside")])
    good = all(sample.kept and sample.state == "measured" for sample in mapped.last.values())
    return 0 if good and mapped.last and end is not None else 1


def figure_path(name: str, options: argparse.Namespace, usual: Path | None = None) -> Path:
    """The file of a figure: in the directory of --figures, else in the usual one."""
    return Path(options.figures or usual or ".") / f"{name}.{options.format}"


def saved_figures(
    figures: Mapping[str, Figure], options: argparse.Namespace, usual: Path | None = None
) -> Iterator[Block]:
    """Draw figures into their files, one after the other, and name each.

    Raises:
        MachineRefuses: they cannot be written.
    """
    for name, figure in figures.items():
        path = figure_path(name, options, usual)
        _make(path.parent)
        save(figure, str(path), Style())
        yield FilePath(f"Figure {name}", str(path), "aside")


def check_figures(options: argparse.Namespace) -> None:
    """Raises MachineRefuses, before anything is measured, where --figures cannot be written to."""
    if options.figures is None:
        return
    place = Path(options.figures)
    _make(place)
    if not os.access(place, os.W_OK | os.X_OK):
        raise MachineRefuses(f"--figures {place}: cannot be written to; name another directory")


def _make(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineRefuses(f"--figures {place}: cannot be made: {error.strerror}") from None
