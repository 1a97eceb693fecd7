"""Options of the verbs that measure: bench, run and the I/O lab."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

from etude.cli import parser as kinds
from etude.cli.measure import hyperfine
from etude.cli.shared_options import (
    add_between_sessions,
    add_figures,
    add_output,
    add_pool,
    add_sweep_place,
    add_undecided,
    size_list,
)
from etude.results.model import CACHE_WAYS

BENCH = """\
Compare commands: interleaved in random order, until the ratio of their times is known.

One command is run until its mean is known. The first run of each command is recorded but excluded. Commands are
split into words as a shell would, and started without one; hooks (--setup and the like) are lines for /bin/sh.
"""


def bench_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude bench`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add(
        "commands",
        nargs="*",
        metavar="CMD",
        help="a command line, quoted as one argument; {NAME} is replaced by -P",
    )
    repeated(
        "-n",
        "--name",
        "--command-name",
        dest="name",
        metavar="NAME",
        help="name of the next command in order; repeat for each",
    )
    add_output(add, "DIR", "results directory (default etude-results/NAME-UTCTIME)")
    add(
        "--reference",
        metavar="CMD",
        help="a command before the others: the baseline of all ratios",
    )
    add("--reference-name", metavar="NAME", help="name of the baseline command")
    add(
        "--resume",
        metavar="DIR",
        help="resume an interrupted experiment, or extend a complete one by --max-trials, --time, --precision or "
        "--trials; takes no commands",
    )
    add_pool(parser)
    _bench_around(parser.add_argument_group("hooks and caches"))
    _bench_enough(parser.add_argument_group("number of trials"))
    _bench_how(parser.add_argument_group("execution of trials"))
    _bench_after(parser.add_argument_group("results"))


def _bench_around(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    each = "; given once for all tests, or once for each command"
    add("-s", "--setup", metavar="LINE", help="once per test, before its first trial")
    repeated("-p", "--prepare", metavar="LINE", help=f"before each trial{each}")
    repeated("-C", "--conclude", metavar="LINE", help=f"after each trial{each}")
    add(
        "--cool",
        choices=CACHE_WAYS,
        default="none",
        metavar="WAY",
        help="set and check the state of the caches before each trial (docs/howto/bench.md): "
        + ", ".join(CACHE_WAYS),
    )
    repeated(
        "--data",
        metavar="PATH",
        help="a file or directory of the data set; --cool reports how much of it is in memory; repeat for more",
    )
    add("-c", "--cleanup", metavar="LINE", help="once per test, after its last trial")
    repeated(
        "-P",
        "--parameter",
        metavar="NAME=VALUES",
        help="sweep {NAME} over a,b,c or 1..10 or 1..32*2 or 0..1+0.25; repeat for all combinations",
    )
    hyperfine.add_sweeps(group)


def _bench_enough(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-w",
        "--warmup",
        type=kinds.whole,
        default=1,
        metavar="N",
        help="N warm-up runs of each before its first trial: recorded, and excluded (default 1)",
    )
    add_count = partial(group.add_argument, type=kinds.whole, metavar="N")
    add_count("-r", "--trials", "--runs", help="exactly N trials of each")
    add_count("-m", "--min-trials", "--min-runs", help="at least N trials (default 10)")
    add_count(
        "-M", "--max-trials", "--max-runs", help="at most N trials (default 50, or as many as 3 s take)"
    )
    group.add_argument(
        "--min-time",
        type=kinds.seconds,
        metavar="SECONDS",
        help="measure at least this long (wall-clock time), even if the precision is reached earlier; --max-trials "
        "and --time end it sooner (default 3; not with --pool)",
    )
    group.add_argument(
        "--precision",
        type=kinds.share,
        metavar="SHARE",
        help="margin of error to reach: of the mean for one command (default 5%%), of the ratio for several (2%%)",
    )
    group.add_argument(
        "--time",
        type=kinds.seconds,
        metavar="SECONDS",
        help="stop after this wall-clock time, time between trials included, once the minimum of trials is "
        "done (default 30)",
    )


def _bench_how(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    add(
        "--schedule",
        choices=("blocks", "in-turn", "duet"),
        default="blocks",
        help="blocks: one trial of each per block, in random order (default); in-turn: one test after the "
        "other, not compared; duet: all at once on separate CPUs, a ratio under contention",
    )
    add(
        "--workers",
        type=kinds.whole,
        default=1,
        metavar="N",
        help="start N copies at once, released together",
    )
    add(
        "--cpu",
        type=kinds.cpus,
        metavar="LIST",
        help="CPUs to run on, such as 0,2-3; one each with --workers",
    )
    add(
        "--timeout",
        type=kinds.seconds,
        metavar="SECONDS",
        help="end a trial that takes longer (TERM, then KILL); it failed",
    )
    add("-i", "--ignore-failure", action="store_true", help="include trials whose exit status is not 0")
    shells = group.add_mutually_exclusive_group()
    shells.add_argument(
        "--shell",
        action="store_true",
        help="run commands by /bin/sh; its start is measured and subtracted",
    )
    shells.add_argument(
        "-S", metavar="SHELL", help="like --shell, with another shell, such as bash or 'bash --norc'"
    )
    shells.add_argument("-N", action="store_true", help="run commands without a shell (default)")
    add("--shell-program", metavar="PATH", help="the shell of --shell (default /bin/sh)")
    add("--input", metavar="FILE", help="standard input of each run (default: empty)")
    add(
        "--show-output",
        action="store_true",
        help="print what the programs print, to standard error after each run; it is captured, as by "
        "--check-output each",
    )
    add(
        "--inner",
        type=kinds.inner,
        default=1,
        metavar="N|auto",
        help="launches within one trial; auto: enough for trials of 50 ms",
    )
    add(
        "--check-output",
        choices=("first", "each"),
        default="first",
        help="capture and compare the output of the excluded first run (default), or of each trial",
    )
    repeated(
        "--metric",
        type=kinds.metric,
        metavar="NAME[:UNIT[:JOIN]]=REGEX",
        help="read a number from the program's output: the first group of REGEX; or $.NAME.NAME, a member of its JSON",
    )
    add(
        "--primary",
        default="elapsed",
        metavar="METRIC",
        help="the primary metric, which is judged and compared (default elapsed)",
    )
    add("--no-cgroup", action="store_true", help="do not run tests in cgroups of their own")
    add(
        "--counters",
        choices=("auto", "on", "off"),
        default="auto",
        help="perf events: auto: if the machine has hardware events (default); on: also with software events only",
    )
    add("--seed", type=kinds.whole, metavar="N", help="seed of the random order (default: random, recorded)")
    kinds.add_monitor(group.add_argument)
    kinds.add_mask(group.add_argument)


def _bench_after(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    repeated = partial(add, action="append", default=[])
    add(
        "--baseline",
        metavar="DIR",
        help="compare with stored results, too, as far as what changes between sessions is known; "
        "better: run base and head together, as two commands",
    )
    add_between_sessions(
        group,
        kinds.share,
        "standard deviation between sessions of one test on this machine, such as 3%%",
    )
    repeated(
        "--fail-if",
        metavar="BOUND",
        help="exit with 1 if the interval shows that BOUND holds, such as 'elapsed > baseline * 1.05'; the baseline "
        "is the first command, or that of --baseline",
    )
    add_undecided(group)
    repeated(
        "--export",
        metavar="FORMAT[=FILE]",
        help="csv, json, markdown, hyperfine, or another format of etude export; FILE defaults to one in the "
        "results directory",
    )
    hyperfine.add_exports(group)
    _add_why(add)
    add(
        "--json",
        action="store_true",
        help="print the verdict as JSON on standard output (docs/reference/formats.md)",
    )


def _add_why(add: Callable[..., Any]) -> None:
    add(
        "--why",
        action="store_true",
        help="then explain the difference of the first two by further pairs under instruments, as etude why does",
    )


bench_translated = hyperfine.translated


BENCH_INSTEAD = hyperfine.INSTEAD


BENCH_OTHERWISE = "a command and its arguments are quoted as one word, such as 'ls -l'"


RUN = """\
Run a script in the Auto-pilot language: tests, their preparation, and their stop rules.

SCRIPT is a script (docs/reference/language.md), or a state file that CHECKPOINT wrote, from which the run is resumed.
"""


def run_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude run`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add("script", nargs="?", metavar="SCRIPT", help="the script, or a state file to resume from")
    add(
        "assignments",
        nargs="*",
        metavar="NAME=VALUE",
        help="set a variable and the environment variable; overrides VAR and ENV in the script",
    )
    add_output(add, "DIR", "results directory (default etude-results/SCRIPT-UTCTIME)")
    add("--resume", metavar="DIR", help="resume an interrupted script; takes no SCRIPT")
    add(
        "--again",
        metavar="DIR",
        help="repeat an experiment of etude run or etude bench from its own record (a results directory, or a bundle), "
        "and report whether its verdicts are reproduced (exit code 1: one is not); takes no SCRIPT",
    )
    add("--check", action="store_true", help="run nothing: parse, expand, and print what would run")
    add("--list", action="store_true", help="run nothing: print the names of the tests, one per line")
    repeated("-I", "--include", metavar="DIR", help="also search DIR for included files, before $APLIB")
    repeated(
        "--probe",
        metavar="NAME",
        help="measure more around each EXEC: disk, memory, network, pressure, interrupts, energy, others "
        "(who else used the CPU); adds to the variable PROBES",
    )
    repeated(
        "--watch",
        metavar="NAME",
        help="also report whether this metric rises, falls or shifts its level over the trials (variable WATCH)",
    )
    add(
        "--counters",
        choices=("auto", "on", "off"),
        default="auto",
        help="perf events: auto: if the machine has hardware events (default)",
    )
    add(
        "--seed",
        type=kinds.whole,
        metavar="N",
        help="seed of the random order of INTERLEAVE (default: random, recorded)",
    )

    add_between_sessions(
        parser,
        kinds.percent,
        "with --again: standard deviation between sessions of one test, in percent (default: from three stored ones)",
    )
    add_pool(parser)
    kinds.add_monitor(add)
    kinds.add_mask(add)
    add("--no-res", action="store_true", help="do not also write Auto-pilot's .res files")
    _add_why(add)
    add(
        "--json",
        action="store_true",
        help="print the verdict as JSON on standard output (docs/reference/formats.md)",
    )


IO_SWEEP = """\
Run the I/O benchmark at several sizes, in random order; then explain the curve, and draw it.

Over buffer sizes (the default) the rate of the timed loop is judged, for a buffer that is untouched, touched before the
clock is read, and on huge pages. Over total sizes (--totals 1..128M) it is the time of the whole program, statically
and dynamically linked. etude stats, plot and report read the results. The machine's caches are drawn into
the figure. More: docs/howto/io.md; a tutorial: docs/tutorials/io-lab.md.
"""


def io_sweep_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io sweep`."""
    add = parser.add_argument
    repeated = partial(add, action="append", default=[])
    add_sweep_place(parser)
    add(
        "--buffers",
        "-b",
        type=size_list,
        metavar="SIZES",
        help="buffer sizes: 16K, or 4K,64K, or 8..16M for powers of two (default 8..16M; over totals 2M)",
    )
    add("--totals", "-t", type=size_list, metavar="SIZES", help="bytes transferred (default 16M)")
    repeated(
        "--curve",
        metavar="NAME[=OPTIONS]",
        help="untouched, touched, huge, direct, pread, random, mmap, io_uring, static, dynamic; or a name of your own "
        "with options of etude io, such as 'hugetouched=--huge on --touch'; repeat for several",
    )
    add("--write", action="store_true", help="measure writing instead of reading")
    add(
        "--program",
        choices=("io-static", "io-dynamic", "etude-engine"),
        default="io-static",
        help="build of the benchmark to run (default io-static)",
    )
    add("--no-storage", action="store_true", help="do not measure the storage device by O_DIRECT")
    add(
        "--refine",
        type=kinds.whole,
        default=0,
        metavar="N",
        help="add up to N sizes where the curve bends most",
    )
    add_output(add, "DIR", "results directory (default etude-results/NAME-UTCTIME)")
    add("--resume", metavar="DIR", help="resume an interrupted sweep; takes only --format and --json")
    add_figures(parser)
    add(
        "--json",
        action="store_true",
        help="print the reading as JSON on standard output (docs/reference/formats.md)",
    )


IO_LAB = """\
Do the whole I/O lab: throughput over buffer sizes, and static against dynamic linking over file sizes.

Three figures come out (PDF, unless --format is given), as in the lab's notes: (1) throughput against buffer size
with this machine's caches, (2) whole-program time and its ratio, (3) means with deviations and p-values. Sentences
explain them. It takes a few minutes. etude io explain reads the stored results again. Each trial is also recorded in
buffers.csv and linking.csv.
"""


def io_lab_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io lab`."""
    add_sweep_place(parser)
    add_output(parser.add_argument, "DIR", "results directory (default etude-results/io-lab-UTCTIME)")
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="resume an interrupted lab in this directory; takes only --format and --exercise",
    )
    parser.add_argument(
        "--exercise",
        action="store_true",
        help="ask instead of explaining: write questions into answers.toml in the lab's directory, and figures "
        "without explanations",
    )
    parser.add_argument(
        "--check",
        metavar="FILE",
        help="grade a file of answers against the intervals of its own lab; exit code 1 if one is wrong or missing",
    )
    add_figures(parser)


IO_EXPLAIN = """\
Explain a stored sweep of `etude io sweep` again, and draw its figures again."""


def io_explain_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `etude io explain`."""
    add = parser.add_argument
    add("results", nargs="+", metavar="DIR", help="results directory of a sweep")
    add("--figures", metavar="DIR", help="directory for figures (default: that of the results)")
    add("--csv", metavar="FILE", help="write each included trial as a row, all sweeps together")
    add_figures(parser)
    add(
        "--json",
        action="store_true",
        help="print the reading as JSON on standard output (docs/reference/formats.md)",
    )
