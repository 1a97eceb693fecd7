"""docs/pool.md: its commands run as they are printed, on a cluster with the options that it gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from slurm_cluster import Cluster, needs_slurm

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "pool.md").read_text()
OF_THE_PLACE = {
    *("ClusterName", "SlurmctldHost", "SlurmUser", "StateSaveLocation", "SlurmdSpoolDir"),
    *("NodeName", "PartitionName"),
}
"""Keys of slurm.conf that a cluster on one machine has to have otherwise."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@needs_slurm
def test_the_ten_steps_run_as_they_are_printed(tmp_path: Path) -> None:
    (conf,) = blocks("ini")
    options = dict(line.split("=", 1) for line in conf.splitlines())
    for text in blocks("toml"):
        (tmp_path / text.split()[1]).write_text(text)
    lines = [line[2:] for text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]
    assert len(lines) >= 9
    with Cluster(options={key: options[key] for key in options.keys() - OF_THE_PLACE}) as cluster:
        path = f"{Path(sys.executable).parent}:{cluster.environment['PATH']}"
        for line in lines:
            done = subprocess.run(
                ["sh", "-c", line],
                cwd=tmp_path, env={**cluster.environment, "PATH": path}, capture_output=True, text=True, check=False,
                timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            if "--pool lab.toml" in line:
                assert re.search(r"\bn[12]\b", done.stdout + done.stderr), "it says on which node"


def test_the_steps_are_ten() -> None:
    assert re.findall(r"^\*\*(\d+)\. ", PAGE, re.MULTILINE) == [str(number) for number in range(1, 11)]
