"""What bench/fuzz.py feeds: every reader in Python, with valid inputs, and what it may raise of changed ones."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from rows import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from etude.analysis.gate import parse_bound, read_predicate
from etude.cli.getstats import main as getstats
from etude.cli.main import main as etude
from etude.cluster.pool.slurm import answers
from etude.cluster.pool.slurm.hostlist import expand
from etude.cluster.pool.spec import read_pool
from etude.errors import EDITED, EtudeError
from etude.experiment.sweep import parse_parameter
from etude.experiment.test import shell_syntax
from etude.iolab.lab import read_lab
from etude.machine.remote.hosts import read_hosts
from etude.machine.resources import ledger
from etude.patterns import PatternError, compile_pattern
from etude.peak.harnesses.harness_text import read_value
from etude.peak.harnesses.load_report import Run, Unreadable, Windows
from etude.peak.harnesses.readers import TOOLS, Figures, Place, ToolReader, by_expression, by_path
from etude.probes.executables import parse_output
from etude.results.histograms import encode
from etude.results.windows import parse_window
from etude.script import checkpoint
from etude.script.directive_words import ExpansionError, compile_text
from etude.script.parse import parse_text
from etude.script.state import Interleave, Loop, Party, RunningTest, Scope, State
from etude.stats.expression import ExpressionError, compile_expression
from etude.store.content import read_content
from etude.units.parsing import MILLISECOND, ONE, QuantityError, bandwidth, duration, rate, share, size
from golden import reading
from golden.corpus import stored
from support.places import DATA

KNOWN = {"name": "Elapsed", "count": 12.0, "mean": 3.0, "delta": 0.1, "text": "12 apples"}
CODES = range(8)
"""Exit statuses of a verb that reads."""


@dataclass(frozen=True)
class Reader:
    """A reader, with inputs that it takes."""

    name: str
    read: Callable[[Any], object]
    """Of a text; of a path, where the inputs are files."""
    seeds: Sequence[str]
    """Texts, or names of stored inputs, or names of files and their texts after `=`."""
    refusals: tuple[type[Exception], ...] = (EtudeError,)
    files: bool = False
    """Whether the inputs are files."""


STORED = stored()


def inputs(*patterns: str) -> list[str]:
    return [name for name in STORED if any(fnmatch(name, pattern) for pattern in patterns)]


def expression(text: str) -> object:
    return compile_expression(text).evaluate(KNOWN)


def expanded(text: str) -> str:
    return compile_text(text).expand({"A": "1", "FILE": "b c"}, {"HOME": "/root"})


def pattern(text: str) -> object:
    return compile_pattern(text).found_in("real 0.12s; rate=3.5 MB/s")


def amount(text: str) -> object:
    """By all kinds of quantities; those that refuse it do so in their way."""
    for kind in (duration, size, share, rate, bandwidth):
        with contextlib.suppress(QuantityError):
            kind(text)
    return read_value(text)


def slurm(text: str) -> object:
    parsers = (answers.queue, answers.job, answers.nodes, answers.accounted_job, expand)
    return [parse(text) for parse in parsers]


LOAD = Run(load=100.0, closed=False, runlength_s=10.0, window_s=1.0, log="log")
PLACES = {
    "completed": Place("$.a[0].n", ONE),
    "mean": Place("$.mean", None),
    "p99": Place("$.p99", MILLISECOND),
}
PRINTED = {"completed": Place(r"n=(\S+)", ONE), "mean": Place(r"mean (\S+)", None)}
OUTPUTS = {
    "windows": Windows,
    **{name: partial(ToolReader, tool=name) for name in TOOLS if name != "pgbench"},
    "json": lambda run: Figures(run, PLACES, by_path),
    "regex": lambda run: Figures(run, PRINTED, by_expression),
}


def printed(text: str) -> object:
    kind, _, rest = text.partition("\n")
    reader = OUTPUTS.get(kind, Windows)(LOAD)
    return reader.feed(rest) + reader.end()


def verb(main: Callable[[list[str]], int], *words: str) -> Callable[[Path], None]:
    """A verb of the command line over an input; AssertionError where it ends with a status that is not documented."""

    def run(path: Path) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = main([*words, str(path)])
            except SystemExit as end:
                code = int(end.code or 0)
        assert code in CODES, f"exit status {code}"

    return run


HOSTS = """hosts.toml=
[hosts.server]
address = "10.77.0.2"
user = "root"
measure = ["nfsd"]
[hosts.client1]
address = "10.77.0.3"
port = 2222
environment = { LC_ALL = "C" }
options = ["Compression=yes"]
"""
POOL = 'lab.toml=\n[pool]\nkind = "slurm"\npartition = "bench"\ntime = "30m"\n'
LAB = 'lab.json={"format": "etude-io-lab", "version": 1, "where": "data", "trials": 3, "cpu": 1, "seed": 7}'
LEDGER = (
    'remounts.json={"version": 1, "steps": [{"undo": "remove_file", "path": "/tmp/x"}, '
    '{"undo": "detach_loop", "file": "/tmp/y"}]}'
)
SCRIPT = """\
VAR A = 1
FOREACH B x 'y z'
  FOR C=1 TO 4 FACTOR 2
    IF C >= 2
      TEST %B%-%C% 10 MAX=20 TIME=2m 1 getstats --predicate '$delta < 1'
        SETUP touch data \\
          more
        METRIC rate:B/s rate=(\\d+)
        EXEC @a,b sort --parallel=%A% %B%
        CACHE warm
        TIMEOUT 30s
      DONE
    ELSE
      SYSTEM ls # nothing
    FI
  DONE
DONE
INTERLEAVE
  TEST c 4
    EXEC true
  DONE
DONE
QUIET usual
"""
OUTPUT = "[measurement]\nrate = 12.5 MB/s\ntotal = null B not counted\n[block]\nline one\nline = 2\n"
WINDOW = (
    '{"duration_s": 1.5, "completed": 10, "errors": 0, "latency": "%s", "by": {"read": {"completed": 4}}}'
)
HISTOGRAM = encode([100, 2000, 30000], [5, 4, 1])
QUEUE = "12|RUNNING|None|n[1-2]|0:0|2026-01-01T00:00:00\nJobId=12 JobState=FAILED Reason=None NodeList=n[01-10,12]\n"

K6 = '{"metric":"http_req_duration","type":"Point","data":{"time":"2026-01-01T00:00:0%d.5Z","value":20.5,"tags":{}}}\n'
VEGETA = "1700000000%d00000000,200,20000000,0,5,,aGVsbG8=,,7,GET,http://a/,\n"
PEAK_FILES = sorted((DATA / "peak").glob("*.*"))
PRINTS = (
    *(f"{file.name.split('.')[0].split('-')[0]}\n{file.read_text()}" for file in PEAK_FILES),
    "k6\n" + "".join(K6 % second for second in range(5)),
    "vegeta\n" + "".join(VEGETA % second for second in range(5)),
    "windows\n" + f"{WINDOW % HISTOGRAM}\n" * 2,
    'json\n{"a": [{"n": 1000}], "mean": "1.5ms", "p99": 12.5}',
    "regex\nmean 1.5ms n=1000\n",
)


def saved() -> str:
    """A script that was stopped in a trial of the second test of an INTERLEAVE."""
    scope = Scope({"A": "1"}, {"LANG": "C"}, 2)
    rule = {"maximum": 20, "budget_s": 60.0, "program": ["getstats"]}
    its = {"data": ["/tmp/x"], "metrics": [["rate", "B/s", "x"]]}
    tests = [RunningTest(name, 3, 1, 5, **rule, **its) for name in ("a", "b")]  # type: ignore[arg-type]
    group = Interleave(2, 1, [Party(test, scope.copy()) for test in tests], 1, [1, 0])
    state = State(7, scope, [Loop(1, "B", "x y", 0)], tests[0], group, "echo", ["A"], 7)
    with tempfile.TemporaryDirectory() as place:
        checkpoint.save(Path(place) / "state", checkpoint.Checkpoint("s.ap", "0" * 64, "out", state, True))
        return (Path(place) / "state").read_text()


def examples(kind: str) -> list[str]:
    """Example files as seeds, under their names."""
    return [f"{path.name}={path.read_text()}" for path in sorted((ROOT / "examples" / kind).glob("*.toml"))]


READERS: Sequence[Reader] = (
    Reader(
        "expressions",
        expression,
        (
            "$mean < 0.05 * $delta && not ($count % 3 == 1)",
            "'Elapsed' eq $name || $text =~ /ap+l/ or 2 * -1 > abs(-2)",
            "($count > 3 and sqrt($mean) <= 1.5e1 / 2) && !($delta != 0.1)",
        ),
        (ExpressionError,),
    ),
    Reader("predicates", lambda text: read_predicate(text, 0.95), ("$delta < 0.05 * $mean && $count > 5",)),
    Reader("bounds", parse_bound,
           ("elapsed > baseline * 1.05", "rate < 20 ms", "cpu_time >= baseline + 5%", "a <= baseline - 2 MB/s")),
    Reader("parameters", parse_parameter, ("size=4KiB,8KiB,1 MiB", "n=1..64*2", "n=1..10+3")),
    Reader("quantities", amount, ("1.5 GiB", "20ms", "5 %", "100/s", "3 MB/s", "1h 20m", "65536")),
    Reader("patterns", pattern, (r"rate=(\d+(?:\.\d+)?) MB/s", r"^real\s+([\d.]+)s;?", "(a|b)*c{2,5}[^x-z]"),
           (PatternError,)),
    Reader("expansions", expanded, ("%A% $HOME$ %FILE% 100%% $$ %A:x%", "%A%%FILE%$HOME"), (ExpansionError,)),
    Reader("shell syntax", shell_syntax, ("sort -o 'a b' \"$X\" *.txt | wc -l > /dev/null; echo `ls`",)),
    Reader("scripts", parse_text, (SCRIPT,)),
    Reader("probes", parse_output, (OUTPUT,)),
    Reader("windows", lambda text: parse_window(text.encode("utf-8", "surrogateescape")), (WINDOW % HISTOGRAM,),
           (ValueError,)),
    Reader("outputs of load generators", printed, PRINTS, (Unreadable,)),
    Reader("Slurm's answers", slurm, (QUEUE,)),
    Reader("pools", read_pool, ("slurm,partition=bench,time=30m,python=/opt/python", "local")),
    Reader("pool files", lambda path: read_pool(str(path)), (POOL,), files=True),
    Reader("hosts", read_hosts, (HOSTS,), files=True),
    Reader("labs", lambda path: read_lab(path.parent), (LAB,), files=True),
    Reader("ledgers", ledger.read, (LEDGER,), files=True),
    Reader("results", reading.results, inputs("bench/*", "run/*"), files=True),
    Reader("searches", reading.search, inputs("peak/*"), files=True),
    Reader("surfaces", reading.surface, inputs("surface/*"), files=True),
    Reader("sweeps", reading.sweep, inputs("io/*"), files=True),
    Reader("journals", reading.journal, inputs("pools/*"), files=True),
    Reader("files of other programs", reading.table, inputs("readers/*", "tables/*.csv"), files=True),
    Reader("files of Auto-pilot", reading.res, inputs("*/*.res"), files=True),
    Reader("script files", reading.script, inputs("autopilot/*.ap"), files=True),
    Reader("states of scripts", reading.state, ("state=" + saved(),), files=True),
    Reader("traces", reading.trace, inputs("traces/*"), files=True),
    Reader("stores", reading.store, inputs("stores/*"), files=True),
    Reader("bundles", reading.bundle, inputs("bundles/*"), files=True),
    Reader("histograms", reading.histograms, inputs("load/*"), EDITED, files=True),
    Reader("rules of histories", reading.READERS["specs/*.rules.toml"], inputs("specs/*.rules.toml"), files=True),
    Reader("harnesses", reading.harness, [*inputs("specs/*.harness.toml"), *examples("peak")], files=True),
    Reader("specs of surfaces", reading.READERS["specs/*.surface.toml"],
           [*inputs("specs/*.surface.toml"), *examples("surface")], files=True),
    Reader("results for a store", lambda path: read_content(str(path), "m"), inputs("bench/*", "readers/*"),
           files=True),
    Reader("etude stats", verb(etude, "stats"), inputs("bench/*", "run/*", "readers/*", "peak/*"), files=True),
    Reader("etude report", verb(etude, "report", "--format", "markdown"), inputs("bench/*", "run/*"), files=True),
    Reader("etude export", verb(etude, "export", "--format", "conbench"), inputs("bench/*", "readers/*"), files=True),
    Reader("getstats", verb(getstats, "--dump"), inputs("*/*.res", "readers/*.csv"), files=True),
    Reader("getstats --from-summary", verb(getstats, "--from-summary"), inputs("tables/autopilot-figure-*"),
           files=True),
    Reader("etude history", verb(etude, "history", "sort", "--machine", "host-a", "--store"),
           inputs("stores/history*"), files=True),
)  # fmt: skip
