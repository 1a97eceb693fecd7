"""Tables of a TOML file with error positions: an error in them is one line, FILE:LINE: what, expected.

tomllib gives lines only for syntax errors; for all others the key's line is searched in the text.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from etude.errors import InputError
from etude.osutil.trust import open_for_root
from etude.units.parsing import QuantityError, duration, duration_text, share

MAX_PARTS = 100
"""Maximum parts of a dotted key: tomllib's time for one is quadratic."""
MAX_CHARACTERS = 16 << 20
DEEP = re.compile(rf"""(?<![\w"'-])(?:[ \t]*+[\w"'-]++[ \t]*+\.){{{MAX_PARTS}}}""")


@dataclass(frozen=True, slots=True)
class Section:
    """One table, with access to its keys by type and unit; a value of another kind is an InputError."""

    path: Path
    text: str
    name: str
    """Name in its header; empty for the whole file."""
    values: Mapping[str, Any]

    def fail(self, key: str | None, what: str) -> NoReturn:
        """Raises the InputError of a key, or of the table."""
        raise InputError(f"{self.path}:{line_of(self.text, self.name, key)}: {what}")

    def named(self, key: str) -> str:
        """The key's name in messages."""
        return f"[{self.name}] {key}" if self.name else key

    def only(self, known: Collection[str]) -> None:
        """Refuses other keys, with the closest known one."""
        for key in self.values:
            if key not in known:
                alike = difflib.get_close_matches(key, known, 1)
                hint = f": {alike[0]}?" if alike else f": known are {', '.join(sorted(known))}"
                self.fail(key, f"{self.named(key)} is not known{hint}")

    def text_at(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            self.fail(key, f"{self.named(key)} is {value!r}: expected a text in quotes")
        if "\0" in value:  # no command, file name or environment can contain it
            self.fail(key, f"{self.named(key)} is {value!r}: expected a text without \\u0000")
        return value

    def one_of(self, key: str, known: Collection[str], default: str | None = None) -> str:
        """A text that is one of these."""
        value = self.values.get(key, default)
        if value not in known:
            said = "is missing" if value is None else f"is {value!r}"
            self.fail(key if key in self.values else None, f"{self.named(key)} {said}: expected {_or(known)}")
        return str(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """true or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"{self.named(key)} is {value!r}: expected true or false")
        return value

    def number(
        self, key: str, default: float | None = None, *, least: float = 0.0, most: float = math.inf
    ) -> float | None:
        """A number above `least`, at most `most`; None, or the default, if the key is absent."""
        value = self.values.get(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not finite(value):
            self.fail(key, f"{self.named(key)} is {value!r}: expected a finite number")
        if value <= least:
            self.fail(key, f"{self.named(key)} is {value:g}: expected more than {least:g}")
        if value > most:
            self.fail(key, f"{self.named(key)} is {value:g}: expected at most {most:g}")
        return float(value)

    def whole(
        self, key: str, default: int | None = None, *, least: int, most: int | None = None
    ) -> int | None:
        """A whole number from `least` to `most`; None, or the default, if the key is absent."""
        value = self.values.get(key, default)
        if value is None:
            return None
        good = not isinstance(value, bool) and isinstance(value, int | float) and finite(value)
        if not good or value != int(value) or value < least or (most is not None and value > most):
            to = f"{least} or more" if most is None else f"from {least} to {most}"
            self.fail(key, f"{self.named(key)} is {value!r}: expected a whole number, {to}")
        return int(value)

    def seconds(
        self, key: str, default: float | None = None, *, most: float = math.inf, zero: bool = True
    ) -> float | None:
        """A time such as "40 ms", in s, at most `most`; not below 0, and not 0 unless `zero`."""
        value = self.values.get(key)
        if value is None:
            return default
        try:
            found = duration(value if isinstance(value, str) else "", bare=None)
        except QuantityError:
            self.fail(key, f'{self.named(key)} is {value!r}: expected a time with its unit, as "40 ms"')
        if found == 0 and not zero:
            self.fail(key, f"{self.named(key)} is {value!r}: expected more than no time")
        if found > most:
            self.fail(key, f"{self.named(key)} is {value!r}: expected at most {duration_text(most)}")
        return found

    def share(
        self, key: str, default: float | None = None, *, most: float = math.nextafter(1, 0)
    ) -> float | None:
        """A share such as "5 %" or 0.05; above 0, and below 1 unless `most` is 1."""
        value = self.values.get(key)
        if value is None:
            return default
        found = value
        if isinstance(value, str):
            with suppress(QuantityError):
                found = share(value)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= most:
            self.fail(key, f'{self.named(key)} is {value!r}: expected a share, as "5 %" or 0.05')
        return float(found)

    def section(self, key: str) -> Section:
        """A nested table; empty if it is absent."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.fail(key, f"{self.named(key)} is {value!r}: expected a table")
        return Section(self.path, self.text, f"{self.name}.{key}" if self.name else key, value)


def document(path: Path) -> Section:
    """The whole file. Raises InputError: it cannot be read or is not TOML."""
    if path.is_dir():
        raise InputError(
            f"{path}: is a directory without an experiment.json; expected a TOML file, or results"
        )
    try:
        with open(open_for_root(path), encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: cannot be read: {reason}") from None
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{path}: has more than {MAX_CHARACTERS} characters: expected a TOML file")
    return parsed(path, text)


def parsed(path: Path, text: str) -> Section:
    """The table of a file's text, which may begin with a byte order mark, as editors on Windows write it."""
    text = text.removeprefix("\ufeff")
    if deep := DEEP.search(text):
        begins = text.count("\n", 0, deep.start()) + 1
        raise InputError(f"{path}:{begins}: has a key of more than {MAX_PARTS} parts")
    try:
        return Section(path, text, "", tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(
            r"(.*?)(?: \(at (?:line ([0-9]+), column [0-9]+|end of document)\))?", str(error)
        )
        line = found[2] if found and found[2] else text.count("\n", 0, -1) + 1
        raise InputError(f"{path}:{line}: is no TOML: {found[1] if found else error}") from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # a number of thousands of digits; a thousand lists in lists
        raise InputError(f"{path}:1: cannot be read: {str(error).split(';')[0]}") from None


def finite(number: float) -> bool:
    """True if it is a float in range: TOML has whole numbers of any length."""
    return -1e300 < number < 1e300


def line_of(text: str, section: str, key: str | None) -> int:
    """Line of a key of a table, from 1; the table's first line if it is not found; else 1."""
    inside, begins = not section, 1
    for number, line in enumerate(text.split("\n"), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line)
        if header:
            name = header[1].replace('"', "")
            if key is not None and f"{name}.".startswith(f"{section}.{key}." if section else f"{key}."):
                return number  # the key is a table
            inside = name == section
            begins = number if inside else begins
        elif inside and key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return number
    if begins == 1 and "." in section:  # written within another: outer.inner = or inner = { … }
        outer, inner = section.rsplit(".", 1)
        return line_of(text, outer, inner)
    return begins


def _or(words: Collection[str]) -> str:
    *most, last = [f'"{word}"' for word in words]
    return f"{', '.join(most)} or {last}" if most else last
