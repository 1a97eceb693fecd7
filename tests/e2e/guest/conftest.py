"""The test machine for all tests here: skipped, visibly, where there is none. `short` marks what .ci/run runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.guest.machine import Machine, image


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "short: of the test machine, quick enough for each run of the checks")


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


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One that is up, for all tests of a module; each leaves it up, and in a boot of the default entry."""
    with Machine(tmp_path_factory.mktemp("guest"), data_mib=256) as machine:
        machine.start()
        assert machine.wait_started() == "running"
        yield machine
