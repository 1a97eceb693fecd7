"""Features of scripts that meet: every pair of them in some script, each value against the raw output of its programs.

Each script has all metrics, so that each meets every pair. What a metric should be is computed here from the workers'
logs alone, by the table in docs/reference/formats.md.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from etude.machine.remote import synchronized_start
from etude.script.bench import ScriptBench
from support.covering import all_pairs, pairs_of, pairwise
from support.hosts import laboratory
from support.real import ETUDE, called, experiment, lines

pytestmark = pytest.mark.beside

SUM, MAX, NONE, MEAN = sum, max, None, statistics.mean
Join = Callable[[Sequence[float]], float] | None


@dataclass(frozen=True)
class Metric:
    """A METRIC line without its beginning, and how values are joined: those of workers, and of one worker's EXECs."""

    line: str
    workers: Join
    commands: Join


METRICS = {
    "rate": Metric(r":1/s value=([0-9.]+)", SUM, NONE),
    "time": Metric(r":ms value=([0-9.]+)", MAX, NONE),
    "count": Metric(r" value=([0-9.]+)", SUM, SUM),
    "bytes": Metric(r":KiB 'value=([0-9.]+)'", SUM, MAX),
    "share": Metric(r":% value=([0-9.]+)", NONE, NONE),
    "mean": Metric(r':ms mean $.of["a.b"][0]', MEAN, MEAN),
    "partial": Metric(r":1/s sum partial=([0-9.]+)", SUM, SUM),
    "cleanup": Metric(':B FROM CLEANUP "cat {directory}/cleanup-$APTEST-$APEPOCH"', SUM, MAX),
}
SCALE = {"time": 1e-3, "mean": 1e-3, "bytes": 1024.0}
FACTORS: dict[str, Sequence[object]] = {
    "execs": ("one", "two", "own rows"),
    "workers": (1, 2, 3),
    "resume": ("no", "killed", "killed before .res", "terminated"),
    "failed": ("nothing", "test", "trial", "worker"),
    "rule": ("minimum", "predicate", "MAX", "TIME"),
    "interleave": (False, True),
    "hosts": ("none", "local", "client", "both"),
    "cache": ("none", "warm"),
}
ASKED = cycle(METRICS)
"""Of which metric a predicate is."""
CASES = [{"metric": next(ASKED), **case} for case in pairwise(FACTORS)]
PREDICATES = [
    {"metric": metric, **{name: values[0] for name, values in FACTORS.items()}, "rule": "predicate"}
    for metric in METRICS
]
HOSTS = {"none": (), "local": ("local",), "client": ("client1",), "both": ("client1", "local")}
FAILS_IN = 2
MINIMUM, MOST = 3, 5
SAY = """\
# say EXEC [last]: a line with a number, as a program prints it; with `last` the status that the case wants.
test=0; [ "$APTEST" = u ] && test=5000
value=$((test + 1000 * $1 + 100 * APEPOCH + 7 * APTHREAD)).5
printf 'exec=%s value=%s\\n{"of": {"a.b": [%s]}}\\n' "$1" "$value" "$value"
[ "$APTHREAD" = WORKERS ] && [ WORKERS -gt 1 ] || printf 'partial=%s\\n' "$value"
[ "$1" = 1 ] && printf '%s\\n' "$((test + 64 * (APEPOCH + 1)))" > DIRECTORY/cleanup-$APTEST-$APEPOCH
[ "$2" != last ] || [ "$APEPOCH" != 2 ] || FAILS
"""
FAILS = {"trial": "exit 3", "worker": '[ "$APTHREAD" != WORKERS ] || exit 3'}


def test_every_pair_of_features_meets_in_some_case() -> None:
    met = set().union(*map(pairs_of, CASES))
    assert met >= all_pairs(FACTORS)


def name_of(case: Mapping[str, object]) -> str:
    return "-".join(str(value).replace(" ", "_") for value in case.values())


# --- a case as a script -----------------------------------------------------------------------------


def workers_of(case: Mapping[str, Any]) -> int:
    return int(case["workers"]) * max(1, len(HOSTS[case["hosts"]]))


def write_script(directory: Path, case: Mapping[str, Any], hosts: Path | None) -> None:
    fails = FAILS.get(case["failed"], "true")
    say = SAY.replace("FAILS", fails).replace("DIRECTORY", str(directory))
    (directory / "say").write_text(say.replace("WORKERS", str(workers_of(case))))
    at = f"@{','.join(HOSTS[case['hosts']])} " if HOSTS[case["hosts"]] else ""
    say = f"sh {directory}/say"
    execs = {
        "one": [f"{say} 1 last"],
        "two": [f"{say} 1", f"{say} 2 last"],
        "own rows": [f"sh -c 'aptime {say} 1 && aptime {say} 2 last'"],
    }[case["execs"]]
    body = [
        *(f"METRIC m{name}{metric.line.format(directory=directory)}" for name, metric in METRICS.items()),
        *([f"CACHE {case['cache']}"] if case["cache"] != "none" else []),
        *(f"EXEC {at}{line}" for line in execs),
    ]
    tests = []
    for name in ("t", "u") if case["interleave"] else ("t",):
        tests += [f"TEST {name} {rule_of(case, name)}", *body, "DONE"]
    if case["failed"] == "test":
        tests = ["TEST bad 3", "EXEC sh -c 'echo value=1; exit 1'", "DONE", *tests]
    if case["interleave"]:
        tests = ["INTERLEAVE", *tests, "DONE"]
    head = [f"HOSTS {hosts}"] if hosts else []
    text = [*head, f"THREADS={case['workers']}", *tests]
    (directory / "x.ap").write_text("\n".join(text) + "\n")


def rule_of(case: Mapping[str, Any], name: str) -> str:
    more = "1 getstats --columns {} --predicate '{}'"
    return {
        "minimum": f"{MINIMUM}",
        "predicate": f"{MINIMUM - 1} {more.format(*predicate_of(case, name))}",
        "MAX": f"{MINIMUM - 1} MAX={MOST} {more.format('elapsed', '$count > 99')}",
        "TIME": f"{MINIMUM} TIME=1us {more.format('elapsed', '$count > 99')}",
    }[case["rule"]]


def has_value(case: Mapping[str, Any]) -> bool:
    """Whether trials of this case have a value of its metric."""
    metric, workers = METRICS[case["metric"]], workers_of(case)
    if case["metric"] == "cleanup":
        return True
    return (metric.workers is not None or workers == 1) and (
        metric.commands is not None or case["execs"] != "two"
    )


def predicate_of(case: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Of a metric that grows with each trial: its largest value after some trials is above a limit."""
    if not has_value(case):
        return "elapsed", "$count > 3"
    return f"m{case['metric']}", f"$max > {limit_of(case, name)!r}"


def limit_of(case: Mapping[str, Any], name: str) -> float:
    """What the fourth trial exceeds, and the third does not."""
    if case["metric"] == "cleanup":
        return (5000 if name == "u" else 0) + 64 * 4 + 1
    commands = (1, 2) if case["execs"] == "two" else (1,)
    base = 5000 if name == "u" else 0
    each = [
        [base + 1000 * n + 100 * 3.5 + 7 * thread + 0.5 for n in commands]
        for thread in range(1, workers_of(case) + 1)
    ]
    if case["metric"] == "partial" and len(each) > 1:
        each.pop()  # the last worker prints none
    return joined(METRICS[case["metric"]], each) * SCALE.get(case["metric"], 1.0)  # type: ignore[operator]


# --- what the output says ---------------------------------------------------------------------------


def joined(metric: Metric, by_worker: Sequence[Sequence[float | None]]) -> float | None:
    """One value of a trial, from those of each worker's EXECs."""
    of_workers = []
    for values in by_worker:
        there = [value for value in values if value is not None]
        if len(there) > 1 and metric.commands is None:
            return None
        of_workers.append(None if not there else metric.commands(there) if len(there) > 1 else there[0])
    known = [value for value in of_workers if value is not None]
    if len(known) > 1 and metric.workers is None:
        return None
    return metric.workers(known) if len(known) > 1 else known[0]


def said(case: Mapping[str, Any], directory: Path, test: str, trial: int) -> list[list[float | None]]:
    """What each worker's EXECs printed in a trial, in base units: the first value of each EXEC."""
    scale, what = SCALE.get(case["metric"], 1.0), "partial" if case["metric"] == "partial" else "value"
    found = []
    for worker in range(workers_of(case)):
        text = (directory / "r" / test / "logs" / f"{trial:04d}-{worker}.log").read_text()
        parts = re.split(r"^exec=", text, flags=re.MULTILINE)[1:]
        assert [part[0] for part in parts] == (["1"] if case["execs"] == "one" else ["1", "2"]), text
        if case["execs"] == "own rows":
            parts = ["".join(parts)]
        numbers = [re.search(rf"{what}=([0-9.]+)", part) for part in parts]
        found.append([float(number[1]) * scale if number else None for number in numbers])
    return found


def trials_of(rows: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[row["trial"]].append(row)
    return dict(found)


def expected(case: Mapping[str, Any], directory: Path, test: str) -> dict[int, float | None]:
    """The metric of each trial that counts, by its number; the rows are compared with the output on the way."""
    values: dict[int, float | None] = {}
    name = f"m{case['metric']}"
    for trial, rows in trials_of(lines(directory / "r", test)).items():
        check_rows(case, rows)
        if not rows[0]["kept"]:
            continue
        if case["metric"] == "cleanup":
            printed = float((directory / f"cleanup-{test}-{trial}").read_text())
            assert [row["metrics"].get(name, [None])[0] for row in rows] == [printed] + [None] * (
                len(rows) - 1
            )
            values[trial] = printed
            continue
        by_worker = said(case, directory, test, trial)
        for worker, numbers in enumerate(by_worker):
            own = [row["metrics"].get(name) for row in rows if row["worker"] == worker]
            if case["execs"] == "own rows":
                assert own[1:] == [None]
                own = own[:1]
            assert [value and value[0] for value in own] == pytest.approx(numbers)
        values[trial] = joined(METRICS[case["metric"]], by_worker)
        lacks = workers_of(case) > 1  # those of `partial`
        assert any("workers have no value" in note for note in rows[0].get("notes", ())) == lacks
    return values


def check_rows(case: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Each worker and command once, on its host; a trial that is not kept says why."""
    trial, workers = rows[0]["trial"], workers_of(case)
    fails = case["failed"] in FAILS and trial == FAILS_IN and rows[0]["why"] != "first run"
    why = {row["why"] for row in rows}
    assert len(why) == 1
    if fails and why != {"cancelled"}:
        assert why == {"failed"}
        statuses = {row["worker"]: row["exit_status"] for row in rows}  # the last command's
        ill = range(workers) if case["failed"] == "trial" else [workers - 1]
        assert {worker for worker, status in statuses.items() if status} == set(ill)
    else:
        assert why <= {None, "first run", "cancelled"}
    if why == {"cancelled"}:
        return
    commands = 1 if case["execs"] == "one" else 2
    places = [row["worker"] for row in rows]
    in_turn = [worker for worker in range(workers) for _ in range(commands)]
    assert places == (list(range(workers)) * commands if case["execs"] == "two" else in_turn)
    hosts = HOSTS[case["hosts"]]
    if "client1" in hosts:
        assert {row["worker"] for row in rows if row["host"] == "client1"} == set(range(int(case["workers"])))


def check_end(case: Mapping[str, Any], directory: Path, names: Sequence[str]) -> None:
    """Each test had enough trials in the end, and one less was not enough."""
    values = {name: expected(case, directory, name) for name in names}
    rows = {name: trials_of(lines(directory / "r", name)) for name in names}
    count = {
        name: [t for t, of in each.items() if of[0]["why"] in (None, "failed")] for name, each in rows.items()
    }

    def enough(name: str, made: int) -> bool:
        there = [trial for trial in count[name][:made] if trial in values[name]]
        if case["rule"] == "predicate":
            if len(there) < MINIMUM - 1:
                return False
            if not has_value(case):
                return len(there) > 3
            return max(values[name][trial] or 0.0 for trial in there) > limit_of(case, name)
        return made >= MOST if case["rule"] == "MAX" else len(there) >= MINIMUM

    made = {name: len(count[name]) for name in names}
    assert len(set(made.values())) == 1, made
    assert all(enough(name, made[name]) for name in names), (made, values)
    assert not all(enough(name, made[name] - 1) for name in names), (made, values)


# --- what is shown ----------------------------------------------------------------------------------


def mean_of(values: Sequence[float], sessions: Sequence[int], rate: bool) -> float:
    """That of each session, and of those; of rates the harmonic one."""
    mean = statistics.harmonic_mean if rate else statistics.mean
    each = defaultdict(list)
    for value, session in zip(values, sessions, strict=True):
        each[session].append(value)
    return mean([mean(of) for of in each.values()])


def check_summary(
    case: Mapping[str, Any],
    shown: Mapping[str, Any],
    values: Sequence[float | None],
    sessions: Sequence[int],
) -> None:
    """A metric of the verdict as data."""
    known = [value for value in values if value is not None]
    if not known:
        assert "mean" not in shown, shown
        assert shown["reason"], shown
        return
    mean = mean_of(known, sessions, shown["unit"] == "1/s")
    assert shown["count"] == len(known)
    figures = {"mean": mean, "minimum": min(known), "maximum": max(known), "median": statistics.median(known)}
    assert {name: shown[name] for name in figures} == pytest.approx(figures, rel=1e-9)
    lacking = 1 if case["metric"] == "partial" and workers_of(case) > 1 else 0
    workers = workers_of(case) - lacking if case["metric"] != "cleanup" else 1
    assert shown.get("workers", 1) == workers


def elapsed_of(rows: Sequence[dict[str, Any]]) -> list[float]:
    """Of each trial that counts: that of the worker whose commands took longest together."""
    each = []
    for trial in trials_of(rows).values():
        if trial[0]["kept"]:
            by_worker: dict[int, float] = defaultdict(float)
            for row in trial:
                by_worker[row["worker"]] += row["metrics"]["elapsed"][0]
            each.append(max(by_worker.values()))
    return each


def check_tables(case: Mapping[str, Any], directory: Path, name: str, of_run: Mapping[str, Any]) -> None:
    values = {
        metric: list(expected({**case, "metric": metric}, directory, name).values()) for metric in METRICS
    }
    elapsed = elapsed_of(lines(directory / "r", name))
    kept = [trial[0] for trial in trials_of(lines(directory / "r", name)).values() if trial[0]["kept"]]
    sessions = [row["sitting"] for row in kept]
    from_disk = json.loads(called("stats", "--json", "r", cwd=directory).stdout)
    from_res = json.loads(called("stats", "--json", f"r/{name}.res", cwd=directory).stdout)
    one = [1] * len(sessions)  # a .res has no sessions
    for document, test, of in ((of_run, name, sessions), (from_disk, name, sessions), (from_res, None, one)):
        entry = next(each for each in document["tests"] if test in (None, each["test"]))
        for metric in METRICS:
            check_summary({**case, "metric": metric}, entry["metrics"][f"m{metric}"], values[metric], of)
        assert entry["kept"] == len(kept)
        mean = mean_of(elapsed, of, rate=False)
        assert entry["metrics"]["elapsed"]["mean"] == pytest.approx(mean, rel=1e-6)
    known = {f"m{metric}": [x for x in each if x is not None] for metric, each in values.items()}
    known = {metric: each for metric, each in known.items() if each}
    table = getstats_table(f"r/{name}.res", ["elapsed", *known], directory)
    assert float(table["Elapsed"]["MEAN"]) == pytest.approx(statistics.mean(elapsed), rel=1e-6)
    for metric, each in known.items():
        assert int(table[metric]["COUNT"]) == len(each)
        shown = [float(table[metric][column]) for column in ("MEAN", "MIN", "MAX")]
        assert shown == pytest.approx([statistics.mean(each), min(each), max(each)])


def getstats_table(path: str, columns: Sequence[str], directory: Path) -> dict[str, dict[str, str]]:
    done = called(
        "stats", "--style", "autopilot", "--csv", "--columns", ",".join(columns), path, cwd=directory
    )
    text = "".join(line + "\n" for line in done.stdout.splitlines() if line.count(",") > 3)
    return {row["NAME"]: row for row in csv.DictReader(io.StringIO(text))}


# --- running ----------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`aptime` is beside `etude`."""
    monkeypatch.setenv("PATH", f"{Path(ETUDE).parent}:{os.environ['PATH']}")
    # On a busy machine an engine may be told later than by default when to start.
    monkeypatch.setattr(synchronized_start, "MIN_LEAD_NS", 500_000_000)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with laboratory(tmp_path_factory.mktemp("lab"), ["client1"]) as lab:
        yield lab.write(connect_timeout='"60 s"', silence='"60 s"')  # no measure of speed


def end_in_trial(case: Mapping[str, Any], directory: Path) -> None:
    """Run the script in a process that ends in the third trial of its test."""
    child = os.fork()
    if child == 0:
        code = 98
        try:
            end_soon(case["resume"])
            code = called("run", "-o", "r", "x.ap", cwd=directory, check=None).returncode
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if case["resume"] == "terminated":
        assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    else:
        assert os.WIFSIGNALED(status)


def end_soon(how: str) -> None:
    append, execute = ScriptBench._append_res, ScriptBench.execute

    def appended(bench: ScriptBench, test: Any, measurements: Any) -> None:
        ends = test.name == "t" and test.trial == 3
        if ends and how == "killed before .res":
            os.kill(os.getpid(), signal.SIGKILL)
        append(bench, test, measurements)
        if ends and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)

    def executed(bench: ScriptBench, line: str, test: Any, scope: Any) -> str | None:
        if how == "terminated" and test.name == "t" and test.trial == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return execute(bench, line, test, scope)

    ScriptBench._append_res, ScriptBench.execute = appended, executed  # type: ignore[method-assign]


def run_case(case: Mapping[str, Any], directory: Path, hosts: Path | None) -> None:
    write_script(directory, case, hosts)
    words = ["-o", "r", "x.ap"]
    if case["resume"] != "no":
        end_in_trial(case, directory)
        words = ["--resume", "r"]
    done = called("run", "--json", *words, cwd=directory, check=None)
    assert done.returncode == (4 if case["failed"] == "test" else 0), done
    assert len(experiment(directory / "r")["sittings"]) == (1 if case["resume"] == "no" else 2)
    names = ["t", "u"] if case["interleave"] else ["t"]
    check_end(case, directory, names)
    for name in names:
        check_tables(case, directory, name, json.loads(done.stdout))
    if case["failed"] == "test":
        assert not any(row["kept"] for row in lines(directory / "r", "bad"))


@pytest.mark.quick
@pytest.mark.parametrize(
    "case", [case for case in [*CASES, *PREDICATES] if case["hosts"] == "none"], ids=name_of
)
def test_values_of_features_that_meet(tmp_path: Path, case: dict[str, Any]) -> None:
    run_case(case, tmp_path, None)


@pytest.mark.needs_root
@pytest.mark.needs_program("ssh", package="openssh-client")
@pytest.mark.needs_program("sshd", package="openssh-server")
@pytest.mark.needs_program("ip", package="iproute2")
@pytest.mark.parametrize("case", [case for case in CASES if case["hosts"] != "none"], ids=name_of)
def test_values_of_features_that_meet_on_hosts(tmp_path: Path, hosts: Path, case: dict[str, Any]) -> None:
    run_case(case, tmp_path, hosts)
