"""`etude peak --url` and `--run`: which options go together, and the file that --save writes."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from etude.workbench.harnesses.spec import read_harness

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


def test_a_run_length_of_nothing_is_refused(etude: Etude, capsys: pytest.CaptureFixture[str]) -> None:
    assert etude("peak", *RUN, "--runlength", "0") == 2
    assert "[load] runlength" in capsys.readouterr().err


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
