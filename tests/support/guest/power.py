"""QEMU's process: on, off, and on again whenever the guest restarts itself; never more often or longer than allowed.

What runs can be saved and be gone on with later, which takes seconds where a boot takes a quarter of a minute.

A restart of the guest ends QEMU, and another one is started on the same disks. That is quicker than going on in the
old one: its translated code of before the restart makes each write to the same memory several times as slow.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max,la57=off,svm=off,erms=off")
"""Page tables of five levels are a level more to walk in software; with SVM modules of KVM would be loaded; with ERMS
memory is cleared and copied byte by byte, which QEMU emulates one after the other."""

VIRTUALISED = ("-accel", "kvm", "-cpu", "host")
PROBE_S = 10.0
MONITOR_S = 20.0
SAVE_S = 120.0


class Power:
    """A machine's power: `command` gives the words that start QEMU, from the directory for its sockets."""

    def __init__(
        self, command: Callable[[Path], list[str]], log: Path, *, most_boots: int, life_s: float
    ) -> None:
        self._command = command
        self._log = log
        self._usual = (most_boots, life_s)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: threading.Thread | None = None
        self._cut = False
        self.renew()
        self.ended_because = ""
        """Why the guest was ended, if it was for booting too often or living too long."""
        # The path of a socket has at most 107 characters; those of a test's directories may have more.
        self.sockets = Path(tempfile.mkdtemp(prefix="guest-"))

    @property
    def is_on(self) -> bool:
        return self._watcher is not None and self._watcher.is_alive()

    def renew(self, *, most_boots: int | None = None) -> None:
        """Boots and time are counted from now on: so a test is bounded, whatever was before it."""
        usual, life_s = self._usual
        self._most_boots = usual if most_boots is None else most_boots
        self._until = time.monotonic() + life_s
        self.boots = 0
        """Since the power was switched on, or since `renew`."""

    def on(self, state: str = "") -> None:
        """Boot, or go on with what was saved as `state`."""
        assert not self.is_on, "the guest is on"
        self.renew()
        self._cut, self.ended_because = False, ""
        self._watcher = threading.Thread(target=self._live, args=(state,), daemon=True)
        self._watcher.start()

    def save(self, state: str) -> None:
        """Keep what runs, memory and disks, in the guest's disks: for `on(state)`.

        Raises:
            OSError: QEMU cannot.
        """
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(SAVE_S)
            monitor.connect(str(self.sockets / "control"))
            with monitor.makefile("rw") as lines:
                _command(lines, "qmp_capabilities")
                said = _command(lines, "human-monitor-command", **{"command-line": f"savevm {state}"})
        if said:
            raise OSError(str(said).strip())

    def cut(self) -> None:
        """Off at once: what the guest had not written to its disk is lost."""
        with self._lock:
            self._cut = True
            if self._process is not None:
                self._process.kill()
        if self._watcher is not None:
            self._watcher.join()

    def discard(self) -> None:
        """Off for good."""
        self.cut()
        shutil.rmtree(self.sockets, ignore_errors=True)

    def wait_off(self, within_s: float) -> bool:
        """Whether the guest switches itself off within this time."""
        if self._watcher is not None:
            self._watcher.join(within_s)
        return not self.is_on

    def _live(self, state: str) -> None:
        """From power on to off."""
        again = True
        while again:
            self.boots += not state
            if self.boots > self._most_boots:
                self.ended_because = f"it booted more than {self._most_boots} times"
                return
            with self._lock, self._log.open("ab") as log:
                if self._cut:
                    return
                # It ends with us, however we end.
                words = ["setpriv", "--pdeathsig", "KILL", *self._command(self.sockets)]
                words += ["-loadvm", state] if state else []
                state = ""
                self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                again = self._boot(self._process)
            finally:
                self._process.kill()
                self._process.wait()

    def _boot(self, process: subprocess.Popen[bytes]) -> bool:
        """One boot, from its start to the end of QEMU; whether the guest asked for another one."""
        restarts = False
        kept = b""
        monitor = _connected(self.sockets / "monitor", process)
        if monitor is None:
            return False
        with monitor:
            monitor.sendall(b'{"execute": "qmp_capabilities"}\n')
            monitor.settimeout(1.0)
            while True:
                try:
                    more = monitor.recv(65536)
                    if not more:
                        break
                except TimeoutError:
                    more = b""
                except OSError:
                    break
                *lines, kept = (kept + more).split(b"\n")
                restarts |= any(_is_restart(json.loads(line)) for line in lines if line.strip())
                if time.monotonic() > self._until:
                    self.ended_because = f"it ran for more than {self._usual[1]:.0f} s"
                    return False
        # The monitor closes before the disks do.
        process.wait()
        return restarts and not self._cut


@functools.cache
def acceleration(kernel: Path) -> tuple[str, ...]:
    """QEMU's words for the quickest way that boots here; whether /dev/kvm is there proves nothing.

    What was found holds until this machine is booted again, and is kept beside the kernel.
    """
    kept = kernel.with_name("acceleration.json")
    here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        known = json.loads(kept.read_text())
        if known["boot_id"] == here:
            return VIRTUALISED if known["kvm"] else EMULATED
    except (OSError, ValueError, KeyError):
        pass
    works = os.access("/dev/kvm", os.R_OK | os.W_OK) and _boots(kernel)
    kept.write_text(json.dumps({"boot_id": here, "kvm": works}) + "\n")
    return VIRTUALISED if works else EMULATED


def _boots(kernel: Path) -> bool:
    """Whether a kernel says its name under KVM; it has no root file system, and so soon panics."""
    words = [
        "qemu-system-x86_64",
        *VIRTUALISED,
        "-nodefaults",
        "-display",
        "none",
        "-serial",
        "stdio",
        "-no-reboot",
    ]
    words += ["-m", "256", "-kernel", str(kernel), "-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1"]
    try:
        said = subprocess.run(
            ["timeout", "--signal=KILL", str(PROBE_S), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        ).stdout
    except OSError:
        return False
    return b"Linux version" in said


def _connected(path: Path, process: subprocess.Popen[bytes]) -> socket.socket | None:
    """To QEMU's monitor, as soon as it is there; None where it never is."""
    until = time.monotonic() + MONITOR_S
    connection = socket.socket(socket.AF_UNIX)
    while process.poll() is None and time.monotonic() < until:
        try:
            connection.connect(str(path))
            return connection
        except OSError:
            time.sleep(0.05)
    connection.close()
    return None


def _command(lines: TextIO, name: str, **arguments: str) -> object:
    """What QEMU's monitor returns for a command; events between are passed over."""
    lines.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
    lines.flush()
    for line in lines:
        answer = json.loads(line)
        if "error" in answer:
            raise OSError(f"{name}: {answer['error']['desc']}")
        if "return" in answer:
            return answer["return"]
    raise OSError(f"{name}: QEMU has ended")


def _is_restart(message: dict[str, object]) -> bool:
    """Whether QEMU says that it ends since the guest wants to start again."""
    data = message.get("data")
    return (
        message.get("event") == "SHUTDOWN" and isinstance(data, dict) and data.get("reason") == "guest-reset"
    )
