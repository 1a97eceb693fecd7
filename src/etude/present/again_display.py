"""A repetition on the screen, below its new verdict."""

from __future__ import annotations

import json
from pathlib import Path

from etude.analysis.repetition import Repetition
from etude.analysis.verdict import Verdict
from etude.present import again_text
from etude.present.table_layout import Column
from etude.present.terminal import Terminal
from etude.present.verdict_display import show


def show_repetition(found: Repetition, first: Path, path: Path, now: Verdict, as_json: bool) -> None:
    """Print the new verdict, the table and what is reproduced; or all of it as JSON. `first`, `path`: the results."""
    if as_json:
        print(json.dumps(again_text.to_document(found, str(first), str(path)), ensure_ascii=False, indent=1))
        return
    show(now)
    screen = Terminal()
    screen.say()
    screen.say_path("Again", str(first))
    rows = list(again_text.rows(found))
    columns = [
        Column(heading, [row[place] for row in rows], rank)
        for place, (heading, rank) in enumerate(zip(again_text.HEADINGS, (2, 1, 0, 0), strict=True), 1)
    ]
    screen.table(Column(found.metric, [row[0] for row in rows]), columns)
    for line in again_text.lines(found):
        screen.say(line)
    screen.say(again_text.last_line(found))
