"""The resume record: the command to resume at boot. One per machine, written by root, on disk before the restart."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from etude import codec
from etude.errors import InputError, MachineRefuses, UsageError
from etude.machine import tree
from etude.osutil.files import sync_directory
from etude.osutil.trust import check_trusted
from etude.results.writer import replace_json

FORMAT, VERSION = "etude-resume", 1
DIRECTORY_VARIABLE = "ETUDE_BOOT_DIRECTORY"
DEFAULT_DIRECTORY = "/var/lib/etude"
NAME, GIVEN_UP_NAME = "resume.json", "resume.json.stopped"
MAX_BOOTS = 3
"""Maximum consecutive boots without progress."""
MAX_SEEN = 1000
MAX_WAIT_S = 180.0
SETTLE_VARIABLE = "ETUDE_SETTLE_S"
"""Variable with the maximum wait, s, of the environment in which the script was started."""

# Variables of a session that ends with the machine. All others are kept: the measured command may depend on them,
# if only on their size.
OF_A_SESSION = re.compile(
    "DBUS_SESSION_BUS_ADDRESS|DISPLAY|ETUDE_ENTRY|ETUDE_RUN|ETUDE_SETTLED|INVOCATION_ID|JOURNAL_STREAM|LISTEN_[A-Z]+|"
    "MANAGERPID|NOTIFY_SOCKET|SSH_[A-Z_]+|STY|SYSTEMD_EXEC_PID|TMUX|TMUX_PANE|WATCHDOG_[A-Z]+|WAYLAND_DISPLAY|"
    "WINDOWID|XAUTHORITY|XDG_RUNTIME_DIR|XDG_SESSION_[A-Z]+"
)


@dataclass(frozen=True)
class Record:
    """The command to run at boot, and the number of boots without progress. Members as in docs/howto/reboot.md."""

    words: list[codec.Word]
    state: codec.Word
    results: codec.Word
    directory: codec.Word
    environment: dict[str, codec.Word]
    program: codec.Words
    entry: codec.Word | None = None
    boot_id: str = ""
    boots: codec.Count = 0
    progress: codec.Word = ""
    seen: list[codec.Word] = field(default_factory=list)
    most_boots: codec.Whole = MAX_BOOTS


def directory() -> Path:
    """Directory of the record: `ETUDE_BOOT_DIRECTORY`, else /var/lib/etude."""
    return Path(os.path.abspath(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY))


def path() -> Path:
    """The record's file."""
    return directory() / NAME


def given_up_path() -> Path:
    """File of a record that was given up."""
    return directory() / GIVEN_UP_NAME


def register(
    words: Sequence[str],
    state: str | os.PathLike[str],
    results: str | os.PathLike[str],
    *,
    entry: str | None = None,
    most_boots: int = MAX_BOOTS,
) -> None:
    """Register `etude WORDS` to run after the next boot, if `state` is still trusted then.

    Counters of an earlier record for the same results are kept.

    Raises:
        MachineRefuses: it cannot be written, or other results wait for a boot.
        UsageError: an invalid maximum wait in the environment.
    """
    new = Record(
        words=list(words),
        state=os.path.abspath(state),
        results=os.path.abspath(results),
        directory=os.getcwd(),
        environment=_environment(),
        program=[
            sys.executable,
            "-P",
            "-m",
            "etude.cli.main",
        ],  # -P: nothing is imported from the working directory
        entry=entry,
        boot_id=boot_id(),
        most_boots=most_boots,
    )
    most_seconds(new.environment)
    old = _waiting()
    if old is not None and old.results == new.results:
        new = replace(new, boots=old.boots, progress=old.progress, seen=old.seen)
    elif old is not None and os.path.exists(old.state):
        raise MachineRefuses(
            f"{path()}: the results in {old.results} wait for the next boot; resume them first "
            f"(etude run {old.state}), or remove that record"
        )
    write(new)


def write(record: Record) -> None:
    """Write a record; it is on disk when this returns.

    Raises:
        MachineRefuses: it cannot be written.
    """
    where = path()
    try:
        where.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    except OSError as error:
        raise MachineRefuses(f"{where.parent}: cannot be made: {error.strerror}; become root") from None
    written = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    document = {"format": FORMAT, "version": VERSION, "written": written, **asdict(record)}
    try:
        replace_json(where, document, mode=0o600)
        sync_directory(where.parent)
    except OSError as error:
        raise MachineRefuses(
            f"{where}: cannot be written: {error.strerror}; free space, or become root"
        ) from None
    except MachineRefuses as refusal:
        raise MachineRefuses(
            f"{where}: cannot be written ({refusal.__cause__}); free space, or become root"
        ) from None


def load() -> Record:
    """The record, if only root could have written it.

    Raises:
        InputError: it is missing, another could have written it, or it is damaged or of a newer version.
    """
    where = path()
    check_trusted(where)
    document = read_object(where)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InputError(
            f'{where}: is no record of version {VERSION} ("format": "{FORMAT}"); use the Étude that wrote it'
        )
    known = {name: document[name] for name in Record.__dataclass_fields__ if name in document}
    return codec.decoded(Record, known, str(where), every=True)


def most_seconds(environment: Mapping[str, str]) -> float:
    """Maximum wait by the environment, s.

    Raises:
        UsageError: it is no number of seconds.
    """
    text = environment.get(SETTLE_VARIABLE) or str(MAX_WAIT_S)
    seconds = tree.to_float(text)
    if seconds is None or not 0 <= seconds < math.inf:
        raise UsageError(f"{SETTLE_VARIABLE}={text}: expected a number of seconds, such as {MAX_WAIT_S:g}")
    return seconds


def is_registered(results: str | os.PathLike[str]) -> bool:
    """True if these results are resumed at the next boot."""
    old = _waiting()
    return old is not None and old.results == os.path.abspath(results)


def forget(results: str | os.PathLike[str] | None = None) -> None:
    """Remove the record, and a given-up one; if `results` are given, only theirs."""
    if results is not None and not is_registered(results):
        return
    for name in (path(), given_up_path()):
        name.unlink(missing_ok=True)
    if directory().is_dir():
        sync_directory(directory())


def give_up() -> Path:
    """Move the record aside for good; returns its new path."""
    os.replace(path(), given_up_path())
    sync_directory(directory())
    return given_up_path()


def boot_id(root: Path = Path("/")) -> str:
    """Boot id of the kernel; empty if it has none."""
    return tree.read_text(root, "proc/sys/kernel/random/boot_id") or ""


def read_object(where: Path) -> dict[str, Any]:
    """The JSON object in a file; symbolic links are not followed.

    Raises:
        InputError: it holds none.
    """
    try:
        with open(os.open(where, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            document: Any = codec.parsed(file.read(), str(where))
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    if not isinstance(document, dict):
        raise InputError(f"{where}: holds no JSON object; was it edited?")
    return document


def _waiting() -> Record | None:
    try:
        return load()
    except InputError:
        return None


def _environment() -> dict[str, str]:
    """The environment that Étude was started in, without later changes and without values that are not UTF-8."""
    try:
        pairs = [entry.partition(b"=") for entry in Path("/proc/self/environ").read_bytes().split(b"\0")]
    except OSError:
        pairs = [(os.fsencode(name), b"=", os.fsencode(value)) for name, value in os.environ.items()]
    kept = {}
    for name, sign, value in pairs:
        try:
            if sign and not OF_A_SESSION.fullmatch(name.decode()):
                kept[name.decode()] = value.decode()
        except UnicodeDecodeError:
            continue
    return kept
