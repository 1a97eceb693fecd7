"""The engine as it is installed stays small: what it takes is taken from what is measured."""

import os
from pathlib import Path

from etude.engine import Engine, Launch, Repeat, Worker
from etude.program import engine_path

OWN_KIB = 512
"""What is the engine's alone."""
PEAK_KIB = 4 * 1024
"""With what is mapped of its file."""


def evict(file: Path) -> None:
    """A file that was just written lies in the page cache in larger pieces than one that was read, and more of it is
    mapped at once: 4.3 MiB in place of 3.3."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_the_engine_stays_small(tmp_path: Path) -> None:
    repeat = Repeat(200, str(tmp_path / "journal"), 1, 1, {})
    worker = Worker(("true",), stdout="capture", stderr="capture")
    launch = Launch((worker,), cgroup=f"etude-{os.getpid()}-small", counters="on", repeat=repeat)
    evict(Path(engine_path()))
    with Engine() as engine:
        assert engine.repeat(launch, lambda _: None).done == 200
        text = Path(f"/proc/{engine.pid}/status").read_text(encoding="ascii")
    status = dict(line.split(":", 1) for line in text.splitlines())
    assert int(status["RssAnon"].split()[0]) < OWN_KIB
    assert int(status["VmHWM"].split()[0]) < PEAK_KIB
