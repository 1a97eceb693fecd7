"""Names the packages of Cargo.lock, constraints.txt and release-tools.txt that an advisory says are unsafe.

python packaging/check_advisories.py DATABASE…

A DATABASE is a checkout of RustSec's advisory-db (crates/NAME/RUSTSEC-….md) or of PyPA's advisory-database
(vulns/NAME/PYSEC-….yaml). Nothing is fetched. Exit status: 0 where none is affected, 1 where one is, 2 where a DATABASE
holds no advisory. Crates that are only unmaintained are named, and do not count.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PINS = ("constraints.txt", "packaging/release-tools.txt")
_COMPARISON = re.compile(r"(>=|<=|>|<|=|\^|~)?\s*(\d+(?:\.\d+)*)")
_PINNED = re.compile(r"^([\w.-]+)==([\w.!+-]+)", re.MULTILINE)
_FRONT = re.compile(r"```toml\n(.*?)```", re.DOTALL)
_WIDTH = 3
"""Parts of a crate's version."""


def crates() -> list[tuple[str, str]]:
    """Name and version of each package of Cargo.lock that comes from a registry."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    return [(each["name"], each["version"]) for each in locked if "source" in each]


def wheels() -> list[tuple[str, str]]:
    """Name and version of each package that is installed to build, run, develop or release."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in PINS]
    return sorted({found for text in texts for found in _PINNED.findall(text)})


def meets(version: str, requirement: str) -> bool:
    """Whether a crate's version meets all comparisons of a requirement such as `>= 1.2.3, < 1.3.0` or `^0.4`."""
    own = _parts(version.partition("-")[0].partition("+")[0])
    return all(_compares(own, sign, bound) for sign, bound in _COMPARISON.findall(requirement))


def _compares(own: tuple[int, ...], sign: str, bound: str) -> bool:
    given = bound.split(".")
    least = _parts(bound)
    if sign in (">=", "<=", ">", "<"):
        return {">=": own >= least, "<=": own <= least, ">": own > least, "<": own < least}[sign]
    if sign == "=":
        return own[: len(given)] == least[: len(given)]
    same = (
        len(given) - 1
        if sign == "~" and len(given) > 1
        else 1 + next((n for n, p in enumerate(least) if p), 0)
    )
    return own >= least and own[:same] == least[:same]


def _parts(version: str) -> tuple[int, ...]:
    found = [int(part) for part in version.split(".")]
    return tuple(found + [0] * (_WIDTH - len(found)))


def of_crates(database: Path, locked: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """A line for each advisory that affects a crate, and whether it is about more than its maintenance."""
    for name, version in locked:
        for file in sorted((database / "crates" / name).glob("RUSTSEC-*.md")):
            front = _FRONT.search(file.read_text(encoding="utf-8"))
            told: Mapping[str, Any] = tomllib.loads(front[1]) if front else {}
            versions, advisory = told.get("versions", {}), told.get("advisory", {})
            safe = [*versions.get("patched", ()), *versions.get("unaffected", ())]
            if not advisory.get("withdrawn") and not any(meets(version, each) for each in safe):
                what = advisory.get("informational", "")
                yield (
                    f"{name} {version}: {file.stem}{what and f' ({what})'}",
                    what not in ("unmaintained", "notice"),
                )


def of_wheels(database: Path, pinned: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """The same of a package of Python."""
    for name, version in pinned:
        for file in sorted((database / "vulns" / canonicalize_name(name)).glob("PYSEC-*.yaml")):
            told = yaml.safe_load(file.read_text(encoding="utf-8"))
            if not told.get("withdrawn") and any(affects(each, version) for each in told.get("affected", ())):
                yield f"{name} {version}: {told['id']}", True


def affects(affected: Mapping[str, Any], version: str) -> bool:
    """Whether a version is listed, or lies in a range of versions of an advisory (OSV)."""
    own = Version(version)
    return version in affected.get("versions", ()) or any(
        _within(own, each["events"]) for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"
    )


def _within(own: Version, events: Sequence[Mapping[str, str]]) -> bool:
    inside = False
    for event in events:
        (what, bound), *_ = event.items()
        at = Version(str(bound))
        if what == "introduced" and own >= at:
            inside = True
        if (what == "fixed" and own >= at) or (what == "last_affected" and own > at):
            inside = False
    return inside


def main() -> int:
    """Print what was found."""
    bad = 0
    for database in map(Path, sys.argv[1:]):
        if (database / "crates").is_dir():
            packages, found = crates(), list(of_crates(database, crates()))
        elif (database / "vulns").is_dir():
            packages, found = wheels(), list(of_wheels(database, wheels()))
        else:
            print(f"{database}: holds no advisories: expected crates/ or vulns/ in it", file=sys.stderr)
            return 2
        for line, counts in found:
            print(line if counts else f"note: {line}")
        bad += sum(counts for _, counts in found)
        print(
            f"{database.name}: {len(packages)} packages looked up, {sum(counts for _, counts in found)} affected"
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
