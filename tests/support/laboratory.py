"""The shipped scripts without the runner: a trial's environment is set by hand."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from etude.program import engine_path
from etude.results.blocks import Block
from etude.results.res import fields, parse_blocks
from support.places import EXAMPLES

LIBRARY = EXAMPLES / "lib"
NOBODY = 65534


@dataclass
class Lab:
    """A scratch directory, the environment of a trial in it, and what scripts append to their $APLOG."""

    path: Path
    library: Path = LIBRARY
    programs: Path = field(default_factory=lambda: Path(engine_path()).parent)
    user: int | None = None
    """Run scripts as this user; root only."""

    @property
    def scratch(self) -> Path:
        return self.path / "scratch"

    @property
    def root(self) -> Path:
        """Where the file system under test is mounted."""
        return self.scratch / "mnt"

    @property
    def log(self) -> Path:
        return self.path / "aplog"

    @property
    def results(self) -> Path:
        return self.path / "results"

    def environment(self, **changes: str) -> dict[str, str]:
        path = f"{self.path / 'programs'}:{self.library}:{self.programs}:{os.environ['PATH']}"
        own = {"PATH": path, "APSCRATCH": str(self.scratch), "APLOG": str(self.log), "HOME": "/nonexistent"}
        trial = {"APEPOCH": "1", "APTHREAD": "1", "THREADS": "1", "APMODE": "EXEC", "APTEST": "test"}
        return own | trial | {"APRESULTS": str(self.results), "FSIMAGESIZE": "400M"} | changes

    def start(self, *words: str, **changes: str) -> subprocess.Popen[str]:
        """Start a script of the library, or another program."""
        as_user = [] if self.user is None else _as_user(self.user)
        return subprocess.Popen(
            [*as_user, *words],
            env=self.environment(**changes),
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, check: int | None = 0, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run one to its end; its exit status must be `check`, unless that is None."""
        process = self.start(*words, **changes)
        stdout, stderr = process.communicate(timeout=120)
        assert check is None or process.returncode == check, (words, process.returncode, stdout, stderr)
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    def bash(self, text: str, check: int | None = 0, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run lines of bash behind the library's own beginning."""
        return self.run("bash", "-c", f"set -u; . commonsettings; {text}", check=check, **changes)

    def program(self, name: str, text: str) -> Path:
        """Make a program that scripts find before any other of that name."""
        return self.executable(self.path / "programs" / name, f"#!/bin/bash\n{text}\n")

    def hooks(self, name: str, text: str) -> str:
        """Make a directory for APLIB with these hooks."""
        file = self.path / "library" / name / "commonsettings.d" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        return str(file.parents[1])

    def executable(self, path: Path, text: str) -> Path:
        path.write_text(text)
        path.chmod(0o755)
        return path

    def blocks(self, name: str) -> list[Block]:
        """What has been appended to $APLOG so far, of one name."""
        text = self.log.read_text() if self.log.exists() else ""
        return [block for block in parse_blocks(text) if block.name == name]

    def measurements(self) -> list[dict[str, str]]:
        return [fields(block) for block in self.blocks("measurement")]

    def loops(self) -> list[str]:
        """Loop devices of images in the scratch directory."""
        return [name for name, image in _loops().items() if image.startswith(f"{self.path}/")]

    def mounts(self) -> list[str]:
        """What is mounted below the scratch directory, the last first."""
        return [place for place in _mounts() if place.startswith(f"{self.path}/")][::-1]

    def left(self) -> list[str]:
        """What scripts have made and should have removed."""
        files = [str(file) for file in self.scratch.glob("*.img")] + [
            str(p) for p in self.scratch.glob("mnt*")
        ]
        return [*self.mounts(), *self.loops(), *files]

    def wipe(self) -> None:
        """Remove mounts and loop devices, whatever the scripts did."""
        for place in self.mounts():
            subprocess.run(["umount", "--lazy", place], check=False)
        for loop in self.loops():
            subprocess.run(["losetup", "--detach", loop], check=False)


def _as_user(user: int) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]


def _mounts() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].encode().decode("unicode_escape") for line in lines]


def _loops() -> dict[str, str]:
    files = Path("/sys/block").glob("loop*/loop/backing_file")
    found = {}
    for file in files:
        try:
            found[f"/dev/{file.parents[1].name}"] = file.read_text().strip()
        except OSError:  # detached in between
            continue
    return found


def field_of(block: Block, name: str) -> str:
    """The value of a field, "" where there is none."""
    return fields(block).get(name, "")
