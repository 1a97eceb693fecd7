"""Request of a bisection as data, as it is stored with its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from etude import codec
from etude.commits.commit_range import CommitRange
from etude.errors import InputError
from etude.experiment.test import MetricPattern, Test

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
    build: codec.Word
    """Line for /bin/sh in the source tree of a commit."""
    command: tuple[codec.Word, ...]
    """The measured command; it runs in that tree."""
    metric: str = "elapsed"
    pattern: str = ""
    """Regular expression of the metric in the command's output; empty: a metric that Étude measures."""
    unit: str = "1"
    at_least: codec.Positive = 0.03
    """Smallest relative step of interest."""
    confidence: codec.Share = 0.95
    ancestry: bool = False
    seed: codec.Count = 0
    budget_s: codec.Above0 | None = None
    """Limit of the time of builds and trials together."""
    build_limit_s: codec.Above0 | None = None
    timeout_s: codec.Above0 | None = None
    cache_bytes: codec.Count = 10 * 10**9
    builds: str = ""
    """Directory of the builds; empty: beside the results."""

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
    members = {"request": asdict(request), "commits": [asdict(commit) for commit in commits]}
    return {"kind": KIND, "primary": request.metric, **members}


def request_of(document: Mapping[str, Any], directory: Path) -> StoredRequest:
    """Request and commits of a bisection's experiment.json. Raises InputError: it is of another kind, or was edited."""
    plan, source = document["plan"], str(directory / "experiment.json")
    if plan.get("kind") != KIND:
        raise InputError(f"{directory}: holds no results of etude bisect")
    members = {name: value for name, value in plan.items() if name in ("request", "commits")}
    stored = codec.decoded(StoredRequest, members, source, "plan", only=True)
    if len(stored.commits) < 2 or not stored.request.command:
        raise InputError(f"{source}: plan: expected two commits or more, and a command; was it edited?")
    return stored
