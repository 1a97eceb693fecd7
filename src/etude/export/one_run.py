"""For formats that hold one run: what of several would fall together is refused, not overwritten."""

from __future__ import annotations

from etude.errors import UsageError
from etude.export.document import Document, NotExported, Point
from etude.export.narrow_text import one_line


def require_one_run(document: Document, what: str) -> tuple[list[Point], list[NotExported]]:
    """The points, each name and metric once; and a list for what is left out.

    Raises:
        UsageError: two runs on one machine have a test of one name.
    """
    found: dict[tuple[str, str], Point] = {}
    for point in document.points:
        place = one_line(document.name(point)), one_line(point.metric)
        if place in found:
            both = " and ".join(dict.fromkeys((found[place].run.source, point.run.source)))
            raise UsageError(
                f"test {place[0]!r} has {place[1]} twice, in {both}: a file of {what} holds one run; "
                "export one result at a time, or choose with --test"
            )
        found[place] = point
    return list(found.values()), []
