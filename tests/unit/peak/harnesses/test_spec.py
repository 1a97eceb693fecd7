"""A harness file: what it means, and one line for each mistake, with its line and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.errors import InputError, UsageError
from etude.peak.harnesses.command import fill
from etude.peak.harnesses.load_report import Run, Windows
from etude.peak.harnesses.spec import read_harness
from etude.peak.task import Criterion
from etude.toml_config import line_of, parsed
from support.places import EXAMPLES

EXAMPLES = sorted((EXAMPLES / "peak").glob("*.toml"))
TEXT = """\
name = "toy"

[goal]
mean = "40 ms"
p95 = "0.1 s"
errors = "1 %"

[load]
lowest = 20
highest = 400
runlength = "6 s"
seed = 7

[promise]
within = "5 %"
confidence = 0.9
budget = "5 min"

[commands]
start = "serve {disks}"
ready = "probe {place}"
load = "offer {load} {runlength} {seed} {disks} ${HOME} {print $1}"
ready_timeout = "3 s"

[reader]
kind = "windows"

[generator]
outstanding = 8

[factors]
disks = 4
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return path


def test_a_file_is_a_task_and_commands(tmp_path: Path) -> None:
    harness = read_harness(written(tmp_path, TEXT))
    assert harness.name == "toy"
    assert harness.task.goal.criteria == (
        Criterion("mean", 0.04),
        Criterion("percentile", 0.1, 95.0),
        Criterion("errors", 0.01),
    )
    task = harness.task
    assert (task.lowest, task.highest, task.runlength_s, task.seed) == (20, 400, 6, 7)
    assert (task.within, task.confidence, task.budget_s, task.promise) == (0.05, 0.9, 300, "rate")
    assert harness.generator.outstanding == 8
    assert harness.commands.ready_timeout_s == 3
    assert harness.factors == {"disks": "4"}
    assert harness.text == TEXT


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_harnesses(path: Path) -> None:
    harness = read_harness(path)
    assert harness.task.budget_s == 240
    # What is measured is the tool itself, or its first report is not known in time.
    assert harness.commands.warms_up_apart == (
        harness.commands.warmup_s > 0 and path.stem not in ("fio", "sysbench")
    )


WRONG = [
    ('mean = "40 ms"', "mean = 40", 4, "[goal] mean 40"),
    ('mean = "40 ms"', 'mean = "40 parsecs"', 4, "mean parsecs"),
    ('mean = "40 ms"', 'mean = "0 ms"', 4, "mean 0"),
    ('mean = "40 ms"', 'maen = "40 ms"', 4, "maen mean?"),
    ('errors = "1 %"', 'errors = "200 %"', 6, "errors 200"),
    ("lowest = 20", "lowest = 500", 10, "highest 400 lowest, 500"),
    ("lowest = 20\n", "", 8, "lowest"),
    ("lowest = 20", "lowest = -1", 9, "lowest 0"),
    ("highest = 400", "highest = true", 10, "highest"),
    ("seed = 7", "begin = 900", 12, "begin 900 20 400"),
    ('name = "toy"', 'nmae = "toy"', 1, "nmae name?"),
    ('within = "5 %"', 'kind = "rates"', 15, 'kind \'rates\' "rate" "region"'),
    ('{disks}"\nready', '{dsks}"\nready', 20, "{dsks} {disks}?"),
    ("probe {place}", "probe {load}", 21, "{load}"),
    ("offer {load}", "offer", 22, "load {load}"),
    ('kind = "windows"', 'kind = "window"', 26, "kind 'window'"),
    ('kind = "windows"', "", 25, "kind"),
    ('kind = "windows"', 'kind = "pgbench"', 22, "load {log}"),
    ('kind = "windows"', 'kind = "json"\nvalues.mean = {at = "$.m"}', 27, "printed"),
    ("disks = 4", "load = 4", 32, "'load'"),
    ("disks = 4", "disks = nan", 32, "disks nan finite"),
    ("disks = 4", "disks = -inf", 32, "disks -inf finite"),
    ("outstanding = 8", "outstanding = 1.5", 29, "outstanding 1.5 whole 1 1000000000"),
    ("outstanding = 8", "outstanding = 1e12", 29, "outstanding 1000000000000.0 whole"),
    ("outstanding = 8", "outstanding = nan", 29, "outstanding nan whole"),
    ("outstanding = 8", "cores = 1e9", 29, "cores 1e+09 65536"),
    ("outstanding = 8", "cores = inf", 29, "cores inf finite"),
    ("seed = 7", "seed = 1.5", 12, "seed 1.5 whole"),
    ("highest = 400", "highest = nan", 10, "highest nan finite"),
    ("[promise]", "[promise", 14, "TOML"),
    ("lowest = 20", 'unit = "clients"\nlowest = 0.5', 10, "lowest 0.5 whole 1"),
    ("highest = 400", 'unit = "clients"\nhighest = 400.5', 11, "highest 400.5 whole 1"),
    ("lowest = 20", "whole = true\nlowest = 0.5", 10, "lowest 0.5 whole 1"),
    ("seed = 7", 'unit = "clients"\nbegin = 30.5', 13, "begin 30.5 whole 1"),
    ("seed = 7", 'unit = "clients"\nstep = 0.5', 13, "step 0.5 whole 1"),
    ("seed = 7", "seed = -1", 12, "seed -1 whole 0"),
    ("seed = 7", "seed = 1.5", 12, "seed 1.5 whole 0"),
    ("seed = 7", "seed = true", 12, "seed True whole 0"),
    ('mean = "40 ms"', 'p100 = "40 ms"', 4, "p100 known mean p50 p90 p95 p99 p99.9 errors"),
    ('name = "toy"', 'name = ""', 1, "name empty"),
    ('name = "toy"', 'name = " "', 1, "name empty"),
    ('ready_timeout = "3 s"', "warmup_load = 0.5", 23, "warmup_load warmup"),
    ('ready_timeout = "3 s"', 'warmup = "3 s"\nwarmup_load = 1.5', 24, "warmup_load 1.5"),
    ('ready_timeout = "3 s"', 'warmup = "3 s"\nwarmup_load = true', 24, "warmup_load True"),
    ("offer {load}", "offer {load} \\u0000", 22, "load \\u0000"),
    ("serve {disks}", "serve {disks} \\u0000", 20, "start \\u0000"),
    ("disks = 4", 'disks = "4\\u0000"', 32, "disks \\u0000"),
    ('name = "toy"', 'name = "\\u0000"', 1, "name \\u0000"),
    ('mean = "40 ms"', 'mean = "1e300 s"', 4, "mean 1e300 7 d"),
    ('runlength = "6 s"', 'runlength = "1000000 h"', 11, "runlength 1000000 7 d"),
    ("lowest = 20\nhighest = 400", "lowest = 20\nhighest = 1e299", 10, "highest 1e+12"),
    ("seed = 7", "step = 1e13", 12, "step 1e+12"),
    ('ready_timeout = "3 s"', 'ready_timeout = "8 days"', 23, "ready_timeout 7 d"),
    ('ready_timeout = "3 s"', 'warmup = "1e300 s"', 23, "warmup 1e300 7 d"),
    ('ready_timeout = "3 s"', 'grace = "1e300 s"', 23, "grace 1e300 7 d"),
    ('ready_timeout = "3 s"', "pieces = 100000000", 23, "pieces 1000"),
    ('kind = "windows"', 'kind = "windows"\nwindow = "8 days"', 27, "window 7 d"),
    ('budget = "5 min"', 'budget = "1e300 s"', 17, "budget 1e300 366 d"),
    (
        '{runlength} {seed} {disks} ${HOME} {print $1}"\nready_timeout = "3 s"',
        '{seed}"\nwarmup = "3 s"\nwarmup_load = 0.4',
        24,
        "warmup_load {runlength}",
    ),
]


@pytest.mark.parametrize(("what", "by", "line", "said"), WRONG, ids=[f"{n}" for n in range(len(WRONG))])
def test_a_mistake_is_one_line_with_its_place(
    tmp_path: Path, what: str, by: str, line: int, said: str
) -> None:
    assert what in TEXT
    path = written(tmp_path, TEXT.replace(what, by, 1))
    with pytest.raises(InputError) as caught:
        read_harness(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: "), message
    assert [word for word in said.split() if word not in message.removeprefix(str(path))] == []
    assert "\n" not in message


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    marked = read_harness(written(tmp_path, f"\ufeff{TEXT}"))
    assert (marked.name, marked.text) == ("toy", TEXT)
    with pytest.raises(InputError, match=r"toy\.toml:1: nmae"):
        read_harness(written(tmp_path, "\ufeff" + TEXT.replace("name", "nmae", 1)))


def test_a_goal_of_times_needs_windows_with_times(tmp_path: Path) -> None:
    def needs(goal: str) -> set[str]:
        text = TEXT.replace('mean = "40 ms"\np95 = "0.1 s"\nerrors = "1 %"\n', goal)
        reader = read_harness(written(tmp_path, text)).reader(Run(1.0, False, 1.0, 1.0, ""))
        assert isinstance(reader, Windows)
        return set(reader.needs)

    assert needs('errors = "1 %"') == set()
    assert needs('mean = "1 ms"') == {"mean"}
    assert needs('p90 = "1 ms"\nerrors = "1 %"') == {"latency"}


HOSTS = '[hosts.a]\naddress = "10.0.0.1"\n[hosts.b]\naddress = "10.0.0.2"\n'


def test_the_hosts_of_the_load_stand_in_a_file_beside_the_harness(tmp_path: Path) -> None:
    (tmp_path / "hosts.toml").write_text(HOSTS)
    path = written(tmp_path, TEXT.replace("[generator]", '[generator]\nhosts = "hosts.toml"'))
    assert [entry.name for entry in read_harness(path).hosts] == ["a", "b"]
    assert read_harness(written(tmp_path, TEXT)).hosts == ()


@pytest.mark.parametrize(
    ("key", "load", "hosts", "said"),
    [
        ('hosts = "none.toml"', "", HOSTS, "none.toml: cannot be read"),
        ('hosts = ""', "", HOSTS, "[generator] hosts is empty"),
        ("hosts = 3", "", HOSTS, "[generator] hosts is 3"),
        ('hosts = "hosts.toml"', "{log} ", HOSTS, "[commands] load has {log}"),
        ('serves = true\nhosts = "hosts.toml"', "", HOSTS, "[generator] hosts"),
        ('hosts = "hosts.toml"', "", "[hosts.a]\n", "hosts.toml:1: [hosts.a] address"),
        ('hosts = "hosts.toml"', "", "", "hosts.toml:1: names no host"),
    ],
)
def test_hosts_that_cannot_offer_the_load_are_refused_in_one_line(
    tmp_path: Path, key: str, load: str, hosts: str, said: str
) -> None:
    (tmp_path / "hosts.toml").write_text(hosts)
    text = TEXT.replace("[generator]", f"[generator]\n{key}").replace("offer {load}", f"offer {load}{{load}}")
    with pytest.raises(InputError) as caught:
        read_harness(written(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_goal_that_the_reader_cannot_judge_is_refused(tmp_path: Path) -> None:
    values = 'kind = "regex"\n[reader.values]\ncompleted = {find = "done ([0-9]+)"}\n'
    text = TEXT.replace('kind = "windows"\n', values)
    with pytest.raises(InputError, match=r"toy.toml:4: \[goal\] mean "):
        read_harness(written(tmp_path, text))


def test_answers_to_clients_have_to_be_counted_and_those_of_an_open_loop_need_not(tmp_path: Path) -> None:
    values = 'kind = "regex"\n[reader.values]\nmean = {find = "mean ([0-9.]+m?s)", unit = "printed"}\n'
    text = TEXT.replace('kind = "windows"\n', values).replace('p95 = "0.1 s"\nerrors = "1 %"\n', "")
    assert read_harness(written(tmp_path, text)).task.closed is False
    clients = text.replace("lowest = 20", 'lowest = 20\nunit = "clients"')
    with pytest.raises(InputError, match=r"toy.toml:26: .*completed"):
        read_harness(written(tmp_path, clients))


def test_a_factor_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    harness = read_harness(written(tmp_path, TEXT))
    with (
        pytest.raises(UsageError, match="'disk': disks"),
        harness.bench({"disk": "2"}, tmp_path),
    ):
        pass


def test_only_known_names_in_braces_are_replaced() -> None:
    values = {"load": "5", "HOME": "no"}
    assert fill("{load} ${HOME} {print $1} {other}", values) == "5 ${HOME} {print $1} {other}"


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_text_is_a_harness_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_harness(path)
    assert len(str(caught.value).split("\n")) == 1


def test_keys_of_tables_within_tables_are_found() -> None:
    text = '[reader]\nkind = "json"\n[reader.values]\nmean = {at = "$.x"}\n[reader.values.max]\nat = "$.y"\n'
    assert line_of(text, "reader.values", "mean") == 4
    assert line_of(text, "reader.values.mean", "at") == 4
    assert line_of(text, "reader.values.max", "at") == 6
    assert line_of(text, "absent", "key") == 1
    # Which characters end a line is TOML's to say, not Python's.
    assert line_of('a = "\x85\u2028"\nb = 1\n', "", "b") == 2


def test_a_key_of_thousands_of_parts_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    with pytest.raises(InputError) as caught:
        parsed(path, "b = 1\n" + "a . " * 5000 + "a = 1\n")
    assert str(caught.value).startswith(f"{path}:2: ")
    assert parsed(path, f"b = '{'.' * 5000}'  # {'.' * 5000}\n").values == {"b": "." * 5000}


@pytest.mark.parametrize(
    ("lines", "whole", "closed"),
    [("", False, False), ("whole = true", True, False), ('unit = "clients"', True, True)],
)
def test_whole_rates_are_no_clients(tmp_path: Path, lines: str, whole: bool, closed: bool) -> None:
    task = read_harness(written(tmp_path, TEXT.replace("seed = 7", f"seed = 7\n{lines}"))).task
    assert (task.whole, task.closed) == (whole, closed)


@pytest.mark.parametrize(
    ("lines", "report_interval_s"),
    [
        ('load = "x {load}"\n[reader]\nkind = "windows"', 1.0),
        ('load = "x {load}"\n[reader]\nkind = "json"\nvalues.mean = {at = "$.m", unit = "s"}', 12.0),
        (
            'load = "x {load}"\npieces = 6\n[reader]\nkind = "json"\nvalues.mean = {at = "$.m", unit = "s"}',
            2.0,
        ),
    ],
    ids=("windows", "summary", "pieces"),
)
def test_how_much_of_a_trial_is_told_at_once(tmp_path: Path, lines: str, report_interval_s: float) -> None:
    start = '[goal]\nmean = "1 s"\n[load]\nlowest = 1\nhighest = 9\nrunlength = "12 s"\n[commands]\n'
    harness = read_harness(written(tmp_path, start + lines))
    assert harness.report_interval_s == report_interval_s


OWN = 'load = "x {load} {runlength}"\nwarmup = "9.5 s"\n[generator]\nserves = true'


@pytest.mark.parametrize(
    ("lines", "apart", "fixed_cost_s"),
    [
        ('load = "x {load} {runlength}"', False, 1.0),
        ('load = "x {load} {runlength}"\nwarmup = "9.5 s"', True, 12.0),
        ('load = "x {requests}"\nwarmup = "9.5 s"', True, 12.0),
        ('load = "x {load}"\nwarmup = "9.5 s"', False, 10.5),
        ('load = "x {load} {runlength}"\nwarmup = "9.5 s"\nwarmup_load = "100 %"', False, 10.5),
        (OWN, False, 10.5),
        (OWN.replace("[gen", "warmup_load = 0.5\n[gen"), True, 12.0),
    ],
    ids=("none", "apart", "requests", "not told", "whole", "serves", "serves and apart"),
)
def test_what_a_trial_costs_besides_its_run_is_known_with_the_warm_up(
    tmp_path: Path, lines: str, apart: bool, fixed_cost_s: float
) -> None:
    start = '[goal]\nmean = "1 s"\n[load]\nlowest = 1\nhighest = 9\n[reader]\nkind = "windows"\n[commands]\n'
    harness = read_harness(written(tmp_path, start + lines))
    assert (harness.commands.warms_up_apart, harness.fixed_cost_s) == (apart, fixed_cost_s)
