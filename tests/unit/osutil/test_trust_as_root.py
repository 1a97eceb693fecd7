"""What root reads and then acts on is refused where another user could have written it."""

from __future__ import annotations

import json
import os
import struct
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from etude.cli.measure.again import repeat_experiment
from etude.cli.verb_parsers import verb_parser
from etude.cluster.distributed.request import stored_request
from etude.cluster.pool.slurm.commands import Slurm
from etude.cluster.pool.staged_pool import run_with_input
from etude.errors import EtudeError, InputError
from etude.experiment.plan import plan_to_resume
from etude.machine.boot import unit
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import Link, slurm
from etude.machine.resources import ledger
from etude.osutil.trust import (
    check_directory_for_root,
    check_for_root,
    check_results_for_root,
    open_for_root,
    tool_environment,
)
from etude.probes.executables import find_executables
from etude.program import engine_path
from etude.script.parse import parse_script
from etude.store.repository import commit_of
from etude.toml_config import document

pytestmark = pytest.mark.needs_root

ANOTHER = 12345


def script(file: Path) -> object:
    (file.parent / "a.ap").write_text("INCLUDE local.inc\n")
    return parse_script(file.parent / "a.ap")


def repeat(file: Path) -> object:
    words = ["--again", str(file)]
    return repeat_experiment(
        verb_parser("run").parse_args(words, Namespace(command_line=["etude run", *words]))
    )


READERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "resources": ("resources.json", '{"version": 1, "steps": []}', ledger.read),
    "specs": ("peak.toml", "a = 1\n", document),
    "probes": ("probes.d/a", "#!/bin/sh\n", lambda file: find_executables([file.parents[1]])),
    "includes": ("local.inc", "ECHO a\n", script),
    "pools": ("experiment.json", "{}", lambda file: stored_request(file.parent)),
    "bundles": ("b.tar", "", repeat),
    "plans": ("experiment.json", "{}", lambda file: plan_to_resume({}, str(file))),
}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Callable[[Path], object]]:
    name, text, read = READERS[request.param]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file, read


def refused(read: Callable[[Path], object], file: Path) -> str:
    with pytest.raises(InputError) as caught:
        read(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_of_another_user_is_refused(reader: tuple[Path, Callable[[Path], object]]) -> None:
    file, read = reader
    os.chown(file, ANOTHER, -1)
    assert str(ANOTHER) in refused(read, file)


def test_a_file_that_others_may_replace_is_refused(reader: tuple[Path, Callable[[Path], object]]) -> None:
    file, read = reader
    file.parent.chmod(0o777)
    assert f" {file.parent}: " in refused(read, file)


def test_a_link_of_another_user_is_not_followed(reader: tuple[Path, Callable[[Path], object]]) -> None:
    file, read = reader
    file.rename(file.with_name("elsewhere~"))
    file.symlink_to("elsewhere~")
    os.chown(file, ANOTHER, -1, follow_symlinks=False)
    assert str(file) in refused(read, file)


def test_a_link_of_root_is_as_good_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("a = 1\n")
    (tmp_path / "a.toml").symlink_to("b.toml")
    os.close(open_for_root(tmp_path / "a.toml"))
    os.chown(tmp_path / "b.toml", ANOTHER, -1)
    assert str(ANOTHER) in refused(document, tmp_path / "a.toml")


def test_what_belongs_to_who_called_sudo_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.toml"
    file.write_text("a = 1\n")
    os.chown(file, ANOTHER, -1)
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    os.close(open_for_root(file))


def test_a_group_is_trusted_where_it_holds_nobody_but_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("a = 1\n")
    for path in (tmp_path, file):
        path.chmod(path.stat().st_mode | 0o020)
    os.close(open_for_root(file))
    os.chown(file, 0, ANOTHER)
    assert "chmod go-w" in refused(document, file)


def test_an_access_control_list_names_others_than_the_group(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("a = 1\n")
    entries = ((0x01, 6, -1), (0x02, 6, ANOTHER), (0x04, 4, -1), (0x10, 6, -1), (0x20, 4, -1))
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    os.setxattr(file, "system.posix_acl_access", packed)
    assert file.stat().st_mode & 0o020
    assert "chmod go-w" in refused(document, file)


def test_the_directory_above_is_that_of_what_a_link_leads_to(tmp_path: Path) -> None:
    """`a/link/..` is not `a`."""
    (tmp_path / "b/c").mkdir(parents=True)
    (tmp_path / "link").symlink_to("b/c")
    for directory in (tmp_path, tmp_path / "b"):
        (directory / "a.toml").write_text("a = 1\n")
    os.chown(tmp_path / "b/a.toml", ANOTHER, -1)
    assert str(ANOTHER) in refused(document, tmp_path / "link/../a.toml")


def test_in_a_sticky_directory_others_may_add_files(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "a.toml").write_text("a = 1\n")
    os.close(open_for_root(tmp_path / "a.toml"))
    check_directory_for_root(tmp_path, sticky=True)
    with pytest.raises(InputError):
        check_directory_for_root(tmp_path)


def test_a_file_that_comes_while_it_is_looked_for_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "local.inc").write_text("ECHO a\n")
    os.chown(tmp_path / "local.inc", ANOTHER, -1)
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    with pytest.raises(EtudeError):
        script(tmp_path / "local.inc")


def test_what_is_not_there_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        check_for_root(tmp_path / "a")


def test_results_go_to_directories_of_others_but_not_to_those_that_they_have_planted(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, ANOTHER, -1)
    check_results_for_root(theirs / "r")
    tmp_path.chmod(0o1777)
    for planted in (theirs, theirs / "r"):
        assert f" {theirs} " in refused(check_results_for_root, planted)
    (tmp_path / "link").symlink_to("theirs")
    assert str(ANOTHER) in refused(check_results_for_root, tmp_path / "link")
    assert str(tmp_path) in refused(check_results_for_root, tmp_path)


def test_a_directory_in_place_of_a_file_is_called_so(tmp_path: Path) -> None:
    assert "directory" in refused(document, tmp_path)


def test_a_fifo_does_not_hold_root_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.toml", 0o600)
    assert "regular" in refused(document, tmp_path / "a.toml")


def test_a_lock_is_not_opened_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("whole")
    (tmp_path / "resources.lock").symlink_to("target")
    with pytest.raises(EtudeError), ledger.held_ledger(tmp_path):
        pass
    assert (tmp_path / "target").read_text() == "whole"


def test_resources_are_not_held_where_others_may_put_files(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InputError), ledger.held_ledger(tmp_path):
        pass


def test_a_plan_that_was_edited_is_refused(tmp_path: Path) -> None:
    from etude.experiment.plan import digest, make_plan, to_document
    from support.builders import hooked

    plan = make_plan(hooked("a", "b"), trials=2, seed=1)
    file = tmp_path / "experiment.json"
    file.write_text("{}")
    known = json.loads(json.dumps({"plan": to_document(plan), "digest": digest(plan)}))
    assert plan_to_resume(known, str(file)) == plan
    known["plan"]["tests"][0]["command"] = ["rm"]
    with pytest.raises(InputError):
        plan_to_resume(known, str(file))


@pytest.mark.parametrize(
    "bad", ["relative", "/a\nExecStartPre=/bin/id", ""], ids=["relative", "newline", "open"]
)
def test_a_unit_gets_no_directory_that_others_may_change(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not bad:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        bad = str(tmp_path / "open" / "later")
    monkeypatch.setenv("PYTHONPATH", f"/usr:{bad}")
    with pytest.raises(InputError):
        unit.install(tmp_path, run=lambda *_: None)
    assert not (tmp_path / "etc").exists()


def test_tools_are_not_looked_for_where_others_may_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in (("own", 0o755), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    monkeypatch.setenv("PATH", f"{tmp_path}/open:.:{tmp_path}/own:/usr/bin")
    assert tool_environment()["PATH"].split(":")[:2] == [f"{tmp_path}/own", "/usr/bin"]


@pytest.mark.parametrize(
    ("program", "use"),
    [
        ("git", lambda place: commit_of(str(place))),
        ("squeue", lambda place: Slurm().queue()),
        ("srun", lambda place: run_with_input(["srun", "true"], b"")),
        ("scontrol", lambda place: slurm(["scontrol", "ping"])),
        ("ssh", lambda place: Link(Entry("h", "host", options=("ProxyCommand=false",)))),
        ("etude-engine", lambda place: os.spawnl(os.P_WAIT, engine_path(), "etude-engine", "--version")),
    ],
)
def test_programs_of_others_are_not_run(
    program: str, use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    theirs = tmp_path / "open" / program
    theirs.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    theirs.chmod(0o755)
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("PATH", f"{tmp_path}/open:/usr/bin:/bin")
    monkeypatch.delenv("ETUDE_ENGINE", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with suppress(EtudeError):
        use(tmp_path)
    assert not (tmp_path / "ran").exists()
