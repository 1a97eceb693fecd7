"""Access of readers to a file: head, text, lines, JSON. Each error is one line."""

from __future__ import annotations

import codecs
import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from etude.errors import InputError
from etude.results.regular import open_regular, read_regular

T = TypeVar("T")

HEAD = 64 * 1024
"""Number of bytes passed to a detector."""

MAX_BYTES = 2**30
"""Maximum size of a file that is read as a whole."""


def head_of(path: Path) -> bytes:
    """The first bytes of a file, after a byte order mark; empty for a directory.

    Raises:
        InputError: there is no such file, it cannot be read, or it is a pipe or a device.
    """
    try:
        if os.path.isdir(path):
            return b""
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path}: is no file; write what comes out of a pipe to a file first")
        with open_regular(path) as file:
            return file.read(HEAD).removeprefix(codecs.BOM_UTF8)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that cannot be read."""
    return InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}")


def read_bytes(path: Path) -> bytes:
    """The whole file, after a byte order mark. Raises InputError: it cannot be read, or is too large."""
    try:
        size = os.stat(path).st_size
        if size > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES >> 20} MiB; split it")
        return read_regular(path).removeprefix(codecs.BOM_UTF8)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_text(path: Path) -> str:
    """The whole file as text; invalid bytes are replaced. Raises InputError: same as `read_bytes`."""
    data = read_bytes(path)
    if b"\0" in data:
        raise InputError(f"{path}: is no text: it holds a zero byte")
    return data.decode("utf-8", "backslashreplace")


def read_lines(path: Path) -> tuple[list[str], bool]:
    """The complete lines, and True if another one is torn. Raises InputError: same as `read_text`."""
    *lines, last = read_text(path).split("\n")
    return [line.rstrip("\r") for line in lines], last.strip() != ""


UNFITTING = "a line that does not fit its names is left out"
"""Warning on a row with more cells than names, or fewer: a number in it may be in a wrong column."""


def csv_rows(path: Path, lines: Iterable[str]) -> list[list[str]]:
    """The cells of each non-empty line. Raises InputError: invalid CSV."""
    import csv

    try:
        return [cells for cells in csv.reader(lines) if cells]
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as a table: {_short(str(error))}") from None


def read_json(path: Path) -> Any:
    """The JSON document in a file; NaN and infinities are accepted.

    Raises:
        InputError: same as `read_bytes`, or it is no JSON.
    """
    return parse_json(path, read_bytes(path))


def parse_json(path: Path, data: bytes) -> Any:
    """Same as `read_json`, of bytes that were read from the file."""
    import orjson

    try:
        return orjson.loads(data)
    except ValueError as error:
        reason = str(error)
        if not re.search(rb"\b(NaN|Infinity)\b", data):
            raise InputError(f"{path}: is no whole JSON document: {_short(reason)}") from None
    import json

    try:
        return json.loads(data.decode("utf-8", "backslashreplace"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no whole JSON document: {_short(str(error))}") from None


def documents(path: Path, begins: str, wrong: str, warn: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Each JSON object of a file to which the outputs of several runs were appended. `begins`: a pattern of their first
    characters; text in between is skipped. A truncated last one is left out, with a warning.

    Raises:
        InputError: not even the first is complete; `wrong` names the expected format, if it holds something else.
    """
    import json

    text = read_text(path)
    decoder, found, place = json.JSONDecoder(), False, 0
    while match := re.compile(begins).search(text, place):
        try:
            document, place = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            reason = _short(str(error))
            if not found:
                raise InputError(f"{path}: is no whole JSON document: {reason}") from None
            warn(f"a run is cut short and left out: {reason}")
            return
        if not isinstance(document, dict):
            break
        found = True
        yield document
    if not found or match is not None:
        raise InputError(f"{path}: is not {wrong}")


def _short(reason: str) -> str:
    return " ".join(reason.split())[:120]


def number(value: Any) -> float | None:
    """A JSON value as a finite number; None for anything else, also for true and false."""
    if type(value) is not float and type(value) is not int:
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(value: Any, most: int = 2**31 - 1) -> int | None:
    """A JSON value as a whole number of at most this size; None for anything else."""
    return value if type(value) is int and abs(value) <= most else None


def text_of(value: Any) -> str:
    """A JSON value as the text of a parameter."""
    if isinstance(value, str):
        return plain(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    import json

    try:
        return plain(json.dumps(value))
    except (ValueError, RecursionError):
        return "…"


def plain(text: str) -> str:
    """The text with invalid characters (halves of surrogate pairs) replaced."""
    return text.encode("utf-8", "replace").decode()


def shuffled(values: Sequence[T]) -> list[T]:
    """The values in a random but reproducible order: samples that a program sorts would look like a trend."""
    found = list(values)
    random.Random(len(found)).shuffle(found)
    return found


def members(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value if it is a JSON list, else an empty one."""
    return value if isinstance(value, list) else []
