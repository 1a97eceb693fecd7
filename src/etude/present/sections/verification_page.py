"""A verification of claims as a page: both results of each claim, and what differs between the machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from etude.analysis.snapshot_differences import Differences
from etude.claims.claims_file import ClaimsFile
from etude.claims.verification import LEVEL, OtherFile, Verified
from etude.present.section import Block, Paragraphs, Picture, Section, Sentence, page_table
from etude.present.sections.claims_page import SIZE, interval_figure
from etude.present.sentences import artifact as words
from etude.present.sentences import claims as claims_text
from etude.present.sentences import verification as text
from etude.present.to_html import to_page
from etude.version import __version__

TALL = (SIZE[0], 1.3 * SIZE[1])
"""Width and height of a figure of two rows, inches."""


def verification_page(
    file: ClaimsFile,
    found: Sequence[Verified],
    differences: Differences,
    files: Sequence[OtherFile],
    verdicts: Section,
    now: datetime | None = None,
) -> str:
    """The page of a verification. verdicts: its `verification_section`; now: when it was made (default: the present).

    Raises:
        MachineRefuses: Jinja2 is not installed.
    """
    made = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    summary = text.summary(found)
    table = tuple(b for b in verdicts.blocks if not isinstance(b, Sentence) or b.text != summary)
    parts = [
        Section("verdicts", "Claims", table),
        *(
            Section(f"claim-{v.claim.id}", text.claim_heading(v), tuple(_blocks(v, differences, files)))
            for v in found
        ),
        _differs(differences, files),
    ]
    title = file.title
    return to_page(
        "history.html.j2", title=title, made=made, version=__version__, verdict=[summary], parts=parts
    )


def _blocks(found: Verified, differences: Differences, files: Sequence[OtherFile]) -> Iterator[Block]:
    yield Paragraphs(words.CLAIM, (found.claim.text,))
    for place, result in zip(text.PLACES, (found.theirs, found.ours), strict=True):
        yield Paragraphs(text.PLACES[place], (f"{result.status}: {claims_text.reason(result)}",))
    if found.ours.status == "refuted":
        yield Paragraphs(text.DIFFERS, (text.causes(differences, files),))
    for a in found.bounds:
        sides = [(name, e) for name, e in zip(text.PLACES.values(), (a.theirs, a.ours), strict=True) if e]
        if sides:
            figure = interval_figure(a.bound, sides, LEVEL)
            yield Picture(text.figure_caption(a.bound), figure, TALL)


def _differs(differences: Differences, files: Sequence[OtherFile]) -> Section:
    rows = [(d.what, d.then or "", d.now or "") for d in text.likely_first(differences)]
    others = [(f.name, f.theirs, f.ours) for f in files]
    return Section(
        "differs",
        text.DIFFERS,
        (
            page_table("settings", text.SETTINGS, ("setting", *text.PLACES.values()), rows, 3),
            page_table("files", words.FILES, ("file", *text.PLACES.values()), others, 3),
        ),
    )
