"""The same results without host names and home directories."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.results.anonymous import Anonymizer, Identity, identity_of


def document(host: str = "petrels-laptop", path: str = "/home/petrel/work") -> dict[str, Any]:
    return {
        "sittings": [{"host": host}],
        "machine": {"before": {"system": {"hostname": host}, "directory": {"path": path}}},
        "metrics": {"elapsed": {"unit": "s"}, "scanned": {}},
    }


def mask(*documents: dict[str, Any], home: str | None = None) -> Anonymizer:
    return Anonymizer(identity_of(documents, home))


def test_what_was_found_is_told() -> None:
    assert identity_of([document(), document("second-host")]) == Identity(
        ("petrels-laptop", "second-host"), ("/home/petrel",)
    )
    assert identity_of([document("localhost", "/root/x")]) == Identity((), ())


def test_hosts_and_homes_are_replaced_everywhere_alike() -> None:
    made = mask(document(), document("second-host"))
    text = "scp petrels-laptop:/home/petrel/a second-host.example.org:/Users/petrel/b \x1b[1mpetrels-laptop"
    assert made.text(text) == "scp host-1:/home/user/a host-2.example.org:/home/user/b \x1b[1mhost-1"


def test_a_name_with_its_domain_is_replaced_with_and_without_it() -> None:
    assert (
        mask(document("petrels-laptop.example.org")).text("petrels-laptop.example.org petrels-laptop")
        == "host-1 host-1"
    )


@pytest.mark.parametrize("host", ["vm", "scan", "unit", "elapsed"])
def test_a_name_that_is_also_another_word_is_replaced_where_a_host_is_named(host: str) -> None:
    identity = identity_of([document(host)])
    assert identity.doubtful == (host,)
    line = json.dumps({"host": host, "command": [host], "metrics": {"elapsed": 1, "scanned": 2}})
    told = json.loads(Anonymizer(identity).text(line))
    assert told == {"host": "host-1", "command": [host], "metrics": {"elapsed": 1, "scanned": 2}}
    assert (
        Anonymizer(identity).text(f"[system]\nsystem.hostname = {host}\nx = 1")
        == "[system]\nsystem.hostname = host-1\nx = 1"
    )


def test_a_distribution_is_not_a_host() -> None:
    made = document("debian")
    made["machine"]["before"]["system"]["distribution_id"] = "debian"
    assert identity_of([made]).doubtful == ("debian",)


def test_a_home_elsewhere_is_replaced_too_where_it_is_named() -> None:
    made = mask(document(path="/data/people/petrel/x"), home="/data/people/petrel")
    assert made.text("/data/people/petrel/x /data/people/petrel2") == "/home/user/x /data/people/petrel2"
    assert identity_of([document()], "/data/people/petrel").homes == ("/home/petrel",)


@pytest.mark.parametrize("path", ["/srv/home/page.html", "x/home/y", "/homely/x"])
def test_other_paths_stay(path: str) -> None:
    assert mask(document()).text(path) == path


@given(
    st.recursive(st.none() | st.text() | st.integers(), lambda c: st.lists(c) | st.dictionaries(st.text(), c))
)
def test_json_stays_json(value: Any) -> None:
    made = mask(document())
    told = json.loads(made.text(json.dumps({"a": value, "host": "petrels-laptop", "p": "/home/petrel/x"})))
    assert told["host"] == "host-1"
    assert told["p"] == "/home/user/x"


def test_what_a_snapshot_says_of_variables_mounts_and_programs_has_no_names_either() -> None:
    made = document()
    made["machine"]["before"] |= {
        "environment": {"variables": {"HOME": "/home/petrel", "LD_PATH": "/home/petrel/lib:/usr/lib"}},
        "mounts": {
            "/srv/petrels-laptop": {},
            "/home/petrel/disk": {"type": "nfs", "device": "petrels-laptop:/export"},
        },
        "programs": {"./x": {"path": "/home/petrel/x", "file": "/home/petrel/x-1"}},
    }
    text = mask(made).text(json.dumps(made))
    assert "petrel" not in text
    assert '"/home/user/disk": {"type": "nfs", "device": "host-1:/export"}' in text


def test_what_names_a_network_card_or_a_device_is_replaced() -> None:
    made = mask(document())
    text = 'enx00e04c360b1a: link up 00:e0:4c:36:0b:1a "net.enx00e04c360b1a.sent" usb: SerialNumber: 4C53 at 12:30'
    told = made.text(text)
    assert made.text(text) == told
    names = {"enx00e04c360b1a": "device-1", "00:e0:4c:36:0b:1a": "device-2", "4C53": "device-3"}
    for name, placeholder in names.items():
        text = text.replace(name, placeholder)
    assert told == text
    assert made.text(told) == told
