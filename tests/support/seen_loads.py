"""Loads, with what their targets were asked, and what those had on their disks: on a server of NFS, with nfs_proxy.py
before it, and on a directory, recorded by `etude record`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.iotrace.reader import read_trace
from etude.program import engine_path
from support.files_seen import read_load
from support.knobs import Knobs, read_knobs
from support.nfs_seen import Tape, read_tape
from support.places import ROOT
from support.preset_checks import Arrivals, Load
from support.published import PUBLISHED
from support.real import ETUDE

SERVER = ROOT / "examples" / "lib" / "nfs-server.sh"
PROXY = Path(__file__).with_name("nfs_proxy.py")
PORTS = (20490, 20491)
"""Of the proxy, for NFS and for mounting, in the client's own network."""
SIZED_FOR = {"specsfs97": 10.0, "sfs2008": 1.0, "web": 300.0, "db_tp": 1.0, "mail": 60.0, "postmark": 1.0}
"""Requests/s that the file sets are made for: some thousand files, and at most 600 MB."""


class Failed(RuntimeError):
    """The load did not run; what it said."""


@dataclass(frozen=True)
class Server:
    """A ganesha of its own, in networks of its own."""

    place: Path
    name: str
    net: str

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "APSCRATCH": str(self.place / "scratch"),
            "APLIB": "",
            "NFSNAME": self.name,
            "NFSNET": self.net,
        }
        return os.environ | own | {"NFSVERSIONS": "3", "NFSROOT": str(self.export)}

    @property
    def export(self) -> Path:
        return self.place / "export"

    def command(self, *words: str) -> list[str]:
        return [str(SERVER), *words]

    def run(self, *words: str, timeout: float = 120.0) -> str:
        """nfs-server.sh; what it said."""
        done = subprocess.run(
            self.command(*words),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise Failed(
                f"{words[0]}: exit status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout


@contextmanager
def server(place: Path, name: str, net: str) -> Iterator[Server]:
    """One that runs, and is gone afterwards."""
    made = Server(place, name, net)
    try:
        made.run("restart")
        yield made
    finally:
        made.run("stop")


@contextmanager
def proxied(on: Server, tape: Path) -> Iterator[str]:
    """The URL at which the server is asked through the proxy, which fills a tape meanwhile."""
    ports = (f"{PORTS[0]}:{on.net}.1:2049", f"{PORTS[1]}:{on.net}.1:20048")
    command = on.command("client", "1", sys.executable, str(PROXY), str(tape), *ports)
    with subprocess.Popen(command, env=on.environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise Failed("the proxy did not start")
            yield f"nfs://127.0.0.1:{PORTS[0]}/vfs?mountport={PORTS[1]}"
        finally:
            process.terminate()
            process.wait(60)


def shown(words: Sequence[str]) -> Knobs:
    """The knobs that a load has with these options."""
    command = [engine_path(), "load", *words, "--show"]
    return read_knobs(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def population(export: Path) -> dict[str, int]:
    """Regular files below a directory and their sizes, B, by their paths there."""
    found = {}
    for directory, _, names in os.walk(export):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                found[str(path.relative_to(export))] = path.stat().st_size
    return found


@dataclass(frozen=True)
class Seen:
    """A load as it was seen, and what the generator said of it at its end."""

    load: Load
    tape: Tape
    summary: Mapping[str, Any]


def over_nfs(
    on: Server, preset: str, operations: int, asked: Arrivals, *, seed: int = 1, options: Sequence[str] = ()
) -> Seen:
    """Offer a preset's load through the proxy, and read the tape. Files are made without it.

    The last so many calls are the load's as have been sent by the generator's own count: what is before them is how it
    found its files. (So the count decides where the load begins, and nothing else.)
    """
    words = ["--preset", preset, *options]
    sized = ["--sized-for", f"{SIZED_FOR[preset]:g}", "--seed", str(seed)]
    offer = [engine_path(), "load", *words, *sized]
    on.run(
        "client", "1", *offer, "--nfs", f"nfs://{on.net}.1/vfs?mountport=20048", "--populate", timeout=1800.0
    )
    found = population(on.export)
    tape = on.place / f"{preset}.tape"
    seconds = operations / asked.rate
    with proxied(on, tape) as url:
        more = ["--nfs", url, "--rate", f"{asked.rate:g}", "--seconds", f"{seconds:g}", "--window", "5"]
        more += ["--arrivals", "poisson" if asked.poisson else "constant"]
        said = on.run("client", "1", *offer, *more, timeout=600.0 + 3 * seconds)
    summary = json.loads(said.splitlines()[-1])["summary"]
    read = read_tape(tape, found)
    tape.unlink()
    seen = read.seen.last(int(summary["started"]))
    mine = {path: size for path, size in found.items() if f"etude-load-{preset}-" in path}
    load = Load(seen, mine, shown(words), PUBLISHED[preset], asked)
    return Seen(load, read, summary)


def over_directory(
    directory: Path,
    preset: str,
    operations: int,
    asked: Arrivals,
    *,
    seed: int = 1,
    options: Sequence[str] = (),
) -> tuple[Load, Mapping[str, Any]]:
    """Offer a preset's load on a directory, recorded, and read the trace; the load as it was seen, and the summary.

    Files are made before. How the recorded run finds them right is left out by what it opens, not by any count.
    """
    words = ["--preset", preset, *options]
    sized = ["--sized-for", f"{SIZED_FOR[preset]:g}", "--seed", str(seed)]
    offer = [engine_path(), "load", *words, *sized, "--directory", str(directory)]
    subprocess.run([*offer, "--rate", "1", "--seconds", "1", "--populate"], check=True, timeout=1800.0)
    (root,) = directory.resolve().glob(f"etude-load-{preset}-*")
    found = population(root)
    seconds = operations / asked.rate
    more = ["--rate", f"{asked.rate:g}", "--seconds", f"{seconds:g}", "--window", "5"]
    more += ["--arrivals", "poisson" if asked.poisson else "constant"]
    place = directory / f"{preset}.trace"
    command = [ETUDE, "record", "-q", "--no-snapshot", "-o", str(place), "--", *offer, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600.0 + 3 * seconds, check=False)
    if done.returncode:
        raise Failed(f"exit status {done.returncode}: {done.stderr.strip()}")
    knobs = shown(words)
    commits = "commit" in knobs.mix or bool(knobs["commit_at_end"]) or knobs.number("log_files") > 0
    seen = read_load(read_trace(place), str(root), found, commits=commits)
    place.unlink()
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    return Load(seen, found, knobs, PUBLISHED[preset], asked), summary
