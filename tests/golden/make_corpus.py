"""How the inputs in corpus/ came about: `python tests/golden/make_corpus.py [NAME…]`, with src and tests on PYTHONPATH.

What is committed counts: it does not move when a writer changes. Run this for a new input only; an input that is there
stays as it is unless it is named. Numbers are seeded, machine and times are fixed, no program is measured.
"""

from __future__ import annotations

import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from golden.corpus import keep, stored
from golden.making import MADE
from golden.making.machines import MACHINE
from support.builders import still_machine


def main(patterns: list[str]) -> None:
    """Make what is not there, and what is named."""
    there = stored()
    wanted = [n for n in MADE if (any(fnmatch(n, p) for p in patterns) if patterns else n not in there)]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        still_machine(patch)
        patch.setattr("etude.machine.snapshot.take", lambda **_: MACHINE)
        for name in wanted:
            place = Path(directory) / name
            place.parent.mkdir(exist_ok=True)
            MADE[name](place)
            keep(place, name)
            print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
