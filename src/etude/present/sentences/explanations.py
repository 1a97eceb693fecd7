"""Sentences on the cause of an outlier, by the monitor and the trial's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from etude.analysis.excess_time import Level, MoreCpuTime, NeitherRanNorWaited, NotRun, OwnFaults
from etude.analysis.interference import NoisyProcess
from etude.analysis.outliers_explained import (
    NAMED,
    AtMost,
    Finding,
    KernelMessage,
    NoExplanation,
    OtherProcessesBeside,
    OutlierExplanation,
    TrialValue,
    Why,
)
from etude.present.sentences.phrases import every
from etude.units.formatting import digits, percent, quantity, scale_of

FINDINGS = NAMED + 1
"""Maximum number of findings of one trial that are shown."""
LONGEST_TEXT = 100
"""Maximum length of a kernel message."""

NOTHING_ENOUGH = "no monitor series explains the lost time"
NOTHING = "no monitor series explains it"


def explained_text(found: OutlierExplanation) -> str:
    """Unusual observations during a trial."""
    findings = found.why.findings
    more = f"; and {len(findings) - FINDINGS} more" if len(findings) > FINDINGS else ""
    text = f"{'; '.join(map(_finding, findings[:FINDINGS]))}{more}"
    if found.why.coarse_s is not None:
        around = every(found.why.coarse_s)
        text = f"in the {around} around it (it is shorter than the time between readings) {text}"
    return f"{_trial(found.of)}: {text}"


def suspects_text(why: Why) -> str:
    """Advice on an outlier; empty if no process is suspected."""
    names = why.suspects
    if not names:
        return ""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"check whether it disappears without {listed}"


def unexplained_text(found: NoExplanation) -> str:
    """Reason why a trial has no explanation."""
    reasons = {
        "no reading": "the monitor has no reading of it",
        "few others": "too few other trials were monitored to know the usual values",
        "quicker": "it took less time than the others",
        "nothing": NOTHING,
        "too coarse": f"{NOTHING}; it is shorter than the {every(found.every_s)} between readings, which are too "
        "coarse for it",
    }
    return f"{_trial(found.of)}: {reasons[found.reason]}"


def unexplained_advice(found: NoExplanation) -> str:
    """Advice that helps to explain it; empty if nothing does."""
    if found.reason != "too coarse":
        return ""
    return "measure with etude bench --monitor 100ms or less, or make trials longer"


def _trial(of: TrialValue) -> str:
    value, median = quantity(of.value, of.unit), quantity(of.median, of.unit)
    return f"trial {of.trial} ({value}, median of the others {median})"


def _finding(found: Finding) -> str:
    match found:
        case MoreCpuTime():
            more, used, usual = (
                quantity(seconds, "s")
                for seconds in (found.more_s, found.used_s, found.used_s - found.more_s)
            )
            return (
                f"it used {more} of CPU time more than usual itself ({used}, usually {usual}): it did more work, or "
                "the CPU was slower"
            )
        case NotRun():
            return (
                f"it was ready to run for up to {quantity(found.at_most_s, 's')} and did not, while "
                f"{found.idle_cpus:.1f} CPUs were idle: a CPU quota (cpu.max of its control group), or too few CPUs "
                "that it may use"
            )
        case NeitherRanNorWaited():
            return (
                f"for {quantity(found.for_s, 's')} it neither ran nor waited for a CPU, memory or a disk: it was "
                "stopped (SIGSTOP, a debugger), held by a CPU quota, slept, or waited for another process or the "
                "network"
            )
        case OwnFaults():
            return _own_faults(found)
        case Level():
            return _level(found)
        case AtMost():
            most, lost = quantity(found.most_s, "s"), quantity(found.lost_s, "s")
            return f"{_level(found.level)}, which explains at most {most} of {lost}"
        case KernelMessage():
            text = " ".join(found.text.split())
            text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
            more = f", and {found.count - 1} messages more" if found.count > 1 else ""
            return f'the kernel logged "{text}"{more}'
        case OtherProcessesBeside():
            return _others(found)
        case _:
            return NOTHING_ENOUGH


def _own_faults(found: OwnFaults) -> str:
    text = f"it had {found.count:.0f} major faults of its own (usually {found.usual:.0f})"
    if (by := found.shown_by) is None:
        return text
    reason = "in swap space" if found.swapped else "reclaimed"
    value, usual = level_text(by.value, by.unit), level_text(by.usual, by.unit)
    return f"{text}, on pages that were {reason} ({by.name} {value}, usually {usual})"


def _level(found: Level) -> str:
    value, usual = level_text(found.value, found.unit), level_text(found.usual, found.unit)
    return f"{found.name} {value} (usually {usual})"


def _others(found: OtherProcessesBeside) -> str:
    processes = _processes(found)
    if found.as_usual:
        return f"the CPUs were as busy as usual, but with others: {processes}"
    seconds = "" if found.coarse else " in these seconds"
    used = f"other processes used {level_text(found.cpus, 'CPUs')}{seconds}"
    return f"{used} (usually {found.usual:.1f}): {processes}"


def _processes(found: OtherProcessesBeside) -> str:
    """Processes that used the CPUs."""
    shown = list(map(_process, found.processes[:NAMED]))
    if len(found.processes) > NAMED:
        shown.append(f"and {len(found.processes) - NAMED} more")
    if found.ended_cpus is not None:
        shown.append(f"processes that had ended before they were seen {level_text(found.ended_cpus, 'CPUs')}")
    return ", ".join(shown) or "none of the processes that were listed"


def _process(each: NoisyProcess) -> str:
    return f"{each.name} {level_text(each.cpus, 'CPUs')} ({_pids(each.pids)})"


def _pids(pids: Sequence[int]) -> str:
    return f"pid {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes, such as pid {pids[0]}"


def level_text(value: float, unit: str) -> str:
    """`1.7 CPUs`, `12 %`, `12 MiB/s`, `2.41 GHz`: a value of the monitor, in short."""
    match unit:
        case "CPUs":
            return f"{value:.1f} CPUs"
        case "share":
            return percent(value) if abs(value) < 0.01 else f"{100 * value:.0f} %"
        case "Hz":
            return f"{value / 1e9:.2f} GHz"
        case "1":
            return f"{value:.0f}"
        case _:
            divisor, name = scale_of(value, unit)
            return f"{digits(value / divisor, 2)} {name}"
