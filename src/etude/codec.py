"""Documents as frozen dataclasses: a file's contents become data, or an error of one line that names the wrong member.

The types of a dataclass are its format, checked by msgspec: nothing is converted but whole numbers where a float is
expected, and lists where tuples are. msgspec takes 25 ms to load, so it is loaded with the first document, not with a
class: bounds are written `codec.Share` in annotations, which are not evaluated before.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from etude.errors import EtudeError, InputError

T = TypeVar("T")

if TYPE_CHECKING:
    # Floats, any and within bounds. JSON has no infinity: it is the text "inf" (`plain`).
    Number: TypeAlias = float
    From0: TypeAlias = float
    Finite: TypeAlias = float
    Above0: TypeAlias = float
    Positive: TypeAlias = float
    Share: TypeAlias = float
    Chance: TypeAlias = float
    Percent: TypeAlias = float
    Amount: TypeAlias = float
    # From 0, and from 1; of 64 bits, as the third.
    Count: TypeAlias = int
    Whole: TypeAlias = int
    Integer: TypeAlias = int
    # Without NUL: an argument, a name of a file, a value of an environment. At least one of these.
    Word: TypeAlias = str
    Words: TypeAlias = list[str]
else:

    def __getattr__(name: str) -> Any:
        """The types above, for msgspec."""
        if name in _NUMBERS:
            return _NUMBERS[name]
        if name not in ("Count", "Whole", "Integer", "Word", "Words"):
            raise AttributeError(f"module {__name__} has no attribute {name!r}")
        from msgspec import Meta

        word = Annotated[str, Meta(pattern=r"^[^\x00]*$")]
        return {
            "Count": Annotated[int, Meta(ge=0, le=_MOST)],
            "Whole": Annotated[int, Meta(ge=1, le=_MOST)],
            "Integer": Annotated[int, Meta(ge=-_MOST - 1, le=_MOST)],
            "Word": word,
            "Words": Annotated[list[word], Meta(min_length=1)],
        }[name]


class _Number(type):
    """Type of a number within bounds. msgspec gets its values from `_read`, then checks instances."""

    words: str
    fits: Callable[[float], bool]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, float)


_NUMBERS = {
    name: _Number(name, (), {"words": words, "fits": staticmethod(fits)})
    for name, words, fits in (
        ("Number", "a number", lambda value: not math.isnan(value)),
        ("Finite", "a finite number", math.isfinite),
        ("From0", "a number, 0 or more", lambda value: value >= 0),
        ("Above0", "a number above 0", lambda value: value > 0),
        ("Positive", "a finite number above 0", lambda value: 0 < value < math.inf),
        ("Share", "a number above 0, at most 1", lambda value: 0 < value <= 1),
        ("Chance", "a number from 0 to 1", lambda value: 0 <= value <= 1),
        ("Percent", "a number above 0, at most 100", lambda value: 0 < value <= 100),
        ("Amount", "a number from 0 to 1e12", lambda value: 0 <= value <= 1e12),
    )
}
_MOST = 2**63 - 1
_INFINITE = {"inf": math.inf, "-inf": -math.inf}
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a date with its time",
}
"""The name of each type: msgspec's, and the one in messages."""


def parsed(data: bytes | str, where: str) -> Any:
    """The value of a JSON text.

    Raises:
        InputError: it is invalid.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: cannot be read as JSON: {error}; was it edited or cut short?") from None


def read(path: Path, kind: type[T], *, every: bool = False) -> T:
    """The document of a JSON file, checked by `decoded`.

    Raises:
        InputError: it cannot be read, or same as `decoded`.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return decoded(kind, parsed(data, str(path)), str(path), every=every)


def decoded(
    kind: type[T], told: Any, where: str, at: str = "", *, every: bool = False, only: bool = False
) -> T:
    """A value of a JSON or TOML parser, as data of a type.

    `where`: the file; `at`: path of the value in it. `every`: members with a default are required too. `only`: other
    members are errors.

    Raises:
        InputError: one line with the place, the member, and what was expected.
    """
    import msgspec

    try:
        made = msgspec.convert(told, kind, dec_hook=_read)
        for member, wrong in _strangers(told, made, at, every, only):
            raise InputError(_line(where, member, wrong))
    except msgspec.ValidationError as error:
        raise InputError(_line(where, *_explained(str(error), told, at))) from None
    except UnicodeEncodeError as error:
        half = f"holds half of a surrogate pair ({error.object[error.start]!r})"
        raise InputError(_line(where, at, half)) from None
    except (RecursionError, EtudeError) as error:
        raise error if isinstance(error, InputError) else InputError(_line(where, at, str(error))) from None
    return made


def plain(data: Any) -> Any:
    """Data for JSON, its members in the order of the class; infinity is a text."""
    if is_dataclass(data) and not isinstance(data, type):
        return plain(asdict(data))
    if isinstance(data, float):
        return finite(data)
    if isinstance(data, Mapping):
        return {name: plain(each) for name, each in data.items()}
    if isinstance(data, list | tuple):
        return [plain(each) for each in data]
    return data


def finite(value: float) -> float | str:
    """A number for JSON; infinity and nan as text that `float` reads."""
    return value if math.isfinite(value) else repr(float(value))


def _read(kind: Any, told: Any) -> Any:
    """Decoder hook of msgspec: a path, or a value of one of `_NUMBERS`."""
    if kind is Path:
        if type(told) is str and "\0" not in told:
            return Path(told)
        raise ValueError(f"expected a path, found {short(told)}")
    value = math.nan
    if type(told) is str:
        value = _INFINITE.get(told, math.nan)
    elif type(told) in (int, float):
        with suppress(OverflowError):
            value = float(told)
    if kind.fits(value):
        return value
    raise ValueError(f"expected {kind.words}, found {short(told)}")


def _strangers(told: Any, made: Any, at: str, every: bool, only: bool) -> Iterator[tuple[str, str]]:
    """Missing members with a default, and unknown members, each with its error."""
    if isinstance(told, Mapping) and is_dataclass(made):
        known = [each.name for each in fields(made)]
        if every:
            yield from ((_member(at, name), "is missing") for name in known if name not in told)
        if only:
            yield from ((_member(at, name), "is unknown to this Étude") for name in told if name not in known)
        inner = [(_member(at, name), told[name], getattr(made, name)) for name in known if name in told]
    elif isinstance(told, list | tuple) and isinstance(made, list | tuple):
        inner = [(f"{at}[{index}]", *pair) for index, pair in enumerate(zip(told, made, strict=False))]
    elif isinstance(told, Mapping) and isinstance(made, Mapping):
        inner = [(_member(at, name), told[name], made[name]) for name in told if name in made]
    else:
        return
    for member, value, data in inner:
        if value is not data:
            yield from _strangers(value, data, member, every, only)


def _member(at: str, name: Any) -> str:
    shown = name if str(name).isidentifier() else short(name)
    return f"{at}.{shown}" if at else str(shown)


def _line(where: str, member: str, wrong: str) -> str:
    return f"{where}: {member}: {wrong}; was it edited?" if member else f"{where}: {wrong}; was it edited?"


def _explained(said: str, told: Any, at: str) -> tuple[str, str]:
    """An error of msgspec as the member and its fault."""
    text, _, place = said.rpartition(" - at `") if " - at `" in said else (said, "", "")
    path = re.sub(r"^(?:key` in `)?\$\.?|`$", "", place)
    member = at + ("." if at and path and not path.startswith("[") else "") + path
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        return _member(member, missing[1]), "is missing"
    if expected := re.fullmatch(r"Expected `([a-z |]+)`(.*?)(?:, got .*)?", text):
        kinds = " or ".join(_WORDS.get(kind, kind) for kind in expected[1].split(" | "))
        kinds += (
            " without NUL"
            if expected[2].startswith(" matching")
            else expected[2].replace(" >= ", " from ").replace(" <= ", " up to ")
        )
        text = f"expected {kinds}, found {short(_at(told, path))}"
    elif text.startswith("Invalid enum value"):
        text = f"{text.removeprefix('Invalid enum value ')} is none that is known"
    return member, text


def _at(told: Any, path: str) -> Any:
    """The value at a path of msgspec; for a value of a mapping, which it does not name, the mapping."""
    for name, index in re.findall(r"([^.\[\]]+)|\[([0-9]+|\.\.\.)\]", path):
        if index == "...":
            return told
        told = told[name] if name else told[int(index)]
    return told


def short(told: Any) -> str:
    """A value, shortened for a line of text."""
    try:
        text = repr(told)
    except (RecursionError, ValueError):  # nested lists, digits by the thousand
        return f"a {type(told).__name__} that is too large"
    return text if len(text) <= 40 else f"{text[:40]}…"
