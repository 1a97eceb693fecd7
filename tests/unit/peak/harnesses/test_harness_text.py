"""A harness of options is the file that one would write, and says what is missing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.cli.capacity.peak_harness import LIMITS
from etude.errors import InputError, UsageError
from etude.peak.harnesses.command import Commands
from etude.peak.harnesses.harness_text import PIECES, HarnessOptions, Value, harness_text, read_value
from etude.peak.harnesses.spec import PERCENTILES, Harness, read_harness

URL = "http://localhost:8000/a?b=c&d"
P95 = {"p95": 0.002}


def harness(**options: Any) -> Harness:
    return read_harness(Path("h.toml"), harness_text(HarnessOptions(**options)))


def test_a_url_is_offered_requests_by_our_generator_and_its_errors_are_limited() -> None:
    found = harness(url=URL, limits_s={"mean": 0.04, "p99.9": 1.0})
    assert [(c.of, c.percent, c.limit) for c in found.task.goal.criteria] == [
        ("mean", None, 0.04),
        ("percentile", 99.9, 1.0),
        ("errors", None, 0.01),
    ]
    assert found.name == "localhost-8000"
    assert (found.task.closed, found.generator.outstanding, found.commands.start) == (False, 1000, "")
    assert found.commands.load.split()[:5] == ["exec", "etude", "load", "--json", "--url"]
    assert f"'{URL}' --rate {{load}}" in found.commands.load
    assert "/dev/tcp/localhost/8000" in found.commands.ready


def test_hosts_of_the_load_are_of_the_generator_and_a_command_is_run_in_a_directory_of_theirs(
    tmp_path: Path,
) -> None:
    (tmp_path / "hosts.toml").write_text('[hosts.a]\naddress = "10.0.0.1"\n')
    options: dict[str, Any] = {"limits_s": P95, "hosts": str(tmp_path / "hosts.toml")}
    by_url = harness(url=URL, **options)
    assert [entry.name for entry in by_url.hosts] == ["a"]
    assert by_url.generator.outstanding == 1000
    by_command = harness(command="./bench {load}", reads=["windows"], start="./serve", **options)
    assert [entry.name for entry in by_command.hosts] == ["a"]
    assert by_command.commands.load == "./bench {load}"
    assert by_command.commands.start == "cd {here} && ./serve"


def test_a_command_is_run_where_it_was_given_and_its_output_read_by_expressions() -> None:
    found = harness(
        command="./bench -r {load}",
        limits_s=P95,
        reads=[read_value(r"95% +(\S+)"), read_value("completed:1=done: ([0-9]+)")],
        directory="/tmp/x",
        loads=(5.0, 50.0),
        warmup_s=2.0,
        start="./serve",
    )
    assert found.name == "bench"
    assert (found.commands.load, found.commands.start) == (
        "cd /tmp/x && ./bench -r {load}",
        "cd /tmp/x && ./serve",
    )
    assert (found.task.lowest, found.task.highest, found.commands.warmup_s) == (5.0, 50.0, 2.0)
    text = harness_text(HarnessOptions(command="x {load}", limits_s=P95, reads=[read_value("(a)")]))
    assert tomllib.loads(text)["reader"] == {
        "kind": "regex",
        "values": {"p95": {"find": "(a)", "unit": "printed"}},
    }


def test_a_name_that_is_not_known_is_no_pattern() -> None:
    for text in ("fnord:ms=(.)", "p100:printed=(.)", "maen:s=(.)", "complete:1/s=(.)"):
        with pytest.raises(UsageError, match=text.partition(":")[0]):
            read_value(text)
    for text in ("time=(.)", "fnord:(.)", "fnord:x=(.)", "95% (.)", "a b:ms=(.)"):
        assert read_value(text) == Value(text)
    assert set(PERCENTILES) == set(LIMITS) - {"mean"}


def test_clients_are_whole_numbers() -> None:
    found = harness(url=URL, limits_s=P95, clients=True)
    assert (found.task.closed, found.task.whole, found.task.lowest) == (True, True, 1.0)
    assert "--clients {load}" in found.commands.load


def test_a_read_is_a_named_number_a_kind_or_what_the_goal_limits() -> None:
    assert read_value("pgbench") == "pgbench"
    assert read_value("p99.9:us=x (.*)=") == Value("x (.*)=", "p99.9", "us")
    assert read_value("completed:1/s=rate: (.*)") == Value("rate: (.*)", "completed", "1/s")
    # An expression that looks alike stays one.
    assert read_value("p95=(.*)ms") == Value("p95=(.*)ms")
    assert read_value("p95 (?:a=b): (.*)") == Value("p95 (?:a=b): (.*)")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"url": URL}, "--mean"),
        ({"url": "https://a/", "limits_s": P95}, "http://"),
        ({"url": "http://a:x/", "limits_s": P95}, "http://"),
        ({"url": URL, "limits_s": P95, "reads": [Value("(a)")]}, "--read"),
        ({"command": "x {load}", "limits_s": P95, "reads": ["fio", Value("(a)")]}, "fio"),
        ({"command": "x {load}", "limits_s": P95 | {"mean": 1.0}, "reads": [Value("(a)")]}, "p95:ms=REGEX"),
        (
            {"command": "x {load}", "limits_s": P95, "reads": [Value("(a)"), Value("(b)", "p95", "s")]},
            "twice",
        ),
        ({"command": "x {load} \udcff", "limits_s": P95}, "UTF-8"),
    ],
    ids=range(8),
)
def test_what_makes_no_harness_is_refused(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError) as caught:
        harness_text(HarnessOptions(**options))
    assert word in str(caught.value)


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_command_stands_in_the_file_as_it_was_given(command: str) -> None:
    text = harness_text(HarnessOptions(command=f"x{command}", limits_s=P95, directory="."))
    assert tomllib.loads(text)["commands"]["load"] == f"cd . && x{command}"


@pytest.mark.parametrize(
    ("command", "read", "pieces"),
    [
        ("wrk -c {load} -d {runlength} x", ["(a)"], PIECES),
        ("wrk -c {load} -d 10 x", ["(a)"], 1),
        ("own -c {load} -d {runlength}", [], 1),
        ("hey -c {load} -z {runlength}s -o csv x", ["hey"], 1),
    ],
    ids=["summary", "of a length of its own", "windows", "a reader of windows"],
)
def test_a_command_that_prints_one_summary_is_run_in_pieces(
    command: str, read: list[str], pieces: int
) -> None:
    reads = [read_value(each) for each in read]
    assert harness(command=command, limits_s=P95, reads=reads).commands.pieces == pieces
    assert harness(command=command, limits_s=P95, reads=reads, pieces=1).commands.pieces == 1


def test_a_trial_may_be_in_pieces() -> None:
    def commands(**options: Any) -> Commands:
        return harness(command="gen {load}", limits_s=P95, **options).commands

    assert (commands().pieces, commands(pieces=6).pieces) == (1, 6)
    with pytest.raises(InputError, match=r"pieces is 1\.5: expected a whole number"):
        read_harness(
            Path("h.toml"),
            harness_text(HarnessOptions(command="gen {load}", limits_s=P95, pieces=6)).replace(
                "= 6", "= 1.5"
            ),
        )
