"""Resources from tables of TOML."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError
from etude.machine.resources.network import Network
from etude.machine.resources.resource import Resource
from etude.machine.resources.table import KINDS, Cpus, Hook, Io, check_levels, resource_of
from etude.machine.resources.volume import Volume

WHERE = "s.toml: [factor.x]"


def read(text: str) -> Resource:
    return resource_of(tomllib.loads(text), WHERE, Path("/base"), ("levels", "scale"))


def test_each_kind_is_read() -> None:
    assert read('resource = "cpus"\nlevels = [1, 2]') == Cpus()
    assert read('resource = "io"\ndevice = "/dev/vda"\nlimit = "iops"') == Io(device="/dev/vda", limit="iops")
    assert read('resource = "hook"\napply = "vm {level}"\nundo = "vm off"\nprefix = "ssh vm"') == Hook(
        command="vm {level}", undo="vm off", words="ssh vm", directory=Path("/base")
    )
    assert {read(f'resource = "{kind}"').name for kind in ("quota", "memory", "volume")} == {
        "quota",
        "memory",
        "volume",
    }


def test_paths_are_below_the_file_s_directory() -> None:
    found = read('resource = "volume"\ndirectory = "disks"\nmount = "/mnt"\nsize = "256M"')
    assert found == Volume(directory=Path("/base/disks"), mount=Path("/mnt"), size_bytes=256 << 20)


def test_a_namespace_is_one_of_ip_netns_or_a_file() -> None:
    assert read('resource = "network"\ninterface = "e"\nnamespace = "a"') == Network(
        "e", namespace="/run/netns/a"
    )
    assert read('resource = "network"\ninterface = "e"\nnamespace = "/proc/1/ns/net"') == Network(
        "e", namespace="/proc/1/ns/net"
    )
    assert read('resource = "network"\ninterface = "e"\nburst = "32K"') == Network("e", burst_bytes=32768)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "resource cpus, quota"),
        ('resource = "ram"', "resource 'ram': cpus, quota"),
        ('resource = "quota"\nperiod = 3', "period quota"),
        ('resource = "io"', "device"),
        ('resource = "io"\ndevise = "/dev/vda"', "devise device?"),
        ('resource = "io"\ndevice = "/dev/vda"\nlimit = "write"', "limit 'write': bps"),
        ('resource = "volume"\nsize = "1M"', "size 1048576 128"),
        ('resource = "volume"\nsize = 3', "size 3:"),
        ('resource = "volume"\ndevices = ["/dev/x"]', "erase"),
        ('resource = "volume"\ndevices = ["/dev/x"]\nerase = "yes"', "erase 'yes': true false"),
        ('resource = "volume"\ndevices = "/dev/x"', "devices"),
        ('resource = "volume"\ndevices = ["/dev/x", "/dev/x"]', "devices twice"),
        ('resource = "volume"\ndevices = ["/d"]\nfiles = ["f"]\nerase = true', "devices, files, directory"),
        ('resource = "volume"\nfilesystem = "xfs"', 'filesystem "md"'),
        ('resource = "network"', "interface"),
        ('resource = "network"\ninterface = "e"\nlatency = "5"', "latency: '5': 500ms, 2h"),
        ('resource = "network"\ninterface = "e"\nshape = "netem"\nburst = "1K"', 'burst "tbf"'),
        ('resource = "hook"\nundo = "x"', "apply"),
        ("resource = \"hook\"\napply = \"x\"\nprefix = \"ssh 'a\"", "prefix \"ssh 'a\":"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{WHERE}: ")
    assert [word for word in said.split() if word not in str(caught.value).removeprefix(WHERE)] == []


def test_levels_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match=r"^s\.toml: \[factor\.x\]: size 'lots': expected"):
        check_levels(read('resource = "memory"'), ("1G", "lots"), WHERE)
    check_levels(read('resource = "memory"'), ("1G", "max"), WHERE)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.text(max_size=3) | st.integers(), max_size=3)
)
KEYS = sorted({key for _, known in KINDS.values() for key in known} | {"other"})


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_table_is_a_resource_or_one_line_of_error(kind: str, options: dict[str, Any]) -> None:
    said = WHERE
    try:
        resource_of({"resource": kind, **options}, WHERE)
    except InputError as error:
        said = str(error)
    assert said.startswith(WHERE)
    assert "\n" not in said
