"""Text that fits a width: sentences broken at words, names shortened but distinct, tables that fit, samples as bars."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from etude.present.section import Column

GAPS = (3, 2)
"""Blanks between columns: the first that fits."""
LEAST_NAME = 8
"""Characters that the first column keeps before others are left out; and a fifth of the width."""

BARS = "▁▂▃▄▅▆▇█"
MARK = "^"
"""Sign of an outlier below its bar."""

# A number stays with its unit, and signs with what they stand before.
_UNIT = r"(?:%|[nµum]?s|[KMGT]?i?B(?:/s)?|trials?|pairs?)(?![A-Za-z0-9_])"
_BREAK = re.compile(rf"(?<![±×…])(?<!\bp)(?<!\bp [=<≤]) (?!(?<=\d ){_UNIT})(?![…×] )")


def cells_of(text: str) -> int:
    """The columns that a text takes on a screen: two for each wide character."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int | None, separator: str | None = None) -> list[str]:
    """The lines of a sentence. Further ones are indented by two more than the first; a word too long for a line is cut.

    separator: break there only, and cut nothing.
    """
    if width is None or cells_of(text) <= width:
        return [text]
    body = text.lstrip(" ")
    indent = " " * (len(text) - len(body))
    words = _BREAK.split(body) if separator is None else body.split(separator)
    lines, line, following = [], indent, min(len(indent) + 2, max(0, width // 2))
    joint = " " if separator is None else separator
    for word in words:
        empty = not line.strip()
        if not empty and cells_of(line) + 1 + cells_of(word) > width:
            lines.append(line)
            line, empty = " " * following, True
        line += word if empty else joint + word
        while separator is None and cells_of(line) > width:
            head = _head(line, width)
            lines.append(head)
            line = " " * following + line[len(head) :]
    return [*lines, line] if line.strip() else lines


def cut(text: str, width: int, dots: str = "…") -> str:
    """The beginning of a text that is too long, and dots."""
    if cells_of(text) <= width:
        return text
    return _head(text, max(0, width - len(dots))) + dots[: max(0, width)]


def shortened(names: Sequence[str], width: int, dots: str = "…") -> list[str]:
    """Names of at most `width` columns, shortened in the middle; different names stay different.

    Of the places where the dots can stand it is the one nearest the middle that keeps all names apart. Where none
    does, names are cut on both sides of where they begin to differ; where that does not help, they are numbered.
    """
    if all(cells_of(name) <= width for name in names):
        return list(names)
    room = max(0, width - len(dots))
    wanted = len(set(names))
    best: list[str] = []
    for head in sorted(range(room + 1), key=lambda h: abs(2 * h - room)):
        made = [_middle(name, head, room - head, width, dots) for name in names]
        if len(set(made)) == wanted:
            return made
        if len(set(made)) > len(set(best)):
            best = made
    for head in (4, 2, 0):
        made = _around_difference(names, head, width, dots)
        if len(set(made)) == wanted:
            return made
    return _numbered(names, best, width, dots)


def _around_difference(names: Sequence[str], head: int, width: int, dots: str) -> list[str]:
    """A beginning of that length, dots, what stands around the first difference, dots."""
    long = [name for name in names if cells_of(name) > width]
    common = next((n for n, letters in enumerate(zip(*long, strict=False)) if len(set(letters)) > 1), 0)
    room = width - head - 2 * len(dots)
    begin = max(head, common - max(0, room) // 3)
    made = []
    for name in names:
        if cells_of(name) <= width or room < 1:
            made.append(cut(name, width, dots))
            continue
        rest = name[begin:]
        end = rest if cells_of(rest) <= room + len(dots) else _head(rest, room) + dots
        made.append(cut(_head(name, head) + dots + end, width, dots))
    return made


def _middle(name: str, head: int, tail: int, width: int, dots: str) -> str:
    return name if cells_of(name) <= width else _head(name, head) + dots + _tail(name, tail)


def _numbered(names: Sequence[str], made: Sequence[str], width: int, dots: str) -> list[str]:
    """Names that look alike, made distinct by dots and a number at their ends."""
    alike = Counter(short for _, short in dict(zip(names, made, strict=True)).items())
    taken = {short for short in made if alike[short] == 1}
    given: dict[str, str] = {}
    for name, short in zip(names, made, strict=True):
        if name in given:
            continue
        if alike[short] == 1:
            given[name] = short
            continue
        number = 1
        while (told := f"{_head(short, max(0, width - len(f'{dots}{number}')))}{dots}{number}") in taken:
            number += 1
        taken.add(told)
        given[name] = told
    return [given[name] for name in names]


def _head(text: str, width: int) -> str:
    """The longest beginning that fits; it may be empty."""
    if text.isascii():
        return text[:width]
    used = 0
    for place, character in enumerate(text):
        used += cells_of(character)
        if used > width:
            return text[:place]
    return text


def _tail(text: str, width: int) -> str:
    return "" if width == 0 else _head(text[::-1], width)[::-1]


def table_lines(
    columns: Sequence[Column], width: int | None, *, every: bool = False, dots: str = "…"
) -> list[list[str]]:
    """The lines of a table: headings, a rule, rows. The first column and words to the left, others to the right.

    width: of the screen; None: as wide as it gets. What does not fit: columns of the highest rank are left out (or,
    with `every`, stand in further tables), then names are shortened; where that is not enough, each row becomes a
    short list.
    """
    first, *columns = columns
    if width is None:
        return [_lines(first, columns, None, GAPS[0], dots)]
    least = min(_wide(first), max(LEAST_NAME, width // 5))
    if every:
        parts = _parts(columns, least, width)
    else:
        kept = list(columns)
        while _gap(kept, least, width) is None and any(column.rank for column in kept):
            del kept[max(range(len(kept)), key=lambda place: (kept[place].rank, place))]
        parts = [kept]
    found = []
    for part in parts:
        gap = _gap(part, least, width)
        found.append(_list(first, part, width) if gap is None else _lines(first, part, width, gap, dots))
    return found


def _parts(columns: Sequence[Column], least: int, width: int) -> list[list[Column]]:
    parts: list[list[Column]] = []
    for column in columns:
        if parts and _gap([*parts[-1], column], least, width) is not None:
            parts[-1].append(column)
        else:
            parts.append([column])
    return parts


def _wide(column: Column) -> int:
    return max(map(cells_of, (column.heading, *column.texts)))


def _gap(columns: Sequence[Column], least: int, width: int) -> int | None:
    """The widest gap with which these columns fit beside a first one of that width; None where none does."""
    taken = 1 + least + sum(map(_wide, columns))
    return next((gap for gap in GAPS if taken + gap * len(columns) <= width), None)


def _lines(first: Column, columns: Sequence[Column], width: int | None, gap: int, dots: str) -> list[str]:
    widths = [_wide(column) for column in columns]
    rest = sum(widths) + gap * len(widths)
    room = _wide(first) if width is None else min(_wide(first), width - 1 - rest)
    names = shortened(first.texts, room, dots)
    between = " " * gap

    def line(name: str, cells: Sequence[str]) -> str:
        padded = []
        for column, cell, wide in zip(columns, cells, widths, strict=True):
            blank = " " * (wide - cells_of(cell))
            padded.append(cell + blank if column.words else blank + cell)
        return between.join([f" {name}{' ' * (room - cells_of(name))}", *padded]).rstrip()

    rows = [line(name, cells) for name, *cells in zip(names, *(c.texts for c in columns), strict=True)]
    heading = line(cut(first.heading, room, dots), [column.heading for column in columns])
    return [heading, f" {'─' * (room + rest)}", *rows]


def _list(first: Column, columns: Sequence[Column], width: int) -> list[str]:
    wide = max((cells_of(column.heading) for column in columns), default=0)
    lines = wrapped(f" {first.heading}:", width)
    for name, *cells in zip(first.texts, *(column.texts for column in columns), strict=True):
        lines += wrapped(f" {name}", width)
        for column, cell in zip(columns, cells, strict=True):
            label = column.heading + " " * (wide - cells_of(column.heading))
            lines += wrapped(f"   {label}  {cell}", width)
    return lines


def sparkline(values: Sequence[float], outliers: Collection[int], most: int) -> tuple[str, str, int]:
    """The bars, the marks below them, and how many trials each bar stands for.

    values: in order; outliers: the indices of those that do not belong with the rest. The scale goes from the lowest
    to the highest of the others, so that they can still be told apart; an outlier beyond is drawn at its end. Of more
    than `most` values several share a bar: their median, or the outlier where there is one.
    """
    each = -(-len(values) // most)
    others = [value for place, value in enumerate(values) if place not in outliers] or list(values)
    low, high = min(others), max(others)
    bars, marks = [], []
    for begin in range(0, len(values), each):
        places = range(begin, min(begin + each, len(values)))
        far = [place for place in places if place in outliers]
        group = sorted(values[place] for place in far or places)
        bars.append(_bar(group[len(group) // 2], low, high))
        marks.append(MARK if far else " ")
    return "".join(bars), "".join(marks).rstrip(), each


def _bar(value: float, low: float, high: float) -> str:
    if value > high:
        return BARS[-1]
    if value < low:
        return BARS[0]
    if low == high:
        return BARS[len(BARS) // 2 - 1]
    return BARS[min(len(BARS) - 1, int((value - low) / (high - low) * len(BARS)))]
