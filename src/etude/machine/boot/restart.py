"""Restarts the machine once into an entry of its boot loader: by a reboot, by kexec, or by a hook."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from etude.errors import MachineRefuses
from etude.machine import tree
from etude.machine.boot import entries as loaders
from etude.machine.boot import unit
from etude.machine.boot.entries import Entry, find
from etude.osutil.commands import run_to_end, tool

VARIABLE = "ETUDE_RESTART"
ENTRY_VARIABLE = "ETUDE_ENTRY"
REBOOT, KEXEC = "reboot", "kexec"
GRUB_REBOOT = ("grub-reboot", "grub2-reboot")
KERNEL_PLACES = ("", "boot", "efi", "boot/efi")
"""Mount points of the file system whose root the loader's file names are relative to."""


def restart_method() -> str:
    """`reboot`, `kexec`, or a hook's line for /bin/sh."""
    return os.environ.get(VARIABLE) or REBOOT


def check(entry: str | None, root: Path = Path("/")) -> None:
    """Check before the start that the machine can be restarted, and that the resume unit is installed.

    Raises:
        MachineRefuses: it cannot, with advice.
    """
    if restart_method() not in (REBOOT, KEXEC):
        return  # a hook checks its own requirements
    if os.geteuid() != 0:
        raise MachineRefuses(
            f"the machine is to be restarted: become root, or set {VARIABLE} to a command that may"
        )
    if not unit.status(root).installed:
        raise MachineRefuses(
            "the machine is to be restarted, but nothing resumes at boot: etude boot-resume install"
        )
    if restart_method() == KEXEC:
        _image(entry, root)
        if shutil.which("kexec") is None:
            raise MachineRefuses(
                f"{VARIABLE}=kexec: no program kexec: install the Debian package kexec-tools"
            )
        if tree.read_int(root, "proc/sys/kernel/kexec_load_disabled"):
            raise MachineRefuses(
                f"{VARIABLE}=kexec: kernel.kexec_load_disabled is 1 until the next boot; use reboot"
            )
        return
    if restart_words(root) is None:
        raise MachineRefuses(
            f"no way to restart the machine: no systemctl, reboot or shutdown; set {VARIABLE} to a command"
        )
    if entry is not None:
        next_boot_words(find(entry, loaders.entries(root)), root)


def restart(entry: str | None, root: Path = Path("/"), run: Callable[..., object] = tool) -> None:
    """Restart the machine, this once into `entry`; file systems are synced first. Returns before the shutdown.

    Raises:
        MachineRefuses: the machine refuses.
    """
    os.sync()
    if restart_method() not in (REBOOT, KEXEC):
        _hook(restart_method(), entry)
        return
    if restart_method() == KEXEC:
        for words in kexec_words(entry, root):
            run(*words)
        return
    if entry is not None:
        run(*next_boot_words(find(entry, loaders.entries(root)), root))
    commanded = restart_words(root)
    if commanded is None:
        raise MachineRefuses(f"no way to restart the machine; set {VARIABLE} to a command")
    run(*commanded)


def restart_words(root: Path = Path("/")) -> list[str] | None:
    """The command that restarts the machine."""
    ways = [["systemctl", "reboot"]] if unit.has_systemd(root) else []
    ways += [["reboot"], ["shutdown", "-r", "now"]]
    return next((words for words in ways if shutil.which(words[0])), None)


def next_boot_words(entry: Entry, root: Path = Path("/")) -> list[str]:
    """The command that selects this entry for the next boot only.

    Raises:
        MachineRefuses: the loader cannot.
    """
    if entry.loader == "systemd-boot":
        return ["bootctl", "set-oneshot", entry.key]
    program = next(filter(shutil.which, GRUB_REBOOT), None)
    if program is None:
        raise MachineRefuses("no program grub-reboot: install the Debian package grub2-common")
    where = loaders.grub_configuration(root)
    if where is None or "next_entry" not in where.read_text(encoding="utf-8", errors="replace"):
        raise MachineRefuses(
            f"{where}: takes no entry for one boot: set GRUB_DEFAULT=saved in /etc/default/grub and run update-grub"
        )
    return [program, entry.key]


def kexec_words(entry: str | None, root: Path = Path("/")) -> list[list[str]]:
    """The commands that load a kernel and start it.

    Raises:
        MachineRefuses: the entry is unknown, or its kernel is.
    """
    kernel, initrd, line = _image(entry, root)
    load = ["kexec", "-a", "-l", str(kernel), f"--command-line={line}"]
    load += [f"--initrd={initrd}"] if initrd is not None else []
    return [load, ["systemctl", "kexec"] if unit.has_systemd(root) else ["kexec", "-e"]]


def _image(entry: str | None, root: Path) -> tuple[Path, Path | None, str]:
    """Kernel, initrd and command line of the entry, or of the running system."""
    if entry is None:
        release = tree.read_text(root, "proc/sys/kernel/osrelease") or ""
        names = [f"boot/initrd.img-{release}", f"boot/initramfs-{release}.img"]
        initrd = next((root / name for name in names if (root / name).is_file()), None)
        line = tree.read_text(root, "proc/cmdline") or ""
        return _file(f"boot/vmlinuz-{release}", root), initrd, _without_image(line)
    found = find(entry, loaders.entries(root))
    if found.kernel is None or found.options is None or "$" in found.kernel + found.options:
        raise MachineRefuses(f"boot entry {entry!r}: does not name its kernel and command line; use reboot")
    if len(found.initrd) > 1:
        raise MachineRefuses(f"boot entry {entry!r}: has several initrds, and kexec takes one; use reboot")
    initrd = _file(found.initrd[0], root) if found.initrd else None
    return _file(found.kernel, root), initrd, found.options


def _file(name: str, root: Path) -> Path:
    for place in KERNEL_PLACES:
        if (path := root / place / name.lstrip("/")).is_file():
            return path
    raise MachineRefuses(
        f"{name}: not found in /, /boot, /efi or /boot/efi; use reboot, or mount where it is"
    )


def _without_image(line: str) -> str:
    return " ".join(word for word in line.split() if not word.startswith(loaders.NOT_COMPARED))


def _hook(line: str, entry: str | None) -> None:
    environment = os.environ | {ENTRY_VARIABLE: entry or ""}
    # It may end this process, and then continues.
    done = run_to_end(["/bin/sh", "-c", line], environment=environment, apart=True)
    if done.status:
        raise MachineRefuses(f"{VARIABLE}: the hook failed: {done.why}")
