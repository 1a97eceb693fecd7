"""Runs one of the examples in the test machine, with the sources of this clone, and fetches its results.

usage: run_example.py EXAMPLE RESULTS [NAME=VALUE …]     as in: run_example.py nfs/kernel.ap build/nfs-kernel TRIALS=5

It prints what `etude run` printed there, and ends with its exit code; 5 if there is no test machine.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.guest.machine import PROJECT, Answer, GuestFails, Machine, image

WITHIN_S = 1500.0
"""An emulated processor is about ten times as slow as the real one."""

SHARE = "/opt/etude/share/etude"
"""Where an installed Étude looks for its library, too."""


def run_example(guest: Machine, example: str, results: Path, words: Sequence[str] = ()) -> Answer:
    """Run an example that is installed in a machine that is up; its results are at `results` then.

    Raises:
        GuestFails: it did not end in time, or wrote no results.
    """
    there = f"/root/{results.name}"
    run = ["etude", "run", "-o", there, f"{SHARE}/examples/{example}", *words]
    answer = guest.run(f"rm -rf {there}; APLIB= {shlex.join(run)}", within_s=WITHIN_S)
    if guest.run(f"test -d {there}").status:
        raise GuestFails(f"no results of {example}: status {answer.status}\n{answer.out}\n{answer.err}")
    guest.fetch(there, results.parent)
    return answer


def main(arguments: Sequence[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    example, results, *words = arguments
    place = Path(results).resolve()
    if image() is None:
        print("run_example: no test machine has been built: make guest", file=sys.stderr)
        return 5
    if not (PROJECT / "examples" / example).is_file():
        print(f"run_example: there is no examples/{example}", file=sys.stderr)
        return 3
    if place.exists():
        print(f"run_example: {results} exists; name another directory", file=sys.stderr)
        return 3
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as directory, Machine(Path(directory) / "guest") as guest:
            guest.start()
            guest.put_source()
            guest.check(f"rm -rf {SHARE}/examples")
            guest.put(PROJECT / "examples", SHARE)
            answer = run_example(guest, example, place, words)
    except GuestFails as failed:
        print(f"run_example: {failed}", file=sys.stderr)
        return 1
    sys.stdout.write(answer.out)
    sys.stderr.write(answer.err)
    print(f"Results: {results}")
    return answer.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
