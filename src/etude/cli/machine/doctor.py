"""`etude doctor`: what makes numbers noisy on this machine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from etude.machine.checks import examine
from etude.machine.reading import Finding
from etude.present.terminal import Terminal

STYLES = {"noisy": "yellow", "unknown": "dim", "good": None}
"""The style of each verdict, the worst first."""


def run(options: argparse.Namespace) -> int:
    """Print the findings, noisy ones first."""
    findings = examine()
    if options.json:
        print(json.dumps([asdict(f) for f in findings], indent=1, ensure_ascii=False))
        return 0
    findings = sorted(findings, key=lambda f: list(STYLES).index(f.verdict))
    screen = Terminal()
    if screen.width is None:
        for finding in findings:
            screen.say(f"{finding.verdict}: {finding.name}: {finding.state}: {_told(finding)}")
        return 0
    for finding in findings:
        screen.say(f"{finding.verdict:<7}  {finding.name}: {finding.state}", STYLES[finding.verdict])
        if finding.verdict != "good":
            screen.say(f"  {_told(finding)}")
    return 0


def _told(finding: Finding) -> str:
    """The finding's effect on measurements, and the advice."""
    return finding.meaning if finding.verdict == "good" else f"{finding.meaning} To do: {finding.advice}."
