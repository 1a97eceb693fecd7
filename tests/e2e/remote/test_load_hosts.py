"""A search whose load comes from several hosts: network namespaces with an sshd each, and a server of a known peak."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from etude.machine.remote import synchronized_start
from etude.peak.harnesses.known_server import Queue
from etude.peak.harnesses.spec import read_harness
from etude.peak.task import Criterion, Trial, TrialRequest
from etude.peak.window import joined_windows as joined
from etude.program import engine_path
from support.hosts import Lab, laboratory
from support.real import ETUDE, called, one_line, processes_with

pytestmark = [
    pytest.mark.serial,
    pytest.mark.needs_root,
    pytest.mark.needs_program("sshd", package="openssh-server"),
    pytest.mark.needs_program("ip", package="iproute2"),
]
QUEUE = Queue(4, "exponential", 0.010)
LIMIT_S = 0.025
PORT = 18420
HOSTS = ("client1", "client2", "client3")

HARNESS = """
[goal]
mean = "25 ms"
[load]
lowest = 20
highest = 800
runlength = "RUNLENGTH"
[promise]
within = "25 %"
confidence = "90 %"
budget = "90 s"
[commands]
load = '''exec LOAD'''
grace = "1 s"
load_timeout = "5 s"
[reader]
kind = "windows"
[generator]
outstanding = 200
hosts = "hosts.toml"
"""
LOAD = (
    "etude load --json --url http://ADDRESS:18420/ --rate {load} --seconds {runlength} --seed {seed} "
    "--window 0.5 --drain 1 --outstanding ${CAP:-200}"
)
CLIENTS = LOAD.replace("--rate", "--clients").replace(" --outstanding ${CAP:-200}", "")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("load-hosts")
    with laboratory(directory, ("server", *HOSTS)) as found:
        yield found


@pytest.fixture(autouse=True)
def _lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an engine may be told later than by default when to start."""
    monkeypatch.setattr(synchronized_start, "MIN_LEAD_NS", 500_000_000)


@pytest.fixture
def server(lab: Lab) -> Iterator[None]:
    """The known server, which listens."""
    machine = lab["server"]
    process = machine.start(
        *(engine_path(), "known-server", "--workers", "4", "--law", QUEUE.law, "--mean-ms", "10"),
        *("--listen", f"{machine.address}:{PORT}"),
    )
    until = time.monotonic() + 10
    while (
        f":{PORT} " not in subprocess.run(machine.words("ss", "-ltn"), capture_output=True, text=True).stdout
    ):
        assert time.monotonic() < until
        time.sleep(0.02)
    yield
    process.terminate()
    process.wait()


def harness(lab: Lab, runlength: str = "4 s", load: str = LOAD) -> str:
    text = HARNESS.replace("LOAD", load).replace("RUNLENGTH", runlength)
    return text.replace("ADDRESS", lab["server"].address)


def write_hosts(lab: Lab, **environment: str) -> None:
    """The first two hosts; the second has further variables."""
    path = lab.write(*HOSTS[:2])
    table = "".join(f'{name} = "{value}"\n' for name, value in environment.items())
    path.write_text(f"{path.read_text()}[hosts.client2.environment]\n{table}")


def tried(lab: Lab, load: float, runlength_s: float = 2.0, text: str = "") -> Trial:
    """One trial, outside of a search."""
    found = read_harness(lab.directory / "h.toml", text or harness(lab))
    with found.bench({}, lab.directory / "place") as bench:
        return bench.run(TrialRequest(load, runlength_s, "test"), lambda windows: False)


def nothing_left(lab: Lab) -> None:
    """What was made on the hosts, and what was started there, goes as soon as the connections have ended."""
    until = time.monotonic() + 10
    while left := lab.left() or [
        pid for name in HOSTS for pid in processes_with(str(lab[name].directory / "work"))
    ]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def test_the_found_peak_is_the_known_one(lab: Lab, server: None) -> None:
    (lab.directory / "peak.toml").write_text(harness(lab))
    lab.write(*HOSTS[:2])
    done = called("peak", "peak.toml", "-o", "known", "--json", "--quiet", cwd=lab.directory, check=None)
    (search,) = json.loads(done.stdout)["searches"]
    truth = QUEUE.peak(Criterion("mean", LIMIT_S)).value
    assert search["rate"] == pytest.approx(truth, rel=0.3), search
    assert search["low"] <= search["rate"] <= search["high"]
    for trial in search["trials"]:
        assert [part["host"] for part in trial["generators"]] == list(HOSTS[:2])
        assert trial["offered"] == pytest.approx(trial["load"], rel=0.3)
    again = called("peak", "known", "--json", "--quiet", cwd=lab.directory, check=None)
    assert json.loads(again.stdout)["searches"][0]["trials"] == search["trials"]
    nothing_left(lab)


def test_each_host_offers_its_share_and_windows_hold_all(lab: Lab, server: None) -> None:
    lab.write(*HOSTS)
    trial = tried(lab, 150.0, 3.0)
    assert (trial.ended, trial.limited) == ("whole", None), trial.note
    whole = joined(trial.windows)
    assert len(trial.windows) == 6
    assert whole.duration_s == pytest.approx(3.0)
    assert whole.offered == pytest.approx(450, abs=5 * 450**0.5)
    assert whole.completed == sum(int(w.latency.counts.sum()) for w in trial.windows if w.latency is not None)
    assert [part.host for part in trial.generators] == list(HOSTS)
    assert all(part.busy is not None and 0 <= part.busy < 1 for part in trial.generators)
    assert trial.note.count("asked 50/s") == 3
    began_s = [part.began_s for part in trial.generators]
    assert min(began_s) == 0
    assert max(began_s) < 0.3, "a tenth of the run: else the trial were not used"
    nothing_left(lab)


def test_few_clients_take_few_hosts(lab: Lab, server: None) -> None:
    lab.write(*HOSTS)
    text = harness(lab, load=CLIENTS).replace("lowest = 20", 'lowest = 1\nunit = "clients"')
    trial = tried(lab, 2.0, text=text)
    assert (trial.ended, trial.limited) == ("whole", None), trial.note
    assert [part.host for part in trial.generators] == list(HOSTS[:2])
    # Each of the two is served at once: 10 ms on average.
    assert joined(trial.windows).completed == pytest.approx(400, rel=0.3)
    nothing_left(lab)


def test_a_host_whose_generator_is_the_limit_is_named(lab: Lab, server: None) -> None:
    write_hosts(lab, CAP="1")
    (lab.directory / "capped.toml").write_text(harness(lab, "3 s"))
    words = (
        "peak",
        "capped.toml",
        "-o",
        "capped",
        "--json",
        "--quiet",
        "--seed-load",
        "500",
        "--budget",
        "20s",
    )
    done = called(*words, cwd=lab.directory, check=None)
    (search,) = json.loads(done.stdout)["searches"]
    short = [trial for trial in search["trials"] if trial["limited"] == "generator"]
    assert short
    for trial in short:
        limits = {part["host"]: part["limited"] for part in trial["generators"]}
        assert limits["client2"] == "generator"
    whats = {finding["kind"]: finding["what"] for finding in search["findings"]}
    assert "client2" in whats["generator-limited"]
    assert "client1" not in whats["generator-limited"]
    nothing_left(lab)


def test_a_host_that_dies_in_mid_trial_makes_it_one_without_load_and_the_next_has_it_again(
    lab: Lab, server: None
) -> None:
    lab.write(*HOSTS[:2])
    found = read_harness(lab.directory / "h.toml", harness(lab))
    with found.bench({}, lab.directory / "place") as bench:
        good = bench.run(TrialRequest(60.0, 1.0, "test"), lambda windows: False)

        def killed(windows: object) -> bool:
            lab["client2"].signal_sessions(signal.SIGKILL)
            return False

        lost = bench.run(TrialRequest(60.0, 20.0, "test"), killed)
        after = bench.run(TrialRequest(60.0, 1.0, "test"), lambda windows: False)
    assert (good.ended, lost.ended, after.ended) == ("whole", "not-made", "whole"), (lost.note, after.note)
    assert "client2" in lost.note
    assert lost.cost_s < 20
    nothing_left(lab)


def test_a_load_command_that_fails_on_one_host_is_named_with_its_message(lab: Lab, server: None) -> None:
    write_hosts(lab, WRONG="1")
    text = harness(lab, load='sh -c \'test -z "$WRONG" || { echo no room >&2; exit 3; }; exec ' + LOAD + "'")
    (lab.directory / "h.toml").write_text(text)
    done = called("peak", "h.toml", "-o", "failing", "--quiet", cwd=lab.directory, check=4)
    message = one_line(done.stderr)
    assert "host client2" in message
    assert "3: no room" in message
    nothing_left(lab)


def test_a_host_that_ends_early_makes_a_trial_that_is_not_used(lab: Lab, server: None) -> None:
    write_hosts(lab, SHORT="1")
    trial = tried(lab, 60.0, 3.0, harness(lab, load=LOAD.replace("{runlength}", "${SHORT:-{runlength}}")))
    assert trial.ended == "not-made", trial.note
    assert "host client2 ended" in trial.note
    nothing_left(lab)


def test_the_address_of_this_machine_is_what_the_hosts_see(lab: Lab) -> None:
    lab.write(*HOSTS[:2])
    ours = lab["client1"].address.rsplit(".", 1)[0] + ".1"
    window = '{"duration_s": 1, "completed": {load}, "mean_s": 0.001}'
    load = f"sh -c 'test {{server}} = {ours} || exit 9; sleep {{runlength}}; echo \"$0\"' '{window}'"
    trial = tried(lab, 60.0, 1.0, harness(lab, load=load))
    assert trial.ended == "whole", trial.note
    assert [window.completed for window in trial.windows] == [60]
    nothing_left(lab)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["INT", "TERM", "KILL"]
)
def test_a_signal_ends_all_of_them(lab: Lab, server: None, number: int) -> None:
    lab.write(*HOSTS[:2])
    (lab.directory / "long.toml").write_text(harness(lab, "60 s"))
    begun = subprocess.Popen(
        [ETUDE, "peak", "long.toml", "-o", f"long-{number}", "--policy", "strawman"],
        cwd=lab.directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    marker = f"--url http://{lab['server'].address}:{PORT}/".replace(" ", "\0")
    until = time.monotonic() + 30
    while len(loads := processes_with(marker)) < 2:
        assert begun.poll() is None, loads
        assert time.monotonic() < until, loads
        time.sleep(0.05)
    os.kill(begun.pid, number)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == (-number if number == signal.SIGKILL else 128 + number), said
    nothing_left(lab)
    assert not processes_with(marker)


def test_a_host_that_cannot_be_had_is_named_before_anything_is_measured(lab: Lab) -> None:
    lab.write("client1", port="2223", patience='"0 s"')
    (lab.directory / "nobody.toml").write_text(harness(lab))
    done = called("peak", "nobody.toml", "-o", "nobody", "--quiet", cwd=lab.directory, check=5)
    assert "host client1" in one_line(done.stderr)
    assert "(port)" in done.stderr
    nothing_left(lab)


def test_the_option_does_the_same_for_a_url(lab: Lab, server: None) -> None:
    lab.write(*HOSTS[:2])
    url = f"http://{lab['server'].address}:{PORT}/"
    words = ("peak", "--url", url, "--hosts", "hosts.toml", "--mean", "25ms", "--loads", "20..800")
    words += ("--runlength", "2s", "--budget", "12s", "-o", "url", "--json", "--quiet")
    done = called(*words, cwd=lab.directory, check=None)
    (search,) = json.loads(done.stdout)["searches"]
    parts: list[Any] = [part["host"] for part in search["trials"][0]["generators"]]
    assert parts == list(HOSTS[:2])
    assert Path(lab.directory / "url" / "experiment.json").exists()
    nothing_left(lab)
