"""`--pool`: parses its text (`local`, `slurm,partition=bench,time=30m`, a file), and opens that pool."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, get_args

from etude.cluster.pool.held_pool import HeldPool
from etude.cluster.pool.job import FileAccess, Kind, Pool, PoolSpec
from etude.cluster.pool.local import LocalPool
from etude.cluster.pool.slurm.answers import expand
from etude.cluster.pool.slurm.pool import SlurmPool
from etude.cluster.pool.staging import EngineStaging, ResultStaging
from etude.errors import UsageError
from etude.toml_config import document
from etude.units.parsing import QuantityError, duration

KINDS = get_args(Kind)
TEXTS = ("partition", "account", "qos", "constraint", "reservation", "python")
NODES = ("nodelist", "exclude")
TIMES = {"time": "time_s", "patience": "patience_s"}
WAYS = ("etude", "results")
KEYS = (*TEXTS, *NODES, *TIMES, *WAYS, "nodes_at_once")

Fail = Callable[[str | None, str], NoReturn]


def read_pool(text: str) -> PoolSpec:
    """The settings of `--pool`: a word with its keys, or a file that has them in the table [pool].

    Raises:
        UsageError: an unknown word or key, an invalid value; InputError: the same in a file.
    """
    if text.endswith(".toml"):
        whole = document(Path(text))
        whole.only(("pool",))
        table = whole.section("pool")
        return _spec(table.values, lambda key, what: table.fail(key, what))
    kind, *pairs = re.split(r",(?=[a-z_ ]+=)", text)

    def fail(key: str | None, what: str) -> NoReturn:
        raise UsageError(f"--pool {text}: {what}")

    values: dict[str, object] = {"kind": kind.strip()}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key.strip() in values:
            fail(key, f"{key.strip()} is given twice")
        values[key.strip()] = value.strip()
    return _spec(values, fail)


@contextmanager
def open_pool(spec: PoolSpec, base: Path, say: Callable[[str], None] = lambda line: None) -> Iterator[Pool]:
    """The pool, until the block ends. Results are below the directory `base`; `say` receives a line while it waits.
    Raises MachineRefuses if it cannot be opened."""
    pool: Pool
    if spec.kind == "local":
        pool = LocalPool(say=say)
    elif spec.etude == "copied":
        pool = HeldPool(SlurmPool(spec), EngineStaging)  # results are written here
    elif spec.results == "copied":
        pool = HeldPool(SlurmPool(spec), ResultStaging)
    else:
        pool = SlurmPool(spec)
    try:
        yield pool
    finally:
        pool.close()


def _spec(values: Mapping[str, object], fail: Fail) -> PoolSpec:
    kind = values.get("kind")
    if kind not in KINDS:
        said = "names no pool" if kind is None else f"{kind!r} is no pool"
        fail(
            "kind" if kind is not None else None,
            f"{said}: expected {' or '.join(KINDS)}, or a file FILE.toml",
        )
    given = {key: value for key, value in values.items() if key != "kind"}
    if kind == "local" and given:
        fail(next(iter(given)), f"a local pool has no {next(iter(given))}: those are keys of slurm")
    for key in given:
        if key not in KEYS:
            alike = difflib.get_close_matches(key, KEYS, 1)
            fail(key, f"{key} is not known: " + (f"{alike[0]}?" if alike else f"known are {', '.join(KEYS)}"))
    made = dict(_value(key, value, fail) for key, value in given.items())
    return PoolSpec(kind, **made)  # type: ignore[arg-type]


def _value(key: str, value: object, fail: Fail) -> tuple[str, object]:
    if key == "nodes_at_once":
        number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            fail(key, f"{key} is {value!r}: expected a number of nodes, at least 1")
        return key, number
    if not isinstance(value, str) or not value or not value.isprintable():
        such = 'a time in quotes, such as "30m"' if key in TIMES else "a text of one line"
        fail(key, f"{key} is {value!r}: expected {such}")
    if key in TIMES:
        return TIMES[key], _seconds(key, value, fail)
    if key in WAYS and value not in get_args(FileAccess):
        fail(key, f"{key} is {value!r}: expected {' or '.join(get_args(FileAccess))}")
    if key in NODES and expand(value) is None:
        fail(key, f"{key} is {value!r}: expected names of nodes, as n1,n[3-5]")
    return key, value


def _seconds(key: str, text: str, fail: Fail) -> float:
    seconds = 0.0
    with suppress(QuantityError):
        seconds = duration(text, bare=None)  # a number alone is minutes to Slurm
    if not 0 < seconds <= 365 * 86400:
        fail(key, f"{key} is {text!r}: expected a time such as 90s, 30m, 2h or 1-12:00:00, up to 365 days")
    return seconds
