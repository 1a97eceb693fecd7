"""`etude profile`: summarise a recording: calls, bytes, time, files."""

from __future__ import annotations

import argparse
from pathlib import Path

from etude.cli.figures.options import PROFILE_USUAL_TOP
from etude.errors import UsageError
from etude.figures.data import Figure
from etude.figures.iotrace import figure_beside, figure_of
from etude.figures.save import check_format, save
from etude.figures.style import Style
from etude.iotrace.comparison import compare_profiles
from etude.iotrace.comparison_document import beside_document
from etude.iotrace.document import document
from etude.iotrace.profile import Profile, profile_of
from etude.iotrace.reader import read_trace
from etude.present.sections.profile import comparison_blocks, profile_blocks
from etude.present.terminal import show
from etude.present.to_json import print_json


def run(options: argparse.Namespace) -> int:
    """Read, add up, show."""
    if options.other is None and (options.script or options.roll):
        raise UsageError(
            "--script and --roll show sizes beside two traces: give the recording of the replay as well"
        )
    if options.figure is not None:
        check_format(options.figure)
    return _one(options) if options.other is None else _two(options)


def _one(options: argparse.Namespace) -> int:
    profile = _profile(options.trace, options)
    said: list[str] = []
    if options.figure is not None:
        said = _save(figure_of(profile), options.figure)
    if options.json:
        print_json(document(profile, options.top))
    else:
        top = options.top or PROFILE_USUAL_TOP
        show(profile_blocks(profile, top, figure=options.figure, said=said))
    return 0


def _two(options: argparse.Namespace) -> int:
    both = _profile(options.trace, options), _profile(options.other, options, beside=True)
    script, roll = (None if path is None else Path(path) for path in (options.script, options.roll))
    found = compare_profiles(*both, script=script, roll=roll)
    said: list[str] = []
    if options.figure is not None:
        names = ("original", "replay") if found.replay else ("A", "B")
        words = [list(each.trace.header["argv"]) for each in both]
        alike = found.replay or found.same_program
        title = " ".join(words[0]) if alike else " and ".join(Path(each[0]).name for each in words)
        said = _save(figure_beside(*both, names, title), options.figure)
    if options.json:
        print_json(beside_document(found, options.top))
    else:
        top = options.top or PROFILE_USUAL_TOP
        show(comparison_blocks(found, top, figure=options.figure, said=said))
    return 0


def _profile(path: str, options: argparse.Namespace, *, beside: bool = False) -> Profile:
    return profile_of(read_trace(Path(path), partial=options.partial, replayed=beside))


def _save(figure: Figure, path: str) -> list[str]:
    return save(figure, path, Style())
