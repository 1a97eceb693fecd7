"""Bundles on disk: the same bytes each time, verified, and unpacked without being trusted."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etude.errors import EtudeError, InputError, MachineRefuses
from etude.results import packing
from etude.results.bundle import Member, is_bundle, member_of, no_writer, open_bundle, verify, write_bundle
from etude.results.packing import line_of, sums_of
from etude.results.writer import sole_writer
from support.golden import Golden
from support.profiles import examples

INDEX = '{"format": "etude-bundle", "version": 1, "results": [{"name": "r"}]}'
MEMBERS = [
    member_of("results/r/experiment.json", "{}"),
    member_of("bundle.json", INDEX),
    member_of("README.txt", "Étude\n"),
]
KINDS = [".tar.gz", ".tgz", ".tar.zst", ".tar", ""]


@pytest.fixture(params=KINDS)
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"x{request.param}"
    write_bundle(path, "root", MEMBERS, 1_000_000)
    return path


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_the_same_members_are_the_same_bytes(tmp_path: Path, kind: str) -> None:
    paths = [tmp_path / name / f"{name}{kind}" for name in ("a", "b")]
    for path, members in zip(paths, (MEMBERS, MEMBERS[::-1]), strict=True):
        path.parent.mkdir()
        os.umask(os.umask(0o077 if path.stem == "b" else 0o022))
        write_bundle(path, "root", members, 1_000_000)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "gz" not in kind or paths[0].read_bytes()[3:8] == bytes(5), "no name, no time of day"
    assert not list(tmp_path.rglob("*.new"))


def test_members_are_sorted_and_belong_to_nobody(tmp_path: Path) -> None:
    write_bundle(tmp_path / "x.tar.gz", "root", MEMBERS, 1_000_000)
    with tarfile.open(tmp_path / "x.tar.gz") as tar:
        infos = tar.getmembers()
    assert [info.name for info in infos] == [
        f"root/{name}" for name in ("README.txt", "SHA256SUMS", "bundle.json", "results/r/experiment.json")
    ]
    told = {(i.uid, i.gid, i.uname, i.gname, i.mtime, i.mode, i.type) for i in infos}
    assert told == {(0, 0, "", "", 1_000_000, 0o644, tarfile.REGTYPE)}


def test_a_bundle_is_as_it_was_packed(packed: Path) -> None:
    assert is_bundle(packed)
    assert verify(packed) == []
    with open_bundle(packed) as (result,):
        assert (result / "experiment.json").read_text() == "{}"
        place = result
    assert place.exists() == packed.is_dir(), "what was unpacked goes away"


def test_what_exists_is_not_written_over(packed: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        write_bundle(packed, "root", MEMBERS, 0)
    assert verify(packed) == []


def test_every_difference_is_named(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "x"
    write_bundle(path, "root", [*MEMBERS, member_of("a/b", "1"), member_of("a/c", "2")], 0)
    (path / "README.txt").write_text("other")
    (path / "a" / "b").unlink()
    (path / "new").write_text("")
    (path / "a" / "c").unlink()
    (path / "a" / "c").symlink_to(path / "new")
    problems = verify(path)
    assert [line.partition(": ")[0] for line in problems] == ["README.txt", "a/b", "a/c", "a/c", "new"]
    golden("\n".join(problems))
    with pytest.raises(InputError, match=r"README.txt: .*; and 2 more"), open_bundle(path):
        pass


def test_a_list_of_checksums_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_bundle(path, "root", MEMBERS, 0)
    with open(path / "SHA256SUMS", "a") as file:
        file.write("nonsense\n")
    (problem,) = verify(path)
    assert problem.startswith("SHA256SUMS, line 4: ")


def test_an_archive_that_is_cut_short_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    write_bundle(path, "root", MEMBERS, 0)
    path.write_bytes(path.read_bytes()[:3000])
    problems = verify(path)
    assert any(line.startswith(f"{path}: ") for line in problems)
    assert "results/r/experiment.json: is missing" in problems


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.tar.gz", b"hello"),
        ("x.tar.gz", b""),
        ("x.tar.gz", b"\x1f\x8b\x08\0nonsense"),
        ("x.tar.zst", b"\x28\xb5\x2f\xfdnonsense"),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no bundle"):
        verify(path)
    with pytest.raises(InputError):
        verify(tmp_path / "absent.tar.gz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"/empty: .*no bundle"):
        verify(tmp_path / "empty")


def test_checksums_of_something_else_are_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "SHA256SUMS").write_text(line_of(hashlib.sha256(b"1").hexdigest(), "a"))
    with pytest.raises(InputError, match=r"no bundle.*bundle\.json"):
        verify(tmp_path)


def test_a_newer_bundle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    write_bundle(path, "r", [member_of("bundle.json", INDEX.replace("1", "2"))], 0)
    with pytest.raises(InputError, match="version 2"), open_bundle(path):
        pass


@pytest.mark.parametrize(
    "index", ["[]", "x", '{"format": "etude-bundle", "version": 1, "results": [{"name": "../x"}]}']
)
def test_an_index_that_is_none_is_refused(tmp_path: Path, index: str) -> None:
    path = tmp_path / "x.tar"
    write_bundle(path, "r", [member_of("bundle.json", index)], 0)
    with pytest.raises(InputError, match=r"bundle\.json cannot be read"), open_bundle(path):
        pass


def hostile(path: Path, *infos: tuple[tarfile.TarInfo, bytes]) -> Path:
    """A bundle to which these members were added."""
    write_bundle(path.with_name("good.tar"), "root", MEMBERS, 0)
    with tarfile.open(path.with_name("good.tar")) as good, tarfile.open(path, "w") as tar:
        for info in good:
            tar.addfile(info, good.extractfile(info))
        for info, content in infos:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


BREAKS: list[Callable[[Path], list[tuple[tarfile.TarInfo, bytes]]]] = [
    lambda out: [(entry(f"{out}/stolen"), b"x")],
    lambda out: [(entry(f"root/../../{out.name}/stolen"), b"x")],
    lambda out: [(entry(f"root/../{out.name}/stolen"), b"x")],
    lambda out: [(entry("root/link", tarfile.SYMTYPE, str(out)), b""), (entry("root/link/stolen"), b"x")],
    lambda out: [(entry("root/link", tarfile.LNKTYPE, "/etc/passwd"), b""), (entry("root/link"), b"x")],
    lambda out: [
        (entry("root/results", tarfile.SYMTYPE, str(out)), b""),
        (entry("root/results/stolen"), b"x"),
    ],
    lambda out: [(entry("root/device", tarfile.CHRTYPE), b"")],
    lambda out: [(entry("root/pipe", tarfile.FIFOTYPE), b"")],
    lambda out: [(entry("other/file"), b"x")],
    lambda out: [(entry("root/results/r/experiment.json/stolen"), b"x")],
    lambda out: [(entry("root/README.txt"), b"another of the same name")],
    lambda out: [(entry("root"), b"x")],
]


def test_a_bundle_of_too_many_members_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hostile(tmp_path / "b.tar", *((entry(f"root/results/{number}"), b"x") for number in range(30)))
    monkeypatch.setattr(packing, "MAX_MEMBERS", 20)
    (tmp_path / "into").mkdir()
    assert any("20 members" in problem for problem in verify(path, tmp_path / "into"))
    assert len([file for file in (tmp_path / "into").rglob("*") if file.is_file()]) <= 20


def test_a_member_that_is_too_large_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hostile(tmp_path / "b.tar", (entry("root/results/large"), bytes(1 << 20)))
    monkeypatch.setattr(packing, "MAX_BYTES", 1 << 19)
    (tmp_path / "into").mkdir()
    with pytest.raises(MachineRefuses):
        verify(path, tmp_path / "into")
    assert not list((tmp_path / "into").rglob("large"))


def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that need no gigabyte to be passed."""
    monkeypatch.setattr(packing, "FREE_BYTES", 1 << 20, raising=False)
    monkeypatch.setattr(packing, "MAX_HEADER_BYTES", 1 << 19, raising=False)


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.zst"])
@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(entry("root/bundle.json"), bytes(8 << 20))], id="zeros"),
        pytest.param([(entry(f"root/{number}"), b"") for number in range(500)], id="empty members"),
        pytest.param([(entry("root/x", tarfile.XHDTYPE), bytes(3 << 18))], id="a header of zeros"),
        pytest.param(
            [(entry("root/x", tarfile.GNUTYPE_LONGNAME), b"root/y\0")] * 700, id="headers of headers"
        ),
    ],
)
def test_what_unpacks_to_far_more_than_its_size_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    small_limits(monkeypatch)
    path = hostile(tmp_path / "x.tar", *entries)
    squeezed = tmp_path / f"x{suffix}"
    with open(squeezed, "wb") as file, packing.compressed_archive(file, suffix) as stream:
        stream.write(path.read_bytes())
    (problem,) = [line for line in verify(squeezed) if line.startswith(f"{squeezed}: ")]
    assert "unpacks" in problem or "header" in problem or "recursion" in problem
    with pytest.raises(InputError, match=f"{squeezed}: .*not as"), open_bundle(squeezed):
        pass


@pytest.mark.parametrize("size", [1 << 10, 1 << 22])
@pytest.mark.parametrize("count", [1, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int, size: int
) -> None:
    small_limits(monkeypatch)
    logs = [member_of(f"results/r/{number}", "x" * (size // count)) for number in range(count)]
    path = tmp_path / f"x{kind}"
    try:
        write_bundle(path, "root", [*MEMBERS, *logs], 0)
    except InputError:
        assert kind not in ("", ".tar")
        assert size > 1 << 20 or count > 32
    else:
        assert verify(path) == []


@pytest.mark.usefixtures("default_signals")
def test_what_was_unpacked_is_removed_by_sigterm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = hostile(tmp_path / "b.tar")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended, open_bundle(path):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == 143
    assert not list(tmp_path.glob("etude-scratch-*"))
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_nothing_breaks_out_of_a_bundle(tmp_path: Path, number: int) -> None:
    out = tmp_path / "out"
    out.mkdir()
    path = hostile(tmp_path / "x.tar", *BREAKS[number](out))
    before = sorted(tmp_path.rglob("*"))
    assert verify(path)
    into = tmp_path / "into"
    into.mkdir()
    assert verify(path, into)
    assert not list(out.iterdir())
    assert all(p.is_dir() or (p.is_file() and not p.is_symlink()) for p in into.rglob("*"))
    with pytest.raises(InputError, match=f"{path}: .*not as"), open_bundle(path):
        pass
    assert sorted(p for p in tmp_path.rglob("*") if into not in p.parents and p != into) == before


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "x.tar"
    write_bundle(path, "root", MEMBERS, 0)
    return path


@given(data=st.data())
@settings(max_examples=examples(150))
def test_a_damaged_archive_is_never_a_traceback(archive: Path, data: st.DataObject) -> None:
    content = bytearray(archive.read_bytes()[: 512 * 9])
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = archive.with_name("damaged.tar")
    path.write_bytes(bytes(content))
    with suppress(EtudeError):
        verify(path)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
@example("back\\slash")
@example("line\nend")
def test_a_line_of_checksums_is_read_back(name: str) -> None:
    digest = "0" * 64
    assert sums_of(line_of(digest, name).encode()) == ({name: digest}, [])


@pytest.mark.needs_program("sha256sum", package="coreutils")
@pytest.mark.parametrize("name", ["plain", "with blank", "back\\slash", "line\nend", "é", " x", "\\"])
def test_sha256sum_understands_our_checksums(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("1")
    (tmp_path / "sums.txt").write_text(line_of(hashlib.sha256(b"1").hexdigest(), name))
    subprocess.run(["sha256sum", "-c", "--strict", "sums.txt"], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize("name", ["x.tar.gz", "x"])
@pytest.mark.parametrize("later", [b"other", b"one and more", b"o", b""])
def test_what_changes_while_it_is_packed_leaves_nothing(tmp_path: Path, name: str, later: bytes) -> None:
    contents = iter([b"one!!", later])
    member = Member("bundle.json", lambda: [next(contents)])
    with pytest.raises(MachineRefuses, match=r"bundle\.json: changed"):
        write_bundle(tmp_path / name, "root", [member], 0)
    assert not list(tmp_path.iterdir())


@given(st.lists(st.binary(max_size=40000), max_size=8))
@settings(max_examples=examples(20))
def test_a_member_may_come_in_parts_of_any_size(parts: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x.tar"
        write_bundle(path, "root", [*MEMBERS, Member("a", lambda: parts)], 0)
        assert verify(path) == []


@pytest.mark.parametrize("name", ["x.tar.gz", "x"])
def test_a_target_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(MachineRefuses, match=f"none/.*{os.strerror(errno.ENOENT)}"):
        write_bundle(tmp_path / "none" / name, "root", MEMBERS, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.needs_root
@pytest.mark.parametrize(("user", "refused"), [(0, True), (65534, False)], ids=["root's", "another's"])
def test_root_waits_for_locks_of_its_own_only(tmp_path: Path, user: int, refused: bool) -> None:
    file = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)
    holder = subprocess.Popen(["sleep", "60"], pass_fds=[file], user=user)
    os.close(file)
    try:
        with pytest.raises(MachineRefuses) if refused else nullcontext(), no_writer(tmp_path):
            pass
    finally:
        holder.kill()
        holder.wait()


def test_what_is_being_written_is_not_packed(tmp_path: Path) -> None:
    with (
        sole_writer(tmp_path),
        pytest.raises(MachineRefuses, match="an Étude is writing"),
        no_writer(tmp_path),
    ):
        pass
    with no_writer(tmp_path), no_writer(tmp_path):
        pass
    with pytest.raises(OSError, match="of the body"), no_writer(tmp_path):
        raise OSError("of the body")
