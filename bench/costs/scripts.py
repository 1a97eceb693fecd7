"""What the script language costs: trials beside the same through `etude bench`, and --check beside splitting text."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from rows import ETUDE, Row, at_most, interleave, printed, ratios, wall_s

TRIALS = 1000
SCRIPT = """\
VAR RULE=10 1 getstats --predicate '("$delta" < 0.05 * $mean) || ($count > 30)'
FOREACH FS ext2 ext3 ext4 xfs btrfs f2fs jfs nilfs2 udf reiserfs
  FOR N=1 TO 1000
    THREADS=4
    TEST %FS%:%N%:%THREADS% %RULE%
      SETUP fs-setup.sh %FS%
      EXEC postmark.sh
      CLEANUP fs-cleanup.sh %FS%
    DONE
  DONE
DONE
"""
CHECK = """
import json, sys, time
from etude.cli.measure.run import _told
from etude.script.run import read_script
import etude.stats.predicate, etude.stats.expression, etude.analysis.getstats.options

def check():
    start = time.perf_counter()
    text = _told(read_script(sys.argv[1]).dry_run(), sys.argv[1])
    return time.perf_counter() - start, text

def split():
    start = time.perf_counter()
    with open(sys.argv[2]) as file:
        lines = [line.split() for line in file.read().splitlines()]
    return time.perf_counter() - start

seconds, text = check()
if not sys.argv[3:]:
    lines = []
    for test in read_script(sys.argv[1]).dry_run().tests:
        rule = " ".join(test.program)
        lines += [f"TEST {test.name} {test.minimum} {test.step} {rule}"]
        lines += [f"{directive} {line}" for directive, line in test.lines] + ["DONE"]
    open(sys.argv[2], "w").write("\\n".join(lines))
else:
    print(json.dumps({"check": min(seconds, check()[0]), "split": min(split() for _ in range(5))}))
"""


def scripts(rounds: int) -> list[Row]:
    """Whole commands, engine's own repetition off on both sides; then --check of a script of 10,000 tests."""
    return [
        _trials("/bin/true", TRIALS, rounds, 1.5),
        _trials("sleep 0.01", TRIALS, max(2, rounds // 2), 1.03),
        _check(rounds),
    ]


def _trials(command: str, trials: int, rounds: int, limit: float) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        script = Path(scratch) / "trials.ap"
        script.write_text(f"TEST trials {trials}\nEXEC {command}\nDONE\n")
        count = iter(range(10**6))

        def run() -> float:
            return wall_s([ETUDE, "run", "-o", f"{scratch}/{next(count)}", str(script)])

        def bench() -> float:
            fixed = ["--min-trials", str(trials), "--max-trials", str(trials), "--time", "1h"]
            return wall_s([ETUDE, "bench", "-o", f"{scratch}/{next(count)}", *fixed, command])

        found = interleave({"run": run, "bench": bench}, rounds)
    what = f"{trials:,} trials of {command} through a script"
    return at_most(what, "through etude bench", ratios(found["run"], found["bench"]), limit)


def _check(rounds: int) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        script, expanded = Path(scratch) / "many.ap", Path(scratch) / "expanded.ap"
        script.write_text(SCRIPT)
        program = [sys.executable, "-c", CHECK, str(script), str(expanded)]
        printed(*program)
        found = [json.loads(printed(*program, "go")) for _ in range(max(rounds, 3))]
    ratio = ratios([f["check"] for f in found], [f["split"] for f in found])
    what = "--check of a script that expands to 10,000 tests"
    return at_most(what, "reading and splitting its expanded text", ratio, 20)
