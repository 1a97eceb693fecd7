"""What the programs say of an error of the system that nobody handled."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etude.cli.entry import complain, describe_os_error
from etude.cli.parser import OneLineParser

PROGRAM = """
import os, resource
from etude.cli.entry import run_program
def main():
    {}
    return 0
run_program('etude', main)
"""


def ended(body: str, stdout: int = subprocess.DEVNULL) -> tuple[int, str]:
    """Of a program that does this: exit code and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def described(operation: object, *arguments: object) -> str:
    with pytest.raises(OSError, match=r"\[Errno") as refused:
        operation(*arguments)  # type: ignore[operator]
    return describe_os_error(refused.value)


def test_an_error_names_operation_and_files(tmp_path: Path) -> None:
    code, line = ended(f"os.rename('{tmp_path}/a', '{tmp_path}/b')")
    assert code == 5
    assert f"{tmp_path}/a -> {tmp_path}/b" in line
    assert "output" not in line
    assert len(line.splitlines()) == 1


def test_the_operation_is_the_call_that_failed(tmp_path: Path) -> None:
    assert described((tmp_path / "missing" / "x").mkdir).startswith(f"os.mkdir {tmp_path}/missing/x: ")


def test_without_a_file_the_operation_stands_alone() -> None:
    assert described(os.close, -1).startswith("operation (in etude.")


def test_a_limit_that_is_reached_is_named() -> None:
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))"
    code, line = ended(f"{limit}; [open('/dev/null') for _ in range(9)]")
    assert code == 5
    assert "ulimit -n" in line


def test_not_every_resource_that_is_busy_is_a_limit() -> None:
    assert "ulimit" not in ended("raise BlockingIOError(11, 'busy')")[1]


def test_only_standard_output_is_called_so() -> None:
    with open("/dev/full", "w") as full:
        code, line = ended("print('x')", full.fileno())
    assert code == 5
    assert "standard output" in line


def test_a_closed_pipe_is_told_from_others() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        assert ended("print('x')", write) == (141, "")
        code, line = ended("os.write(os.dup(1), b'x')", write)
        assert code == 5
        assert "output" not in line
    finally:
        os.close(write)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_an_error_is_wrapped_at_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "30")
    assert complain("etude", "a program that was not found in any\nplace", 4) == 4
    with pytest.raises(SystemExit):
        OneLineParser(prog="etude bench").parse_args(["--an-option-that-there-is-not"])
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 30
    assert {line[:2] for line in lines} == {"et", "  "}
    assert " ".join(line.strip() for line in lines[:2]).endswith("in any place")


def test_an_error_is_one_line_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    complain("etude", f"{'word ' * 50}", 4)
    assert capsys.readouterr().err.count("\n") == 1


def test_the_end_of_a_child_is_told_also_where_the_parent_ignores_it() -> None:
    body = PROGRAM.format("return subprocess.run(['false'], check=False).returncode + 6")
    start = "import signal, subprocess; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    done = subprocess.run([sys.executable, "-c", start + body], check=False)
    assert done.returncode == 7


def test_a_closed_standard_output_is_told_as_one_that_cannot_be_written() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, PROGRAM.format("print('x')")],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert "standard output" in done.stderr
    assert "closed" in done.stderr


@pytest.mark.parametrize(
    "body",
    [
        "raise MemoryError",
        "raise ImportError('libx.so: failed to map segment from shared object')",
        "raise ImportError('numpy says something') from ImportError('x: cannot allocate memory in static TLS block')",
    ],
)
def test_too_little_memory_is_told_in_one_line(body: str) -> None:
    code, line = ended(body)
    assert code == 5
    assert "memory" in line
    assert len(line.splitlines()) == 1


def test_a_library_that_is_missing_is_named_in_one_line() -> None:
    cause = "ImportError('libstdc++.so.6: cannot open shared object file: No such file or directory')"
    code, line = ended(f"raise ImportError('numpy says something') from {cause}")
    assert code == 5
    assert "libstdc++.so.6" in line
    assert len(line.splitlines()) == 1


def test_an_import_that_fails_otherwise_is_a_fault_of_ours() -> None:
    assert "Traceback" in ended("import etude.no_such_module")[1]


def test_a_current_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code, line = ended(f"os.chdir('{gone}'); os.rmdir('{gone}'); os.path.abspath('x')")
    assert code == 5
    assert "current directory" in line


def test_text_of_others_steers_no_terminal_however_it_is_printed(tmp_path: Path) -> None:
    nasty = "x\\x1b]0;t\\x07\\x9b31m\\u2028\\u202e"
    body = (
        "import sys; from etude.present.terminal import Terminal; "
        f"print('{nasty}'); sys.stdout.writelines(['{nasty}'])\n"
        f"    print('{nasty}', file=sys.stderr); Terminal(sys.stderr).say('{nasty}')"
    )
    with (tmp_path / "out").open("w+", encoding="utf-8") as out:
        code, errors = ended(body, stdout=out.fileno())
    assert code == 0
    lines = [*(tmp_path / "out").read_text("utf-8").split("\n"), *errors.split("\n")]
    assert [line for line in lines if not line.isprintable()] == []
    assert sum("x\\x1b]0;t\\x07\\u009b31m\\u2028\\u202e" in line for line in lines) == 4
