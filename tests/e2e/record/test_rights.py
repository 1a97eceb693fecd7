"""`etude record` and programs that become another user, change their root or namespaces, or filter their calls."""

import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.iotrace.reader import Trace
from etude.program import engine_path
from support.real import ETUDE
from support.recordings import NOBODY, SOURCES, Recorded, complete, environment, everybodys, record

pytestmark = [pytest.mark.beside, pytest.mark.needs_program("gcc"), pytest.mark.needs_root]

READS = 50


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may use, with `reads`, which needs no library, `filtered`, and a root for chroot."""
    with everybodys() as found:
        for name in ("reads", "filtered"):
            made = ["gcc", "-O1", "-static", "-o", found / name, SOURCES / f"{name}.c"]
            subprocess.run(made, check=True)
        (found / "data").write_bytes(b"abcdefghijklmnop")
        (found / "data").chmod(0o644)
        (found / "root").mkdir()
        (found / "root").chmod(0o755)
        for name in ("reads", "data"):
            shutil.copy(found / name, found / "root" / name)
        yield found


def stopped(trace: Trace) -> list[dict[str, Any]]:
    return [each for each in trace.meta if each["what"] == "by_stops"]


def ends_well(done: Recorded, reads: int = READS) -> Trace:
    """Whether all calls of `reads` are there, and all that the kernel counted of it and of what started it."""
    trace = done.trace()
    assert done.status == 0, done.stderr
    assert not [each for each in trace.meta if each["what"] in ("unrecorded", "dropped")]
    assert complete(trace)
    opened = [trace.text(code) for code in trace.texts[0][trace.call == trace.names.index("openat")]]
    assert sum(name is not None and name.endswith(b"/data") for name in opened) == reads
    return trace


def by_nobody(place: Path, *words: str | Path) -> Recorded:
    return record(
        *words,
        at=place / "t",
        engine=str(place / "etude-engine"),
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env=environment(place / "cache"),
    )


@pytest.mark.parametrize(
    "words",
    [
        "runuser -u nobody -- READS",
        "su -s /bin/sh nobody -c READS",
        "setpriv --reuid=65534 --regid=65534 --clear-groups READS",
        "chroot ROOT /reads /data 50",
        "chroot --userspec=65534:65534 ROOT /reads /data 50",
        "unshare --mount READS",
        "unshare --pid --fork --mount-proc READS",
        "unshare --user --map-root-user READS",
        "unshare --user --map-root-user --pid --fork --mount --net chroot ROOT /reads /data 50",
    ],
)
def test_who_changes_user_root_or_namespace_is_recorded_as_anybody(words: str, place: Path) -> None:
    reads = f"{place}/reads {place}/data {READS}"
    command: list[str] = []
    for word in words.split():
        if word == "READS":
            command += [reads] if "-c" in command else reads.split()
        else:
            command.append(word.replace("ROOT", str(place / "root")))
    done = record(*command, at=place / "t")
    assert (ends_well(done), done.said)[1] == []
    assert stopped(done.trace()) == []


def test_a_script_of_it_has_its_calls(place: Path) -> None:
    done = record(
        "runuser", "-u", "nobody", "--", place / "reads", place / "data", str(READS), at=place / "t"
    )
    ends_well(done)
    made = subprocess.run([ETUDE, "script", place / "t"], capture_output=True, text=True, check=True)
    assert sum(line.count("read(") for line in made.stdout.splitlines() if "= 16" in line) >= READS


def test_root_records_under_a_filter_that_kills_for_the_recorders_calls(place: Path) -> None:
    done = record(place / "filtered", place / "reads", place / "data", str(READS), at=place / "t")
    assert stopped(ends_well(done)) == []


def test_an_ordinary_user_records_it_by_stops_and_says_so(place: Path) -> None:
    done = by_nobody(place, place / "filtered", place / "reads", place / "data", str(READS))
    [found] = stopped(ends_well(done))
    assert "seccomp" in found["why"]
    [line] = done.said
    assert found["why"] in line


def test_an_ordinary_user_records_a_user_namespace(place: Path) -> None:
    done = by_nobody(
        place, "unshare", "--user", "--map-root-user", place / "reads", place / "data", str(READS)
    )
    assert stopped(ends_well(done)) == []


def test_children_of_a_stopped_process_are_recorded_and_what_they_execute_is_rewritten(place: Path) -> None:
    reads = f"{place}/reads {place}/data {READS}"
    done = record("sh", "-c", f"ulimit -S -v 9000000; exec sh -c '({reads}); {reads}; true'", at=place / "t")
    found = stopped(ends_well(done, 2 * READS))
    assert len(found) >= 2
    assert all("(ulimit -v)" in each["why"] for each in found)
    freed = f"ulimit -S -v 9000000; exec sh -c 'ulimit -S -v unlimited; {reads}; true'"
    done = record("sh", "-c", freed, at=place / "t2")
    assert len(stopped(ends_well(done))) == 1


def test_at_the_limit_of_processes_nothing_is_recorded(place: Path) -> None:
    """The limit counts for no process of root's."""
    done = subprocess.run(
        [engine_path(), "record", "-o", place / "t", "--", "/bin/true"],
        user=NOBODY,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (5, 1), done.stderr
