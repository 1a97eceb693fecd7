"""Writes an experiment's results: every line is on disk before the next trial begins."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from etude.errors import InputError, MachineRefuses, UsageError
from etude.limits import limit_reached
from etude.masking import mask_of
from etude.osutil.files import replace_file, try_lock
from etude.osutil.trust import check_results_for_root, trusted_users
from etude.results.blocks import Block, TrialBlock
from etude.results.blocks import to_line as block_line
from etude.results.model import Measurement, to_line

SYNC_EVERY_S = 1.0
"""Minimum interval between syncs, s; also at the end: a sync can cost milliseconds."""

LOCK_WAIT_S = 10.0
"""Maximum wait for the engine of a killed Étude to end, s."""


def directory_name(test: str, taken: Sequence[str]) -> str:
    """A directory for a test of that name: safe in a path, unlike those taken."""
    stem = re.sub(r"[^A-Za-z0-9._+-]+", "-", test).strip("-.")[:60] or "test"
    name, suffix = stem, 2
    while name in (*taken, "experiment.json", "experiment.json.new"):
        name, suffix = f"{stem}-{suffix}", suffix + 1
    return name


BY_RESUME = "resume with --resume"


def check_writable_name(path: Path) -> None:
    """Refuse a directory whose path is not UTF-8: the engine, and all files of results, could not name it.

    Raises:
        UsageError: it is not UTF-8; MachineRefuses: something else is there.
    """
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UsageError(
            f"{shown}: results cannot go there: its path is not UTF-8; name another with -o"
        ) from None
    if os.path.lexists(path) and not path.is_dir():
        raise MachineRefuses(
            f"{path}: cannot write results: it is no directory; choose another directory with -o"
        )


def replace_json(
    path: Path,
    document: Mapping[str, Any],
    *,
    mode: int | None = None,
    sync: bool = True,
    go_on: str = BY_RESUME,
) -> None:
    """Replace a JSON file atomically (`osutil.files.replace_file`)."""
    # A file name in the command line may not be UTF-8.
    text = json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace")
    try:
        replace_file(path, text + b"\n", mode=mode, sync=sync)
    except OSError as error:
        raise write_error(path, error, go_on) from error


def write_experiment(directory: Path, document: Mapping[str, Any], go_on: str = BY_RESUME) -> None:
    """Replace experiment.json. Its plan has the commands as they are run: if they contain a secret, only its owner may
    read the file.

    Raises:
        MachineRefuses: it cannot be written.
    """
    replace_json(directory / "experiment.json", document, mode=mode_of(document["plan"]), go_on=go_on)


def mode_of(plan: Mapping[str, Any]) -> int | None:
    """The mode of a file that has this plan: 0600 if it contains a secret, or its masks cannot be read; else None."""
    try:
        mask = mask_of(plan, "plan")
    except InputError:
        return 0o600
    return 0o600 if mask.data(plan) != plan else None


@contextmanager
def sole_writer(directory: Path) -> Iterator[None]:
    """Locks the directory. The engine inherits the lock: a killed Étude's engine, which may still be ending its
    processes, keeps others out until it is gone.

    Raises:
        MachineRefuses: another process holds it for longer than `LOCK_WAIT_S`.
        InputError: another user has put the directory there; see `check_results_for_root`.
    """
    check_results_for_root(directory)
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(file, True)
    try:
        until = time.monotonic() + LOCK_WAIT_S
        while not _locked(file) and not is_held_by_others(file):
            if time.monotonic() > until:
                raise MachineRefuses(f"{directory}: another Étude is writing here; wait for it, or end it")
            time.sleep(0.05)
        yield
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        return try_lock(file)
    except OSError:
        return True  # a file system without locks


def is_held_by_others(file: int) -> bool:
    """True if no process of root, or of a user that root trusts, has the directory open. Every reader of a directory
    can lock it, and root does not wait for them."""
    if os.geteuid() != 0:
        return False
    found = os.fstat(file)
    own, users = Path(f"/proc/{os.getpid()}/fd/{file}"), trusted_users()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has ended
            if _real_user(process) in users and any(
                name != own and _is_at(name, found) for name in (process / "fd").iterdir()
            ):
                return False
    return True


def _real_user(process: Path) -> int:
    """Owner of the process: that of /proc/PID is root if the process cannot be traced."""
    status = (process / "status").read_text(encoding="utf-8", errors="replace")
    return int(status.partition("\nUid:")[2].split(maxsplit=1)[0])


def write_error(path: Path, error: OSError, go_on: str = BY_RESUME) -> MachineRefuses:
    """The error for a path that cannot be written; `go_on`: advice if the verb has no --resume."""
    if error.errno == errno.ENOENT:
        return MachineRefuses(
            f"{path}: is gone: it, or a directory above it, was removed during the run; start a new run"
        )
    advice = limit_reached(error.errno) or {
        errno.ENOSPC: f"free some space, then {go_on}",
        errno.EDQUOT: f"the quota is used up; free some space, then {go_on}",
        errno.EACCES: "choose a directory you may write to with -o",
        errno.EROFS: "it is mounted read-only; choose another with -o",
        errno.EEXIST: f"choose another directory with -o, or {go_on}",
    }.get(error.errno or 0, "choose another directory with -o")
    return MachineRefuses(f"{path}: cannot write results: {os.strerror(error.errno or 0)}; {advice}")


def _text(lines: Iterable[Mapping[str, Any]]) -> bytes:
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return text.encode("utf-8", "replace")


class ResultsWriter:
    """Appends measurements and blocks to one file each per test, one write per trial."""

    def __init__(self, directory: Path, directories: Mapping[str, str]) -> None:
        """`directories` maps each test's name to its directory below `directory`; they are created.

        Raises:
            MachineRefuses: a directory or file cannot be made.
        """
        self._directory = directory
        self._paths: dict[str, Path] = {}
        self._files: dict[Path, int] = {}
        self._dirty: set[Path] = set()
        self._synced_at = time.monotonic()
        for test, name in directories.items():
            self.add(test, name)

    def add(self, test: str, directory: str) -> None:
        """Add a new test, in a directory below that of the results.

        Raises:
            MachineRefuses: the directory or its file cannot be made.
        """
        path = self._directory / directory / "results.jsonl"
        if path not in self._files:
            self._open(path)
        self._paths[test] = path

    def path(self, test: str) -> Path:
        """The file that holds the test's measurements."""
        return self._paths[test]

    def lines(self, test: str) -> int:
        """Number of lines of the test's file; 0 if it cannot be read."""
        try:
            with self._paths[test].open("rb") as file:  # may be larger than the memory
                return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
        except (KeyError, OSError):
            return 0

    def append(self, test: str, measurements: Sequence[Measurement]) -> None:
        """Write the lines of one trial: all of them, or none.

        Raises:
            MachineRefuses: they cannot be written; the file ends with its last complete trial.
        """
        self._write(self._paths[test], map(to_line, measurements))

    def write_again(self, test: str, offset: int, measurements: Sequence[Measurement]) -> None:
        """Replace the lines from a byte offset on by these, atomically.

        Raises:
            MachineRefuses: it cannot be written; the lines are unchanged.
        """
        path = self._paths[test]
        try:
            with open(path, "rb") as file:
                kept = file.read(offset)
            replace_file(path, kept + _text(map(to_line, measurements)))
        except OSError as error:
            raise write_error(path, error) from error
        os.close(self._files.pop(path))
        self._open(path)

    def blocks(self, test: str, trial: int, worker: int | None, blocks: Iterable[Block]) -> None:
        """Write the blocks of a trial, or of one of its workers, to the test's `blocks.jsonl`: all of them, or none.

        Raises:
            MachineRefuses: it cannot be written.
        """
        path = self._paths[test].parent / "blocks.jsonl"
        lines = [block_line(TrialBlock(trial, worker, block)) for block in blocks]
        if not lines:
            return
        if path not in self._files:
            self._open(path)
            _cut_torn_line(path)
        self._write(path, lines)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise write_error(path, error) from error

    def _write(self, path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append JSON objects, one per line, in one write."""
        text = _text(lines)
        file = self._files[path]
        found = os.fstat(file)
        end = found.st_size
        if not _is_at(path, found):
            raise MachineRefuses(f"{path}: is gone; was the results directory moved or removed meanwhile?")
        try:
            if os.write(file, text) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(file, end)
            raise write_error(path, error) from error
        self._dirty.add(path)
        if time.monotonic() - self._synced_at > SYNC_EVERY_S:
            self.sync()

    def log(self, test: str, name: str, text: str) -> None:
        """Write captured output to `logs/NAME` of a test."""
        path = self._paths[test].parent / "logs" / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise write_error(path, error) from error

    def sync(self) -> None:
        """Make the written lines durable.

        Raises:
            MachineRefuses: the device reports an error.
        """
        for path in self._dirty:
            try:
                os.fdatasync(self._files[path])
            except OSError as error:
                raise write_error(path, error) from error
        self._dirty.clear()
        self._synced_at = time.monotonic()

    def close(self) -> None:
        """Sync and close every file."""
        self.sync()
        for file in self._files.values():
            os.close(file)
        self._files.clear()


def _is_at(path: Path, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), found)
    except OSError:
        return False


def _cut_torn_line(path: Path) -> None:
    """Drop a torn last line of a killed Étude: the next one would be joined to it."""
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole != len(text):
        os.truncate(path, whole)
