"""The test machine: a guest of QEMU's on a disk of its own, which a test starts, uses, restarts, and cuts the power of.

    with Machine(directory) as guest:
        guest.start()
        guest.check("etude doctor")
        guest.restart()

Everything is bounded: commands, boots, how often it boots, and how long it lives. docs/internals/guest.md has the rest.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from support.guest.agent import Agent, Refused, Silent
from support.guest.power import Power, acceleration
from support.places import ROOT

PROJECT = ROOT
BOOT_S = 600.0
COMMAND_S = 300.0
"""A boot takes about half a minute of a processor, a command seconds; the rest is for a busy machine."""

WAIT_S = 900.0
"""What several boots and all between them may take."""

ASKED_S = 5.0
"""So often, once it has answered, a guest is asked whether it has restarted."""

LIFE_S = 1800.0
MOST_BOOTS = 12
BOOTED = "booted"
"""The state that tests begin with, saved after a boot."""

SECOND = "/sys/devices/system/cpu/cpu1/online"
"""0 switches the second processor off, 1 on."""

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
        memory_mib: int = 640,
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
        self._acceleration = acceleration(base.resolve().with_name("vmlinuz"))
        self._disks = [directory / "disk.qcow2"]
        _qemu_img("create", "-q", "-f", "qcow2", "-b", base.resolve(), "-F", "raw", self._disks[0])
        if data_mib:
            self._disks.append(directory / "data.qcow2")
            _qemu_img("create", "-q", "-f", "qcow2", self._disks[1], f"{data_mib}M")
        self.power = Power(self._command, directory / "qemu.log", most_boots=most_boots, life_s=life_s)
        self._agent = Agent(self.power.sockets / "agent")

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._agent.close()
        self.power.discard()

    # --- power ----------------------------------------------------------------------------------

    def start(self, within_s: float = BOOT_S) -> None:
        """Power on, and wait until commands can be run.

        Raises:
            GuestFails: it did not come up in time; it is off then.
        """
        self.power.on()
        self._wait_on(within_s)

    def save(self, state: str) -> None:
        """Keep what runs, memory and disks, for `restore`, under a name."""
        self.check("sync")
        self.power.save(state)

    def restore(self, state: str) -> None:
        """Go on with what was saved, as it was then, whatever has happened since: a second in place of a boot.

        Raises:
            GuestFails: it does not answer; it is off then.
        """
        self.power_cut()
        self.power.on(state)
        self._wait_on()

    def power_cut(self) -> None:
        """Off at once: what was not written to the disk is lost. Harmless where it is off."""
        self.power.cut()
        self._agent.close()

    def power_off(self, within_s: float = BOOT_S) -> None:
        """Shut the guest down in order.

        Raises:
            GuestFails: it was not off within this time; it is now.
        """
        self.spawn("systemctl poweroff")
        off = self.power.wait_off(within_s)
        self.power_cut()
        if not off:
            raise self._failure(f"the guest did not shut down within {within_s:.0f} s")

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
        answered = (-1, 0.0)  # In which of QEMU's boots, and when.
        while (left_s := until - time.monotonic()) > 0:
            # A guest that is asked again and again has better things to do. Of a kexec QEMU knows nothing.
            if self.power.boots != answered[0] or time.monotonic() > answered[1] + ASKED_S:
                boots = self.power.boots
                with contextlib.suppress(Silent, Refused, GuestFails):
                    self._agent.greet(min(left_s, 5.0))
                    now = self.boot_id()
                    if now != before:
                        return now
                    answered = boots, time.monotonic()
            self._must_be_on()
            time.sleep(0.3)
        raise self._failure(f"the guest did not restart within {within_s:.0f} s")

    def wait_answer(self, within_s: float = BOOT_S) -> None:
        """Wait until commands can be run.

        Raises:
            GuestFails: they cannot within this time, or the guest is off.
        """
        until = time.monotonic() + within_s
        while True:
            try:
                self._agent.greet(min(5.0, max(until - time.monotonic(), 0.1)))
                return
            except Silent as error:
                self._must_be_on()
                if time.monotonic() > until:
                    raise self._failure(f"{error}, nor before: {within_s:.0f} s in all") from None

    def wait_started(self, within_s: float = BOOT_S) -> str:
        """Wait until all start-up jobs are done; systemd's word for the state, such as `running` or `degraded`."""
        return self.run("systemctl is-system-running --wait", within_s).out.strip()

    # --- commands and files ---------------------------------------------------------------------

    def run(self, line: str, within_s: float = COMMAND_S, stdin: bytes = b"") -> Answer:
        """Run a line for bash, as root in /root, and wait for it.

        Raises:
            GuestFails: it took longer (it is killed then), or the guest restarted meanwhile.
        """
        until = time.monotonic() + within_s
        try:
            pid = self.spawn(line, stdin)
            pause_s = 0.02
            while True:
                state = self._agent.ask("guest-exec-status", pid=pid)
                if state["exited"]:
                    return _answer(state)
                if time.monotonic() > until:
                    self._kill(pid)
                    raise self._failure(f"not done within {within_s:.0f} s: {line}")
                time.sleep(pause_s)
                pause_s = min(pause_s * 1.5, 0.5)
        except (Silent, Refused) as error:
            self._must_be_on()
            raise self._failure(f"{line}: {error}") from None

    def check(self, line: str, within_s: float = COMMAND_S, stdin: bytes = b"") -> str:
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
        # A group of its own, by which all that it starts can be killed.
        words = {
            "path": "/usr/bin/setsid",
            "arg": ["/bin/bash", "-c", f"cd /root; {line}"],
            "capture_output": True,
        }
        if stdin:
            words["input_data"] = base64.b64encode(stdin).decode()
        return int(self._agent.ask("guest-exec", **words)["pid"])

    def write(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        """A file in the guest."""
        self._agent.write(path, content.encode() if isinstance(content, str) else content)
        self.check(f"chmod {mode:o} '{path}'")

    def read(self, path: str) -> bytes:
        """A file of the guest."""
        return self._agent.read(path)

    def wait_text(self, path: str, text: bytes, within_s: float = WAIT_S) -> bytes:
        """Wait until a file of the guest holds this, without starting programs there; the file.

        Raises:
            GuestFails: it does not within this time.
        """
        until = time.monotonic() + within_s
        content = b""
        while text not in content:
            if time.monotonic() > until:
                raise self._failure(f"{path} does not hold {text!r} within {within_s:.0f} s")
            time.sleep(1.0)
            with contextlib.suppress(Refused):  # It is not there yet.
                content = self.read(path)
        return content

    def put(self, here: Path, there: str) -> None:
        """Copy a file or a directory into the directory `there` of the guest, with modes, as root's."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
            archive.add(here, here.name, filter=_plain)
        self._agent.write("/tmp/put.tar.gz", packed.getvalue())
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
        # Read and not run: a guest that is asked again and again has better things to do than to start programs.
        return self.read("/proc/sys/kernel/random/boot_id").decode().strip()

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

    # --- inside ---------------------------------------------------------------------------------

    def _command(self, sockets: Path) -> list[str]:
        words = [
            *("qemu-system-x86_64", "-machine", "pc", *self._acceleration, "-nodefaults", "-no-user-config"),
            *("-smp", str(self.processors), "-m", str(self.memory_mib), "-display", "none", "-no-reboot"),
            *(
                "-chardev",
                f"file,id=console,path={self.directory}/console.log,append=on",
                "-serial",
                "chardev:console",
            ),
            *("-qmp", f"unix:{sockets}/monitor,server=on,wait=off"),
            *("-qmp", f"unix:{sockets}/control,server=on,wait=off"),
            *("-chardev", f"socket,id=agent,path={sockets}/agent,server=on,wait=off"),
            *("-device", "virtio-serial-pci", "-device"),
            *("virtserialport,chardev=agent,name=org.qemu.guest_agent.0", "-device", "virtio-rng-pci"),
        ]
        for number, disk in enumerate(self._disks):
            # Unsafe if this machine loses its power, not if QEMU is killed: the guest's flushes reach the file.
            words += [
                "-drive",
                f"if=none,id=disk{number},file={disk},format=qcow2,discard=unmap,cache=unsafe",
            ]
            words += ["-device", f"virtio-blk-pci,drive=disk{number},bootindex={number + 1}"]
        return words

    def _wait_on(self, within_s: float = BOOT_S) -> None:
        try:
            self.wait_answer(within_s)
        except BaseException:
            self.power_cut()
            raise

    def _kill(self, pid: int) -> None:
        """A command and what it started, and wait until the command is gone."""
        self.spawn(f"kill -KILL -- -{pid}")
        for _ in range(100):
            if self._agent.ask("guest-exec-status", pid=pid)["exited"]:
                return
            time.sleep(0.05)

    def _must_be_on(self) -> None:
        if not self.power.is_on:
            raise self._failure(f"the guest is off: {self.power.ended_because or 'it switched itself off'}")

    def _failure(self, what: str) -> GuestFails:
        end = "\n".join(self.console().splitlines()[-CONSOLE_LINES:])
        log = self.directory / "qemu.log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        return GuestFails(f"{what}\n--- end of its console\n{end}\n--- QEMU said\n{said}")


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
