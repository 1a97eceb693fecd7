"""The test machine for all tests here: skipped, visibly, where there is none."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.guest.machine import BOOTED, Machine, image


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
    """The one machine of all tests; its state after a boot is saved as BOOTED."""
    with Machine(tmp_path_factory.mktemp("guest"), data_mib=256) as machine:
        machine.start()
        assert machine.wait_started() == "running"
        machine.check("etude --version")  # reads most of Python's modules into the cache
        machine.save(BOOTED)
        yield machine


@pytest.fixture
def guest(machine: Machine) -> Machine:
    """The machine as it was after a boot, whatever the test before did to it."""
    machine.restore(BOOTED)
    return machine
