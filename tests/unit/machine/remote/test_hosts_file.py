"""The hosts file: what it says, and one line with its place for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.errors import InputError
from etude.machine.remote.hosts import read_hosts


def written(directory: Path, text: str) -> Path:
    path = directory / "hosts.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_not_said_is_left_to_ssh(tmp_path: Path) -> None:
    entry = read_hosts(written(tmp_path, '[hosts.a]\naddress = "lab"\n'))["a"]
    assert (entry.user, entry.port, entry.identity, entry.directory) == (None, None, None, "/tmp")
    assert (entry.connect_timeout_s, entry.silence_s, entry.measure) == (10.0, 15.0, ())
    assert entry.shown == "host a (lab)"


def test_paths_are_relative_to_the_file_and_hosts_keep_its_order(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    text = '[hosts.b]\naddress = "::1"\nidentity = "key"\nuser = "me"\nport = 2\nmeasure = ["nfsd", "nfsd"]\n'
    hosts = read_hosts(written(tmp_path, text + '[hosts.a]\naddress = "x"\n'))
    assert list(hosts) == ["b", "a"]
    assert hosts["b"].identity == tmp_path / "key"
    assert hosts["b"].measure == ("nfsd",)
    assert hosts["b"].shown == "host b (me@::1:2)"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "host"),
        ("[hosts]\n", 1, "host"),
        ("hosts = 3\n", 1, "table"),
        ("[hosts.a\n", 1, "TOML"),
        ('[host.a]\naddress = "x"\n', 1, "host hosts?"),
        ("[hosts.a]\n", 1, "address ''"),
        ('[hosts.a]\naddress = "-oProxyCommand=x"\n', 2, "address"),
        ('[hosts.a]\naddress = "x"\nadress = "y"\n', 3, "adress address?"),
        ('[hosts.a]\naddress = "x"\nport = 70000\n', 3, "port 1 65535"),
        ('[hosts.a]\naddress = "x"\nport = true\n', 3, "port 1 65535"),
        ('[hosts.a]\naddress = "x"\nuser = "-l"\n', 3, "user"),
        ('[hosts.a]\naddress = "x"\nidentity = "none"\n', 3, "identity"),
        ('[hosts.a]\naddress = "x"\nsilence = "3"\n', 3, "silence"),
        ('[hosts.a]\naddress = "x"\nsilence = "1 ms"\n', 3, "silence 1 h"),
        ('[hosts.a]\naddress = "x"\ndirectory = "work"\n', 3, "directory"),
        ('[hosts.a]\naddress = "x"\nmeasure = "nfsd"\n', 3, "measure"),
        ('[hosts.a]\naddress = "x"\nmeasure = ["/usr/sbin/nfsd"]\n', 3, "measure"),
        ('[hosts.a]\naddress = "x"\noptions = ["-v"]\n', 3, "NAME=VALUE"),
        ('[hosts.a]\naddress = "x"\n[hosts.a.environment]\nA = 1\n', 4, "NAME"),
        ('[hosts.local]\naddress = "x"\n', 1, "local"),
        ('[hosts."a b"]\naddress = "x"\n', 1, "host"),
    ],
)
def test_an_error_is_one_line_with_its_place(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_hosts(path)
    assert str(error.value).startswith(f"{path}:{line}: "), error.value
    assert [word for word in says.split() if word not in str(error.value).removeprefix(str(path))] == []
    assert "\n" not in str(error.value)


VALUES = st.recursive(
    st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.floats()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
KEYS = st.sampled_from(
    ("address", "user", "port", "identity", "options", "silence", "directory", "measure", "environment", "x")
)


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
        return f'"{text}"'
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_table_is_hosts_or_one_line(tmp_path: Path, table: dict[str, object]) -> None:
    text = "[hosts.a]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in table.items())
    try:
        path = written(tmp_path, text)
    except UnicodeEncodeError:
        return
    said = f"{path}:"
    try:
        assert read_hosts(path)["a"].address == table["address"]
    except InputError as error:
        said = str(error)
    assert said.startswith(f"{path}:")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_any_bytes_are_hosts_or_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "hosts.toml"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_hosts(path)
