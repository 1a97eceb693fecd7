"""Names and numbers as narrow formats can hold them."""

from __future__ import annotations

import hashlib
import re

from etude.errors import UsageError
from etude.export.document import Document, NotExported, Point


def one_line(text: str) -> str:
    """The text without line ends, control characters and repeated or outer blanks; `?` for an empty one.

    What is no character (an undecodable byte of a file name) becomes U+FFFD.
    """
    printable = "".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text)
    return " ".join(printable.split()) or "?"


def word(text: str) -> str:
    """One line without blanks, …"""
    return one_line(text).replace(" ", "_")


def identifier(text: str) -> str:
    """… and of ASCII letters, digits and `_` only, not beginning with a digit."""
    found = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "unnamed"
    return f"_{found}" if found[0].isdigit() else found


def at_most(text: str, limit: int) -> str:
    """Cut to that many characters; what was cut differs from what else begins alike by a digest at its end."""
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{text[: limit - 9].rstrip()}~{digest}"


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
