"""The entry point that `etude`, `getstats` and `graphit` share: streams, exit codes, and the one line of an error."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TextIO, cast

from etude.escaping import EscapingStream


class StandardOutputError(OSError):
    """Standard output cannot be written, which says nothing of any other file."""


class StandardOutputClosed(StandardOutputError, BrokenPipeError):
    """Nobody reads standard output any more."""


class _Output(io.FileIO):
    """Standard output, whose errors are told from those of other files."""

    closed_at_start = False

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError as error:
            raise StandardOutputClosed(error.errno, error.strerror) from None
        except OSError as error:
            why = "it is closed" if self.closed_at_start else error.strerror
            raise StandardOutputError(error.errno, why) from None


def run_program(name: str, main: Callable[[], int]) -> None:
    """Run `main` with streams that take any text, and end with its exit code (docs/reference/exit-codes.md)."""
    _make_streams_usable()
    signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # where who starts us ignores it, no child's end is told to us
    try:
        code = _code_of(main)
        sys.stdout.flush()
    except StandardOutputClosed:
        code = 128 + 13
    except StandardOutputError as error:
        code = complain(name, f"standard output cannot be written: {error.strerror}", 5)
    except OSError as error:
        code = complain(name, describe_os_error(error), 5)
    except (MemoryError, ImportError) as error:
        if _match(error, r"^MemoryError|cannot (map|allocate)|failed to map"):
            code = complain(name, "there is not enough memory (ulimit -v, or the machine's): give it more", 5)
        elif library := _match(error, r"[\w.+-]+(?=: cannot open shared object file)"):
            code = complain(
                name,
                f"the library {library} is missing: install it (libstdc++.so.6 is in the package libstdc++6)",
                5,
            )
        else:
            raise
    except KeyboardInterrupt:
        code = _interrupted(name)
    finally:
        with suppress(OSError):
            sys.stderr.flush()
    os._exit(code)  # without taking thousands of measurements apart one by one


def _code_of(main: Callable[[], int]) -> int:
    try:
        return main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _match(error: BaseException, pattern: str) -> str:
    """The match in an error or one behind it; empty if there is none.

    Libraries say in an ImportError why they cannot be loaded, and NumPy wraps that in its own.
    """
    seen: BaseException | None = error
    while seen is not None:
        if found := re.search(pattern, f"{type(seen).__name__}: {seen}"):
            return found[0]
        seen = seen.__cause__ or seen.__context__
    return ""


def _interrupted(name: str) -> int:
    """Report SIGINT, which OpenBLAS raises too where its threads, one a CPU, cannot be started."""
    from etude.limits import limit_reached, threads_start

    if threads_start(os.cpu_count() or 1):
        return complain(name, "ended by SIGINT", 130)
    return complain(name, limit_reached(errno.EAGAIN) or "", 5)


def _make_streams_usable() -> None:
    """Closed standard streams become /dev/null, but output cannot be written; characters that an encoding lacks
    become `?`, and those that would steer a terminal are escaped."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull if number != 1 else "/dev/full", os.O_RDWR)
            _Output.closed_at_start |= number == 1
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stderr = cast(TextIO, EscapingStream(sys.stderr))
    before = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    output = io.TextIOWrapper(
        io.BufferedWriter(_Output(1, "wb", closefd=False)),
        encoding=before.encoding,
        errors="replace",
        line_buffering=bool(before.line_buffering),
    )
    sys.stdout = cast(TextIO, EscapingStream(output))


def hand_on_closed_output() -> None:
    """Pass a closed output to the program that takes the place of this one: it sees that its output cannot be
    written."""
    if _Output.closed_at_start:
        os.set_inheritable(1, True)


def describe_os_error(error: OSError) -> str:
    """One line: the operation that failed, its files, why, and what to do where that is known."""
    try:
        os.getcwd()
    except OSError:
        return "the current directory was removed: change to one that is there"
    operation, where = _operation(error.__traceback__)
    names = [name for name in (error.filename, error.filename2) if isinstance(name, (str, bytes))]
    files = " -> ".join(map(os.fsdecode, names))
    advice = ""
    if error.errno == errno.EMFILE:
        advice = "; more files may be open at once after: ulimit -n 65536"
    elif error.errno == errno.EAGAIN and "fork" in operation:
        advice = "; more processes may run at once after: ulimit -u 65536"
    return f"{operation} {files or f'(in {where})'}: {error.strerror or error}{advice}"


def _operation(trace: TracebackType | None) -> tuple[str, str]:
    """The call that failed, such as os.replace, and the module of Étude's that made it."""
    import linecache

    call, module = "an operation", __name__
    while trace is not None:
        code = trace.tb_frame.f_code
        name = trace.tb_frame.f_globals.get("__name__", "")
        module = name if name.startswith("etude") else module
        line, _, begin, end = list(code.co_positions())[trace.tb_lasti // 2]
        text = linecache.getline(code.co_filename, line or 0).encode()[begin or 0 : end]
        called = text.partition(b"(")[0].decode("utf-8", "replace").strip()
        call = called if called.replace(".", "").isidentifier() else code.co_name
        trace = trace.tb_next
    return call, module


def complain(name: str, line: str, code: int) -> int:
    """Say what is wrong, in one line or wrapped as the terminal is wide; returns the code."""
    text = f"{name}: {' '.join(part.strip() for part in line.splitlines())}"
    try:
        from etude.present.terminal import Terminal
    except (ImportError, OSError):  # no more files may be open
        print(text, file=sys.stderr)
    else:
        with suppress(OSError):  # nobody can read it: the exit status tells
            Terminal(sys.stderr).say(text)
    return code
