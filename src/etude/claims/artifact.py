"""An artifact of claims against the check lists of ACM's badges: what its files show, and what its authors must say.

The items are those of the systems committees' lists for ACM's policy 1.1 (https://sysartifacts.github.io).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from etude.claims.claims_file import Experiment
from etude.claims.run import Result
from etude.claims.stored_claims import StoredClaims
from etude.results.reader import read_experiment
from etude.toml_config import parsed

Badge = Literal["available", "functional", "reproduced"]
Item = Literal[
    "archive",
    "read me",
    "license",
    "environment",
    "one command",
    "small example",
    "portable",
    "components",
    "exact machine",
    "commands",
    "resources",
    "figures",
    "verdicts",
    "elsewhere",
    "dependencies",
]
SMALL = "quick"
"""Scale that serves as a minimal working example."""
_BOUND_TO_PLACE = re.compile(
    r"(?<![\w.])/(?:home|root|tmp|mnt|media|scratch)/[^\s'\";|&]+|\b(?!127\.)\d{1,3}(?:\.\d{1,3}){3}\b"
)


@dataclass(frozen=True)
class Check:
    """One item of a badge's check list."""

    badge: Badge
    item: Item
    met: bool | None
    """None: no file shows it; the authors must see to it."""
    detail: str = ""


def checks_of(stored: StoredClaims, results: Sequence[Result]) -> tuple[Check, ...]:
    """Every item, by badge."""
    return tuple(_checks(stored, results))


def _checks(stored: StoredClaims, results: Sequence[Result]) -> Iterator[Check]:
    license_file = _license(Path(stored.state.file).parent)
    yield Check("available", "archive", None)
    yield Check("available", "read me", True, "README.txt, appendix.md")
    yield Check("available", "license", license_file is not None, license_file or "")
    unknown = [name for name, machine in machines_of(stored).items() if not machine]
    yield Check("functional", "environment", not unknown, ", ".join(unknown))
    yield Check("functional", "one command", True)
    yield Check("functional", "small example", SMALL in scales_of(stored), SMALL)
    bound = list(dict.fromkeys(_bound_to_place(stored)))
    yield Check("functional", "portable", not bound, ", ".join(bound))
    yield Check("functional", "components", None)
    yield Check("reproduced", "exact machine", not unknown, ", ".join(unknown))
    yield Check("reproduced", "commands", True)
    unmeasured = [r.claim.id for r in results if not r.trials]
    yield Check("reproduced", "resources", not unmeasured, ", ".join(unmeasured))
    without = [r.claim.id for r in results if not r.claim.figure]
    yield Check("reproduced", "figures", not without, ", ".join(without))
    others = [r.claim.id for r in results if r.status != "supported"]
    yield Check("reproduced", "verdicts", not others, ", ".join(others))
    yield Check("reproduced", "elsewhere", None)
    yield Check("reproduced", "dependencies", None)


def _license(place: Path) -> str | None:
    found = sorted(place.glob("LICEN[CS]E*")) + sorted(place.glob("COPYING*"))
    return found[0].name if found else None


def scales_of(stored: StoredClaims) -> frozenset[str]:
    """Names of the scales that some experiment has, besides the full one."""
    tables = parsed(stored.file.path, stored.state.text).section("experiment")
    inner = {"commands", "variables", "metrics", "needs"}
    return frozenset(
        key
        for name in tables.values
        for key, value in tables.section(name).values.items()
        if isinstance(value, dict) and key not in inner
    )


def lines_of(experiment: Experiment) -> tuple[str, ...]:
    """Every command line of an experiment."""
    return (*experiment.commands.values(), *experiment.hooks.values(), *experiment.data)


def _bound_to_place(stored: StoredClaims) -> Iterator[str]:
    """Paths and addresses in the commands that another machine does not have."""
    for name in stored.state.experiments:
        for line in lines_of(stored.file.experiments[name]):
            yield from _BOUND_TO_PLACE.findall(line)


def machines_of(stored: StoredClaims) -> dict[str, dict[str, Any]]:
    """The machine of each experiment before its first trial; empty if it was not recorded."""
    return {
        name: (read_experiment(place).get("machine") or {}).get("before") or {}
        for name, place in stored.measured().items()
    }


def disk_bytes(place: Path) -> int:
    """Size of all files below a directory."""
    return sum(each.lstat().st_size for each in place.rglob("*") if each.is_file())
