"""Whether outliers are explained by what caused them: a cause is injected into one trial of each experiment.

Each experiment has a command of about 0.2 s, one trial of which is disturbed on purpose. Counted is how often the first
thing that the explanation names is of the cause's kind. Of `nap` and `longer` a trial sleeps, or computes, by itself.
Of `undisturbed` no trial is: time is added to each trial in turn in the rows as
they were stored, and the monitor's samples stay as they are. Nothing else should run; most kinds need root.
"""

from __future__ import annotations

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

sys.path.append(str(Path(__file__).resolve().parents[1]))  # bench/: rows

from etude.analysis.load_subject import read_subject
from etude.analysis.subject import Subject
from etude.analysis.verdict import verdict
from etude.analysis.verdict_options import VerdictOptions
from markdown import cells, table
from monitor import disturbances as by
from monitor.disturbances import Disturbance, NotMeasurable, Site
from rows import ETUDE, options

SLEPT, COMPUTED = r"^for [^;]* it neither ran nor waited", r"^it used [^;]* itself"
UNEXPLAINED = rf"^$|^nothing in the monitor|{SLEPT}|{COMPUTED}"
OTHERS = r"^other processes used|^CPU pressure"
WRITER = r"^other processes used [^;]*\bdd |^\S+ (busy|written)|^waiting for I/O|^I/O pressure"
MEMORY = r"^(it had \d+ |memory pressure|major faults)(?!.*swap)"
TIMERS = r"^(?=.*(interrupts|context switches))(other processes used|interrupts|context switches)"
CAUSES: dict[str, Disturbance] = {
    "hog": Disturbance(by.hog, OTHERS),
    "writer": Disturbance(by.writer, WRITER, "write"),
    "network": Disturbance(by.transfer, r"^etude\d+a received", "exchange", by.with_link),
    "memory": Disturbance(by.limit_memory, MEMORY, "file", by.with_file),
    "swap": Disturbance(by.limit_memory, r"^(it had \d+ [^;]*swap|pages swapped)", "memory", by.with_swap),
    "timers": Disturbance(by.timers, TIMERS),
    "short": Disturbance(by.short, OTHERS),
    "pinned": Disturbance(by.pinned, r"^other processes used .*python|CPUs that it may use"),
    "stop": Disturbance(by.stop, r"^[^;]*SIGSTOP"),
    "quota": Disturbance(by.quota, r"^[^;]*(cpu\.max|CPU quota)"),
    "nap": Disturbance(by.nothing, SLEPT, "nap"),
    "longer": Disturbance(by.nothing, COMPUTED, "longer"),
}
UNDISTURBED = "undisturbed"
OUTCOMES = ("none", "another", "no outlier")
WORKS = ("hog", "writer", "network", "memory")
"""Causes whose trials are measured without them, in turn, as the undisturbed ones."""
AFTER_S = 0.03
"""From a trial's first step to its disturbance."""


def measured(cause: Disturbance, site: Site, hit: int, trials: int, directory: Path) -> Path:
    """The results of an experiment whose trial `hit` is disturbed."""
    seen, program, results = directory / "seen", directory / "victim.py", directory / "r"
    seen.mkdir()
    program.write_text(by.VICTIM)
    over = threading.Event()

    def inject() -> None:
        pid_file = seen / str(hit)
        while not (pid_file.exists() and (pid := pid_file.read_text())):
            if over.wait(0.005):
                return
        time.sleep(AFTER_S)
        with suppress(ProcessLookupError):
            cause.inject(int(pid), site)

    where = (site.data, site.group or "", site.address, by.PORT)
    victim = shlex.join(map(str, (sys.executable, program, seen, hit, cause.work, *where)))
    etude = [ETUDE, "bench", "-o", str(results), "--trials", str(trials), "--monitor", "100ms", victim]
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
    explained = (each for each in found if each.kind == "outlier-explained")
    return apart | {trial: each.text.partition("): ")[2] for each in explained for trial in each.trials}


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
    cause = replace(CAUSES[WORKS[number % len(WORKS)]], inject=by.nothing)
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
    parser = options(__doc__)
    kinds = [*CAUSES, UNDISTURBED]
    parser.add_argument("--experiments", type=int, default=20, help="of each kind [default: 20]")
    parser.add_argument("--trials", type=int, default=12, help="of each experiment [default: 12]")
    parser.add_argument("--kinds", nargs="*", default=kinds, choices=kinds, help="[default: all]")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that all is removed
    rng = random.Random(wanted.seed)
    print(*table(("cause", "right first", *OUTCOMES), ())[:2], sep="\n")
    for kind in wanted.kinds:
        counts: Counter[str] = Counter()
        try:
            for number in range(wanted.experiments):
                if kind == UNDISTURBED:
                    texts, right = undisturbed(number, wanted.trials, rng), UNEXPLAINED
                else:
                    texts, right = disturbed(kind, wanted.trials, rng), CAUSES[kind].right
                for text in texts:
                    named = judged(text, right)
                    counts[named] += 1
                    print(f"{kind}: {named}: {text}", file=sys.stderr)
        except NotMeasurable as error:
            print(cells((kind, f"not measurable: {error}", "", "", "")), flush=True)
            continue
        print(cells((kind, *(str(counts[each]) for each in ("right", *OUTCOMES)))), flush=True)


if __name__ == "__main__":
    main()
