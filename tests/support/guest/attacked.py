"""What another user tries against root's Étude, tried in the test machine by its user `nobody`.

usage: attacked.py [WORD …]     options of pytest, as in: attacked.py -k stores

It prints what pytest prints there (all attempts take some twenty minutes), and ends with its exit status; 5 if there is
no test machine.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import _pytest
import iniconfig
import packaging
import pluggy
import py
import pygments
import pytest

from support.guest.machine import PROJECT, Answer, GuestFails, Machine, image

ATTEMPTS = "/root/tests/e2e/machine/test_other_users.py"
NEEDED = (_pytest, iniconfig, packaging, pluggy, py, pygments, pytest)
"""What runs the attempts, in plain Python."""
UNGUARDED = ("protected_symlinks", "protected_fifos", "protected_regular", "protected_hardlinks")
"""Settings of the kernel that would stop some of them before Étude does."""
WITHIN_S = 3000.0


def attacked(guest: Machine, words: Sequence[str] = ()) -> Answer:
    """The attempts that `words` (options of pytest) leave, in a machine that is up."""
    place = guest.check("ls -d /opt/etude/lib/python3*/site-packages").strip()
    for module in NEEDED:
        assert module.__file__ is not None
        file = Path(module.__file__)
        guest.put(file.parent if file.name == "__init__.py" else file, place)
    guest.put(PROJECT / "tests/support", "/root/tests")
    guest.put(PROJECT / ATTEMPTS.removeprefix("/root/"), str(Path(ATTEMPTS).parent))
    guest.check("; ".join(f"echo 0 >/proc/sys/fs/{name}" for name in UNGUARDED))
    alone = ("--noconftest", "-c", "/dev/null", "-p", "no:cacheprovider", "-o", "pythonpath=/root/tests")
    run = ["/opt/etude/bin/python", "-m", "pytest", "-q", "-rA", *alone, *words, ATTEMPTS]
    return guest.run(f"ETUDE_PATIENCE_S=600 {shlex.join(run)}", within_s=WITHIN_S)


def main(words: Sequence[str]) -> int:
    if image() is None:
        print("attacked: no test machine has been built: make guest", file=sys.stderr)
        return 5
    try:
        with (
            tempfile.TemporaryDirectory() as directory,
            Machine(Path(directory), processors=1, life_s=2 * WITHIN_S) as guest,
        ):
            guest.start()
            guest.put_source()
            answer = attacked(guest, words)
    except GuestFails as failed:
        print(f"attacked: {failed}", file=sys.stderr)
        return 1
    sys.stdout.write(answer.out)
    sys.stderr.write(answer.err)
    return answer.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
