"""The monitor beside real trials: an outlier that a foreign burst of load has made is explained by it."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from etude.results.monitor import load
from support.places import DOCS
from support.real import ETUDE, alive, etude, experiment, lines

TRIALS, HIT, TRIES = 12, 6, 4
LOOPS = 2 * (os.cpu_count() or 1)
INTRUDER = "intruder"
NICE = -5
"""Of the burst, where that is allowed: it is stronger than what else may run on this machine."""

TRIAL = """\
import sys, time
from pathlib import Path

here, loops = Path(sys.argv[1]), int(sys.argv[2])

def until(name):
    while not (here / name).exists():
        time.sleep(0.01)

with open(here / "trials", "a") as trials:
    trials.write("x")
hit = (here / "trials").stat().st_size == int(sys.argv[3])
if hit:
    (here / "wanted").touch()
    until("there")
total = 0
for number in range(loops):
    total += number
if hit:
    (here / "over").touch()
    until("gone")
"""


@pytest.fixture(scope="module")
def loops_a_second() -> int:
    """How often this machine goes round the trial's loop in a second of CPU time."""
    count = 2_000_000
    text = f"import time\nt = 0\nfor n in range({count}):\n    t += n\nprint(time.process_time())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return round(count / float(done.stdout))


@contextmanager
def burst(here: Path) -> Iterator[None]:
    """Whoever wants it, and says so by a file, is beset by busy loops until it says that it is over."""
    name = here / INTRUDER
    name.symlink_to("/bin/sh")
    stopped = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def reached(file: str) -> bool:
        while not (here / file).exists():
            if stopped.wait(0.01):
                return False
        return True

    def beset() -> None:
        if reached("wanted"):
            nice = ["nice", "-n", str(NICE)] if os.geteuid() == 0 else []
            loop = [*nice, str(name), "-c", "while :; do :; done"]
            running.extend(subprocess.Popen(loop) for _ in range(LOOPS))
            (here / "there").touch()
            reached("over")
        for each in running:
            each.kill()
            each.wait()
        (here / "gone").touch()

    thread = threading.Thread(target=beset)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def explanations(directory: Path) -> dict[int, str]:
    """By trial: what the verdict says of the outliers."""
    done = etude("stats", "--json", str(directory), cwd=directory)
    found = [
        re.match(r"work: (trial (\d+) \(.*)", warning) for warning in json.loads(done.stdout)["warnings"]
    ]
    return {int(match[2]): match[1] for match in found if match}


def named_in(directory: Path) -> list[int]:
    """The trials that the burst explains."""
    return [trial for trial, text in explanations(directory).items() if INTRUDER in text]


def check_explained(directory: Path, hit: int) -> None:
    """In the verdict, the report and the figure the burst is named in its trial, and in no other."""
    assert named_in(directory) == [hit], explanations(directory)
    text = explanations(directory)[hit]
    assert re.search(r"used \d+\.\d CPUs\b.*\(usually \d+\.\d\): ", text), text
    assert re.search(rf"{INTRUDER} \d+\.\d CPUs \(\d+ processes, .*\bpid \d+\)", text), text
    etude("report", str(directory), "-o", "page.html", cwd=directory)
    page = (directory / "page.html").read_text()
    assert text.partition(" (")[0] in page
    assert "data:image/svg+xml;base64," in page
    etude("plot", "--monitor", str(directory), "-o", "it.png", "--trial", str(hit), cwd=directory)
    assert (directory / "it.png").stat().st_size > 10_000


def stands_out(directory: Path) -> bool:
    """Whether the trial with the burst took longer than all others, which are alike: on a busy machine they are not."""
    took = {row["trial"]: row["metrics"]["elapsed"][0] for row in lines(directory, "work") if row["kept"]}
    hit = took.pop(HIT)
    return max(took.values()) < 1.5 * statistics.median(took.values()) < 0.75 * hit


def beside_a_burst(tmp_path: Path, measure: Callable[[Path], object]) -> Path:
    """Results of a measurement with a burst in one of its trials, made again where something else disturbed it too."""
    for number in range(TRIES):
        here = tmp_path / str(number)
        here.mkdir()
        (here / "trial.py").write_text(TRIAL)
        with burst(here):
            measure(here)
        if stands_out(here / "r"):
            break
    return here / "r"


@pytest.mark.serial
def test_an_outlier_that_a_foreign_burst_made_is_explained(tmp_path: Path, loops_a_second: int) -> None:
    """The first run of a command is excluded: the hit is the next trial but one of its number."""
    command = f"{sys.executable} trial.py . {loops_a_second} {HIT + 1}"
    words = ("bench", "-o", "r", "--trials", str(TRIALS), "--monitor-top", "20", "-n", "work", command)
    found = beside_a_burst(tmp_path, lambda here: etude(*words, cwd=here))
    check_explained(found, HIT)
    noted = experiment(found)["sittings"][0]["monitor"]
    assert noted == {"file": "monitor-1.jsonl", "every_s": 1.0, "top": 20, "reason": None}


@pytest.mark.serial
def test_so_it_is_in_a_script(tmp_path: Path, loops_a_second: int) -> None:
    script = f"TEST work {TRIALS}\nEXEC {sys.executable} trial.py . {loops_a_second // 4} {HIT}\nDONE\n"
    (tmp_path / "x.ap").write_text(script)
    words = ("run", "-o", "r", "--monitor", "100ms", "--monitor-top", "20", "../x.ap")
    found = beside_a_burst(tmp_path, lambda here: etude(*words, cwd=here))
    check_explained(found, HIT)
    noted = experiment(found)["sittings"][0]["monitor"]
    assert noted == {"file": "monitor-1.jsonl", "every_s": 0.1, "top": 20, "reason": None}


@pytest.mark.quick
def test_readings_and_trials_are_of_one_clock(tmp_path: Path) -> None:
    etude("bench", "-o", "r", "--trials", "4", "--monitor", "50ms", "sleep 0.3", cwd=tmp_path)
    found = load(tmp_path / "r", 1)
    assert found is not None
    rows = lines(tmp_path / "r", "sleep-0.3")
    assert found.boot_id == rows[0]["boot_id"]
    for row in rows:
        end = row["start_ns"] + row["metrics"]["elapsed"][0] * 1e9
        assert found.edges_ns[0] - 2e9 < row["start_ns"] < end < found.edges_ns[-1] + 2e9
    assert found.samples > 10
    assert "cpu.user" in found.columns
    assert found.cost is not None


def test_off_leaves_no_trace(tmp_path: Path) -> None:
    etude("bench", "-o", "r", "--trials", "2", "--monitor", "off", "sleep 0.01", cwd=tmp_path)
    document = experiment(tmp_path / "r")
    assert document["monitor"] is None
    assert "monitor" not in document["sittings"][0]
    assert not list((tmp_path / "r").glob("monitor*"))


def test_an_experiment_shorter_than_one_interval_leaves_no_file(tmp_path: Path) -> None:
    etude("bench", "-o", "r", "--trials", "2", "--monitor", "1h", "true", cwd=tmp_path)
    noted = experiment(tmp_path / "r")["sittings"][0]["monitor"]
    if noted["file"] is None:
        assert "one interval" in noted["reason"]
    else:  # the last reading is made at the end
        assert (noted["file"], noted["reason"]) == ("monitor-1.jsonl", None)


def monitors(pid: int) -> list[int]:
    """The monitors among the children of a process."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if b"monitor" in words:
            found.append(int(child))
    return found


def until(condition: Any) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)
    return found


def test_a_killed_etude_leaves_no_monitor_and_a_whole_file(tmp_path: Path) -> None:
    words = [ETUDE, "bench", "-o", "r", "--trials", "1000", "--monitor", "50ms", "sleep 0.2"]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        (monitor,) = until(lambda: monitors(process.pid))
        until(lambda: (tmp_path / "r" / "monitor-1.jsonl").exists())
        until(lambda: b'"v":' in (tmp_path / "r" / "monitor-1.jsonl").read_bytes())
        assert os.getpgid(monitor) != os.getpgid(process.pid)
        group = Path(f"/proc/{monitor}/cgroup").read_text()
        assert "etude-" not in group
    finally:
        process.kill()
        process.wait()
    until(lambda: not alive(monitor))
    found = load(tmp_path / "r", 1)
    assert found is not None
    assert found.cost is not None
    assert not found.torn


def test_a_killed_monitor_costs_its_readings_only(tmp_path: Path) -> None:
    words = [ETUDE, "bench", "-o", "r", "--trials", "12", "--monitor", "50ms", "sleep 0.2"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        (monitor,) = until(lambda: monitors(process.pid))
        until(lambda: (tmp_path / "r" / "monitor-1.jsonl").exists())
        until(lambda: b'"v":' in (tmp_path / "r" / "monitor-1.jsonl").read_bytes())
        os.kill(monitor, signal.SIGKILL)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    noted = experiment(tmp_path / "r")["sittings"][0]["monitor"]
    assert noted["file"] == "monitor-1.jsonl"
    assert "signal 9" in noted["reason"]
    assert load(tmp_path / "r", 1) is not None
    assert len([row for row in lines(tmp_path / "r", "sleep-0.2") if row["kept"]]) == 12


def test_a_resumed_experiment_is_monitored_as_it_was(tmp_path: Path) -> None:
    words = [
        ETUDE,
        "bench",
        "-o",
        "r",
        "--trials",
        "12",
        "--monitor",
        "50ms",
        "--monitor-top",
        "3",
        "sleep 0.2",
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL)
    until(lambda: (tmp_path / "r" / "monitor-1.jsonl").exists())
    until(lambda: b'"v":' in (tmp_path / "r" / "monitor-1.jsonl").read_bytes())
    process.send_signal(signal.SIGINT)
    process.wait(60)
    etude("bench", "--resume", "r", cwd=tmp_path)
    noted = [sitting["monitor"] for sitting in experiment(tmp_path / "r")["sittings"]]
    assert [(each["file"], each["every_s"], each["top"]) for each in noted] == [
        ("monitor-1.jsonl", 0.05, 3),
        ("monitor-2.jsonl", 0.05, 3),
    ]
    refused = etude("bench", "--resume", "r", "--monitor", "off", cwd=tmp_path, check=2)
    assert "leave out --monitor" in refused.stderr


def test_a_bundle_has_the_readings(tmp_path: Path) -> None:
    etude("bench", "-o", "r", "--trials", "3", "--monitor", "50ms", "sleep 0.2", cwd=tmp_path)
    etude("bundle", "r", "-o", "r.tar.gz", "--anonymous", cwd=tmp_path)
    names = subprocess.run(
        ["tar", "tf", "r.tar.gz"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "r-bundle/results/r/monitor-1.jsonl" in names.stdout.split()
    etude("bundle", "--verify", "r.tar.gz", cwd=tmp_path)


def test_the_page_runs_as_it_is_printed(tmp_path: Path) -> None:
    page = (DOCS / "howto" / "monitor.md").read_text()
    environment = os.environ | {"PATH": f"{Path(ETUDE).parent}:{os.environ['PATH']}"}
    commands = [["sh", "-c", line[2:]] for line in page.splitlines() if line.startswith("$ ")]
    commands += [
        [sys.executable, "-c", text] for text in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    ]
    assert len(commands) == 7
    for command in commands:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert (tmp_path / "naps.png").stat().st_size > 10_000
    assert "sleep" in done.stdout or "[" in done.stdout
    assert not (tmp_path / "unseen" / "monitor-1.jsonl").exists()
