"""What is built is what was pinned: every crate by its checksum, every package by its version."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_crate_of_others_is_a_release_with_a_checksum() -> None:
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    foreign = [package for package in packages if not package["name"].startswith("etude")]
    assert foreign
    wrong = [
        package["name"]
        for package in foreign
        if not package.get("source", "").startswith("registry+")
        or not re.fullmatch("[0-9a-f]{64}", package["checksum"])
    ]
    assert wrong == []


def test_every_package_has_one_version_and_checksums() -> None:
    text = "\n" + re.sub("^#.*\n", "", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    pins = re.findall(
        r"\n([a-z0-9][a-z0-9.-]*)==[0-9][\w.!+]*(?: \\\n    --hash=sha256:[0-9a-f]{64})+(?=\n)", text
    )
    assert pins == re.findall(r"\n([^ #\n][^=\n]*)==", text)
    assert len({*pins}) == len(pins) > 50
