"""The wheel, as a user gets it: installed where neither Rust nor a C compiler is."""

import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Tool = Callable[[str], ModuleType]

pytestmark = [pytest.mark.needs_program("cargo")]


def run(*command: str | Path, **more: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("dist")
    for stale in repository.glob("build/lib*"):  # modules that are no more would come along from there
        shutil.rmtree(stale)
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR" or value}
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist)]
    run(*build, cwd=repository, env=environment)
    (built,) = dist.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Environment of a fresh installation, with a PATH that holds little more than it.

    What the wheel requires, and nothing else, is linked from this environment: without an index, pip installs the wheel
    only where all of it is there.
    """
    place = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv")
    (site,) = place.glob("venv/lib/python*/site-packages")
    link_requirements(site, required_by(wheel))
    tools = place / "tools"
    tools.mkdir()
    for name in ("sh", "true"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARGO", "RUST", "PYTHON", "VIRTUAL"))
    }
    environment["PATH"] = f"{place}/venv/bin:{tools}"
    for absent in ("cargo", "rustc", "cc", "gcc"):
        assert shutil.which(absent, path=environment["PATH"]) is None
    pip = [sys.executable, "-m", "pip", "--python", f"{place}/venv/bin/python", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", str(wheel), env=environment, cwd=str(place))
    yield environment
    shutil.rmtree(place)


def required_by(wheel: Path) -> dict[str, Distribution]:
    """The distributions that the wheel needs, and those that these need, by their names."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    waiting, found = [*told], dict[str, Distribution]()
    while waiting:
        required = Requirement(waiting.pop())
        name = canonicalize_name(required.name)
        if name not in found and (required.marker is None or required.marker.evaluate({"extra": ""})):
            found[name] = distribution(name)
            waiting += found[name].requires or []
    return found


def link_requirements(site: Path, distributions: dict[str, Distribution]) -> None:
    for each in distributions.values():
        here = Path(str(each.locate_file("")))
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            (site / top).symlink_to(here / top)


def test_it_fits_every_python_3_of_this_platform(wheel: Path, tool: Tool) -> None:
    assert tool("check_wheel").faults(wheel) == []
    assert "-py3-none-manylinux_2_" in wheel.name


def test_it_holds_our_package_and_nothing_else_of_the_repository(wheel: Path) -> None:
    tops = {name.partition("/")[0].partition("-")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"etude"}


def test_an_editable_installation_has_its_programs_in_release_too(wheel: Path) -> None:
    installed = Path(sys.prefix, "bin", "etude-engine")
    if not installed.exists():
        pytest.skip("Étude is not installed in this environment: make setup")
    with zipfile.ZipFile(wheel) as archive:
        (program,) = [item for item in archive.infolist() if item.filename.endswith("/etude-engine")]
    # Not optimised, not stripped, a program has several times the size.
    assert installed.stat().st_size < 1.5 * program.file_size


@pytest.mark.parametrize("program", ["io-static", "io-dynamic"])
def test_the_io_benchmark_runs_however_it_is_linked(
    bare: dict[str, str], tmp_path: Path, program: str
) -> None:
    path = shutil.which(program, path=bare["PATH"])
    assert path is not None
    run(path, "create", "-t", "1M", tmp_path / "file", env=bare)
    assert run(path, "read", "-B", "-t", "1M", tmp_path / "file", env=bare).endswith(" KBytes/sec\n")


@pytest.mark.parametrize("program", ["etude", "etude-engine"])
def test_its_programs_run_without_cargo_or_a_compiler(
    bare: dict[str, str], wheel: Path, program: str
) -> None:
    path = shutil.which(program, path=bare["PATH"])
    assert path is not None
    assert wheel.name.split("-")[1] in run(path, "--version", env=bare)


def test_aptime_is_on_the_path(bare: dict[str, str]) -> None:
    assert shutil.which("aptime", path=bare["PATH"]) is not None


def test_it_benchmarks(bare: dict[str, str], tmp_path: Path) -> None:
    path = shutil.which("etude", path=bare["PATH"])
    assert path is not None
    run(path, "bench", "--trials", "3", "-o", tmp_path / "results", "true", env=bare, cwd=tmp_path)
    lines = [line for file in tmp_path.rglob("results.jsonl") for line in file.read_text().splitlines()]
    assert len(lines) >= 3


def test_it_writes_a_report(bare: dict[str, str], tmp_path: Path) -> None:
    path = shutil.which("etude", path=bare["PATH"])
    assert path is not None
    run(path, "bench", "--trials", "3", "-o", tmp_path / "results", "true", env=bare, cwd=tmp_path)
    run(path, "report", tmp_path / "results", env=bare, cwd=tmp_path)
    assert "Bokeh" in (tmp_path / "results" / "report.html").read_text()


def elf(*kinds: int, names: bytes = b"") -> bytes:
    """An ELF header of 64 bits, program headers of these kinds, and a table of names, as elf(5) has them."""
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 64, 0, 0, 64, 56, len(kinds), 0, 0, 0
    )
    return head + b"".join(struct.pack("<IIQQQQQQ", kind, 0, 0, 0, 0, 0, 0, 0) for kind in kinds) + names


def test_a_wheel_for_any_platform_is_refused(tmp_path: Path, tool: Tool) -> None:
    wrong = tmp_path / "etude-0.1.0-cp311-cp311-any.whl"
    with zipfile.ZipFile(wrong, "w") as archive:
        archive.writestr("etude/x.so", "")
        archive.writestr("etude-0.1.0.data/scripts/etude-engine", "")
        for name, segments in (("io-static", (1, 3)), ("io-dynamic", (1, 2))):
            executable = zipfile.ZipInfo(f"etude-0.1.0.data/scripts/{name}")
            executable.external_attr = 0o755 << 16
            archive.writestr(executable, elf(*segments))
    faults = "\n".join(tool("check_wheel").faults(wrong))
    for said in (
        "cp311-cp311",
        "platform any",
        "etude-engine cannot be executed",
        "aptime is missing",
        "io-static is not linked statically",
        "io-dynamic is not linked dynamically",
        "x.so",
    ):
        assert said in faults


@pytest.mark.parametrize(
    ("platform", "faulty"),
    [
        ("manylinux_2_35_x86_64", False),
        ("manylinux_2_34_x86_64", True),
        ("manylinux_2_36_x86_64", True),
        ("linux_x86_64", True),
    ],
)
def test_the_tag_is_the_c_library_that_its_programs_need(
    tmp_path: Path, tool: Tool, platform: str, faulty: bool
) -> None:
    wheel = tmp_path / f"etude-0.1.0-py3-none-{platform}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        names = b"\0GLIBC_2.2.5\0GLIBC_2.35\0GLIBC_2.9\0"
        archive.writestr("etude-0.1.0.data/scripts/io-dynamic", elf(1, 3, names=names))
        archive.writestr("etude-0.1.0.data/scripts/io-static", elf(1, names=b"\0GLIBC_2.99\0"))
    faults = [fault for fault in tool("check_wheel").faults(wheel) if "glibc 2.35" in fault]
    assert bool(faults) == faulty
