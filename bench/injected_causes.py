"""Whether outliers are explained by what caused them: a cause is injected into one trial of each experiment.

Each experiment has a command of about 0.2 s, one trial of which is disturbed on purpose. Counted is how often the first
thing that the explanation names is of the cause's kind. Of `nap` and `longer` a trial sleeps, or computes, by itself.
Of `undisturbed` no trial is: time is added to each trial in turn in the rows as
they were stored, and the monitor's samples stay as they are. Nothing else should run; most kinds need root.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from disturbances import (
    PORT,
    VICTIM,
    Disturbance,
    NotMeasurable,
    Site,
    hog,
    limit_memory,
    nothing,
    pinned,
    quota,
    short,
    stop,
    timers,
    transfer,
    with_file,
    with_link,
    with_swap,
    writer,
)
from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions

SLEPT, COMPUTED = r"^for [^;]* it neither ran nor waited", r"^it used [^;]* itself"
UNEXPLAINED = rf"^$|^nothing in the monitor|{SLEPT}|{COMPUTED}"
CAUSES: dict[str, Disturbance] = {
    "hog": Disturbance(hog, r"^other processes used|^CPU pressure"),
    "writer": Disturbance(
        writer,
        r"^other processes used [^;]*\bdd |^\S+ (busy|written)|^waiting for I/O|^I/O pressure",
        work="write",
    ),
    "network": Disturbance(transfer, r"^etude\d+a received", work="exchange", site=with_link),
    "memory": Disturbance(
        limit_memory, r"^(it had \d+ |memory pressure|major faults)(?!.*swap)", work="file", site=with_file
    ),
    "swap": Disturbance(
        limit_memory, r"^(it had \d+ [^;]*swap|pages swapped)", work="memory", site=with_swap
    ),
    "timers": Disturbance(
        timers, r"^(?=.*(interrupts|context switches))(other processes used|interrupts|context switches)"
    ),
    "short": Disturbance(short, r"^other processes used|^CPU pressure"),
    "pinned": Disturbance(pinned, r"^other processes used .*python|CPUs that it may use"),
    "stop": Disturbance(stop, r"^[^;]*SIGSTOP"),
    "quota": Disturbance(quota, r"^[^;]*(cpu\.max|CPU quota)"),
    "nap": Disturbance(nothing, SLEPT, work="nap"),
    "longer": Disturbance(nothing, COMPUTED, work="longer"),
}
UNDISTURBED = "undisturbed"
WORKS = ("hog", "writer", "network", "memory")
"""Causes whose trials are measured without them, in turn, as the undisturbed ones."""
AFTER_S = 0.03
"""From a trial's first step to its disturbance."""


def measured(cause: Disturbance, site: Site, hit: int, trials: int, directory: Path) -> Path:
    """The results of an experiment whose trial `hit` is disturbed."""
    seen, program, results = directory / "seen", directory / "victim.py", directory / "r"
    seen.mkdir()
    program.write_text(VICTIM)
    over = threading.Event()

    def inject() -> None:
        pid_file = seen / str(hit)
        while not (pid_file.exists() and (pid := pid_file.read_text())):
            if over.wait(0.005):
                return
        time.sleep(AFTER_S)
        with suppress(ProcessLookupError):
            cause.inject(int(pid), site)

    victim = [sys.executable, program, seen, hit, cause.work, site.data, site.group or "", site.address, PORT]
    run = ["bench", "-o", results, "--trials", trials, "--monitor", "100ms", shlex.join(map(str, victim))]
    etude = [str(each) for each in (Path(sys.executable).with_name("etude"), *run)]
    with ThreadPoolExecutor(1) as pool:
        injected = pool.submit(inject)
        try:
            done = subprocess.run(etude, check=False, capture_output=True, text=True)
        finally:
            over.set()
        injected.result()
    if not results.exists():
        raise SystemExit(done.stderr.strip())
    return results


def told(results: Path) -> dict[int, str]:
    """The explanations of outliers, by trial; empty of one that has none."""
    subject = read_subject(str(results))
    assert isinstance(subject, Subject)
    found = verdict(subject, None, VerdictOptions(every_outlier=True)).every
    apart = {trial: "" for each in found if each.kind == "outliers" for trial in each.trials}
    return apart | {
        trial: each.text.partition("): ")[2]
        for each in found
        if each.kind == "outlier-explained"
        for trial in each.trials
    }


@contextmanager
def place(cause: Disturbance) -> Iterator[tuple[Site, Path]]:
    """Where an experiment is made: on a disk, as /tmp may be none."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        data = Path(name, "data")
        with cause.site(data) if cause.site else nullcontext(Site(data)) as site:
            yield site, Path(name)


def disturbed(kind: str, trials: int, rng: random.Random) -> list[str | None]:
    """The explanation of the disturbed trial of an experiment; None where the trial is no outlier."""
    cause = CAUSES[kind]
    hit = rng.randrange(3, trials - 1)
    with place(cause) as (site, directory):
        return [told(measured(cause, site, hit, trials, directory)).get(hit)]


def undisturbed(number: int, trials: int, rng: random.Random) -> list[str | None]:
    """The explanations of trials to which time was added, each in turn."""
    cause = replace(CAUSES[WORKS[number % len(WORKS)]], inject=nothing)
    with place(cause) as (site, directory):
        results = measured(cause, site, 1, trials, directory)
        (path,) = results.glob("*/results.jsonl")
        stored = [json.loads(line) for line in path.read_text().splitlines()]
        usual = sorted(row["metrics"]["elapsed"][0] for row in stored)[len(stored) // 2]
        texts: list[str | None] = []
        for row in (row for row in stored if row["kept"]):
            elapsed = row["metrics"]["elapsed"]
            whole = elapsed[0]
            elapsed[0] += usual * rng.uniform(0.5, 5.0)
            path.write_text("".join(json.dumps(each) + "\n" for each in stored))
            elapsed[0] = whole
            texts += [text for trial, text in told(results).items() if trial == row["trial"]]
    return texts


def judged(text: str | None, right: str) -> str:
    """Whether an explanation is `right`, `none` or `another`, or of no `outlier`."""
    if text is None:
        return "no outlier"
    if re.search(right, text):
        return "right"
    return "none" if re.search(UNEXPLAINED, text) else "another"


def main() -> None:
    """Prints a table: of each kind, how often the right cause was named first, none, and another."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = [*CAUSES, UNDISTURBED]
    parser.add_argument("--experiments", type=int, default=20, help="of each kind [default: 20]")
    parser.add_argument("--trials", type=int, default=12, help="of each experiment [default: 12]")
    parser.add_argument("--kinds", nargs="*", default=kinds, choices=kinds, help="[default: all]")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all is removed
    rng = random.Random(wanted.seed)
    print("| cause | right first | none | another | no outlier |\n| --- | ---: | ---: | ---: | ---: |")
    for kind in wanted.kinds:
        counts: Counter[str] = Counter()
        try:
            for number in range(wanted.experiments):
                others = kind == UNDISTURBED
                texts = (
                    undisturbed(number, wanted.trials, rng) if others else disturbed(kind, wanted.trials, rng)
                )
                for text in texts:
                    named = judged(text, UNEXPLAINED if others else CAUSES[kind].right)
                    counts[named] += 1
                    print(f"{kind}: {named}: {text}", file=sys.stderr)
        except NotMeasurable as error:
            print(f"| {kind} | not measurable: {error} | | | |", flush=True)
            continue
        figures = (str(counts[each]) for each in ("right", "none", "another", "no outlier"))
        print(f"| {kind} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
