"""What was read, as plain data whose text is the same on every machine, and whatever the types are called."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Set
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars

DIGITS = 12


def plain(value: Any) -> Any:
    """Data as JSON has it: members by name, numbers of 12 digits; whole numbers stay whole, paths their last part."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return f"…/{value.name}"
    if isinstance(value, polars.DataFrame):
        return {name: {str(kind): plain(value[name].to_list())} for name, kind in value.schema.items()}
    if isinstance(value, np.ndarray):
        return {str(value.dtype): plain(value.tolist())}
    return contained(value)


def contained(value: Any) -> Any:
    """What holds other values."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Set):
        return sorted((plain(each) for each in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    raise TypeError(f"{type(value).__name__} is no plain data")


def number(value: float) -> float | str:
    """As repr has it, of 12 digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else repr(value)


def text_of(value: Any) -> str:
    """Plain data as a text in which a change is seen: members a line each, what is short on one line."""
    return "\n".join(lines_of(value)) + "\n"


def lines_of(value: Any, indent: str = "") -> list[str]:
    short = json.dumps(value, ensure_ascii=False)
    if len(short) + len(indent) <= 110 or not isinstance(value, dict | list) or not value:
        return [short]
    inner = indent + " "
    if isinstance(value, list):
        ends, parts = "[]", [lines_of(each, inner) for each in value]
        if all(
            len(part) == 1 and not isinstance(each, dict) for part, each in zip(parts, value, strict=True)
        ):
            return ["[", *wrapped([part[0] for part in parts], inner), indent + "]"]
    else:
        ends, parts = "{}", [named(name, lines_of(each, inner)) for name, each in value.items()]
    for part in parts[:-1]:
        part[-1] += ","
    return [ends[0], *(line for first, *rest in parts for line in (inner + first, *rest)), indent + ends[1]]


def named(name: str, lines: list[str]) -> list[str]:
    """A member of an object."""
    return [f"{json.dumps(name, ensure_ascii=False)}: {lines[0]}", *lines[1:]]


def wrapped(words: list[str], indent: str) -> list[str]:
    """Numbers and texts of a list, as many on a line as it takes."""
    lines, line = [], indent
    for place, word in enumerate(words, 1):
        word += "," if place < len(words) else ""
        if line.strip() and len(line) + len(word) > 110:
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    return [*lines, line.rstrip()]
