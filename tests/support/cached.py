"""Real file systems on loop devices, files in them, and what `etude-engine residency` says of these."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.program import engine_path

Document = dict[str, Any]


@dataclass(frozen=True)
class Disk:
    """A file system in an image."""

    image: Path
    device: str
    root: Path

    def mount(self) -> None:
        subprocess.run(["mount", self.device, self.root], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.root], check=True)


@contextmanager
def disk(directory: Path, fs: str, size: int = 512 << 20) -> Iterator[Disk]:
    """A fresh file system, mounted; nothing of it is left."""
    image, root = directory / f"{fs}.img", directory / f"{fs} root"
    root.mkdir()
    image.touch()
    os.truncate(image, size)
    device = output("losetup", "--find", "--show", image).strip()
    try:
        quiet = {"xfs": ["-q", "-f"], "btrfs": ["-q", "-f"]}.get(fs, ["-q", "-F"])
        subprocess.run([f"mkfs.{fs}", *quiet, device], check=True, capture_output=True)
        made = Disk(image, device, root)
        made.mount()
        yield made
    finally:
        while os.path.ismount(root):
            subprocess.run(["umount", root], check=True)
        subprocess.run(["losetup", "--detach", device], check=True)


def fill(root: Path, files: int, size: int) -> None:
    """So many files of random bytes, a hundred a directory."""
    for number in range(files):
        place = root / f"d{number // 100}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}").write_bytes(os.urandom(size))
    os.sync()


def read_all(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            path.read_bytes()


def drop(what: int = 3) -> None:
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text(str(what))


def output(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def listing(directory: Path, *paths: Path) -> Path:
    """What `residency list` says of them, in a file."""
    found = directory / "listing"
    with found.open("wb") as out:
        subprocess.run([engine_path(), "residency", "list", *paths], stdout=out, check=True)
    return found


def look(listed: Path, *words: str | Path) -> Document:
    found: Document = json.loads(output(engine_path(), "residency", "look", listed, *words))
    return found


class Watch:
    """`residency watch`, which has begun."""

    def __init__(self, listed: Path, *words: str | Path) -> None:
        command = [engine_path(), "residency", "watch", listed, *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.watched = json.loads(self.process.stdout.readline())["watched"]

    def look(self) -> Document:
        said, _ = self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0
        found: Document = json.loads(said)
        return found
