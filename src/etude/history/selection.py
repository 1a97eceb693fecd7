"""Selections of stored results: `commit:0064ab,machine:host-a`, or a word that is looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from etude.errors import InputError, UsageError
from etude.store.entry import Entry

KINDS = ("commit", "tag", "date", "machine")


@dataclass(frozen=True)
class Selection:
    """Results of one side of a comparison."""

    text: str
    """The selection as it was typed."""
    entries: tuple[Entry, ...]


def select_results(text: str, entries: Sequence[Entry]) -> Selection:
    """The entries that `KIND:VALUE` means, or several of these between commas, of all of which are stored.

    commit: the beginning of it suffices. date: `2026-11-01`, the newest results of each test, metric and machine up to
    the end of that day, UTC. A word without a kind is looked up as each of these, in this order.

    Raises:
        UsageError: it says nothing that can be looked up; InputError: nothing is meant, or more than one thing.
    """
    found = list(entries)
    for part in text.split(","):
        kind, colon, value = part.strip().partition(":")
        if not colon:
            kind, value = _kind_of(part.strip(), found)
        if kind not in KINDS or not value:
            where = "" if part == text else f"{text!r}: "
            raise UsageError(f"{where}{part!r}: expected {', '.join(f'{k}:…' for k in KINDS)}")
        found = _FINDERS[kind](value, found)
        if not found:
            raise InputError(
                f"{text!r}: the store has no result of {kind} {value}; etude store list names all"
            )
    return Selection(text, tuple(found))


def _kind_of(word: str, entries: Sequence[Entry]) -> tuple[str, str]:
    there = [kind for kind in KINDS if not (kind == "date" and _day(word) is None)]
    meant = [kind for kind in there if word and _FINDERS[kind](word, entries)]
    if not meant:
        raise InputError(
            f"{word!r}: the store has no such commit, tag, date or machine; etude store list names all"
        )
    if len(meant) > 1:
        ways = " or ".join(f"{kind}:{word}" for kind in meant)
        raise InputError(f"{word!r} is ambiguous: write {ways}")
    return meant[0], word


def _of_commit(value: str, entries: Sequence[Entry]) -> list[Entry]:
    found = [e for e in entries if e.commit is not None and e.commit.startswith(value)]
    commits = sorted({e.commit for e in found if e.commit})
    if len(commits) > 1 and value not in commits:
        raise InputError(
            f"{value!r} is ambiguous: {len(commits)} commits begin so, such as {', '.join(commits[:2])}"
        )
    return [e for e in found if e.commit == commits[0]] if commits else []


def _of_tag(value: str, entries: Sequence[Entry]) -> list[Entry]:
    return [e for e in entries if value in e.tags]


def _of_date(value: str, entries: Sequence[Entry]) -> list[Entry]:
    day = _day(value)
    if day is None:
        raise UsageError(f"{value!r} is no date; expected such as 2026-11-01")
    end = datetime.combine(day, time.max, UTC)
    newest: dict[tuple[str, str, str], Entry] = {}
    for entry in sorted((e for e in entries if _time(e) <= end), key=_time):
        newest[entry.test, entry.metric, entry.machine.name] = entry
    return list(newest.values())


def _of_machine(value: str, entries: Sequence[Entry]) -> list[Entry]:
    return [e for e in entries if value in (e.machine.name, e.machine.digest)]


_FINDERS: dict[str, Callable[[str, Sequence[Entry]], list[Entry]]] = {
    "commit": _of_commit,
    "tag": _of_tag,
    "date": _of_date,
    "machine": _of_machine,
}


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _time(entry: Entry) -> datetime:
    return entry.committed or entry.measured
