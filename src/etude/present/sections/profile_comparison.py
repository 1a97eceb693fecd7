"""Two profiles beside each other as blocks: what they are, then times, calls, sizes and the files that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etude.iotrace.comparison import FileBeside, ProfileComparison, Quantity, ratio
from etude.present.section import Block, Column, Command, FilePath, Sentence, Table
from etude.present.sections.profile import not_shown
from etude.results.shell_words import join_words
from etude.units.formatting import digits, quantity

RATIO = "B/A"
DIFFERS = "≠"


def comparison_blocks(
    found: ProfileComparison, top: int, *, figure: str | None, said: Sequence[str]
) -> Iterator[Block]:
    """Two profiles with `top` rows in each table. figure: where they were drawn; said: notes on that."""
    yield from _what_they_are(found)
    yield from _quantities("time", found.times)
    yield Sentence("Times of concurrent threads are added, except the run time and computing.", "aside")
    yield from _calls(found, top)
    yield from _quantities("size", found.sizes)
    yield from _forms(found)
    yield from _files(found, top)
    for line in said:
        yield Sentence(f"! {line}", "warning")
    if figure is not None:
        yield FilePath("Figure", figure, "aside")


def _what_they_are(found: ProfileComparison) -> Iterator[Block]:
    sides = (("A", found.a), ("B", found.b))
    if found.replay:
        yield Sentence("B is a replay.", "strong")
    elif not found.same_program:
        yield Sentence("! A and B are of different programs, or of one with other arguments", "warning")
    for name, profile in sides:
        yield Command(name, join_words(profile.trace.header["argv"]))
    for name, profile in sides:
        if profile.trace.partial:
            yield Sentence(
                f"! {name} is {profile.trace.partial}: only the part before that is shown", "warning"
            )
        for line in profile.missing:
            yield Sentence(f"! Not in {name}: {line}", "warning")
        for line in profile.notes:
            yield Sentence(f"Note of {name}: {line}", "aside")


def _quantities(what: str, found: Sequence[Quantity]) -> Iterator[Block]:
    columns = [
        Column("A", [_number(each.a, each.unit) for each in found]),
        Column("B", [_number(each.b, each.unit) for each in found]),
        Column(RATIO, [_ratio(each.ratio) for each in found]),
    ]
    yield Table((Column(what, [each.name for each in found]), *columns))


def _number(value: float, unit: str) -> str:
    if unit == "1":
        return f"{value:,.0f}"
    return digits(value, 3) if unit == "×" else quantity(value, unit)


def _ratio(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if 0.1 <= value < 100 else digits(value, 3)


def _calls(found: ProfileComparison, top: int) -> Iterator[Block]:
    shown = found.calls[:top]
    columns = [
        Column("count A", [f"{each.counts[0]:,}" for each in shown]),
        Column("count B", [f"{each.counts[1]:,}" for each in shown]),
        Column("", [DIFFERS if each.differs else "" for each in shown]),
        Column("time A", [quantity(each.times_s[0], "s") for each in shown]),
        Column("time B", [quantity(each.times_s[1], "s") for each in shown]),
        Column(RATIO, [_ratio(ratio(*each.times_s)) for each in shown]),
    ]
    yield Table((Column("call", [each.name for each in shown]), *columns))
    yield from not_shown(len(found.calls) - len(shown), "call")


def _forms(found: ProfileComparison) -> Iterator[Block]:
    """Size of each form, per event and relative to A's text, as in the paper's table."""
    forms = {name: form for name, form in found.forms.items() if form is not None}
    if not forms:
        return
    events, text = found.events[0], found.text_bytes[0]
    columns = [
        Column("bytes", [quantity(form.bytes, "B") for form in forms.values()]),
        Column("an event of A", [quantity(ratio(events, form.bytes), "B") for form in forms.values()]),
        Column("text of A / it", [_times(ratio(form.bytes, text)) for form in forms.values()]),
    ]
    yield Table((Column("made of A", list(forms)), *columns))


def _times(value: float | None) -> str:
    return "–" if value is None else digits(value, 3)


def _files(found: ProfileComparison, top: int) -> Iterator[Block]:
    files = found.files
    shown = files.different[:top]
    alike = f"{files.alike:,} files have as many calls and bytes in both"
    renamed = f", {files.renamed:,} more under other names" if files.renamed else ""
    yield Sentence(f"{alike}{renamed}; {len(files.different):,} do not{':' if shown else '.'}")
    if not shown:
        return
    columns = [
        Column("calls A", [f"{each.counts[0]:,}" for each in shown]),
        Column("calls B", [f"{each.counts[1]:,}" for each in shown]),
        *(Column(f"read {side}", [_bytes(each, n, "read") for each in shown], 2) for n, side in _SIDES),
        *(Column(f"written {side}", [_bytes(each, n, "written") for each in shown], 1) for n, side in _SIDES),
    ]
    yield Table((Column("file", [each.path for each in shown]), *columns))
    yield from not_shown(len(files.different) - len(shown), "file")


_SIDES = ((0, "A"), (1, "B"))


def _bytes(each: FileBeside, side: int, which: str) -> str:
    value = (each.read_bytes if which == "read" else each.written_bytes)[side]
    return quantity(value, "B") if value else "–"
