"""The parts of a snapshot that tell of disks, mounts, settings, programs and the environment, on laid-out machines."""

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.machine import snapshot
from etude.machine.snapshot import Command
from etude.machine.snapshot.disks import free_fragment
from etude.machine.snapshot.programs import Elf, Packages, _of_line, read_elf
from etude.machine.snapshot.software import MASKED, value_shown
from etude.osutil import mounts as mountinfo


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


MOUNTS = """\
22 27 0:21 / /proc rw - proc proc rw
27 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
50 27 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro
51 27 7:5 / /mnt/with\\040blank rw,noatime - ext4 /dev/loop5 rw
52 27 0:60 / /net rw - cifs //server/share rw,username=me,password=hunter2,vers=3
53 27 0:61 / /run/user/1000 rw - tmpfs tmpfs rw
torn 27
"""


def test_file_systems_that_hold_files_are_told_by_their_mount_point_without_passwords(tmp_path: Path) -> None:
    seen = snapshot.mounted(lay_out(tmp_path, {"proc/self/mountinfo": MOUNTS}))
    assert list(seen) == ["/", "/mnt/with blank", "/net"]
    assert seen["/mnt/with blank"]["options"] == "rw,noatime"
    assert seen["/net"]["options"] == f"rw,username={MASKED},password={MASKED},vers=3"


def test_how_free_space_is_broken_up_is_the_median_group_of_the_kernel_s_lists(tmp_path: Path) -> None:
    lists = "optimize_scan: 1\nmax_free_order_lists:\n\tlist_order_0_groups: 99\navg_fragment_size_lists:\n"
    lists += "".join(f"\tlist_order_{n}_groups: {count}\n" for n, count in enumerate([1, 0, 2, 5, 1]))
    mounts = "27 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
    root = lay_out(tmp_path, {"proc/self/mountinfo": mounts, "proc/fs/ext4/sda2/mb_structs_summary": lists})
    [mount] = mountinfo.mounts(root)
    assert free_fragment(root, mount) == 4096 << 3
    (root / "proc/fs/ext4/sda2/mb_structs_summary").write_text("optimize_scan: 0\n")
    assert free_fragment(root, mount) is None


def test_a_disk_is_told_with_its_queue_and_the_offsets_of_its_partitions(tmp_path: Path) -> None:
    base = "sys/block/nvme0n1"
    files = {
        f"{base}/size": "2000",
        f"{base}/device/model": "Quick One  ",
        f"{base}/device/serial": "S3CR3T",
        f"{base}/queue/scheduler": "[none] mq-deadline",
        f"{base}/queue/write_cache": "write back",
        f"{base}/queue/nr_requests": "1023",
        f"{base}/nvme0n1p1/start": "2048",
        f"{base}/nvme0n1p1/size": "100",
        "sys/block/loop3/size": "8",
        "sys/block/loop5/size": "16",
        "sys/block/loop5/loop/backing_file": "/tmp/disk.img",
        "sys/block/ram0/size": "99",
        "proc/self/mountinfo": "51 27 7:5 / /m rw - ext4 /dev/loop5 rw\n",
    }
    seen = snapshot.block_devices(lay_out(tmp_path, files))
    assert list(seen) == ["loop5", "nvme0n1"]
    disk = seen["nvme0n1"]
    assert (disk["model"], disk["size_bytes"], disk["scheduler"]) == ("Quick One", 1_024_000, "none")
    assert (disk["write_cache"], disk["nr_requests"], disk["rotational"]) == ("write back", 1023, None)
    assert disk["partitions"] == {"nvme0n1p1": {"offset_bytes": 2048 * 512, "size_bytes": 51200}}
    assert "S3CR3T" not in json.dumps(seen)
    assert seen["loop5"]["backing_file"] == "/tmp/disk.img"


def test_sysctls_that_the_kernel_has_and_limits_are_text(tmp_path: Path) -> None:
    limits = "Limit                     Soft Limit           Hard Limit           Units     \n"
    limits += "Max open files            1024                 524288               files     \n"
    files = {
        "proc/sys/vm/swappiness": "10\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/self/limits": limits,
    }
    root = lay_out(tmp_path, files)
    assert snapshot.sysctls(root) == {"net.ipv4.tcp_rmem": "4096 131072 6291456", "vm.swappiness": "10"}
    assert snapshot.limits(root) == {"open_files": "1024 524288"}


@pytest.mark.parametrize(
    ("file", "content", "kind"),
    [
        ("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"),
        ("run/.containerenv", "", "podman"),
        (".dockerenv", "", "docker"),
        ("proc/self/cgroup", "0::/kubepods/burstable/pod1\n", "kubepods"),
        ("proc/self/cgroup", "0::/user.slice\n", None),
    ],
    ids=["told by systemd", "podman", "docker", "kubernetes", "none"],
)
def test_a_container_is_told_by_what_its_manager_leaves(
    tmp_path: Path, file: str, content: str, kind: str | None
) -> None:
    assert snapshot.virtualisation(lay_out(tmp_path, {file: content}))["container"] == kind


# --- the environment ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("API_KEY", "x"),
        ("apikey", "x"),
        ("DB_PASSWORD", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PASS", "x"),
        ("SSH_AUTH_SOCK", "/run/x"),
        ("SUDO_USER", "me"),
        ("USER", "me"),
        ("ETUDE_SETTLED", '{"waited_s": 2.0}'),
    ],
)
def test_a_variable_whose_name_says_that_it_is_secret_or_whose_it_is_is_masked(name: str, value: str) -> None:
    assert value_shown(name, value) == MASKED


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123",
        "Zm9vYmFyQmF6MTIzNDU2Nzg5MGFiY2RlZg",
    ],
)
def test_a_value_that_looks_like_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    for value in (secret, f"--with {secret} --more"):
        assert secret not in value_shown("OPTIONS", value)


def test_a_password_in_a_url_is_masked_up_to_the_last_at_sign() -> None:
    shown = value_shown("OPTIONS", 'x://me:p@ss@host/a@b "y://h" z@w')
    assert shown == f'x://{MASKED}@host/a@b "y://h" z@w'


def test_credentials_in_a_url_are_masked_and_the_rest_stays() -> None:
    assert value_shown("http_proxy", "http://me:pw@proxy:3128/") == f"http://{MASKED}@proxy:3128/"
    assert value_shown("X", "a --password=hunter2 b") == f"a --password={MASKED} b"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/opt/rust-1.95/Tools2/bin"),
        ("LD_PRELOAD", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"),
        ("CFLAGS", "-O3 -march=native -fno-omit-frame-pointer"),
        ("OMP_NUM_THREADS", "4"),
        ("PYTHONHASHSEED", "0"),
        ("MALLOC_ARENA_MAX", "2"),
        ("KEYBOARD", "de"),
        ("PWD", "/home/me"),
        ("LANG", "C.UTF-8"),
        ("TOX_TESTENV_PASSENV", "OPENBLAS_*"),
    ],
)
def test_a_variable_that_explains_a_number_stays(name: str, value: str) -> None:
    assert value_shown(name, value) == value


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=60), max_size=5))
def test_any_environment_is_plain_data(environment: dict[str, str]) -> None:
    assert json.loads(json.dumps(snapshot.variables(environment)))["size_bytes"] >= 0
    json.dumps(snapshot.variables(environment)).encode()


# --- programs -------------------------------------------------------------------------------------


def test_a_script_brings_its_interpreter_along(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path,
        {"bin/run": "#!/usr/bin/env -S tool -x\necho\n", "bin/tool": "#!/bin/deep\n", "bin/deep": "x"},
    )
    for name in ("run", "tool", "deep"):
        (root / "bin" / name).chmod(0o755)
    seen = snapshot.programs(root, [Command(("run", "x"), "/bin")], {"PATH": "/bin"})
    assert list(seen) == ["run", "tool", "/bin/deep"]
    assert seen["run"]["sha256"] == hashlib.sha256((root / "bin/run").read_bytes()).hexdigest()
    assert seen["run"]["interpreter"] == "tool"


LINES = {
    "a | b -x; c && d": ["a", "b", "c", "d"],
    "X=1 a >b 2>c <d e": ["a"],
    ">b a": ["a"],
    "for x in 1 2; do a $x; done; if b; then c; else d; fi": ["a", "b", "c", "d"],
    "(a); { b; }\ncd /; ! c || exec d": ["a", "b", "c", "d"],
    "f() { a; }; f; g": ["a", "g"],
    "'a' 'b|c'; $x y; `z`": ["a"],
    "echo 'a": [],
}


@pytest.mark.parametrize(("line", "named"), LINES.items(), ids=range(len(LINES)))
def test_all_commands_of_a_shell_line_are_its_programs(line: str, named: list[str]) -> None:
    assert list(_of_line(line)) == named


def test_of_a_shell_line_its_commands_count_and_of_an_interpreter_its_script(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {f"bin/{name}": name for name in ("sh", "work", "python3", "named")})
    for file in (root / "bin").iterdir():
        file.chmod(0o755)
    own = lay_out(tmp_path / "own", {"b.py": "print()"})

    def names(*words: str, **more: str) -> list[str]:
        return [n for n, f in snapshot.programs(root, [Command(words, "/bin")], more).items() if f]

    assert names("sh", "-c", "A=1 work | sort") == ["sh", "work"]
    assert names("sh", "-c", "cd x && y") == ["sh"]
    assert names("sh", "-c", "work | named") == ["sh", "work", "named"]
    listed = snapshot.programs(root, [Command(("sh", "-c", "x || y; named"), "/bin")], {})
    assert {name: bool(program) for name, program in listed.items()} == {
        "sh": True,
        "x": False,
        "named": True,
    }
    assert names("nothing") == []
    for words in (
        ("python3", "-c", "import os.path; print()"),
        ("python3", "-m", "json.tool"),
        ("awk", "{s+=$1/2}"),
    ):
        listed = snapshot.programs(root, [Command(words, "/bin")], {})
        assert list(listed) == [words[0]]
    assert names("work", APPROGRAMS="named, nothing", PATH="/bin") == ["work", "named"]
    here = snapshot.programs(Path("/"), [Command(("python3", "-u", f"{own}/b.py"))], dict(os.environ))
    assert here[f"{own}/b.py"]["bytes"] == 7


def test_a_program_that_changed_has_another_digest_at_once(tmp_path: Path) -> None:
    file = tmp_path / "p"
    seen = []
    for content in ("one", "two"):
        file.write_text(content)
        seen.append(snapshot.programs(Path("/"), [Command((str(file),))], {})[str(file)]["sha256"])
        os.utime(file, ns=(1, len(seen)))
    assert seen == [hashlib.sha256(text).hexdigest() for text in (b"one", b"two")]


DPKG = {
    "var/lib/dpkg/status": "Package: tool-12\nVersion: 0\nArchitecture: i386\n\nPackage: tool-12\nStatus: ok\n"
    "Version: 1:2.3-4\nArchitecture: amd64\n\nPackage: other\nVersion: 9\n",
    "var/lib/dpkg/info/tool-12:amd64.list": "/.\n/usr/bin/tool-12\n/bin/old\n",
    "var/lib/dpkg/info/other.list": "/usr/bin/tool-1\n/usr/bin/strange\n",
}


def test_the_package_of_a_file_and_its_version_are_dpkg_s(tmp_path: Path) -> None:
    packages = Packages(lay_out(tmp_path, DPKG))
    assert packages.of("/usr/bin/tool-12") == ("tool-12", "1:2.3-4")
    assert packages.of("/usr/bin/old") == ("tool-12", "1:2.3-4")
    assert packages.of("/usr/bin/strange") == ("other", "9")
    assert packages.of("/usr/bin/strange", everywhere=False) is None
    assert packages.of("/usr/bin/too") is None
    assert packages.of("/home/me/tool-12") is None
    status = tmp_path / "var/lib/dpkg/status"
    status.write_text(DPKG["var/lib/dpkg/status"].replace("1:2.3-4", "1:2.3-5"))
    os.utime(status, ns=(1, 1))
    assert packages.of("/usr/bin/tool-12") == ("tool-12", "1:2.3-5")
    assert Packages(tmp_path / "none").of("/usr/bin/tool-12") is None


def elf(*, wide: bool, order: str, build_id: bytes, loader: bytes) -> bytes:
    """A file with a head, two program headers, a note and a name."""
    head_bytes, entry = (64, 56) if wide else (52, 32)
    note_at = head_bytes + 2 * entry
    note = struct.pack(order + "III4s", 4, len(build_id), 3, b"GNU\0") + build_id
    loader_at = note_at + len(note)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    if wide:
        head = struct.pack(order + "HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, entry, 2, 0, 0, 0)
    else:
        head = struct.pack(order + "HHIIIIIHHHHHH", 3, 3, 1, 0, 52, 0, 0, 52, entry, 2, 0, 0, 0)

    def header(kind: int, offset: int, size: int) -> bytes:
        if wide:
            return struct.pack(order + "IIQQQQQQ", kind, 4, offset, 0, 0, size, size, 4)
        return struct.pack(order + "IIIIIIII", kind, offset, 0, 0, size, size, 4, 4)

    parts = [ident, head, header(4, note_at, len(note)), header(3, loader_at, len(loader) + 1)]
    return b"".join([*parts, note, loader, b"\0"])


@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("order", ["<", ">"], ids=["little-endian", "big-endian"])
def test_build_id_and_loader_are_read_from_any_elf_file(tmp_path: Path, wide: bool, order: str) -> None:
    content = elf(wide=wide, order=order, build_id=bytes(range(20)), loader=b"/lib/ld.so")
    assert read_bytes(tmp_path, content) == Elf(bytes(range(20)).hex(), "/lib/ld.so")


def read_bytes(directory: Path, content: bytes) -> Elf | None:
    file = directory / "elf"
    file.write_bytes(content)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return read_elf(descriptor)
    finally:
        os.close(descriptor)


WHOLE = elf(wide=True, order="<", build_id=bytes(20), loader=b"/lib/ld.so")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200).map(lambda tail: b"\x7fELF\x02\x01" + tail)
    | st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=9)).map(
        lambda edit: WHOLE[: edit[0]] + edit[1] + WHOLE[edit[0] + len(edit[1]) :]
    )
)
def test_no_damaged_elf_file_makes_it_raise(tmp_path: Path, content: bytes) -> None:
    found = read_bytes(tmp_path, content)
    assert found is None or json.dumps(found)
