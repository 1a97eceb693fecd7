"""Three experiments of a file-system researcher, as shipped: what their verdicts say is what the programs printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

import pytest

from etude.analysis.load_subject import read_subject
from etude.analysis.verdict import Verdict, verdict
from etude.cli.main import main
from support.places import EXAMPLES

pytestmark = pytest.mark.needs_root

Rates = Callable[[list[str]], float]


def ran(script: str, place: Path, capsys: pytest.CaptureFixture[str], *settings: str) -> tuple[Verdict, str]:
    """The verdict of an example with few trials, and its page in Markdown."""
    results = place / "results"
    words = [
        str(EXAMPLES / "file-systems" / script),
        "TRIALS=2",
        "MOST=2",
        f"APSCRATCH={place / 'scratch'}",
        *settings,
    ]
    assert main(["run", *words, f"TESTROOT={place / 'scratch/mnt'}", "-o", str(results)]) == 0
    capsys.readouterr()
    assert main(["report", str(results), "--format", "markdown"]) == 0
    page = capsys.readouterr().out
    found = verdict(read_subject(str(results)))  # type: ignore[arg-type]
    assert {c.metric for c in found.comparisons} == set(found.judged)
    assert "no-match" not in {each.kind for each in found.every}
    return found, page


def means(found: Verdict, metric: str) -> Mapping[str, float]:
    summaries = {test.test: test.metric(metric) for test in found.tests}
    return {name: m.summary.mean for name, m in summaries.items() if m is not None and m.summary is not None}


def printed(found: Verdict, test: str, trial_evidence: Rates, workers: int = 1) -> list[float]:
    """From the logs of a test, by trial: computed without Étude."""
    logs = Path(found.directory, test, "logs")
    trials = sorted({log.name.partition("-")[0] for log in logs.glob("[0-9]*.log")})
    return [
        trial_evidence([(logs / f"{trial}-{n}.log").read_text() for n in range(workers)]) for trial in trials
    ]


@pytest.mark.needs_program("fio", package="fio")
@pytest.mark.needs_program("mkfs.ext4", package="e2fsprogs")
def test_journal_modes_are_judged_by_what_fio_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, page = ran(
        "journal.ap", tmp_path, capsys, "MODES=ordered journal", "SECONDS=1", "FSIMAGESIZE=256M"
    )

    def iops(texts: list[str]) -> float:
        return float(json.loads(texts[0][texts[0].index("{") :])["jobs"][0]["write"]["iops"])

    rates = {name: printed(found, name, iops) for name in ("ordered", "journal")}
    assert found.judged == ("write_iops",)
    for name, mean in means(found, "write_iops").items():
        assert mean == pytest.approx(len(rates[name]) / sum(1 / rate for rate in rates[name]))
    assert "ext4 at" in page
    assert "/scratch/mnt" in page


@pytest.mark.needs_program("mkfs.btrfs", package="btrfs-progs")
@pytest.mark.skipif("btrfs" not in Path("/proc/filesystems").read_text(), reason="this kernel has no btrfs")
def test_compression_has_a_time_and_a_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(40):
        (tree / f"{number}.txt").write_text("the same line again\n" * 10_000)
    found, _ = ran("compression.ap", tmp_path, capsys, "WAYS=no zstd", f"TREE={tree}", "FSIMAGESIZE=400M")
    assert found.judged == ("elapsed", "used")
    used = means(found, "used")
    assert used["no"] > 40 * 20 * 10_000 > used["zstd"] > 0


def test_operations_of_several_workers_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("WORKERS=1 2", "FILES=200", "FSIMAGESIZE=100M")
    found, page = ran("metadata.ap", tmp_path, capsys, *settings)

    def total(texts: list[str]) -> float:
        return sum(float(re.findall(r"operations/s: ([0-9.]+)", text)[0]) for text in texts)

    for workers in (1, 2):
        rates = printed(found, f"workers-{workers}", total, workers)
        assert means(found, "rate")[f"workers-{workers}"] == pytest.approx(
            len(rates) / sum(1 / r for r in rates)
        )
    assert fmean(means(found, "rate").values()) > 0
    assert "sum of 2 workers" in page
