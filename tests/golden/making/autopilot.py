"""Scripts and results files in Auto-pilot's forms, specifications, and other texts, as a person writes them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from etude.results.res import format_measurement, format_snapshot
from golden.making.machines import MACHINE
from golden.making.runs import FAILING, INTERLEAVED, PLAIN, THREADS
from support.builders import measurement

LOOPS = """\
# All kinds of loops, conditions and assignments.
VAR LIST=a "b c"
VAREX TWICE=2 * 2 ** 3
ENV KIND=slow
ENVEX BYTES=4 * 2 ** 20
FOREACH X %LIST%
  FOR N=1 TO 10 ADD 4
    IF N > 5
      TEST "%X%:%N%" 3 MAX=9 TIME=1m 2 getstats --predicate '$delta < 0.05 * $mean'
        EXEC fast %X%
      DONE
    ELSE IF N = 5
      TEST "%X%:%N%" 1
        EXEC aptime middle $KIND$ && true
      DONE
    ELSE
      TEST "%X%:%N%" 2
      CACHE warm /etc/hosts
      TIMEOUT 30s
      EXEC work %X% \\
        %N% # joined
      METRIC rate:MB/s ([0-9.]+) MB/s
      METRIC p99:s $.read.p99_s
      DONE
    FI
  DONE
DONE
VAR I=0
WHILE I < 2
  ECHO round %I%, 100%%, %TWICE% $BYTES$
  VAREX I=%I% + 1
DONE
EVAL $I > 1
FOR LOAD=0.3 TO 0 ADD -0.1
  THREADS %I%
DONE
SYSTEM true
STOP
"""
DIRECTIVES = """\
FASTFAIL notify.sh
QUIET
CHECKPOINT state
TEST whole 10 MAX=20
PURPOSE all that stands in a test
EXPECT elapsed < 10 ms
CACHE chill
AGE ONCE /mnt to=70% times=2 seed=1
FILL /mnt to=80%
PRESETUP one
SETUP two
EXEC three
CLEANUP four
POSTCLEANUP five
DONE
"""
WRONG = {
    "no-done": "TEST t 2\nEXEC e\n",
    "no-such-directive": "TESTS t 2\n",
    "bad-count": "TEST t many\nEXEC e\nDONE\n",
    "bad-condition": "IF 1 2\nFI\n",
    "bad-loop": "FOR N=1 TO 10 FACTOR 1\nDONE\n",
    "twice": "TEST t 2\nEXEC e\nDONE\nTEST t 2\nEXEC e\nDONE\n",
    "exec-outside": "EXEC e\n",
}
INCLUDING = "INCLUDE common.ap\nOPTINCLUDE nowhere.inc\nTEST %NAME% 2\nEXEC e\nDONE\n"


def run_of(count: int, level: float, threads: int = 1) -> str:
    rows = [
        measurement(
            "t", trial, level + 0.01 * (trial % 3), worker=worker, metrics={
                "elapsed": [level + 0.01 * (trial % 3) + 0.001 * worker, "s"],
                "user": [level / 2, "s"],
                "system": [level / 10, "s"],
            },
        )
        for trial in range(1, count + 1)
        for worker in range(threads)
    ]  # fmt: skip
    return "".join(map(format_measurement, rows))


def appended() -> str:
    """Two runs in one file; the epochs begin again."""
    return run_of(5, 1.0) + run_of(4, 1.1)


def threaded() -> str:
    """Four threads, behind a snapshot of the machine."""
    return format_snapshot(MACHINE) + run_of(4, 2.0, 4)


def cut_short() -> str:
    """The last block has no status."""
    text = run_of(3, 1.0)
    return text[: text.rindex("status")]


def odd() -> str:
    """Blocks of others, a preamble, lines without an end, a thread that is none, and times without a unit."""
    return textwrap.dedent("""\
        written by hand\r
        [date]\r
        Thu Jan  1 00:00:00 UTC 2026\r
        [measurement]\r
        thread = 1\r
        epoch = 1\r
        command = sh -c 'echo a = b'\r
        user = 0.5\r
        sys = .25\r
        elapsed = 1\r
        status = 137\r
        signal = 9\r
        rate = 7.5 MB/s\r
        rate = 8 MB/s\r
        cycles = null 1 no such event on this machine\r
        [measurement]
        thread = 0
        epoch = 2
        elapsed = 1
        status = 0
        [measurement]
        epoch = 3
        elapsed = long
        status = 0
        [measurement]
        epoch = 4
        command = x
        user = 0.5
        sys = 0.25
        elapsed = 1.5
        set_aside = first run
        status = 0""")


RULES = """\
[rule.slower]
at_least = "2 %"
sees = "6 %"
persist = 3

[rule.anything]
test = "so*"
metric = "elapsed"
direction = "either"
at_least = 0.1
"""
WRONG_RULES = '[rule.x]\nat_least = "5 %"\nsees = "1 %"\n'
HARNESS = """\
[goal]
mean = "30 ms"
p99 = "200 ms"
errors = "1 %"
[load]
lowest = 5
highest = 4000
runlength = "20 s"
[promise]
within = "5 %"
confidence = "99 %"
budget = "2 h"
[commands]
start = "server --workers {workers}"
ready = "ask"
load = "client --rate {load} --seconds {runlength} --seed {seed}"
[reader]
kind = "windows"
[generator]
outstanding = 400
[factors]
workers = 4
"""
SURFACE = """\
[response]
command = "work {n} {kind}"
[factor.n]
levels = [1, 10, 100]
scale = "log"
unit = "files"
[factor.kind]
levels = ["x", "y"]
[samples]
plan = "adaptive"
error = "5 %"
[budget]
time = "2 h"
cell = "5 min"
"""
STATE = {"format": "etude-checkpoint", "version": 2, "script": "/x.ap", "digest": "abc", "results": "/r"}

TEXTS: Mapping[str, str] = {
    "autopilot/plain.ap": PLAIN,
    "autopilot/interleaved.ap": INTERLEAVED,
    "autopilot/threads.ap": THREADS,
    "autopilot/failing.ap": FAILING,
    "autopilot/loops.ap": LOOPS,
    "autopilot/directives.ap": DIRECTIVES,
    "autopilot/including.ap": INCLUDING,
    "autopilot/common.ap": "# what several scripts have in common\nVAR NAME=included\n",
    **{f"autopilot/wrong-{name}.ap": text for name, text in WRONG.items()},
    "autopilot/appended.res": appended(),
    "autopilot/threads.res": threaded(),
    "autopilot/cut-short.res": cut_short(),
    "autopilot/odd.res": odd(),
    "autopilot/empty.res": "",
    "specs/usual.rules.toml": RULES,
    "specs/wrong.rules.toml": WRONG_RULES,
    "specs/server.harness.toml": HARNESS,
    "specs/wrong.harness.toml": HARNESS.replace("highest = 4000", "highest = 4"),
    "specs/copies.surface.toml": SURFACE,
    "specs/wrong.surface.toml": SURFACE.replace('scale = "log"', 'scale = "curved"'),
    "states/older.json": json.dumps(STATE),
}


def writer(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(text.encode()) and None


MADE: Mapping[str, Callable[[Path], None]] = {name: writer(text) for name, text in TEXTS.items()}
