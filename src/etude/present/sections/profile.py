"""A profile, or two beside each other, as blocks: sentences, then calls, files and processes as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from etude.iolab.landmarks import size_text
from etude.iotrace.comparison import ProfileComparison, Quantity, ratio
from etude.iotrace.document import error_name
from etude.iotrace.profile import CallProfile, FileProfile, ProcessProfile, Profile, Transfers
from etude.present.section import Block, Column, Command, FilePath, Sentence, Table
from etude.results.shell_words import join_words
from etude.units.formatting import counted, digits, percent, quantity

LEVELS = " ▁▂▃▄▅▆▇█"
BAR = 50
"""Parts of the run that are shown."""
MOST_ERRORS = 2
"""Maximum number of kinds of errors that are named for a call."""


RATIO = "B/A"
DIFFERS = "≠"
_SIDES = ((0, "A"), (1, "B"))


def profile_blocks(profile: Profile, top: int, *, figure: str | None, said: Sequence[str]) -> Iterator[Block]:
    """A profile with `top` rows in each table. figure: where it was drawn; said: notes on that."""
    trace = profile.trace
    if trace.partial:
        yield Sentence(f"! The trace is {trace.partial}: only the part before that is shown", "warning")
    for line in profile.missing:
        yield Sentence(f"! Not in the trace: {line}", "warning")
    for line in profile.notes:
        yield Sentence(f"Note: {line}", "aside")
    yield Command("Program", join_words(trace.header["argv"]))
    yield Sentence(_whole(profile))
    yield Sentence(_rest(profile))
    if profile.kernel is not None:
        kernel, recorded = profile.kernel, profile.recorded
        counted = f"{kernel['syscr']:,} reads and {kernel['syscw']:,} writes"
        yield Sentence(
            f"The kernel counted {counted}; recorded are {recorded['syscr']:,} and {recorded['syscw']:,}."
        )
    for name, found in (("Reads", profile.reads), ("Writes", profile.writes)):
        if found.count:
            yield Sentence(_transfers(name, found))
    yield from _calls(profile.calls, top)
    yield from _files(profile.files, top)
    if len(profile.processes) > 1:
        yield from _processes(profile.processes, top)
    yield from _over_time(profile)
    for line in said:
        yield Sentence(f"! {line}", "warning")
    if figure is not None:
        yield FilePath("Figure", figure, "aside")


def _whole(profile: Profile) -> str:
    threads = sum(each.threads for each in profile.processes)
    waits = f" (and {profile.waits:,} of futex, which are none of I/O)" if profile.waits else ""
    calls = f"{profile.trace.events - profile.waits:,} calls{waits}"
    processes = _counted(len(profile.processes), "process", "processes")
    return (
        f"{calls} of {processes} with {_counted(threads, 'thread', 'threads')} in "
        f"{quantity(profile.run_s, 's')}."
    )


def _rest(profile: Profile) -> str:
    share = profile.in_calls_s / profile.run_s if profile.run_s else 0.0
    recording = ""
    if profile.recording_s:
        recording = f", {quantity(profile.recording_s, 's')} recording itself"
    return (
        f"In calls {quantity(profile.in_calls_s, 's')} ({percent(share)} of the run){recording}; computing, or waiting "
        f"by other calls, {quantity(profile.outside_s, 's')}."
    )


def _transfers(name: str, found: Transfers) -> str:
    order = ""
    if found.judged:
        order = f"; {percent(found.sequential / found.judged)} of {found.judged:,} on files sequential"
    often = ""
    if found.sizes:
        low, count = max(found.sizes, key=lambda each: each[1])
        moved = sum(many for _, many in found.sizes)
        often = (
            f"; of {size_text(found.smallest)} up to {size_text(found.largest)}, {percent(count / moved)} of them "
            f"{size_text(low)} to below {size_text(2 * low)}"
        )
    return f"{name}: {found.count:,}, {quantity(found.bytes, 'B')} in {quantity(found.time_s, 's')}{often}{order}."


def _calls(calls: Sequence[CallProfile], top: int) -> Iterator[Block]:
    shown = calls[:top]
    columns = [
        Column("count", [f"{each.count:,}" for each in shown]),
        Column("errors", [_errors(each) for each in shown], 2),
        Column("bytes", [_bytes(each.bytes) for each in shown]),
        Column("time", [quantity(each.time_s, "s") for each in shown]),
        Column("median", [quantity(each.median_s, "s") for each in shown], 1),
        Column("99 %", [quantity(each.p99_s, "s") for each in shown], 3),
        Column("longest", [quantity(each.longest_s, "s") for each in shown], 4),
    ]
    yield Table((Column("call", [each.name for each in shown]), *columns))
    yield from not_shown(len(calls) - len(shown), "call")


def _errors(each: CallProfile) -> str:
    if not each.errors:
        return "–"
    most = sorted(each.errors.items(), key=lambda error: -error[1])
    further = ", …" if len(most) > MOST_ERRORS else ""
    return ", ".join(f"{many:,} {error_name(number)}" for number, many in most[:MOST_ERRORS]) + further


def _files(files: Sequence[FileProfile], top: int) -> Iterator[Block]:
    shown = files[:top]
    if not shown:
        return
    columns = [
        Column("calls", [f"{each.count:,}" for each in shown], 2),
        Column("read", [_bytes(each.read_bytes) for each in shown]),
        Column("written", [_bytes(each.written_bytes) for each in shown]),
        Column("time", [quantity(each.time_s, "s") for each in shown]),
        Column("sequential", [_share(each.sequential, each.judged) for each in shown], 1),
    ]
    yield Table((Column("file", [each.path for each in shown]), *columns))
    yield from not_shown(len(files) - len(shown), "file")


def _processes(processes: Sequence[ProcessProfile], top: int) -> Iterator[Block]:
    by_time = sorted(processes, key=lambda each: -each.time_s)[:top]
    shown = [each for each in processes if each in by_time]
    columns = [
        Column("process", [str(each.process) for each in shown], 1),
        Column("parent", ["–" if each.parent is None else str(each.parent) for each in shown], 4),
        Column("threads", [str(each.threads) for each in shown], 5),
        Column("calls", [f"{each.count:,}" for each in shown], 3),
        Column("read", [_bytes(each.read_bytes) for each in shown]),
        Column("written", [_bytes(each.written_bytes) for each in shown]),
        Column("in calls", [quantity(each.in_calls_s, "s") for each in shown]),
        Column("lived", [quantity(each.life_s, "s") for each in shown], 2),
    ]
    yield Table((Column("command", [_short(each.command) for each in shown]), *columns))
    yield from not_shown(len(processes) - len(shown), "process")


def _short(command: Sequence[str]) -> str:
    text = join_words(command)
    return text if len(text) <= 40 else f"{text[:39]}…"


def not_shown(count: int, what: str) -> Iterator[Block]:
    """Line on the number of rows that are not shown, and the option that shows them."""
    if count > 0:
        yield Sentence(f"and {counted(count, f'more {what}')} (--top)", "aside")


def _over_time(profile: Profile) -> Iterator[Block]:
    """The share of each part of the run in which a thread was in a call."""
    over = profile.over_time
    if not profile.run_s:
        return
    busy = over.in_calls_s.reshape(BAR, -1).sum(axis=1)
    shares = (busy / (profile.run_s / BAR)).clip(0, 1)
    levels = np.ceil(shares * (len(LEVELS) - 1)).astype(int)
    yield Sentence(f"In calls over time (full: all of it), {quantity(profile.run_s / BAR, 's')} a sign:")
    yield Sentence(f"|{''.join(LEVELS[level] for level in levels)}|")


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else "–"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def comparison_blocks(
    found: ProfileComparison, top: int, *, figure: str | None, said: Sequence[str]
) -> Iterator[Block]:
    """Two profiles with `top` rows in each table. figure: where they were drawn; said: notes on that."""
    yield from _what_they_are(found)
    yield from _quantities("time", found.times)
    yield Sentence("Times of concurrent threads are added, except the run time and computing.", "aside")
    yield from _compared_calls(found, top)
    yield from _quantities("size", found.sizes)
    yield from _forms(found)
    yield from _compared_files(found, top)
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


def _compared_calls(found: ProfileComparison, top: int) -> Iterator[Block]:
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


def _compared_files(found: ProfileComparison, top: int) -> Iterator[Block]:
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
        *(Column(f"read {side}", [_bytes(each.read_bytes[n]) for each in shown], 2) for n, side in _SIDES),
        *(
            Column(f"written {side}", [_bytes(each.written_bytes[n]) for each in shown], 1)
            for n, side in _SIDES
        ),
    ]
    yield Table((Column("file", [each.path for each in shown]), *columns))
    yield from not_shown(len(files.different) - len(shown), "file")


def _bytes(value: float) -> str:
    return quantity(value, "B") if value else "–"
