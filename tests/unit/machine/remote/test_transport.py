"""One connection whatever it goes over, and the commands that transports make."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from etude.engine import Launch, Worker
from etude.errors import MachineRefuses
from etude.machine.remote.host import Host
from etude.machine.remote.hosts import Entry
from etude.machine.remote.link import HostUnreachable, Link
from etude.machine.remote.transport import Srun, Ssh, run
from support.transports import Local

ENTRY = Entry("h", "::1", user="u", port=2222)
SOCKET = Path("/tmp/c")


def test_a_host_works_over_any_transport(tmp_path: Path) -> None:
    """The keeper, the engine that is copied, a trial, and files both ways; nothing stays."""
    host = Host(Entry("h", "h", directory=str(tmp_path)), way=partial(Link, transport=Local()))
    (tmp_path / "a").write_text("content")
    try:
        (row,) = host.engine.launch(Launch((Worker(("sh", "-c", "exit 3")),)))
        assert row["exit_status"] == 3
        host.copy_to_host(str(tmp_path / "a"), "there")
        assert host.run(f"cat {host.facts.directory}/there", within_s=10) == b"content"
        host.copy_from_host("there", tmp_path / "back")
        assert host.take(["there", "missing"]) == [b"content", None]
    finally:
        host.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "back"]


def test_a_machine_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(HostUnreachable, match="cannot be"):
        Link(Entry("h", "h", directory=str(tmp_path)), Local(answer=("false",)))
    with pytest.raises(MachineRefuses, match=r"no-such-program.*install dash"):
        Link(Entry("h", "h"), Local(answer=("no-such-program",)))


def test_a_command_that_fails_or_hangs_is_an_error_with_the_machines_name() -> None:
    local = Local()
    assert run(local, local.command("cat"), given=b"a", within_s=10) == b"a"
    with pytest.raises(MachineRefuses, match=r"^this machine: wrong$"):
        run(local, local.command("echo wrong >&2; exit 1"), within_s=10)
    with pytest.raises(MachineRefuses, match="/bin/sh took longer"):
        run(local, local.command("sleep 10"), within_s=0.05)


def test_only_the_first_command_of_ssh_opens_a_connection() -> None:
    ssh = Ssh(ENTRY, SOCKET)
    first, other = ssh.command("a line", first=True), ssh.command("a line")
    assert "ControlMaster=yes" in first
    assert {"ControlMaster=no", "ProxyCommand=false"} <= {*other}
    for words in (first, other):
        assert words[-3:] == ["--", "::1", "a line"]
        assert f"ControlPath={SOCKET}" in words
        assert words[words.index("-p") + 1] == "2222"
        assert words[words.index("-l") + 1] == "u"


@pytest.mark.parametrize(("back", "paths"), [(False, ["a", "u@[::1]:/b"]), (True, ["u@[::1]:/b", "a"])])
def test_scp_goes_over_the_connection(back: bool, paths: list[str]) -> None:
    words = Ssh(ENTRY, SOCKET).copying(*(("/b", "a") if back else ("a", "/b")), back=back)
    assert words[0] == "scp"
    assert "ProxyCommand=false" in words
    assert words[-2:] == paths


def test_a_step_runs_beside_others_on_one_node() -> None:
    step = Srun("7", "n1")
    assert step.command("a line") == [*step.words, "/bin/sh", "-c", "a line"]
    assert {"--jobid=7", "--nodelist=n1", "--overlap", "--chdir=/"} <= {*step.words}
    with pytest.raises(MachineRefuses):
        step.copying("a", "b", back=False)
