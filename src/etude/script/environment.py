"""Environment of a script's commands (docs/reference/language.md, "The environment of scripts")."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from etude.program import engine_path
from etude.script.state import RunningTest, Scope


@cache
def shipped_directory() -> Path | None:
    """The directory of the scripts that come with Étude: installed with it, or beside its sources."""
    sources = Path(__file__).resolve().parents[3] / "examples" / "lib"
    installed = Path(sys.prefix) / "share" / "etude" / "examples" / "lib"
    return next((path for path in (sources, installed) if path.is_dir()), None)


def search_path(environment: Mapping[str, str]) -> list[str]:
    """The directories of $APLIB, then the shipped ones."""
    named = [os.path.abspath(part) for part in environment.get("APLIB", "").split(":") if part]
    own = shipped_directory()
    return [*named, *([str(own)] if own is not None and str(own) not in named else [])]


def variables(
    scope: Scope, mode: str, test: RunningTest | None, around: Mapping[str, str], results: Path, script: str
) -> dict[str, str]:
    """Changes to the environment `around` for a line of directive `mode`; those of one worker are added later."""
    own = scope.environment
    directories = search_path({"APLIB": own.get("APLIB", around.get("APLIB", ""))})
    path = own.get("PATH", around.get("PATH", os.defpath))
    found = {
        **own,
        "APMODE": mode,
        "APTHREAD": "1",
        "THREADS": str(scope.threads if test is None else test.threads),
        "APLIB": ":".join(directories),
        "PATH": ":".join([*directories, _programs(), path]),
        "APTIMER": own.get("APTIMER") or around.get("APTIMER") or "aptime",
        "APRESULTS": str(results),
        "APSCRIPT": script,
        "APLOG": os.devnull,
    }
    root = own.get("TESTROOT", around.get("TESTROOT"))
    if root is not None and "TESTDIR" not in own and "TESTDIR" not in around:
        found["TESTDIR"] = root
    if test is not None:
        trial = test.trial - (mode in ("STOP", "POSTCLEANUP"))  # they belong to the last trial
        found |= {"APTEST": test.name, "APEPOCH": str(trial)}
    return found


def remote_environment(scope: Scope, mode: str, test: RunningTest | None) -> dict[str, str]:
    """Changes for a line on another host: variables of the script, but no paths of this machine."""
    found = {
        name: text for name, text in scope.environment.items() if name not in ("PATH", "APLIB", "APTIMER")
    }
    found |= {
        "APMODE": mode,
        "APTHREAD": "1",
        "THREADS": str(scope.threads if test is None else test.threads),
    }
    if test is not None:
        found |= {"APTEST": test.name, "APEPOCH": str(test.trial - (mode == "POSTCLEANUP"))}
    return found | {"APLOG": os.devnull}


@cache
def _programs() -> str:
    """Directory of aptime and getstats: that of the engine."""
    return os.path.dirname(engine_path())
