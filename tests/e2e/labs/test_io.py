"""The I/O benchmark on real files: what is transferred, what is refused, and what it says of itself."""

import ctypes
import errno
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.places import ROOT

pytestmark = [pytest.mark.quick, pytest.mark.beside]

BIN = Path(sys.executable).parent
PROGRAMS = {
    "io-static": [str(BIN / "io-static")],
    "io-dynamic": [str(BIN / "io-dynamic")],
    "engine": [str(BIN / "etude-engine"), "io"],
}
NOBODY = 65534
MIB = 2**20

Done = subprocess.CompletedProcess[str]


def io(*arguments: str | Path, check: int = 0, program: str = "io-static", **more: Any) -> Done:
    """Run a benchmark; its exit status must be `check`, and an error one line on standard error alone."""
    command = [*PROGRAMS[program], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)
    assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
    if check:
        assert done.stderr.startswith("FAIL: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stdout == ""
    return done


def document(*arguments: str | Path, **more: Any) -> dict[str, Any]:
    """What -j prints."""
    found: dict[str, Any] = json.loads(io(*arguments, "-j", **more).stdout)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of 1 MiB, no block of which is like another."""
    path = tmp_path / "file"
    path.write_bytes(b"".join(number.to_bytes(8, "little") for number in range(MIB // 8)))
    return path


@contextmanager
def mounted(kind: str, place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", kind, "-o", options, "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_file_is_created_read_and_written(tmp_path: Path, program: str) -> None:
    path = tmp_path / "file"
    created = io("create", path, program=program).stdout
    assert created.splitlines()[1:3] == ["  buffersize: 16384", "  totalsize: 16777216"]
    assert "KBytes/sec" not in created
    assert path.stat().st_size == 16 * MIB
    assert path.stat().st_blocks * 512 >= 16 * MIB
    assert len(zlib.compress(path.read_bytes()[:16384])) >= 16384, (
        "a file system that compresses stores all of it"
    )
    for operation in ("read", "write"):
        number, unit = io(operation, "-B", path, program=program).stdout.split()
        assert float(number) > 0
        assert (unit, len(number.partition(".")[2])) == ("KBytes/sec", 2)


def test_command_lines_of_2015_work(tmp_path: Path) -> None:
    io("-c", "iofile", cwd=tmp_path)
    verbose = io("-r", "-v", "-B", "-b", "512", "-t", "16777216", "iofile", cwd=tmp_path).stdout.splitlines()
    assert verbose[:6] == [
        "Benchmark configuration:",
        "  buffersize: 512",
        "  totalsize: 16777216",
        "  blockcount: 32768",
        "  operation: read",
        "  path: iofile",
    ]
    *_, elapsed, rate = verbose
    seconds = float(elapsed.removeprefix("  time: "))
    assert len(elapsed.partition(".")[2]) == 9
    assert float(rate.removesuffix(" KBytes/sec")) == pytest.approx(16384 / seconds, abs=0.01)
    assert io("-w", "-Bqs", "-b16384", "iofile", cwd=tmp_path).stdout == ""
    assert io("-rBq", "iofile", cwd=tmp_path).stdout == ""


def test_unless_it_is_bare_the_machine_rests_for_a_second_once(file: Path) -> None:
    start = time.monotonic()
    io("read", "-t", "1M", "-n", "3", file)
    assert time.monotonic() - start >= 1.0


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("method", ["write", "pwrite", "mmap", "io_uring"])
def test_each_method_writes_the_whole_file_once(file: Path, method: str, order: str) -> None:
    arguments = ["-B", "-b", "3000", "-t", "1M", "--tail", "-s", "--method", method, "--order", order, file]
    if (method, order) == ("write", "random"):
        assert "--method pwrite or mmap or io_uring" in io("write", *arguments, check=64).stderr
        return
    said = document("write", *arguments)["benchmark_configuration"]
    assert (said["method"], said["order"], said["blockcount"]) == (method, order, 350)
    assert file.read_bytes() == bytes(MIB)


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("method", ["read", "pread", "mmap", "io_uring"])
def test_each_method_reads_and_leaves_the_file_as_it_was(file: Path, method: str, order: str) -> None:
    before = file.read_bytes()
    if (method, order) != ("read", "random"):
        io("read", "-B", "-b", "4K", "-t", "1M", "--method", method, "--order", order, file)
    assert file.read_bytes() == before


def test_each_iteration_is_a_sample_and_begins_at_the_beginning(file: Path) -> None:
    found = document("read", "-B", "-t", "1M", "-n", "5", file)
    assert len(found["benchmark_samples"]) == 5
    assert len(io("read", "-B", "-t", "1M", "-n", "5", file).stdout.splitlines()) == 5
    io("write", "-B", "-t", "1M", "-n", "3", file)
    assert file.stat().st_size == MIB


def test_json_has_the_machine_the_system_what_was_asked_and_the_samples(file: Path) -> None:
    found = document("read", "-B", "-t", "1M", "-g", "-P", "tlb", "--cpu", "0", file)
    assert list(found) == [
        "hw_configuration",
        "os_configuration",
        "benchmark_configuration",
        "benchmark_samples",
    ]
    hardware, system, asked = (found[f"{name}_configuration"] for name in ("hw", "os", "benchmark"))
    assert {"machine", "model", "ncpu", "physmem", "pagesizes", "clock", "caches", "tlb"} == set(hardware)
    assert hardware["machine"] == os.uname().machine
    assert hardware["pagesizes"][0] == mmap.PAGESIZE
    assert (system["ostype"], system["osrelease"]) == ("Linux", os.uname().release)
    assert Path(system["mountpoint"]) in file.parents
    assert list(asked)[:6] == ["buffersize", "totalsize", "blockcount", "operation", "path", "iterations"]
    assert (asked["totalsize"], asked["blockcount"], asked["path"]) == (MIB, 64, str(file))
    (sample,) = found["benchmark_samples"]
    assert list(sample)[:8] == [
        *("bandwidth", "time"),
        *("utime", "stime", "nvcsw", "nivcsw", "inblock", "oublock"),
    ]
    assert sample["bandwidth"] == pytest.approx(1024 / sample["time"])
    for name in ("instructions", "cycles", "dTLB_load_misses"):
        counter = sample["counters"][name]
        assert counter["count"] is not None or counter["reason"], counter


def test_a_description_measures_nothing_and_needs_no_file(tmp_path: Path) -> None:
    path = tmp_path / "not-there"
    found = document("describe", path)
    assert "benchmark_samples" not in found
    assert found["os_configuration"]["fstype"]
    text = io("describe", path).stdout
    titles = [line for line in text.splitlines() if not line.startswith(" ")]
    names = ("Hardware", "Operating system", "Benchmark")
    assert titles == [f"{name} configuration:" for name in names]
    assert not path.exists()


def test_the_last_transfer_may_be_shorter(file: Path) -> None:
    assert "multiple" in io("read", "-B", "-b", "2M", "-t", "1", file, check=64).stderr
    found = document("read", "-B", "-b", "2M", "-t", "1", "--tail", file)
    assert found["benchmark_configuration"]["blockcount"] == 1
    io("read", "-B", "-b", "1000", "-t", "1M", "--tail", file)


def test_a_short_file_is_said_before_anything_is_timed(file: Path) -> None:
    done = io("read", "-B", "-b", "16K", "-t", "4M", file, check=66)
    assert re.search(rf"{file} .*\b1048576\b.* -t .*\b4194304\b.* -t .*\b1MiB\b", done.stderr)
    assert f"io-static create -b 16KiB -t 4MiB {file}" in done.stderr
    assert "1048576 bytes" in io("write", "-B", "-t", "4M", "--method", "mmap", file, check=66).stderr
    io("write", "-B", "-t", "2M", file)
    assert file.stat().st_size == 2 * MIB


def test_what_is_no_file_is_no_input(tmp_path: Path) -> None:
    missing = io("read", "-B", tmp_path / "none", check=66).stderr
    assert "no such file" in missing
    assert f"io-static create -b 16KiB -t 16MiB {tmp_path}/none" in missing
    assert "is a directory" in io("read", "-B", tmp_path, check=66).stderr
    assert "is a directory" in io("write", "-B", tmp_path, check=66).stderr
    assert "is a directory" in io("create", tmp_path, check=73).stderr
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe" in io("read", "-B", tmp_path / "pipe", check=66).stderr
    assert "no plain file" in io("create", tmp_path / "pipe", check=73).stderr
    assert "its directory" in io("create", tmp_path / "none" / "file", check=73).stderr
    assert "Not a directory" in io("read", "-B", "/etc/passwd/x", check=66).stderr


def test_a_read_that_is_short_says_where() -> None:
    # The kernel says that files of /sys have a page, and gives what is in them.
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    if not Path(path).exists():
        pytest.skip("this kernel has no huge pages")
    text = io("read", "-B", "-b", "4K", "-t", "4K", path, check=74).stderr
    size = len(Path(path).read_text())
    assert re.search(rf"{path}: .*\b4096 bytes .*\b0 moved {size}\b.*\b4096 bytes", text)


def test_the_sync_is_done() -> None:
    # Nothing else would notice that /dev/zero cannot be synced.
    io("read", "-B", "-t", "1M", "/dev/zero")
    assert "cannot be synced" in io("read", "-B", "-t", "1M", "-s", "/dev/zero", check=71).stderr


@pytest.fixture
def open_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that other users can enter, with the program in it; it runs as nobody where we are root."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        shutil.copy(BIN / "io-static", place)
        monkeypatch.setitem(PROGRAMS, "io-static", [str(place / "io-static")])
        yield place


def as_nobody() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def test_what_is_not_permitted_has_a_status_of_its_own(open_place: Path) -> None:
    (open_place / "secret").write_bytes(bytes(MIB))
    (open_place / "secret").chmod(0)
    (open_place / "mine").write_bytes(bytes(MIB))
    (open_place / "mine").chmod(0o444)
    (open_place / "mine").parent.chmod(0o555)
    for arguments, said in (
        (
            ("read", "-B", "-t", "1M", open_place / "secret"),
            "secret may not be opened to read it: Permission",
        ),
        (("write", "-B", "-t", "1M", open_place / "mine"), "mine may not be opened to write it: Permission"),
        (("create", "-t", "1M", open_place / "new"), "Permission denied"),
    ):
        assert said in io(*arguments, check=77, **as_nobody()).stderr
    (open_place / "mine").parent.chmod(0o755)


def test_o_direct_needs_aligned_transfers(on_disk: Path) -> None:
    if subprocess.run([*PROGRAMS["io-static"], "read", "-Bdq", on_disk]).returncode:
        pytest.skip("the file system of this repository has no O_DIRECT")
    text = io("read", "-Bd", "-b", "100", "-t", "1000", on_disk, check=71).stderr
    assert "O_DIRECT" in text
    assert re.search(r"\bhas 100\b.* -b .* -t\b.* -d\b", text)
    assert "has 7;" in io("read", "-Bd", "-t", "16391", "--tail", on_disk, check=71).stderr


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_file_system_without_o_direct_is_said_so(tmp_path: Path) -> None:
    with mounted("ramfs", tmp_path / "ram", "mode=700") as place:
        io("create", "-t", "1M", place / "file")
        assert "no O_DIRECT" in io("read", "-Bd", "-t", "1M", place / "file", check=71).stderr


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_read_only_file_system_can_be_read_only(tmp_path: Path) -> None:
    with mounted("tmpfs", tmp_path / "mount", "size=4m") as place:
        io("create", "-t", "1M", place / "file")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        io("read", "-t", "1M", place / "file")
        assert "read-only" in io("write", "-B", "-t", "1M", place / "file", check=73).stderr
        assert "read-only" in io("create", "-t", "1M", place / "new", check=73).stderr


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    with mounted("tmpfs", tmp_path / "mount", "size=1m") as place:
        text = io("create", "-t", "4M", place / "file", check=74).stderr
        assert re.search(r"/file: 4194304 bytes .*\b1048576\b", text)
        assert list(place.iterdir()) == []
        io("create", "-t", "512K", place / "file")
        text = io("write", "-B", "-t", "4M", place / "file", check=74).stderr
        assert os.strerror(errno.ENOSPC) in text or "moved" in text


@pytest.mark.needs_root
@pytest.mark.serial
def test_a_page_that_cannot_be_mapped_ends_with_a_line(tmp_path: Path) -> None:
    with mounted("tmpfs", tmp_path / "mount", "size=1m") as place:
        (place / "file").touch()
        os.truncate(place / "file", 4 * MIB)
        text = io("write", "-B", "-t", "4M", "--method", "mmap", place / "file", check=74).stderr
        assert f"{place}/file: " in text
        assert "the mapping" in text


def resident(path: Path) -> int:
    """Bytes of a file that are in the page cache (mincore(2))."""
    with path.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        size = len(mapping)
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        here = ctypes.c_char.from_buffer(mapping)
        libc = ctypes.CDLL(None, use_errno=True)
        result = libc.mincore(ctypes.c_void_p(ctypes.addressof(here)), ctypes.c_size_t(size), pages)
        del here
    assert result == 0, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A file of 16 MiB whose file system has a device: what lies in memory alone cannot be dropped."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as name:
        Path(name).chmod(0o755)
        path = Path(name, "file")
        io("create", "-b", "1M", path)
        yield path


@pytest.mark.serial
def test_a_file_is_dropped_from_the_page_cache_and_read_into_it(on_disk: Path) -> None:
    path = on_disk
    path.read_bytes()
    if resident(path) < 16 * MIB:
        pytest.skip("the file system of this repository does not keep files in the page cache")
    one_page = ("read", "-B", "-b", "4K", "-t", "4K", path)
    assert document(*one_page)["benchmark_configuration"]["cooled_by"] is None
    assert resident(path) == 16 * MIB
    said = document(*one_page, "--cool", "drop")["benchmark_configuration"]
    assert said["cooled_by"] in ("drop_caches", "fadvise")
    assert resident(path) < 8 * MIB, "a page, and what was read ahead of it"
    io("read", "-B", "-b", "1M", path, "--cool", "warm", "-d")
    assert resident(path) == 16 * MIB


@pytest.mark.needs_root
@pytest.mark.serial
def test_who_is_not_root_has_the_files_own_pages_dropped_and_is_told(on_disk: Path, open_place: Path) -> None:
    on_disk.read_bytes()
    shared = open_place / "file"
    shutil.copy(on_disk, shared)
    shared.chmod(0o644)
    done = io("read", "-B", "-b", "4K", "-t", "4K", "--cool", "drop", shared, **as_nobody())
    assert done.stderr.startswith("NOTE: --cool drop: ")
    said = document("read", "-B", "-b", "4K", "-t", "4K", "--cool", "drop", shared, **as_nobody())
    assert said["benchmark_configuration"]["cooled_by"] == "fadvise"


Faults = Callable[..., int]


@pytest.fixture
def faults(file: Path) -> Faults:
    """Page faults of a run that reads one page into a buffer of 16 MiB."""

    def count(*more: str) -> int:
        command = [BIN / "io-static", "read", "-Bq", "-b", "16M", "-t", "4K", "--tail", *more, file]
        child = os.posix_spawn(command[0], list(map(str, command)), dict(os.environ))
        _, status, usage = os.wait4(child, 0)
        assert status == 0
        return usage.ru_minflt

    return count


def test_the_buffer_is_not_touched_unless_asked_for(faults: Faults) -> None:
    pages = 16 * MIB // mmap.PAGESIZE
    untouched = faults("--huge", "off")
    assert untouched < pages // 4
    assert pages <= faults("--huge", "off", "--touch") <= pages + untouched


def test_huge_pages_are_taken_where_they_are_asked_for(faults: Faults) -> None:
    if not Path("/sys/kernel/mm/transparent_hugepage").exists():
        pytest.skip("this kernel has no huge pages")
    assert faults("--huge", "on", "--touch") < faults("--huge", "off", "--touch") / 4


def test_a_run_stays_on_its_cpu_and_absent_ones_are_refused(file: Path) -> None:
    last = max(os.sched_getaffinity(0))
    asked = document("read", "-B", "-t", "1M", "--cpu", str(last), file)["benchmark_configuration"]
    assert asked["cpu"] == last
    assert "--cpu 9999" in io("read", "-B", "--cpu", "9999", file, check=71).stderr


def test_more_memory_than_there_is_is_refused(file: Path) -> None:
    text = io("read", "-B", "-b", "1T", "-t", "1T", "--method", "mmap", "/dev/zero", check=71).stderr
    assert "no buffer of 1T" in text


def test_a_result_that_cannot_be_written_is_an_error(file: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [BIN / "io-static", "read", "-B", "-t", "1M", file]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 74
    assert os.strerror(errno.ENOSPC) in done.stderr


def test_a_name_that_is_not_utf_8_is_a_file_like_any_other(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/f\xff"
    for arguments in ([b"create", b"-t", b"1M", path], [b"read", b"-Bj", b"-t", b"1M", path]):
        done = subprocess.run([PROGRAMS["io-static"][0], *arguments], capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["benchmark_configuration"]["path"].endswith("/f\ufffd")


def test_the_dynamic_program_loads_the_c_library_alone() -> None:
    """What linking costs is compared with C, whose programs load no unwinder."""
    loaded = subprocess.run(
        [BIN / "io-dynamic"],
        env={"LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {line.split()[0].rpartition("/")[2].partition(".")[0] for line in loaded.splitlines()}
    assert {name for name in names if name.startswith("lib")} == {"libc"}
