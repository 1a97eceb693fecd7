"""`etude VERB …`: find the verb, run it, and turn what goes wrong into one line and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from etude import __version__

if TYPE_CHECKING:
    import argparse

VERBS = {
    "bench": "compare commands at once: interleaved, until the ratio is known",
    "run": "run a script in the Auto-pilot language: --check, --list, --resume, --again",
    "stats": "tables and comparisons of stored results",
    "report": "one self-contained page of results: verdict, charts, warnings, data (or Markdown, LaTeX)",
    "plot": "figures of stored results: bars, lines, ratios, distributions, trials over time",
    "diff": "what differs between the machines and settings of two results, or of one before and after",
    "export": "results in the formats of other programs: hyperfine, Go, Bencher, Otava, JUnit, pull requests, …",
    "bundle": "pack results for publication, with checksums: --verify",
    "plan": "from a pilot: how many trials a difference needs, and what fits a deadline",
    "peak": "the highest load that a server bears, with a stated confidence, at the least bench time: --rehearse",
    "surface": "a response over configurations: which cells to measure, what lies between, what limits: SPEC.toml",
    "store add": "add results to the store, with the commit that they are of: --repository DIR",
    "store": "results that live on, in SQLite or PostgreSQL: list | tests | forget | check",
    "history": "stored results of a test over time: steps, their first results, alerts by rules: --backtest, --gate",
    "history mark": "say that a test is expected to change with a commit: its step raises no alert",
    "compare": "two commits, tags, dates or machines from the store: ratios of every test in common",
    "boot-resume": "go on with scripts behind a restart of the machine: install | remove | status",
    "cool": "cool or warm the caches, and tell what of a data set is in memory",
    "quiet": "a quiet machine, put back exactly as it was: on | off | status",
    "doctor": "what makes numbers noisy on this machine (changes nothing)",
    "hosts": "try the hosts of a file: reachable, kernel, CPUs, space, clock offset and round trip",
    "profile": "what a trace of etude record amounts to: calls, bytes, time, per file, per process, over time",
    "io sweep": "the I/O benchmark at one size after another: results, reading, figures",
    "io explain": "read a sweep again: where it bends and why, where a difference becomes small",
    "io lab": "both sweeps of the I/O lab, with their reading and the three figures",
}

ENGINE_VERBS = {
    "io": "one run of the I/O benchmark: create, read, write or describe a file (docs/io.md)",
    "ipc": "one run of the IPC benchmark: pipe, local or TCP socket (docs/ipc.md)",
    "record": "record the I/O of a program and of all that it starts, as it happens (docs/recording.md)",
    "script": "a recording as a script: read it, cut, filter, repeat, merge, clone, scale it (docs/scripts.md)",
    "prepare": "build the files that a script needs, in an empty directory (docs/prepare.md)",
    "compile": "compile a script of I/O into a roll, which can be replayed (docs/replay.md)",
    "replay": "replay a roll in time, within a directory that etude prepare made (docs/replay.md)",
    "load": "offer requests at a rate, or by clients, and report windows as they end (docs/load.md)",
}
"""What `etude-engine` does itself, with its own options and sysexits."""

EXIT_CODES = """\
exit codes:
  0      done; warnings about the data never change it
  1      a question was asked and the answer is no
  2      usage: options or arguments
  3      an input file is wrong
  4      a benchmark command failed and the policy is to stop
  5      the machine does not allow it: missing tool, permission, space
  6      the machine is being restarted; it goes on after the boot
  128+n  ended by signal n; what was measured is on disk
"""


def entry() -> None:
    """The program `etude`: `main`, and an end without taking thousands of measurements apart one by one."""
    _make_streams_usable()
    try:
        code = main()
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except OSError as error:
        code = _complain(f"standard output cannot be written: {error.strerror}", 5)
    finally:
        with suppress(OSError):
            sys.stderr.flush()
    os._exit(code)


def _make_streams_usable() -> None:
    """Closed standard streams become /dev/null; characters that an encoding lacks become `?`."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"etude {__version__}")
        return 0
    for words in (2, 1):
        verb = " ".join(arguments[:words])
        if verb in VERBS:
            return _run(verb, arguments[words:])
    if verb in ENGINE_VERBS:
        return _hand_over(arguments)
    known = ", ".join((*VERBS, *ENGINE_VERBS))
    return _complain(f"no verb {verb!r}; there are {known}: see etude --help", 2)


def _hand_over(arguments: list[str]) -> int:
    """Become the engine's program; returns only where that cannot be."""
    from etude.errors import EtudeError
    from etude.program import engine_path

    try:
        os.execve(engine_path(), ["etude", *arguments], _environment_at_start())
    except EtudeError as error:
        return _complain(str(error), error.exit_code)


def _environment_at_start() -> dict[str, str]:
    """As `os.environ`, but with the LC_CTYPE that was there before Python set it (PEP 538): what runs would see it."""
    environment = dict(os.environ)
    with suppress(OSError), open("/proc/self/environ", "rb") as file:
        environment.pop("LC_CTYPE", None)
        for entry in file.read().split(b"\0"):
            if entry.startswith(b"LC_CTYPE="):
                environment["LC_CTYPE"] = os.fsdecode(entry[9:])
    return environment


def overview() -> str:
    """What `etude --help` prints."""
    verbs = "".join(f"  etude {name:<10} {text}\n" for name, text in (VERBS | ENGINE_VERBS).items())
    return f"""\
Étude {__version__}: runs programs again and again until their numbers can be trusted.

{verbs}
  etude VERB --help    options of a verb
  etude --version

{EXIT_CODES}"""


def verb_parser(verb: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    from etude.cli.parser import OneLineParser

    parser = OneLineParser(prog=f"etude {verb}", description=_description(verb), epilog=EXIT_CODES)
    parser.instead = getattr(_module(verb), "INSTEAD", {})
    _module(verb).add_arguments(parser)
    return parser


def build_parser() -> argparse.ArgumentParser:
    """One parser with every verb below it, for the manual pages."""
    from etude.cli.parser import OneLineParser

    parser = OneLineParser(prog="etude", description=overview().split("\n", 1)[0], epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"etude {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, text in VERBS.items():
        _module(verb).add_arguments(
            verbs.add_parser(verb, help=text, description=_description(verb), epilog=EXIT_CODES)
        )
    for verb, text in ENGINE_VERBS.items():
        verbs.add_parser(verb, help=text)
    return parser


def _description(verb: str) -> str:
    return (_module(verb).__doc__ or "").strip()


def _module(verb: str):  # type: ignore[no-untyped-def]  # each verb's module: add_arguments, run
    import re
    from importlib import import_module

    return import_module(f"etude.cli.{re.sub('[ -]', '_', verb)}")


def _run(verb: str, arguments: list[str]) -> int:
    import gc

    from etude.errors import EtudeError, Restarting

    taken = getattr(_module(verb), "take_over", lambda words: None)(arguments)
    if taken is not None:
        return int(taken)
    gc.disable()  # a short life without cycles: walking thousands of measurements again and again buys nothing

    parser = verb_parser(verb)
    try:
        words = getattr(_module(verb), "translated", list)(arguments)
        options = parser.parse_intermixed_args(words)
        options.command_line = [f"etude {verb}", *arguments]
        code: int = _module(verb).run(options)
    except Restarting as error:
        from etude.cli.restarting import restart_now

        return restart_now(error.entry, lambda why: _complain(str(why), why.exit_code))
    except EtudeError as error:
        return _complain(str(error), error.exit_code, getattr(error, "detail", ""))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        return _complain("ended by SIGINT", 130)
    return code


def _complain(line: str, code: int, detail: str = "") -> int:
    """One line that says what is wrong; `detail`, such as a script's line and a caret, stands below it."""
    print(f"etude: {' '.join(line.split())}", file=sys.stderr)
    if detail:
        print(detail, file=sys.stderr)
    return code


if __name__ == "__main__":
    entry()
