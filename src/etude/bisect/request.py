"""Request of a bisection as data, as it is stored with its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from etude.codec import decoded
from etude.commits.commit_range import CommitRange
from etude.errors import InputError
from etude.experiment.test import MetricPattern, Test
from etude.results.reader import read_experiment

KIND = "bisect"
"""Kind of the plan in experiment.json."""
NAME_LENGTH = 12
"""Characters of a commit's SHA that name its test."""


@dataclass(frozen=True)
class Request:
    """All that decides a bisection."""

    repository: str
    good: str
    bad: str
    build: str
    """Line for /bin/sh in the source tree of a commit."""
    command: tuple[str, ...]
    """The measured command; it runs in that tree."""
    metric: str = "elapsed"
    pattern: str = ""
    """Regular expression of the metric in the command's output; empty: a metric that Étude measures."""
    unit: str = "1"
    at_least: float = 0.03
    """Smallest relative step of interest."""
    confidence: float = 0.95
    ancestry: bool = False
    seed: int = 0
    budget_s: float | None = None
    """Limit of the time of builds and trials together."""
    build_limit_s: float | None = None
    timeout_s: float | None = None
    cache_bytes: int = 10 * 10**9
    builds: str = ""
    """Directory of the builds; empty: beside the results."""
    environment: Mapping[str, str] | None = None

    def test_of(self, sha: str, tree: Path) -> Test:
        """The test of a commit that is built in `tree`."""
        patterns = (MetricPattern(self.metric, self.pattern, self.unit),) if self.pattern else ()
        return Test(
            sha[:NAME_LENGTH],
            self.command,
            directory=str(tree),
            environment={"ETUDE_COMMIT": sha},
            timeout_s=self.timeout_s,
            metrics=patterns,
            parameters={"commit": sha},
        )


@dataclass(frozen=True)
class KnownCommit:
    """A commit of the range, as it is stored."""

    sha: str
    subject: str
    merge: bool = False


@dataclass(frozen=True)
class StoredRequest:
    """Request and commits of a bisection on disk."""

    request: Request
    commits: tuple[KnownCommit, ...]


def known_commits(found: CommitRange) -> tuple[KnownCommit, ...]:
    """The commits of a range, to be stored."""
    return tuple(KnownCommit(c.sha, c.subject, len(c.parents) > 1) for c in found.commits)


def to_plan(request: Request, commits: Sequence[KnownCommit]) -> dict[str, Any]:
    """The plan in experiment.json."""
    return {"kind": KIND, "request": asdict(request), "commits": [asdict(commit) for commit in commits]}


def read_request(directory: Path) -> StoredRequest:
    """Request and commits of a bisection's results. Raises InputError: they are of another kind, or were edited."""
    document = read_experiment(directory)
    plan, source = document["plan"], str(directory / "experiment.json")
    if plan.get("kind") != KIND:
        raise InputError(f"{directory}: holds no results of etude bisect")
    members = {name: value for name, value in plan.items() if name in ("request", "commits")}
    return decoded(StoredRequest, members, source, "plan", only=True)
