"""`etude VERB …`: find the verb, run it, and turn what goes wrong into one line and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from etude import trail
from etude.cli.entry import complain, hand_on_closed_output, run_program
from etude.cli.verbs import ENGINE_VERBS, OPERATIONS, SUMMARIES, VERBS, overview
from etude.errors import EtudeError, MachineRefuses, Restarting
from etude.program import engine_path
from etude.version import __version__

PATIENCE_S = 300.0
"""A machine that is still up after this does not restart."""


def entry() -> None:
    """The program `etude`."""
    run_program("etude", main)


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0].partition("=")[0] == "--log":
        return _logged(arguments)
    if arguments[:1] == ["help"] and arguments[1:]:
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        from etude.cli.help import fitted, help_width

        print(fitted(overview(), help_width()), end="")
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        print(f"etude {__version__}")
        return 0
    if arguments[-1:] == ["--version"] and " ".join(arguments[:-1]) in VERBS:
        return main(["--version"])
    for words in (2, 1):
        verb = " ".join(arguments[:words])
        if verb in VERBS:
            return _run(verb, arguments[words:])
    if verb in ENGINE_VERBS:
        return _unknown_operation(verb, arguments[1:]) or _hand_over(arguments)
    return _unknown(verb, arguments)


def _logged(arguments: list[str]) -> int:
    first, equals, file = arguments[0].partition("=")
    rest = arguments[1:]
    if not equals and rest:
        file, *rest = rest
    if not file or not rest or rest[0].startswith("-"):
        return _complain(f"expected etude {first} FILE VERB …: see etude --help", 2)
    if rest[0] in ENGINE_VERBS and " ".join(rest[:2]) not in VERBS:
        return _complain(
            f"--log: etude {rest[0]} is the engine's own program and keeps no log: leave it out", 2
        )
    try:
        trail.begin(file)
    except EtudeError as error:
        return _complain(str(error), error.exit_code)
    try:
        code = main(rest)
        trail.note("end", f"exit status {code}")
        return code
    except BaseException as error:
        trail.note("end", f"{type(error).__name__}: {error}")
        raise
    finally:
        trail.end()


def _unknown(verb: str, arguments: list[str]) -> int:
    from etude.cli.parser import closest

    close = closest(" ".join(arguments[:2]), SUMMARIES) or closest(verb, SUMMARIES)
    meant = f" (did you mean {close}?)" if close else ""
    if _is_command(verb):
        return _complain(f"no verb {verb!r}{meant}; to measure it, type: {_measuring(arguments)}", 2)
    if close:
        return _complain(f"no verb {verb!r}{meant}: see etude --help", 2)
    return _complain(f"no verb {verb!r}; there are {', '.join(SUMMARIES)}: see etude --help", 2)


def _unknown_operation(verb: str, words: list[str]) -> int:
    """Exit status for a word after the verb that is nearly that of a longer verb, such as `io swep`; else 0."""
    from etude.cli.parser import closest

    longer = [each.removeprefix(f"{verb} ") for each in VERBS if each.startswith(f"{verb} ")]
    close = closest(words[0], [*longer, *OPERATIONS.get(verb, ())]) if words else None
    if close not in longer:
        return 0
    return _complain(f"no verb '{verb} {words[0]}' (did you mean {verb} {close}?): see etude --help", 2)


def _is_command(line: str) -> bool:
    import shutil

    first = line.split(maxsplit=1)[:1]
    return bool(first) and shutil.which(first[0]) is not None


def _measuring(arguments: list[str]) -> str:
    """The line that measures what was typed: command lines as they are, or the words of one as one argument."""
    import shlex

    several = all(map(_is_command, arguments))
    return shlex.join(["etude", "bench", *(arguments if several else [shlex.join(arguments)])])


def _hand_over(arguments: list[str]) -> int:
    """Become the engine's program; returns only where that cannot be."""
    command = ["etude", *arguments]
    try:
        program = engine_path()
        if arguments[1:] in (["--help"], ["-h"]):
            return _help_of(program, command)
        hand_on_closed_output()
        os.execve(program, command, _environment_at_start())
    except EtudeError as error:
        return _complain(str(error), error.exit_code)


def _help_of(program: str, command: list[str]) -> int:
    """Print the help of one of the engine's verbs below its examples, as wide as the terminal."""
    import subprocess

    from etude.cli.examples import example_lines
    from etude.cli.help import fitted, help_width

    said = subprocess.run(command, executable=program, stdout=subprocess.PIPE, text=True, check=False)
    print(example_lines(command[1]) + fitted(said.stdout, help_width()), end="", flush=True)
    return said.returncode


def _environment_at_start() -> dict[str, str]:
    """`os.environ` with the LC_CTYPE from before Python set it (PEP 538), which runs would inherit."""
    environment = dict(os.environ)
    with suppress(OSError), open("/proc/self/environ", "rb") as file:
        environment.pop("LC_CTYPE", None)
        for entry in file.read().split(b"\0"):
            if entry.startswith(b"LC_CTYPE="):
                environment["LC_CTYPE"] = os.fsdecode(entry[9:])
    return environment


def _run(verb: str, arguments: list[str]) -> int:
    import gc

    from etude.cli.verb_parsers import of_verb, verb_parser, verb_runner
    from etude.masking import Mask

    taken = of_verb(verb, "take_over", lambda words: None)(arguments)
    if taken is not None:
        return int(taken)
    gc.disable()  # a short life without cycles: walking thousands of measurements again and again buys nothing

    parser = verb_parser(verb)
    try:
        words = of_verb(verb, "translated", list)(arguments)
        options = parser.parse_intermixed_args(words)
        options.command_line = [f"etude {verb}", *arguments]
        mask = Mask(getattr(options, "mask", ()))
        mask.title()
        trail.mask_by(mask)
        trail.note("begin", f"Étude {__version__}: {' '.join(mask.words(options.command_line))}")
        code = verb_runner(verb)(options)
    except Restarting as error:
        return _restart(error.entry)
    except EtudeError as error:
        return _complain(_going_on(error), error.exit_code, error.detail)
    return code


def _going_on(error: EtudeError) -> str:
    """The line of an error; of one of the machine with the command that goes on with what was measured."""
    if isinstance(error, MachineRefuses) and error.results is not None:
        from etude.experiment.plan import resume_command
        from etude.results.reader import read_experiment

        with suppress(EtudeError):
            return f"{error}; resume with: {resume_command(read_experiment(error.results), error.results)}"
    return str(error)


def _complain(line: str, code: int, detail: str = "") -> int:
    """One line that says what is wrong; `detail`, such as a script's line and a caret, stands below it."""
    complain("etude", line, code)
    if detail:
        print(detail, file=sys.stderr)
    return code


def _restart(entry: str) -> int:
    """Restart the machine and wait for the end that it brings; the exit code, where it comes first."""
    import shlex
    import time

    from etude.machine.boot import record, restart

    into = f" into {entry}" if entry else ""
    print(
        f"etude: restarting the machine{into}; the experiment resumes after the boot",
        file=sys.stderr,
        flush=True,
    )
    try:
        restart.restart(entry or None)
    except EtudeError as error:
        go_on = shlex.join(["etude", *record.load().words])
        record.forget()
        return _complain(f"{error}; correct that, then resume with: {go_on}", MachineRefuses.exit_code)
    time.sleep(PATIENCE_S)
    return _complain(
        f"the machine did not restart within {PATIENCE_S:g} s; restart it by hand", MachineRefuses.exit_code
    )


if __name__ == "__main__":
    entry()
