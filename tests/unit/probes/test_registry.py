"""Probes by name, from what is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from etude.errors import UsageError
from etude.probes.disk import Disk
from etude.probes.memory import Memory
from etude.probes.run_probes import GROUP, find_probe, known_probes
from etude.results.model import METRICS
from support.places import entry_points_of

POINTS = entry_points_of(GROUP)
BUILT_IN = sorted(POINTS)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on Python's path, in which a package with these entry points can be installed."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("fine", "twin", "broken"):
        sys.modules.pop(name, None)


def install(directory: Path, module: str, text: str, point: str) -> None:
    (directory / f"{module}.py").write_text(text)
    info = directory / f"{module}_of_others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}-of-others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{point} = {module}:Mine\n")


def test_those_of_ours_are_installed_as_pyproject_says() -> None:
    assert set(BUILT_IN) <= set(known_probes())
    for name, probe in zip(BUILT_IN, find_probe(BUILT_IN), strict=True):
        assert probe.name == name
        assert f"{type(probe).__module__}:{type(probe).__name__}" == POINTS[name]


def test_no_metric_of_ours_has_a_name_that_is_taken() -> None:
    given = [name for probe in find_probe(BUILT_IN) for name in probe.gives]  # type: ignore[attr-defined]
    assert len(given) == len(set(given)) > 15
    assert not set(given) & set(METRICS)


def test_probes_come_in_the_order_asked_for_and_once_each() -> None:
    assert [type(probe) for probe in find_probe(["memory", "disk", "memory"])] == [Memory, Disk]
    assert find_probe(["disk"])[0] is not find_probe(["disk"])[0]
    assert find_probe([]) == []


def test_a_name_that_is_none_is_answered_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"'dsik'.*energy, .*pressure"):
        find_probe(["disk", "dsik"])


def test_what_another_package_installs_is_found(installed: Path) -> None:
    install(installed, "fine", "class Mine:\n    name = 'fine'\n", "fine")
    probe, disk = find_probe(["fine", "disk"])
    assert (probe.name, disk.name) == ("fine", "disk")


def test_two_packages_cannot_give_one_name(installed: Path) -> None:
    install(installed, "twin", "class Mine:\n    name = 'disk'\n", "disk")
    with pytest.raises(UsageError, match=r"'disk' .*etude\.probes\.disk:Disk .*twin:Mine"):
        find_probe(["disk"])


@pytest.mark.parametrize("text", ["raise OSError('a\\nb')", "import nowhere", "", "def Mine(needed): pass"])
def test_a_probe_that_cannot_be_loaded_is_one_line(installed: Path, text: str) -> None:
    install(installed, "broken", text, "broken")
    with pytest.raises(UsageError, match=r"'broken' \(broken:Mine\)") as caught:
        find_probe(["broken"])
    assert len(str(caught.value).splitlines()) == 1
