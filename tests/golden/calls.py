"""Every call that is held: a line adds one. `make golden` writes its golden file, which has its name.

The words are those of a command line. What of the corpus they name is laid into the working directory first.
"""

from __future__ import annotations

from collections.abc import Mapping

from etude.cli.main import ENGINE_VERBS, VERBS

BENCHES = (
    "plain", "alone", "blocks", "failed", "aborted", "timed-out", "set-aside", "workers", "parameters", "inner",
    "duet", "interrupted", "resumed", "torn", "cooled", "windowed", "told", "warned", "boots", "older", "newer",
    "spoilt", "markup",
)  # fmt: skip


def helps() -> dict[str, str]:
    """The help of every verb and program."""
    lines = [f"etude {verb} --help" for verb in (*VERBS, *ENGINE_VERBS)]
    lines += ["etude --help", "etude", "etude --version", "getstats --help", "getstats --version"]
    lines += ["graphit --help", "graphit --version", "etude-engine --help", "etude stats --style autopilot --help"]
    return {f"help/{line.replace('--', '').replace(' ', '-')}": line for line in lines}


STATS = {f"stats/{name}": f"etude stats bench/{name}" for name in BENCHES}

CALLS: Mapping[str, str] = {**helps(), **STATS}
