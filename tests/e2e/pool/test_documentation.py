"""The page on pools: its commands run as printed, on a cluster with its slurm.conf; its tables are the code's."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from etude.cluster.pool.job import How
from etude.cluster.pool.journal import HEADER
from etude.cluster.pool.spec import KEYS
from support.places import DOCS
from support.real import called
from support.slurm_cluster import Cluster, needs_slurm

pytestmark = pytest.mark.beside

PAGE = (DOCS / "howto" / "pool.md").read_text()
HOSTS, PLACES = ("SlurmctldHost", "SlurmUser", "NodeName"), ("StateSaveLocation", "SlurmdSpoolDir")
"""Keys of slurm.conf that are the Cluster's own, as its partition is."""


def blocks(language: str) -> list[str]:
    """What stands between the fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    """The text of one section."""
    return re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(title: str) -> list[str]:
    """Words in code in the first column of a section's tables."""
    rows = re.findall(r"^\| (.*?) \|", section(title), re.MULTILINE)
    return [word for cell in rows for word in re.findall(r"`([a-z_-]+)`", cell)]


@needs_slurm
def test_the_page_of_pools_runs_as_it_is_printed(start: Callable[..., Cluster], tmp_path: Path) -> None:
    (conf,) = blocks("ini")
    options = dict(line.split("=", 1) for line in conf.splitlines())
    assert options["PartitionName"].startswith("bench "), "as the Cluster calls it"
    for key in (*HOSTS, *PLACES, "PartitionName"):
        del options[key]
    for name, text in (re.fullmatch(r"# (\S+)\n(.*)", text, re.DOTALL).groups() for text in blocks("toml")):
        (tmp_path / name).write_text(text)
    start(nodes=2, options=options)
    said = {}
    for line in [row[2:] for text in blocks("console") for row in text.splitlines() if row[:2] == "$ "]:
        program, *words = shlex.split(line)
        if program == "etude":
            done = called(*words, cwd=tmp_path)
        else:
            done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
        said[line] = done.stdout + done.stderr
    assert len(said) == 9
    of = {word: text for line, text in said.items() for word in line.split()}
    assert sorted(of["hostname"].split()) == ["n1", "n2"]
    for results in ("one", "two", "many"):
        assert "4 of 4 configurations" in of[results]
    for node in ("n1", "n2"):
        assert f" on {node}: " in of["many"]  # each has measured a cell
        assert f"{node}: 1 " in of["cksum"]
    assert re.search(r"^pair: .* 1 \(2 .*n1, n2\)$", of["add"], re.MULTILINE)


def test_the_page_of_pools_has_each_key_and_each_end() -> None:
    keys, ends = map(first_cells, ("Keys of a pool", "How a job ends"))
    assert sorted(keys) == sorted((*KEYS, "kind"))
    assert sorted(ends) == sorted(get_args(How))


def test_the_page_of_pools_shows_the_timeline_with_a_lost_node_as_it_is_told() -> None:
    (text,) = re.findall(r"^```\n(.*?)^```", section("A node is switched off"), re.MULTILINE | re.DOTALL)
    header, *rows = text[text.index("waited") :].splitlines()
    assert tuple(header.split()) == HEADER
    assert sum("node-lost" in row for row in rows) == 1
    assert all(row.endswith("done") or "node-lost" in row for row in rows)
    assert sum(row.endswith("done") for row in rows) >= 1


def test_the_steps_are_ten() -> None:
    assert re.findall(r"^\*\*(\d+)\. ", PAGE, re.MULTILINE) == [str(number) for number in range(1, 11)]
