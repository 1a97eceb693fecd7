"""Trials on several hosts: network namespaces, each with an sshd of its own; real clients of a real server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.machine.remote import synchronized_start
from etude.machine.remote.hosts import read_hosts
from support.hosts import Lab, laboratory
from support.places import DOCS
from support.real import ETUDE, called, experiment, lines, one_line

pytestmark = [
    pytest.mark.beside,
    pytest.mark.needs_root,
    pytest.mark.needs_program("ssh", package="openssh-client"),
    pytest.mark.needs_program("sshd", package="openssh-server"),
    pytest.mark.needs_program("ip", package="iproute2"),
]
CLIENT = """\
import socket, sys, time
for _ in range(int(sys.argv[2])):
    with socket.create_connection((sys.argv[1], 7000), 5) as s:
        s.sendall(b"x"); assert s.recv(1) == b"x", "the server has gone"
    time.sleep(0.05)
"""
SERVER = """\
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 7000)); s.listen(64)
open("/proc/self/comm", "w").write(sys.argv[2])
while True:
    c, _ = s.accept(); c.sendall(c.recv(1)); sum(range(20000)); c.close()
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("lab")
    with laboratory(directory) as found:
        (directory / "client.py").write_text(CLIENT)
        (directory / "server.py").write_text(SERVER)
        yield found


@pytest.fixture(autouse=True)
def _lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an engine may be told later than by default when to start."""
    monkeypatch.setattr(synchronized_start, "MIN_LEAD_NS", 500_000_000)


def echod(lab: Lab) -> str:
    """The name of the server's process, which no other lab has."""
    return f"echod{lab.number}"


def sshd(lab: Lab) -> str:
    """And of those of sshd."""
    return lab["server"].sshd_name


@pytest.fixture
def server(lab: Lab) -> Iterator[subprocess.Popen[bytes]]:
    """The server process, which listens."""
    machine = lab["server"]
    process = machine.start(sys.executable, str(lab.directory / "server.py"), machine.address, echod(lab))
    until = time.monotonic() + 10
    while ":7000 " not in subprocess.run(machine.words("ss", "-ltn"), capture_output=True, text=True).stdout:
        assert time.monotonic() < until
        time.sleep(0.02)
    yield process
    process.kill()
    process.wait()


def write(lab: Lab, text: str) -> None:
    (lab.directory / "script.ap").write_text(text)


def out(lab: Lab) -> Path:
    """A results directory that is not there yet."""
    return lab.directory / f"out-{time.monotonic_ns()}"


def started(lab: Lab, results: Path) -> subprocess.Popen[str]:
    """etude run, under way."""
    return subprocess.Popen(
        [ETUDE, "run", "script.ap", "-o", str(results)],
        cwd=lab.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def await_file(path: Path) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.01)


def nothing_left(lab: Lab) -> None:
    """What was made on the hosts goes as soon as the connection has ended."""
    until = time.monotonic() + 10
    while lab.left():
        assert time.monotonic() < until, lab.left()
        time.sleep(0.05)


def client(lab: Lab, count: int) -> str:
    return f"{sys.executable} {lab.directory}/client.py {lab['server'].address} {count}"


@pytest.mark.quick
@pytest.mark.serial
def test_workers_on_two_client_hosts_start_at_one_instant(
    lab: Lab, server: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    lab.write(measure=f'["{echod(lab)}"]')
    write(
        lab,
        f"HOSTS hosts.toml\nTHREADS 2\nTEST clients 4\n  TIMEOUT 30s\n"
        f"  EXEC @client1,client2 {client(lab, 5)}\nDONE\n",
    )
    results = out(lab)
    called("run", "script.ap", "-o", str(results), cwd=lab.directory)
    rows = lines(results, "clients")
    assert [row["host"] for row in rows] == ["client1", "client1", "client2", "client2"] * 4
    assert {row["kept"] for row in rows} == {True}
    spreads = [row["metrics"]["start_spread"][0] for row in rows if row["worker"] == 0]
    errors = [row["offset_error_ns"] for row in rows]
    with capsys.disabled():
        told = ", ".join(f"{1e3 * spread:.3f}" for spread in spreads)
        print(f"\nfirst to last start over two hosts: {told} ms; clocks known to {max(errors) / 1e6:.3f} ms")
    for trial in range(1, 5):
        own = [row["start_ns"] - row["offset_ns"] for row in rows if row["trial"] == trial]
        assert (max(own) - min(own)) / 1e9 == pytest.approx(spreads[trial - 1])
        ends = [
            row["start_ns"] - row["offset_ns"] + 1e9 * row["metrics"]["elapsed"][0]
            for row in rows
            if row["trial"] == trial
        ]
        assert max(own) < min(ends), "all were under way at once"
    used = [row["metrics"][f"server.{echod(lab)}.cpu"] for row in rows if row["worker"] == 0]
    assert all(value[0] > 0 and value[1] == "s" for value in used), used
    # All namespaces are in one kernel: there is one clock, and so we know how far off the offsets are.
    assert all(abs(row["offset_ns"]) <= row["offset_error_ns"] for row in rows)
    nothing_left(lab)


def test_a_server_that_is_killed_in_mid_trial_fails_the_trial(
    lab: Lab, server: subprocess.Popen[bytes]
) -> None:
    lab.write(measure=f'["{echod(lab)}"]')
    flag = lab.directory / "under-way"
    flag.unlink(missing_ok=True)
    write(
        lab,
        f"HOSTS hosts.toml\nTEST clients 1 MAX=1\n  TIMEOUT 20s\n"
        f"  EXEC @client1,client2 touch {flag}; exec {client(lab, 100000)}\nDONE\n",
    )
    results = out(lab)
    run = started(lab, results)
    await_file(flag)
    server.kill()
    _, said = run.communicate(timeout=60)
    rows = lines(results, "clients")
    assert [row["kept"] for row in rows] == [False, False], said
    assert echod(lab) in said, said
    assert "has ended" in said, said
    value, unit, why = rows[0]["metrics"][f"server.{echod(lab)}.cpu"]
    assert (value, unit) == (None, "s")
    assert "ended" in why
    nothing_left(lab)


def test_a_client_that_hangs_on_its_server_is_ended_by_the_time_out(lab: Lab) -> None:
    lab.write()
    write(lab, "HOSTS hosts.toml\nTEST t 1 MAX=1\n  TIMEOUT 1s\n  EXEC @client1,client2 sleep 1000\nDONE\n")
    results = out(lab)
    called("run", "script.ap", "-o", str(results), cwd=lab.directory, check=4)
    assert [row["timed_out"] for row in lines(results, "t")] == [True, True]


@pytest.mark.parametrize(
    ("who", "how"), [("client1", "cut"), ("client1", "stopped"), ("client1", "killed"), ("server", "killed")]
)
def test_a_host_that_goes_away_fails_the_trial_with_its_reason(lab: Lab, who: str, how: str) -> None:
    """`server` has no workers in the trial: a process of it is measured."""
    lab.write(measure=f'["{sshd(lab)}"]')
    pids = {name: lab.directory / f"pid-{name}" for name in ("client1", "client2")}
    for file in pids.values():
        file.unlink(missing_ok=True)
    own = f"{lab.directory}/pid-$APHOST"
    write(
        lab,
        f"HOSTS hosts.toml\nTEST t 1 MAX=1\n"
        f"  EXEC @client1,client2 sh -c 'echo $$ > {own}.new; mv {own}.new {own}; exec sleep 1000'\n"
        "  COPY @client2:aptime\nDONE\nTEST after 1\n  EXEC @client2 true\nDONE\n",
    )
    results = out(lab)
    machine = lab[who]
    run = started(lab, results)
    for file in pids.values():
        await_file(file)
    try:
        if how == "cut":
            machine.cut()
        elif how == "stopped":
            machine.signal_all(signal.SIGSTOP)
        else:
            machine.signal_sessions(signal.SIGKILL)
        first = lines_when_there(results / "t" / "results.jsonl", 2)
    finally:
        machine.cut(down=False)
        machine.signal_all(signal.SIGCONT)
    _, said = run.communicate(timeout=90)
    assert {row["kept"] for row in first} == {False}
    reason = next(line for line in said.splitlines() if "trial 1" in line)
    assert f"host {who} " in reason, said
    assert "went away" in reason, said
    rows = {row["host"]: row for row in first}
    if who == "client1":
        assert rows["client1"]["error"], rows
    assert rows["client2"]["cancelled"], "the others' workers are ended"
    assert (results / "t" / "logs" / "0001-client2-aptime").exists(), (
        "what a failed trial has left is brought back"
    )
    (row,) = lines(results, "after")
    assert row["kept"], "the script goes on"
    for name, file in pids.items():
        pid = int(file.read_text())
        until = time.monotonic() + 20
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until, f"the worker on {name} is ended by its engine"
            time.sleep(0.05)
    nothing_left(lab)


def test_a_host_that_restarts_fails_the_next_trial_as_well_and_says_so(lab: Lab) -> None:
    """It only seems to: another boot id lies over its own."""
    lab.write("client1")
    flag, once = lab.directory / "under-way", lab.directory / "once"
    flag.unlink(missing_ok=True)
    write(
        lab,
        f"HOSTS hosts.toml\nTEST t 1 MAX=3\n"
        f"  EXEC @client1 sh -c '[ -e {once} ] && exit; touch {flag}; exec sleep 1000'\nDONE\n",
    )
    results = out(lab)
    run = started(lab, results)
    await_file(flag)
    once.touch()
    boot = lab.directory / "boot_id"
    boot.write_text("11111111-2222-3333-4444-555555555555\n")
    machine, place = lab["client1"], "/proc/sys/kernel/random/boot_id"
    machine.inside("mount", "--bind", str(boot), place)
    try:
        machine.signal_sessions(signal.SIGKILL)
        _, said = run.communicate(timeout=90)
    finally:
        machine.inside("umount", place)
    assert "trial 1: host client1" in said
    assert "trial 2: host client1" in said
    assert "has restarted" in said
    last = lines(results, "t")[-1]
    assert (last["trial"], last["kept"], last["boot_id"]) == (3, True, boot.read_text().strip())


def lines_when_there(path: Path, count: int) -> list[dict[str, Any]]:
    until = time.monotonic() + 60
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < until
        time.sleep(0.05)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_set_up_runs_there_and_files_go_there_and_back(lab: Lab) -> None:
    lab.write(environment='{ WHO = "all" }')
    (lab.directory / "conf").write_text("of mine\n")
    write(
        lab,
        """HOSTS hosts.toml
SYSTEM @server echo before > data
TEST t 2
  PRESETUP @server,client1 echo $APHOST $WHO >> said; sleep 1000 & echo $! > left
  SETUP @server test -s data && kill -0 $(cat left)
  COPY conf @client1,client2:conf
  EXEC @client1,client2,local echo $APTHREAD $APHOST; test -z "$APHOST" || cat conf
  COPY @client1:said %SCRIPTDIR%/said-there
  CLEANUP @client1,client2 rm conf
  POSTCLEANUP @server cat said; kill -0 $(cat left)
DONE
""",
    )
    results = out(lab)
    called("run", "script.ap", "-o", str(results), cwd=lab.directory)
    assert (lab.directory / "said-there").read_text() == "client1 all\n"
    assert (results / "t" / "hooks.log").read_text() == "server all\n"
    told = [(results / "t" / "logs" / f"0002-{worker}.log").read_text() for worker in range(3)]
    assert told == ["1 client1\nof mine\n", "2 client2\nof mine\n", "3\n"]
    names = [row["host"] for row in lines(results, "t")][:3]
    assert names == ["client1", "client2", os.uname().nodename]
    found = experiment(results)["sittings"][0]["hosts"]
    assert found["client1"]["name"] == "client1"
    assert found["client1"]["kernel"] == os.uname().release
    nothing_left(lab)


def test_what_fails_there_is_told_with_its_host(lab: Lab) -> None:
    lab.write()
    write(
        lab,
        "HOSTS hosts.toml\nTEST t 1 MAX=1\n  SETUP @client1,client2 echo no luck; test $APHOST != client2\n"
        "  EXEC @client1 true\nDONE\n",
    )
    done = called("run", "script.ap", "-o", str(out(lab)), cwd=lab.directory, check=4)
    assert re.search(r"host client2: .*\b1: no luck", done.stderr)


def test_a_barrier_inside_the_workers_holds_over_all_hosts(lab: Lab) -> None:
    lab.write()
    write(
        lab,
        "HOSTS hosts.toml\nTEST t 2\n"
        "  EXEC @client1,client2 sh -c '[ $APHOST = client1 ] || sleep 1.5; aptime --barrier sleep 1.2'\nDONE\n",
    )
    results = out(lab)
    called("run", "script.ap", "-o", str(results), cwd=lab.directory)
    for trial in (1, 2):
        rows = [row for row in lines(results, "t") if row["trial"] == trial]
        own = [row["start_ns"] - row["offset_ns"] for row in rows]
        ends = [at + 1e9 * row["metrics"]["elapsed"][0] for at, row in zip(own, rows, strict=True)]
        assert max(own) < min(ends), "who had slept before is waited for"


def test_a_barrier_that_one_host_never_reaches_ends_the_trial(lab: Lab) -> None:
    lab.write()
    write(
        lab,
        "HOSTS hosts.toml\nTEST t 1 MAX=1\n"
        "  EXEC @client1,client2 sh -c '[ $APHOST = client1 ] && exit 0; aptime --barrier true'\nDONE\n",
    )
    done = called("run", "script.ap", "-o", str(out(lab)), cwd=lab.directory, check=4)
    assert re.search(r"\bclient1 ended .*\bbarrier\b", done.stderr)


def test_a_killed_etude_leaves_nothing_on_the_hosts_and_nothing_here_for_long(lab: Lab) -> None:
    hosts = lab.write()
    flag = lab.directory / "under-way"
    flag.unlink(missing_ok=True)
    write(lab, f"HOSTS hosts.toml\nTEST t 1\n  EXEC @client1 sh -c 'echo $$ > {flag}; sleep 1000'\nDONE\n")
    run = started(lab, out(lab))
    await_file(flag)
    assert lab.left()
    # Other tests, beside this one, have hosts of their own.
    held = [path.resolve() for path in Path(f"/proc/{run.pid}/fd").iterdir()]
    private = [path.parent for path in held if path.name == "said"]
    run.kill()
    run.communicate()
    nothing_left(lab)
    assert private
    called("hosts", str(hosts), cwd=lab.directory)
    assert [path for path in private if path.exists()] == []


def test_an_interrupted_run_cleans_up_there_and_can_be_gone_on_with(lab: Lab) -> None:
    lab.write(measure=f'["{sshd(lab)}"]')
    flag, once = lab.directory / "under-way", lab.directory / "cleaned"
    for path in (flag, once):
        path.unlink(missing_ok=True)
    write(
        lab,
        f"HOSTS hosts.toml\nTEST t 2\n  EXEC @client1,local sh -c 'touch {flag}; [ -e {once} ] || exec sleep 1000'\n"
        f"  CLEANUP @client1 touch {once}\nDONE\n",
    )
    results = out(lab)
    run = started(lab, results)
    await_file(flag)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert once.exists()
    assert [row["why"] for row in lines(results, "t")] == ["cancelled", "cancelled"]
    nothing_left(lab)
    called("run", "--resume", str(results), cwd=lab.directory)
    assert [row["kept"] for row in lines(results, "t")] == [False, False, True, True, True, True]
    assert experiment(results)["sittings"][1]["hosts"]["client1"]["name"] == "client1"


def test_what_is_measured_of_a_host_needs_no_workers_there(lab: Lab, server: subprocess.Popen[bytes]) -> None:
    lab.write("server", measure=f'["{echod(lab)}", "none"]')
    write(lab, f"HOSTS hosts.toml\nTEST t 2\n  EXEC {client(lab, 3)}\nDONE\n")
    results = out(lab)
    called("run", "script.ap", "-o", str(results), cwd=lab.directory)
    for row in lines(results, "t"):
        assert row["host"] == os.uname().nodename
        assert row["metrics"][f"server.{echod(lab)}.cpu"][0] > 0
        value, unit, why = row["metrics"]["server.none.cpu"]
        assert (value, unit) == (None, "s")
        assert "no process" in why


def test_what_a_killed_keeper_left_is_removed_by_the_next_run(lab: Lab) -> None:
    path = lab.write("client1")
    work = lab["client1"].directory / "work"
    gone = subprocess.run(["true"], check=True) and "999999 1 no-such-boot\n"
    for name, text in {"etude-remote-1-1": gone, "etude-remote-2": f"{os.getpid()} 1 x\n"}.items():
        (work / name).mkdir()
        (work / name / "keeper").write_text(text)
    (work / "other").mkdir()
    done = called("hosts", str(path), cwd=lab.directory)
    assert "2 left by" in done.stdout
    assert [Path(left).name for left in lab.left()] == ["other"]
    (work / "other").rmdir()


def test_hosts_tells_of_each_host_in_a_line(lab: Lab) -> None:
    path = lab.write(measure=f'["{sshd(lab)}"]')
    done = called("hosts", str(path), cwd=lab.directory)
    told = done.stdout.splitlines()
    assert [line.split()[:2] for line in told] == [["server", "ok"], ["client1", "ok"], ["client2", "ok"]]
    for line in told:
        assert re.search(r"Linux \S+, x86_64, \d+ CPUs, \d+\.\d GB ", line), line
        assert re.search(r"; clock [+-]\d\S* ms ± \d\S* ms", line), line
        assert re.search(rf", [1-9]\d* x {sshd(lab)}", line), line
    nothing_left(lab)


def refusal(lab: Lab, path: Path, within_s: float = 40) -> str:
    """What `etude hosts` says of the only host of a file, which cannot be had."""
    begun = time.monotonic()
    done = called("hosts", str(path), cwd=lab.directory, check=5)
    assert "Traceback" not in done.stderr
    assert time.monotonic() - begun < within_s
    (line,) = done.stdout.splitlines()
    assert line.split()[1] == "FAILED"
    return line


def test_a_host_that_is_unknown_or_refuses_is_told_so(lab: Lab) -> None:
    assert "(address): " in refusal(lab, lab.write("client1", address='"no-such-host.invalid"'))
    assert "(port): " in refusal(lab, lab.write("client1", port="2223", patience='"1 s"'))
    assert "(key): " in refusal(lab, lab.write("client1", identity='"host_key"'))
    assert "(key): Host key" in refusal(
        lab, lab.write("client1", known_hosts='"id.pub"', options='["StrictHostKeyChecking=yes"]')
    )


def test_a_host_that_hangs_is_given_up_in_time(lab: Lab) -> None:
    machine = lab["client1"]
    path = lab.write("client1", connect_timeout='"1 s"', patience='"1 s"')
    machine.cut()
    try:
        assert re.search("time[d]? ?out|No route", refusal(lab, path))
    finally:
        machine.cut(down=False)
    machine.signal_all(signal.SIGSTOP)
    try:
        assert re.search("time[d]? ?out|no answer within", refusal(lab, path))
    finally:
        machine.signal_all(signal.SIGCONT)
    nothing_left(lab)


def test_a_directory_in_which_nothing_can_be_made_is_refused(lab: Lab) -> None:
    machine = lab["client1"]
    assert "is no directory" in refusal(lab, lab.write("client1", directory='"/no/such"'))
    small = lab.directory / "small"
    small.mkdir()
    path = lab.write("client1", directory=f'"{small}"')
    machine.inside("mount", "-t", "tmpfs", "-o", "size=1m", "etude", str(small))
    try:
        assert "1.0 MB free" in refusal(lab, path)
        machine.inside("sh", "-c", f"head -c 1048576 /dev/zero > {small}/filler")
        assert "No space left" in refusal(lab, path)
        assert machine.seen(small) == ["filler"]
        machine.inside("mount", "-o", "remount,ro", str(small))
        assert "Read-only" in refusal(lab, path)
        machine.inside("umount", str(small))
        machine.inside("mount", "-t", "tmpfs", "-o", "noexec", "etude", str(small))
        assert "ermission denied" in refusal(lab, path)
        assert machine.seen(small) == []
    finally:
        machine.inside("umount", str(small))


def pretend(lab: Lab, name: str, **answers: str) -> None:
    """Let a host say something else of itself: its sshd is started with a PATH in which `uname` is ours."""
    machine = lab[name]
    assert machine.sshd is not None
    own = machine.directory / "bin"
    own.mkdir(exist_ok=True)
    cases = "".join(f"-{option}) echo {text};; " for option, text in answers.items())
    (own / "uname").write_text(f'#!/bin/sh\ncase $1 in {cases}*) exec /usr/bin/uname "$@";; esac\n')
    (own / "uname").chmod(0o755)
    machine.sshd.terminate()
    machine.sshd.wait()
    machine.start_sshd("-o", f"SetEnv=PATH={own}:/usr/bin:/bin:/usr/sbin:/sbin")


def test_another_architecture_and_an_old_kernel_are_refused(lab: Lab) -> None:
    """They only say so: what a real one of those does is not seen here."""
    path = lab.write("client2")
    try:
        pretend(lab, "client2", m="aarch64")
        assert re.search(r"\baarch64\b.*\bx86_64\b", refusal(lab, path))
        pretend(lab, "client2", r="4.19.0-27-amd64")
        assert re.search(r"Linux 4\.19\.0-27-amd64\b.*\b5\.4\b", refusal(lab, path))
        pretend(lab, "client2", s="FreeBSD")
        assert "is no Linux" in refusal(lab, path)
    finally:
        machine = lab["client2"]
        assert machine.sshd is not None
        machine.sshd.terminate()
        machine.sshd.wait()
        machine.start_sshd()
    nothing_left(lab)


def test_a_hosts_file_with_errors_is_refused_before_anything_runs(lab: Lab) -> None:
    (lab.directory / "hosts.toml").write_text('[hosts.a]\naddress = "x"\nadress = "y"\n')
    write(lab, "HOSTS hosts.toml\nTEST t 1\n  EXEC @a true\nDONE\n")
    done = called("run", "script.ap", "-o", str(out(lab)), cwd=lab.directory, check=3)
    assert re.search(r"hosts\.toml:3: \[hosts\.a\] adress .*\baddress\?", one_line(done.stderr))
    lab.write()
    write(lab, "HOSTS hosts.toml\nTEST t 1\n  EXEC @client3 true\nDONE\n")
    done = called("run", "--check", "script.ap", cwd=lab.directory, check=3)
    assert re.search(r"script\.ap:3: .*'client3'.* client1, client2, local, server", done.stderr)


def test_the_page_of_other_hosts_runs_as_it_is_printed(lab: Lab) -> None:
    page = (DOCS / "howto" / "remote.md").read_text()
    (text,) = re.findall(r"^```ap\n# clients.ap\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lab.write()
    (lab.directory / "clients.ap").write_text(text)
    (command,) = re.findall(r"^    \$ etude (.*)$", page, re.MULTILINE)
    called(*command.split(), cwd=lab.directory)
    results = lab.directory / "results"
    assert [row["host"] for row in lines(results, "clients")] == ["client1"] * 2 + ["client2"] * 2 + (
        ["client1"] * 2 + ["client2"] * 2
    ) * 2
    assert (results / "clients" / "logs" / "0003-client1-trial").read_text() == "3\n"


def test_the_hosts_file_of_the_page_is_one(tmp_path: Path) -> None:
    page = (DOCS / "howto" / "remote.md").read_text()
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "hosts.toml").write_text(text)
    (tmp_path / "lab-key").touch()
    assert list(read_hosts(tmp_path / "hosts.toml")) == ["server", "client1"]
