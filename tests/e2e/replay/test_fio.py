"""A script that fio plays: as many bytes as the program moved."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from etude.program import engine_path

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("fio")]

SCRIPT = """etude script 1
file "d/in" 1048576
openat(AT_FDCWD, "d/in", O_RDONLY) = 3
openat(AT_FDCWD, "out", O_WRONLY|O_CREAT, 0644) = 4
read(3, 65536) = 65536
compute(0.050)
pread64(3, 4096, 131072) = 4096
write(4, 65536) = 65536
fdatasync(4) = 0
pwrite64(4, 512, 0) = 512
close(4) = 0
"""


def engine(*words: str, at: Path) -> None:
    subprocess.run([engine_path(), *words], cwd=at, check=True, capture_output=True)


def test_fio_moves_the_bytes_of_an_exported_script(tmp_path: Path) -> None:
    (tmp_path / "a.script").write_text(SCRIPT)
    engine("script", "export", "a.script", "-o", "a.iolog", at=tmp_path)
    engine("prepare", "-q", "a.script", "place", at=tmp_path)
    words = ["fio", "--name=a", "--read_iolog=../a.iolog", "--output-format=json"]
    done = subprocess.run(
        words, cwd=tmp_path / "place", check=True, capture_output=True, text=True, timeout=120
    )
    (job,) = json.loads(done.stdout)["jobs"]
    assert (job["read"]["io_bytes"], job["write"]["io_bytes"]) == (65536 + 4096, 65536 + 512)
    assert job["sync"]["lat_ns"]["N"] == 1


def test_what_fio_has_logged_is_a_script(tmp_path: Path) -> None:
    words = ["--name=a", "--filename=dat", "--size=64k", "--bs=16k", "--rw=randrw", "--write_iolog=log"]
    subprocess.run(["fio", *words], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    engine("script", "import", "log", "-o", "a.script", at=tmp_path)
    made = re.findall(r"^(pread64|pwrite64)\(3, 16384, (\d+)\)", (tmp_path / "a.script").read_text(), re.M)
    assert sorted(int(offset) for _, offset in made) == [0, 16384, 32768, 49152]
