"""The bench of searches for a peak rate runs with all policies and on all servers, and tells what they came to."""

import re
import subprocess
import sys

import pytest

from support.places import BENCH

pytestmark = pytest.mark.beside

pytest.importorskip("etude.peak.policies.posterior")

BENCH = BENCH / "peak" / "run.py"


def test_the_quick_bench_shows_all_policies_on_all_servers(tmp_path):
    few, every = ("--curves", "knee,drifting"), ("--parties", "strawman,linear,binsearch,ours")
    sums = quick(tmp_path / "peak.md", *few)
    assert sums.keys() >= {
        "strawman",
        "linear",
        "binsearch",
        "binsearch+seed",
        "model",
        "polynomial",
        "bracket",
    }
    sums = quick(tmp_path / "peak.md", *every)
    assert sums["ours"] < sums["binsearch"] < sums["linear"] < sums["strawman"]


def quick(record, *options):
    """Runs it; the hours of each policy, summed over the servers."""
    words = [sys.executable, str(BENCH), "--quick", "--seed", "20261122", "--record", str(record), *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = record.read_text(encoding="utf-8")
    assert "| NO |" not in page
    assert "decision of the" in page
    hours = page.partition("## Benchmarking hours of a search")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (\S+) \|.* \| ([\d.]+) \|$", hours, re.MULTILINE)
    return {name: float(total) for name, total in found}


def test_the_bench_of_servers_in_trouble_prints_a_row_a_case():
    words = [
        sys.executable,
        str(BENCH.with_name("trouble.py")),
        "--searches",
        "1",
        "--cases",
        "plain,p95",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines()[2:] if line.startswith("|")]
    assert [row.split(" | ")[0] for row in rows] == ["| plain", "| p95"]
