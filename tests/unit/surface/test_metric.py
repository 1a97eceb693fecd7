"""A metric of a command or a script as the response: real processes of a few ms each; of time, faked ones."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.engine import Launch
from etude.errors import CommandFailed, InputError, MachineRefuses
from etude.machine.resources.resource import Setting
from etude.results.reader import load_results
from etude.surface.metric import EXPERIMENT, Metric
from etude.surface.next_configuration import Visit
from etude.surface.response import ConfigurationRequest
from etude.surface.samples import Sample
from etude.surface.spec import MetricOf
from support.fakes import World

SCRIPT = """\
TEST nap 4
  EXEC sh -c "echo %n% >> {log}; sleep 0.00%n%"
DONE
"""

AGES = f"98765{os.getpid()}"
"""Seconds of a sleep that is known by them: of this process, not of a test that runs elsewhere on the machine."""


def asked(
    place: Path, left_s: float | None = None, setting: Setting | None = None, **levels: str
) -> ConfigurationRequest:
    return ConfigurationRequest(
        Visit((0,), None, None, ""), levels or {"n": "3"}, setting or Setting(), place, left_s
    )


def measured(of: MetricOf, place: Path, **members: object) -> Sample:
    return Metric(of, place).measure(asked(place / "cell", **members), lambda text: None)  # type: ignore[arg-type]


def measure_configuration(world: World, of: MetricOf, place: Path, **members: object) -> Sample:
    """Of engines that let no time pass."""
    metric = Metric(of, place, make_engine=world.make_engine, clock=lambda: world.elapsed_s)
    return metric.measure(asked(place / "cell", **members), lambda text: None)  # type: ignore[arg-type]


def command(text: str, **members: object) -> MetricOf:
    return MetricOf("elapsed", "lower", "s", command=text, **members)  # type: ignore[arg-type]


def test_a_command_is_repeated_until_its_mean_is_known(tmp_path: Path) -> None:
    found = measured(command("sleep 0.00{n}"), tmp_path)
    assert found.state == "measured"
    assert found.value is not None
    assert found.value > 0.003
    assert found.low <= found.value <= found.high
    assert found.trials >= 10
    assert found.cost_s >= 10 * 0.003


def test_factors_are_words_of_their_own_and_other_braces_are_the_shells(tmp_path: Path) -> None:
    text = 'x=1; echo {word} "${x}" {a,b} > out.txt'
    measured(command(text), tmp_path, word="a; $(false) 'c'")
    assert (tmp_path / "out.txt").read_text() == "a; $(false) 'c' 1 {a,b}\n"


def test_a_pattern_finds_the_metric_and_higher_is_a_rate(tmp_path: Path) -> None:
    of = MetricOf("speed", "higher", "1/s", command="echo speed {n} per s", pattern=r"speed (\d+)")
    found = measured(of, tmp_path, n="40")
    assert (found.state, found.value) == ("measured", pytest.approx(40.0))


def test_a_setup_comes_once_and_is_not_measured(tmp_path: Path) -> None:
    world = World({"echo x >> made3": 5.0, "/bin/sh": 0.01})
    found = measure_configuration(world, command("cat made{n}", setup="echo x >> made{n}"), tmp_path)
    assert world.story[0] == "echo x >> made3"
    assert world.story.count("echo x >> made3") == 1
    assert found.value == pytest.approx(0.01)


def test_commands_are_within_what_confines_them(tmp_path: Path) -> None:
    setting = Setting(words=("env", "ME=confined"), values={"volume": "/there"})
    measured(command("echo $ME {volume} {n} > out.txt"), tmp_path, setting=setting, n="1")
    assert (tmp_path / "out.txt").read_text() == "confined /there 1\n"


def dies_at(number: int) -> Callable[[int, World], None]:
    def die(now: int, world: World) -> None:
        if now == number:
            raise MachineRefuses("the engine died")

    return die


@pytest.mark.parametrize("text", ["cat {volume}/{n}", "cat {n}"], ids=["command", "setup"])
def test_an_interrupted_cell_is_measured_anew_with_the_resources_that_are_held_now(
    text: str, tmp_path: Path
) -> None:
    of = command(text, setup="make {volume}")
    former = Setting(values={"volume": "/former"})
    with pytest.raises(MachineRefuses):
        measure_configuration(
            World({"/bin/sh": 1.0, "make": 0.1}, before=dies_at(4)), of, tmp_path, setting=former
        )
    now = World({"/bin/sh": 0.01, "make": 0.1})
    found = measure_configuration(now, of, tmp_path, setting=Setting(values={"volume": "/now"}))
    assert found.trials >= 10
    assert "/former" not in str(now.log)
    rows = load_results(tmp_path / "cell" / EXPERIMENT).measurements["command"]
    assert {row.sitting for row in rows} == {1}


def test_an_interrupted_cell_with_the_same_resources_is_resumed(tmp_path: Path) -> None:
    setting = Setting(values={"volume": "/there"})
    with pytest.raises(MachineRefuses):
        measure_configuration(
            World({"/bin/sh": 1.0}, before=dies_at(4)), command("cat {n}"), tmp_path, setting=setting
        )
    measure_configuration(World({"/bin/sh": 0.01}), command("cat {n}"), tmp_path, setting=setting)
    assert [place.name for place in (tmp_path / "cell").iterdir()] == [EXPERIMENT]


def test_an_interrupted_script_is_measured_anew_with_the_resources_that_are_held_now(tmp_path: Path) -> None:
    of = script(tmp_path, SCRIPT.replace("{log}", "{log}%volume%"))
    measured(of, tmp_path, setting=Setting(values={"volume": "1"}))
    document = tmp_path / "cell" / EXPERIMENT / "experiment.json"
    known = json.loads(document.read_text())
    known["sittings"][-1]["how_ended"] = "SIGKILL"
    document.write_text(json.dumps(known))
    found = measured(of, tmp_path, setting=Setting(values={"volume": "2"}))
    assert found.trials == 4
    assert len((tmp_path / "log2").read_text().split()) >= 4


@pytest.mark.parametrize("text", ["exit 3", "no-such-program-{n}"])
def test_a_command_that_fails_fails_its_cell(text: str, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed) as error:
        measured(command(text), tmp_path)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value), "no option of etude bench"


def test_a_pattern_that_finds_nothing_fails_its_cell(tmp_path: Path) -> None:
    of = MetricOf("speed", "higher", "1/s", command="echo {n}", pattern=r"speed (\d+)")
    with pytest.raises(CommandFailed, match="speed"):
        measured(of, tmp_path)


@pytest.mark.parametrize("printed", ["0", "-3"])
def test_a_metric_that_is_not_above_0_fails_its_cell(printed: str, tmp_path: Path) -> None:
    of = MetricOf("x", "lower", "", command=f"echo {printed} '{{n}}'", pattern=r"(\S+) ")
    found = measured(of, tmp_path)
    assert found.state == "failed"
    assert "above 0" in found.why


def test_a_cells_budget_is_a_timeout(tmp_path: Path) -> None:
    world = World({"/bin/sh": {"elapsed": 1.0, "exit_status": None, "signal": 15, "timed_out": True}})
    found = measure_configuration(world, command("true {n}"), tmp_path, left_s=1.0)
    assert {launch.timeout_s for launch in world.log} == {1.0}
    assert (found.state, found.value) == ("failed", None)
    assert re.search(r"\b1 s$", found.why)
    assert not math.isfinite(found.high)


@pytest.mark.parametrize(("elapsed", "around"), [(0.4, 0.0), (0.1, 0.25)], ids=["measured", "around"])
def test_what_was_measured_before_the_time_was_over_counts(
    elapsed: float, around: float, tmp_path: Path
) -> None:
    """Be it over by what trials take, or by what is around them; the first of the three is a first run."""

    def trial(launch: Launch) -> float:
        world.elapsed_s += around
        return elapsed

    world = World({"/bin/sh": trial})
    found = measure_configuration(world, command("true {n}"), tmp_path, left_s=1.0)
    assert (found.state, found.trials, found.value) == ("measured", 2, pytest.approx(elapsed))


def test_a_cell_that_was_measured_already_is_not_measured_again(tmp_path: Path) -> None:
    """Étude was killed after the last trial, and before the cell was on disk."""
    of = command("echo x >> runs{n}")
    first = measured(of, tmp_path)
    runs = (tmp_path / "runs3").read_text()
    assert measured(of, tmp_path) == first
    assert (tmp_path / "runs3").read_text() == runs


def script(tmp_path: Path, text: str = SCRIPT) -> MetricOf:
    (tmp_path / "s.ap").write_text(text.format(log=tmp_path / "log"))
    return MetricOf("elapsed", "lower", "s", script="s.ap")


def test_a_script_gets_the_factors_and_its_place_may_be_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = script(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    found = Metric(of, tmp_path).measure(asked(Path("r"), n="5"), lambda text: None)
    assert found.state == "measured"
    assert (elsewhere / "r" / EXPERIMENT / "experiment.json").exists()
    runs = (tmp_path / "log").read_text()
    assert set(runs.split()) == {"5"}
    assert Metric(of, tmp_path).measure(asked(Path("r"), n="5"), lambda text: None) == found
    assert (tmp_path / "log").read_text() == runs


def test_a_script_that_is_wrong_fails_its_cell_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"s\.ap: ended with 3: \S") as error:
        measured(script(tmp_path, "IF\n"), tmp_path)
    assert "\n" not in str(error.value)
    assert "etude: " not in str(error.value)


def test_a_script_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over as soon as its command runs."""
    communicate = subprocess.Popen.communicate
    left: list[float] = []

    def wait(
        program: subprocess.Popen[str], input: None = None, timeout: float | None = None
    ) -> tuple[str, str]:
        if timeout is None:
            return communicate(program)
        left.append(timeout)
        assert comes(sleeping)
        raise subprocess.TimeoutExpired(program.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", wait)
    found = measured(
        script(tmp_path, SCRIPT.replace("sleep 0.00", f"exec sleep {AGES}.")), tmp_path, left_s=3.0
    )
    assert left == [3.0]
    assert found.state == "failed"
    assert sleeping() == []


def test_a_script_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    of = script(tmp_path, SCRIPT.replace("sleep 0.00", f"exec sleep {AGES}."))

    def interrupt() -> None:
        comes(sleeping)
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        measured(of, tmp_path)
    waiting.join()
    assert sleeping() == []


def comes(what: Callable[[], object]) -> bool:
    """Whether it does; a busy machine takes its time."""
    until = time.monotonic() + 30
    while not what() and time.monotonic() < until:
        time.sleep(0.01)
    return bool(what())


def sleeping() -> list[int]:
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"sleep" and words[1].startswith(AGES.encode()):
            found.append(int(entry))
    return found


def test_a_test_that_is_not_there_and_one_of_several_are_one_line(tmp_path: Path) -> None:
    of = script(tmp_path)
    with pytest.raises(InputError, match=r"'other'.* nap"):
        measured(MetricOf("elapsed", "lower", "s", script="s.ap", test="other"), tmp_path)
    assert of.script == "s.ap"


def test_its_text_is_all_that_it_depends_on(tmp_path: Path) -> None:
    texts = {
        Metric(of, tmp_path).text
        for of in (command("a"), command("b"), command("a", setup="c"), command("a", pattern="(d)"),
                   script(tmp_path), MetricOf("elapsed", "lower", "s", script="s.ap", test="x"))
    }  # fmt: skip
    assert len(texts) == 6
    with pytest.raises(InputError, match=r"none\.ap: .*No such file"):
        _ = Metric(MetricOf("elapsed", "lower", script="none.ap"), tmp_path).text


def test_values_are_in_the_base_of_their_unit(tmp_path: Path) -> None:
    """A pattern in milliseconds is stored in seconds, and its unit says so."""
    units = {"ms": "s", "KiB": "B", "req/s": "req/s", "": ""}
    for told, stored in units.items():
        assert Metric(MetricOf("v", "lower", told, "c {n}", pattern="v (.*)"), tmp_path).unit == stored
