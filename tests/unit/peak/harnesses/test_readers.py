"""What load commands print, as windows; garbage is told as such and nothing else is raised."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.peak.harnesses.load_report import Reader, Run, Unreadable, Windows
from etude.peak.harnesses.readers import TOOLS, Figures, Place, ToolReader, by_expression, by_path
from etude.peak.harnesses.tools.pgbench import Pgbench
from etude.peak.window import joined_windows
from etude.results.histograms import encode
from etude.units.parsing import MILLISECOND, ONE, PER_SECOND
from support.places import DATA

DATA = DATA / "peak"


def run(log: str = "", load: float = 100.0, closed: bool = False) -> Run:
    return Run(load, closed, 3.0, 1.0, log)


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 50)), min_size=1, max_size=6), st.integers(1, 40)
)
def test_windows_come_as_they_were_told_however_they_are_cut(counts: list[tuple[int, int]], cut: int) -> None:
    lines = [
        json.dumps(
            {"duration_s": 0.5, "offered": a + b, "started": a, "completed": a, "failed": b, "mean_s": 0.01}
        )
        for a, b in counts
    ]
    text = "warming up\n" + "\n".join(lines) + "\n{torn"
    reader = Windows(run())
    told = [
        each for at in range(0, len(text), cut) for each in reader.feed(text[at : at + cut])
    ] + reader.end()
    assert [(t.window.completed, t.window.failed, t.sent) for t in told] == [(a, b, a) for a, b in counts]


def test_a_windows_mean_is_that_of_its_histogram() -> None:
    line = json.dumps({"duration_s": 1, "completed": 2, "latency": encode([10_000_000, 30_000_000])})
    (told,) = Windows(run()).feed(line + "\n")
    assert told.window.mean_s == pytest.approx(0.02, rel=1e-3)
    assert joined_windows([told.window]).percentile_s(50) == pytest.approx(0.01, rel=1e-3)


def test_how_late_requests_were_is_read_and_has_to_be_a_time() -> None:
    line = '{"duration_s": 1, "completed": 2, "mean_s": 0.1, "lateness_p99_s": %s}\n'
    assert [Windows(run()).feed(line % late)[0].lateness_p99_s for late in ("0.002", "null")] == [0.002, None]
    for late in ("-1", "NaN", '"soon"'):
        with pytest.raises(Unreadable, match="window"):
            Windows(run()).feed(line % late)


def test_requests_under_way_and_the_summary_of_windows_are_understood() -> None:
    window = {
        "duration_s": 0.5,
        "offered": 9,
        "started": 7,
        "completed": 0,
        "failed": 0,
        "outstanding": 40,
        "waiting": 2,
    }
    lines = [window, {"summary": {"ended": "whole", "duration_s": 0.5}, "outstanding": 40}]
    (told,) = Windows(run()).feed("".join(json.dumps(line) + "\n" for line in lines))
    assert (told.sent, told.busy_s, told.window.under_way) == (7, 20.0, 42)


@pytest.mark.parametrize("kind", ["windows", *TOOLS])
@given(text=st.text(max_size=400))
def test_garbage_is_told_as_unreadable(kind: str, text: str) -> None:
    reader: Reader = Windows(run()) if kind == "windows" else TOOLS[kind].reader(run("/nonexistent/log"))
    with pytest.raises(Unreadable) as caught:
        print(reader.feed(text) + reader.end())
    assert "\n" not in str(caught.value)


LINE = '{"duration_s": 1, "completed": %s}\n'


@pytest.mark.parametrize(
    ("wrong", "member"),
    [
        ("-1", "completed"),
        ("1.5", "completed"),
        ("true", "completed"),
        ('"x"', "completed"),
        ("{}", "completed"),
        ("null", "completed"),
        ("1" + "0" * 99, "completed"),
        ('1, "failed": -1', "failed"),
        ('1, "offered": 1e999', "offered"),
        ('1, "mean_s": -1', "mean_s"),
        ('1, "mean_s": "0.1"', "mean_s"),
        ('1, "mean_s": [1]', "mean_s"),
        ('1, "latency": "HIST"', "latency"),
        ('1, "latency": {"x": 1}', "latency"),
        ('1, "duration_s": "1"', "duration_s"),
        ('1, "duration_s": 0', "duration_s"),
        ('1, "duration_s": true', "duration_s"),
        ('1, "duration_s": null', "duration_s"),
        ('1, "duration_s": NaN', "duration_s"),
    ],
    ids=str,
)
def test_a_window_that_cannot_be_is_refused_by_its_number_and_member(wrong: str, member: str) -> None:
    with pytest.raises(Unreadable, match=rf"^window 2 is .*: {member}( is|:) .*expected") as caught:
        Windows(run()).feed(LINE % 1 + LINE % wrong)
    assert "\n" not in str(caught.value)


def test_a_window_has_to_say_how_much_was_completed_in_which_time() -> None:
    for line, member in (('{"duration_s": 1}', "completed"), ('{"completed": 1}', "duration_s")):
        with pytest.raises(Unreadable, match=f"^window 1 is .*: {member} is missing: expected"):
            Windows(run()).feed(line + "\n")


def test_a_window_with_answers_has_what_the_goal_limits() -> None:
    none = '{"duration_s": 1, "offered": 5, "completed": 0, "mean_s": null}\n'
    some = '{"duration_s": 1, "offered": 5, "completed": 5, "mean_s": null}\n'
    mean = '{"duration_s": 1, "offered": 5, "completed": 5, "mean_s": 0.01}\n'
    for needs, line in ((("mean",), some), (("mean", "latency"), some), (("latency",), mean)):
        with pytest.raises(Unreadable, match=r"^window 2 .*: (mean_s|latency) is missing"):
            Windows(run(), needs).feed(none + line)
    assert len(Windows(run()).feed(none + some)) == 2
    assert len(Windows(run(), ("mean",)).feed(none + mean)) == 2


def _windows(*counts: tuple[int, int], load: float = 100.0, closed: bool = False) -> int:
    lines = [f'{{"duration_s": 1, "offered": {o}, "started": 0, "completed": {c}}}\n' for o, c in counts]
    return len(Windows(run(load=load, closed=closed)).feed("".join(lines)))


def test_more_requests_cannot_end_than_were_offered_before() -> None:
    with pytest.raises(Unreadable, match=r"^window 1 is .*1200 .*expected"):
        Windows(run()).feed('{"duration_s": 1, "offered": 5, "completed": 500, "failed": 700}\n')
    with pytest.raises(Unreadable, match=r"^window 3 is "):
        _windows((100, 100), (100, 100), (100, 100_000))


def test_requests_of_a_warm_up_and_of_earlier_windows_may_end_in_later_ones() -> None:
    assert _windows((100, 3100), (100, 100)) == 2  # 30 s of a warm-up
    assert _windows((100, 0), (100, 0), (0, 200)) == 3
    assert _windows((0, 7), (1, 0)) == 2
    assert _windows((5, 1000), load=1000.0, closed=True) == 1  # each client had one under way


@pytest.mark.parametrize("kind", ["windows", "fio", "sysbench", "httperf"])
@pytest.mark.parametrize("garbage", ["y 1000\n" * 4096, "\0" * (1 << 20)], ids=["lines", "no lines"])
def test_garbage_without_end_is_refused_once_it_is_too_much(kind: str, garbage: str) -> None:
    reader: Reader = Windows(run()) if kind == "windows" else TOOLS[kind].reader(run())
    for _ in range((16 << 20) // len(garbage)):
        assert reader.feed(garbage) == []
    with pytest.raises(Unreadable, match="more than 16 MiB: expected"):
        reader.feed(garbage)


def test_talk_between_windows_may_go_on_for_ever() -> None:
    reader = Windows(run())
    for _ in range(3):
        assert len(reader.feed("x" * (9 << 20) + "\n" + LINE % 1)) == 1


PLACES = {
    "completed": Place("$.jobs[0].rate", PER_SECOND),
    "failed": Place("$.bad", ONE),
    "mean": Place("$.jobs[0].mean", MILLISECOND),
    "p50": Place("$.p.50", MILLISECOND),
    "p95": Place("$.p.95", MILLISECOND),
}


def test_json_paths_make_one_window_with_the_percentiles_that_are_known() -> None:
    text = 'tool 1.0\n{"jobs": [{"rate": 90, "mean": 12}], "bad": 3, "p": {"50": 10, "95": 40}}\n'
    reader = Figures(run(), PLACES, by_path)
    assert reader.feed(text) == []
    (told,) = reader.end()
    assert (told.window.completed, told.window.failed, told.window.offered) == (270, 3, 300)
    assert told.window.mean_s == pytest.approx(0.012)
    assert joined_windows([told.window]).percentile_s(50) == pytest.approx(0.010)
    assert joined_windows([told.window]).percentile_s(95) == pytest.approx(0.040)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing"),
        ("oops", "'oops'"),
        ('{"jobs": []}', r"\$.jobs\[0\].rate"),
        ('{"jobs": [{"rate": -1}]}', "no number"),
    ],
)
def test_json_without_a_figure_is_told(text: str, said: str) -> None:
    reader = Figures(run(), PLACES, by_path)
    reader.feed(text)
    with pytest.raises(Unreadable, match=said):
        reader.end()


def test_expressions_take_the_last_that_matches() -> None:
    places = {"completed": Place(r"done: ([0-9]+)", ONE), "mean": Place(r"avg +([0-9.]+)", MILLISECOND)}
    found = by_expression("done: 5\navg 3\ndone: 7\navg  4.5\n", places)
    assert found == {"completed": 7, "mean": pytest.approx(0.0045)}
    with pytest.raises(Unreadable, match=r"^completed: "):
        by_expression("", places)


def test_a_time_may_be_printed_with_its_unit() -> None:
    places = {"p95": Place(r"95% +(\S+)", None)}
    texts = ("95%  634.00us", "95% 1.83ms", "95%  1.20s")
    assert [by_expression(text, places)["p95"] for text in texts] == pytest.approx([634e-6, 1.83e-3, 1.2])
    with pytest.raises(Unreadable, match=r"^p95: '1.83' .* unit"):
        by_expression("95%  1.83", places)


def test_where_answers_are_not_counted_those_that_were_due_count_and_nobody_knows_what_was_sent() -> None:
    reader = Figures(run(load=100.0), {"mean": Place(r"avg +([0-9.]+)", MILLISECOND)}, by_expression)
    reader.feed("avg 4.5\n")
    (told,) = reader.end()
    assert (told.window.completed, told.window.offered, told.sent) == (300, 300, None)


def test_pgbenchs_log_is_windows_while_it_is_written(tmp_path: Path) -> None:
    """Transactions of 20 ms due each 10 ms; the second half of them fell behind by 100 ms."""
    log = tmp_path / "log"
    lines = []
    for n in range(250):
        lag = 0 if n < 125 else 100_000
        ended = 1_000_000_000_000 + n * 10_000 + 20_000 + lag
        took = "failed" if n == 7 else str(20_000 + lag)
        lines.append(f"0 {n} {took} 0 {ended // 10**6} {ended % 10**6} {lag}\n")
    reader = Pgbench(run(str(log)))
    path = tmp_path / "log.123"
    path.write_text("".join(lines[:90]) + lines[90][:9])
    assert reader.feed("") == []
    path.write_text("".join(lines[:180]))
    (first,) = reader.feed("")
    path.write_text("".join(lines))
    rest = [*reader.feed(""), *reader.end()]
    assert (first.window.completed, first.window.failed, first.window.offered) == (97, 1, 100)
    assert first.window.mean_s == pytest.approx(0.020)
    assert first.busy_s == pytest.approx(97 * 0.020)
    assert [each.window.duration_s for each in rest] == pytest.approx([1.0, 0.61])
    assert rest[-1].window.mean_s == pytest.approx(0.120)
    assert joined_windows([rest[-1].window]).percentile_s(95) == pytest.approx(0.120, rel=0.01)


def test_httperf_with_a_slow_answer_is_not_late_but_one_that_took_longer_is() -> None:
    text = (DATA / "httperf.txt").read_text()
    reader = TOOLS["httperf"].reader(run(load=190.0))
    reader.feed(text)
    (told,) = reader.end()
    assert (told.sent, told.window.completed, told.window.failed, told.refused) == (570, 570, 0, 0)
    assert told.window.offered == 570
    assert told.window.mean_s == pytest.approx(0.0028)
    assert int(told.window.latency.counts.sum()) == 570
    assert joined_windows([told.window]).percentile_s(50) == pytest.approx(0.001)
    late = TOOLS["httperf"].reader(run(load=190.0))
    late.feed(text.replace("test-duration 3.009", "test-duration 4.009"))
    assert late.end()[0].window.offered == pytest.approx(757, abs=1)


def test_sysbench_tells_a_window_a_checkpoint() -> None:
    reader = TOOLS["sysbench"].reader(run(load=50.0))
    told = reader.feed((DATA / "sysbench.txt").read_text()) + reader.end()
    assert [each.window.completed for each in told] == [57, 47, 60]
    assert [each.window.mean_s for each in told] == pytest.approx([6e-5, 8e-5, 6e-5])
    assert told[0].window.latency is None
    assert int(told[2].window.latency.counts.sum()) == 60


def test_fios_reports_since_the_start_are_windows_by_their_differences() -> None:
    text = (DATA / "fio.json").read_text()
    reader = TOOLS["fio"].reader(run(load=150.0))
    told = [
        each for at in range(0, len(text), 1000) for each in reader.feed(text[at : at + 1000])
    ] + reader.end()
    assert [each.window.completed for each in told] == [127, 166, 163]
    assert [each.window.duration_s for each in told] == pytest.approx([0.898, 1.0, 1.0], rel=0.01)
    assert told[0].window.mean_s == pytest.approx(0.848619e-3, rel=1e-4)
    assert all(int(each.window.latency.counts.sum()) == each.window.completed for each in told)


def vegeta_line(sent_s: float, took_s: float, error: str = "") -> str:
    code = 503 if error else 200
    return f"{round((1.7e9 + sent_s) * 1e9)},{code},{round(took_s * 1e9)},0,5,{error},aGVsbG8=,,7,GET,http://a/,\n"


def k6_line(sent_s: float, took_s: float, error: str = "") -> str:
    ended = datetime.fromtimestamp(1.7e9 + sent_s + took_s, timezone(timedelta(hours=2)))
    tags = {"expected_response": "false" if error else "true", "status": "503" if error else "200"}
    data = {"time": ended.isoformat(), "value": took_s * 1e3, "tags": tags}
    other = '{"type":"Point","metric":"http_reqs","data":{"time":"?","value":1,"tags":null}}'
    return other + "\n" + json.dumps({"metric": "http_req_duration", "type": "Point", "data": data}) + "\n"


@pytest.mark.parametrize(("kind", "line"), [("vegeta", vegeta_line), ("k6", k6_line)])
def test_lines_of_requests_are_windows_while_they_come(kind: str, line: Callable[..., str]) -> None:
    """One each 10 ms, of 20 ms, in pairs that end in the other order; from 2 s on they take 120 ms."""
    sent_s = [0.01 * (n + (1 if n % 2 == 0 else -1)) for n in range(300)]
    lines = [line(at, 0.020 if at < 2 else 0.120, "x" if n == 7 else "") for n, at in enumerate(sent_s)]
    reader = TOOLS[kind].reader(run())
    assert reader.feed("".join(lines[:150])) == []
    (first,) = reader.feed("".join(lines[150:204]) + lines[204][:9])
    rest = [*reader.feed(lines[204][9:] + "".join(lines[205:])), *reader.end()]
    assert (first.window.offered, first.window.completed, first.window.failed) == (100, 98, 1)
    assert first.window.mean_s == pytest.approx(0.020, rel=1e-3)
    assert first.sent is None
    assert [each.window.duration_s for each in rest] == pytest.approx([1.0, 1.0])
    assert rest[-1].window.mean_s == pytest.approx(0.118, abs=0.003)
    assert joined_windows([rest[-1].window]).percentile_s(95) == pytest.approx(0.120, rel=0.01)


def test_heys_lines_are_windows_by_when_requests_end() -> None:
    reader = TOOLS["hey"].reader(run(load=2.0, closed=True))
    told = reader.feed((DATA / "hey.csv").read_text()) + reader.end()
    # From 0.2015 s on: 11 end by 1.2015 s, and what ends then is a window that would be too short.
    assert [(t.window.offered, t.window.completed, t.window.duration_s) for t in told] == [(10, 10, 1.0)]
    assert told[0].window.mean_s == pytest.approx(0.0197, abs=1e-4)
    failing = TOOLS["hey"].reader(run(closed=True))
    failing.feed((DATA / "hey.csv").read_text().replace(",200,0.6", ",503,0.6"))
    assert [(t.window.completed, t.window.failed) for t in failing.end()] == [(8, 2)]


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("hey", "0.1,0,0,0,0,0,200"),
        ("hey", "nan,0,0,0,0,0,200,1"),
        ("vegeta", "1,200,-5,0,0,,,"),
        ("vegeta", "1,200"),
        ("vegeta", f"{10**400},200,1,0,0,,,"),
        ("k6", '{"metric":"http_req_duration","type":"Point","data":null}'),
        ("k6", '{"metric":"http_req_duration","type":"Point","data":{"time":"now","value":1,"tags":{}}}'),
    ],
)
def test_a_line_that_is_no_request_is_refused(kind: str, line: str) -> None:
    with pytest.raises(Unreadable, match=f"a line of {kind} is "):
        TOOLS[kind].reader(run()).feed(line + "\n")


@pytest.mark.parametrize(("kind", "line"), [("vegeta", vegeta_line), ("k6", k6_line)])
def test_a_request_of_years_ago_or_years_hence_is_refused(kind: str, line: Callable[..., str]) -> None:
    """Its windows, all empty, would have no end."""
    for far_s in (-1e9, 2e9):
        reader = TOOLS[kind].reader(run())
        reader.feed(line(0.0, 0.02))
        with pytest.raises(Unreadable, match=f"a line of {kind} is "):
            reader.feed(line(far_s, 0.02))


def read_whole(reader: Reader, text: str) -> None:
    reader.feed(text)
    reader.end()


SPOILT = [
    ("sysbench", "sysbench.txt", r"avg: +[0-9.]+", "avg: 0.08.08"),
    ("sysbench", "sysbench.txt", r"number of events: +[0-9]+", f"number of events: {9 * 10**30}"),
    ("httperf", "httperf.txt", r"test-duration [0-9.]+", "test-duration 3.0.0"),
    ("httperf", "httperf.txt", r"2xx=[0-9]+", f"2xx={10**30}"),
    ("fio", "fio.json", r'"runtime" *: *[0-9]+', f'"runtime" : {10**400}'),
    ("fio", "fio.json", r'"N" *: *[0-9]+', f'"N" : {10**30}'),
]


@pytest.mark.parametrize(
    ("kind", "name", "pattern", "other"), SPOILT, ids=[f"{n}" for n in range(len(SPOILT))]
)
def test_a_number_that_is_none_is_refused(kind: str, name: str, pattern: str, other: str) -> None:
    text, count = re.subn(pattern, other, (DATA / name).read_text())
    assert count
    with pytest.raises(Unreadable, match=kind):
        read_whole(ToolReader(run(), kind), text)


@pytest.mark.parametrize(("name", "value"), [("completed", "1e300"), ("p99", "1e12"), ("max", "1e300")])
def test_a_figure_that_nobody_measured_is_refused(name: str, value: str) -> None:
    places = {each: Place(f"$.{each}", ONE) for each in ("completed", "p99", "max")}
    document = {"completed": 1000, "p99": 0.1, "max": 0.2} | {name: float(value)}
    with pytest.raises(Unreadable, match=name):
        read_whole(Figures(run(), places, by_path), json.dumps(document))


def test_reports_of_a_long_run_of_sysbench_are_as_many_as_one_word_of_a_command_holds() -> None:
    due = Run(100.0, False, 7 * 86400.0, 1.0, "").checkpoints().split(",")
    assert len(due) <= 1000
    assert int(due[-1]) < 7 * 86400
    assert Run(100.0, False, 4.0, 1.0, "").checkpoints() == "1,2,3"
