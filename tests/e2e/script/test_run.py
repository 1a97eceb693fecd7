"""`etude run` as a user meets it: real processes, real signals, and what lies on disk afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.real import ETUDE, called, etude, experiment, lines, one_line

pytestmark = pytest.mark.beside


def script(directory: Path, text: str, name: str = "x.ap") -> str:
    (directory / name).write_text(text)
    return name


def run(directory: Path, text: str, *arguments: str, check: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script into the directory `r` below `directory`."""
    return called("run", "-o", "r", script(directory, text), *arguments, cwd=directory, check=check)


@pytest.mark.quick
def test_a_script_runs_to_its_table(tmp_path: Path) -> None:
    done = run(tmp_path, "FOREACH N 1 2\nTHREADS=%N%\nTEST t:%N% 3\nEXEC sleep 0.0%N%\nDONE\nDONE\n")
    assert "t:1" in done.stdout
    assert "t:2" in done.stdout
    document = experiment(tmp_path / "r")
    assert [t["parameters"] for t in document["tests"]] == [{"N": "1"}, {"N": "2"}]
    assert [t["workers"] for t in document["tests"]] == [1, 2]
    assert document["plan"]["kind"] == "script"
    assert document["sittings"][0]["how_ended"] == "complete"
    assert len(lines(tmp_path / "r", "t-2")) == 6
    assert not (tmp_path / "r" / "state.json").exists()


@pytest.mark.quick
def test_the_res_files_are_read_back(tmp_path: Path) -> None:
    run(tmp_path, "TEST ext2:1 3\nEXEC sleep 0.01\nDONE\n")
    text = (tmp_path / "r" / "ext2:1.res").read_text()
    assert text.index("[system]") < text.index("[measurement]")
    assert text.count("[measurement]\nthread = 1\nepoch = ") == 3
    done = etude("stats", "--json", "r/ext2:1.res", cwd=tmp_path)
    again = etude("stats", "--json", "r", cwd=tmp_path)
    means = [json.loads(d.stdout)["tests"][0]["metrics"]["elapsed"]["mean"] for d in (done, again)]
    assert means[0] == pytest.approx(means[1], abs=2e-9)
    table = subprocess.run(
        [str(Path(ETUDE).with_name("getstats")), "r/ext2:1.res"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "NAME" in table
    assert "Elapsed" in table


@pytest.mark.quick
def test_each_command_that_a_script_measures_is_a_row(tmp_path: Path) -> None:
    text = "THREADS=2\nTEST t 2\nEXEC sh -c 'aptime -- sleep 0.02 && aptime -- sleep 0.01; echo said $APTHREAD'\nDONE\n"
    run(tmp_path, text)
    rows = lines(tmp_path / "r", "t")
    assert [(r["trial"], r["worker"], r["command"][-1]) for r in rows] == [
        (trial, worker, what) for trial in (1, 2) for worker in (0, 1) for what in ("0.02", "0.01")
    ]
    assert all(row["rows"] == 4 for row in rows)
    assert (tmp_path / "r" / "t" / "logs" / "0001-1.log").read_text() == "said 2\n"
    document = json.loads(etude("stats", "--json", "r", cwd=tmp_path).stdout)
    assert document["tests"][0]["metrics"]["elapsed"]["mean"] >= 0.03, (
        "commands are summed before workers are joined"
    )
    assert not list((tmp_path / "r" / "t").glob("aplog*"))


def test_what_scripts_see_of_their_surroundings(tmp_path: Path) -> None:
    text = """\
ENV COLOUR=blue
THREADS=2
TEST t:x 2
SETUP env | grep -E '^(AP|THREADS|TEST|COLOUR)' | sort > setup.env
EXEC sh -c 'env | sort > exec-$APTHREAD.env'
DONE
"""
    run(tmp_path, text, "TESTROOT=/mnt/t")
    setup, first, second = (
        dict(line.split("=", 1) for line in (tmp_path / name).read_text().splitlines() if "=" in line)
        for name in ("setup.env", "exec-1.env", "exec-2.env")
    )
    assert (setup["APMODE"], first["APMODE"]) == ("SETUP", "EXEC")
    assert (setup["APTHREAD"], first["APTHREAD"], second["APTHREAD"]) == ("1", "1", "2")
    assert first["APLOG"] != second["APLOG"]
    assert first["APIPCKEY"].startswith("/proc/")
    assert second["APIPCKEY"].startswith("/proc/")
    assert "APIPCKEY" not in setup
    expected = {
        "APEPOCH": "2",
        "THREADS": "2",
        "TESTROOT": "/mnt/t",
        "TESTDIR": "/mnt/t",
        "COLOUR": "blue",
        "APTEST": "t:x",
    }
    for environment in (setup, first):
        assert expected.items() <= environment.items()
        assert environment["APRESULTS"] == str(tmp_path / "r")
        assert environment["APTIMER"] == "aptime"


@pytest.mark.quick
def test_metrics_come_from_the_output_of_each_worker(tmp_path: Path) -> None:
    text = (
        "THREADS=2\nTEST t 2\nMETRIC speed:B/s rate: ([0-9.]+)\nEXEC sh -c 'echo rate: $APTHREAD.5'\nDONE\n"
    )
    run(tmp_path, text)
    assert [row["metrics"]["speed"] for row in lines(tmp_path / "r", "t")] == [[1.5, "B/s"], [2.5, "B/s"]] * 2


def test_an_accepted_status_is_no_failure_of_its_exec_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("text\n")
    grep = f"ACCEPT 1 grep -q absent {tmp_path}/f"
    text = f"TEST good 2\nEXEC {grep}\nEXEC true\nDONE\nTEST bad 2\nEXEC {grep}\nEXEC sh -c 'exit 1'\nDONE\n"
    run(tmp_path, text, check=4)
    rows = lines(tmp_path / "r", "good")
    assert [(row["exit_status"], row.get("accepted"), row["kept"]) for row in rows] == [
        (0, 1, True),
        (0, None, True),
    ] * 2
    rows = lines(tmp_path / "r", "bad")
    assert {(row["exit_status"], row.get("accepted"), row["why"]) for row in rows} == {
        (0, 1, "failed"),
        (1, None, "failed"),
    }
    assert "\naccepted = 1\n" in (tmp_path / "r" / "good.res").read_text()


def test_a_metric_is_searched_in_the_output_of_its_own_exec(tmp_path: Path) -> None:
    text = """\
THREADS=2
TEST t 2
METRIC rate:1/s rate=([0-9]+)
EXEC echo rate=100
EXEC echo rate=300
EXEC echo nothing
DONE
"""
    run(tmp_path, text)
    rates = [row["metrics"]["rate"][0] for row in lines(tmp_path / "r", "t")]
    assert rates == [100.0, 100.0, 300.0, 300.0, None, None] * 2
    log = (tmp_path / "r" / "t" / "logs" / "0002-1.log").read_text()
    assert log == "rate=100\nrate=300\nnothing\n"


def test_rates_of_workers_add_up_wherever_they_are_shown(tmp_path: Path) -> None:
    text = """\
THREADS=4
TEST t 3 1 getstats --predicate '"$name" eq "rate" && $mean > 4000' --columns rate
METRIC rate:1/s rate=([0-9]+)
METRIC slowest:1/s min rate=([0-9]+)
EXEC sh -c 'echo rate=100$APTHREAD'
DONE
"""
    run(tmp_path, text)
    assert len(lines(tmp_path / "r", "t")) == 12
    metrics = json.loads(called("stats", "--json", "r", cwd=tmp_path).stdout)["tests"][0]["metrics"]
    found = {name: (metrics[name]["mean"], metrics[name]["joined"]) for name in ("rate", "slowest")}
    assert found == {"rate": (4010.0, "sum"), "slowest": (1001.0, "min")}
    of_file = json.loads(called("stats", "--json", "r/t.res", cwd=tmp_path).stdout)["tests"][0]["metrics"]
    assert [of_file[name]["mean"] for name in ("rate", "slowest")] == [4010.0, 1001.0]


@pytest.mark.quick
def test_getstats_decides_in_process_and_any_other_program_on_the_results_file(tmp_path: Path) -> None:
    run(tmp_path, "TEST t 3 2 getstats --predicate '$count >= 6'\nEXEC true\nDONE\n")
    assert len(lines(tmp_path / "r", "t")) == 7
    judge = tmp_path / "judge.sh"
    judge.write_text("#!/bin/sh\ntest $(grep -c '^\\[measurement\\]' \"$2\") -ge $1\n")
    judge.chmod(0o755)
    etude("run", "-o", "s", script(tmp_path, f"TEST t 2 1 {judge} 5\nEXEC true\nDONE\n"), cwd=tmp_path)
    assert len(lines(tmp_path / "s", "t")) == 5


def test_a_stop_program_that_cannot_be_run_stops_the_experiment(tmp_path: Path) -> None:
    said = one_line(run(tmp_path, "TEST t 2 1 no-such-program\nEXEC true\nDONE\n", check=4).stderr)
    assert "no-such-program" in said
    assert len(lines(tmp_path / "r", "t")) == 2


@pytest.mark.quick
def test_a_stop_rule_that_names_no_metric_ends_the_script_behind_its_first_trial(tmp_path: Path) -> None:
    text = """\
TEST t 3 1 getstats --predicate '$hw < 5' --columns write_iop
METRIC write_iops:1/s n=([0-9]+)
EXEC echo n=5
DONE
"""
    said = one_line(run(tmp_path, text, check=3).stderr)
    assert "write_iop;" in said
    assert "write_iops" in said
    assert len(lines(tmp_path / "r", "t")) == 1


@pytest.mark.quick
def test_a_metric_that_finds_several_values_is_found_wherever_it_looks(tmp_path: Path) -> None:
    text = """\
TEST t 2
METRIC printed n=([0-9]+)
METRIC aside FROM CLEANUP "echo 10; echo 20" ([0-9]+)
METRIC first FROM CLEANUP "echo 10 20"
EXEC printf 'n=1\\nn=2\\n'
DONE
"""
    done = run(tmp_path, text, "--json")
    several = [each for each in json.loads(done.stdout)["findings"] if each["kind"] == "several-matches"]
    assert {each["metric"]: "(1, 2)" in each["text"] or "(10, 20)" in each["text"] for each in several} == {
        "printed": True,
        "aside": True,
    }
    assert "(10, 20)" in done.stderr
    words = ["bench", "-o", "b", "--trials", "2", "--json", "--metric", "n=n=([0-9]+)", "printf n=1,n=2"]
    found = json.loads(etude(*words, cwd=tmp_path).stdout)["findings"]
    assert "n" in [each["metric"] for each in found if each["kind"] == "several-matches"]


@pytest.mark.quick
def test_a_test_that_never_comes_to_its_exec_says_so(tmp_path: Path) -> None:
    text = "TEST t 2\nSETUP true\nIF THREADS = 2\nEXEC true\nFI\nDONE\n"
    said = run(tmp_path, text, check=4).stderr
    (test,) = experiment(tmp_path / "r")["tests"]
    assert "EXEC" in test["ended"]
    assert f"t: {test['ended']}" in said.splitlines()[-1]


def test_a_test_that_a_limit_ended_is_marked(tmp_path: Path) -> None:
    rule = "getstats --predicate '$hw < 0.0001 || $count > 2' --columns elapsed"
    text = f"TEST counted 2 1 {rule}\nEXEC true\nDONE\nTEST bounded 2 MAX=2 1 {rule}\nEXEC true\nDONE\n"
    done = run(tmp_path, f"{text}TEST fixed 2\nEXEC true\nDONE\n")
    tests = {test["name"]: test for test in experiment(tmp_path / "r")["tests"]}
    assert {name: test["limited"] for name, test in tests.items()} == {
        "counted": True,
        "bounded": True,
        "fixed": False,
    }
    assert "$count > 2" in tests["counted"]["ended"]
    assert " counted * " in done.stdout
    assert " fixed * " not in done.stdout


def test_the_time_of_a_test_is_the_clocks_with_what_runs_between_its_trials(tmp_path: Path) -> None:
    rule = "getstats --predicate '$count > 40' --columns elapsed"
    run(tmp_path, f"TEST t 2 TIME=0.3s 1 {rule}\nSETUP sleep 0.1\nEXEC true\nDONE\n")
    (test,) = experiment(tmp_path / "r")["tests"]
    assert test["limited"]
    assert len(lines(tmp_path / "r", "t")) < 10


def test_a_metric_that_is_watched_stands_with_its_test(tmp_path: Path) -> None:
    text = "VAR WATCH=handles\nTEST t 12\nMETRIC handles ([0-9]+)\nEXEC sh -c 'echo $((100 + 9 * APEPOCH))'\nDONE\n"
    found = json.loads(run(tmp_path, text, "--json").stdout)["findings"]
    assert ("drift", "handles") in [(each["kind"], each["metric"]) for each in found]
    (again := tmp_path / "again").mkdir()
    run(again, text, "--watch", "handles,other")
    assert experiment(again / "r")["tests"][0]["watch"] == ["handles", "other"]


def test_a_metric_that_does_not_fit_is_told_once(tmp_path: Path) -> None:
    done = run(tmp_path, "TEST t 3\nMETRIC rate never([0-9]+)\nEXEC echo hello\nDONE\n")
    assert done.stderr.count("METRIC rate") == 1


@pytest.mark.quick
@pytest.mark.serial
def test_interleaved_tests_are_compared(tmp_path: Path) -> None:
    text = "INTERLEAVE\nFOREACH N 1 2\nTEST t%N% 6\nEXEC sleep 0.0%N%\nDONE\nDONE\nDONE\n"
    done = run(tmp_path, text, "--seed", "3")
    assert "t2 takes" in done.stdout
    assert "6 pairs" in etude("stats", "r", cwd=tmp_path).stdout
    rows = [*lines(tmp_path / "r", "t1"), *lines(tmp_path / "r", "t2")]
    assert sorted((r["block"], r["order"]) for r in rows) == [(b, o) for b in range(1, 7) for o in (0, 1)]


def test_fastfail_leaves_all_as_it_is_and_tells_its_script_why(tmp_path: Path) -> None:
    text = """\
FASTFAIL printenv APEVENT APREASON APTEST > told
TEST t 3
SETUP touch mounted
EXEC sh -c 'echo disk gone >&2; exit 3'
CLEANUP rm mounted
DONE
"""
    done = run(tmp_path, text, check=4)
    said = one_line(done.stderr)
    assert "3: disk gone" in said
    assert "FASTFAIL" in said
    event, reason, test = (tmp_path / "told").read_text().splitlines()
    assert (event, test) == ("failure", "t")
    assert "disk gone" in reason
    assert (tmp_path / "mounted").exists(), "the state is left for inspection"
    assert [(r["kept"], r["why"]) for r in lines(tmp_path / "r", "t")] == [(False, "failed")]


def test_without_fastfail_the_other_tests_run(tmp_path: Path) -> None:
    text = """\
TEST bad 2
EXEC sh -c 'echo one; echo two >&2; exit 3'
DONE
TEST good 2
EXEC true
DONE
TEST fewer 3 MAX=3
EXEC sh -c 'test $APEPOCH != 2'
DONE
"""
    done = run(tmp_path, text, check=4)
    assert " good " in done.stdout, "the table of the others"
    *_, said, first, second = done.stderr.splitlines()
    assert said.startswith("etude: ")
    for part in ("bad;", "fewer (2 of at least 3)", "exit status 3", "r/bad/logs/0003-0.log"):
        assert part in said
    assert (first[4:], second[4:]) == ("one", "two")
    assert len(lines(tmp_path / "r", "good")) == 2
    failure = experiment(tmp_path / "r")["tests"][0]["failure"]
    assert (failure["trial"], failure["at"], failure["log"]) == (3, "EXEC", "bad/logs/0003-0.log")


@pytest.mark.parametrize(
    "text", ["TEST t 2 MAX=2\nEXEC false\nDONE\n", "TEST t 2 MAX=2\nSETUP false\nEXEC true\nDONE\n"]
)
def test_a_test_of_which_no_trial_is_kept_is_a_failure(tmp_path: Path, text: str) -> None:
    assert "t (0 of at least 2)" in one_line(run(tmp_path, text, check=4).stderr)


@pytest.mark.quick
def test_a_checkpoint_is_gone_on_from_once_and_exactly(tmp_path: Path) -> None:
    text = """\
TEST t 3
PRESETUP echo presetup >> story
EXEC true
CHECKPOINT state.json
IF RESTORE = 0
ECHO parent %RESTORE%
SYSTEM test $APRESULTS = nowhere || echo stop >> story
STOP
ELSE
ECHO child
FI
DONE
"""
    done = run(tmp_path, text)
    assert "parent 0" in done.stdout
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["format"], state["version"], state["exact"]) == ("etude-checkpoint", 3, True)
    assert os.stat(tmp_path / "state.json").st_mode & 0o777 == 0o600
    again = etude("run", "state.json", cwd=tmp_path)
    assert "child" in again.stdout
    assert (tmp_path / "story").read_text().splitlines().count("presetup") == 1
    assert {r["sitting"] for r in lines(tmp_path / "r", "t")} == {1, 2}


def checkpointed(tmp_path: Path) -> Path:
    run(tmp_path, "CHECKPOINT s.json\nTEST t 1\nEXEC true\nDONE\n")
    return tmp_path / "s.json"


def test_a_state_that_others_may_have_written_is_refused(tmp_path: Path) -> None:
    state = checkpointed(tmp_path)
    state.chmod(0o662)
    assert "s.json: others may write" in one_line(called("run", "s.json", cwd=tmp_path, check=3).stderr)


@pytest.mark.needs_root
def test_a_state_of_another_user_is_refused(tmp_path: Path) -> None:
    state = checkpointed(tmp_path)
    os.chown(state, 65534, 65534)
    assert "belongs to user 65534" in one_line(called("run", "s.json", cwd=tmp_path, check=3).stderr)


def test_a_link_to_a_state_is_refused(tmp_path: Path) -> None:
    checkpointed(tmp_path)
    (tmp_path / "link.json").symlink_to("s.json")
    one_line(called("run", "link.json", cwd=tmp_path, check=3).stderr)


def test_a_changed_script_is_not_gone_on_with(tmp_path: Path) -> None:
    checkpointed(tmp_path)
    (tmp_path / "x.ap").write_text("CHECKPOINT s.json\nTEST t 2\nEXEC true\nDONE\n")
    assert "has changed" in one_line(called("run", "s.json", cwd=tmp_path, check=3).stderr)


@pytest.mark.parametrize(
    "damage",
    [
        '{"format": "etude-checkpoint", "version": 99}',
        "{",
        "{}",
        '{"format": "etude-checkpoint", "version": 1, "state": {}}',
    ],
)
def test_a_damaged_state_is_one_line(tmp_path: Path, damage: str) -> None:
    (tmp_path / "s.json").write_text(damage)
    one_line(called("run", "s.json", cwd=tmp_path, check=3).stderr)


SLOW = """\
TEST t 4
PRESETUP echo presetup >> story
SETUP echo setup >> story
EXEC sh -c 'echo exec >> story; sleep 0.3'
CLEANUP echo cleanup >> story
POSTCLEANUP echo postcleanup >> story
DONE
TEST u 1
EXEC true
DONE
"""


def started(tmp_path: Path, text: str, execs: int) -> subprocess.Popen[str]:
    """A script under way, in its so many-th EXEC."""
    process = subprocess.Popen(
        [ETUDE, "run", "-o", "r", script(tmp_path, text)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    story = tmp_path / "story"
    for _ in range(1000):
        if story.exists() and story.read_text().count("exec") >= execs:
            return process
        time.sleep(0.02)
    raise AssertionError("it never began")


@pytest.mark.quick
def test_an_interrupt_cleans_up_and_can_be_gone_on_from(tmp_path: Path) -> None:
    process = started(tmp_path, SLOW, 2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "etude run --resume r" in one_line(said)
    story = (tmp_path / "story").read_text().split()
    assert story[-2:] == ["cleanup", "postcleanup"]
    done = etude("run", "--resume", "r", cwd=tmp_path)
    assert "resumed" in done.stderr
    rows = lines(tmp_path / "r", "t")
    assert sum(row["kept"] for row in rows) == 4
    assert len({row["trial"] for row in rows}) == len(rows)
    assert lines(tmp_path / "r", "u")
    story = (tmp_path / "story").read_text().split()
    assert story.count("presetup") == story.count("postcleanup") == 2


@pytest.mark.quick
def test_after_a_kill_no_finished_trial_is_lost_or_run_again(tmp_path: Path) -> None:
    process = started(tmp_path, SLOW, 3)
    process.kill()
    process.communicate(timeout=30)
    before = lines(tmp_path / "r", "t")
    assert len(before) == 2
    etude("run", "--resume", "r", cwd=tmp_path)
    after = lines(tmp_path / "r", "t")
    assert after[:2] == before
    assert [row["trial"] for row in after] == [1, 2, 3, 4]
    assert [row["sitting"] for row in after] == [1, 1, 2, 2]


WAIT = "until test -e go; do sleep 0.05; done"
ENDING = f"""\
TEST t 3 MAX=3 1 ./judge
PRESETUP echo presetup >> story
EXEC sh -c 'echo exec >> story'
POSTCLEANUP echo postcleanup >> story; @
DONE
TEST u 1
EXEC sh -c 'echo u >> story; {WAIT}'
DONE
"""


@pytest.mark.parametrize(
    ("at", "again"),
    [("judge", ["postcleanup", "u"]), ("postcleanup", ["postcleanup", "u"]), ("u", ["u"])],
)
def test_after_a_kill_behind_the_last_row_no_trial_is_added(
    tmp_path: Path, at: str, again: list[str]
) -> None:
    text = ENDING.replace("@", WAIT if at == "postcleanup" else "true")
    text = text.replace("MAX=3", "MAX=9") if at == "judge" else text
    judge = tmp_path / "judge"
    judge.write_text(f"#!/bin/sh\necho judge >> story; {WAIT}\n")
    judge.chmod(0o755)
    (tmp_path / "story").touch()
    process = subprocess.Popen([ETUDE, "run", "-o", "r", script(tmp_path, text)], cwd=tmp_path)
    story = tmp_path / "story"
    while at not in story.read_text().split():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = story.read_text().split()
    assert before.count("exec") == 3
    (tmp_path / "go").touch()
    called("run", "--resume", "r", cwd=tmp_path)
    assert [word for word in story.read_text().split()[len(before) :] if word != "judge"] == again
    assert [row["trial"] for row in lines(tmp_path / "r", "t")] == [1, 2, 3]
    assert len(lines(tmp_path / "r", "u")) == 1
    ends = {test["name"]: test.get("ended") for test in experiment(tmp_path / "r")["tests"]}
    assert all(ends.values())


def test_what_is_wrong_is_shown_with_a_caret_before_anything_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "SYSTEM touch ran\nTEST t 2\nEXEC true\nFI\n", check=3)
    first, shown, caret = done.stderr.splitlines()
    assert first.startswith("etude: x.ap:4: ")
    assert shown == "     4 | FI"
    assert caret.endswith("| ^")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "r").exists()
    done = run(tmp_path, "SYSTEM touch ran\nECHO %NAME%\n", check=3)
    assert re.search(r"x\.ap:2: .*\bNAME\b", done.stderr)
    assert not (tmp_path / "ran").exists()


def test_check_and_list_run_nothing(tmp_path: Path) -> None:
    name = script(
        tmp_path,
        "SYSTEM touch ran\nFOREACH N 1 2\n"
        "TEST t%N% 5 MAX=9 1 getstats --predicate '$count'\nEXEC touch ran\nDONE\nDONE\n",
    )
    assert called("run", "--list", name, cwd=tmp_path).stdout.split() == ["t1", "t2"]
    told = called("run", "--check", name, cwd=tmp_path).stdout
    assert "x.ap: 2 tests" in told
    assert re.search(r"\bt2: .*\b5 trials.*\b9\b", told)
    assert "  EXEC touch ran" in told
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TEST a 1\nEXEC true\nDONE\nTEST a 1\nEXEC true\nDONE\n", "x.ap:4: a second test of the name 'a'"),
        ("TEST a 2 1 getstats --predicate '$mean <'\nEXEC true\nDONE\n", "predicate"),
        ("TEST a 2 1 getstats --predicate '$meen < 1'\nEXEC true\nDONE\n", "meen"),
        ("TEST a 2\nSETUP true\nDONE\n", "x.ap:1: a TEST without EXEC"),
        ("VAR PROBES=disk,dsik\nTEST a 2\nEXEC true\nDONE\n", "x.ap:3: no probe 'dsik'"),
    ],
)
def test_bad_scripts_are_found_before_anything_runs(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in run(tmp_path, text, check=3).stderr
    assert not (tmp_path / "r").exists()


def test_variables_of_the_command_line_win(tmp_path: Path) -> None:
    done = run(tmp_path, "VAR N=1\nECHO %N% $N$\nSYSTEM echo $N > n\n", "N=7")
    assert done.stdout.splitlines()[0] == "7 7"
    assert (tmp_path / "n").read_text() == "7\n"
    assert "expected NAME=VALUE" in one_line(run(tmp_path, "ECHO x\n", "7", check=2).stderr)


def test_a_script_knows_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    script(tmp_path / "there", "ECHO %SCRIPTDIR%\n")
    done = called("run", "-o", "r", "there/x.ap", cwd=tmp_path)
    assert done.stdout.splitlines()[0] == str(tmp_path / "there")


def test_a_warm_cache_takes_a_run_that_is_set_aside(tmp_path: Path) -> None:
    run(tmp_path, "TEST t 2\nCACHE warm\nEXEC true\nDONE\n")
    rows = lines(tmp_path / "r", "t")
    assert [(r["trial"], r["kept"], r["why"]) for r in rows] == [
        (0, False, "first run"),
        (1, True, None),
        (2, True, None),
    ]
    assert [(r["cache"]["declared"], r["cache"]["performed"]) for r in rows] == [
        ("warm", None),
        ("warm", "warm"),
        ("warm", "warm"),
    ]
    assert (tmp_path / "r" / "t.res").read_text().count("[measurement]") == 2


def test_a_setup_may_start_a_server_which_lives_until_the_test_ends(tmp_path: Path) -> None:
    text = "TEST t 2\nPRESETUP sleep 60 & echo $! > pid\nEXEC sh -c 'kill -0 $(cat pid)'\nDONE\n"
    run(tmp_path, text)
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_one_worker_that_dies_before_the_barrier_ends_the_trial_with_its_reason(tmp_path: Path) -> None:
    text = """\
FASTFAIL
THREADS=3
TEST t 1
EXEC sh -c 'if [ $APTHREAD = 2 ]; then exit 7; fi; etude-engine measure --barrier -- sleep 0.1'
DONE
"""
    said = one_line(run(tmp_path, text, check=4).stderr)
    assert "thread 2" in said
    assert "exit status 7" in said
    assert "barrier" in said
    assert not any(row["kept"] for row in lines(tmp_path / "r", "t"))


def test_no_worker_begins_its_measured_part_before_the_last_is_ready(tmp_path: Path) -> None:
    text = """\
THREADS=4
TEST t 3
EXEC sh -c 'sleep 0.0$APTHREAD; date +%%s%%N > ready-$APEPOCH-$APTHREAD; etude-engine measure --barrier -- sleep 0.01'
DONE
"""
    run(tmp_path, text)
    for trial in (1, 2, 3):
        ready = [int((tmp_path / f"ready-{trial}-{n}").read_text()) for n in (1, 2, 3, 4)]
        rows = [row for row in lines(tmp_path / "r", "t") if row["trial"] == trial]
        assert len(rows) == 4
        starts = [nanoseconds(row["start"]) for row in rows]
        assert min(starts) > max(ready)


def nanoseconds(start: str) -> int:
    """Since the epoch, from `2026-01-01T00:00:00.123456789Z`."""
    whole, _, rest = start.rstrip("Z").partition(".")
    seconds = time.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    import calendar

    return calendar.timegm(seconds) * 10**9 + int(rest.ljust(9, "0")[:9])


BURNER = """\
import os, time
open("/proc/self/comm", "w").write("stranger")
while not os.path.exists("go"):
    time.sleep(0.01)
begin = time.process_time()
while time.process_time() - begin < 1.0:
    pass
open("burnt", "w").write(str(time.process_time() - begin))
"""


@pytest.mark.serial
def test_a_stranger_that_burns_cpu_beside_a_trial_is_named_with_its_time(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", BURNER], cwd=tmp_path)
    try:
        text = "TEST t 1\nEXEC sh -c 'touch go; while [ ! -s burnt ]; do sleep 0.1; done; sleep 1'\nDONE\n"
        run(tmp_path, text, "--probe", "others")
        burnt = float((tmp_path / "burnt").read_text())
    finally:
        stranger.kill()
        stranger.wait()
    block = json.loads((tmp_path / "r" / "t" / "blocks.jsonl").read_text())
    used = dict(line.split(" = ", 1) for line in block["lines"])
    assert float(used["stranger"].split()[0]) == pytest.approx(burnt, rel=0.1)
    assert "[others]" in (tmp_path / "r" / "t.res").read_text()
