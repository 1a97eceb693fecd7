"""The request of an experiment over a pool: the contents of its experiment.json before anything was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from etude.cluster.pool.pool_config import PoolSpec
from etude.errors import EDITED, InputError
from etude.experiment import monitoring
from etude.experiment.monitoring import Monitoring
from etude.masking import Mask
from etude.results.reader import read_trusted_experiment


def document_of(
    verb: str,
    name: str,
    plan: Mapping[str, Any],
    digest: str,
    spec: PoolSpec,
    command_line: Sequence[str] = (),
    monitor: Monitoring | None = None,
) -> dict[str, Any]:
    """Members of experiment.json; those of machines and sessions come with the parts."""
    return {
        "name": name,
        "verb": verb,
        "command_line": Mask(plan.get("masks", ())).words(command_line),
        "digest": digest,
        "plan": dict(plan),
        "monitor": monitoring.to_document(monitor),
        "pool": {**asdict(spec), "ended": None, "decisions": []},
    }


def stored_request(directory: Path) -> tuple[dict[str, Any], PoolSpec] | None:
    """The stored request of an existing experiment, and its pool; None if it was started without a pool.

    Raises:
        InputError: it cannot be read.
    """
    found = read_trusted_experiment(directory)
    pool = found.get("pool")
    if pool is None:
        return None
    try:
        members = {name: text for name, text in pool.items() if name not in ("ended", "decisions")}
        spec = PoolSpec(**members)
        names = ("name", "verb", "command_line", "digest", "plan", "monitor", "pool")
        return {name: found[name] for name in names}, spec
    except EDITED as error:
        raise InputError(
            f"{directory}/experiment.json: its pool cannot be read ({error}); was it edited?"
        ) from None


def is_complete(document: Mapping[str, Any]) -> bool:
    """True if every part has ended."""
    return str(document["pool"]["ended"]) == "complete"
