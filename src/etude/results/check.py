"""Whether what a results file holds is what docs/formats.md says: a file may have been edited, or be another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from etude.codec import short
from etude.results.model import CACHE_WAYS, METRICS

_COUNT, _TEXT, _FLAG, _NONE = int, str, bool, type(None)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "test": (_TEXT,),
    "trial": (_COUNT,),
    "block": (_COUNT,),
    "order": (_COUNT,),
    "worker": (_COUNT,),
    "host": (_TEXT,),
    "sitting": (_COUNT,),
    "boot_id": (_TEXT,),
    "command": (list,),
    "start": (_TEXT, _NONE),
    "start_ns": (_COUNT, _NONE),
    "inner": (_COUNT,),
    "exit_status": (_COUNT, _NONE),
    "signal": (_COUNT, _NONE),
    "timed_out": (_FLAG,),
    "cancelled": (_FLAG,),
    "error": (_TEXT, _NONE),
    "kept": (_FLAG,),
    "why": (_TEXT, _NONE),
    "metrics": (dict,),
}
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "cache": (dict, _NONE),
    "stdout": (dict, _NONE),
    "stderr": (dict, _NONE),
    "windows": (list, _NONE),
    "notes": (list,),
    "rows": (_COUNT,),
    "kernel": (list, _NONE),
    "throttled": (_COUNT, _NONE),
    "offset_ns": (_COUNT,),
    "offset_error_ns": (_COUNT,),
    "command_text": (_TEXT, _NONE),
    "accepted": (_COUNT, _NONE),
}
_MOST = 2**63 - 1
_BOUNDS = {"throttled": _MOST, "accepted": 255}
_NUMBERS = (float, int)
_STREAM = [int, str, str]


def check_measurement(line: Mapping[str, Any]) -> None:
    """Raise for a JSON object that is no measurement. Its numbers are finite: no other can be parsed.

    Raises:
        KeyError: a member is missing; ValueError, TypeError: it cannot be meant.
    """
    for name, allowed in _TYPES.items():
        kind = type(line[name])
        if kind not in allowed or (kind is int and not 0 <= line[name] <= _MOST):
            raise ValueError(f"{name} cannot be {short(line[name])}")
    for name, allowed in _OPTIONAL.items():
        value = line.get(name)
        if name in line and (
            type(value) not in allowed or (name in _BOUNDS and not 0 <= (value or 0) <= _BOUNDS[name])
        ):
            raise ValueError(f"{name} cannot be {short(line[name])}")
    if line["inner"] < 1 or not all(type(word) is str for word in line["command"]):
        raise ValueError("inner must be at least 1, and command a list of strings")
    if "\n" in (line.get("command_text") or ""):
        raise ValueError(f"command_text cannot be {short(line['command_text'])}: it has two lines")
    if line.get("rows", 1) < 1:
        raise ValueError(f"rows cannot be {short(line['rows'])}")
    if line.get("kernel") is not None:
        _check_kernel(line["kernel"])
    if line.get("cache") is not None:
        _check_cache(line["cache"])
    for name, value in line["metrics"].items():
        # Nearly all metrics are of this form, and thousands of lines are read while a benchmark waits.
        plain = type(value) is list and len(value) == 2 and type(value[0]) in _NUMBERS
        if not plain or type(value[1]) is not str:
            _check_metric(name, value)
        ours = METRICS.get(name)
        if ours is not None and (value[1] != ours.unit or (value[0] is not None and value[0] < 0)):
            raise ValueError(
                f"metric {name} must be a number of 0 or more in {ours.unit}, not {short(value)}"
            )
    for name in ("stdout", "stderr"):
        stream = line.get(name)
        if stream is not None and [type(stream.get(m)) for m in ("bytes", "sha256", "tail")] != _STREAM:
            raise ValueError(f"{name} must hold bytes, sha256 and tail")


def _check_cache(cache: Mapping[str, Any]) -> None:
    declared, performed = cache.get("declared"), cache.get("performed")
    if declared not in CACHE_WAYS or (performed is not None and performed not in CACHE_WAYS):
        raise ValueError(f"cache must hold declared and performed, of {', '.join(CACHE_WAYS)}")


def _check_kernel(messages: list[Any]) -> None:
    kinds = (int, int, str)
    for message in messages:
        if type(message) is not dict or tuple(type(message.get(m)) for m in ("ns", "level", "text")) != kinds:
            raise ValueError(f"kernel must hold objects with ns, level and text, not {short(message)}")


def _check_metric(name: str, value: Any) -> None:
    whole = type(value) is list and len(value) >= 2 and type(value[1]) is str
    if not whole or not (
        type(value[0]) in _NUMBERS or (value[0] is None and len(value) > 2 and type(value[2]) is str)
    ):
        expected = "[number, unit] or [null, unit, reason]"
        raise ValueError(f"metric {name} must be {expected}, not {short(value)}")


def check_experiment(document: Mapping[str, Any]) -> None:
    """Raise for an experiment.json whose members cannot be meant.

    Raises:
        ValueError: what is wrong.
    """
    missing = [name for name in ("tests", "plan", "sittings") if name not in document]
    if missing:
        raise ValueError(f"lacks {', '.join(missing)}; was it edited?")
    if type(document["plan"]) is not dict:
        raise ValueError("plan must be an object")
    for name in ("tests", "sittings", "earlier_rules"):
        entries = document.get(name, [])
        if type(entries) is not list or not all(type(entry) is dict for entry in entries):
            raise ValueError(f"{name} must be a list of objects")
        if name != "tests" and any(type(entry.get("sitting")) is not int for entry in entries):
            raise ValueError(f"each of {name} must hold sitting, its number")
    if type(document.get("began_as", {})) is not dict:
        raise ValueError("began_as must be an object")
    machine = document.get("machine") or {}
    if type(machine) is not dict:
        raise ValueError("machine must be an object")
    if not all(type(machine.get(when)) in (dict, _NONE) for when in ("before", "after")):
        raise ValueError("before and after of machine must be objects")
    for sitting in document["sittings"]:
        torn = sitting.get("torn") or []
        if type(torn) is not list or not all(type(name) is str for name in torn):
            raise ValueError("torn of sittings must be a list of names")
        if type(sitting.get("machine")) not in (dict, _NONE):
            raise ValueError("machine of sittings must be an object")
    _check_tests(document["tests"])
    planned = document["plan"].get("tests") or []
    if type(planned) is not list or any(
        type(t) is not dict or type(t.get("name")) is not str for t in planned
    ):
        raise ValueError("the tests of plan must be a list of objects with a name")


def _check_tests(tests: Sequence[Mapping[str, Any]]) -> None:
    for test in tests:
        if [type(test.get(m)) for m in ("name", "directory", "role", "parameters")] != [str, str, str, dict]:
            raise ValueError("each of tests must hold name, directory, role and parameters")
        if not _within(test["directory"]):
            raise ValueError(f"the directory of test {test['name']!r} cannot be {short(test['directory'])}")
        for name, least in (("workers", 1), ("lines", 0)):
            if name in test and (type(test[name]) is not int or not least <= test[name] <= _MOST):
                raise ValueError(f"{name} of test {test['name']!r} cannot be {short(test[name])}")
    for name in ("name", "directory"):
        most = Counter(test[name] for test in tests).most_common(1)
        if most and most[0][1] > 1:
            raise ValueError(f"two tests have one {name}: {short(most[0][0])}")


def _within(name: str) -> bool:
    """Whether it names an entry of the results directory itself, and none elsewhere."""
    return name not in ("", ".", "..") and not any(c in "/\0" or "\ud800" <= c <= "\udfff" for c in name)
