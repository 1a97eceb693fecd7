"""`etude peak --url` and `--run`: which options go together, and the file that --save writes."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.analysis.warnings.machine import busy_machine
from etude.cli.verb_parsers import verb_parser
from etude.peak.harnesses.spec import read_harness

Etude = Callable[..., int]
RUN = ("--run", "./tool {load}", "--p95", "2ms", "--read", "([0-9]+ms)")
BY_CLIENTS = ("--url", "http://127.0.0.1:1/", "--p95", "2ms", "--clients")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--url", "http://a/", "--mean", "1ms", "h.toml"), "HARNESS"),
        (("--url", "http://a/", "--mean", "1ms", "--simulate", "mm1"), "--simulate"),
        (("--url", "http://a/", "--run", "x {load}"), "--run"),
        (("--url", "http://a/"), "--mean"),
        (("h.toml", "--p95", "2ms"), "--p95"),
        (("h.toml", "--read", "x"), "--read"),
        (("h.toml", "--save", "x"), "--save"),
        (("h.toml", "--hosts", "x"), "--hosts"),
        ((*RUN, "--factor", "a=1"), "--factor"),
        ((*RUN, "--pool", "local"), "--save"),
        ((*RUN, "--loads", "5..1"), "--loads"),
        ((), "--url"),
        ((*RUN, "--loads", "5...6"), "--loads"),
        ((*RUN, "--loads", "0...6"), "--loads"),
        ((*RUN, "--clients", "--loads", "0.5..5"), "lowest"),
        ((*RUN, "--clients", "--loads", "1..5.5"), "highest"),
        ((*BY_CLIENTS, "--seed-load", "0.5"), "--seed-load"),
        ((*BY_CLIENTS, "--seed-load", "2.5"), "--seed-load"),
        ((*RUN, "--hosts", ""), "--hosts"),
        ((*RUN, "--start", ""), "--start"),
        ((*RUN, "--ready", ""), "--ready"),
        ((*RUN, "--save", ""), "--save"),
        ((*RUN, "--read", "fnord:ms=(x)"), "fnord"),
        ((*RUN, "--read", "maen:ms=(x)"), "mean?"),
        ((*RUN, "--rehearse", "--searches", "9" * 21), "1000000"),
        (("--url", "", "--p95", "1ms"), "--url"),
        (("--url", "http://127.0.0.1:1/{load}", "--p95", "1ms"), "--url"),
        (("--url", "http://u:p@127.0.0.1:1/", "--p95", "1ms", "--save", "x"), "--url"),
    ],
    ids=range(28),
)
def test_options_that_do_not_go_together_are_refused(
    etude: Etude, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: str
) -> None:
    assert etude("peak", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert named in line


def test_the_host_of_a_url_is_looked_up_before_anything_is_made(
    etude: Etude, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    words = ("peak", "--url", "http://nix.invalid/", "--p95", "1ms")
    for more in ((), ("--calibrate",)):
        assert etude(*words, "-o", "r", *more) == 5
        (line,) = capsys.readouterr().err.splitlines()
        assert "http://nix.invalid/" in line
        assert not Path("r").exists()
    assert etude(*words, "--rehearse", "--searches", "1", "--policy", "binsearch", "-q") == 0


LONG = "8 days"


@pytest.mark.parametrize(
    "words",
    [
        (*RUN, "--runlength", LONG),
        (*RUN, "--runlength", "0"),
        (*RUN, "--warmup", LONG),
        (*RUN, "--pieces", "1001"),
        (*RUN, "--mean", "0"),
        (*RUN, "--p99", LONG),
        ("--simulate", "mm1", "--budget", "0"),
        ("--simulate", "mm1", "--budget", "1e-400"),
        ("--simulate", "mm1", "--budget", "367 days"),
        ("--simulate", "mm1", "--seed", "-1"),
        ("--simulate", "mm1", "--rehearse", "--fixed-cost", LONG),
        (*RUN, "--loads", "2k..1k"),
        (*RUN, "--loads", "0..5"),
        (*RUN, "--loads", "5"),
        (*RUN, "--loads", "1..1e13"),
        ("--simulate", "mm1", "--seed-load", "0/s"),
    ],
    ids=lambda words: " ".join(words[-2:]),
)
def test_a_value_beyond_its_bounds_is_refused_by_its_option(
    etude: Etude, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert etude("peak", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"argument {words[-2]}: " in line
    assert "expected" in line


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ("1k..2k", (1e3, 2e3)),
        ("1k/s..2k/s", (1e3, 2e3)),
        ("60/min..120/min", (1.0, 2.0)),
        ("1..1e6", (1.0, 1e6)),
        ("0.5..1_000", (0.5, 1e3)),
    ],
)
def test_loads_are_rates_as_everywhere(text: str, loads: tuple[float, float]) -> None:
    options = verb_parser("peak").parse_args([*RUN, "--loads", text, "--seed-load", text.split("..")[0]])
    assert options.loads == loads
    assert options.seed_load == loads[0]


def test_no_warm_up_and_no_fixed_cost_are_0() -> None:
    options = verb_parser("peak").parse_args([*RUN, "--warmup", "0", "--fixed-cost", "0 s"])
    assert (options.warmup, options.fixed_cost) == (0.0, 0.0)


def test_a_harness_that_has_no_meaning_is_refused_with_its_line_and_not_saved(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("peak", *RUN[:-1], "no group", "--save", "tool.toml") == 2
    told = capsys.readouterr().err
    assert "`find = 'no group'`: [reader.values.p95] find" in told.replace('"', "'")
    assert "tool.toml" not in told
    assert not Path("tool.toml").exists()


def test_a_harness_that_cannot_be_written_is_the_machines_refusal(etude: Etude) -> None:
    assert etude("peak", *RUN, "--save", "nowhere/tool.toml") == 5


def test_an_error_in_a_hosts_file_is_that_files(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.toml").write_text('[hosts.a]\nadress = "x"\n')
    assert etude("peak", "--url", "http://a/", "--mean", "1ms", "--hosts", "hosts.toml") == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "hosts.toml:2: [hosts.a] adress" in line


def test_jobs_of_a_pool_do_not_offer_load_from_the_same_hosts(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("hosts.toml").write_text('[hosts.a]\naddress = "10.0.0.1"\n')
    Path("h.toml").write_text(
        '[goal]\nmean = "1 ms"\n[load]\nlowest = 1\nhighest = 2\n[commands]\nload = "x {load}"\n'
        '[reader]\nkind = "windows"\n[generator]\nhosts = "hosts.toml"\n'
    )
    assert etude("peak", "h.toml", "--pool", "local") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--pool" in line
    assert "hosts" in line


def test_the_harness_is_saved_and_is_the_one_that_is_searched(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is relative to where it is given, the file is elsewhere."""
    tool = Path("tool")
    tool.write_text('#!/bin/sh\nexec echo "$(( ${1%.*} > 16 ? 5 : 1 ))ms"\n')
    tool.chmod(0o755)
    Path("sub").mkdir()
    words = ("--policy", "bracket", "--within", "50%", "-o", "r", "--json", "-q")
    run = (*RUN, "--loads", "10..40", "--save", "sub/tool.toml")
    assert etude("peak", *run, *words) == 0
    (search,) = json.loads(capsys.readouterr().out)["searches"]
    assert search["low"] <= 16 <= search["high"]
    assert read_harness(Path("sub/tool.toml")).commands.load == f"cd {os.getcwd()} && ./tool {{load}}"
    # Both ways it is the same search, which is complete; another harness of that name is refused.
    assert etude("peak", "sub/tool.toml", *words) == etude("peak", *run, *words) == 0
    assert etude("peak", *run, "--p99", "1ms", *words) == 2


@pytest.mark.parametrize(
    ("words", "costs_s"), [((), 3.0), (("--fixed-cost", "20"), 20.0)], ids=("of the file", "given")
)
def test_a_rehearsal_of_a_harness_has_its_costs(
    etude: Etude, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], costs_s: float
) -> None:
    ways = ("--warmup", "2s", "--rehearse", "--searches", "1", "--policy", "binsearch", "--json", *words)
    assert etude("peak", *RUN, *ways) == 0
    assert json.loads(capsys.readouterr().out)["rehearsal"]["fixed_cost_s"] == costs_s


def test_a_rehearsal_may_cost_what_an_earlier_search_did(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    assert etude("peak", "--simulate", "mm1:300", "--policy", "binsearch", "-q", "-o", "before") == 0
    capsys.readouterr()
    ways = ("--rehearse", "--searches", "1", "--policy", "binsearch", "--json")
    assert etude("peak", *RUN, *ways, "--like", "before") == 0
    assert json.loads(capsys.readouterr().out)["rehearsal"]["fixed_cost_s"] == pytest.approx(170.0)
    assert etude("peak", *RUN, *ways, "--like", "before", "--fixed-cost", "9") == 0
    assert json.loads(capsys.readouterr().out)["rehearsal"]["fixed_cost_s"] == 9.0
    assert etude("peak", *RUN, *ways, "--like", "nowhere") == 3
    assert etude("peak", *RUN, "--like", "before") == 2


@pytest.mark.parametrize(
    "verb", ["bench", "bundle", "export", "io lab", "io sweep", "peak", "plot", "report", "run", "surface"]
)
def test_an_empty_name_of_an_output_is_refused(
    etude: Etude, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert etude(*verb.split(), "-o", "") == 2
    assert "argument -o/--output" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["peak --simulate mm1", "surface --simulate Web", "bench true"])
def test_an_output_that_is_no_directory_is_the_machines_refusal(
    etude: Etude, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    Path("file").touch()
    for name in ("file", "/dev/null"):
        assert etude(*verb.split(), "-o", name) == 5
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{name}: " in line
        assert "no directory" in line
        assert "resume" not in line


@pytest.mark.parametrize("place", ["file", "/proc/x"])
@pytest.mark.parametrize("verb", ["peak --simulate mm1", "surface --simulate Web --count 2"])
def test_figures_that_cannot_be_written_are_refused_before_anything_is_measured(
    etude: Etude, capsys: pytest.CaptureFixture[str], verb: str, place: str
) -> None:
    Path("file").touch()
    assert etude(*verb.split(), "-o", "r", "--figures", place) == 5
    told = capsys.readouterr()
    assert told.out == ""
    assert f"--figures {place}: " in told.err
    assert not Path("r").exists()


def test_a_search_that_has_lost_trials_is_not_shown_and_goes_on(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("peak", "--simulate", "mm1:700", "--budget", "20m", "-o", "r", "-q")
    etude(*words)
    capsys.readouterr()
    shutil.rmtree(Path("r", "load-175"))
    for verb in ("peak", "report", "stats"):
        assert etude(verb, "r") == 3
        assert "load-175" in (told := capsys.readouterr().err) or "load=175" in told
    etude(*words)
    assert "load=175" in capsys.readouterr().err
    assert etude("stats", "r") != 3


def test_a_map_that_has_lost_cells_is_not_shown_and_goes_on(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("surface", "--simulate", "Web", "--count", "2", "-o", "r", "-q")
    etude(*words)
    shutil.rmtree(next(Path("r").glob("disks-*")))
    capsys.readouterr()
    for verb in ("surface", "report"):
        assert etude(verb, "r") == 3
        assert "disks=" in capsys.readouterr().err
    etude(*words)
    assert "disks=" in capsys.readouterr().err
    assert etude("surface", "r") != 3


def test_what_is_simulated_does_not_care_how_busy_the_machine_was(
    etude: Etude, capsys: pytest.CaptureFixture[str]
) -> None:
    etude("peak", "--simulate", "mm1:700", "--budget", "20m", "-o", "r", "-q")
    path = Path("r", "experiment.json")
    document = json.loads(path.read_text())
    document["machine"]["before"] = {"load": {"load_1": 99.0}, "cpu": {"online": 2}}
    assert list(busy_machine(document)) == []
    document["plan"]["harness"] = "[goal]"
    assert [each.kind for each in busy_machine(document)] == ["busy"]
    assert list(busy_machine(document | {"plan": {"kind": "surface", "spec": ""}})) == []
