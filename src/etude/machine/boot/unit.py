"""The unit that resumes at boot: systemd's, or without systemd a marked line in /etc/rc.local."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from etude.errors import InputError, MachineRefuses
from etude.machine.boot import record
from etude.osutil.commands import tool
from etude.osutil.files import replace_file, sync_directory
from etude.osutil.trust import check_directory_for_root, check_trusted

NAME = "etude-resume.service"
UNIT = f"etc/systemd/system/{NAME}"
WANTED = f"etc/systemd/system/multi-user.target.wants/{NAME}"
RC_LOCAL = "etc/rc.local"
MARK = "# etude boot-resume"
OWN_RC_LOCAL = "#!/bin/sh\n# made by etude boot-resume install\n"
PROGRAM = ("-P", "-m", "etude.cli.main", "boot-resume", "resume")


@dataclass(frozen=True)
class Status:
    """Kind of unit (`systemd` or `rc.local`), its file, and True if it is installed."""

    by: str
    file: str
    installed: bool
    why: str = ""
    """Reason why an existing unit is invalid."""


def has_systemd(root: Path = Path("/")) -> bool:
    """True if systemd runs, or would be started as the first process."""
    if (root / "run/systemd/system").is_dir():
        return True
    init = root / "sbin/init"
    return init.is_symlink() and os.path.basename(os.readlink(init)) == "systemd"


def install(root: Path = Path("/"), run: Callable[..., object] = tool) -> Status:
    """Install the unit, so that `etude boot-resume resume` runs at each boot with a record.

    Raises:
        MachineRefuses: it cannot be written.
        InputError: others could change the program that root would run.
    """
    _check_settings()
    try:
        (root / str(record.directory()).lstrip("/")).mkdir(parents=True, exist_ok=True)
        if has_systemd(root):
            _install_unit(root, run)
        else:
            _replace(root / RC_LOCAL, with_line(_read(root / RC_LOCAL), rc_line()), executable=True)
    except OSError as error:
        raise MachineRefuses(f"{error.filename}: cannot be written: {error.strerror}; become root") from None
    return status(root)


def remove(root: Path = Path("/"), run: Callable[..., object] = tool) -> Status:
    """Undo `install`, of either kind.

    Raises:
        MachineRefuses: it cannot be written.
    """
    try:
        if (root / UNIT).exists() or os.path.lexists(root / WANTED):
            (root / WANTED).unlink(missing_ok=True)
            (root / UNIT).unlink(missing_ok=True)
            _reload(root, run)
        text = _read(root / RC_LOCAL)
        if text is not None and MARK in text:
            left = without_line(text)
            if left == OWN_RC_LOCAL:
                (root / RC_LOCAL).unlink()
            else:
                _replace(root / RC_LOCAL, left, executable=False)
    except OSError as error:
        raise MachineRefuses(f"{error.filename}: cannot be written: {error.strerror}; become root") from None
    return status(root)


def status(root: Path = Path("/")) -> Status:
    """Status of the unit."""
    if has_systemd(root):
        text, file = _read(root / UNIT), f"/{UNIT}"
        if text is None:
            return Status("systemd", file, False)
        if not os.path.lexists(root / WANTED):
            return Status("systemd", file, False, f"{NAME} is not enabled")
        right = text == unit_text()
        return Status("systemd", file, right, "" if right else _OTHER)
    text, file = _read(root / RC_LOCAL), f"/{RC_LOCAL}"
    if text is None or MARK not in text:
        return Status("rc.local", file, False)
    if not os.access(root / RC_LOCAL, os.X_OK):
        return Status("rc.local", file, False, "is not executable: chmod +x it")
    right = rc_line() in text.splitlines()
    return Status("rc.local", file, right, "" if right else _OTHER)


_OTHER = f"is for another Étude, or another {record.DIRECTORY_VARIABLE}: etude boot-resume install"


def untrusted_programs() -> list[str]:
    """Programs that run as root at boot but can be changed by others, one line each."""
    found = []
    for file in (os.path.realpath(sys.executable), str(Path(__file__).parents[2] / "__init__.py")):
        try:
            check_trusted(file)
        except InputError as error:
            found.append(str(error).removesuffix(": refused"))
    return found


def unit_text() -> str:
    """Text of the unit: no service that is kept alive; it runs once at boot, and only if there is a record."""
    words = " ".join([_quoted(sys.executable), *PROGRAM])
    settings = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in _settings().items())
    where = str(record.path()).replace("%", "%%")
    return f"""\
[Unit]
Description=Étude: resume a script after a restart
Documentation=man:etude-boot-resume(1)
After=multi-user.target
ConditionPathExists={where}

[Service]
Type=exec
ExecStart={words}
{settings}WorkingDirectory=/
# What is measured is not to be bounded as a service would be, nor ended as a whole where it runs out of memory.
TasksMax=infinity
OOMPolicy=continue
Delegate=yes

[Install]
WantedBy=multi-user.target
"""


def rc_line() -> str:
    """The line of /etc/rc.local, which runs it in the background."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in _settings().items()]
    words = " ".join([*settings, shlex.join([sys.executable, *PROGRAM])])
    where = shlex.quote(str(record.path()))
    return f"[ ! -e {where} ] || {{ {words} 2>&1 | logger -t etude-resume; }} & {MARK}"


def with_line(text: str | None, line: str) -> str:
    """An rc.local with our line: before its last `exit`, if it has one."""
    lines = without_line(text if text is not None else OWN_RC_LOCAL).splitlines()
    last = max((i for i, each in enumerate(lines) if each.strip()), default=-1)
    ends = last >= 0 and (lines[last] == "exit" or lines[last].startswith("exit "))
    lines.insert(last if ends else len(lines), line)
    return "\n".join(lines) + "\n"


def without_line(text: str) -> str:
    """An rc.local without our line."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.rstrip("\n").endswith(MARK))


def _settings() -> dict[str, str]:
    """Locations of this Étude and its record, as far as the environment sets them."""
    return {
        name: os.environ[name] for name in (record.DIRECTORY_VARIABLE, "PYTHONPATH") if os.environ.get(name)
    }


def _check_settings() -> None:
    """Refuse directories from which root would run code at boot, and in which others could put it.

    Raises:
        InputError: such a directory, or one that is no absolute path in one line.
    """
    for name, value in _settings().items():
        for entry in value.split(":") if name == "PYTHONPATH" else [value]:
            if not entry.startswith("/") or not entry.isprintable():
                raise InputError(f"{name}: {entry!r} is no absolute path in one line; root reads it at boot")
            check_directory_for_root(
                next(place for place in (Path(entry), *Path(entry).parents) if os.path.lexists(place))
            )


def _install_unit(root: Path, run: Callable[..., object]) -> None:
    _replace(root / UNIT, unit_text(), executable=False)
    wanted = root / WANTED
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(f"/{UNIT}")  # same as systemctl enable, also if systemd is not running
    _reload(root, run)


def _reload(root: Path, run: Callable[..., object]) -> None:
    if (root / "run/systemd/system").is_dir():
        run("systemctl", "daemon-reload")


def _quoted(word: str) -> str:
    """A word in systemd's quoting."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if escaped != word or not word or any(c in " \t'" for c in word) else word


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None


def _replace(path: Path, text: str, *, executable: bool) -> None:
    """Replace a file atomically; an existing file keeps its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    replace_file(path, text.encode("utf-8", "surrogateescape"), mode=mode | 0o111 if executable else mode)
    sync_directory(path.parent)
