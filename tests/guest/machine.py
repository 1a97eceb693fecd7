"""The test machine: a guest of QEMU's on a disk of its own, which a test starts, uses, restarts, and cuts the power of.

    with Machine(directory) as guest:
        guest.start()
        guest.check("etude doctor")
        guest.restart()

Everything is bounded: commands, boots, how often it boots, and how long it lives. docs/guest.md has the rest.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from agent import Agent, Refused, Silent

PROJECT = Path(__file__).resolve().parents[2]
BOOT_S = 180.0
"""A boot takes about a quarter of a minute of a processor; the rest is for a busy machine."""

LIFE_S = 1800.0
MOST_BOOTS = 12
CONSOLE_LINES = 60
"""Of the console, in the message of a failure."""

IMAGE_VARIABLE = "ETUDE_GUEST_IMAGE"


class GuestFails(AssertionError):
    """The guest did not do what it should have; with the end of its console."""


@dataclass(frozen=True)
class Answer:
    """What a command in the guest came to; `status` is 128 + the signal where one ended it."""

    status: int
    out: str
    err: str


def image() -> Path | None:
    """The disk image that `make guest` made for this clone, or the one that is named by the environment."""
    path = Path(os.environ.get(IMAGE_VARIABLE) or PROJECT / "build" / "guest.img")
    return path if path.exists() else None


class Machine:
    """A guest: off until `start`. Its disks live in `directory`, from one start to the next."""

    def __init__(
        self,
        directory: Path,
        *,
        disk: Path | None = None,
        memory_mib: int = 1024,
        processors: int = 2,
        data_mib: int = 0,
        most_boots: int = MOST_BOOTS,
        life_s: float = LIFE_S,
    ) -> None:
        """`data_mib` > 0: a second disk of this size, /dev/vdb. `disk`: another image than that of `make guest`."""
        base = disk or image()
        if base is None:
            raise GuestFails("no test machine has been built: make guest")
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.memory_mib = memory_mib
        self.processors = processors
        self.most_boots = most_boots
        self.life_s = life_s
        self.ended_because = ""
        self._disks = [directory / "disk.qcow2"]
        _qemu_img("create", "-q", "-f", "qcow2", "-b", base.resolve(), "-F", "raw", self._disks[0])
        if data_mib:
            self._disks.append(directory / "data.qcow2")
            _qemu_img("create", "-q", "-f", "qcow2", self._disks[1], f"{data_mib}M")
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: Agent | None = None

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.power_cut()

    # --- power ----------------------------------------------------------------------------------

    def start(self, within_s: float = BOOT_S) -> None:
        """Power on, and wait until commands can be run.

        Raises:
            GuestFails: it did not come up in time; it is off then.
        """
        assert self._process is None, "the guest is on"
        # A path of a socket has at most 107 characters, those of pytest's directories may have more.
        self._sockets = Path(tempfile.mkdtemp(prefix="guest-"))
        self.ended_because = ""
        log = (self.directory / "qemu.log").open("ab")
        with log:
            # It ends with us, however we end.
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self._command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            monitor = self._connect(self._sockets / "monitor")
            threading.Thread(target=self._watch, args=(monitor, self._process), daemon=True).start()
            self._agent = Agent(self._sockets / "agent")
            self.wait_answer(within_s)
        except BaseException:
            self.power_cut()
            raise

    def power_cut(self) -> None:
        """Off at once: what was not written to the disk is lost. Harmless where it is off."""
        if self._agent is not None:
            self._agent.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            shutil.rmtree(self._sockets, ignore_errors=True)
        self._agent = self._process = None

    def power_off(self, within_s: float = BOOT_S) -> None:
        """Shut the guest down in order."""
        assert self._process is not None, "the guest is off"
        self.spawn("systemctl poweroff")
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise self._failure(f"the guest was not off after {within_s:.0f} s") from None
        finally:
            self.power_cut()

    def restart(self, within_s: float = BOOT_S) -> None:
        """Restart the guest in order, and wait until commands can be run."""
        before = self.boot_id()
        self.spawn("systemctl reboot")
        self.wait_restart(before, within_s)

    def wait_restart(self, before: str, within_s: float = BOOT_S) -> str:
        """Wait until the guest is in another boot than `before`; its boot id.

        Raises:
            GuestFails: it is not within this time; or it is off: too many boots.
        """
        until = time.monotonic() + within_s
        while (left_s := until - time.monotonic()) > 0:
            with contextlib.suppress(Silent, Refused, GuestFails):
                self._talk().greet(min(left_s, 5.0))
                now = self.boot_id()
                if now != before:
                    return now
            self._must_be_on()
            time.sleep(0.3)
        raise self._failure(f"the guest did not restart within {within_s:.0f} s")

    def wait_answer(self, within_s: float = BOOT_S) -> None:
        """Wait until commands can be run.

        Raises:
            GuestFails: they cannot within this time.
        """
        try:
            self._talk().greet(within_s)
        except Silent as error:
            self._must_be_on()
            raise self._failure(str(error)) from None

    def wait_started(self, within_s: float = BOOT_S) -> str:
        """Wait until all start-up jobs are done; systemd's word for the state, such as `running` or `degraded`."""
        return self.run("systemctl is-system-running --wait", within_s).out.strip()

    # --- commands and files ---------------------------------------------------------------------

    def run(self, line: str, within_s: float = 120.0, stdin: bytes = b"") -> Answer:
        """Run a line for bash, as root in /root, and wait for it.

        Raises:
            GuestFails: it took longer (it is killed then), or the guest restarted meanwhile.
        """
        until = time.monotonic() + within_s
        try:
            pid = self.spawn(line, stdin)
            pause_s = 0.02
            while True:
                state = self._talk().ask("guest-exec-status", pid=pid)
                if state["exited"]:
                    return _answer(state)
                if time.monotonic() > until:
                    self.spawn(f"pkill -KILL -P {pid}; kill -KILL {pid}")
                    raise self._failure(f"not done within {within_s:.0f} s: {line}")
                time.sleep(pause_s)
                pause_s = min(pause_s * 1.5, 0.3)
        except (Silent, Refused) as error:
            self._must_be_on()
            raise self._failure(f"{line}: {error}") from None

    def check(self, line: str, within_s: float = 120.0, stdin: bytes = b"") -> str:
        """The standard output of a line that must succeed.

        Raises:
            GuestFails: as `run`, and for a status other than 0.
        """
        answer = self.run(line, within_s, stdin)
        if answer.status:
            raise GuestFails(f"{line}: status {answer.status}\n{answer.out}\n{answer.err}")
        return answer.out

    def spawn(self, line: str, stdin: bytes = b"") -> int:
        """Run a line for bash and do not wait: such as one that restarts the machine. Its process id."""
        words = {"path": "/bin/bash", "arg": ["-c", f"cd /root; {line}"], "capture_output": True}
        if stdin:
            words["input_data"] = base64.b64encode(stdin).decode()
        return int(self._talk().ask("guest-exec", **words)["pid"])

    def write(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        """A file in the guest."""
        self._talk().write(path, content.encode() if isinstance(content, str) else content)
        self.check(f"chmod {mode:o} '{path}'")

    def read(self, path: str) -> bytes:
        """A file of the guest."""
        return self._talk().read(path)

    def put(self, here: Path, there: str) -> None:
        """Copy a file or a directory into the directory `there` of the guest, with modes, as root's."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
            archive.add(here, here.name, filter=_plain)
        self._talk().write("/tmp/put.tar.gz", packed.getvalue())
        self.check(f"mkdir -p '{there}' && tar -xzf /tmp/put.tar.gz -C '{there}' && rm /tmp/put.tar.gz")

    def fetch(self, there: str, here: Path) -> Path:
        """Copy a file or a directory of the guest into the directory `here`; where it lies now."""
        self.check(f"tar -czf /tmp/fetch.tar.gz -C \"$(dirname '{there}')\" \"$(basename '{there}')\"")
        with tarfile.open(fileobj=io.BytesIO(self.read("/tmp/fetch.tar.gz")), mode="r:gz") as archive:
            archive.extractall(here, filter="data")
        return here / Path(there).name

    def put_source(self, source: Path = PROJECT / "src" / "etude", engine: Path | None = None) -> None:
        """Lay a source tree, and an engine, over the Étude that is installed: what is being worked on, at once."""
        place = self.check("ls -d /opt/etude/lib/python3*/site-packages/etude").strip()
        self.check(f"rm -r '{place}'")
        self.put(source, os.path.dirname(place))
        if engine is not None:
            self.put(engine, "/opt/etude/bin")

    # --- what is to be seen ---------------------------------------------------------------------

    def boot_id(self) -> str:
        return self.check("cat /proc/sys/kernel/random/boot_id").strip()

    def command_line(self) -> str:
        """With which the kernel was booted."""
        return self.check("cat /proc/cmdline").strip()

    def journal(self, *options: str) -> str:
        """Lines of the journal of this boot, or as journalctl's options say: `-b -1`, `-u etude-resume`."""
        return self.check(f"journalctl --no-pager {' '.join(options or ('-b',))}")

    def console(self) -> str:
        """All that was written on the serial console since the first start."""
        path = self.directory / "console.log"
        return path.read_bytes().decode("utf-8", "replace").replace("\r", "") if path.exists() else ""

    @property
    def is_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    # --- inside ---------------------------------------------------------------------------------

    def _command(self) -> list[str]:
        words = [
            *("qemu-system-x86_64", "-machine", "pc", *ACCELERATION, "-nodefaults", "-no-user-config"),
            *("-smp", str(self.processors), "-m", str(self.memory_mib), "-display", "none"),
            *(
                "-chardev",
                f"file,id=console,path={self.directory}/console.log,append=on",
                "-serial",
                "chardev:console",
            ),
            *("-qmp", f"unix:{self._sockets}/monitor,server=on,wait=off"),
            *("-chardev", f"socket,id=agent,path={self._sockets}/agent,server=on,wait=off"),
            *("-device", "virtio-serial-pci", "-device"),
            *("virtserialport,chardev=agent,name=org.qemu.guest_agent.0", "-device", "virtio-rng-pci"),
        ]
        for number, disk in enumerate(self._disks):
            words += ["-drive", f"if=none,id=disk{number},file={disk},format=qcow2,discard=unmap"]
            words += ["-device", f"virtio-blk-pci,drive=disk{number},bootindex={number + 1}"]
        return words

    def _connect(self, path: Path) -> socket.socket:
        """To QEMU's monitor, as soon as it is there."""
        until = time.monotonic() + 20
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(path))
                return connection
            except OSError:
                self._must_be_on()
                if time.monotonic() > until:
                    raise self._failure("QEMU did not make its monitor") from None
                time.sleep(0.05)

    def _watch(self, monitor: socket.socket, process: subprocess.Popen[bytes]) -> None:
        """Ends a guest that boots too often or lives too long."""
        until = time.monotonic() + self.life_s
        boots = 1
        kept = b""
        with monitor:
            monitor.sendall(b'{"execute": "qmp_capabilities"}\n')
            monitor.settimeout(1.0)
            while process.poll() is None:
                try:
                    more = monitor.recv(65536)
                    if not more:
                        return
                except TimeoutError:
                    more = b""
                except OSError:
                    return
                *lines, kept = (kept + more).split(b"\n")
                boots += sum(json.loads(line).get("event") == "RESET" for line in lines if line.strip())
                if boots > self.most_boots:
                    self.ended_because = f"it booted more than {self.most_boots} times"
                elif time.monotonic() > until:
                    self.ended_because = f"it ran for more than {self.life_s:.0f} s"
                if self.ended_because:
                    process.kill()
                    return

    def _talk(self) -> Agent:
        assert self._agent is not None, "the guest is off"
        return self._agent

    def _must_be_on(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise self._failure(
                "the guest is off" + (f": {self.ended_because}" if self.ended_because else "")
            )

    def _failure(self, what: str) -> GuestFails:
        end = "\n".join(self.console().splitlines()[-CONSOLE_LINES:])
        log = self.directory / "qemu.log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        return GuestFails(f"{what}\n--- end of its console\n{end}\n--- QEMU said\n{said}")


ACCELERATION = ("-accel", "tcg,thread=multi", "-cpu", "max,la57=off")


def _answer(state: dict[str, object]) -> Answer:
    texts = [
        base64.b64decode(str(state.get(name, ""))).decode("utf-8", "replace")
        for name in ("out-data", "err-data")
    ]
    status = 128 + int(str(state["signal"])) if "signal" in state else int(str(state.get("exitcode", 0)))
    return Answer(status, *texts)


def _plain(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in item.name:
        return None
    item.uid = item.gid = 0
    item.uname = item.gname = "root"
    return item


def _qemu_img(*words: object) -> None:
    subprocess.run(["qemu-img", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
