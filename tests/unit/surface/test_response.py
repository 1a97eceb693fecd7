"""One cell where it is measured: its resources held, and what they note of the levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from etude.machine.resources.ledger import Ledger
from etude.machine.resources.resource import Setting
from etude.surface.next_configuration import Visit
from etude.surface.response import measure_configuration
from support.charting import Made


@dataclass(frozen=True)
class Noted:
    """A resource that has something to note of its level."""

    name: ClassVar[str] = "noted"
    is_cgroup: ClassVar[bool] = False

    def accept(self, level: str) -> None:
        """Any."""

    def check(self) -> str | None:
        return None

    def apply(self, level: str, so_far: Setting, ledger: Ledger) -> Setting:
        return Setting(notes=(f"level {level} is rounded",))


def test_what_a_resource_notes_stands_with_the_cell(tmp_path: Path) -> None:
    response = Made()
    sample = measure_configuration(
        tmp_path / "cell",
        response,
        {"n": Noted()},
        Visit((1, 0), None, None, "why"),
        {"n": "2"},
        lambda: (5.0, math.inf),
        lambda text: None,
    )
    assert (sample.state, sample.value, sample.why) == ("measured", 200.0, "level 2 is rounded")
    assert [(asked.left_s, asked.until_s) for asked in response.asked] == [(5.0, math.inf)]
