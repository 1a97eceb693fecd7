"""The test machine for all tests here: skipped, visibly, where there is none."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.guest.machine import BOOTED, SECOND, Machine, image


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if Path(__file__).parent in item.path.parents and reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def missing() -> str:
    """Why there is no test machine here; nothing where there is one."""
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("qemu-img", "qemu-utils")):
        if shutil.which(program) is None:
            return f"no program {program}: install the Debian package {package}"
    return "" if image() else "no test machine has been built: make guest"


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The one machine of all tests but those that restart it; its state after a boot is saved as BOOTED.

    Of its two processors one is off until a test switches SECOND on: two emulated ones wait for each other, and take a
    quarter more of the real ones.
    """
    with booted(tmp_path_factory.mktemp("guest"), processors=2) as machine:
        yield machine


@pytest.fixture(scope="session")
def restarting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The same with one processor, also while it boots."""
    with booted(tmp_path_factory.mktemp("restarting"), processors=1) as machine:
        yield machine


@contextmanager
def booted(directory: Path, processors: int) -> Iterator[Machine]:
    with Machine(directory, processors=processors, data_mib=256) as machine:
        machine.start()
        assert machine.wait_started() == "running"
        if processors > 1:
            machine.check(f"echo 0 >{SECOND}")
        machine.check("etude --version")  # reads most of Python's modules into the cache
        machine.save(BOOTED)
        yield machine


@pytest.fixture
def guest(machine: Machine) -> Machine:
    """The machine as it was after a boot, whatever the test before did to it."""
    machine.restore(BOOTED)
    return machine
