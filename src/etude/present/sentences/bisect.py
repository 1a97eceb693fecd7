"""Sentences of a bisection, and its log in the form of `git bisect log`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

import numpy as np

from etude.bisect.request import NAME_LENGTH, KnownCommit
from etude.bisect.result import BisectResult, Notice
from etude.bisect.simulated import Outlook
from etude.escaping import escaped
from etude.units.formatting import counted, percent, quantity

LONGEST_SUBJECT = 60
SURE = 0.95
"""Probability from which the log calls a commit good or bad."""


def chance_text(share: float) -> str:
    """A probability, never more or less certain than three digits are: `> 99.9 %`, `< 0.1 %`."""
    if share > 0.999 or share < 0.001:
        return "> 99.9 %" if share > 0.5 else "< 0.1 %"
    return percent(share)


def commit_text(commit: KnownCommit) -> str:
    """`a1b2c3d4e5f6 (Subject)`."""
    subject = escaped(commit.subject)
    if len(subject) > LONGEST_SUBJECT:
        subject = subject[: LONGEST_SUBJECT - 1] + "…"
    return f"{commit.sha[:NAME_LENGTH]} ({subject})"


def verdict_line(result: BisectResult) -> str:
    """The answer in one sentence."""
    answer, commits, posterior = result.answer, result.commits, result.state.posterior
    share, metric, least = (
        chance_text(answer.probability),
        result.request.metric,
        percent(result.request.at_least),
    )
    if answer.kind == "commit":
        return f"{commit_text(commits[answer.first])} changes {metric} by {step_text(result)}: probability {share}."
    if answer.kind == "range":
        between = f"{commits[answer.first].sha[:NAME_LENGTH]} to {commits[answer.last].sha[:NAME_LENGTH]}"
        return (
            f"One of {counted(answer.last - answer.first + 1, 'commit')}, {between}, changes {metric} by "
            f"{step_text(result)}: probability {share}. Those between cannot be measured."
        )
    if answer.kind == "none":
        return f"No step of {metric} of at least {least} between GOOD and BAD: probability {share}."
    if answer.kind == "drift":
        return f"{metric} changes slowly over the commits, without a step: probability {share}."
    if posterior is None:
        return "Undecided: GOOD and BAD are not measured yet."
    between = f"{commits[answer.first].sha[:NAME_LENGTH]} to {commits[answer.last].sha[:NAME_LENGTH]}"
    return (
        f"Undecided: a step of {metric} is in {counted(answer.last - answer.first + 1, 'commit')}, {between}, with "
        f"probability {share}; of no step {chance_text(posterior.none)}."
    )


def step_text(result: BisectResult) -> str:
    """`+3.1 % (2.6 % to 3.6 %)`: the step in question, with two standard deviations to both sides."""
    posterior = result.state.posterior
    if posterior is None:
        return "an unknown amount"
    ends = (posterior.step + k * posterior.step_error for k in (0.0, -2.0, 2.0))
    size, low, high = (f"{100.0 * math.expm1(end):+.2g} %" for end in ends)
    return f"{size} ({low} to {high})"


def detail_lines(result: BisectResult) -> Iterator[str]:
    """Cost, change from GOOD to BAD, skipped commits, doubts."""
    yield cost_line(result)
    yield from change_lines(result)
    yield from doubt_lines(result)


def range_line(result: BisectResult) -> str:
    """The commits, the metric and the command."""
    first, last = result.commits[0], result.commits[-1]
    command = escaped(shlex.join(result.request.command))
    return (
        f"{counted(len(result.commits), 'commit')}, from GOOD {commit_text(first)} to BAD {commit_text(last)}, by "
        f"{result.request.metric}; each runs: {command}"
    )


def cost_line(result: BisectResult) -> str:
    """Number of trials, measured commits, and their time."""
    state = result.state
    return (
        f"{counted(state.trials, 'trial')} of {counted(len(set(state.evidence.commits.tolist())), 'commit')} of "
        f"{len(result.commits)}: {quantity(result.measuring_s, 's')} measuring, "
        f"{quantity(result.building_s, 's')} building."
    )


def change_lines(result: BisectResult) -> Iterator[str]:
    """The change from GOOD to BAD, where it is known."""
    if (posterior := result.state.posterior) is not None:
        change = (
            f"{100.0 * math.expm1(end):+.2g} %"
            for end in (posterior.change, *posterior.change_interval(SURE))
        )
        size, low, high = change
        yield f"From GOOD to BAD: {size} (95 %: {low} to {high})."


def doubt_lines(result: BisectResult) -> Iterator[str]:
    """Further steps, skipped commits, a merge, and notes."""
    posterior = result.state.posterior
    if posterior is not None and posterior.several >= 1.0 - SURE:
        share = chance_text(posterior.several)
        yield f"More than one step has probability {share}: the largest in the direction of the change is named."
    if result.skipped:
        shown = [
            f"{result.commits[place].sha[:NAME_LENGTH]}: {escaped(why)}"
            for place, why in sorted(result.skipped.items())
        ]
        more = f"; and {len(shown) - 3} more" if len(shown) > 3 else ""
        yield f"Skipped {counted(len(shown), 'commit')}: {'; '.join(shown[:3])}{more}."
    answer = result.answer
    if answer.kind == "commit" and result.commits[answer.first].merge:
        sha = result.commits[answer.first].sha[:NAME_LENGTH]
        yield f"It is a merge: etude bisect {sha}^1 {sha} --ancestry looks into its branch."
    yield from map(note_line, result.notes)


def note_line(note: str) -> str:
    """A doubt in words."""
    kind, _, rest = note.partition(" ")
    return {
        "dirty": "Note: files differ from the checked-out commit; only commits are built and measured.",
        "submodules": "Note: the repository has submodules, whose directories are empty unless the build fills them.",
        "outside": f"Note: the build of {escaped(rest)}: it writes outside of its tree.",
        "changed": f"Note: the command changed files of its build: {escaped(rest)}; later trials measured others.",
    }[kind]


def notice_line(notice: Notice, result: BisectResult) -> str | None:
    """Progress in one line; None for what is not shown."""
    commit = result.commits[notice.commit]
    if notice.what == "build":
        return f"build {commit_text(commit)}"
    if notice.what == "skip":
        return f"skip {commit.sha[:NAME_LENGTH]}: {escaped(notice.detail)}"
    if notice.what == "outlook" and notice.outlook is not None:
        return outlook_line(notice.outlook)
    return None


def outlook_line(outlook: Outlook) -> str:
    """Expected cost, said at the start."""
    return (
        f"expected: {counted(outlook.trials, 'trial')}, {counted(outlook.builds, 'build')}, "
        f"{quantity(outlook.seconds, 's')}; up to {quantity(outlook.longest_s, 's')}, if the step is as large and the "
        "noise as it seems now"
    )


def state_line(result: BisectResult) -> str:
    """State in one line, after a choice."""
    posterior, answer = result.state.posterior, result.answer
    if posterior is None:
        return "GOOD and BAD first"
    width = answer.last - answer.first + 1 if answer.first else len(result.commits) - 1
    return (
        f"{counted(result.state.trials, 'trial')}: {counted(width, 'commit')} at {chance_text(answer.probability)}; "
        f"no step {chance_text(posterior.none)}; step {step_text(result)}"
    )


def git_log(result: BisectResult) -> str:
    """The bisection as `git bisect log` prints it, for `git bisect replay`. The last of the bad commits counts for git:
    it is the oldest."""
    commits, answer = result.commits, result.answer
    bad, good = commits[-1], commits[0]
    along = "" if result.request.ancestry else "'--first-parent' "
    rows = [
        f"# bad: [{bad.sha}] {_line(bad)}",
        f"# good: [{good.sha}] {_line(good)}",
        f"git bisect start {along}'{bad.sha}' '{good.sha}'",
    ]
    marks = dict.fromkeys(sorted(result.skipped), "skip") | _sides(result)
    goods_first = sorted(
        marks, key=lambda place: (marks[place] == "bad", place if marks[place] != "bad" else -place)
    )
    for place in goods_first:
        commit, word = commits[place], marks[place]
        rows += [f"# {word}: [{commit.sha}] {_line(commit)}", f"git bisect {word} {commit.sha}"]
    if answer.kind == "commit":
        rows.append(f"# first bad commit: [{commits[answer.first].sha}] {_line(commits[answer.first])}")
    return "\n".join(rows) + "\n"


def _sides(result: BisectResult) -> dict[int, str]:
    """`good` or `bad` for the measured commits between GOOD and BAD whose side is known."""
    answer, posterior = result.answer, result.state.posterior
    if posterior is None or answer.kind in ("none", "drift"):
        return {}
    behind = np.cumsum(posterior.commits)
    found = {}
    for place in result.state.evidence.measured().tolist()[1:-1]:
        if answer.kind == "commit":
            found[place] = "good" if place < answer.first else "bad"
        elif not 1.0 - SURE < behind[place] < SURE:
            found[place] = "bad" if behind[place] >= SURE else "good"
    return found


def _line(commit: KnownCommit) -> str:
    return escaped(commit.subject)
