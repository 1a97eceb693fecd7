"""The stored inputs: what there are, and how they are laid out as the files and directories that they stand for.

An input is a file, or a directory, of a kind: `bench/plain`. In `corpus/` it lies as `bench/plain.tar.zst` if it is a
directory, and as itself or with `.zst` behind if it is a file. Files of tests/data are inputs where they lie.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import zstandard

from support.places import DATA

CORPUS = Path(__file__).parent / "corpus"
PACKED, ARCHIVE = ".zst", ".tar.zst"
LARGE = 3000
"""Bytes from which on a file is kept compressed."""
MADE_S = 1767225600
"""When all of them were last changed: 2026-01-01."""

ELSEWHERE = {
    "readers": DATA / "readers",
    "postmark": DATA / "postmark",
    "tables": DATA,
    "strace": DATA,
}
"""Kinds whose inputs are not in `corpus/`; of DATA those that `OF_DATA` names."""
OF_DATA = {
    "tables": (
        "autopilot-figure-2.csv",
        "autopilot-figure-3.csv",
        "buffers.csv",
        "cooling.csv",
        "gcc-ext2.res",
        "gcc-ext3.res",
        "linking.csv",
    ),
    "strace": ("copy.strace",),
}

NEEDED = {"autopilot/including.ap": "autopilot/common.ap"}
"""What is laid beside an input."""


def stored() -> dict[str, Path]:
    """All inputs, by name, with where they are kept."""
    found = {}
    for path in sorted(CORPUS.glob("*/*")):
        name = path.name.removesuffix(ARCHIVE).removesuffix(PACKED)
        found[f"{path.parent.name}/{name}"] = path
    for kind, place in ELSEWHERE.items():
        names = OF_DATA.get(kind) or sorted(p.name for p in place.iterdir() if p.suffix != ".md")
        found |= {f"{kind}/{name}": place / name for name in names}
    return found


def lay_out(name: str, place: Path) -> Path:
    """Put an input below a directory; returns where it is."""
    if name in NEEDED:
        lay_out(NEEDED[name], place)
    source, target = stored()[name], place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.name.endswith(ARCHIVE):
        with tarfile.open(fileobj=io.BytesIO(unpacked(source.read_bytes()))) as tar:
            tar.extractall(target, filter="data")
    elif CORPUS in source.parents and source.suffix == PACKED:
        target.write_bytes(unpacked(source.read_bytes()))
    else:
        shutil.copyfile(source, target)
    for path in (target, *target.rglob("*")):
        os.utime(path, (MADE_S, MADE_S))
    return target


def keep(source: Path, name: str) -> None:
    """Put a file or directory into the corpus."""
    target = CORPUS / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.with_name(target.name + ARCHIVE).write_bytes(packed(archived(source)))
    elif len(text := source.read_bytes()) > LARGE:
        target.with_name(target.name + PACKED).write_bytes(packed(text))
    else:
        target.write_bytes(text)


def archived(directory: Path) -> bytes:
    """A directory as an archive that says nothing of who made it, and when."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(directory.rglob("*")):
            info = tar.gettarinfo(path, str(path.relative_to(directory)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = MADE_S
            info.mode = 0o755 if path.is_dir() else 0o600 if path.name == "state.json" else 0o644
            if path.is_file():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return out.getvalue()


def packed(text: bytes) -> bytes:
    """Compressed, the same each time."""
    return zstandard.ZstdCompressor(level=19).compress(text)


def unpacked(text: bytes) -> bytes:
    """What `packed` made."""
    return zstandard.ZstdDecompressor().decompress(text, max_output_size=1 << 28)
