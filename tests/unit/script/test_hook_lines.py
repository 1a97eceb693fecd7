"""Lines that name hosts: in their order, and what undoes on all of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from etude.script.hook_lines import HookLines
from etude.script.state import Scope


class Hosts:
    """Hosts of which the first always fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def line(self, name: str, *_: Any, undoes: bool) -> str | None:
        self.asked.append(name)
        return "exit status 1" if name == "a" else None


@pytest.mark.parametrize(("point", "asked"), [("SYSTEM", ["a"]), ("CLEANUP", ["a", "b"])])
def test_the_first_host_that_fails_ends_a_line_but_what_undoes_is_run_on_all(
    tmp_path: Path, point: str, asked: list[str]
) -> None:
    hosts = Hosts()
    context: Any = SimpleNamespace(path=tmp_path)
    lines = HookLines(context, hosts)  # type: ignore[arg-type]
    failed = lines.run(point, "@a,b true", None, Scope(), {})
    assert failed is not None
    assert failed.startswith(f"{point} failed: ")
    assert failed.endswith(" 1")
    assert hosts.asked == asked
