"""A bench of commands, with a generator that is a line of shell: what it makes of good ones, and of each bad one."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from etude.errors import CommandFailed
from etude.peak.harnesses.spec import read_harness
from etude.peak.search import EarlyStop
from etude.peak.task import Trial, TrialRequest
from etude.peak.window import Window
from support.real import processes_with

pytestmark = [pytest.mark.quick, pytest.mark.beside]

WINDOW = (
    '{\\"duration_s\\": 0.1, \\"offered\\": 10, \\"started\\": %d, \\"completed\\": %d, \\"mean_s\\": 0.01}'
)
GOOD = f"echo '{WINDOW % (10, 10)}'"


def toml(tmp_path: Path, commands: str, more: str = "") -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(
        f'[goal]\nmean = "40 ms"\n[load]\nlowest = 1\nhighest = 1000\n[reader]\nkind = "windows"\n{more}\n'
        f'[commands]\nload_timeout = "1 s"\ngrace = "300 ms"\nready_timeout = "2 s"\n{commands}\n'
    )
    return path


def never(windows: Sequence[Window]) -> bool:
    return False


def trials(
    path: Path, tmp_path: Path, count: int = 1, enough: EarlyStop = never, load: float = 100.0
) -> list[Trial]:
    with read_harness(path).bench({}, tmp_path / "place") as bench:
        found = [bench.run(TrialRequest(load, 1.0, "test"), enough) for _ in range(count)]
    assert not processes_with(str(tmp_path)), "nothing is left running"
    return found


def test_several_loads_share_one_start_and_a_trial_says_what_was_offered(tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        f'start = "echo started >> {{here}}/log; exec sleep 1000 # {tmp_path}"\n'
        'ready = "test -e {here}/log"\ndrain = "echo drained >> {here}/log"\nstop = "echo stopped >> {here}/log"\n'
        f'load = "for i in 1 2 3; do {GOOD}; done; echo load {{load}} >> {{here}}/log"',
    )
    first, second = trials(path, tmp_path, 2)
    assert (tmp_path / "log").read_text().split() == [
        "started",
        "load",
        "100",
        "drained",
        "load",
        "100",
        "drained",
        "stopped",
    ]
    assert first.ended == "whole"
    assert first.limited is None
    assert [w.completed for w in first.windows] == [10, 10, 10]
    assert re.findall(r"\b([\d.]+)/s", second.note) == ["100", "100", "100"]  # asked, sent, completed
    assert "failed 0" in second.note
    assert first.cost_s > 0
    assert first.machine is not None
    assert 0 <= (first.machine.steal or 0.0) <= 1


def test_a_trial_in_pieces_is_several_runs_and_ends_between_them(tmp_path: Path) -> None:
    commands = (
        f'pieces = 4\nwarmup = "2 s"\nload = "echo {{runlength}} {{seed}} {{load}} >> {{here}}/log; {GOOD}"'
    )
    path = toml(tmp_path, commands)
    whole, early = (
        trials(path, tmp_path, enough=enough, load=load)[0]
        for enough, load in ((never, 100.0), (lambda windows: len(windows) >= 2, 200.0))
    )
    ran = [tuple(map(int, line.split())) for line in (tmp_path / "log").read_text().splitlines()]
    # The warm-up, of which no window is kept, then a quarter of a second each, which is made one.
    assert [(length, load) for length, _, load in ran] == [
        (2, 50),
        *[(1, 100)] * 4,
        (2, 100),
        *[(1, 200)] * 2,
    ]
    assert len({seed for _, seed, _ in ran[:5]}) == 5
    assert (whole.ended, len(whole.windows)) == ("whole", 4)
    assert (early.ended, len(early.windows)) == ("early", 2)
    assert whole.machine is not None


WARM = (
    'warmup = "2 s"\nready = "echo ready >> {here}/log"\ndrain = "echo drained >> {here}/log"\n'
    f'load = "echo {{runlength}} {{load}} {{seed}} >> {{here}}/log; for i in 1 2 3; do {GOOD}; done"\n'
)


def lines(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_a_warm_up_is_a_run_at_half_the_load_whose_backlog_is_gone_before_the_trial(tmp_path: Path) -> None:
    (trial,) = trials(toml(tmp_path, WARM), tmp_path)
    ready, *ran = lines(tmp_path)
    assert (ready, [line.split()[:2] for line in ran]) == (
        "ready",
        [["2", "50"], ["drained"], ["ready"], ["1", "100"], ["drained"], ["ready"]],
    )
    assert ran[3].split()[2] == "1", "the seed of the trial is the same without a warm-up"
    assert (trial.ended, len(trial.windows)) == ("whole", 3)
    assert re.findall(r"\b([\d.]+)/s", trial.note) == ["100", "100", "100"]  # asked, sent, completed


def test_a_warm_up_at_the_whole_load_is_the_beginning_of_the_trial(tmp_path: Path) -> None:
    for load in (WARM + "warmup_load = 1.0", WARM.replace("{runlength}", "3")):
        (tmp_path / "log").unlink(missing_ok=True)
        (trial,) = trials(toml(tmp_path, load), tmp_path)
        assert [line.split()[:2] for line in lines(tmp_path)] == [
            ["ready"],
            ["3", "100"],
            ["drained"],
            ["ready"],
        ]
        # Windows of a tenth of a second, of which two seconds are left out.
        assert trial.windows == ()


def test_clients_of_a_warm_up_are_whole_and_one_at_least(tmp_path: Path) -> None:
    path = toml(tmp_path, WARM)
    path.write_text(path.read_text().replace("[load]\n", '[load]\nunit = "clients"\n'))
    for clients, expected in ((1.0, "1"), (5.0, "2")):
        (tmp_path / "log").unlink(missing_ok=True)
        trials(path, tmp_path, load=clients)
        assert [line.split()[1] for line in lines(tmp_path) if " " in line] == [expected, f"{clients:g}"]


def test_a_system_that_does_not_recover_from_its_warm_up_is_started_anew(tmp_path: Path) -> None:
    drain = 'drain = "test $(wc -l < {here}/log) -ne 2"'
    commands = WARM.replace('drain = "echo drained >> {here}/log"', drain)
    first, second = trials(toml(tmp_path, commands), tmp_path, 2)
    # ready, warm-up, drain in vain; ready, warm-up, ready, trial, ready.
    assert (first.ended, first.windows, second.ended) == ("died", (), "whole")
    assert "warm-up at 50" in first.note


def test_a_warm_up_whose_load_command_fails_makes_no_trial(tmp_path: Path) -> None:
    commands = WARM.replace('load = "', 'load = "test {load} -ne 50 || exit 7; ')
    assert trials(toml(tmp_path, commands), tmp_path, load=300)[0].ended == "whole"
    with pytest.raises(CommandFailed, match=r"warm-up: .* 7\b"):
        trials(toml(tmp_path, commands), tmp_path, load=1.0)


def test_a_trial_is_ended_early_by_its_windows_with_all_that_it_started(tmp_path: Path) -> None:
    load = f"while :; do {GOOD}; sleep 0.02; done & sleep 1000; : {{load}}"
    (trial,) = trials(toml(tmp_path, f'load = "{load}"'), tmp_path, enough=lambda windows: len(windows) >= 3)
    assert trial.ended == "early"
    assert len(trial.windows) >= 3


def test_a_generator_that_does_not_heed_sigterm_is_killed(tmp_path: Path) -> None:
    load = f"trap '' TERM; {GOOD}; while :; do sleep 0.1; done; : {{load}}"
    (trial,) = trials(toml(tmp_path, f'load = "{load}"'), tmp_path, enough=lambda windows: True)
    assert trial.ended == "early"


def test_less_than_asked_is_the_servers_limit_only_with_all_outstanding(tmp_path: Path) -> None:
    """100 requests a second of 10 ms each keep one outstanding."""
    line = f"sleep 0.3; for i in $(seq 30); do echo '{WINDOW % (10, 10)}'; done; : {{load}}"
    path = toml(tmp_path, f'load = "{line}"', "[generator]\noutstanding = 1")
    assert trials(path, tmp_path, load=200)[0].limited == "server"
    path = toml(tmp_path, f'load = "{line}"', "[generator]\noutstanding = 50")
    (trial,) = trials(path, tmp_path, load=200)
    assert trial.limited == "generator"
    assert not trial.of_server


BAD = [
    pytest.param(
        'start = "exit 3"\nready = "false"\nload = "x {load}"', "start: the system ended with 3", id="ends"
    ),
    pytest.param(
        'start = "exec sleep 99"\nready = "false"\nload = "x {load}"', "ready: the system was not", id="never"
    ),
    pytest.param(
        'ready = "sleep 99"\nload = "x {load}"', "ready: the system was not ready within 2 s", id="hangs"
    ),
    pytest.param(
        'load = "echo no such option >&2; exit 2; {load}"', "ended with 2: no such option", id="fails"
    ),
    pytest.param('load = "true {load}"', "what it printed ends with 'nothing'", id="prints nothing"),
    pytest.param('load = "echo garbage {load}"', "ends with 'garbage 1': expected windows", id="garbage"),
    pytest.param('load = "exec sleep 1000 {load}"', "did not end within 1 s more", id="load hangs"),
]


@pytest.mark.parametrize(("commands", "said"), BAD)
def test_a_harness_that_cannot_work_is_one_line(tmp_path: Path, commands: str, said: str) -> None:
    path = toml(tmp_path, commands)
    with pytest.raises(CommandFailed) as caught:
        trials(path, tmp_path, load=1.0)
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert not processes_with(f"{tmp_path}/place")


@pytest.mark.parametrize("noticed", ["exit 1", "true"], ids=["the load fails", "the load ends well"])
def test_a_system_that_dies_under_load_is_started_anew_for_the_next(tmp_path: Path, noticed: str) -> None:
    path = toml(
        tmp_path,
        'start = "echo $$ > pid; echo s >> {here}/starts; exec sleep 1000"\nready = "kill -0 $(cat pid)"\n'
        f'load = "{GOOD}; test {{load}} -lt 500 || {{ kill -9 $(cat pid); sleep 0.1; {noticed}; }}"',
    )
    with read_harness(path).bench({}, tmp_path / "place") as bench:
        died = bench.run(TrialRequest(600, 1.0, ""), never)
        after = bench.run(TrialRequest(100, 1.0, ""), never)
    assert died.ended == "died"
    assert died.limited is None
    assert after.ended == "whole"
    assert (tmp_path / "starts").read_text().split() == ["s", "s"]


def test_a_load_command_that_fails_on_a_living_system_tells_nothing_of_it(tmp_path: Path) -> None:
    path = toml(tmp_path, f'load = "{GOOD}; test {{load}} -lt 500"')
    (trial,) = trials(path, tmp_path, load=600)
    assert trial.ended == "not-made"
    assert not trial.of_server


def test_a_failed_load_command_is_quoted_in_full(tmp_path: Path) -> None:
    wrong = "{ echo disk full: 12 GB needed >&2; echo made nothing >&2; exit 3; }"
    path = toml(tmp_path, f'load = "test {{load}} -lt 500 || {wrong}; {GOOD}"')
    (trial,) = trials(path, tmp_path, load=600)
    assert trial.ended == "not-made"
    assert "disk full: 12 GB needed; made nothing" in trial.note


def test_a_system_that_loses_processes_to_the_oom_killer_did_not_sustain_the_load(tmp_path: Path) -> None:
    path = toml(tmp_path, f'load = "echo oom_kill 2 > {{here}}/memory.events; {GOOD}; : {{load}}"')
    with read_harness(path).bench({}, tmp_path / "place", (), [str(tmp_path)]) as bench:
        first, second = (bench.run(TrialRequest(100, 1.0, ""), never) for _ in range(2))
    assert (first.ended, second.ended) == ("died", "whole")
    assert "OOM killer" in first.note


def test_what_a_killed_search_left_running_is_ended_first(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    started = threading.Event()
    left = os.spawnve(
        os.P_NOWAIT, "/bin/sleep", ["sleep", "1000"], {**os.environ, "ETUDE_PEAK_PLACE": str(place.resolve())}
    )
    started.set()
    trials(toml(tmp_path, f'load = "{GOOD}; : {{load}}"'), tmp_path)
    assert os.WIFSIGNALED(os.waitpid(left, 0)[1])


def test_an_interrupt_ends_all_that_was_started(tmp_path: Path) -> None:
    def interrupt(windows: Sequence[Window]) -> bool:
        raise KeyboardInterrupt

    path = toml(tmp_path, f'start = "exec sleep 1000 # {tmp_path}"\nload = "{GOOD}; sleep 1000; : {{load}}"')
    with pytest.raises(KeyboardInterrupt):
        trials(path, tmp_path, enough=interrupt)
    assert not processes_with(str(tmp_path))


@pytest.mark.parametrize("word", ["start", "ready", "load", "drain", "stop"])
def test_what_a_command_leaves_running_with_an_environment_of_its_own_is_ended(
    tmp_path: Path, word: str
) -> None:
    left = f"env -i setsid sh -c 'sleep 1000; echo {tmp_path}' >/dev/null 2>&1 & "
    lines = {"load": GOOD + "; : {load}", word: left + (GOOD + "; : {load}" if word == "load" else "true")}
    path = toml(tmp_path, "\n".join(f'{name} = "{line}"' for name, line in lines.items()))
    trials(path, tmp_path)


def test_what_is_started_by_the_tool_itself_is_no_orphan(tmp_path: Path) -> None:
    path = toml(tmp_path, f'fresh = true\nload = "{GOOD}; : {{load}}"')
    before = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        with read_harness(path).bench({}, tmp_path / "place") as bench:
            beside = subprocess.Popen(["sleep", "1000"])
            bench.run(TrialRequest(100.0, 1.0, "test"), never)
        assert (before.poll(), beside.poll()) == (None, None)
    finally:
        for own in (before, beside):
            own.kill()
            own.wait()


def test_a_load_command_that_a_signal_ended_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        trials(toml(tmp_path, 'load = "kill -9 $$; {load}"'), tmp_path, load=1.0)


def test_a_command_that_removes_its_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="place: is gone"):
        trials(toml(tmp_path, f'load = "rm -r {{place}}; {GOOD}; : {{load}}"'), tmp_path, 2)
