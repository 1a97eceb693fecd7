"""Scripts made of traces, and a player of one thread that tells where it comes to something else."""

from __future__ import annotations

import errno
import os
import re
import resource
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from etude.program import engine_path

_STEP = re.compile(r"(?:(\d+): )?(\w+)\((.*)\)(?: = (-?\w+)(?: (E\w+))?)?(?: <([\d.]+)>)?$")
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^,]+')
_MISSING = object()


@dataclass(frozen=True)
class Made:
    """A script, as text, and what was said of it."""

    text: str
    said: list[str]
    path: Path

    @property
    def steps(self) -> list[str]:
        """Its lines from the first step on."""
        needed = ("scheduling ", "file ", "directory ", "link ", "name ", "dropped ", "#", "etude script ")
        return [line for line in self.text.splitlines() if not line.startswith(needed)]


def script_of(trace: Path, *options: str) -> Made:
    """Make a script of a trace, beside it."""
    path, report = trace.with_suffix(".script"), trace.with_suffix(".report")
    words = ["script", "-q", trace, "-o", path, "--report", report, *options]
    subprocess.run([engine_path(), *words], check=True)
    subprocess.run([engine_path(), "script", "check", path], check=True, capture_output=True)
    return Made(path.read_text(), report.read_text(errors="replace").splitlines(), path)


def prepare(script: Path, directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the files that a script needs."""
    command = [engine_path(), "prepare", *options, script, directory]
    bound = (1 << 28, 1 << 28)  # a file that should have been refused shall not fill the disk
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, bound)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, preexec_fn=limit)


@dataclass
class Player:
    """Makes the calls of a script one after the other, as far as it knows them."""

    root: Path
    tables: dict[int, dict[int, int]] = field(default_factory=lambda: {0: {}})
    processes: dict[int, int] = field(default_factory=lambda: {0: 0})
    played: int = 0
    wrong: list[str] = field(default_factory=list)

    def play(self, steps: Sequence[str]) -> None:
        for line in steps:
            found = _STEP.match(line)
            assert found, line
            thread = int(found[1] or 0)
            words = [word.strip() for word in _WORD.findall(found[3])]
            process = self.processes[thread]
            if found[2] == "fork":
                new = int(words[0])
                self.processes[new] = new
                self.tables[new] = {fd: os.dup(live) for fd, live in self.tables[process].items()}
            elif found[2] == "start":
                self.processes[int(words[0])] = process
            elif found[4] is not None:
                self._call(line, self.tables[process], found, words)
        for table in self.tables.values():
            for live in table.values():
                os.close(live)

    def _call(self, line: str, table: dict[int, int], found: re.Match[str], words: list[str]) -> None:
        call = getattr(self, f"_{found[2]}", None)
        if call is None:
            return
        try:
            got: Any = call(table, words, int(found[4], 0))
            error = ""
        except OSError as failed:
            got, error = -1, errno.errorcode[failed.errno or 0]
        if got is _MISSING:
            return
        self.played += 1
        if error != (found[5] or "") or (not error and got != int(found[4], 0)):
            self.wrong.append(f"{line}: {got} {error}")

    def _path(self, word: str) -> Path:
        # Of a process that has changed its directory they begin with /, the root of the replay.
        assert re.match(r'"/?[^/]', word), word
        assert ".." not in word, word
        return self.root / word[1:-1].lstrip("/")

    def _flags(self, word: str) -> int:
        names = [name for name in word.split("|") if name != "O_LARGEFILE"]
        return sum(getattr(os, name) for name in names)

    def _openat(self, table: dict[int, int], words: list[str], result: int) -> int:
        assert words[0] == "AT_FDCWD"
        mode = int(words[3], 8) if len(words) > 3 else 0o777
        live = os.open(self._path(words[1]), self._flags(words[2]), mode)
        if result in table:
            os.close(table[result])
        table[result] = live
        return result

    def _creat(self, table: dict[int, int], words: list[str], result: int) -> int:
        return self._openat(table, ["AT_FDCWD", words[0], "O_WRONLY|O_CREAT|O_TRUNC", words[1]], result)

    def _close(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.close(table.pop(int(words[0])))
        return 0

    def _dup2(self, table: dict[int, int], words: list[str], result: int) -> int:
        old, new = int(words[0]), int(words[1])
        if old != new:
            live = os.dup(table[old])
            if new in table:
                os.close(table[new])
            table[new] = live
        return new

    def _fcntl(self, table: dict[int, int], words: list[str], result: int) -> Any:
        if words[1] not in ("F_DUPFD", "F_DUPFD_CLOEXEC"):
            assert int(words[0]) in table
            return _MISSING
        table[result] = os.dup(table[int(words[0])])
        return result

    def _pipe2(self, table: dict[int, int], words: list[str], result: int) -> Any:
        """A device in place of each end: what waits for another process cannot be played by one."""
        for descriptor in (int(word.strip("[]")) for word in words[:2]):
            table[descriptor] = os.open(os.devnull, os.O_RDWR)
        return _MISSING

    def _read(self, table: dict[int, int], words: list[str], result: int) -> Any:
        if stat.S_ISCHR(os.fstat(table[int(words[0])]).st_mode):
            return _MISSING
        return len(os.read(table[int(words[0])], int(words[1])))

    def _pread64(self, table: dict[int, int], words: list[str], result: int) -> int:
        return len(os.pread(table[int(words[0])], int(words[1]), int(words[2])))

    def _write(self, table: dict[int, int], words: list[str], result: int) -> int:
        return os.write(table[int(words[0])], bytes(int(words[1])))

    def _pwrite64(self, table: dict[int, int], words: list[str], result: int) -> int:
        return os.pwrite(table[int(words[0])], bytes(int(words[1])), int(words[2]))

    def _copy_file_range(self, table: dict[int, int], words: list[str], result: int) -> int:
        source, target = table[int(words[0])], table[int(words[2])]
        return os.copy_file_range(source, target, min(int(words[4]), 1 << 30))

    def _lseek(self, table: dict[int, int], words: list[str], result: int) -> int:
        return os.lseek(table[int(words[0])], int(words[1]), getattr(os, words[2]))

    def _ftruncate(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.ftruncate(table[int(words[0])], int(words[1]))
        return 0

    def _newfstatat(self, table: dict[int, int], words: list[str], result: int) -> int:
        if words[0] == "AT_FDCWD":
            os.stat(self._path(words[1]), follow_symlinks="AT_SYMLINK_NOFOLLOW" not in words[-1])
        else:
            os.fstat(table[int(words[0])])
        return 0

    def _access(self, table: dict[int, int], words: list[str], result: int) -> Any:
        if result < 0 or "X_OK" in words[1]:
            return _MISSING
        os.stat(self._path(words[0]))
        return 0

    def _mkdir(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.mkdir(self._path(words[0]))
        return 0

    def _mkdirat(self, table: dict[int, int], words: list[str], result: int) -> int:
        return self._mkdir(table, words[1:], result)

    def _unlink(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.unlink(self._path(words[0]))
        return 0

    def _unlinkat(self, table: dict[int, int], words: list[str], result: int) -> int:
        (os.rmdir if "AT_REMOVEDIR" in words[2] else os.unlink)(self._path(words[1]))
        return 0

    def _rename(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.rename(self._path(words[0]), self._path(words[1]))
        return 0

    def _link(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.link(self._path(words[0]), self._path(words[1]), follow_symlinks=False)
        return 0

    def _renameat2(self, table: dict[int, int], words: list[str], result: int) -> int:
        return self._rename(table, [words[1], words[3]], result)

    def _symlinkat(self, table: dict[int, int], words: list[str], result: int) -> int:
        os.symlink(words[0][1:-1], self._path(words[2]))
        return 0

    def _readlink(self, table: dict[int, int], words: list[str], result: int) -> Any:
        os.readlink(self._path(words[0]))
        return _MISSING if result >= 0 else 0

    def _getdents64(self, table: dict[int, int], words: list[str], result: int) -> Any:
        os.listdir(table[int(words[0])])
        return _MISSING
